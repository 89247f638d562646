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

/* ---- what comes */

static int take_end_of_job(spc_gateway_t *agent, const spc_frame_t *frame, const unsigned char *body) {
    const size_t length =
        frame->length_bytes < sizeof(agent->sentence) ? frame->length_bytes : sizeof(agent->sentence) - 1;
    memcpy(agent->sentence, body, length);
    agent->sentence[length] = '\0';
    agent->culprit = frame->source;
    return SPC_ECLOSED;
}

static int take_frame(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    spc_gateway_t *agent = argument;
    switch (frame->kind) {
    case SPC_FRAME_MESSAGE:
        return spc_gateway_on_message(agent, frame, body);
    case SPC_FRAME_CREDIT:
        return spc_gateway_on_credit(agent, frame);
    case SPC_FRAME_ARRIVE:
        return spc_gateway_on_arrive(agent, frame, body);
    case SPC_FRAME_RECEIPT:
        return spc_gateway_on_receipt(agent, frame);
    case SPC_FRAME_LENT:
        return spc_gateway_on_lent(agent, frame);
    case SPC_FRAME_STATUS:
        return spc_gateway_on_status(agent, frame);
    case SPC_FRAME_LEFT:
        return spc_gateway_on_left(agent, frame);
    case SPC_FRAME_NOTE:
        return spc_gateway_on_note(agent, frame, body);
    case SPC_FRAME_ROUTE:
        return spc_gateway_on_route(agent, frame, body);
    case SPC_FRAME_BOARD:
        return spc_gateway_on_board(agent, frame, body);
    case SPC_FRAME_FAIL:
        return take_end_of_job(agent, frame, body);
    default:
        return SPC_EINVAL;
    }
}

/* ---- what goes */

/* Everything that can be done now. True: something was. */
static bool progress(spc_gateway_t *agent) {
    bool moved = spc_gateway_move(agent);
    moved = spc_gateway_deadlock_progress(agent) || moved;
    if (moved) {
        spc_gateway_write_links(agent);
    }
    return moved;
}

/* ---- the thread at the event */

static bool test_progress(void *argument) {
    spc_gateway_t *agent = argument;
    pthread_mutex_lock(&agent->lock);
    const bool over = agent->outcome != SPC_EAGAIN || spc_gateway_lifecycle_are_told(agent);
    const bool moved = !over && progress(agent);
    const bool waits = spc_link_wants_write(agent->link) || spc_gateway_route_need_reader(agent);
    pthread_mutex_unlock(&agent->lock);
    if (moved && waits) {
        spc_gateway_wake_reader(agent); /* it waits until there is room */
    }
    return over || moved;
}

static bool test_flushed(void *argument) {
    spc_gateway_t *agent = argument;
    pthread_mutex_lock(&agent->lock);
    /* If the other end has finished, nobody there waits for anything. */
    const bool over =
        agent->outcome != SPC_EAGAIN || spc_link_is_flushed(agent->link) || spc_link_has_ended(agent->link);
    pthread_mutex_unlock(&agent->lock);
    return over;
}

static bool test_peers_flushed(void *argument) {
    spc_gateway_t *agent = argument;
    pthread_mutex_lock(&agent->lock);
    const bool over = agent->outcome != SPC_EAGAIN || spc_gateway_route_are_flushed(agent);
    pthread_mutex_unlock(&agent->lock);
    return over;
}

static int wait_for(spc_gateway_t *agent, bool (*test)(void *argument), uint64_t deadline_ns) {
    const spc_wait_callbacks_t callbacks = {.test = test};
    return spc_wait(&agent->waiter, &agent->event->word, &agent->event->sleeping, &callbacks, agent,
                    deadline_ns);
}

/* Nothing more will be sent; what was, has arrived. First at the other agents, if they have links of their own. */
static int finish(spc_gateway_t *agent) {
    pthread_mutex_lock(&agent->lock);
    if (agent->outcome != SPC_EAGAIN) { /* there is nobody to whom it would matter */
        pthread_mutex_unlock(&agent->lock);
        return SPC_OK;
    }
    agent->is_finishing = true;
    spc_gateway_route_finish(agent);
    spc_gateway_write_links(agent);
    pthread_mutex_unlock(&agent->lock);
    spc_gateway_wake_reader(agent);
    int status = wait_for(agent, test_peers_flushed, SPC_NO_DEADLINE);
    pthread_mutex_lock(&agent->lock);
    if (status == SPC_OK && agent->outcome == SPC_EAGAIN) { /* else not all that was sent has arrived */
        spc_gateway_route_leave(agent);
        status = spc_link_finish(agent->link);
    }
    spc_link_write(agent->link);
    pthread_mutex_unlock(&agent->lock);
    spc_gateway_wake_reader(agent);
    return status != SPC_OK ? status
                            : wait_for(agent, test_flushed, SPC_NO_DEADLINE); /* it ends, or its link does */
}

