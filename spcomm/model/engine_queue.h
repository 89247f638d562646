/* SPDX-License-Identifier: MIT */
/*
 * engine_queue: the pending events of a simulation, a heap in which each event has up to four children.
 *
 * Order: by time, then by sender, then by the sender's own count of messages. No two events are equal, so the order in
 * which they leave does not depend on the order in which they came, and a simulation is repeatable.
 *
 * Four children of 32 bytes fill two cache lines, and the heap is half as deep as a binary one: a million pending
 * events lie ten levels deep. One thread uses a queue.
 */
#ifndef SPCOMM_MODEL_ENGINE_QUEUE_H
#define SPCOMM_MODEL_ENGINE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* A message reaches `at`, on its way to `dest`. */
typedef struct {
    int64_t time_ns;
    uint64_t order; /* sender << 32 | how many messages it had sent before */
    uint32_t at;    /* a node, or a server */
    uint32_t dest;  /* a node; of some kinds the server it came from */
    uint32_t bytes;
    uint8_t kind;
    uint8_t channel;
    bool waited; /* it has had its turn at the receiving port */
} engine_event_t;

_Static_assert(sizeof(engine_event_t) == 32, "two events fill a cache line");

typedef struct {
    engine_event_t
        *events; /* from FIRST on, so that the four children of an event begin at a multiple of 128 bytes */
    size_t count, room;
} engine_queue_t;

enum { ENGINE_QUEUE_FIRST = 3, ENGINE_QUEUE_LEAST = 4096 };

static inline bool engine_event_before(const engine_event_t *left, const engine_event_t *right) {
    return left->time_ns != right->time_ns ? left->time_ns < right->time_ns : left->order < right->order;
}

/* Room for more events; false: there is no memory. */
static inline bool engine_queue_grow(engine_queue_t *queue) {
    const size_t room = queue->room ? 2 * queue->room : ENGINE_QUEUE_LEAST;
    engine_event_t *events = aligned_alloc(128, room * sizeof *events);
    if (events == NULL) {
        return false;
    }
    for (size_t i = 0; i < queue->count; i++) {
        events[ENGINE_QUEUE_FIRST + i] = queue->events[ENGINE_QUEUE_FIRST + i];
    }
    free(queue->events);
    queue->events = events;
    queue->room = room;
    return true;
}

static inline bool engine_queue_push(engine_queue_t *queue, engine_event_t event) {
    if (ENGINE_QUEUE_FIRST + queue->count == queue->room || queue->room == 0) {
        if (!engine_queue_grow(queue)) {
            return false;
        }
    }
    engine_event_t *heap = queue->events + ENGINE_QUEUE_FIRST;
    size_t place = queue->count++;
    while (place > 0) {
        const size_t parent = (place - 1) / 4;
        if (!engine_event_before(&event, &heap[parent])) {
            break;
        }
        heap[place] = heap[parent];
        place = parent;
    }
    heap[place] = event;
    return true;
}

/* The earliest event; there must be one. */
static inline engine_event_t engine_queue_pop(engine_queue_t *queue) {
    engine_event_t *heap = queue->events + ENGINE_QUEUE_FIRST;
    const engine_event_t earliest = heap[0], last = heap[--queue->count];
    size_t place = 0;
    for (;;) {
        const size_t first = 4 * place + 1;
        if (first >= queue->count) {
            break;
        }
        size_t best = first;
        const size_t end = first + 4 < queue->count ? first + 4 : queue->count;
        for (size_t child = first + 1; child < end; child++) {
            if (engine_event_before(&heap[child], &heap[best])) {
                best = child;
            }
        }
        if (!engine_event_before(&heap[best], &last)) {
            break;
        }
        heap[place] = heap[best];
        place = best;
    }
    heap[place] = last;
    return earliest;
}

#endif
