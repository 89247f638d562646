/* SPDX-License-Identifier: MIT */
#include "segment/spc_trace.h"

#include <pthread.h>
#include <string.h>

#include "base/spc_platform.h"

static uint64_t power_of_two(uint64_t events) {
    uint64_t capacity = 16;
    while (capacity < events) {
        capacity *= 2;
    }
    return capacity;
}

uint64_t spc_trace_bytes(uint64_t events) {
    return sizeof(spc_trace_shared_t) + power_of_two(events) * sizeof(spc_trace_slot_shared_t);
}

void spc_trace_open(spc_trace_t *trace, spc_trace_shared_t *shared, uint64_t bytes) {
    uint64_t capacity = (bytes - sizeof(*shared)) / sizeof(spc_trace_slot_shared_t);
    while ((capacity & (capacity - 1)) != 0) { /* the region may have been rounded up */
        capacity &= capacity - 1;
    }
    trace->shared = shared;
    trace->mask = capacity - 1;
    trace->are_counted = spc_ticks_are_counted();
    const spc_ticks_anchor_t begin = spc_ticks_anchor(trace->are_counted);
    shared->are_counted = trace->are_counted;
    shared->begin_ticks = begin.ticks;
    shared->begin_ns = begin.time_ns;
    /* Release: pairs with spc_trace_look. */
    atomic_store_explicit(&shared->capacity, capacity, memory_order_release);
}

/* ---- writing ---- */

static uint64_t this_thread(void) {
    /* Not the address of something thread-local: programs may have several copies of this code, with one of it each. */
    const pthread_t thread = pthread_self();
    uint64_t name = 0;
    memcpy(&name, &thread, sizeof(thread) < sizeof(name) ? sizeof(thread) : sizeof(name));
    return name;
}

static void begin(spc_trace_t *trace) {
    while (atomic_exchange_explicit(&trace->is_busy, 1, memory_order_acquire) != 0) {
        spc_platform_yield(); /* whoever holds it may have been put off its core */
    }
}

void spc_trace_record(spc_trace_t *trace, spc_trace_event_t *event) {
    spc_trace_shared_t *shared = trace->shared;
    uint64_t words[SPC_TRACE_EVENT_WORDS];
    event->thread = this_thread();
    event->time_ns = event->time_ns != 0 ? event->time_ns : spc_trace_now(trace);
    memcpy(words, event, sizeof(words));
    begin(trace);
    const uint64_t number = 1 + atomic_load_explicit(&shared->begun, memory_order_relaxed);
    atomic_store_explicit(&shared->begun, number, memory_order_relaxed);
    spc_trace_slot_shared_t *slot = &shared->slot[(number - 1) & trace->mask];
    atomic_store_explicit(&slot->stamp, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < SPC_TRACE_EVENT_WORDS; i++) {
        /* Pairs with spc_trace_read: who sees a word of this event sees that the stamp was taken away. */
        atomic_store_explicit(&slot->word[i], words[i], memory_order_release);
    }
    atomic_store_explicit(&slot->stamp, number, memory_order_release);
    atomic_store_explicit(&trace->is_busy, 0, memory_order_release); /* pairs with begin */
}

uint32_t spc_trace_name(spc_trace_t *trace, const char *text) {
    spc_trace_shared_t *shared = trace->shared;
    const uint32_t names = atomic_load_explicit(&shared->names, memory_order_relaxed); /* this thread's */
    if (names == SPC_TRACE_NAMES_MAX) {
        return 0;
    }
    size_t length = strlen(text);
    length = length < SPC_TRACE_NAME_BYTES ? length : SPC_TRACE_NAME_BYTES - 1;
    memcpy(shared->name[names], text, length);
    shared->name[names][length] = '\0';
    atomic_store_explicit(&shared->names, names + 1, memory_order_release); /* pairs with spc_trace_text */
    return names + 1;
}

/* ---- reading ---- */

void spc_trace_look(spc_trace_reader_t *reader, const spc_trace_shared_t *shared) {
    *reader = (spc_trace_reader_t){.shared = shared, .first = 1};
    reader->capacity =
        atomic_load_explicit(&shared->capacity, memory_order_acquire); /* pairs with spc_trace_open */
    if (reader->capacity == 0) {
        return;
    }
    reader->begin = (spc_ticks_anchor_t){shared->begin_ticks, shared->begin_ns};
    reader->count = atomic_load_explicit(&shared->begun, memory_order_relaxed);
    reader->end = spc_ticks_anchor(shared->are_counted != 0);
    if (reader->count > reader->capacity) {
        reader->first = reader->count - reader->capacity + 1;
    }
}

bool spc_trace_read(const spc_trace_reader_t *reader, uint64_t number, spc_trace_event_t *event) {
    if (reader->capacity == 0 || number == 0) {
        return false;
    }
    const spc_trace_slot_shared_t *slot = &reader->shared->slot[(number - 1) & (reader->capacity - 1)];
    uint64_t words[SPC_TRACE_EVENT_WORDS];
    if (atomic_load_explicit(&slot->stamp, memory_order_acquire) != number) { /* pairs with the last store */
        return false;
    }
    for (uint32_t i = 0; i < SPC_TRACE_EVENT_WORDS; i++) {
        /* Pairs with spc_trace_record: if it is a later event's, the stamp is not this one's any more. */
        words[i] = atomic_load_explicit(&slot->word[i], memory_order_acquire);
    }
    memcpy(event, words, sizeof(words));
    event->time_ns = spc_ticks_to_ns(&reader->begin, &reader->end, event->time_ns);
    return atomic_load_explicit(&slot->stamp, memory_order_relaxed) == number;
}

const char *spc_trace_text(const spc_trace_shared_t *shared, uint32_t number) {
    const uint32_t names = atomic_load_explicit(&shared->names, memory_order_acquire);
    return number == 0 || number > names ? "" : shared->name[number - 1];
}
