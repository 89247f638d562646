/* SPDX-License-Identifier: MIT */
/* Copies past the cache, at several alignments: the bytes asked for, and no others. */
#include "check.h"

#include <string.h>

#include "base/spc_copy.h"
#include "message/spc_format.h"

enum { GUARD = 64, OFFSETS = 70, STEP = 33 };

static unsigned char *make_source(uint64_t length_bytes) {
    unsigned char *source = malloc(length_bytes);
    CHECK(source != NULL);
    for (uint64_t i = 0; i < length_bytes; i++) {
        source[i] = (unsigned char)(i * 7 + i / 251 + 1);
    }
    return source;
}

/* The bytes around the target stay as they were. */
static void copy_at(const unsigned char *source, unsigned char *target, uint64_t length_bytes, uint32_t from,
                    uint32_t to) {
    unsigned char *start = target + GUARD + to;
    memset(target, 0xee, length_bytes + 2 * GUARD + OFFSETS);
    spc_copy_past(start, source + from, length_bytes);
    CHECK(memcmp(start, source + from, length_bytes) == 0);
    for (uint32_t i = 1; i <= GUARD; i++) {
        CHECK_EQ(start[-(int)i], 0xee);
        CHECK_EQ(start[length_bytes + i - 1], 0xee);
    }
}

static void copy_all(uint64_t length_bytes) {
    unsigned char *source = make_source(length_bytes + OFFSETS);
    unsigned char *target = malloc(length_bytes + 2 * GUARD + OFFSETS);
    CHECK(target != NULL);
    for (uint32_t from = 0; from < OFFSETS; from += STEP) {
        for (uint32_t to = 0; to < OFFSETS; to += STEP) {
            copy_at(source, target, length_bytes, from, to);
        }
    }
    free(source);
    free(target);
}

TEST(lengths_around_the_threshold) {
    for (int more = -1; more <= 130; more += more < 1 ? 1 : 43) {
        copy_all(SPC_COPY_PAST_BYTES + (size_t)more);
    }
}

/* Meta, pieces with a gap, for one receiver and for several. */
TEST(payloads_in_pieces) {
    const uint64_t length = SPC_COPY_PAST_BYTES + 5;
    unsigned char *source = make_source(length), *block = malloc(8 + 3 + length);
    CHECK(block != NULL);
    const spc_extent_t extents[] = {{"gap", 3}, {source, length}};
    const spc_payload_t payload = {
        .meta = "the meta", .meta_bytes = 8, .data_bytes = 3 + length, .extents = extents};
    for (uint32_t receivers = 1; receivers <= 2; receivers++) {
        memset(block, 0, 8 + 3 + length);
        spc_payload_fill(&payload, receivers, block);
        CHECK(memcmp(block, "the metagap", 11) == 0 && memcmp(block + 11, source, length) == 0);
    }
    free(source);
    free(block);
}

TEST_MAIN()
