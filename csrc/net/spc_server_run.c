/* SPDX-License-Identifier: MIT */
/* The loop: wait, read, route, write. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net/spc_server_private.h"

#include <string.h>

#include "base/spc_error.h"

enum {
    EVENTS_MAX = 64,
    POLL_COSTS = 16, /* a look at the poller, in polls of a word: spc_waiter_init measures the latter */
};

/* What one turn has found. */
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

/* spc_wait comes here when it would sleep: on a word, and we sleep in the poller. */
static int leave_before_sleep(void *argument) {
    (void)argument;
    return SPC_EAGAIN;
}

/* After activity more of it is likely: look a few times, in the way in which nodes wait. Then sleep. */
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
    if (port == NULL || port->link == NULL) { /* a wake, or dead since */
        return;
    }
    if (event->is_writable) {
        spc_link_write(port->link);
    }
    if (event->is_readable) {
        (void)spc_link_read(port->link); /* settling sees what it came to */
    }
    spc_server_port_settle(port);
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
                spc_server_port_settle(&group->ports[box]);
            }
        }
    }
    spc_server_flush(server);
}

/* One report, made without the lock; false: none is to be made. */
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
            spc_server_leave(server);
            server->options.report(server->options.argument, job, is_failure ? sentence : NULL);
            spc_server_enter(server);
        }
        return true; /* the list may have changed */
    }
    return false;
}

static void free_removed(spc_server_t *server) {
    while (server->removed != NULL) {
        spc_server_group_t *group = server->removed;
        server->removed = group->next;
        spc_server_free_group(group);
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
    waiter->polls_limit = (waiter->polls_limit + POLL_COSTS - 1) / POLL_COSTS;
    waiter->polls = waiter->polls_limit != 0 ? waiter->polls_limit : waiter->polls;
}

int spc_server_run(spc_server_t *server) {
    turn_t turn = {.server = server};
    init_waiter(&turn.waiter, server->options.policy);
    bool was_active = false;
    spc_server_enter(server);
    while (turn.status == SPC_OK && !is_done(server)) {
        uint64_t deadline_ns = server->next_tick_ns;
        turn.status = spc_server_poller_prepare(server->poller);
        if (turn.status != SPC_OK) {
            break;
        }
        spc_server_leave(server);
        wait_for_events(&turn, was_active, deadline_ns);
        spc_server_enter(server);
        was_active = turn.count > 0;
        for (uint32_t i = 0; i < turn.count; i++) {
            serve(&turn.events[i]);
        }
        spc_server_flush(server);
        tick(server);
        free_removed(server);
        while (report_one(server)) {
        }
    }
    while (report_one(server)) { /* what another thread has ended meanwhile */
    }
    spc_server_leave(server);
    return turn.status;
}
