/* SPDX-License-Identifier: MIT */
/* The ring of events: what is read is what was recorded, and the oldest is overwritten. */
#include "check.h"

#include "segment/spc_trace.h"

enum { EVENTS = 64, THREADS = 4 };

#define SLACK_NS UINT64_C(20000) /* an anchor is that good even when its thread was put off its core */

typedef struct ring {
    spc_trace_t trace;
    spc_trace_shared_t *shared;
    uint64_t bytes;
    _Atomic uint32_t writing; /* threads that will record more; seq_cst: nothing is measured here */
} ring_t;

static void make(ring_t *ring, uint64_t events) {
    const uint64_t bytes = spc_trace_bytes(events);
    *ring = (ring_t){.shared = aligned_alloc(64, bytes + 64 - bytes % 64), .bytes = bytes};
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
        .number = (uint32_t)number,
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

TEST(nothing_yet) {
    ring_t ring;
    spc_trace_event_t event;
    uint64_t time_ns;
    make(&ring, EVENTS);
    spc_trace_reader_t reader;
    spc_trace_look(&reader, ring.shared, ring.bytes);
    CHECK_EQ_U(reader.count, 0);
    CHECK_EQ_U(reader.first, 1);
    CHECK(!spc_trace_read(&reader, 0, &event, &time_ns));
    CHECK(!spc_trace_read(&reader, 1, &event, &time_ns));
    CHECK(!spc_trace_read(&reader, 1 + EVENTS, &event, &time_ns));
    memset(ring.shared, 0, sizeof *ring.shared); /* a node that has not begun */
    spc_trace_look(&reader, ring.shared, ring.bytes);
    CHECK_EQ_U(reader.count, 0);
    CHECK(!spc_trace_read(&reader, 1, &event, &time_ns));
    free(ring.shared);
}

TEST(the_last_ones_stay) {
    for (uint64_t count = 1; count <= 3 * EVENTS + 1; count++) {
        ring_t ring;
        const uint64_t before_ns = spc_clock_now_ns();
        make(&ring, EVENTS);
        for (uint64_t number = 1; number <= count; number++) {
            record(&ring, number);
        }
        const uint64_t after_ns = spc_clock_now_ns();
        spc_trace_reader_t reader;
        spc_trace_look(&reader, ring.shared, ring.bytes);
        CHECK_EQ_U(reader.count, count);
        const uint64_t first = reader.first;
        CHECK_EQ_U(first, count > EVENTS ? count - EVENTS + 1 : 1);
        uint64_t earlier_ns = before_ns - SLACK_NS, time_ns;
        spc_trace_event_t event;
        for (uint64_t number = first; number <= count; number++) {
            CHECK(spc_trace_read(&reader, number, &event, &time_ns));
            CHECK_EQ_U(event.number, number);
            CHECK(time_ns >= earlier_ns);
            earlier_ns = time_ns;
            check_event(&event);
        }
        CHECK(earlier_ns <= after_ns + SLACK_NS);
        CHECK(first == 1 || !spc_trace_read(&reader, first - 1, &event, &time_ns));
        CHECK(!spc_trace_read(&reader, count + 1, &event, &time_ns));
        free(ring.shared);
    }
}

/* An event that began before it is recorded may say so. */
TEST(an_earlier_time) {
    ring_t ring;
    spc_trace_event_t event;
    spc_trace_reader_t reader;
    uint64_t first_ns, second_ns;
    make(&ring, EVENTS);
    const uint64_t ticks = spc_trace_now(&ring.trace);
    record(&ring, 1);
    spc_trace_record(&ring.trace, &(spc_trace_event_t){.kind = SPC_TRACE_SEND, .ticks = ticks});
    spc_trace_look(&reader, ring.shared, ring.bytes);
    CHECK(spc_trace_read(&reader, 1, &event, &first_ns));
    CHECK(spc_trace_read(&reader, 2, &event, &second_ns));
    CHECK_EQ_U(event.ticks, ticks);
    CHECK(second_ns <= first_ns);
    free(ring.shared);
}

TEST(sizes_are_powers_of_two) {
    CHECK_EQ_U(spc_trace_bytes(EVENTS + 1), spc_trace_bytes(2 * EVENTS));
    ring_t ring;
    const uint64_t bytes = spc_trace_bytes(EVENTS) + 4096; /* a region may be larger than was asked for */
    ring.shared = calloc(1, bytes + 64);
    CHECK(ring.shared != NULL);
    spc_trace_open(&ring.trace, ring.shared, bytes);
    CHECK_EQ_U(ring.trace.mask, 2 * EVENTS - 1);
    free(ring.shared);
}

static bool says(const ring_t *ring, uint32_t number, const char *expected) {
    char text[SPC_TRACE_NAME_BYTES];
    spc_trace_text(ring->shared, number, text);
    return strcmp(text, expected) == 0;
}

TEST(texts) {
    ring_t ring;
    char longer[2 * SPC_TRACE_NAME_BYTES], expected[SPC_TRACE_NAME_BYTES];
    make(&ring, EVENTS);
    CHECK(says(&ring, 0, ""));
    CHECK(says(&ring, 1, ""));
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    memset(expected, 'x', sizeof expected - 1);
    expected[sizeof expected - 1] = '\0';
    CHECK_EQ_U(spc_trace_name(&ring.trace, "first"), 1);
    CHECK_EQ_U(spc_trace_name(&ring.trace, longer), 2);
    CHECK(says(&ring, 1, "first"));
    CHECK(says(&ring, 2, expected));
    for (uint32_t number = 3; number < SPC_TRACE_NAMES_MAX; number++) {
        CHECK_EQ_U(spc_trace_name(&ring.trace, "another"), number);
    }
    CHECK(says(&ring, SPC_TRACE_NAMES_MAX - 1, "another"));
    CHECK(says(&ring, SPC_TRACE_NAMES_MAX, ""));
    CHECK_EQ_U(spc_trace_name(&ring.trace, "one too many"), SPC_TRACE_NAMES_MAX);
    CHECK_EQ_U(spc_trace_name(&ring.trace, "and another"), SPC_TRACE_NAMES_MAX);
    CHECK(says(&ring, SPC_TRACE_NAMES_MAX, SPC_TRACE_NO_ROOM));
    free(ring.shared);
}

/* ---- a program has written over its ring: whoever reads it stays within it, which the sanitizers see */

static uint64_t read_all(const ring_t *ring) {
    spc_trace_reader_t reader;
    uint64_t found = 0, time_ns;
    spc_trace_look(&reader, ring->shared, ring->bytes);
    CHECK(reader.count - reader.first + 1 <= reader.capacity);
    for (uint64_t number = reader.first; number <= reader.count; number++) {
        spc_trace_event_t event;
        char text[SPC_TRACE_NAME_BYTES];
        if (spc_trace_read(&reader, number, &event, &time_ns)) {
            CHECK(event.kind >= SPC_TRACE_CALL && event.kind <= SPC_TRACE_HANDLED);
            spc_trace_text(ring->shared, event.what, text);
            CHECK(strlen(text) < SPC_TRACE_NAME_BYTES);
            found++;
        }
    }
    return found;
}

static void make_full(ring_t *ring) {
    make(ring, EVENTS);
    for (uint64_t number = 1; number <= EVENTS; number++) {
        record(ring, number);
    }
    CHECK_EQ_U(read_all(ring), EVENTS);
}

TEST(impossible_sizes) {
    static const uint64_t sizes[] = {1, 16, 3, 2 * EVENTS, UINT64_C(1) << 58, UINT64_C(1) << 63, UINT64_MAX};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ring_t ring;
        make_full(&ring);
        atomic_store(&ring.shared->capacity, sizes[i]);
        CHECK(read_all(&ring) <= EVENTS);
        CHECK(sizes[i] <= EVENTS || read_all(&ring) == 0);
        free(ring.shared);
    }
}

