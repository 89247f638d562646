/* SPDX-License-Identifier: MIT */
/*
 * spc_failure_text: why a call has failed, for all languages.
 *
 * Pure functions on what the caller has found out. Each writes UTF-8 that follows the call and ": ".
 */
#ifndef SPC_FAILURE_TEXT_H
#define SPC_FAILURE_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "segment/spc_note.h"
#include "segment/spc_status.h"

/* A call that has failed. Ranks are ranks of the run. */
typedef struct spc_failed_call {
    /* In the program's words: "recv(source=ANY, tag=7)", "spcomm_barrier()", "MPI_Bcast". Its name tells what it does:
     * receives, sends, completes a request, or needs all nodes. */
    const char *call;
    int status;
    uint32_t rank; /* this node */
    uint32_t size; /* of the communicator */
    /* SPC_ELOST, SPC_EFINISHED: the node that the call needs, and how it ended; LIVE: closed the communicator. */
    uint32_t culprit;
    spc_node_state_t state;
    int32_t reason;
    bool has_end;
    spc_note_t end;
    int32_t lost_box; /* SPC_EDISCONNECTED: a box, or SPC_STATUS_SERVER */
    /* SPC_ECYCLE: where the cycle, or its receiving, began: ", since coordinated_send() at ring.py:7"; "": unknown */
    const char *since;
} spc_failed_call_t;

void spc_failure_text_write(const spc_failed_call_t *failed, FILE *out);

/* ", at ring.py:12 in step"; nothing if the place is unknown. */
void spc_failure_text_write_place(const spc_note_t *note, FILE *out);

/* A sentence about messages that nearly match what was asked for: their number, and sender and tag of the first.
 * `by_tag`: its tag differs, else its sender. */
void spc_failure_text_write_near(uint32_t count, uint32_t sender, int32_t tag, bool by_tag, FILE *out);

#endif
