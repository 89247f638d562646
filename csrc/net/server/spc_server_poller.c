/* SPDX-License-Identifier: MIT */
/* epoll where this system has and allows it, else poll; a pipe wakes both. */
#include "net/server/spc_server_poller.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/epoll.h>
#endif

#include "base/spc_error.h"
#include "base/spc_platform.h"

enum { EVENTS_MAX = 64 }; /* of one call of epoll_wait */

/* Descriptors and their keys, at equal indices; the first is the pipe. */
typedef struct set {
    struct pollfd *polls;
    void **keys;
    uint32_t count, room;
} set_t;

struct spc_server_poller {
    int pipe[2];
    int epoll;      /* -1: poll */
    uint32_t first; /* with poll: where the next scan of `polled` begins, as one scan may exceed `max` */
    set_t wanted; /* changed under the owner's lock */
    set_t polled; /* a copy, for the thread that waits */
    bool has_changed;
};

static int reserve(set_t *set, uint32_t room) {
    if (room <= set->room) {
        return SPC_OK;
    }
    room = room < 16 ? 16 : 2 * room;
    struct pollfd *polls = realloc(set->polls, room * sizeof *polls);
    if (polls != NULL) {
        set->polls = polls;
    }
    void **keys = realloc(set->keys, room * sizeof *keys);
    if (keys != NULL) {
        set->keys = keys;
    }
    if (polls == NULL || keys == NULL) {
        return SPC_ENOMEM;
    }
    set->room = room;
    return SPC_OK;
}

/* Adds or changes a descriptor to wait for; the kernel itself removes those that are closed. */
static int watch(const spc_server_poller_t *poller, int descriptor, bool is_new, bool writable) {
#ifdef __linux__
    struct epoll_event event = {.events = EPOLLIN | (writable ? (uint32_t)EPOLLOUT : 0),
                                .data = {.fd = descriptor}};
    if (poller->epoll >= 0
        && epoll_ctl(poller->epoll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) != 0) {
        return errno == ENOMEM ? SPC_ENOMEM : SPC_ESYSTEM;
    }
#else
    (void)poller, (void)descriptor, (void)is_new, (void)writable;
#endif
    return SPC_OK;
}

