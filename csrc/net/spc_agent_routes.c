/* SPDX-License-Identifier: MIT */
/* Which way the link to another agent goes: its channels, one after the other, and what agents say about them. */
#include "net/spc_agent_peers.h"

#include <string.h>
#include <unistd.h>

#include "base/spc_error.h"

bool spc_agent_peer_leads(const spc_agent_peer_t *peer) {
    return peer->agent->box < peer->box;
}

static void say(spc_agent_peer_t *peer, spc_agent_word_t word) {
    if (peer->agent->has_left) {
        return;
    }
    const spc_frame_t frame = {.kind = SPC_FRAME_ROUTE,
                               .source = (uint16_t)peer->agent->box,
                               .destination = (uint16_t)peer->box,
                               .tag = (int32_t)word,
                               .total_bytes = peer->number,
                               .offset = peer->connection};
    spc_agent_fail(peer->agent, spc_link_queue(peer->agent->link, &frame, NULL, 0));
}

/* ---- channels */

/* The leader goes through the server from now on. */
static void relay(spc_agent_peer_t *peer) {
    peer->changes += peer->is_direct;
    peer->is_direct = false;
    spc_agent_fail(peer->agent, spc_agent_tunnel_attach(peer, ++peer->number));
}

/* The leader would like to have a connection. */
static void want(spc_agent_peer_t *peer) {
    if (spc_agent_peer_leads(peer) && peer->wants_direct && peer->may_be_direct && !peer->is_direct
        && !peer->is_awaited && peer->address[0] != '\0') {
        peer->is_wanted = true;
    }
}

/* The leader does as it is told. */
static void allow(spc_agent_peer_t *peer, bool direct) {
    peer->may_be_direct = direct;
    peer->wants_direct = peer->wants_direct || direct;
    if (!direct && peer->is_direct) {
        relay(peer);
    }
    want(peer);
}

/* What agents say to each other themselves comes from the server alone: bytes of a tunnel within that tunnel would have
 * the link read while it reads. */
static int take(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    const bool is_ours =
        frame->kind != SPC_FRAME_BYTES && frame->kind != SPC_FRAME_ROUTE && frame->kind != SPC_FRAME_FAIL;
    return is_ours ? spc_agent_take(argument, frame, body) : SPC_EINVAL;
}

static int open_link(spc_agent_peer_t *peer) {
    spc_agent_t *agent = peer->agent;
    const spc_link_options_t options = {
        .job = agent->options.job,
        .deliver = take,
        .argument = agent,
        .heartbeat_ns = agent->options.heartbeat_ns,
        .suspect_ns = agent->options.suspect_ns,
        .broken_ns = agent->options.broken_ns,
        .timeout_ns = UINT64_MAX / 2, /* that a box is lost, the link to the server says */
        .retained_max = UINT64_MAX / 2, /* credit bounds it */
        .buffer = agent->peers_buffer,
        .buffer_bytes = SPC_AGENT_PEERS_BUFFER_BYTES,
    };
    return peer->link != NULL ? SPC_OK : spc_link_create(&options, &peer->link);
}

/* Takes it for a channel. */
static int attach_connection(spc_agent_peer_t *peer, int descriptor) {
    spc_channel_t *channel;
    int status = spc_channel_tcp_create(descriptor, &channel);
    if (status == SPC_OK) {
        status = spc_link_attach(peer->link, channel);
        if (status != SPC_OK) {
            spc_channel_destroy(channel);
        }
    } else {
        close(descriptor);
    }
    return status;
}

bool spc_agent_peer_is_down(const spc_agent_peer_t *peer) {
    return peer->link != NULL && !peer->is_over && spc_link_state(peer->link) == SPC_LINK_DOWN;
}

/* The follower has the connection that the leader has switched to. */
static void take_pending(spc_agent_peer_t *peer) {
    if (peer->pending >= 0 && peer->is_direct && peer->pending_connection == peer->connection) {
        const int descriptor = peer->pending;
        peer->pending = -1;
        spc_agent_fail(peer->agent, attach_connection(peer, descriptor));
    }
}

/* The first frame for it opens the link; the first that nodes cause makes a connection worth while. */
int spc_agent_peer_open(spc_agent_peer_t *peer, bool is_work) {
    const bool is_new = peer->link == NULL;
    const bool wants = is_work && !peer->wants_direct;
    const int status = open_link(peer);
    if (status != SPC_OK || (!is_new && !wants)) {
        return status;
    }
    peer->wants_direct = peer->wants_direct || wants;
    if (!spc_agent_peer_leads(peer)) {
        say(peer, wants ? SPC_AGENT_ASKS_DIRECT : SPC_AGENT_ASKS_LINK);
    } else if (is_new) {
        relay(peer);
    }
    want(peer);
    return SPC_OK;
}

/* ---- what comes through the server */

