/* SPDX-License-Identifier: MIT */
#include "net/gateway/spc_gateway_route.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/spc_error.h"

enum { BUFFER_BYTES = 1 << 16 };

/* Messages about routes between gateways, through the server: the tag of a SPC_FRAME_ROUTE. */
typedef enum word {
    LISTENS = 1, /* to all; body: address for connections; empty: nowhere */
    RELAYS,      /* leader: the pair goes through the server */
    LEAVES,      /* to all: the sender has sent all its frames, and needs nothing more */
} word_t;

typedef enum way { UNDECIDED, DIRECT, RELAYED } way_t;

typedef struct held {
    struct held *next;
    spc_frame_t frame;
    unsigned char body[];
} held_t;

struct spc_gateway_peer {
    spc_gateway_t *gateway;
    uint32_t box;
    way_t way;
    held_t *first, *last; /* frames that wait for the choice */
    spc_link_t *link;     /* DIRECT; else NULL */
    bool is_wanted; /* leader: a connection is to be made, and its maker has not been asked for it yet; */
    bool is_awaited; /* its maker has been asked */
    bool is_over; /* LEAVES has come */
    uint32_t connection; /* leader: the last one asked for; follower: the last one handed in */
    char address[SPC_GATEWAY_ADDRESS_BYTES]; /* its address; empty: not known, or nowhere */
};

static bool is_leader(const spc_gateway_peer_t *peer) {
    return peer->gateway->box < peer->box;
}

/* ---- functions that every file of the gateway needs */

void spc_gateway_fail(spc_gateway_t *gateway, int outcome) {
    if (outcome != SPC_OK && gateway->outcome == SPC_EAGAIN) {
        gateway->outcome = outcome;
    }
}

void spc_gateway_wake_reader(const spc_gateway_t *gateway) {
    const ssize_t written = write(gateway->wake[1], "", 1);
    (void)written; /* full: the reading thread wakes anyway */
}

/* ---- life */

int spc_gateway_route_create(spc_gateway_t *gateway) {
    if (!gateway->options.direct) {
        return SPC_OK;
    }
    gateway->peers = calloc(gateway->config->boxes, sizeof(*gateway->peers));
    gateway->peers_buffer = malloc(BUFFER_BYTES);
    if (gateway->peers == NULL || gateway->peers_buffer == NULL) {
        return SPC_ENOMEM;
    }
    for (uint32_t box = 0; box < gateway->config->boxes; box++) {
        gateway->peers[box] = (spc_gateway_peer_t){.gateway = gateway, .box = box};
    }
    return SPC_OK;
}

static void free_first(spc_gateway_peer_t *peer) {
    held_t *held = peer->first;
    peer->first = held->next;
    free(held);
}

void spc_gateway_route_destroy(spc_gateway_t *gateway) {
    for (uint32_t box = 0; gateway->peers != NULL && box < gateway->config->boxes; box++) {
        while (gateway->peers[box].first != NULL) {
            free_first(&gateway->peers[box]);
        }
        spc_link_destroy(gateway->peers[box].link);
    }
    free(gateway->peers);
    free(gateway->peers_buffer);
}

/* A connection that is still of use. */
static bool has_link(const spc_gateway_t *gateway, uint32_t box) {
    return gateway->peers[box].link != NULL && !gateway->peers[box].is_over;
}

static bool is_down(const spc_gateway_t *gateway, uint32_t box) {
    return has_link(gateway, box) && spc_link_state(gateway->peers[box].link) == SPC_LINK_DOWN;
}

/* ---- sending */

static int hold(spc_gateway_peer_t *peer, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                uint32_t count) {
    size_t length_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        length_bytes += pieces[i].length_bytes;
    }
    held_t *held = malloc(sizeof(*held) + length_bytes);
    if (held == NULL) {
        return SPC_ENOMEM;
    }
    held->next = NULL;
    held->frame = *frame;
    held->frame.length_bytes = (uint32_t)length_bytes;
    unsigned char *at = held->body;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].length_bytes != 0) { /* an empty piece may have no address */
            memcpy(at, pieces[i].start, pieces[i].length_bytes);
            at += pieces[i].length_bytes;
        }
    }
    *(peer->first == NULL ? &peer->first : &peer->last->next) = held;
    peer->last = held;
    return SPC_OK;
}

