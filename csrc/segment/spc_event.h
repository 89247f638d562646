/* SPDX-License-Identifier: MIT */
/*
 * spc_event: the word on which a node sleeps, and how others wake it.
 *
 * A process that makes a change for which another node may wait (an announcement, freed room, a release, a death) makes
 * it with a sequentially consistent operation and then calls spc_event_notify for that node. See spc_wait.h for the
 * other half. Each node sleeps on its own event; any process may notify. For a node of another box this box's gateway
 * looks: notifying that node's event notifies the gateway's (spc_event_stand_in).
 */
#ifndef SPC_EVENT_H
#define SPC_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_atomic.h"
#include "base/spc_platform.h"

typedef struct spc_event_shared {
    _Atomic uint32_t word;     /* raised by wakers; futex */
    /* written by the owner only: it sleeps, or is about to; or SPC_EVENT_STANDS_IN */
    _Atomic uint32_t sleeping;
    uint32_t stand_in; /* then: distance to the gateway's event */
    unsigned char padding[2 * SPC_CACHE_LINE - 12]; /* two lines: the neighbour's prefetcher takes pairs */
} spc_event_shared_t;

_Static_assert(sizeof(spc_event_shared_t) == 128, "spc_event_shared_t lies in shared memory");

#define SPC_EVENT_STANDS_IN 2 /* in `sleeping`, for good */

/* The owner of `gateway`, an event further on, looks for the owner of `event`, which is in another box. Called before
 * any other process has the segment. */
void spc_event_stand_in(spc_event_shared_t *event, const spc_event_shared_t *gateway);

/* Whether the owner sleeps, or is about to. A hint: nothing follows from it by the time it is used. */
static inline bool spc_event_sleeps(const spc_event_shared_t *event) {
    return atomic_load_explicit(&event->sleeping, memory_order_relaxed) == 1;
}

/* As spc_event_notify, where a node sleeps or a gateway stands in. */
void spc_event_wake(spc_event_shared_t *event, uint32_t features);

/* Raises and wakes without checking: for deaths, after which all waiting nodes must look again. */
void spc_event_raise(spc_event_shared_t *event, uint32_t features);

/* Wakes the owner if it sleeps: one load of a line that rarely changes, otherwise.
 * The load is seq_cst and pairs with the owner's seq_cst store of `sleeping` before its second test (spc_wait.c). */
static inline void spc_event_notify(spc_event_shared_t *event, uint32_t features) {
    if (__builtin_expect(atomic_load_explicit(&event->sleeping, memory_order_seq_cst) != 0, 0)) {
        spc_event_wake(event, features);
    }
}

#endif
