/* SPDX-License-Identifier: MIT */
/* Links to other agents: their frames, their channels, their end. */
#include "net/spc_agent_peers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/spc_error.h"

/* ---- life */

int spc_agent_peers_create(spc_agent_t *agent) {
    if (!agent->options.direct) {
        return SPC_OK;
    }
    agent->peers = calloc(agent->config->boxes, sizeof(*agent->peers));
    agent->peers_buffer = malloc(SPC_AGENT_PEERS_BUFFER_BYTES);
    if (agent->peers == NULL || agent->peers_buffer == NULL) {
        return SPC_ENOMEM;
    }
    for (uint32_t box = 0; box < agent->config->boxes; box++) {
        agent->peers[box] =
            (spc_agent_peer_t){.agent = agent, .box = box, .pending = -1, .may_be_direct = true};
    }
    return SPC_OK;
}

void spc_agent_peers_destroy(spc_agent_t *agent) {
    for (uint32_t box = 0; agent->peers != NULL && box < agent->config->boxes; box++) {
        spc_link_destroy(agent->peers[box].link);
        if (agent->peers[box].pending >= 0) {
            close(agent->peers[box].pending);
        }
    }
    free(agent->peers);
    free(agent->peers_buffer);
}

/* One that is still of use. */
static bool has_link(const spc_agent_t *agent, uint32_t box) {
    return agent->peers[box].link != NULL && !agent->peers[box].is_over;
}

/* ---- sending */

static int queue(spc_agent_t *agent, uint32_t box, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                 uint32_t count) {
    spc_agent_peer_t *peer = &agent->peers[box];
    if (box == agent->box || peer->is_over) {
        return SPC_OK;
    }
    int status =
        spc_agent_peer_open(peer, frame->kind == SPC_FRAME_MESSAGE || frame->kind == SPC_FRAME_ARRIVE);
    if (status == SPC_OK) {
        status = spc_link_queue(peer->link, frame, pieces, count);
    }
    return status;
}

/* One frame for each box, with its ranks only. */
static int queue_message(spc_agent_t *agent, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                         uint32_t count) {
    const uint16_t *ranks = pieces[0].start;
    spc_frame_piece_t parts[4];
    uint64_t done = 0;
    int status = SPC_OK;
    for (uint32_t first = 0; first < frame->count && status == SPC_OK; first++) {
        const uint32_t box = spc_segment_box(&agent->segment, ranks[first]);
        uint16_t list[SPC_NODES_MAX + 4] = {0};
        spc_frame_t part = *frame;
        part.count = 0;
        for (uint32_t i = first; (done >> box & 1) == 0 && i < frame->count; i++) {
            if (spc_segment_box(&agent->segment, ranks[i]) == box) {
                list[part.count++] = ranks[i];
            }
        }
        if (part.count != 0) {
            done |= UINT64_C(1) << box;
            memcpy(parts, pieces, count * sizeof(parts[0]));
            parts[0] = (spc_frame_piece_t){list, spc_round_up(part.count * sizeof(list[0]), 8)};
            part.destination = (uint16_t)box;
            status = queue(agent, box, &part, parts, count);
        }
    }
    return status;
}

int spc_agent_peers_queue(spc_agent_t *agent, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                          uint32_t count) {
    uint64_t boxes = UINT64_C(1) << frame->destination % 64;
    int status = SPC_OK;
    if (frame->kind == SPC_FRAME_MESSAGE) {
        return queue_message(agent, frame, pieces, count);
    }
    if (frame->kind == SPC_FRAME_ARRIVE) {
        memcpy(&boxes, pieces[0].start, sizeof(boxes));
    } else if ((frame->flags & SPC_FRAME_OTHERS) != 0) {
        boxes = UINT64_MAX;
    }
    for (uint32_t box = 0; box < agent->config->boxes && status == SPC_OK; box++) {
        if (boxes >> box & 1) {
            status = queue(agent, box, frame, pieces, count);
        }
    }
    return status;
}

