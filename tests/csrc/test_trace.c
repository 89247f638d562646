/* SPDX-License-Identifier: MIT */
/* The ring of events: what is read is what was recorded, and the oldest is overwritten. */
#include "check.h"

#include "segment/spc_trace.h"

enum { EVENTS = 64, THREADS = 4 };

#define SLACK_NS UINT64_C(20000) /* an anchor is that good even when its thread was put off its core */

typedef struct ring {
    spc_trace_t trace;
    spc_trace_shared_t *shared;
    _Atomic uint32_t writing; /* threads that will record more; seq_cst: nothing is measured here */
} ring_t;

static void make(ring_t *ring, uint64_t events) {
    const uint64_t bytes = spc_trace_bytes(events);
    *ring = (ring_t){.shared = aligned_alloc(64, bytes + 64 - bytes % 64)};
    CHECK(ring->shared != NULL);
    memset(ring->shared, 0, bytes);
    spc_trace_open(&ring->trace, ring->shared, bytes);
}

/* All that an event says follows from one number. */
static void record(ring_t *ring, uint64_t number) {
    spc_trace_event_t event = {
        .kind = (uint8_t)(1 + number % 8),
        .context = (uint16_t)number,
        .peer = (int32_t)number,
        .tag = -(int32_t)number,
        .what = ~(uint32_t)number,
        .place = (uint32_t)number * 3,
        .bytes = number * UINT64_C(0x100000001),
        .number = number,
    };
    spc_trace_record(&ring->trace, &event);
}

static void check_event(const spc_trace_event_t *event) {
    const uint64_t number = event->number;
    CHECK_EQ(event->kind, 1 + number % 8);
    CHECK_EQ(event->context, (uint16_t)number);
    CHECK_EQ(event->peer, (int32_t)number);
    CHECK_EQ(event->tag, -(int32_t)number);
    CHECK_EQ_U(event->what, ~(uint32_t)number);
    CHECK_EQ_U(event->place, (uint32_t)number * 3);
    CHECK_EQ_U(event->bytes, number * UINT64_C(0x100000001));
}

static void nothing_yet(void) {
    ring_t ring;
    spc_trace_event_t event;
    make(&ring, EVENTS);
    spc_trace_reader_t reader;
    spc_trace_look(&reader, ring.shared);
    CHECK_EQ_U(reader.count, 0);
    CHECK_EQ_U(reader.first, 1);
    CHECK(!spc_trace_read(&reader, 0, &event));
    CHECK(!spc_trace_read(&reader, 1, &event));
    CHECK(!spc_trace_read(&reader, 1 + EVENTS, &event));
    memset(ring.shared, 0, sizeof *ring.shared); /* a node that has not begun */
    spc_trace_look(&reader, ring.shared);
    CHECK_EQ_U(reader.count, 0);
    CHECK(!spc_trace_read(&reader, 1, &event));
    free(ring.shared);
}

static void the_last_ones_stay(void) {
    for (uint64_t count = 1; count <= 3 * EVENTS + 1; count++) {
        ring_t ring;
        const uint64_t before_ns = spc_clock_now_ns();
        make(&ring, EVENTS);
        for (uint64_t number = 1; number <= count; number++) {
            record(&ring, number);
        }
        const uint64_t after_ns = spc_clock_now_ns();
        spc_trace_reader_t reader;
        spc_trace_look(&reader, ring.shared);
        CHECK_EQ_U(reader.count, count);
        const uint64_t first = reader.first;
        CHECK_EQ_U(first, count > EVENTS ? count - EVENTS + 1 : 1);
        uint64_t time_ns = before_ns - SLACK_NS;
        spc_trace_event_t event;
        for (uint64_t number = first; number <= count; number++) {
            CHECK(spc_trace_read(&reader, number, &event));
            CHECK_EQ_U(event.number, number);
            CHECK(event.time_ns >= time_ns);
            time_ns = event.time_ns;
            check_event(&event);
        }
        CHECK(time_ns <= after_ns + SLACK_NS);
        CHECK(first == 1 || !spc_trace_read(&reader, first - 1, &event));
        CHECK(!spc_trace_read(&reader, count + 1, &event));
        free(ring.shared);
    }
}

