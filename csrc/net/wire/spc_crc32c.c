/* SPDX-License-Identifier: MIT */
#include "net/wire/spc_crc32c.h"

#include <stdbool.h>
#include <string.h>

/* ---- by table: eight bytes at a time
 *
 * TABLE[k][i] is what byte i leaves behind k more zero bytes. That is linear in the bits of i, so the eight values for
 * single bits make a slice of 256: from bit 7 of slice 0 (the polynomial itself) down to bit 0, on to the next slice,
 * each value is the one before, shifted by one more bit. */

#define ENTRY(i, a, b, c, d, e, f, g, h)                                                       \
    (((i) & 1 ? (a) : 0u) ^ ((i) & 2 ? (b) : 0u) ^ ((i) & 4 ? (c) : 0u) ^ ((i) & 8 ? (d) : 0u) \
     ^ ((i) & 16 ? (e) : 0u) ^ ((i) & 32 ? (f) : 0u) ^ ((i) & 64 ? (g) : 0u) ^ ((i) & 128 ? (h) : 0u))
#define ENTRIES_4(i, ...)                                                            \
    ENTRY(i, __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__), \
        ENTRY((i) + 3, __VA_ARGS__)
#define ENTRIES_16(i, ...)                                                                       \
    ENTRIES_4(i, __VA_ARGS__), ENTRIES_4((i) + 4, __VA_ARGS__), ENTRIES_4((i) + 8, __VA_ARGS__), \
        ENTRIES_4((i) + 12, __VA_ARGS__)
#define ENTRIES_64(i, ...)                                                                            \
    ENTRIES_16(i, __VA_ARGS__), ENTRIES_16((i) + 16, __VA_ARGS__), ENTRIES_16((i) + 32, __VA_ARGS__), \
        ENTRIES_16((i) + 48, __VA_ARGS__)
#define SLICE(...)                                                                          \
    {ENTRIES_64(0, __VA_ARGS__), ENTRIES_64(64, __VA_ARGS__), ENTRIES_64(128, __VA_ARGS__), \
     ENTRIES_64(192, __VA_ARGS__)}

/* clang-format off */
static const uint32_t TABLE[8][256] = {
    SLICE(0xf26b8303u, 0xe13b70f7u, 0xc79a971fu, 0x8ad958cfu, 0x105ec76fu, 0x20bd8edeu, 0x417b1dbcu, 0x82f63b78u),
    SLICE(0x13a29877u, 0x274530eeu, 0x4e8a61dcu, 0x9d14c3b8u, 0x3fc5f181u, 0x7f8be302u, 0xff17c604u, 0xfbc3faf9u),
    SLICE(0xa541927eu, 0x4f6f520du, 0x9edea41au, 0x38513ec5u, 0x70a27d8au, 0xe144fb14u, 0xc76580d9u, 0x8b277743u),
    SLICE(0xdd45aab8u, 0xbf672381u, 0x7b2231f3u, 0xf64463e6u, 0xe964b13du, 0xd725148bu, 0xaba65fe7u, 0x52a0c93fu),
    SLICE(0x38116facu, 0x7022df58u, 0xe045beb0u, 0xc5670b91u, 0x8f2261d3u, 0x1ba8b557u, 0x37516aaeu, 0x6ea2d55cu),
    SLICE(0xef306b19u, 0xdb8ca0c3u, 0xb2f53777u, 0x6006181fu, 0xc00c303eu, 0x85f4168du, 0x0e045bebu, 0x1c08b7d6u),
    SLICE(0x68032cc8u, 0xd0065990u, 0xa5e0c5d1u, 0x4e2dfd53u, 0x9c5bfaa6u, 0x3d5b83bdu, 0x7ab7077au, 0xf56e0ef4u),
    SLICE(0x493c7d27u, 0x9278fa4eu, 0x211d826du, 0x423b04dau, 0x847609b4u, 0x0d006599u, 0x1a00cb32u, 0x34019664u),
};
/* clang-format on */

