/* SPDX-License-Identifier: MIT */
#include "net/gateway/spc_gateway.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/spc_comm.h"
#include "net/gateway/spc_gateway_private.h"

/* ---- routes to the other gateways, beside the link to the server (`direct` of spc_gateway_options_t)
 *
 * Each pair of boxes chooses its route once, before its first frame: a connection of its own between the two gateways,
 * with an spc_link over it, or the server (the relay), which forwards each frame to its box. All frames between the two
 * boxes take the chosen route: messages, arrivals, ends. So they arrive once and in the order in which they were sent.
 * Until the choice, frames are held, in order.
 *
 * The gateway of the lower box leads. As soon as it knows where the other listens, it asks for a connection. The owner
 * of the connections either hands one in at both ends, which chooses the direct route, or reports to the leader that
 * none can be made; then the leader notifies the other through the server, and both relay. A follower that is handed a
 * connection knows that its leader has chosen it: the leader sends its number over it, and hands in its own end.
 *
 * The leader replaces a connection that breaks later, and the link resumes on the new one. If there is none for
 * `limits.timeout_ns`, the run ends: the relay has not seen the numbers of that link, and cannot go on for it. Silence
 * alone never replaces a channel without a descriptor, which is MPI's.
 *
 * A gateway that has ended, with all of its frames acknowledged, announces it through the server, whose link surely
 * delivers that: then the others keep nothing for it any more. */

enum { BUFFER_BYTES = 1 << 16 };

/* Messages about routes between gateways, through the server: the tag of a SPC_FRAME_ROUTE. */
typedef enum word {
    LISTENS = 1, /* to all; body: address for connections; empty: nowhere */
    RELAYS,      /* leader: the pair goes through the server */
    LEAVES,      /* to all: the sender has sent all its frames, and needs nothing more */
} word_t;

static bool is_leader(const spc_gateway_peer_t *peer) {
    return peer->gateway->box < peer->box;
}

/* Makes the reading thread look around. */
static void wake_reader(const spc_gateway_t *gateway) {
    const ssize_t written = write(gateway->wake[1], "", 1);
    (void)written; /* full: the reading thread wakes anyway */
}

static int create_peers(spc_gateway_t *gateway) {
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
    spc_gateway_held_t *held = peer->first;
    peer->first = held->next;
    free(held);
}

