/* SPDX-License-Identifier: MIT */
/* The sum of frames: published values, and three ways to make it (bit by bit, by table, by instruction) that agree. */
#include "check.h"

#include "net/wire/spc_crc32c.h"

typedef uint32_t sum_t(uint32_t sum, const void *bytes, size_t length_bytes);

static sum_t *const SUMS[] = {spc_crc32c, spc_crc32c_by_table};
enum { WAYS = 2, LONGEST = 600 };

/* The definition: a remainder, one bit at a time. */
static uint32_t by_bits(uint32_t sum, const void *bytes, size_t length_bytes) {
    const unsigned char *next = bytes;
    sum = ~sum;
    while (length_bytes-- > 0) {
        sum ^= *next++;
        for (int bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78u : 0);
        }
    }
    return ~sum;
}

static void fill(unsigned char *bytes, size_t length_bytes, uint64_t *random) {
    for (size_t i = 0; i < length_bytes; i++) {
        bytes[i] = (unsigned char)check_random(random);
    }
}

/* The check value of the catalogues, and the examples of RFC 3720, appendix B.4. */
TEST(published_values) {
    unsigned char zeros[32] = {0}, ones[32], up[32], down[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (unsigned char)i;
        down[i] = (unsigned char)(31 - i);
    }
    for (int way = 0; way < WAYS; way++) {
        CHECK_EQ_U(SUMS[way](0, "123456789", 9), 0xe3069283u);
        CHECK_EQ_U(SUMS[way](0, zeros, 32), 0x8a9136aau);
        CHECK_EQ_U(SUMS[way](0, ones, 32), 0x62a8ab43u);
        CHECK_EQ_U(SUMS[way](0, up, 32), 0x46dd794eu);
        CHECK_EQ_U(SUMS[way](0, down, 32), 0x113fdb5cu);
        CHECK_EQ_U(SUMS[way](0, NULL, 0), 0);
        CHECK_EQ_U(SUMS[way](77, NULL, 0), 77);
    }
}

/* All lengths, at all alignments. */
TEST(every_length_and_alignment) {
    unsigned char bytes[LONGEST + 16];
    uint64_t random = check_seed();
    fill(bytes, sizeof bytes, &random);
    for (size_t length = 0; length <= LONGEST; length += length < 80 ? 1 : 13) {
        for (size_t at = 0; at < 16; at++) {
            uint32_t start = (uint32_t)check_random(&random), expected = by_bits(start, bytes + at, length);
            for (int way = 0; way < WAYS; way++) {
                CHECK_EQ_U(SUMS[way](start, bytes + at, length), expected);
            }
        }
    }
}

/* One byte that is not zero, before so many zeros: every entry of the table. */
TEST(every_byte_at_every_place) {
    for (size_t place = 0; place < 16; place++) {
        for (int value = 0; value < 256; value++) {
            unsigned char bytes[16] = {0};
            bytes[place] = (unsigned char)value;
            for (int way = 0; way < WAYS; way++) {
                CHECK_EQ_U(SUMS[way](0, bytes, 16), by_bits(0, bytes, 16));
            }
        }
    }
}

TEST(made_of_pieces) {
    unsigned char bytes[LONGEST];
    uint64_t random = check_seed();
    fill(bytes, sizeof bytes, &random);
    const uint32_t whole = by_bits(0, bytes, LONGEST);
    for (size_t cut = 0; cut <= LONGEST; cut++) {
        for (int way = 0; way < WAYS; way++) {
            CHECK_EQ_U(SUMS[way](SUMS[way](0, bytes, cut), bytes + cut, LONGEST - cut), whole);
        }
    }
}

/* Long enough for whatever a fast way does with long inputs: at random, and around the multiples of its lanes. */
TEST(long_ones) {
    enum { MOST = 1 << 18 };
    unsigned char *bytes = malloc(MOST + 8);
    uint64_t random = check_seed();
    CHECK(bytes != NULL);
    fill(bytes, MOST + 8, &random);
    for (size_t length = MOST; length > 512; length -= length / 3 + check_below(&random, 50)) {
        size_t at = check_below(&random, 8);
        uint32_t start = (uint32_t)check_random(&random), expected = by_bits(start, bytes + at, length);
        for (int way = 0; way < WAYS; way++) {
            CHECK_EQ_U(SUMS[way](start, bytes + at, length), expected);
        }
    }
    for (size_t length = 1024; length <= 12 * 1024; length += 1024) {
        for (size_t more = 0; more <= 18; more++) {
            uint32_t expected = by_bits(5, bytes, length - 9 + more);
            for (int way = 0; way < WAYS; way++) {
                CHECK_EQ_U(SUMS[way](5, bytes, length - 9 + more), expected);
            }
        }
    }
    free(bytes);
}

TEST_MAIN()