static spc_agent_peer_t *sender(spc_agent_t *agent, const spc_frame_t *frame) {
    const bool is_box =
        agent->peers != NULL && frame->source < agent->config->boxes && frame->source != agent->box;
    return is_box ? &agent->peers[frame->source] : NULL;
}

/* Bytes of a channel that is no more are dropped: the link has resumed, or will, on another. */
int spc_agent_take_bytes(spc_agent_t *agent, const spc_frame_t *frame, const unsigned char *body) {
    spc_agent_peer_t *peer = sender(agent, frame);
    const uint32_t number = (uint32_t)frame->tag;
    if (peer == NULL) {
        return SPC_EINVAL;
    }
    int status = SPC_OK;
    if (!spc_agent_peer_leads(peer) && number > peer->number) {
        peer->changes += peer->is_direct;
        peer->number = number;
        peer->is_direct = peer->has_complained = false;
        status = open_link(peer);
        status = status == SPC_OK ? spc_agent_tunnel_attach(peer, number) : status;
    }
    return status == SPC_OK && number == peer->number && !peer->is_direct
               ? spc_agent_tunnel_feed(peer, body, frame->length_bytes)
               : status;
}

static int take_address(spc_agent_peer_t *peer, const spc_frame_t *frame, const unsigned char *body) {
    if (frame->length_bytes >= sizeof(peer->address)) {
        return SPC_EINVAL;
    }
    memcpy(peer->address, body, frame->length_bytes);
    peer->address[frame->length_bytes] = '\0';
    want(peer);
    return SPC_OK;
}

static int take_switch(spc_agent_peer_t *peer, const spc_frame_t *frame) {
    const uint32_t number = (uint32_t)frame->total_bytes;
    const int status = open_link(peer);
    if (status == SPC_OK && number > peer->number) {
        peer->changes += !peer->is_direct;
        peer->number = number;
        peer->connection = (uint32_t)frame->offset;
        peer->is_direct = true;
        spc_link_detach(peer->link);
        take_pending(peer);
    }
    return status;
}

static int take_question(spc_agent_peer_t *peer, spc_agent_word_t word) {
    const bool forbids = word == SPC_AGENT_FORBIDS_DIRECT;
    const int status = spc_agent_peer_open(peer, word == SPC_AGENT_ASKS_DIRECT);
    if (status == SPC_OK && (forbids || word == SPC_AGENT_ALLOWS_DIRECT)) {
        allow(peer, !forbids);
    }
    return status;
}

int spc_agent_take_route(spc_agent_t *agent, const spc_frame_t *frame, const unsigned char *body) {
    spc_agent_peer_t *peer = sender(agent, frame);
    const uint32_t number = (uint32_t)frame->total_bytes;
    if (peer == NULL) {
        return SPC_EINVAL;
    }
    switch (frame->tag) {
    case SPC_AGENT_LISTENS:
        return take_address(peer, frame, body);
    case SPC_AGENT_ASKS_LINK:
    case SPC_AGENT_ASKS_DIRECT:
    case SPC_AGENT_ALLOWS_DIRECT:
    case SPC_AGENT_FORBIDS_DIRECT:
        return spc_agent_peer_leads(peer) ? take_question(peer, (spc_agent_word_t)frame->tag) : SPC_EINVAL;
    case SPC_AGENT_SWITCHES:
        return spc_agent_peer_leads(peer) ? SPC_EINVAL : take_switch(peer, frame);
    case SPC_AGENT_BROKEN:
        if (spc_agent_peer_leads(peer) && peer->link != NULL && number == peer->number) {
            relay(peer);
            want(peer);
        }
        return SPC_OK;
    case SPC_AGENT_LEAVES:
        peer->is_over = true;
        if (peer->link != NULL) {
            spc_link_detach(peer->link);
        }
        return SPC_OK;
    default:
        return SPC_EINVAL;
    }
}

/* ---- what time does, and channels that have broken */

void spc_agent_peer_look_after(spc_agent_peer_t *peer, uint64_t now_ns) {
    if (spc_link_tick(peer->link, now_ns) == SPC_LINK_DEAD) {
        spc_agent_fail(peer->agent, spc_link_reason(peer->link, &(int){0})); /* what came made no sense */
    }
    if (!spc_agent_peer_is_down(peer)) {
        return;
    }
    if (spc_agent_peer_leads(peer)) {
        relay(peer);
        want(peer);
    } else if (!peer->has_complained && peer->number != 0 && !peer->is_direct) {
        peer->has_complained = true; /* of a connection the leader sees the end itself */
        say(peer, SPC_AGENT_BROKEN);
    }
}

/* ---- what whoever makes connections does */

static spc_agent_peer_t *find(spc_agent_t *agent, uint32_t box) {
    const bool is_other = agent->peers != NULL && box < agent->config->boxes && box != agent->box;
    return is_other ? &agent->peers[box] : NULL;
}