static void destroy_peers(spc_gateway_t *gateway) {
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

static void write_peers(spc_gateway_t *gateway) {
    for (uint32_t box = 0; gateway->peers != NULL && box < gateway->config->boxes; box++) {
        if (has_link(gateway, box)) {
            spc_link_write(gateway->peers[box].link);
        }
    }
}

/* The other gateways' links first: they may go through the server. */
static void write_links(spc_gateway_t *gateway) {
    write_peers(gateway);
    spc_link_write(gateway->link);
}

/* ---- routes: the choice */

static void want(spc_gateway_peer_t *peer) {
    const bool is_needed =
        peer->way == SPC_GATEWAY_UNDECIDED
        || (peer->way == SPC_GATEWAY_DIRECT && spc_link_state(peer->link) == SPC_LINK_DOWN);
    if (is_leader(peer) && is_needed && !peer->is_over && !peer->is_awaited && peer->address[0] != '\0') {
        peer->is_wanted = true;
    }
}

/* Takes this way from now on; held frames go first. */
static int choose(spc_gateway_peer_t *peer, spc_gateway_way_t way) {
    spc_gateway_t *gateway = peer->gateway;
    int status = SPC_OK;
    peer->way = way;
    while (peer->first != NULL && status == SPC_OK) {
        const spc_frame_piece_t piece = {peer->first->body, peer->first->frame.length_bytes};
        status = spc_gateway_queue_to(gateway, peer->box, &peer->first->frame, &piece, 1);
        free_first(peer);
    }
    if (status == SPC_OK && way == SPC_GATEWAY_DIRECT && gateway->is_finishing) {
        status = spc_link_finish(peer->link);
    }
    write_links(gateway);
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
    return status == SPC_OK ? choose(peer, SPC_GATEWAY_RELAYED) : status;
}

static int take_address(spc_gateway_peer_t *peer, const spc_frame_t *frame, const unsigned char *body) {
    if (frame->length_bytes >= sizeof(peer->address) || peer->address[0] != '\0') {
        return SPC_EINVAL;
    }
    memcpy(peer->address, body, frame->length_bytes);
    peer->address[frame->length_bytes] = '\0';
    want(peer);
    return is_leader(peer) && peer->way == SPC_GATEWAY_UNDECIDED && peer->address[0] == '\0'
               ? choose_relay(peer)
               : SPC_OK;
}

/* Takes a SPC_FRAME_ROUTE from the link to the server. */
static int on_route(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    if (gateway->peers == NULL || frame->source >= gateway->config->boxes || frame->source == gateway->box) {
        return SPC_EINVAL;
    }
    spc_gateway_peer_t *peer = &gateway->peers[frame->source];
    switch (frame->tag) {
    case LISTENS:
        return take_address(peer, frame, body);
    case RELAYS:
        return is_leader(peer) || peer->way != SPC_GATEWAY_UNDECIDED ? SPC_EINVAL
                                                                     : choose(peer, SPC_GATEWAY_RELAYED);
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

/* ---- routes: calls of the owner of the connections */

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
    if (peer->way == SPC_GATEWAY_UNDECIDED && is_awaited(peer, number)) {
        peer->is_awaited = false;
        spc_gateway_fail(gateway, choose_relay(peer));
    }
    pthread_mutex_unlock(&gateway->lock);
    spc_event_raise(gateway->event,
                    gateway->config->features); /* spc_gateway_run may wait for frames that were held */
    wake_reader(gateway);
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
    } else if (peer->way == SPC_GATEWAY_UNDECIDED) {
        status = choose(peer, SPC_GATEWAY_DIRECT);
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
    if (!is_next || peer->way == SPC_GATEWAY_RELAYED || peer->is_over || gateway->has_left) {
        spc_channel_destroy(channel);
    } else {
        peer->connection = number;
        peer->is_awaited = false;
        spc_gateway_fail(gateway, attach(peer, channel)); /* not the caller's error: the channel is taken */
    }
    pthread_mutex_unlock(&gateway->lock);
    wake_reader(gateway);
    return SPC_OK;
}

int spc_gateway_count_peer(spc_gateway_t *gateway, uint32_t box, spc_gateway_peer_counts_t *counts) {
    const spc_gateway_peer_t *peer = find(gateway, box);
    if (peer == NULL) {
        return SPC_EINVAL;
    }
    *counts = (spc_gateway_peer_counts_t){0};
    pthread_mutex_lock(&gateway->lock);
    counts->is_direct = peer->way == SPC_GATEWAY_DIRECT;
    if (counts->is_direct) {
        spc_link_count(peer->link, &counts->link);
    }
    pthread_mutex_unlock(&gateway->lock);
    return SPC_OK;
}

/* ---- routes: the reading thread */

static void look_after_peer(spc_gateway_peer_t *peer, uint64_t now_ns) {
    if (spc_link_tick(peer->link, now_ns) == SPC_LINK_DEAD) {
        const int reason = spc_link_reason(peer->link, &(int){0});
        if (reason == SPC_ETIMEDOUT && peer->gateway->outcome == SPC_EAGAIN) {
            peer->gateway->culprit = (int32_t)peer->box;
        }
        spc_gateway_fail(peer->gateway, reason);
    }
    want(peer);
}

/* Runs the clocks of these links, and handles connections that have broken. True: a connection is wanted
 * (spc_gateway_next_wanted). */
static bool look_after_peers(spc_gateway_t *gateway) {
    const uint64_t now_ns = gateway->peers != NULL ? spc_clock_now_ns() : 0;
    bool wants = false;
    for (uint32_t box = 0; gateway->peers != NULL && !gateway->has_left && box < gateway->config->boxes;
         box++) {
        if (has_link(gateway, box)) {
            look_after_peer(&gateway->peers[box], now_ns);
        }
        wants = wants || gateway->peers[box].is_wanted;
    }
    return wants;
}

static uint64_t peers_deadline_ns(const spc_gateway_t *gateway) {
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

/* Puts the connections to wait for into the array, which has room for all; returns how many. */
static uint32_t poll_peers(const spc_gateway_t *gateway, struct pollfd polled[]) {
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
static int read_peers(spc_gateway_t *gateway, const struct pollfd polled[], uint32_t count) {
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

/* Links whose channels have no descriptor are read again and again. True: there are such. */
static bool has_polled_peers(const spc_gateway_t *gateway) {
    bool is = false;
    for (uint32_t box = 0; gateway->peers != NULL && !is && box < gateway->config->boxes; box++) {
        is = is_polled(gateway, box);
    }
    return is;
}

static int read_polled_peers(spc_gateway_t *gateway) {
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

/* So far, over all links: frames, except those that only show that an end is alive; and reads that got something. */
static void count_peers(const spc_gateway_t *gateway, uint64_t *frames, uint64_t *reads) {
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

/* True: there is work that only the reading thread does. */
static bool needs_reader(const spc_gateway_t *gateway) {
    bool needs = false;
    for (uint32_t box = 0; gateway->peers != NULL && !needs && box < gateway->config->boxes; box++) {
        const spc_gateway_peer_t *peer = &gateway->peers[box];
        needs = peer->is_wanted || is_down(gateway, box)
                || (peer->link != NULL && spc_link_wants_write(peer->link));
    }
    return needs;
}

/* ---- routes: the end */

/* After this nothing more is sent. */
static void finish_peers(spc_gateway_t *gateway) {
    for (uint32_t box = 0; gateway->peers != NULL && box < gateway->config->boxes; box++) {
        if (has_link(gateway, box)) {
            spc_gateway_fail(gateway, spc_link_finish(gateway->peers[box].link));
        }
    }
}

/* All frames have arrived, or are in the link to the server. */
static bool are_peers_flushed(const spc_gateway_t *gateway) {
    bool are = true;
    for (uint32_t box = 0; gateway->peers != NULL && are && box < gateway->config->boxes; box++) {
        const spc_gateway_peer_t *peer = &gateway->peers[box];
        are =
            peer->is_over || (peer->first == NULL && (peer->link == NULL || spc_link_is_flushed(peer->link)));
    }
    return are;
}

static void leave_peers(spc_gateway_t *gateway) {
    if (gateway->peers != NULL) {
        spc_gateway_fail(gateway, say(gateway, SPC_FRAME_OTHERS, 0, LEAVES, ""));
        gateway->has_left = true;
    }
}

/* ---- arriving frames */

static int take_end_of_job(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    const size_t length =
        frame->length_bytes < sizeof(gateway->sentence) ? frame->length_bytes : sizeof(gateway->sentence) - 1;
    memcpy(gateway->sentence, body, length);
    gateway->sentence[length] = '\0';
    gateway->culprit = frame->source == SPC_FRAME_FROM_SERVER ? SPC_STATUS_SERVER : frame->source;
    return SPC_ECLOSED;
}

static int take_frame(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    spc_gateway_t *gateway = argument;
    switch (frame->kind) {
    case SPC_FRAME_ROUTE:
        return on_route(gateway, frame, body);
    case SPC_FRAME_BOARD:
        return spc_gateway_on_board(gateway, frame, body);
    case SPC_FRAME_FAIL:
        return take_end_of_job(gateway, frame, body);
    default:
        return spc_gateway_traffic_take(gateway, frame, body);
    }
}

/* ---- leaving frames */

/* True: all nodes here are gone, and that has been announced. */
static bool are_ends_told(const spc_gateway_t *gateway) {
    bool told = true;
    for (uint32_t i = 0; i < gateway->here && told; i++) {
        told = gateway->told_gone[gateway->ranks[i]];
    }
    return told;
}

static uint64_t other_boxes(const spc_gateway_t *gateway) {
    return (UINT64_MAX >> (64 - gateway->config->boxes)) & ~(UINT64_C(1) << gateway->box);
}

/* Does all that can be done now. True: something was done. */
static bool progress(spc_gateway_t *gateway) {
    bool moved = spc_gateway_traffic_progress(gateway);
    moved = spc_gateway_deadlock_progress(gateway) || moved;
    if (moved) {
        write_links(gateway);
    }
    return moved;
}

/* ---- the thread at the event */

static bool test_progress(void *argument) {
    spc_gateway_t *gateway = argument;
    pthread_mutex_lock(&gateway->lock);
    const bool over = gateway->outcome != SPC_EAGAIN || are_ends_told(gateway);
    const bool moved = !over && progress(gateway);
    const bool waits = gateway->is_napping || spc_link_wants_write(gateway->link) || needs_reader(gateway);
    pthread_mutex_unlock(&gateway->lock);
    if (moved && waits) {
        wake_reader(gateway); /* it waits until there is room */
    }
    return over || moved;
}

static bool test_shut_down(void *argument) {
    spc_gateway_t *gateway = argument;
    pthread_mutex_lock(&gateway->lock);
    const bool over = gateway->outcome != SPC_EAGAIN || gateway->shutdown == other_boxes(gateway)
                      || spc_link_has_ended(gateway->link);
    pthread_mutex_unlock(&gateway->lock);
    return over;
}

static bool test_flushed(void *argument) {
    spc_gateway_t *gateway = argument;
    pthread_mutex_lock(&gateway->lock);
    /* If the other end has finished, no node there waits for anything. */
    const bool over = gateway->outcome != SPC_EAGAIN || spc_link_is_flushed(gateway->link)
                      || spc_link_has_ended(gateway->link);
    pthread_mutex_unlock(&gateway->lock);
    return over;
}

static bool test_peers_flushed(void *argument) {
    spc_gateway_t *gateway = argument;
    pthread_mutex_lock(&gateway->lock);
    const bool over = gateway->outcome != SPC_EAGAIN || are_peers_flushed(gateway);
    pthread_mutex_unlock(&gateway->lock);
    return over;
}

static int wait_for(spc_gateway_t *gateway, bool (*test)(void *argument), uint64_t deadline_ns) {
    const spc_wait_callbacks_t callbacks = {.test = test};
    return spc_wait(&gateway->waiter, &gateway->event->word, &gateway->event->sleeping, &callbacks, gateway,
                    deadline_ns);
}

/* All messages for nodes here have come, or were dropped where they were sent: each is counted once. */
static int await_shutdown(spc_gateway_t *gateway) {
    pthread_mutex_lock(&gateway->lock);
    spc_gateway_shut_down(gateway, other_boxes(gateway));
    write_links(gateway);
    pthread_mutex_unlock(&gateway->lock);
    wake_reader(gateway);
    return wait_for(gateway, test_shut_down, SPC_NO_DEADLINE);
}

/* Nothing more will be sent, and all that was sent has arrived: first at the other gateways, if they have links of
 * their own. */
static int finish(spc_gateway_t *gateway) {
    int status = await_shutdown(gateway);
    pthread_mutex_lock(&gateway->lock);
    if (status != SPC_OK
        || gateway->outcome != SPC_EAGAIN) { /* over already: no node is left that would notice */
        pthread_mutex_unlock(&gateway->lock);
        return status;
    }
    /* Drops messages that waited for room in the rows of nodes here. */
    (void)spc_gateway_traffic_progress(gateway);
    gateway->is_finishing = true;
    finish_peers(gateway);
    write_links(gateway);
    pthread_mutex_unlock(&gateway->lock);
    wake_reader(gateway);
    status = wait_for(gateway, test_peers_flushed, SPC_NO_DEADLINE);
    pthread_mutex_lock(&gateway->lock);
    if (status == SPC_OK && gateway->outcome == SPC_EAGAIN) { /* else not all frames have arrived */
        leave_peers(gateway);
        status = spc_link_finish(gateway->link);
    }
    spc_link_write(gateway->link);
    pthread_mutex_unlock(&gateway->lock);
    wake_reader(gateway);
    return status != SPC_OK
               ? status
               : wait_for(gateway, test_flushed, SPC_NO_DEADLINE); /* the wait ends, or its link does */
}

static bool goes_on(spc_gateway_t *gateway, uint64_t *deadline_ns) {
    pthread_mutex_lock(&gateway->lock);
    const bool goes = gateway->outcome == SPC_EAGAIN && !are_ends_told(gateway);
    uint64_t look_ns = SPC_NO_DEADLINE;
    bool waits = false;
    if (goes && spc_gateway_deadlock_look(gateway, &look_ns)) {
        write_links(gateway);
        waits = spc_link_wants_write(gateway->link) || needs_reader(gateway);
    }
    *deadline_ns = look_ns < gateway->look_again_ns ? look_ns : gateway->look_again_ns;
    pthread_mutex_unlock(&gateway->lock);
    if (waits) {
        wake_reader(gateway);
    }
    return goes;
}

void spc_gateway_stop(spc_gateway_t *gateway) {
    pthread_mutex_lock(&gateway->lock);
    spc_gateway_fail(gateway, SPC_EINTERRUPTED);
    pthread_mutex_unlock(&gateway->lock);
    spc_event_raise(gateway->event, gateway->config->features);
    wake_reader(gateway);
}

/* ---- the thread at the connections: to the server, and to other gateways */

/* The connection to the server, the pipe, and those to other gateways. */
enum { SERVER, WAKE, PEERS, POLLED_MOST = PEERS + 64 };

/* With the lock. Checks the state of the link; reports that a new connection is needed. */
static bool look_after(spc_gateway_t *gateway) {
    const spc_link_state_t state = spc_link_tick(gateway->link, spc_clock_now_ns());
    if (state == SPC_LINK_DEAD) {
        const int reason = spc_link_reason(gateway->link, &(int){0});
        spc_gateway_fail(gateway, reason == SPC_OK ? SPC_ETIMEDOUT : reason);
    }
    const bool calls = state == SPC_LINK_DOWN && !gateway->has_called && gateway->options.broken != NULL;
    gateway->has_called = gateway->has_called || calls;
    return calls;
}

static int timeout_ms(uint64_t deadline_ns) {
    const uint64_t now_ns = spc_clock_now_ns();
    if (deadline_ns == SPC_NO_DEADLINE || deadline_ns > now_ns + UINT64_C(1000000000)) {
        return 1000;
    }
    return deadline_ns <= now_ns ? 0 : (int)((deadline_ns - now_ns) / 1000000 + 1);
}

/* After something has arrived, more is likely soon: look again for a moment, while others have their turns. */
static bool is_readable(struct pollfd polled[], uint32_t count) {
    for (uint32_t i = 0; i < SPC_GATEWAY_YIELDS; i++) {
        if (poll(polled, count, 0) != 0) {
            return true;
        }
        const uint64_t before_ns = spc_clock_now_ns();
        spc_platform_yield();
        if (spc_clock_now_ns() - before_ns > SPC_GATEWAY_LONG_YIELD_NS) {
            return false; /* another process computes on this core */
        }
    }
    return false;
}

static void read_links(spc_gateway_t *gateway, const struct pollfd polled[], uint32_t count) {
    if (polled[SERVER].revents != 0) {
        spc_gateway_fail(gateway, spc_link_read(gateway->link));
    }
    spc_gateway_fail(gateway, read_peers(gateway, polled + PEERS, count - PEERS));
    if (gateway->outcome == SPC_EAGAIN) {
        (void)progress(gateway);
    }
    write_links(gateway);
    if (are_ends_told(gateway) || gateway->look_again_ns != SPC_NO_DEADLINE) {
        spc_event_raise(gateway->event,
                        gateway->config->features); /* the other thread waits for this, or has to act */
    }
}

static void drain_wake(const spc_gateway_t *gateway) {
    char bytes[64];
    while (read(gateway->wake[0], bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes)) {
    }
}

/* With the lock: returns descriptors to wait for, and the deadline. */
static uint32_t prepare_poll(const spc_gateway_t *gateway, struct pollfd polled[], int *timeout) {
    const uint64_t server_ns = spc_link_deadline_ns(gateway->link);
    const uint64_t peers_ns = peers_deadline_ns(gateway);
    *timeout = timeout_ms(server_ns < peers_ns ? server_ns : peers_ns);
    polled[SERVER] = (struct pollfd){.fd = spc_link_descriptor(gateway->link), .events = POLLIN};
    polled[SERVER].events |= spc_link_wants_write(gateway->link) ? POLLOUT : 0;
    polled[WAKE] = (struct pollfd){.fd = gateway->wake[0], .events = POLLIN};
    return PEERS + poll_peers(gateway, polled + PEERS);
}

static bool has_news(const struct pollfd polled[], uint32_t count) {
    bool has = polled[SERVER].revents != 0;
    for (uint32_t i = PEERS; i < count; i++) {
        has = has || polled[i].revents != 0;
    }
    return has;
}

/* Without the lock. */
static void tell(const spc_gateway_t *gateway, bool fails, bool calls, bool wants) {
    if (fails) {
        spc_event_raise(gateway->event, gateway->config->features); /* the other thread ends the run */
    }
    if (calls) {
        gateway->options.broken(gateway->options.argument);
    }
    if (wants && gateway->options.wanted != NULL) {
        gateway->options.wanted(gateway->options.argument);
    }
}

/* ---- links without a descriptor: MPI moves bytes only in its calls, so this thread makes some, again and again */

/* While something moves it looks in every turn. Later it naps between two looks: for a fiftieth of the time for which
 * nothing has moved, so that a message waits at most a little longer than it has been waited for, and an idle gateway
 * takes well under a hundredth of a core. */
enum { BUSY_NS = 5000000, NAP_PART = 50, NAP_MIN_MS = 1, NAP_MAX_MS = 10 };

typedef struct polling {
    uint64_t frames, reads; /* as count_peers counts */
    uint64_t moved_ns; /* when `frames` changed */
    /* The last yield was: another process computes on this core, and a thread that has slept gets it back sooner. */
    bool was_long;
} polling_t;

static int nap_ms(const polling_t *polling) {
    const uint64_t idle_ns = spc_clock_now_ns() - polling->moved_ns;
    if (idle_ns < BUSY_NS && !polling->was_long) {
        return 0;
    }
    const uint64_t part_ms = idle_ns / NAP_PART / 1000000;
    return part_ms < NAP_MIN_MS ? NAP_MIN_MS : part_ms > NAP_MAX_MS ? NAP_MAX_MS : (int)part_ms;
}

static void wait_polling(polling_t *polling, struct pollfd polled[], uint32_t count, int timeout) {
    (void)poll(polled, count, timeout);
    polling->was_long = false;
    if (timeout == 0) {
        const uint64_t before_ns = spc_clock_now_ns();
        spc_platform_yield();
        polling->was_long = spc_clock_now_ns() - before_ns > SPC_GATEWAY_LONG_YIELD_NS;
    }
}

static void read_polled(spc_gateway_t *gateway, polling_t *polling, const struct pollfd polled[],
                        uint32_t count) {
    if (polled[WAKE].revents != 0) {
        drain_wake(gateway);
    }
    pthread_mutex_lock(&gateway->lock);
    gateway->is_napping = false;
    spc_gateway_fail(gateway, read_polled_peers(gateway));
    const polling_t before = *polling;
    count_peers(gateway, &polling->frames, &polling->reads);
    if (polling->frames != before.frames) {
        polling->moved_ns = spc_clock_now_ns();
    }
    if (polling->reads != before.reads || has_news(polled, count)) {
        read_links(gateway, polled, count);
    } else {
        write_links(gateway);
    }
    pthread_mutex_unlock(&gateway->lock);
}

static void *read_for_ever(void *argument) {
    spc_gateway_t *gateway = argument;
    struct pollfd polled[POLLED_MOST];
    polling_t polling = {0};
    bool was_busy = false;
    for (;;) {
        int timeout;
        pthread_mutex_lock(&gateway->lock);
        const bool calls = look_after(gateway);
        const bool wants = look_after_peers(gateway);
        const uint32_t count = prepare_poll(gateway, polled, &timeout);
        const bool stops = gateway->is_stopped;
        const bool fails = gateway->outcome != SPC_EAGAIN;
        const bool polls = has_polled_peers(gateway);
        const int nap = polls ? nap_ms(&polling) : 0;
        gateway->is_napping = nap != 0;
        pthread_mutex_unlock(&gateway->lock);
        if (stops) {
            return NULL;
        }
        tell(gateway, fails, calls, wants);
        if (polls) {
            wait_polling(&polling, polled, count, nap < timeout ? nap : timeout);
            read_polled(gateway, &polling, polled, count);
            continue;
        }
        if (!was_busy || !is_readable(polled, count)) {
            (void)poll(polled, count, timeout);
        }
        if (polled[WAKE].revents != 0) {
            drain_wake(gateway);
        }
        was_busy = has_news(polled, count);
        if (was_busy) {
            pthread_mutex_lock(&gateway->lock);
            read_links(gateway, polled, count);
            pthread_mutex_unlock(&gateway->lock);
        }
    }
}

/* ---- life */

int spc_gateway_run(spc_gateway_t *gateway) {
    if (pthread_create(&gateway->reader, NULL, read_for_ever, gateway) != 0) {
        return SPC_ENOMEM;
    }
    uint64_t deadline_ns;
    while (goes_on(gateway, &deadline_ns)) {
        (void)wait_for(gateway, test_progress, deadline_ns);
    }
    const int finished = finish(gateway);
    pthread_mutex_lock(&gateway->lock);
    spc_gateway_fail(gateway, finished);
    const int outcome = gateway->outcome == SPC_EAGAIN ? SPC_OK : gateway->outcome;
    gateway->is_stopped = true;
    pthread_mutex_unlock(&gateway->lock);
    wake_reader(gateway);
    pthread_join(gateway->reader, NULL);
    return outcome;
}

static int sort_ranks(spc_gateway_t *gateway) {
    gateway->ranks = calloc(gateway->nodes, sizeof(*gateway->ranks));
    gateway->credit = calloc(gateway->nodes, sizeof(*gateway->credit));
    if (gateway->ranks == NULL || gateway->credit == NULL) {
        return SPC_ENOMEM;
    }
    for (uint32_t rank = 0; rank < gateway->nodes; rank++) {
        gateway->here += spc_gateway_is_here(gateway, rank);
        gateway->credit[rank] = gateway->window;
    }
    uint32_t here = 0;
    uint32_t elsewhere = gateway->here;
    for (uint32_t rank = 0; rank < gateway->nodes; rank++) {
        gateway->ranks[spc_gateway_is_here(gateway, rank) ? here++ : elsewhere++] = rank;
    }
    return SPC_OK;
}

static void choose_window(spc_gateway_t *gateway) {
    uint16_t box_of_rank[SPC_NODES_MAX];
    for (uint32_t rank = 0; rank < gateway->nodes; rank++) {
        box_of_rank[rank] = (uint16_t)spc_segment_box(&gateway->segment, rank);
    }
    gateway->window = spc_credit_of_map(box_of_rank, gateway->nodes, gateway->config->boxes).window;
    gateway->part_bytes = gateway->window / 4 - SPC_CREDIT_FRAME_COST;
}

static int create_link(spc_gateway_t *gateway) {
    const spc_link_options_t options = {
        .job = gateway->options.job,
        .deliver = take_frame,
        .argument = gateway,
        .limits = gateway->options.limits,
        .retained_max = UINT64_MAX / 2, /* credit bounds it */
    };
    return spc_link_create(&options, &gateway->link);
}

static int create_pipe(spc_gateway_t *gateway) {
    if (pipe(gateway->wake) != 0) {
        gateway->wake[0] = gateway->wake[1] = -1;
        return SPC_ESYSTEM;
    }
    for (int i = 0; i < 2; i++) {
        (void)fcntl(gateway->wake[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(gateway->wake[i], F_SETFL, O_NONBLOCK);
    }
    return SPC_OK;
}

static int attach_segment(spc_gateway_t *gateway) {
    if (gateway->options.within != NULL) {
        gateway->segment = *gateway->options.within;
        return SPC_OK;
    }
    return spc_segment_attach(&gateway->segment, gateway->options.segment);
}

static int set_up(spc_gateway_t *gateway) {
    int status = attach_segment(gateway);
    if (status != SPC_OK) {
        return status;
    }
    gateway->config = gateway->segment.config;
    if (gateway->config->boxes < 2) {
        return SPC_EINVAL;
    }
    gateway->nodes = gateway->config->nodes;
    gateway->box = gateway->config->box;
    gateway->culprit = (int32_t)gateway->box;
    gateway->status = spc_segment_part(&gateway->segment, SPC_REGION_STATUS, 0);
    gateway->events = spc_segment_part(&gateway->segment, SPC_REGION_EVENT, 0);
    gateway->event = &gateway->events[gateway->nodes];
    spc_waiter_init(&gateway->waiter,
                    gateway->config->shared_cores ? SPC_WAIT_SHARED_CORES : SPC_WAIT_FREE_CORES,
                    gateway->config->features);
    spc_waiter_expect_turns(&gateway->waiter, gateway->nodes);
    choose_window(gateway);
    int (*const steps[])(spc_gateway_t *) = {
        sort_ranks, spc_gateway_traffic_create, spc_gateway_deadlock_create, create_link, create_peers,
        create_pipe};
    for (size_t i = 0; status == SPC_OK && i < sizeof(steps) / sizeof(steps[0]); i++) {
        status = steps[i](gateway);
    }
    return status;
}

int spc_gateway_create(const spc_gateway_options_t *options, spc_gateway_t **gateway) {
    spc_gateway_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    pthread_mutex_init(&made->lock, NULL);
    made->options = *options;
    made->deliver = take_frame;
    made->outcome = SPC_EAGAIN;
    made->look_again_ns = SPC_NO_DEADLINE;
    made->wake[0] = made->wake[1] = -1;
    int status = set_up(made);
    if (status != SPC_OK) {
        spc_gateway_destroy(made);
        return status;
    }
    *gateway = made;
    return SPC_OK;
}

void spc_gateway_destroy(spc_gateway_t *gateway) {
    if (gateway == NULL) {
        return;
    }
    destroy_peers(gateway);
    spc_link_destroy(gateway->link);
    spc_gateway_deadlock_destroy(gateway);
    spc_gateway_traffic_destroy(gateway);
    for (int i = 0; i < 2; i++) {
        if (gateway->wake[i] >= 0) {
            close(gateway->wake[i]);
        }
    }
    if (gateway->options.within == NULL) {
        spc_segment_detach(&gateway->segment);
    }
    pthread_mutex_destroy(&gateway->lock);
    free(gateway->credit);
    free(gateway->ranks);
    free(gateway);
}

int spc_gateway_attach(spc_gateway_t *gateway, spc_channel_t *channel) {
    pthread_mutex_lock(&gateway->lock);
    const int status = spc_link_attach(gateway->link, channel);
    if (status != SPC_OK) {
        spc_channel_destroy(channel);
    }
    gateway->has_called = gateway->has_called && status != SPC_OK;
    pthread_mutex_unlock(&gateway->lock);
    wake_reader(gateway);
    return status;
}

const char *spc_gateway_sentence(const spc_gateway_t *gateway) {
    return gateway->sentence;
}

int32_t spc_gateway_culprit(const spc_gateway_t *gateway) {
    return gateway->culprit;
}

void spc_gateway_disconnect(spc_gateway_t *gateway) {
    spc_comm_mark_disconnected(&gateway->segment, gateway->culprit);
}

void spc_gateway_count(spc_gateway_t *gateway, spc_link_counts_t *counts) {
    pthread_mutex_lock(&gateway->lock);
    spc_link_count(gateway->link, counts);
    pthread_mutex_unlock(&gateway->lock);
}
