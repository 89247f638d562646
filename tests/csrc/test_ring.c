/* SPDX-License-Identifier: MIT */
/* Ring: figures 2 and 3 of SpeedesComm, chunks that come back in any order, quotas, what those who are gone held. */
#include "check.h"

#include "base/spc_error.h"
#include "message/spc_ring.h"

#define NODES 6
#define HEADER sizeof(spc_ring_header_shared_t)

typedef struct store {
    unsigned char *memory;
    uint64_t size_bytes;
    spc_status_shared_t *status;
    spc_event_shared_t *event;
    spc_ring_t *ring;
} store_t;

static void *zeroed(uint64_t bytes) {
    void *memory = aligned_alloc(64, spc_round_up(bytes, 64));
    CHECK(memory != NULL);
    return memset(memory, 0, bytes);
}

static store_t make_store(uint64_t size_bytes) {
    store_t store = {
        .memory = zeroed(size_bytes),
        .size_bytes = size_bytes,
        .status = zeroed(spc_status_bytes(NODES)),
        .event = zeroed(NODES * sizeof(spc_event_shared_t)),
    };
    CHECK_OK(spc_ring_create(store.memory, size_bytes, NODES, store.status, &store.ring));
    return store;
}

static void free_store(store_t *store) {
    spc_ring_destroy(store->ring);
    free(store->event);
    free(store->status);
    free(store->memory);
}

static spc_ring_header_shared_t *reserve_many(store_t *store, const int32_t *to, uint32_t count,
                                              uint64_t bytes) {
    spc_ring_header_shared_t *headers = NULL;
    void *payload = NULL;
    int status = spc_ring_reserve(store->ring, to, count, bytes, &headers, &payload);
    if (status == SPC_EAGAIN) {
        return NULL;
    }
    CHECK_OK(status);
    CHECK_EQ_PTR(payload, headers + count);
    CHECK((unsigned char *)headers >= store->memory);
    CHECK((unsigned char *)payload + bytes <= store->memory + store->size_bytes);
    return headers;
}

static spc_ring_header_shared_t *reserve(store_t *store, int32_t to, uint64_t bytes) {
    return reserve_many(store, &to, 1, bytes);
}

static uint64_t place(const store_t *store, const spc_ring_header_shared_t *header) {
    return (uint64_t)((const unsigned char *)header - store->memory);
}

/* "Since the last message ends at 960 bytes, node 0 writes the message into the buffer." */
TEST(figure_2) {
    store_t store = make_store(8192);
    uint64_t end = 0;
    const int32_t to[4] = {1, 2, 2, 1}; /* A to D */
    for (int i = 0; i < 4; i++) {
        spc_ring_header_shared_t *header = reserve(&store, to[i], 240 - HEADER);
        CHECK_EQ_U(place(&store, header), end);
        end += 240;
    }
    CHECK_EQ_U(end, 960);
    spc_ring_header_shared_t *message = reserve(&store, 1, 80);
    CHECK_EQ_U(place(&store, message), 960);
    CHECK_EQ_U(message->payload_bytes, 80);
    CHECK_EQ_PTR(spc_ring_payload(message),
                 store.memory + 960 + HEADER); /* "it actually needs more than 80 bytes" */
    free_store(&store);
}

/* "The first header has the offset set to 2*sizeof(MessageHeader), the second header to sizeof(MessageHeader)." */
TEST(figure_3) {
    store_t store = make_store(8192);
    const int32_t to[2] = {1, 2};
    spc_ring_header_shared_t *headers = reserve_many(&store, to, 2, 80);
    CHECK_EQ_U(headers[0].payload_offset, 2 * HEADER);
    CHECK_EQ_U(headers[1].payload_offset, HEADER);
    CHECK_EQ_PTR(spc_ring_payload(&headers[0]), spc_ring_payload(&headers[1])); /* written once */
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_U(headers[i].payload_bytes, 80);
        CHECK_EQ_U(headers[i].destination, to[i]);
        CHECK_EQ_U(atomic_load(&headers[i].read), 0);
    }
    CHECK_EQ_U(spc_ring_used(store.ring), 80 + 2 * HEADER);
    spc_ring_mark_read(&headers[1]);
    CHECK_EQ_U(spc_ring_used(store.ring), 80 + 2 * HEADER); /* one of two has read it */
    spc_ring_mark_read(&headers[0]);
    CHECK_EQ_U(spc_ring_used(store.ring), 0);
    free_store(&store);
}

TEST(too_long_is_refused_for_ever) {
    store_t store = make_store(1024);
    const int32_t to[3] = {1, 2, 3};
    spc_ring_header_shared_t *headers;
    void *payload;
    for (uint32_t count = 1; count <= 3; count++) {
        uint64_t longest = spc_ring_payload_max(store.ring, count);
        CHECK_EQ_U(longest, 256 - count * HEADER);
        CHECK_EQ(spc_ring_reserve(store.ring, to, count, longest + 1, &headers, &payload), SPC_EINVAL);
        headers = reserve_many(&store, to, count, longest);
        CHECK(headers != NULL);
        CHECK_EQ_U(spc_ring_used(store.ring), 256);
        for (uint32_t i = 0; i < count; i++) {
            spc_ring_mark_read(&headers[i]);
        }
    }
    CHECK_EQ_U(spc_ring_payload_max(store.ring, 16), 0);
    CHECK_EQ_U(spc_ring_payload_max(store.ring, 1000), 0);
    free_store(&store);
}

