/* SPDX-License-Identifier: MIT */
/*
 * `lock` covers all of the server. The loop holds it while it works, but not while it waits or reports. The loop works
 * most of the time, and would retake the lock before another thread has woken up; so every thread takes `gate` first,
 * and releases it once it holds the lock (enter): the next thread in line gets its turn.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net/server/spc_server.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "net/server/spc_server_job.h"
#include "net/server/spc_server_poller.h"
#include "net/wire/spc_credit.h"

enum { SPC_SERVER_BUFFER_BYTES = 65536 };

typedef struct spc_server_group spc_server_group_t;

/* One box of one job. */
typedef struct spc_server_port {
    spc_server_t *server;
    spc_server_group_t *group;
    uint16_t box;
    spc_link_t *link; /* NULL: the box is dead */
    int descriptor;   /* in the poller's set; -1: none */
    bool polls_writable;
    bool is_over; /* has ended, or is dead */
    bool is_dirty;
    struct spc_server_port *next_dirty;
    spc_link_counts_t counts; /* of links that are gone */
} spc_server_port_t;

/* A job, from the server's side. */
struct spc_server_group {
    spc_server_group_t *next;
    uint32_t number;
    uint16_t boxes;
    spc_server_job_t *job;
    uint64_t retained_max; /* of each link */
    bool has_failed, has_ended;
    bool tells_failure, tells_end; /* reports that are still to be made */
    char sentence[SPC_SERVER_SENTENCE_BYTES];
    spc_server_port_t ports[];
};

struct spc_server {
    spc_server_options_t options;
    pthread_mutex_t gate, lock;
    spc_server_poller_t *poller;
    spc_server_group_t *groups;
    spc_server_group_t *removed; /* freed by the loop, once it has no events that name them */
    spc_server_port_t *dirty;    /* links on which something was queued */
    uint64_t next_tick_ns;
    bool is_stopping;
    unsigned char *buffer;
    spc_pool_t pool;
};

_Static_assert((int)SPC_SERVER_BOXES_MAX == (int)SPC_SERVER_JOB_BOXES_MAX,
               "a job's boxes fit into its masks");

enum { KEPT_MAX = 1 << 24 };

static void enter(spc_server_t *server) {
    pthread_mutex_lock(&server->gate);
    pthread_mutex_lock(&server->lock);
    pthread_mutex_unlock(&server->gate);
}

static void leave(spc_server_t *server) {
    pthread_mutex_unlock(&server->lock);
}

/* ---- one box's link: routes frames that arrive, queues frames that leave, ends it; under the lock */

static int deliver(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    spc_server_port_t *port = argument;
    return spc_server_job_take(port->group->job, port->box, frame, body);
}

static int init_port(spc_server_port_t *port, spc_server_group_t *group, uint16_t box) {
    spc_server_t *server = port->server;
    port->group = group;
    port->box = box;
    port->descriptor = -1;
    const spc_link_options_t options = {
        .job = group->number,
        .now_ns = server->options.now_ns,
        .deliver = deliver,
        .argument = port,
        .limits = server->options.limits,
        .retained_max = group->retained_max,
        .buffer = server->buffer,
        .buffer_bytes = SPC_SERVER_BUFFER_BYTES,
        .pool = &server->pool,
    };
    return spc_link_create(&options, &port->link);
}

static void fini_port(spc_server_port_t *port) {
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

/* the argument is the group */
static int emit_to_port(void *argument, uint16_t box, const spc_frame_t *frame,
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
    /* Dead, though not settled yet: no box is at fault. */
    return status == SPC_ETIMEDOUT ? SPC_OK : status;
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

/* The job has failed, for this reason, which is about this box. A job fails once: the first reason counts. */
static void fail_group(spc_server_group_t *group, uint16_t box, const char *sentence) {
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
            && (!has_been_there(port) || emit_to_port(group, to, &frame, &piece, 1, NULL) != SPC_OK)) {
            /* That box cannot be sent the failure, and no box waits for it: its next connection is refused. */
            fini_port(port);
            end_port(port);
        }
    }
}

