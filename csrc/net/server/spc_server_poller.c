/* SPDX-License-Identifier: MIT */
/* poll, and a pipe to wake it: a server has too few connections for epoll to gain anything. */
#include "net/server/spc_server_poller.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/spc_error.h"

/* Descriptors and their keys, in step; the first is the pipe. */
typedef struct set {
    struct pollfd *polls;
    void **keys;
    uint32_t count, room;
} set_t;

struct spc_server_poller {
    int pipe[2];
    set_t wanted; /* changed under the owner's lock */
    set_t polled; /* a copy, for the thread that waits */
    bool has_changed;
    uint32_t first; /* where the next look at `polled` begins: more may be ready than one call tells */
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

static void set_up_end(int descriptor) {
    (void)fcntl(descriptor, F_SETFL, O_NONBLOCK);
    (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

int spc_server_poller_create(spc_server_poller_t **poller) {
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
    poller->has_changed = true;
    return SPC_OK;
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

int spc_server_poller_wait(spc_server_poller_t *poller, uint64_t timeout_ns, spc_server_event_t *events,
                           uint32_t max, uint32_t *count) {
    set_t *set = &poller->polled;
    int got = poll(set->polls, set->count, spc_server_poller_ms(timeout_ns));
    *count = 0;
    if (got < 0) {
        return errno == EINTR ? SPC_OK : SPC_ESYSTEM;
    }
    if (got > 0 && set->polls[0].revents != 0) {
        char wakes[64];
        while (read(poller->pipe[0], wakes, sizeof wakes) == (ssize_t)sizeof wakes) {
        }
    }
    for (uint32_t n = 0; n < set->count && *count < max; n++) {
        const uint32_t i = (poller->first + n) % set->count;
        const short found = set->polls[i].revents;
        if (found != 0) {
            events[(*count)++] =
                (spc_server_event_t){set->keys[i], (found & ~POLLOUT) != 0, (found & POLLOUT) != 0};
            poller->first = i + 1;
        }
    }
    return SPC_OK;
}

void spc_server_poller_wake(spc_server_poller_t *poller) {
    ssize_t ignored = write(poller->pipe[1], "", 1); /* it fails only if enough wakes are in it */
    (void)ignored;
}