static bool goes_on(spc_gateway_t *agent, uint64_t *deadline_ns) {
    pthread_mutex_lock(&agent->lock);
    const bool goes = agent->outcome == SPC_EAGAIN && !spc_gateway_lifecycle_are_told(agent);
    bool waits = false;
    if (goes && spc_gateway_deadlock_look(agent)) {
        spc_gateway_write_links(agent);
        waits = spc_link_wants_write(agent->link) || spc_gateway_route_need_reader(agent);
    }
    const uint64_t look_ns = spc_gateway_deadlock_deadline_ns(agent);
    *deadline_ns = look_ns < agent->look_again_ns ? look_ns : agent->look_again_ns;
    pthread_mutex_unlock(&agent->lock);
    if (waits) {
        spc_gateway_wake_reader(agent);
    }
    return goes;
}

void spc_gateway_stop(spc_gateway_t *agent) {
    pthread_mutex_lock(&agent->lock);
    spc_gateway_fail(agent, SPC_EINTERRUPTED);
    pthread_mutex_unlock(&agent->lock);
    spc_event_raise(agent->event, agent->config->features);
    spc_gateway_wake_reader(agent);
}

/* ---- the thread at the connections: to the server, and to other agents */

/* The connection to the server, the pipe, and those to other agents. */
enum { SERVER, WAKE, PEERS, POLLED_MOST = PEERS + 64 };

/* With the lock. How the link is; says that a new connection is needed. */
static bool look_after(spc_gateway_t *agent) {
    const spc_link_state_t state = spc_link_tick(agent->link, spc_clock_now_ns());
    if (state == SPC_LINK_DEAD) {
        const int reason = spc_link_reason(agent->link, &(int){0});
        spc_gateway_fail(agent, reason == SPC_OK ? SPC_ETIMEDOUT : reason);
    }
    const bool calls = state == SPC_LINK_DOWN && !agent->has_called && agent->options.broken != NULL;
    agent->has_called = agent->has_called || calls;
    return calls;
}

static int timeout_ms(uint64_t deadline_ns) {
    const uint64_t now_ns = spc_clock_now_ns();
    if (deadline_ns == SPC_NO_DEADLINE || deadline_ns > now_ns + UINT64_C(1000000000)) {
        return 1000;
    }
    return deadline_ns <= now_ns ? 0 : (int)((deadline_ns - now_ns) / 1000000 + 1);
}

/* After something has come, more will soon: look again for a moment, while others have their turns. */
static bool is_readable(struct pollfd polled[], uint32_t count) {
    for (uint32_t i = 0; i < SPC_GATEWAY_YIELDS; i++) {
        if (poll(polled, count, 0) != 0) {
            return true;
        }
        const uint64_t before_ns = spc_clock_now_ns();
        spc_platform_yield();
        if (spc_clock_now_ns() - before_ns > SPC_GATEWAY_LONG_YIELD_NS) {
            return false; /* somebody computes on this core */
        }
    }
    return false;
}

static void read_links(spc_gateway_t *agent, const struct pollfd polled[], uint32_t count) {
    if (polled[SERVER].revents != 0) {
        spc_gateway_fail(agent, spc_link_read(agent->link));
    }
    spc_gateway_fail(agent, spc_gateway_route_read(agent, polled + PEERS, count - PEERS));
    if (agent->outcome == SPC_EAGAIN) {
        (void)progress(agent);
    }
    spc_gateway_write_links(agent);
    if (agent->is_finishing || agent->look_again_ns != SPC_NO_DEADLINE) {
        spc_event_raise(agent->event,
                        agent->config->features); /* the other thread waits for what has come, or must */
    }
}

static void drain_wake(const spc_gateway_t *agent) {
    char bytes[64];
    while (read(agent->wake[0], bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes)) {
    }
}