/* The server forwards it as it is. It would collect arrivals, and messages could overtake them. */
static int relay(const spc_gateway_peer_t *peer, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                 uint32_t count) {
    spc_frame_t part = *frame;
    part.destination = (uint16_t)peer->box;
    part.flags &= (uint16_t)~SPC_FRAME_OTHERS;
    part.flags |= frame->kind == SPC_FRAME_ARRIVE ? SPC_FRAME_FORWARD : 0;
    return spc_link_queue(peer->gateway->link, &part, pieces, count);
}

static int queue(spc_gateway_t *gateway, uint32_t box, const spc_frame_t *frame,
                 const spc_frame_piece_t *pieces, uint32_t count) {
    spc_gateway_peer_t *peer = &gateway->peers[box];
    if (box == gateway->box || peer->is_over) {
        return SPC_OK;
    }
    switch (peer->way) {
    case DIRECT:
        return spc_link_queue(peer->link, frame, pieces, count);
    case RELAYED:
        return relay(peer, frame, pieces, count);
    default:
        return hold(peer, frame, pieces, count);
    }
}

/* One frame for each box, with its ranks only. */
static int queue_message(spc_gateway_t *gateway, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                         uint32_t count) {
    const uint16_t *ranks = pieces[0].start;
    spc_frame_piece_t parts[4];
    uint64_t done = 0;
    int status = SPC_OK;
    for (uint32_t first = 0; first < frame->count && status == SPC_OK; first++) {
        const uint32_t box = spc_segment_box(&gateway->segment, ranks[first]);
        uint16_t list[SPC_NODES_MAX + 4] = {0};
        spc_frame_t part = *frame;
        part.count = 0;
        for (uint32_t i = first; (done >> box & 1) == 0 && i < frame->count; i++) {
            if (spc_segment_box(&gateway->segment, ranks[i]) == box) {
                list[part.count++] = ranks[i];
            }
        }
        if (part.count != 0) {
            done |= UINT64_C(1) << box;
            memcpy(parts, pieces, count * sizeof(parts[0]));
            parts[0] = (spc_frame_piece_t){list, spc_round_up(part.count * sizeof(list[0]), 8)};
            part.destination = (uint16_t)box;
            status = queue(gateway, box, &part, parts, count);
        }
    }
    return status;
}

static int queue_to_peers(spc_gateway_t *gateway, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                          uint32_t count) {
    uint64_t boxes = UINT64_C(1) << frame->destination % 64;
    int status = SPC_OK;
    if (frame->kind == SPC_FRAME_MESSAGE) {
        return queue_message(gateway, frame, pieces, count);
    }
    if (frame->kind == SPC_FRAME_ARRIVE) {
        memcpy(&boxes, pieces[0].start, sizeof(boxes));
    } else if ((frame->flags & SPC_FRAME_OTHERS) != 0) {
        boxes = UINT64_MAX;
    }
    for (uint32_t box = 0; box < gateway->config->boxes && status == SPC_OK; box++) {
        if (boxes >> box & 1) {
            status = queue(gateway, box, frame, pieces, count);
        }
    }
    return status;
}

static void write_peers(spc_gateway_t *gateway) {
    for (uint32_t box = 0; gateway->peers != NULL && box < gateway->config->boxes; box++) {
        if (has_link(gateway, box)) {
            spc_link_write(gateway->peers[box].link);
        }
    }
}

/* ---- sending, over either kind of link */

