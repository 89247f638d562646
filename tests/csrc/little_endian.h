/* SPDX-License-Identifier: MIT */
/* little_endian: numbers as bodies of frames have them, on every machine. */
#ifndef LITTLE_ENDIAN_H
#define LITTLE_ENDIAN_H

#include <stdint.h>

static inline void put_u64(unsigned char *at, uint64_t value) {
    for (int i = 0; i < 8; i++) {
        at[i] = (unsigned char)(value >> 8 * i);
    }
}

static inline uint64_t get_u64(const unsigned char *at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

#endif
