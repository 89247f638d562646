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

#if defined(__has_builtin) && defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#if __has_builtin(__builtin_thread_pointer)
#define SPC_TRACE_THREAD() ((uint64_t)(uintptr_t)__builtin_thread_pointer()) /* a register */
#endif
#endif
#ifndef SPC_TRACE_THREAD
#define SPC_TRACE_THREAD() this_thread()

static uint64_t this_thread(void) {
    /* Not the address of a thread-local variable: programs may have several copies of this code, each with its own. */
    const pthread_t thread = pthread_self();
    uint64_t name = 0;
    memcpy(&name, &thread, sizeof(thread) < sizeof(name) ? sizeof(thread) : sizeof(name));
    return name;
}
#endif

typedef struct words {
    uint64_t word[SPC_TRACE_EVENT_WORDS];
} words_t;

static inline bool try_begin(spc_trace_t *trace) {
    return atomic_exchange_explicit(&trace->is_busy, 1, memory_order_acquire) == 0;
}

/* Begins the event, and ends it. */
static inline void write_event(spc_trace_t *trace, const words_t *event) {
    spc_trace_shared_t *shared = trace->shared;
    const uint64_t number = 1 + atomic_load_explicit(&shared->begun, memory_order_relaxed);
    atomic_store_explicit(&shared->begun, number, memory_order_relaxed);
    spc_trace_slot_shared_t *slot = &shared->slot[(number - 1) & trace->mask];
    atomic_store_explicit(&slot->stamp, 0, memory_order_relaxed);
    /* Pair with spc_trace_read: a reader that sees a word of this event sees that the stamp was taken away. Written
     * out, they stay in registers. */
    atomic_store_explicit(&slot->word[0], event->word[0], memory_order_release);
    atomic_store_explicit(&slot->word[1], event->word[1], memory_order_release);
    atomic_store_explicit(&slot->word[2], event->word[2], memory_order_release);
    atomic_store_explicit(&slot->word[3], event->word[3], memory_order_release);
    atomic_store_explicit(&slot->word[4], event->word[4], memory_order_release);
    atomic_store_explicit(&slot->word[5], event->word[5], memory_order_release);
    atomic_store_explicit(&slot->stamp, number, memory_order_release);
    atomic_store_explicit(&trace->is_busy, 0, memory_order_release); /* pairs with try_begin */
}

/* Separate, so that the rare case costs the others no register that would have to be saved. */
static __attribute__((noinline)) void record_in_turn(spc_trace_t *trace, uint64_t ticks,
                                                     uint64_t kind_context_peer, uint64_t tag_what,
                                                     uint64_t place_number, uint64_t bytes) {
    while (!try_begin(trace)) {
        spc_platform_yield(); /* the holder may have lost its core */
    }
    const words_t event = {{ticks, kind_context_peer, tag_what, place_number, SPC_TRACE_THREAD(), bytes}};
    write_event(trace, &event);
}

void spc_trace_record_words(spc_trace_t *trace, uint64_t ticks, uint64_t kind_context_peer, uint64_t tag_what,
                            uint64_t place_number, uint64_t bytes) {
    if (__builtin_expect(!try_begin(trace), 0)) {
        record_in_turn(trace, ticks, kind_context_peer, tag_what, place_number, bytes);
        return;
    }
    const words_t event = {{ticks, kind_context_peer, tag_what, place_number, SPC_TRACE_THREAD(), bytes}};
    write_event(trace, &event);
}

static uint32_t name_last(spc_trace_shared_t *shared, uint32_t names) {
    if (names == SPC_TRACE_NAMES_MAX - 1) {
        memcpy(shared->name[names], SPC_TRACE_NO_ROOM, sizeof(SPC_TRACE_NO_ROOM));
        /* Pairs with spc_trace_text. */
        atomic_store_explicit(&shared->names, SPC_TRACE_NAMES_MAX, memory_order_release);
    }
    return SPC_TRACE_NAMES_MAX;
}

uint32_t spc_trace_name(spc_trace_t *trace, const char *text) {
    spc_trace_shared_t *shared = trace->shared;
    const uint32_t names = atomic_load_explicit(&shared->names, memory_order_relaxed); /* this thread's */
    if (names >= SPC_TRACE_NAMES_MAX - 1) {
        return name_last(shared, names);
    }
    size_t length = strlen(text);
    length = length < SPC_TRACE_NAME_BYTES ? length : SPC_TRACE_NAME_BYTES - 1;
    memcpy(shared->name[names], text, length);
    shared->name[names][length] = '\0';
    atomic_store_explicit(&shared->names, names + 1, memory_order_release); /* pairs with spc_trace_text */
    return names + 1;
}

