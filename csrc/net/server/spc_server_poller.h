/* SPDX-License-Identifier: MIT */
/*
 * spc_server_poller: finds the readable and writable ones of many descriptors; level-triggered.
 *
 * spc_server_poller_wait runs in one thread, without the owner's lock; _wake may be called from any thread at any time;
 * the other functions need the owner's lock. A closed descriptor needs only _forget. A broken descriptor counts as
 * readable, so that a read reports why.
 */
#ifndef SPC_SERVER_POLLER_H
#define SPC_SERVER_POLLER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct spc_server_poller spc_server_poller_t;

typedef struct spc_server_event {
    void *key; /* NULL: the event of spc_server_poller_wake */
    bool is_readable, is_writable;
} spc_server_event_t;

/* `disabled`: features of base/spc_platform.h; without epoll it uses poll. SPC_ENOMEM, SPC_ESYSTEM. */
int spc_server_poller_create(uint32_t disabled, spc_server_poller_t **poller);
void spc_server_poller_destroy(spc_server_poller_t *poller); /* NULL is allowed */

/* Adds a descriptor, always for reading; `key` is not NULL, and new. SPC_ENOMEM, SPC_ESYSTEM. */
int spc_server_poller_add(spc_server_poller_t *poller, void *key, int descriptor);
int spc_server_poller_set(spc_server_poller_t *poller, void *key, int descriptor, bool writable);
void spc_server_poller_forget(spc_server_poller_t *poller, void *key);

/* After changes, before _wait. SPC_ENOMEM. */
int spc_server_poller_prepare(spc_server_poller_t *poller);

/* Waits at most this long (UINT64_MAX: for ever; 0: a look) for at most `max` events. SPC_OK, also with none;
 * SPC_ESYSTEM. */
int spc_server_poller_wait(spc_server_poller_t *poller, uint64_t timeout_ns, spc_server_event_t *events,
                           uint32_t max, uint32_t *count);

/* Ends the current wait, or the next one. */
void spc_server_poller_wake(spc_server_poller_t *poller);

/* In poll's unit, rounded up, so that a deadline has passed when poll returns; -1: for ever. */
static inline int spc_server_poller_ms(uint64_t timeout_ns) {
    if (timeout_ns == UINT64_MAX) {
        return -1;
    }
    uint64_t ms = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);
    return ms < 1000000 ? (int)ms : 1000000;
}

#endif
