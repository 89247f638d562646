/* SPDX-License-Identifier: MIT */
/* epoll, and an eventfd to wake it. */
#ifdef __linux__

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net/spc_server_poller.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/spc_error.h"

enum { EVENTS_MAX = 64 }; /* of one call */

struct spc_server_poller {
    int epoll, event;
};

static int control(spc_server_poller_t *poller, int operation, int descriptor, void *key, uint32_t events) {
    struct epoll_event event = {.events = events, .data = {.ptr = key}};
    if (epoll_ctl(poller->epoll, operation, descriptor, &event) == 0) {
        return SPC_OK;
    }
    return errno == ENOMEM ? SPC_ENOMEM : SPC_ESYSTEM;
}

int spc_server_poller_create(spc_server_poller_t **poller) {
    spc_server_poller_t *made = malloc(sizeof *made);
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->epoll = epoll_create1(EPOLL_CLOEXEC);
    made->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made->epoll < 0 || made->event < 0
        || control(made, EPOLL_CTL_ADD, made->event, NULL, EPOLLIN) != SPC_OK) {
        int system_error = errno;
        spc_server_poller_destroy(made);
        errno = system_error;
        return SPC_ESYSTEM;
    }
    *poller = made;
    return SPC_OK;
}

void spc_server_poller_destroy(spc_server_poller_t *poller) {
    if (poller == NULL) {
        return;
    }
    if (poller->epoll >= 0) {
        close(poller->epoll);
    }
    if (poller->event >= 0) {
        close(poller->event);
    }
    free(poller);
}

int spc_server_poller_add(spc_server_poller_t *poller, void *key, int descriptor) {
    return control(poller, EPOLL_CTL_ADD, descriptor, key, EPOLLIN);
}

int spc_server_poller_set(spc_server_poller_t *poller, void *key, int descriptor, bool writable) {
    return control(poller, EPOLL_CTL_MOD, descriptor, key, EPOLLIN | (writable ? (uint32_t)EPOLLOUT : 0));
}

/* The kernel has, when the descriptor was closed. */
void spc_server_poller_forget(spc_server_poller_t *poller, void *key) {
    (void)poller;
    (void)key;
}

int spc_server_poller_prepare(spc_server_poller_t *poller) {
    (void)poller;
    return SPC_OK;
}

int spc_server_poller_wait(spc_server_poller_t *poller, uint64_t timeout_ns, spc_server_event_t *events,
                           uint32_t max, uint32_t *count) {
    struct epoll_event found[EVENTS_MAX];
    int limit = max < EVENTS_MAX ? (int)max : EVENTS_MAX;
    int got = epoll_wait(poller->epoll, found, limit, spc_server_poller_ms(timeout_ns));
    *count = 0;
    if (got < 0) {
        return errno == EINTR ? SPC_OK : SPC_ESYSTEM;
    }
    for (int i = 0; i < got; i++) {
        if (found[i].data.ptr == NULL) {
            uint64_t wakes;
            ssize_t ignored = read(poller->event, &wakes, sizeof wakes);
            (void)ignored;
        }
        events[i] = (spc_server_event_t){found[i].data.ptr, (found[i].events & ~(uint32_t)EPOLLOUT) != 0,
                                         (found[i].events & EPOLLOUT) != 0};
    }
    *count = (uint32_t)got;
    return SPC_OK;
}

void spc_server_poller_wake(spc_server_poller_t *poller) {
    const uint64_t one = 1;
    ssize_t ignored =
        write(poller->event, &one, sizeof one); /* it fails only if it is set, 2^64 times over */
    (void)ignored;
}

#endif