static void set_up_end(int descriptor) {
    (void)fcntl(descriptor, F_SETFL, O_NONBLOCK);
    (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

int spc_server_poller_create(uint32_t disabled, spc_server_poller_t **poller) {
    spc_server_poller_t *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    if (pipe(made->pipe) != 0) {
        free(made);
        return SPC_ESYSTEM;
    }
    set_up_end(made->pipe[0]);
    set_up_end(made->pipe[1]);
    made->epoll = -1;
#ifdef __linux__
    if ((disabled & SPC_FEATURE_epoll) == 0) {
        made->epoll = epoll_create1(EPOLL_CLOEXEC);
    }
#else
    (void)disabled;
#endif
    int status = spc_server_poller_add(made, NULL, made->pipe[0]);
    if (status != SPC_OK) {
        spc_server_poller_destroy(made);
        return status;
    }
    *poller = made;
    return SPC_OK;
}

void spc_server_poller_destroy(spc_server_poller_t *poller) {
    if (poller != NULL) {
        close(poller->pipe[0]);
        close(poller->pipe[1]);
        if (poller->epoll >= 0) {
            close(poller->epoll);
        }
        free(poller->wanted.polls);
        free(poller->wanted.keys);
        free(poller->polled.polls);
        free(poller->polled.keys);
        free(poller);
    }
}

int spc_server_poller_add(spc_server_poller_t *poller, void *key, int descriptor) {
    set_t *set = &poller->wanted;
    int status = reserve(set, set->count + 1);
    if (status == SPC_OK) {
        status = watch(poller, descriptor, true, false);
    }
    if (status == SPC_OK) {
        set->polls[set->count] = (struct pollfd){.fd = descriptor, .events = POLLIN};
        set->keys[set->count++] = key;
        poller->has_changed = true;
    }
    return status;
}

static uint32_t find(const set_t *set, const void *key) {
    uint32_t i = 0;
    while (i < set->count && set->keys[i] != key) {
        i++;
    }
    return i;
}

int spc_server_poller_set(spc_server_poller_t *poller, void *key, int descriptor, bool writable) {
    set_t *set = &poller->wanted;
    uint32_t i = find(set, key);
    if (i == set->count || set->polls[i].fd != descriptor) {
        return SPC_ESYSTEM;
    }
    set->polls[i].events = (short)(POLLIN | (writable ? POLLOUT : 0));
    poller->has_changed = poller->has_changed || poller->epoll < 0;
    return watch(poller, descriptor, false, writable);
}

void spc_server_poller_forget(spc_server_poller_t *poller, void *key) {
    set_t *set = &poller->wanted;
    uint32_t i = find(set, key);
    if (i < set->count) {
        set->count--;
        set->polls[i] = set->polls[set->count];
        set->keys[i] = set->keys[set->count];
        poller->has_changed = true;
    }
}

int spc_server_poller_prepare(spc_server_poller_t *poller) {
    if (!poller->has_changed) {
        return SPC_OK;
    }
    const set_t *from = &poller->wanted;
    int status = reserve(&poller->polled, from->count);
    if (status == SPC_OK) {
        memcpy(poller->polled.polls, from->polls, from->count * sizeof *from->polls);
        memcpy(poller->polled.keys, from->keys, from->count * sizeof *from->keys);
        poller->polled.count = from->count;
        poller->has_changed = false;
    }
    return status;
}

static void add_event(spc_server_event_t *events, uint32_t *count, void *key, uint32_t found,
                      uint32_t writable) {
    events[(*count)++] = (spc_server_event_t){key, (found & ~writable) != 0, (found & writable) != 0};
}

#ifdef __linux__

/* The kernel names descriptors; the set has their keys. The kernel may still name a closed and forgotten descriptor,
 * while a process that was forked before holds it. */
static int wait_with_epoll(spc_server_poller_t *poller, int timeout_ms, spc_server_event_t *events,
                           uint32_t max, uint32_t *count) {
    struct epoll_event found[EVENTS_MAX];
    const set_t *set = &poller->polled;
    int got = epoll_wait(poller->epoll, found, max < EVENTS_MAX ? (int)max : EVENTS_MAX, timeout_ms);
    for (int n = 0; n < got; n++) {
        uint32_t i = 0;
        while (i < set->count && set->polls[i].fd != found[n].data.fd) {
            i++;
        }
        if (i < set->count) {
            add_event(events, count, set->keys[i], found[n].events, EPOLLOUT);
        }
    }
    return got;
}

#endif

static int wait_with_poll(spc_server_poller_t *poller, int timeout_ms, spc_server_event_t *events,
                          uint32_t max, uint32_t *count) {
    const set_t *set = &poller->polled;
    int got = poll(set->polls, set->count, timeout_ms);
    for (uint32_t n = 0; got > 0 && n < set->count && *count < max; n++) {
        const uint32_t i = (poller->first + n) % set->count;
        if (set->polls[i].revents != 0) {
            add_event(events, count, set->keys[i], (uint32_t)set->polls[i].revents, POLLOUT);
            poller->first = i + 1;
        }
    }
    return got;
}

int spc_server_poller_wait(spc_server_poller_t *poller, uint64_t timeout_ns, spc_server_event_t *events,
                           uint32_t max, uint32_t *count) {
    const int timeout_ms = spc_server_poller_ms(timeout_ns);
    *count = 0;
#ifdef __linux__
    int got = poller->epoll >= 0 ? wait_with_epoll(poller, timeout_ms, events, max, count)
                                 : wait_with_poll(poller, timeout_ms, events, max, count);
#else
    int got = wait_with_poll(poller, timeout_ms, events, max, count);
#endif
    if (got < 0) {
        return errno == EINTR ? SPC_OK : SPC_ESYSTEM;
    }
    for (uint32_t n = 0; n < *count; n++) {
        char wakes[64];
        while (events[n].key == NULL && read(poller->pipe[0], wakes, sizeof wakes) == (ssize_t)sizeof wakes) {
        }
    }
    return SPC_OK;
}

void spc_server_poller_wake(spc_server_poller_t *poller) {
    ssize_t ignored = write(poller->pipe[1], "", 1); /* fails only if the pipe holds enough wakes */
    (void)ignored;
}