/* With the lock: what to wait for, and until when. */
static uint32_t prepare_poll(const spc_gateway_t *agent, struct pollfd polled[], int *timeout) {
    const uint64_t server_ns = spc_link_deadline_ns(agent->link);
    const uint64_t peers_ns = spc_gateway_route_deadline_ns(agent);
    *timeout = timeout_ms(server_ns < peers_ns ? server_ns : peers_ns);
    polled[SERVER] = (struct pollfd){.fd = spc_link_descriptor(agent->link), .events = POLLIN};
    polled[SERVER].events |= spc_link_wants_write(agent->link) ? POLLOUT : 0;
    polled[WAKE] = (struct pollfd){.fd = agent->wake[0], .events = POLLIN};
    return PEERS + spc_gateway_route_poll(agent, polled + PEERS);
}

static bool has_news(const struct pollfd polled[], uint32_t count) {
    bool has = polled[SERVER].revents != 0;
    for (uint32_t i = PEERS; i < count; i++) {
        has = has || polled[i].revents != 0;
    }
    return has;
}

/* Without the lock. */
static void tell(const spc_gateway_t *agent, bool fails, bool calls, bool wants) {
    if (fails) {
        spc_event_raise(agent->event, agent->config->features); /* the other thread ends the run */
    }
    if (calls) {
        agent->options.broken(agent->options.argument);
    }
    if (wants && agent->options.wanted != NULL) {
        agent->options.wanted(agent->options.argument);
    }
}

static void *spc_gateway_read_for_ever(void *argument) {
    spc_gateway_t *agent = argument;
    struct pollfd polled[POLLED_MOST];
    bool was_busy = false;
    for (;;) {
        int timeout;
        pthread_mutex_lock(&agent->lock);
        const bool calls = look_after(agent);
        const bool wants = spc_gateway_route_look_after(agent);
        const uint32_t count = prepare_poll(agent, polled, &timeout);
        const bool stops = agent->is_stopped;
        const bool fails = agent->outcome != SPC_EAGAIN;
        pthread_mutex_unlock(&agent->lock);
        if (stops) {
            return NULL;
        }
        tell(agent, fails, calls, wants);
        if (!was_busy || !is_readable(polled, count)) {
            (void)poll(polled, count, timeout);
        }
        if (polled[WAKE].revents != 0) {
            drain_wake(agent);
        }
        was_busy = has_news(polled, count);
        if (was_busy) {
            pthread_mutex_lock(&agent->lock);
            read_links(agent, polled, count);
            pthread_mutex_unlock(&agent->lock);
        }
    }
}

/* ---- life */

int spc_gateway_run(spc_gateway_t *agent) {
    if (pthread_create(&agent->reader, NULL, spc_gateway_read_for_ever, agent) != 0) {
        return SPC_ENOMEM;
    }
    uint64_t deadline_ns;
    while (goes_on(agent, &deadline_ns)) {
        (void)wait_for(agent, test_progress, deadline_ns);
    }
    const int finished = finish(agent);
    pthread_mutex_lock(&agent->lock);
    spc_gateway_fail(agent, finished);
    const int outcome = agent->outcome == SPC_EAGAIN ? SPC_OK : agent->outcome;
    agent->is_stopped = true;
    pthread_mutex_unlock(&agent->lock);
    spc_gateway_wake_reader(agent);
    pthread_join(agent->reader, NULL);
    return outcome;
}

static int sort_ranks(spc_gateway_t *agent) {
    agent->ranks = calloc(agent->nodes, sizeof(*agent->ranks));
    agent->credit = calloc(agent->nodes, sizeof(*agent->credit));
    if (agent->ranks == NULL || agent->credit == NULL) {
        return SPC_ENOMEM;
    }
    for (uint32_t rank = 0; rank < agent->nodes; rank++) {
        agent->here += spc_gateway_is_here(agent, rank);
        agent->credit[rank] = agent->window;
    }
    uint32_t here = 0;
    uint32_t elsewhere = agent->here;
    for (uint32_t rank = 0; rank < agent->nodes; rank++) {
        agent->ranks[spc_gateway_is_here(agent, rank) ? here++ : elsewhere++] = rank;
    }
    return SPC_OK;
}

static void choose_window(spc_gateway_t *agent) {
    uint16_t box_of_rank[SPC_NODES_MAX];
    for (uint32_t rank = 0; rank < agent->nodes; rank++) {
        box_of_rank[rank] = (uint16_t)spc_segment_box(&agent->segment, rank);
    }
    agent->window = spc_credit_of_map(box_of_rank, agent->nodes, agent->config->boxes).window;
    agent->part_bytes = agent->window / 4 - SPC_CREDIT_FRAME_COST;
}

