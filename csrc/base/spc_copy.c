/* SPDX-License-Identifier: MIT */
#include "base/spc_copy.h"

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__

#include <emmintrin.h>

#define LINE 64

/* `to` is a multiple of LINE. */
static inline void stream_line(unsigned char *to, const unsigned char *from) {
    __m128i part[LINE / 16];
    for (int i = 0; i < LINE / 16; i++) {
        part[i] = _mm_loadu_si128((const __m128i *)from + i);
    }
    for (int i = 0; i < LINE / 16; i++) {
        _mm_stream_si128((__m128i *)to + i, part[i]);
    }
}

static void stream(unsigned char *to, const unsigned char *from, size_t length_bytes) {
    size_t head = (LINE - (uintptr_t)to % LINE) % LINE;
    memcpy(to, from, head);
    for (to += head, from += head, length_bytes -= head; length_bytes >= LINE; length_bytes -= LINE) {
        stream_line(to, from);
        to += LINE;
        from += LINE;
    }
    memcpy(to, from, length_bytes);
    _mm_sfence(); /* such stores are not ordered with later ones: a release would not cover them */
}

void *spc_copy_past(void *to, const void *from, size_t length_bytes) {
    if (length_bytes < SPC_COPY_PAST_BYTES) {
        return memcpy(to, from, length_bytes);
    }
    stream(to, from, length_bytes);
    return to;
}

#else

void *spc_copy_past(void *to, const void *from, size_t length_bytes) {
    return memcpy(to, from, length_bytes);
}

#endif