int spc_agent_listens(spc_agent_t *agent, const char *address) {
    const spc_frame_t frame = {.kind = SPC_FRAME_ROUTE,
                               .flags = SPC_FRAME_OTHERS,
                               .source = (uint16_t)agent->box,
                               .tag = SPC_AGENT_LISTENS};
    const spc_frame_piece_t piece = {address, strlen(address)};
    if (agent->peers == NULL || piece.length_bytes >= SPC_AGENT_ADDRESS_BYTES) {
        return SPC_EINVAL;
    }
    pthread_mutex_lock(&agent->lock);
    const int status = spc_link_send(agent->link, &frame, &piece, 1);
    pthread_mutex_unlock(&agent->lock);
    return status;
}

int spc_agent_next_wanted(spc_agent_t *agent, uint32_t *box, uint32_t *number,
                          char address[SPC_AGENT_ADDRESS_BYTES]) {
    int status = SPC_EAGAIN;
    pthread_mutex_lock(&agent->lock);
    for (uint32_t i = 0; agent->peers != NULL && i < agent->config->boxes && status != SPC_OK; i++) {
        spc_agent_peer_t *peer = &agent->peers[i];
        if (peer->is_wanted) {
            peer->is_wanted = false;
            peer->is_awaited = true;
            memcpy(address, peer->address, SPC_AGENT_ADDRESS_BYTES);
            *box = i;
            *number = ++peer->connection;
            status = SPC_OK;
        }
    }
    pthread_mutex_unlock(&agent->lock);
    return status;
}

bool spc_agent_is_wanted(spc_agent_t *agent, uint32_t box, uint32_t number) {
    spc_agent_peer_t *peer = find(agent, box);
    if (peer == NULL) {
        return false;
    }
    pthread_mutex_lock(&agent->lock);
    const bool is = peer->is_awaited && peer->connection == number && peer->may_be_direct && !peer->is_over;
    peer->is_awaited = is || (peer->is_awaited && peer->connection != number);
    pthread_mutex_unlock(&agent->lock);
    return is;
}

/* The leader's: the other hears of it through the server. */
static int switch_to(spc_agent_peer_t *peer, int descriptor, uint32_t number) {
    peer->is_awaited = peer->is_awaited && number != peer->connection;
    if (!peer->may_be_direct || peer->link == NULL || peer->is_direct || number != peer->connection) {
        close(descriptor); /* the route has been changed meanwhile */
        return SPC_OK;
    }
    peer->changes++;
    peer->is_direct = true;
    peer->number++;
    say(peer, SPC_AGENT_SWITCHES);
    return attach_connection(peer, descriptor);
}

static int follow(spc_agent_peer_t *peer, int descriptor, uint32_t number) {
    if (peer->pending >= 0) {
        close(peer->pending);
    }
    peer->pending = descriptor;
    peer->pending_connection = number;
    take_pending(peer);
    return SPC_OK;
}

int spc_agent_attach_peer(spc_agent_t *agent, uint32_t box, uint32_t number, int descriptor) {
    spc_agent_peer_t *peer = find(agent, box);
    if (peer == NULL) {
        return SPC_EINVAL;
    }
    int status = SPC_OK;
    pthread_mutex_lock(&agent->lock);
    if (peer->is_over || agent->has_left) {
        close(descriptor);
    } else if (spc_agent_peer_leads(peer)) {
        status = switch_to(peer, descriptor, number);
    } else {
        status = follow(peer, descriptor, number);
    }
    spc_agent_fail(agent, status); /* not the caller's business any more: the descriptor is taken */
    pthread_mutex_unlock(&agent->lock);
    spc_agent_wake_reader(agent);
    return SPC_OK;
}

int spc_agent_route(spc_agent_t *agent, uint32_t box, bool direct) {
    spc_agent_peer_t *peer = find(agent, box);
    if (peer == NULL) {
        return SPC_EINVAL;
    }
    int status = SPC_OK;
    pthread_mutex_lock(&agent->lock);
    if (!peer->is_over && !agent->has_left) {
        status = spc_agent_peer_open(peer, false);
        if (status == SPC_OK && spc_agent_peer_leads(peer)) {
            allow(peer, direct);
        } else if (status == SPC_OK) {
            say(peer, direct ? SPC_AGENT_ALLOWS_DIRECT : SPC_AGENT_FORBIDS_DIRECT);
        }
    }
    pthread_mutex_unlock(&agent->lock);
    spc_agent_wake_reader(agent);
    return status;
}

int spc_agent_count_peer(spc_agent_t *agent, uint32_t box, spc_agent_peer_counts_t *counts) {
    const spc_agent_peer_t *peer = find(agent, box);
    if (peer == NULL) {
        return SPC_EINVAL;
    }
    *counts = (spc_agent_peer_counts_t){0};
    pthread_mutex_lock(&agent->lock);
    if (peer->link != NULL) {
        spc_link_count(peer->link, &counts->link);
        counts->is_direct = peer->is_direct;
        counts->changes = peer->changes;
    }
    pthread_mutex_unlock(&agent->lock);
    return SPC_OK;
}