/* ---- reading ---- */

/* Whether a ring of this many slots fits this many bytes. */
static bool has_room(uint64_t bytes, uint64_t capacity) {
    const uint64_t fixed = sizeof(spc_trace_shared_t);
    return bytes >= fixed && capacity <= (bytes - fixed) / sizeof(spc_trace_slot_shared_t);
}

void spc_trace_look(spc_trace_reader_t *reader, const spc_trace_shared_t *shared, uint64_t bytes) {
    *reader = (spc_trace_reader_t){.shared = shared, .first = 1};
    /* Pairs with spc_trace_open. */
    const uint64_t capacity = atomic_load_explicit(&shared->capacity, memory_order_acquire);
    if (capacity == 0 || (capacity & (capacity - 1)) != 0 || !has_room(bytes, capacity)) {
        return;
    }
    const spc_ticks_anchor_t begin = {shared->begin_ticks, shared->begin_ns};
    const uint64_t count = atomic_load_explicit(&shared->begun, memory_order_relaxed);
    const spc_ticks_anchor_t end = spc_ticks_anchor(shared->are_counted != 0);
    /* Its node has begun before this moment, and no machine has lived for as many events as half of 64 bits count. */
    if (begin.ticks > end.ticks || begin.time_ns > end.time_ns || count > INT64_MAX) {
        return;
    }
    reader->capacity = capacity;
    reader->count = count;
    reader->first = count > capacity ? count - capacity + 1 : 1;
    reader->begin = begin;
    reader->end = end;
}

static bool is_kind(uint8_t kind) {
    switch (kind) {
#define SPC_TRACE_CASE(name, number, purpose) case SPC_TRACE_##name:
        SPC_TRACE_KINDS(SPC_TRACE_CASE)
#undef SPC_TRACE_CASE
        return true;
    default:
        return false;
    }
}

static spc_trace_event_t event_of(const uint64_t words[SPC_TRACE_EVENT_WORDS]) {
    return (spc_trace_event_t){
        .ticks = words[0],
        .kind = (uint8_t)words[1],
        .context = (uint16_t)(words[1] >> 16),
        .peer = (int32_t)(words[1] >> 32),
        .tag = (int32_t)words[2],
        .what = (uint32_t)(words[2] >> 32),
        .place = (uint32_t)words[3],
        .number = (uint32_t)(words[3] >> 32),
        .thread = words[4],
        .bytes = words[5],
    };
}

bool spc_trace_read(const spc_trace_reader_t *reader, uint64_t number, spc_trace_event_t *event,
                    uint64_t *time_ns) {
    if (reader->capacity == 0 || number == 0) {
        return false;
    }
    const spc_trace_slot_shared_t *slot = &reader->shared->slot[(number - 1) & (reader->capacity - 1)];
    uint64_t words[SPC_TRACE_EVENT_WORDS];
    if (atomic_load_explicit(&slot->stamp, memory_order_acquire) != number) { /* pairs with the last store */
        return false;
    }
    for (uint32_t i = 0; i < SPC_TRACE_EVENT_WORDS; i++) {
        /* Pairs with spc_trace_record_words: if the word is a later event's, the stamp is no longer this one's. */
        words[i] = atomic_load_explicit(&slot->word[i], memory_order_acquire);
    }
    *event = event_of(words);
    *time_ns = spc_ticks_to_ns(&reader->begin, &reader->end, event->ticks);
    return is_kind(event->kind) && atomic_load_explicit(&slot->stamp, memory_order_relaxed) == number;
}

void spc_trace_text(const spc_trace_shared_t *shared, uint32_t number, char text[SPC_TRACE_NAME_BYTES]) {
    const uint32_t names = atomic_load_explicit(&shared->names, memory_order_acquire);
    text[0] = '\0';
    if (number != 0 && number <= names && number <= SPC_TRACE_NAMES_MAX) {
        memcpy(text, shared->name[number - 1], SPC_TRACE_NAME_BYTES - 1);
        text[SPC_TRACE_NAME_BYTES - 1] = '\0';
    }
}
