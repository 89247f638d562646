/* SPDX-License-Identifier: MIT */
#include "net/gateway/spc_gateway.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/spc_error.h"
#include "comm/spc_comm.h"
#include "net/gateway/spc_gateway_route.h"

/* ---- arriving frames */

static int take_end_of_job(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    const size_t length =
        frame->length_bytes < sizeof(gateway->sentence) ? frame->length_bytes : sizeof(gateway->sentence) - 1;
    memcpy(gateway->sentence, body, length);
    gateway->sentence[length] = '\0';
    gateway->culprit = frame->source;
    return SPC_ECLOSED;
}

static int take_frame(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    spc_gateway_t *gateway = argument;
    switch (frame->kind) {
    case SPC_FRAME_MESSAGE:
        return spc_gateway_on_message(gateway, frame, body);
    case SPC_FRAME_CREDIT:
        return spc_gateway_on_credit(gateway, frame);
    case SPC_FRAME_ARRIVE:
        return spc_gateway_on_arrive(gateway, frame, body);
    case SPC_FRAME_RECEIPT:
        return spc_gateway_on_receipt(gateway, frame);
    case SPC_FRAME_LENT:
        return spc_gateway_on_lent(gateway, frame);
    case SPC_FRAME_STATUS:
        return spc_gateway_on_status(gateway, frame);
    case SPC_FRAME_LEFT:
        return spc_gateway_on_left(gateway, frame);
    case SPC_FRAME_SHUTDOWN:
        return spc_gateway_on_shutdown(gateway, frame);
    case SPC_FRAME_NOTE:
        return spc_gateway_on_note(gateway, frame, body);
    case SPC_FRAME_ROUTE:
        return spc_gateway_on_route(gateway, frame, body);
    case SPC_FRAME_BOARD:
        return spc_gateway_on_board(gateway, frame, body);
    case SPC_FRAME_FAIL:
        return take_end_of_job(gateway, frame, body);
    default:
        return SPC_EINVAL;
    }
}

/* ---- leaving frames */

/* Does all that can be done now, except for boards, in the required order: ends last. True: something was done. */
static bool move_frames(spc_gateway_t *gateway) {
    spc_gateway_collective_note(gateway);
    bool moved = spc_gateway_send_progress(gateway);
    moved = spc_gateway_collective_progress(gateway) || moved;
    moved = spc_gateway_recv_progress(gateway) || moved;
    moved = spc_gateway_areas_progress(gateway) || moved;
    return spc_gateway_lifecycle_progress(gateway) || moved;
}

/* The first time may bring a communicator, the second its phases. */
static void move_twice(spc_gateway_t *gateway) {
    (void)move_frames(gateway);
    (void)move_frames(gateway);
}

/* Does the steps that a round of the proof of deadlock requires. True: something was done. */
static bool progress_round(spc_gateway_t *gateway) {
    const bool begins = spc_gateway_deadlock_read_first(gateway);
    if (begins) {
        move_twice(gateway); /* what the nodes have done before the reading goes out before the mark */
        spc_gateway_deadlock_mark(gateway);
    }
    const bool ends = spc_gateway_deadlock_has_all_marks(gateway);
    if (ends) {
        move_twice(gateway); /* frames that came before the marks are processed */
        spc_gateway_deadlock_report(gateway);
    }
    return begins || ends;
}

/* Does all that can be done now. True: something was done. */
static bool progress(spc_gateway_t *gateway) {
    bool moved = move_frames(gateway);
    moved = progress_round(gateway) || moved;
    if (moved) {
        spc_gateway_write_links(gateway);
    }
    return moved;
}

/* ---- the thread at the event */