TEST(impossible_counts_and_times) {
    static const uint64_t numbers[] = {0, 1, EVENTS + 1, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX};
    for (uint32_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ring_t ring;
        make_full(&ring);
        atomic_store(&ring.shared->begun, numbers[i]);
        CHECK(read_all(&ring) <= EVENTS);
        atomic_store(&ring.shared->begun, EVENTS);
        ring.shared->begin_ticks = numbers[i];
        CHECK(read_all(&ring) <= EVENTS);
        ring.shared->begin_ns = numbers[i];
        CHECK(read_all(&ring) <= EVENTS);
        free(ring.shared);
    }
}

TEST(names_without_an_end) {
    ring_t ring;
    char text[SPC_TRACE_NAME_BYTES];
    make_full(&ring);
    memset(ring.shared->name, 'x', sizeof ring.shared->name);
    atomic_store(&ring.shared->names, UINT32_MAX);
    spc_trace_text(ring.shared, SPC_TRACE_NAMES_MAX, text);
    CHECK_EQ_U(strlen(text), SPC_TRACE_NAME_BYTES - 1);
    CHECK(says(&ring, SPC_TRACE_NAMES_MAX + 1, ""));
    CHECK(says(&ring, UINT32_MAX, ""));
    free(ring.shared);
}

TEST(anything) {
    for (uint64_t seed = 1; seed <= (uint64_t)check_scale(200); seed++) {
        ring_t ring;
        make_full(&ring);
        unsigned char *bytes = (unsigned char *)ring.shared;
        uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15);
        const uint64_t from = seed % 2 == 0 ? 0 : offsetof(spc_trace_shared_t, names); /* or all is refused */
        for (uint64_t at = from; at < ring.bytes; at++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407U;
            bytes[at] = (unsigned char)(state >> 56);
        }
        for (uint64_t number = 1; number <= EVENTS && seed % 2 != 0; number++) {
            atomic_store(&ring.shared->slot[number - 1].stamp, number); /* or no event is one */
        }
        (void)read_all(&ring);
        free(ring.shared);
    }
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
        spc_trace_look(&reader, ring->shared, ring->bytes);
        for (uint64_t number = reader.first; number <= reader.count; number++) {
            spc_trace_event_t event;
            uint64_t time_ns;
            if (spc_trace_read(&reader, number, &event, &time_ns)) {
                check_event(&event);
                seen++;
            }
        }
    } while (atomic_load(&ring->writing) != 0 || seen == 0);
    spc_trace_look(&reader, ring->shared, ring->bytes);
    CHECK_EQ_U(reader.count, rounds * (uint64_t)(size - 1));
}

TEST(traffic) {
    ring_t ring;
    make(&ring, 16);
    atomic_init(&ring.writing, THREADS - 1);
    check_threads(THREADS, traffic_body, &ring);
    free(ring.shared);
}

TEST_MAIN()
