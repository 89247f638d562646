/* SPDX-License-Identifier: MIT */
#include "base/spc_copy.h"

#ifdef __SSE2__

#include <emmintrin.h>
#include <stdbool.h>

#define LINE 64

/* `to` is a multiple of LINE. */
static inline void copy_line(unsigned char *to, const unsigned char *from, bool past) {
    __m128i part[LINE / 16];
    for (int i = 0; i < LINE / 16; i++) {
        part[i] = _mm_loadu_si128((const __m128i *)from + i);
    }
    for (int i = 0; i < LINE / 16; i++) {
        if (past) {
            _mm_stream_si128((__m128i *)to + i, part[i]);
        } else {
            _mm_store_si128((__m128i *)to + i, part[i]);
        }
    }
}

static inline void copy_lines(unsigned char *to, const unsigned char *from, uint64_t length_bytes,
                              bool past) {
    uint64_t head = (LINE - (uintptr_t)to % LINE) % LINE;
    head = head < length_bytes ? head : length_bytes;
    memcpy(to, from, head);
    for (to += head, from += head, length_bytes -= head; length_bytes >= LINE; length_bytes -= LINE) {
        copy_line(to, from, past);
        to += LINE;
        from += LINE;
    }
    memcpy(to, from, length_bytes);
}

void spc_copy_long(void *to, const void *from, uint64_t length_bytes) {
    copy_lines(to, from, length_bytes, false);
}

void spc_copy_uncached(void *to, const void *from, uint64_t length_bytes) {
    copy_lines(to, from, length_bytes, true);
    _mm_sfence(); /* such stores are in no order with later ones: without this a release would not cover them */
}

#else

void spc_copy_long(void *to, const void *from, uint64_t length_bytes) {
    memcpy(to, from, length_bytes);
}

void spc_copy_uncached(void *to, const void *from, uint64_t length_bytes) {
    memcpy(to, from, length_bytes);
}

#endif