static inline uint32_t load_little_32(const unsigned char *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

uint32_t spc_crc32c_by_table(uint32_t sum, const void *bytes, size_t length_bytes) {
    const unsigned char *next = bytes;

    sum = ~sum;
    for (; length_bytes >= 8; length_bytes -= 8, next += 8) {
        uint32_t low = sum ^ load_little_32(next), high = load_little_32(next + 4);
        sum = TABLE[7][low & 0xff] ^ TABLE[6][low >> 8 & 0xff] ^ TABLE[5][low >> 16 & 0xff]
              ^ TABLE[4][low >> 24] ^ TABLE[3][high & 0xff] ^ TABLE[2][high >> 8 & 0xff]
              ^ TABLE[1][high >> 16 & 0xff] ^ TABLE[0][high >> 24];
    }
    for (; length_bytes > 0; length_bytes--) {
        sum = sum >> 8 ^ TABLE[0][(sum ^ *next++) & 0xff];
    }
    return ~sum;
}

/* ---- by the instruction */

#if defined(__x86_64__) && defined(__GNUC__)

#include <nmmintrin.h>
#include <wmmintrin.h>

/* Zig's compiler, a Clang, keeps crc32 apart from sse4.2. */
#if defined(__clang__) && __clang_major__ >= 14
#define WITH_INSTRUCTION __attribute__((target("sse4.2,crc32,pclmul")))
#else
#define WITH_INSTRUCTION __attribute__((target("sse4.2,pclmul")))
#endif
#define STEP_8(sum, word) ((uint32_t)_mm_crc32_u64((sum), (word)))
#define STEP_1(sum, byte) _mm_crc32_u8((sum), (byte))

/* The compiler's own start-up code queries the processor before any code of ours runs. */
static inline bool has_instruction(void) {
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

/* The instruction takes three cycles, and the processor can begin one in each: so three lanes side by side. The sum of
 * a lane is moved past the lanes behind it by a multiplication with a power of x, to which the step itself adds
 * x^33. */
#define LANE_BYTES ((size_t)1024)
#define PAST_ONE_LANE 0x170076fau  /* x^(8 * LANE_BYTES - 33) modulo the polynomial, reflected */
#define PAST_TWO_LANES 0xa51b6135u /* x^(16 * LANE_BYTES - 33) */

WITH_INSTRUCTION static inline uint32_t move_past(uint32_t sum, uint32_t power) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)sum), _mm_cvtsi32_si128((int)power), 0);
    return STEP_8(0, (uint64_t)_mm_cvtsi128_si64(product));
}

#elif defined(__ARM_FEATURE_CRC32) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#include <arm_acle.h>

#define WITH_INSTRUCTION
#define STEP_8(sum, word) __crc32cd((sum), (word))
#define STEP_1(sum, byte) __crc32cb((sum), (byte))

static inline bool has_instruction(void) {
    return true;
}

#endif

#ifdef WITH_INSTRUCTION

static inline uint64_t load_64(const unsigned char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

#ifdef LANE_BYTES

WITH_INSTRUCTION static uint32_t three_lanes(uint32_t sum, const unsigned char *next) {
    uint32_t second = 0, third = 0;
    for (size_t i = 0; i < LANE_BYTES; i += 8) {
        sum = STEP_8(sum, load_64(next + i));
        second = STEP_8(second, load_64(next + LANE_BYTES + i));
        third = STEP_8(third, load_64(next + 2 * LANE_BYTES + i));
    }
    return move_past(sum, PAST_TWO_LANES) ^ move_past(second, PAST_ONE_LANE) ^ third;
}

#endif

WITH_INSTRUCTION static uint32_t by_instruction(uint32_t sum, const unsigned char *next,
                                                size_t length_bytes) {
    sum = ~sum;
#ifdef LANE_BYTES
    for (; length_bytes >= 3 * LANE_BYTES; length_bytes -= 3 * LANE_BYTES, next += 3 * LANE_BYTES) {
        sum = three_lanes(sum, next);
    }
#endif
    for (; length_bytes >= 8; length_bytes -= 8, next += 8) {
        sum = STEP_8(sum, load_64(next));
    }
    for (; length_bytes > 0; length_bytes--) {
        sum = STEP_1(sum, *next++);
    }
    return ~sum;
}

uint32_t spc_crc32c(uint32_t sum, const void *bytes, size_t length_bytes) {
    return has_instruction() ? by_instruction(sum, bytes, length_bytes)
                             : spc_crc32c_by_table(sum, bytes, length_bytes);
}

#else

uint32_t spc_crc32c(uint32_t sum, const void *bytes, size_t length_bytes) {
    return spc_crc32c_by_table(sum, bytes, length_bytes);
}

#endif
