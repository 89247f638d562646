/* SPDX-License-Identifier: MIT */
/* The thread at the connections: to the server, and to other agents. */
#include <poll.h>
#include <unistd.h>

#include "base/spc_error.h"
#include "net/spc_agent_peers.h"

/* The connection to the server, the pipe, and those to other agents. */
enum { SERVER, WAKE, PEERS, POLLED_MOST = PEERS + 64 };

void spc_agent_wake_reader(const spc_agent_t *agent) {
    const ssize_t written = write(agent->wake[1], "", 1);
    (void)written; /* full: it wakes anyway */
}

/* With the lock. How the link is; says that a new connection is needed. */
static bool look_after(spc_agent_t *agent) {
    const spc_link_state_t state = spc_link_tick(agent->link, spc_clock_now_ns());
    if (state == SPC_LINK_DEAD) {
        const int reason = spc_link_reason(agent->link, &(int){0});
        spc_agent_fail(agent, reason == SPC_OK ? SPC_ETIMEDOUT : reason);
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
    for (uint32_t i = 0; i < SPC_AGENT_YIELDS; i++) {
        if (poll(polled, count, 0) != 0) {
            return true;
        }
        const uint64_t before_ns = spc_clock_now_ns();
        spc_platform_yield();
        if (spc_clock_now_ns() - before_ns > SPC_AGENT_LONG_YIELD_NS) {
            return false; /* somebody computes on this core */
        }
    }
    return false;
}

static void read_links(spc_agent_t *agent, const struct pollfd polled[], uint32_t count) {
    if (polled[SERVER].revents != 0) {
        spc_agent_fail(agent, spc_link_read(agent->link));
    }
    spc_agent_fail(agent, spc_agent_peers_read(agent, polled + PEERS, count - PEERS));
    if (agent->outcome == SPC_EAGAIN) {
        (void)spc_agent_pump(agent);
    }
    spc_agent_write_links(agent);
    if (agent->is_finishing || agent->look_again_ns != SPC_NO_DEADLINE) {
        spc_event_raise(agent->event,
                        agent->config->features); /* the other thread waits for what has come, or must */
    }
}

static void drain_wake(const spc_agent_t *agent) {
    char bytes[64];
    while (read(agent->wake[0], bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes)) {
    }
}

/* With the lock: what to wait for, and until when. */
static uint32_t prepare_poll(const spc_agent_t *agent, struct pollfd polled[], int *timeout) {
    const uint64_t server_ns = spc_link_deadline_ns(agent->link);
    const uint64_t peers_ns = spc_agent_peers_deadline_ns(agent);
    *timeout = timeout_ms(server_ns < peers_ns ? server_ns : peers_ns);
    polled[SERVER] = (struct pollfd){.fd = spc_link_descriptor(agent->link), .events = POLLIN};
    polled[SERVER].events |= spc_link_wants_write(agent->link) ? POLLOUT : 0;
    polled[WAKE] = (struct pollfd){.fd = agent->wake[0], .events = POLLIN};
    return PEERS + spc_agent_peers_poll(agent, polled + PEERS);
}

static bool has_news(const struct pollfd polled[], uint32_t count) {
    bool has = polled[SERVER].revents != 0;
    for (uint32_t i = PEERS; i < count; i++) {
        has = has || polled[i].revents != 0;
    }
    return has;
}

/* Without the lock. */
static void tell(const spc_agent_t *agent, bool fails, bool calls, bool wants) {
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

void *spc_agent_read_for_ever(void *argument) {
    spc_agent_t *agent = argument;
    struct pollfd polled[POLLED_MOST];
    bool was_busy = false;
    for (;;) {
        int timeout;
        pthread_mutex_lock(&agent->lock);
        const bool calls = look_after(agent);
        const bool wants = spc_agent_peers_look_after(agent);
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