static bool test_progress(void *argument) {
    spc_gateway_t *gateway = argument;
    pthread_mutex_lock(&gateway->lock);
    const bool over = gateway->outcome != SPC_EAGAIN || spc_gateway_lifecycle_are_told(gateway);
    const bool moved = !over && progress(gateway);
    const bool waits =
        gateway->is_napping || spc_link_wants_write(gateway->link) || spc_gateway_route_need_reader(gateway);
    pthread_mutex_unlock(&gateway->lock);
    if (moved && waits) {
        spc_gateway_wake_reader(gateway); /* it waits until there is room */
    }
    return over || moved;
}

static bool test_shut_down(void *argument) {
    spc_gateway_t *gateway = argument;
    pthread_mutex_lock(&gateway->lock);
    const bool over = gateway->outcome != SPC_EAGAIN || spc_gateway_is_shut_down(gateway)
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
    const bool over = gateway->outcome != SPC_EAGAIN || spc_gateway_route_are_flushed(gateway);
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
    spc_gateway_shut_down(gateway);
    spc_gateway_write_links(gateway);
    pthread_mutex_unlock(&gateway->lock);
    spc_gateway_wake_reader(gateway);
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
    (void)move_frames(gateway); /* drops messages that waited for room in the rows of nodes here */
    gateway->is_finishing = true;
    spc_gateway_route_finish(gateway);
    spc_gateway_write_links(gateway);
    pthread_mutex_unlock(&gateway->lock);
    spc_gateway_wake_reader(gateway);
    status = wait_for(gateway, test_peers_flushed, SPC_NO_DEADLINE);
    pthread_mutex_lock(&gateway->lock);
    if (status == SPC_OK && gateway->outcome == SPC_EAGAIN) { /* else not all frames have arrived */
        spc_gateway_route_leave(gateway);
        status = spc_link_finish(gateway->link);
    }
    spc_link_write(gateway->link);
    pthread_mutex_unlock(&gateway->lock);
    spc_gateway_wake_reader(gateway);
    return status != SPC_OK
               ? status
               : wait_for(gateway, test_flushed, SPC_NO_DEADLINE); /* the wait ends, or its link does */
}

static bool goes_on(spc_gateway_t *gateway, uint64_t *deadline_ns) {
    pthread_mutex_lock(&gateway->lock);
    const bool goes = gateway->outcome == SPC_EAGAIN && !spc_gateway_lifecycle_are_told(gateway);
    bool waits = false;
    if (goes && spc_gateway_deadlock_look(gateway)) {
        spc_gateway_write_links(gateway);
        waits = spc_link_wants_write(gateway->link) || spc_gateway_route_need_reader(gateway);
    }
    const uint64_t look_ns = spc_gateway_deadlock_deadline_ns(gateway);
    *deadline_ns = look_ns < gateway->look_again_ns ? look_ns : gateway->look_again_ns;
    pthread_mutex_unlock(&gateway->lock);
    if (waits) {
        spc_gateway_wake_reader(gateway);
    }
    return goes;
}