/* The box is dead, and its job has failed, for this reason. */
static void mark_dead(spc_server_port_t *port, const char *sentence) {
    fini_port(port);
    if (!port->is_over) {
        fail_group(port->group, port->box, sentence);
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
                 (double)options->limits.timeout_ns / 1e9);
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

/* ---- after each step */

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

/* After each step on a box's link: updates the poller and the clock, and checks whether the box is over. */
static void settle_port(spc_server_port_t *port) {
    if (port->link == NULL) {
        return;
    }
    settle_poller(port);
    if (spc_link_state(port->link) == SPC_LINK_DEAD) {
        char sentence[SPC_SERVER_SENTENCE_BYTES];
        explain(port, sentence);
        mark_dead(port, sentence);
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

/* ---- flush */

/* Writes what was queued. */
static void flush_ports(spc_server_t *server) {
    while (server->dirty != NULL) {
        spc_server_port_t *port = server->dirty;
        server->dirty = port->next_dirty;
        port->is_dirty = false;
        if (port->link != NULL
            && !port->polls_writable) { /* else there is no room, and the poller reports when there is */
            spc_link_write(port->link);
        }
        settle_port(port);
    }
}

/* ---- life */

static void set_defaults(spc_server_options_t *options) {
    options->now_ns = options->now_ns != NULL ? options->now_ns : spc_clock_now_ns;
    options->collected_max = options->collected_max != 0 ? options->collected_max : KEPT_MAX;
    options->limits.timeout_ns =
        options->limits.timeout_ns != 0 ? options->limits.timeout_ns : SPC_LINK_TIMEOUT_NS;
}

int spc_server_create(const spc_server_options_t *options, spc_server_t **server) {
    spc_server_t *made = calloc(1, sizeof *made);
    unsigned char *buffer = aligned_alloc(SPC_CACHE_LINE, SPC_SERVER_BUFFER_BYTES);
    if (made == NULL || buffer == NULL) {
        free(made);
        free(buffer);
        return SPC_ENOMEM;
    }
    made->options = *options;
    set_defaults(&made->options);
    made->buffer = buffer;
    made->next_tick_ns = SPC_NO_DEADLINE;
    int status = spc_server_poller_create(made->options.disabled, &made->poller);
    if (status != SPC_OK) {
        free(buffer);
        free(made);
        return status;
    }
    pthread_mutex_init(&made->gate, NULL);
    pthread_mutex_init(&made->lock, NULL);
    *server = made;
    return SPC_OK;
}

static void free_group(spc_server_group_t *group) {
    for (uint16_t box = 0; box < group->boxes; box++) {
        fini_port(&group->ports[box]);
    }
    spc_server_job_destroy(group->job);
    free(group);
}

static void free_groups(spc_server_group_t *group) {
    while (group != NULL) {
        spc_server_group_t *next = group->next;
        free_group(group);
        group = next;
    }
}

void spc_server_destroy(spc_server_t *server) {
    if (server != NULL) {
        free_groups(server->groups);
        free_groups(server->removed);
        spc_server_poller_destroy(server->poller);
        pthread_mutex_destroy(&server->lock);
        pthread_mutex_destroy(&server->gate);
        spc_pool_fini(&server->pool);
        free(server->buffer);
        free(server);
    }
}

/* ---- jobs */

static spc_server_group_t **place_of(spc_server_t *server, uint32_t job) {
    spc_server_group_t **place = &server->groups;
    while (*place != NULL && (*place)->number != job) {
        place = &(*place)->next;
    }
    return place;
}

/* NULL: no such job, or box. */
static spc_server_port_t *find_port(spc_server_t *server, uint32_t job, uint16_t box) {
    spc_server_group_t *group = *place_of(server, job);
    return group != NULL && box < group->boxes ? &group->ports[box] : NULL;
}

/* As many bytes as gateways may send to one box (spc_credit.h). The map is valid. */
static uint64_t retained_max(const spc_server_t *server, const spc_server_job_options_t *options) {
    if (server->options.retained_max != 0 || options->boxes < 2 || options->ranks == 0) {
        return server->options.retained_max != 0 ? server->options.retained_max : KEPT_MAX;
    }
    return spc_credit_of_map(options->box_of_rank, options->ranks, options->boxes).kept;
}

static int make_group(spc_server_t *server, uint32_t job, const spc_server_job_options_t *options,
                      spc_server_group_t **group) {
    spc_server_group_t *made = calloc(1, sizeof *made + options->boxes * sizeof made->ports[0]);
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    spc_server_job_options_t routes = *options;
    routes.argument = made;
    routes.pool = &server->pool;
    made->number = job;
    int status = spc_server_job_create(&routes, &made->job);
    made->retained_max = status == SPC_OK ? retained_max(server, options) : 0;
    for (uint16_t box = 0; box < options->boxes && status == SPC_OK; box++) {
        made->ports[box].server = server;
        made->boxes = (uint16_t)(box + 1);
        status = init_port(&made->ports[box], made, box);
    }
    if (status != SPC_OK) {
        free_group(made);
        return status;
    }
    *group = made;
    return SPC_OK;
}

int spc_server_add_job(spc_server_t *server, uint32_t job, uint16_t boxes, const uint16_t *box_of_rank,
                       uint32_t ranks) {
    const spc_server_job_options_t options = {
        .boxes = boxes,
        .ranks = ranks,
        .box_of_rank = box_of_rank,
        .collected_max = server->options.collected_max,
        .emit = emit_to_port,
    };
    enter(server);
    spc_server_group_t **place = place_of(server, job), *group;
    int status = *place != NULL ? SPC_EBUSY : make_group(server, job, &options, &group);
    if (status == SPC_OK) {
        *place = group;
    }
    leave(server);
    return status;
}

int spc_server_remove_job(spc_server_t *server, uint32_t job) {
    int status = SPC_OK;
    enter(server);
    spc_server_group_t **place = place_of(server, job), *group = *place;
    if (group == NULL) {
        status = SPC_EINVAL;
    } else if (!group->has_ended) {
        status = SPC_EBUSY;
    } else {
        *place = group->next;
        group->next = server->removed;
        server->removed = group;
    }
    leave(server);
    spc_server_poller_wake(server->poller);
    return status;
}

int spc_server_fail_job(spc_server_t *server, uint32_t job, const char *sentence) {
    enter(server);
    spc_server_group_t *group = *place_of(server, job);
    if (group != NULL) {
        fail_group(group, SPC_FRAME_FROM_SERVER, sentence);
        flush_ports(server);
    }
    leave(server);
    spc_server_poller_wake(server->poller);
    return group != NULL ? SPC_OK : SPC_EINVAL;
}

/* ---- connections */

static void attach(spc_server_port_t *port, spc_channel_t *channel) {
    spc_server_t *server = port->server;
    /* The poller first: it can refuse. The port's old channel is closed before, and its descriptor forgotten. */
    if (port->descriptor >= 0) {
        spc_link_detach(port->link);
        settle_port(port);
    }
    const int descriptor = spc_channel_descriptor(channel);
    int status = spc_server_poller_add(server->poller, port, descriptor);
    if (status == SPC_OK) {
        port->descriptor = descriptor;
        port->polls_writable = false;
        status = spc_link_attach(port->link, channel);
    }
    if (status != SPC_OK) {
        spc_channel_destroy(channel); /* this connection broke at once: its box will make another */
    }
    settle_port(port);
}

int spc_server_adopt(spc_server_t *server, uint32_t job, uint16_t box, spc_channel_t *channel) {
    enter(server);
    spc_server_port_t *port = find_port(server, job, box);
    int status = port == NULL ? SPC_EINVAL : port->link == NULL ? SPC_ECLOSED : SPC_OK;
    if (status == SPC_OK) {
        attach(port, channel);
    } else {
        spc_channel_destroy(channel);
    }
    flush_ports(server);
    leave(server);
    spc_server_poller_wake(server->poller);
    return status;
}

void spc_server_stop(spc_server_t *server) {
    enter(server);
    server->is_stopping = true;
    leave(server);
    spc_server_poller_wake(server->poller);
}

/* ---- looking */

int spc_server_count(spc_server_t *server, uint32_t job, uint16_t box, spc_link_counts_t *counts) {
    enter(server);
    spc_server_port_t *port = find_port(server, job, box);
    if (port != NULL && port->link != NULL) {
        spc_link_count(port->link, counts);
    } else if (port != NULL) {
        *counts = port->counts;
    }
    leave(server);
    return port != NULL ? SPC_OK : SPC_EINVAL;
}

spc_link_state_t spc_server_link_state(spc_server_t *server, uint32_t job, uint16_t box) {
    enter(server);
    spc_server_port_t *port = find_port(server, job, box);
    spc_link_state_t state = port != NULL && port->link != NULL ? spc_link_state(port->link) : SPC_LINK_DEAD;
    leave(server);
    return state;
}

/* ---- the loop: wait, read, route, write */

enum {
    EVENTS_MAX = 64,
    SHARERS = 20, /* nodes and gateways that may have a turn on this core before a yield returns */
    POLL_COSTS = 16, /* cost of a poller look, in polls of a word (spc_waiter_init measures these) */
};

/* Result of one turn. */
typedef struct turn {
    spc_server_t *server;
    spc_waiter_t waiter;
    int status;
    uint32_t count;
    spc_server_event_t events[EVENTS_MAX];
} turn_t;

static bool look(void *argument) {
    turn_t *turn = argument;
    turn->status = spc_server_poller_wait(turn->server->poller, 0, turn->events, EVENTS_MAX, &turn->count);
    return turn->count > 0 || turn->status != SPC_OK;
}

/* spc_wait calls this where it would sleep on a word: the server sleeps in the poller instead. */
static int leave_before_sleep(void *argument) {
    (void)argument;
    return SPC_EAGAIN;
}

/* After activity, more is likely: look a few times, as nodes do when they wait. Then sleep. */
static void wait_for_events(turn_t *turn, bool was_active, uint64_t deadline_ns) {
    const spc_wait_callbacks_t callbacks = {.test = look, .check = leave_before_sleep};
    const spc_clock_fn now_ns = turn->server->options.now_ns;
    _Atomic uint32_t word = 0, sleeping = 0;
    turn->count = 0;
    turn->status = SPC_OK;
    if (was_active
        && spc_wait(&turn->waiter, &word, &sleeping, &callbacks, turn, SPC_NO_DEADLINE) != SPC_EAGAIN) {
        return;
    }
    uint64_t start_ns = deadline_ns != SPC_NO_DEADLINE ? now_ns() : 0;
    uint64_t left_ns = deadline_ns == SPC_NO_DEADLINE ? UINT64_MAX
                       : deadline_ns > start_ns       ? deadline_ns - start_ns
                                                      : 0;
    turn->status =
        spc_server_poller_wait(turn->server->poller, left_ns, turn->events, EVENTS_MAX, &turn->count);
}

static void serve(const spc_server_event_t *event) {
    spc_server_port_t *port = event->key;
    if (port == NULL || port->link == NULL) { /* a wake, or the box has died since */
        return;
    }
    if (event->is_writable) {
        spc_link_write(port->link);
    }
    if (event->is_readable) {
        (void)spc_link_read(port->link); /* settling examines the result */
    }
    settle_port(port);
}

static void tick(spc_server_t *server) {
    uint64_t now_ns = server->options.now_ns();
    if (now_ns < server->next_tick_ns) {
        return;
    }
    server->next_tick_ns = SPC_NO_DEADLINE; /* settling lowers it */
    for (spc_server_group_t *group = server->groups; group != NULL; group = group->next) {
        for (uint16_t box = 0; box < group->boxes; box++) {
            if (group->ports[box].link != NULL) {
                spc_link_tick(group->ports[box].link, now_ns);
                settle_port(&group->ports[box]);
            }
        }
    }
    flush_ports(server);
}

/* Makes one report, without the lock; false: none is due. */
static bool report_one(spc_server_t *server) {
    for (spc_server_group_t *group = server->groups; group != NULL; group = group->next) {
        if (!group->tells_failure && !group->tells_end) {
            continue;
        }
        char sentence[SPC_SERVER_SENTENCE_BYTES];
        const uint32_t job = group->number;
        const bool is_failure = group->tells_failure;
        memcpy(sentence, group->sentence, sizeof sentence);
        *(is_failure ? &group->tells_failure : &group->tells_end) = false;
        if (server->options.report != NULL) {
            leave(server);
            server->options.report(server->options.argument, job, is_failure ? sentence : NULL);
            enter(server);
        }
        return true; /* the list may have changed */
    }
    return false;
}

static void free_removed(spc_server_t *server) {
    while (server->removed != NULL) {
        spc_server_group_t *group = server->removed;
        server->removed = group->next;
        free_group(group);
    }
}

static bool is_done(const spc_server_t *server) {
    bool all_have_ended = true;
    for (const spc_server_group_t *group = server->groups; group != NULL; group = group->next) {
        all_have_ended = all_have_ended && group->has_ended;
    }
    return server->is_stopping || (all_have_ended && !server->options.keep_running);
}

static void init_waiter(spc_waiter_t *waiter, spc_wait_policy_t policy) {
    spc_waiter_init(waiter, policy, 0);
    spc_waiter_expect_turns(waiter, SHARERS);
    waiter->polls_limit = (waiter->polls_limit + POLL_COSTS - 1) / POLL_COSTS;
    waiter->polls = waiter->polls_limit != 0 ? waiter->polls_limit : waiter->polls;
}

int spc_server_run(spc_server_t *server) {
    turn_t turn = {.server = server};
    init_waiter(&turn.waiter, server->options.policy);
    bool was_active = false;
    enter(server);
    while (turn.status == SPC_OK && !is_done(server)) {
        uint64_t deadline_ns = server->next_tick_ns;
        turn.status = spc_server_poller_prepare(server->poller);
        if (turn.status != SPC_OK) {
            break;
        }
        leave(server);
        wait_for_events(&turn, was_active, deadline_ns);
        enter(server);
        was_active = turn.count > 0;
        for (uint32_t i = 0; i < turn.count; i++) {
            serve(&turn.events[i]);
        }
        flush_ports(server);
        tick(server);
        free_removed(server);
        while (report_one(server)) {
        }
    }
    while (report_one(server)) { /* reports for groups that another thread ended meanwhile */
    }
    leave(server);
    return turn.status;
}