/* What began before it is recorded may say so. */
static void an_earlier_time(void) {
    ring_t ring;
    spc_trace_event_t event;
    spc_trace_reader_t reader;
    make(&ring, EVENTS);
    const uint64_t ticks = spc_trace_now(&ring.trace);
    record(&ring, 1);
    event = (spc_trace_event_t){.kind = SPC_TRACE_SEND, .time_ns = ticks};
    spc_trace_record(&ring.trace, &event);
    spc_trace_look(&reader, ring.shared);
    CHECK(spc_trace_read(&reader, 1, &event));
    const uint64_t first_ns = event.time_ns;
    CHECK(spc_trace_read(&reader, 2, &event));
    CHECK(event.time_ns <= first_ns);
    free(ring.shared);
}

static void sizes_are_powers_of_two(void) {
    CHECK_EQ_U(spc_trace_bytes(EVENTS + 1), spc_trace_bytes(2 * EVENTS));
    ring_t ring;
    const uint64_t bytes = spc_trace_bytes(EVENTS) + 4096; /* a region may be larger than was asked for */
    ring.shared = calloc(1, bytes + 64);
    CHECK(ring.shared != NULL);
    spc_trace_open(&ring.trace, ring.shared, bytes);
    CHECK_EQ_U(ring.trace.mask, 2 * EVENTS - 1);
    free(ring.shared);
}

static void texts(void) {
    ring_t ring;
    char longer[2 * SPC_TRACE_NAME_BYTES], expected[SPC_TRACE_NAME_BYTES];
    make(&ring, EVENTS);
    CHECK_EQ(spc_trace_text(ring.shared, 0)[0], 0);
    CHECK_EQ(spc_trace_text(ring.shared, 1)[0], 0);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    memset(expected, 'x', sizeof expected - 1);
    expected[sizeof expected - 1] = '\0';
    CHECK_EQ_U(spc_trace_name(&ring.trace, "first"), 1);
    CHECK_EQ_U(spc_trace_name(&ring.trace, longer), 2);
    CHECK_EQ(strcmp(spc_trace_text(ring.shared, 1), "first"), 0);
    CHECK_EQ(strcmp(spc_trace_text(ring.shared, 2), expected), 0);
    for (uint32_t number = 3; number <= SPC_TRACE_NAMES_MAX; number++) {
        CHECK_EQ_U(spc_trace_name(&ring.trace, "another"), number);
    }
    CHECK_EQ_U(spc_trace_name(&ring.trace, "too many"), 0);
    free(ring.shared);
}

/* The first rank reads what the others write, as long as they do: an event is whole, or not there. */
static void traffic_body(int rank, int size, void *argument) {
    ring_t *ring = argument;
    const uint64_t rounds = (uint64_t)check_scale(200000);
    uint64_t seen = 0;
    if (rank != 0) {
        for (uint64_t round = 0; round < rounds; round++) {
            record(ring, round * (uint64_t)size + (uint64_t)rank);
        }
        atomic_fetch_sub(&ring->writing, 1);
        return;
    }
    spc_trace_reader_t reader;
    do {
        spc_trace_look(&reader, ring->shared);
        for (uint64_t number = reader.first; number <= reader.count; number++) {
            spc_trace_event_t event;
            if (spc_trace_read(&reader, number, &event)) {
                check_event(&event);
                seen++;
            }
        }
    } while (atomic_load(&ring->writing) != 0 || seen == 0);
    spc_trace_look(&reader, ring->shared);
    CHECK_EQ_U(reader.count, rounds * (uint64_t)(size - 1));
}

static void traffic(void) {
    ring_t ring;
    make(&ring, 16);
    atomic_init(&ring.writing, THREADS - 1);
    check_threads(THREADS, traffic_body, &ring);
    free(ring.shared);
}

int main(void) {
    RUN(nothing_yet);
    RUN(the_last_ones_stay);
    RUN(an_earlier_time);
    RUN(sizes_are_powers_of_two);
    RUN(texts);
    RUN(traffic);
    return check_done();
}