static int create_link(spc_gateway_t *agent) {
    const spc_link_options_t options = {
        .job = agent->options.job,
        .deliver = take_frame,
        .argument = agent,
        .heartbeat_ns = agent->options.heartbeat_ns,
        .suspect_ns = agent->options.suspect_ns,
        .broken_ns = agent->options.broken_ns,
        .timeout_ns = agent->options.link_timeout_ns,
        .retained_max = UINT64_MAX / 2, /* credit bounds it */
    };
    return spc_link_create(&options, &agent->link);
}

static int create_pipe(spc_gateway_t *agent) {
    if (pipe(agent->wake) != 0) {
        agent->wake[0] = agent->wake[1] = -1;
        return SPC_ESYSTEM;
    }
    for (int i = 0; i < 2; i++) {
        (void)fcntl(agent->wake[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(agent->wake[i], F_SETFL, O_NONBLOCK);
    }
    return SPC_OK;
}

static int attach_segment(spc_gateway_t *agent) {
    if (agent->options.within != NULL) {
        agent->segment = *agent->options.within;
        return SPC_OK;
    }
    return spc_segment_attach(&agent->segment, agent->options.segment);
}

static int set_up(spc_gateway_t *agent) {
    int status = attach_segment(agent);
    if (status != SPC_OK) {
        return status;
    }
    agent->config = agent->segment.config;
    if (agent->config->boxes < 2) {
        return SPC_EINVAL;
    }
    agent->nodes = agent->config->nodes;
    agent->box = agent->culprit = agent->config->box;
    agent->status = spc_segment_part(&agent->segment, SPC_REGION_STATUS, 0);
    agent->events = spc_segment_part(&agent->segment, SPC_REGION_EVENT, 0);
    agent->event = &agent->events[agent->nodes];
    spc_waiter_init(&agent->waiter, agent->config->shared_cores ? SPC_WAIT_SHARED_CORES : SPC_WAIT_FREE_CORES,
                    agent->config->features);
    spc_waiter_expect_turns(&agent->waiter, agent->nodes);
    choose_window(agent);
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
        status = steps[i](agent);
    }
    return status;
}

int spc_gateway_create(const spc_gateway_options_t *options, spc_gateway_t **agent) {
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
    *agent = made;
    return SPC_OK;
}

void spc_gateway_destroy(spc_gateway_t *agent) {
    if (agent == NULL) {
        return;
    }
    spc_gateway_route_destroy(agent);
    spc_link_destroy(agent->link);
    spc_gateway_deadlock_destroy(agent);
    spc_gateway_areas_destroy(agent);
    spc_gateway_recv_destroy(agent);
    for (int i = 0; i < 2; i++) {
        if (agent->wake[i] >= 0) {
            close(agent->wake[i]);
        }
    }
    if (agent->options.within == NULL) {
        spc_segment_detach(&agent->segment);
    }
    pthread_mutex_destroy(&agent->lock);
    free(agent->told_notes);
    free(agent->told_gone);
    free(agent->told);
    free(agent->rows);
    free(agent->credit);
    free(agent->ranks);
    free(agent);
}

int spc_gateway_attach(spc_gateway_t *agent, spc_channel_t *channel) {
    pthread_mutex_lock(&agent->lock);
    const int status = spc_link_attach(agent->link, channel);
    if (status != SPC_OK) {
        spc_channel_destroy(channel);
    }
    agent->has_called = agent->has_called && status != SPC_OK;
    pthread_mutex_unlock(&agent->lock);
    spc_gateway_wake_reader(agent);
    return status;
}

const char *spc_gateway_sentence(const spc_gateway_t *agent) {
    return agent->sentence;
}

uint32_t spc_gateway_culprit(const spc_gateway_t *agent) {
    return agent->culprit;
}

void spc_gateway_disconnect(spc_gateway_t *agent) {
    spc_comm_mark_disconnected(&agent->segment, (int32_t)agent->culprit);
}

void spc_gateway_count(spc_gateway_t *agent, spc_link_counts_t *counts) {
    pthread_mutex_lock(&agent->lock);
    spc_link_count(agent->link, counts);
    pthread_mutex_unlock(&agent->lock);
}