void spc_gateway_stop(spc_gateway_t *gateway) {
    pthread_mutex_lock(&gateway->lock);
    spc_gateway_fail(gateway, SPC_EINTERRUPTED);
    pthread_mutex_unlock(&gateway->lock);
    spc_event_raise(gateway->event, gateway->config->features);
    spc_gateway_wake_reader(gateway);
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
    spc_gateway_fail(gateway, spc_gateway_route_read(gateway, polled + PEERS, count - PEERS));
    if (gateway->outcome == SPC_EAGAIN) {
        (void)progress(gateway);
    }
    spc_gateway_write_links(gateway);
    if (spc_gateway_lifecycle_are_told(gateway) || gateway->look_again_ns != SPC_NO_DEADLINE) {
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
    const uint64_t peers_ns = spc_gateway_route_deadline_ns(gateway);
    *timeout = timeout_ms(server_ns < peers_ns ? server_ns : peers_ns);
    polled[SERVER] = (struct pollfd){.fd = spc_link_descriptor(gateway->link), .events = POLLIN};
    polled[SERVER].events |= spc_link_wants_write(gateway->link) ? POLLOUT : 0;
    polled[WAKE] = (struct pollfd){.fd = gateway->wake[0], .events = POLLIN};
    return PEERS + spc_gateway_route_poll(gateway, polled + PEERS);
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
    uint64_t frames, reads; /* as spc_gateway_route_count counts */
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
    spc_gateway_fail(gateway, spc_gateway_route_read_polled(gateway));
    const polling_t before = *polling;
    spc_gateway_route_count(gateway, &polling->frames, &polling->reads);
    if (polling->frames != before.frames) {
        polling->moved_ns = spc_clock_now_ns();
    }
    if (polling->reads != before.reads || has_news(polled, count)) {
        read_links(gateway, polled, count);
    } else {
        spc_gateway_write_links(gateway);
    }
    pthread_mutex_unlock(&gateway->lock);
}

static void *spc_gateway_read_for_ever(void *argument) {
    spc_gateway_t *gateway = argument;
    struct pollfd polled[POLLED_MOST];
    polling_t polling = {0};
    bool was_busy = false;
    for (;;) {
        int timeout;
        pthread_mutex_lock(&gateway->lock);
        const bool calls = look_after(gateway);
        const bool wants = spc_gateway_route_look_after(gateway);
        const uint32_t count = prepare_poll(gateway, polled, &timeout);
        const bool stops = gateway->is_stopped;
        const bool fails = gateway->outcome != SPC_EAGAIN;
        const bool polls = spc_gateway_route_polls(gateway);
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
    if (pthread_create(&gateway->reader, NULL, spc_gateway_read_for_ever, gateway) != 0) {
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
    spc_gateway_wake_reader(gateway);
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
    gateway->box = gateway->culprit = gateway->config->box;
    gateway->status = spc_segment_part(&gateway->segment, SPC_REGION_STATUS, 0);
    gateway->events = spc_segment_part(&gateway->segment, SPC_REGION_EVENT, 0);
    gateway->event = &gateway->events[gateway->nodes];
    spc_waiter_init(&gateway->waiter,
                    gateway->config->shared_cores ? SPC_WAIT_SHARED_CORES : SPC_WAIT_FREE_CORES,
                    gateway->config->features);
    spc_waiter_expect_turns(&gateway->waiter, gateway->nodes);
    choose_window(gateway);
    int (*const steps[])(spc_gateway_t *) = {sort_ranks,
                                             spc_gateway_send_create,
                                             spc_gateway_recv_create,
                                             spc_gateway_areas_create,
                                             spc_gateway_lifecycle_create,
                                             spc_gateway_deadlock_create,
                                             create_link,
                                             spc_gateway_route_create,
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
    spc_gateway_route_destroy(gateway);
    spc_link_destroy(gateway->link);
    spc_gateway_deadlock_destroy(gateway);
    spc_gateway_areas_destroy(gateway);
    spc_gateway_recv_destroy(gateway);
    for (int i = 0; i < 2; i++) {
        if (gateway->wake[i] >= 0) {
            close(gateway->wake[i]);
        }
    }
    if (gateway->options.within == NULL) {
        spc_segment_detach(&gateway->segment);
    }
    pthread_mutex_destroy(&gateway->lock);
    free(gateway->told_notes);
    free(gateway->told_gone);
    free(gateway->told);
    free(gateway->rows);
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
    spc_gateway_wake_reader(gateway);
    return status;
}

const char *spc_gateway_sentence(const spc_gateway_t *gateway) {
    return gateway->sentence;
}

uint32_t spc_gateway_culprit(const spc_gateway_t *gateway) {
    return gateway->culprit;
}

void spc_gateway_disconnect(spc_gateway_t *gateway) {
    spc_comm_mark_disconnected(&gateway->segment, (int32_t)gateway->culprit);
}

void spc_gateway_count(spc_gateway_t *gateway, spc_link_counts_t *counts) {
    pthread_mutex_lock(&gateway->lock);
    spc_link_count(gateway->link, counts);
    pthread_mutex_unlock(&gateway->lock);
}