TEST(full_until_a_chunk_is_read) {
    store_t store = make_store(1024);
    spc_ring_header_shared_t *header[4];
    for (int32_t i = 0; i < 4; i++) {
        header[i] = reserve(&store, i, 240);
        CHECK(header[i] != NULL);
    }
    CHECK_EQ_PTR(reserve(&store, 4, 8), NULL);
    spc_ring_mark_read(header[2]); /* not the oldest */
    CHECK_EQ_PTR(reserve(&store, 4, 240), header[2]);
    CHECK_EQ_PTR(reserve(&store, 4, 8), NULL);
    free_store(&store);
}

TEST(the_same_memory_again_while_it_is_read) {
    store_t store = make_store(65536);
    uint64_t chunk_bytes = spc_ring_payload_max(store.ring, 1) + HEADER;
    for (int i = 0; i < 1000; i++) {
        spc_ring_header_shared_t *header = reserve(&store, 1, 100);
        CHECK(place(&store, header) < chunk_bytes); /* no other memory is ever touched */
        spc_ring_mark_read(header);
    }
    free_store(&store);
}

TEST(a_stopped_receiver_pins_its_quota_only) {
    store_t store = make_store(1024);
    int stopped = 0;
    while (reserve(&store, 5, 100) != NULL) {
        stopped++;
    }
    uint64_t chunk_bytes = spc_ring_payload_max(store.ring, 1) + HEADER;
    CHECK_EQ_U(stopped, 2 * (chunk_bytes / spc_round_up(HEADER + 100, SPC_RING_ALIGNMENT))); /* two chunks */
    for (int i = 0; i < 10000; i++) {
        spc_ring_header_shared_t *header = reserve(&store, i % 5, 24 + i % 200);
        CHECK(header != NULL); /* all others go on for ever */
        CHECK_EQ_PTR(reserve(&store, 5, 100), NULL);
        spc_ring_mark_read(header);
    }
    free_store(&store);
}

TEST(a_multicast_with_a_stopped_receiver_finds_no_room) {
    store_t store = make_store(1024);
    const int32_t to[2] = {1, 5};
    while (reserve(&store, 5, 100) != NULL) {
    }
    CHECK_EQ_PTR(reserve_many(&store, to, 2, 100), NULL);
    CHECK(reserve(&store, 1, 100) != NULL);
    free_store(&store);
}

TEST(finished_receivers_hold_and_gone_ones_do_not) {
    store_t store = make_store(1024);
    spc_ring_header_shared_t *header[4];
    for (int32_t i = 0; i < 4; i++) {
        header[i] = reserve(&store, i, 240);
    }
    spc_status_end(store.status, 2, SPC_NODE_FINISHED, 0, store.event, NODES, 0);
    CHECK_EQ_PTR(reserve(&store, 4, 240), NULL); /* it may still look at it */
    spc_status_set_gone(store.status, 2, store.event, NODES, 0);
    CHECK_EQ_PTR(reserve(&store, 4, 240), header[2]);
    free_store(&store);
}

typedef struct model_message {
    spc_ring_header_shared_t *headers;
    uint32_t count;
    uint32_t unread; /* mask of headers */
    uint64_t bytes;
    unsigned char fill;
} model_message_t;

static void check_content(const model_message_t *message) {
    const unsigned char *payload = spc_ring_payload(message->headers);
    for (uint64_t i = 0; i < message->bytes; i++) {
        CHECK_EQ(payload[i], message->fill);
    }
}

static uint32_t choose_destinations(uint64_t *seed, int32_t *to) {
    uint32_t count = 0;
    uint32_t mask = (uint32_t)check_below(seed, (1u << NODES) - 1) + 1;
    for (int32_t rank = 0; rank < NODES; rank++) {
        if (mask & 1u << rank) {
            to[count++] = rank;
        }
    }
    return count;
}

/* Chunks that not all have read are never overwritten; those that were read come back. */
TEST(random_order_of_reading) {
    enum { HELD = 64 };
    uint64_t seed = check_seed();
    for (uint64_t size_bytes = 1024; size_bytes <= 65536; size_bytes *= 8) {
        store_t store = make_store(size_bytes);
        model_message_t held[HELD] = {{0}};
        for (long round = check_scale(40000); round > 0; round--) {
            model_message_t *message = &held[check_below(&seed, HELD)];
            if (message->unread == 0) {
                int32_t to[NODES];
                message->count = choose_destinations(&seed, to);
                message->bytes = check_below(&seed, spc_ring_payload_max(store.ring, message->count) + 1);
                message->headers = reserve_many(&store, to, message->count, message->bytes);
                if (message->headers == NULL) {
                    continue;
                }
                message->unread = (1u << message->count) - 1;
                message->fill = (unsigned char)check_random(&seed);
                memset(spc_ring_payload(message->headers), message->fill, message->bytes);
            } else {
                uint32_t i = (uint32_t)check_below(&seed, message->count);
                if (message->unread & 1u << i) {
                    CHECK_EQ_PTR(spc_ring_payload(&message->headers[i]), spc_ring_payload(message->headers));
                    check_content(message);
                    spc_ring_mark_read(&message->headers[i]);
                    message->unread &= ~(1u << i);
                }
            }
        }
        for (int i = 0; i < HELD; i++) {
            for (uint32_t j = 0; j < held[i].count && held[i].unread != 0; j++) {
                if (held[i].unread & 1u << j) {
                    check_content(&held[i]);
                    spc_ring_mark_read(&held[i].headers[j]);
                }
            }
        }
        CHECK_EQ_U(spc_ring_used(store.ring), 0);
        free_store(&store);
    }
}

TEST_MAIN()