void spc_gateway_queue(spc_gateway_t *gateway, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                       uint32_t count) {
    gateway->sent_frames += frame->kind != SPC_FRAME_BOARD;
    const int status = gateway->peers != NULL ? queue_to_peers(gateway, frame, pieces, count)
                                              : spc_link_queue(gateway->link, frame, pieces, count);
    /* Frames that arrive when all nodes here are gone cause none that any node needs. */
    spc_gateway_fail(gateway, status == SPC_ECLOSED && gateway->is_finishing ? SPC_OK : status);
}

void spc_gateway_send(spc_gateway_t *gateway, const spc_frame_t *frame, const void *body,
                      uint32_t length_bytes) {
    const spc_frame_piece_t piece = {body, length_bytes};
    spc_gateway_queue(gateway, frame, &piece, length_bytes != 0 ? 1 : 0);
}

void spc_gateway_write_links(spc_gateway_t *gateway) {
    write_peers(gateway);
    spc_link_write(gateway->link);
}

/* ---- the choice */

static void want(spc_gateway_peer_t *peer) {
    const bool is_needed =
        peer->way == UNDECIDED || (peer->way == DIRECT && spc_link_state(peer->link) == SPC_LINK_DOWN);
    if (is_leader(peer) && is_needed && !peer->is_over && !peer->is_awaited && peer->address[0] != '\0') {
        peer->is_wanted = true;
    }
}

/* Takes this way from now on; held frames go first. */
static int choose(spc_gateway_peer_t *peer, way_t way) {
    spc_gateway_t *gateway = peer->gateway;
    int status = SPC_OK;
    peer->way = way;
    while (peer->first != NULL && status == SPC_OK) {
        const spc_frame_piece_t piece = {peer->first->body, peer->first->frame.length_bytes};
        status = queue(gateway, peer->box, &peer->first->frame, &piece, 1);
        free_first(peer);
    }
    if (status == SPC_OK && way == DIRECT && gateway->is_finishing) {
        status = spc_link_finish(peer->link);
    }
    spc_gateway_write_links(gateway);
    return status;
}

static int say(spc_gateway_t *gateway, uint16_t flags, uint32_t box, word_t word, const char *text) {
    const spc_frame_t frame = {.kind = SPC_FRAME_ROUTE,
                               .flags = flags,
                               .source = (uint16_t)gateway->box,
                               .destination = (uint16_t)box,
                               .tag = word};
    const spc_frame_piece_t piece = {text, strlen(text)};
    return spc_link_send(gateway->link, &frame, &piece, 1);
}

static int choose_relay(spc_gateway_peer_t *peer) {
    const int status = say(peer->gateway, 0, peer->box, RELAYS, "");
    return status == SPC_OK ? choose(peer, RELAYED) : status;
}

static int take_address(spc_gateway_peer_t *peer, const spc_frame_t *frame, const unsigned char *body) {
    if (frame->length_bytes >= sizeof(peer->address) || peer->address[0] != '\0') {
        return SPC_EINVAL;
    }
    memcpy(peer->address, body, frame->length_bytes);
    peer->address[frame->length_bytes] = '\0';
    want(peer);
    return is_leader(peer) && peer->way == UNDECIDED && peer->address[0] == '\0' ? choose_relay(peer)
                                                                                 : SPC_OK;
}

int spc_gateway_on_route(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    if (gateway->peers == NULL || frame->source >= gateway->config->boxes || frame->source == gateway->box) {
        return SPC_EINVAL;
    }
    spc_gateway_peer_t *peer = &gateway->peers[frame->source];
    switch (frame->tag) {
    case LISTENS:
        return take_address(peer, frame, body);
    case RELAYS:
        return is_leader(peer) || peer->way != UNDECIDED ? SPC_EINVAL : choose(peer, RELAYED);
    case LEAVES:
        peer->is_over = true;
        if (peer->link != NULL) {
            spc_link_detach(peer->link);
        }
        return SPC_OK;
    default:
        return SPC_EINVAL;
    }
}

/* ---- calls of the owner of the connections */

static spc_gateway_peer_t *find(spc_gateway_t *gateway, uint32_t box) {
    const bool is_other = gateway->peers != NULL && box < gateway->config->boxes && box != gateway->box;
    return is_other ? &gateway->peers[box] : NULL;
}

