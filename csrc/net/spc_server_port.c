/* SPDX-License-Identifier: MIT */
/* One box's link: what comes is routed, what goes is queued, and how it ends. */
#include "net/spc_server_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/spc_error.h"

static int deliver(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    spc_server_port_t *port = argument;
    return spc_server_job_take(port->group->job, port->box, frame, body);
}

int spc_server_port_init(spc_server_port_t *port, spc_server_group_t *group, uint16_t box) {
    spc_server_t *server = port->server;
    port->group = group;
    port->box = box;
    port->descriptor = -1;
    const spc_link_options_t options = {
        .job = group->number,
        .now_ns = server->options.now_ns,
        .deliver = deliver,
        .argument = port,
        .heartbeat_ns = server->options.heartbeat_ns,
        .suspect_ns = server->options.suspect_ns,
        .broken_ns = server->options.broken_ns,
        .timeout_ns = server->options.link_timeout_ns,
        .acknowledge_ns = server->options.acknowledge_ns,
        .retained_max = group->retained_max,
        .buffer = server->buffer,
        .buffer_bytes = SPC_SERVER_BUFFER_BYTES,
        .pool = &server->pool,
    };
    return spc_link_create(&options, &port->link);
}

void spc_server_port_fini(spc_server_port_t *port) {
    if (port->link != NULL) {
        spc_link_count(port->link, &port->counts);
        spc_link_destroy(port->link);
        port->link = NULL;
    }
    if (port->descriptor >= 0) {
        spc_server_poller_forget(port->server->poller, port);
        port->descriptor = -1;
    }
}

/* ---- queueing */

static void mark_dirty(spc_server_port_t *port) {
    if (!port->is_dirty) {
        port->is_dirty = true;
        port->next_dirty = port->server->dirty;
        port->server->dirty = port;
    }
}

int spc_server_port_emit(void *argument, uint16_t box, const spc_frame_t *frame,
                         const spc_frame_piece_t *pieces, uint32_t count, spc_link_body_t *shared) {
    spc_server_group_t *group = argument;
    spc_server_port_t *port = &group->ports[box];
    if (port->link == NULL) {
        return SPC_OK;
    }
    int status = spc_link_queue_shared(port->link, frame, pieces, count, shared);
    if (status == SPC_OK) {
        mark_dirty(port);
    }
    /* Dead, though it has not been settled yet: nobody's mistake. */
    return status == SPC_ETIMEDOUT ? SPC_OK : status;
}

void spc_server_flush(spc_server_t *server) {
    while (server->dirty != NULL) {
        spc_server_port_t *port = server->dirty;
        server->dirty = port->next_dirty;
        port->is_dirty = false;
        if (port->link != NULL
            && !port->polls_writable) { /* else it has no room, and the poller will say when */
            spc_link_write(port->link);
        }
        spc_server_port_settle(port);
    }
}

/* ---- the end */

static void end_port(spc_server_port_t *port) {
    spc_server_group_t *group = port->group;
    port->is_over = true;
    spc_server_job_end_box(group->job, port->box);
    bool all_are_over = true;
    for (uint16_t box = 0; box < group->boxes; box++) {
        all_are_over = all_are_over && group->ports[box].is_over;
    }
    group->has_ended = group->tells_end = all_are_over;
}

static bool has_been_there(const spc_server_port_t *port) {
    spc_link_counts_t counts;
    spc_link_count(port->link, &counts);
    return counts.attached > 0;
}

/* A job fails once: the first reason counts. */
void spc_server_group_fail(spc_server_group_t *group, uint16_t box, const char *sentence) {
    if (group->has_failed || group->has_ended) {
        return;
    }
    group->has_failed = group->tells_failure = true;
    snprintf(group->sentence, sizeof group->sentence, "%s", sentence);
    const spc_frame_t frame = {.kind = SPC_FRAME_FAIL, .flags = SPC_FRAME_OTHERS, .source = box};
    const spc_frame_piece_t piece = {group->sentence, strlen(group->sentence)};
    for (uint16_t to = 0; to < group->boxes; to++) {
        spc_server_port_t *port = &group->ports[to];
        if (to != box && !port->is_over
            && (!has_been_there(port)
                || spc_server_port_emit(group, to, &frame, &piece, 1, NULL) != SPC_OK)) {
            /* It cannot be told. Nobody waits for it, and it is told by being refused. */
            spc_server_port_fini(port);
            end_port(port);
        }
    }
}

void spc_server_port_kill(spc_server_port_t *port, const char *sentence) {
    spc_server_port_fini(port);
    if (!port->is_over) {
        spc_server_group_fail(port->group, port->box, sentence);
        end_port(port);
    }
}

static void explain(const spc_server_port_t *port, char sentence[SPC_SERVER_SENTENCE_BYTES]) {
    const spc_server_options_t *options = &port->server->options;
    int system_error, reason = spc_link_reason(port->link, &system_error);
    unsigned box = port->box;
    size_t room = SPC_SERVER_SENTENCE_BYTES;
    switch (reason) {
    case SPC_ETIMEDOUT:
        snprintf(sentence, room, "box %u is lost: nothing was heard of it for %g seconds", box,
                 (double)options->link_timeout_ns / 1e9);
        break;
    case SPC_EAGAIN:
        snprintf(sentence, room,
                 "box %u has sent more than another box takes: the server keeps %" PRIu64 " bytes for each",
                 box, port->group->retained_max);
        break;
    case SPC_ELIMIT:
        snprintf(sentence, room,
                 "box %u contributes to more unfinished operations than the server keeps for a job: %" PRIu64
                 " bytes",
                 box, options->collected_max);
        break;
    case SPC_EINVAL:
        snprintf(sentence, room, "box %u has sent a frame that makes no sense to the server", box);
        break;
    default:
        snprintf(sentence, room, "box %u: the server cannot hand on its frames: %s", box,
                 spc_error_message(reason));
        break;
    }
}

/* ---- after anything */

static void settle_poller(spc_server_port_t *port) {
    spc_server_poller_t *poller = port->server->poller;
    int descriptor = spc_link_descriptor(port->link);
    if (descriptor < 0 && port->descriptor >= 0) {
        spc_server_poller_forget(poller, port);
        port->descriptor = -1;
        port->polls_writable = false;
    }
    bool wants_write = spc_link_wants_write(port->link);
    if (descriptor >= 0 && wants_write != port->polls_writable
        && spc_server_poller_set(poller, port, descriptor, wants_write) == SPC_OK) {
        port->polls_writable = wants_write;
    }
}

void spc_server_port_settle(spc_server_port_t *port) {
    if (port->link == NULL) {
        return;
    }
    settle_poller(port);
    if (spc_link_state(port->link) == SPC_LINK_DEAD) {
        char sentence[SPC_SERVER_SENTENCE_BYTES];
        explain(port, sentence);
        spc_server_port_kill(port, sentence);
        return;
    }
    if (!port->is_over && spc_link_has_ended(port->link) && !spc_link_wants_write(port->link)) {
        end_port(port);
    }
    uint64_t deadline_ns = spc_link_deadline_ns(port->link);
    if (deadline_ns < port->server->next_tick_ns) {
        port->server->next_tick_ns = deadline_ns;
    }
}
