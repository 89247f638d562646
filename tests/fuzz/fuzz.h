/* SPDX-License-Identifier: MIT */
/*
 * fuzz: shared parts of the fuzz targets. A target is one file, fuzz_<noun>.c, with LLVMFuzzerTestOneInput: it must
 * return for every input, and ends the process by MUST when something is not as it should be. It is linked either with
 * libFuzzer or with corpus.c, which feeds it files.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length_bytes);

#define MUST(condition)                                                               \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                  \
        }                                                                             \
    } while (0)

/* The input, taken from its start; where it has ended, zeros. */
typedef struct input {
    const uint8_t *next;
    size_t left_bytes;
} input_t;

static inline uint8_t input_byte(input_t *input) {
    if (input->left_bytes == 0) {
        return 0;
    }
    input->left_bytes--;
    return *input->next++;
}

/* A small generator of numbers: what differs between two runs over one input. */
static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Memory of exactly this size, so that a sanitizer sees who goes beyond it. */
static inline unsigned char *exactly(const void *bytes, size_t length_bytes) {
    unsigned char *copy = malloc(length_bytes > 0 ? length_bytes : 1);
    MUST(copy != NULL);
    if (length_bytes > 0) {
        memcpy(copy, bytes, length_bytes);
    }
    return copy;
}

#endif