int spc_gateway_listens(spc_gateway_t *gateway, const char *address) {
    if (gateway->peers == NULL || strlen(address) >= SPC_GATEWAY_ADDRESS_BYTES) {
        return SPC_EINVAL;
    }
    pthread_mutex_lock(&gateway->lock);
    const int status = say(gateway, SPC_FRAME_OTHERS, 0, LISTENS, address);
    pthread_mutex_unlock(&gateway->lock);
    return status;
}

int spc_gateway_next_wanted(spc_gateway_t *gateway, uint32_t *box, uint32_t *number,
                            char address[SPC_GATEWAY_ADDRESS_BYTES]) {
    int status = SPC_EAGAIN;
    pthread_mutex_lock(&gateway->lock);
    for (uint32_t i = 0; gateway->peers != NULL && i < gateway->config->boxes && status != SPC_OK; i++) {
        spc_gateway_peer_t *peer = &gateway->peers[i];
        if (peer->is_wanted) {
            peer->is_wanted = false;
            peer->is_awaited = true;
            memcpy(address, peer->address, SPC_GATEWAY_ADDRESS_BYTES);
            *box = i;
            *number = ++peer->connection;
            status = SPC_OK;
        }
    }
    pthread_mutex_unlock(&gateway->lock);
    return status;
}

static bool is_awaited(const spc_gateway_peer_t *peer, uint32_t number) {
    return peer->is_awaited && peer->connection == number && !peer->is_over && !peer->gateway->has_left;
}

bool spc_gateway_is_wanted(spc_gateway_t *gateway, uint32_t box, uint32_t number) {
    const spc_gateway_peer_t *peer = find(gateway, box);
    if (peer == NULL) {
        return false;
    }
    pthread_mutex_lock(&gateway->lock);
    const bool is = is_awaited(peer, number);
    pthread_mutex_unlock(&gateway->lock);
    return is;
}

void spc_gateway_relay_peer(spc_gateway_t *gateway, uint32_t box, uint32_t number) {
    spc_gateway_peer_t *peer = find(gateway, box);
    if (peer == NULL) {
        return;
    }
    pthread_mutex_lock(&gateway->lock);
    if (peer->way == UNDECIDED && is_awaited(peer, number)) {
        peer->is_awaited = false;
        spc_gateway_fail(gateway, choose_relay(peer));
    }
    pthread_mutex_unlock(&gateway->lock);
    spc_event_raise(gateway->event,
                    gateway->config->features); /* spc_gateway_run may wait for frames that were held */
    spc_gateway_wake_reader(gateway);
}

/* Route frames between gateways come from the server alone. */
static int take(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    const spc_gateway_peer_t *peer = argument;
    spc_gateway_t *gateway = peer->gateway;
    const uint16_t *box_of_rank = spc_segment_part(&gateway->segment, SPC_REGION_PLACE, 0);
    const bool is_theirs = frame->kind != SPC_FRAME_ROUTE
                           && spc_frame_is_of_box(frame, (uint16_t)peer->box, box_of_rank, gateway->nodes);
    return is_theirs ? gateway->deliver(gateway, frame, body) : SPC_EINVAL;
}

static int attach(spc_gateway_peer_t *peer, spc_channel_t *channel) {
    const spc_gateway_t *gateway = peer->gateway;
    spc_link_limits_t limits = gateway->options.limits;
    if (spc_channel_descriptor(channel) < 0) { /* MPI's: there is no other one */
        limits.broken_ns = limits.timeout_ns;
    }
    const spc_link_options_t options = {
        .job = gateway->options.job,
        .deliver = take,
        .argument = peer,
        .limits = limits,
        .retained_max = UINT64_MAX / 2, /* credit bounds it */
        .buffer = gateway->peers_buffer,
        .buffer_bytes = BUFFER_BYTES,
    };
    int status = peer->link == NULL ? spc_link_create(&options, &peer->link) : SPC_OK;
    status = status == SPC_OK ? spc_link_attach(peer->link, channel) : status;
    if (status != SPC_OK) {
        spc_channel_destroy(channel);
    } else if (peer->way == UNDECIDED) {
        status = choose(peer, DIRECT);
    }
    return status;
}