void spc_agent_peers_write(spc_agent_t *agent) {
    for (uint32_t box = 0; agent->peers != NULL && box < agent->config->boxes; box++) {
        if (has_link(agent, box)) {
            spc_link_write(agent->peers[box].link);
        }
    }
}

/* ---- the reading thread */

bool spc_agent_peers_look_after(spc_agent_t *agent) {
    const uint64_t now_ns = agent->peers != NULL ? spc_clock_now_ns() : 0;
    bool wants = false;
    for (uint32_t box = 0; agent->peers != NULL && !agent->has_left && box < agent->config->boxes; box++) {
        if (has_link(agent, box)) {
            spc_agent_peer_look_after(&agent->peers[box], now_ns);
        }
        wants = wants || agent->peers[box].is_wanted;
    }
    return wants;
}

uint64_t spc_agent_peers_deadline_ns(const spc_agent_t *agent) {
    uint64_t deadline_ns = SPC_NO_DEADLINE;
    /* After the farewell nobody looks after these links any more. */
    for (uint32_t box = 0; agent->peers != NULL && !agent->has_left && box < agent->config->boxes; box++) {
        const uint64_t its_ns =
            has_link(agent, box) ? spc_link_deadline_ns(agent->peers[box].link) : SPC_NO_DEADLINE;
        deadline_ns = its_ns < deadline_ns ? its_ns : deadline_ns;
    }
    return deadline_ns;
}

uint32_t spc_agent_peers_poll(const spc_agent_t *agent, struct pollfd polled[]) {
    uint32_t count = 0;
    for (uint32_t box = 0; agent->peers != NULL && box < agent->config->boxes; box++) {
        const spc_link_t *link = agent->peers[box].link;
        const int descriptor = has_link(agent, box) ? spc_link_descriptor(link) : -1;
        if (descriptor >= 0) {
            const short events = (short)(POLLIN | (spc_link_wants_write(link) ? POLLOUT : 0));
            polled[count++] = (struct pollfd){.fd = descriptor, .events = events};
        }
    }
    return count;
}

/* By descriptor: since the wait began channels may have come and gone. Who is asked in vain finds nothing. */
int spc_agent_peers_read(spc_agent_t *agent, const struct pollfd polled[], uint32_t count) {
    int status = SPC_OK;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t box = 0; polled[i].revents != 0 && box < agent->config->boxes && status == SPC_OK;
             box++) {
            if (has_link(agent, box) && spc_link_descriptor(agent->peers[box].link) == polled[i].fd) {
                status = spc_link_read(agent->peers[box].link);
            }
        }
    }
    return status;
}

bool spc_agent_peers_need_reader(const spc_agent_t *agent) {
    bool needs = false;
    for (uint32_t box = 0; agent->peers != NULL && !needs && box < agent->config->boxes; box++) {
        const spc_agent_peer_t *peer = &agent->peers[box];
        needs = peer->is_wanted || spc_agent_peer_is_down(peer)
                || (peer->link != NULL && spc_link_wants_write(peer->link));
    }
    return needs;
}

/* ---- the end */

void spc_agent_peers_finish(spc_agent_t *agent) {
    for (uint32_t box = 0; agent->peers != NULL && box < agent->config->boxes; box++) {
        if (has_link(agent, box)) {
            spc_agent_fail(agent, spc_link_finish(agent->peers[box].link));
        }
    }
}

bool spc_agent_peers_are_flushed(const spc_agent_t *agent) {
    bool are = true;
    for (uint32_t box = 0; agent->peers != NULL && are && box < agent->config->boxes; box++) {
        are = !has_link(agent, box) || spc_link_is_flushed(agent->peers[box].link);
    }
    return are;
}

void spc_agent_peers_leave(spc_agent_t *agent) {
    const spc_frame_t frame = {.kind = SPC_FRAME_ROUTE,
                               .flags = SPC_FRAME_OTHERS,
                               .source = (uint16_t)agent->box,
                               .tag = SPC_AGENT_LEAVES};
    if (agent->peers != NULL) {
        spc_agent_fail(agent, spc_link_queue(agent->link, &frame, NULL, 0));
        agent->has_left = true;
    }
}
