/* SPDX-License-Identifier: MIT */
/*
 * spc_mismatch: the text about a collective operation that not all nodes called alike, for all languages.
 */
#ifndef SPC_MISMATCH_H
#define SPC_MISMATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "reduce/spc_reduce.h"
#include "segment/spc_config.h"
#include "segment/spc_note.h"

/* The call of one node. */
typedef struct spc_called {
    bool is_known;
    uint32_t rank; /* in the run */
    spc_signature_t signature;
    spc_note_t note; /* the call in the program's words, and its line; zeros where they are unknown */
} spc_called_t;

bool spc_mismatch_differs(const spc_called_t *called, uint32_t count);

/* Writes what the nodes called and what they have to do; they differ. `phase`: how many collective calls each node has
 * made before. */
void spc_mismatch_write(const spc_called_t *called, uint32_t count, uint64_t phase, FILE *out);

#endif