int spc_gateway_attach_peer(spc_gateway_t *gateway, uint32_t box, uint32_t number, spc_channel_t *channel) {
    spc_gateway_peer_t *peer = find(gateway, box);
    if (peer == NULL) {
        spc_channel_destroy(channel);
        return SPC_EINVAL;
    }
    pthread_mutex_lock(&gateway->lock);
    const bool is_next = is_leader(peer) ? is_awaited(peer, number) : number > peer->connection;
    if (!is_next || peer->way == RELAYED || peer->is_over || gateway->has_left) {
        spc_channel_destroy(channel);
    } else {
        peer->connection = number;
        peer->is_awaited = false;
        spc_gateway_fail(gateway, attach(peer, channel)); /* not the caller's error: the channel is taken */
    }
    pthread_mutex_unlock(&gateway->lock);
    spc_gateway_wake_reader(gateway);
    return SPC_OK;
}

int spc_gateway_count_peer(spc_gateway_t *gateway, uint32_t box, spc_gateway_peer_counts_t *counts) {
    const spc_gateway_peer_t *peer = find(gateway, box);
    if (peer == NULL) {
        return SPC_EINVAL;
    }
    *counts = (spc_gateway_peer_counts_t){0};
    pthread_mutex_lock(&gateway->lock);
    counts->is_direct = peer->way == DIRECT;
    if (counts->is_direct) {
        spc_link_count(peer->link, &counts->link);
    }
    pthread_mutex_unlock(&gateway->lock);
    return SPC_OK;
}

/* ---- the reading thread */

static void look_after(spc_gateway_peer_t *peer, uint64_t now_ns) {
    if (spc_link_tick(peer->link, now_ns) == SPC_LINK_DEAD) {
        const int reason = spc_link_reason(peer->link, &(int){0});
        if (reason == SPC_ETIMEDOUT && peer->gateway->outcome == SPC_EAGAIN) {
            peer->gateway->culprit = peer->box;
        }
        spc_gateway_fail(peer->gateway, reason);
    }
    want(peer);
}

bool spc_gateway_route_look_after(spc_gateway_t *gateway) {
    const uint64_t now_ns = gateway->peers != NULL ? spc_clock_now_ns() : 0;
    bool wants = false;
    for (uint32_t box = 0; gateway->peers != NULL && !gateway->has_left && box < gateway->config->boxes;
         box++) {
        if (has_link(gateway, box)) {
            look_after(&gateway->peers[box], now_ns);
        }
        wants = wants || gateway->peers[box].is_wanted;
    }
    return wants;
}

uint64_t spc_gateway_route_deadline_ns(const spc_gateway_t *gateway) {
    uint64_t deadline_ns = SPC_NO_DEADLINE;
    /* After the farewell no thread looks after these links any more. */
    for (uint32_t box = 0; gateway->peers != NULL && !gateway->has_left && box < gateway->config->boxes;
         box++) {
        const uint64_t its_ns =
            has_link(gateway, box) ? spc_link_deadline_ns(gateway->peers[box].link) : SPC_NO_DEADLINE;
        deadline_ns = its_ns < deadline_ns ? its_ns : deadline_ns;
    }
    return deadline_ns;
}

uint32_t spc_gateway_route_poll(const spc_gateway_t *gateway, struct pollfd polled[]) {
    uint32_t count = 0;
    for (uint32_t box = 0; gateway->peers != NULL && box < gateway->config->boxes; box++) {
        const spc_link_t *link = gateway->peers[box].link;
        const int descriptor = has_link(gateway, box) ? spc_link_descriptor(link) : -1;
        if (descriptor >= 0) {
            const short events = (short)(POLLIN | (spc_link_wants_write(link) ? POLLOUT : 0));
            polled[count++] = (struct pollfd){.fd = descriptor, .events = events};
        }
    }
    return count;
}

/* By descriptor: connections may have come and gone since the wait began. A read in vain finds nothing. */
int spc_gateway_route_read(spc_gateway_t *gateway, const struct pollfd polled[], uint32_t count) {
    int status = SPC_OK;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t box = 0; polled[i].revents != 0 && box < gateway->config->boxes && status == SPC_OK;
             box++) {
            if (has_link(gateway, box) && spc_link_descriptor(gateway->peers[box].link) == polled[i].fd) {
                status = spc_link_read(gateway->peers[box].link);
            }
        }
    }
    return status;
}

static bool is_polled(const spc_gateway_t *gateway, uint32_t box) {
    return has_link(gateway, box) && !is_down(gateway, box)
           && spc_link_descriptor(gateway->peers[box].link) < 0;
}

bool spc_gateway_route_polls(const spc_gateway_t *gateway) {
    bool is = false;
    for (uint32_t box = 0; gateway->peers != NULL && !is && box < gateway->config->boxes; box++) {
        is = is_polled(gateway, box);
    }
    return is;
}

int spc_gateway_route_read_polled(spc_gateway_t *gateway) {
    int status = SPC_OK;
    for (uint32_t box = 0; gateway->peers != NULL && status == SPC_OK && box < gateway->config->boxes;
         box++) {
        status = is_polled(gateway, box) ? spc_link_read(gateway->peers[box].link) : SPC_OK;
    }
    return status;
}

static uint64_t count_frames(const spc_link_counts_t *counts) {
    uint64_t frames = 0;
    for (uint32_t kind = 0; kind < SPC_LINK_KINDS; kind++) {
        const bool is_silence = kind == SPC_FRAME_ACKNOWLEDGE;
        frames += is_silence ? 0 : counts->sent[kind].frames + counts->received[kind].frames;
    }
    return frames;
}

void spc_gateway_route_count(const spc_gateway_t *gateway, uint64_t *frames, uint64_t *reads) {
    *frames = *reads = 0;
    for (uint32_t box = 0; gateway->peers != NULL && box < gateway->config->boxes; box++) {
        if (gateway->peers[box].link != NULL) {
            spc_link_counts_t counts;
            spc_link_count(gateway->peers[box].link, &counts);
            *frames += count_frames(&counts);
            *reads += counts.reads;
        }
    }
}

bool spc_gateway_route_need_reader(const spc_gateway_t *gateway) {
    bool needs = false;
    for (uint32_t box = 0; gateway->peers != NULL && !needs && box < gateway->config->boxes; box++) {
        const spc_gateway_peer_t *peer = &gateway->peers[box];
        needs = peer->is_wanted || is_down(gateway, box)
                || (peer->link != NULL && spc_link_wants_write(peer->link));
    }
    return needs;
}

/* ---- the end */

void spc_gateway_route_finish(spc_gateway_t *gateway) {
    for (uint32_t box = 0; gateway->peers != NULL && box < gateway->config->boxes; box++) {
        if (has_link(gateway, box)) {
            spc_gateway_fail(gateway, spc_link_finish(gateway->peers[box].link));
        }
    }
}

bool spc_gateway_route_are_flushed(const spc_gateway_t *gateway) {
    bool are = true;
    for (uint32_t box = 0; gateway->peers != NULL && are && box < gateway->config->boxes; box++) {
        const spc_gateway_peer_t *peer = &gateway->peers[box];
        are =
            peer->is_over || (peer->first == NULL && (peer->link == NULL || spc_link_is_flushed(peer->link)));
    }
    return are;
}

void spc_gateway_route_leave(spc_gateway_t *gateway) {
    if (gateway->peers != NULL) {
        spc_gateway_fail(gateway, say(gateway, SPC_FRAME_OTHERS, 0, LEAVES, ""));
        gateway->has_left = true;
    }
}
