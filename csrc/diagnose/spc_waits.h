/* SPDX-License-Identifier: MIT */
/*
 * spc_waits: waits of the nodes that are proven to wait for ever, copied from their status boards.
 *
 * For reports (spc_deadlock_report). Private to the caller; 937 bytes a node, and a byte for each pair.
 */
#ifndef SPC_WAITS_H
#define SPC_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/spc_board.h"
#include "segment/spc_segment.h"

/* By rank in the run. */
typedef struct spc_waits {
    uint32_t nodes;
    uint32_t known_count;
    bool *known;
    spc_board_entry_t *entry; /* of those that are known */
    bool *needed; /* nodes of them for each node: see spc_waits_needs */
} spc_waits_t;

/* Nothing is known yet: the caller fills it in. SPC_ENOMEM. */
int spc_waits_create(uint32_t nodes, spc_waits_t *waits);

/* Reads the wait of one node, and by rank the nodes it needs. False: its board was not published all the time. */
bool spc_waits_read_board(const spc_segment_t *segment, uint32_t rank, spc_board_entry_t *entry,
                          bool needed[]);

void spc_waits_free(spc_waits_t *waits);

/* Whether this node waits for that one. For SEND: whether that node keeps messages of this one, beyond its share. */
static inline bool spc_waits_needs(const spc_waits_t *waits, uint32_t rank, uint32_t other) {
    return waits->needed[(uint64_t)rank * waits->nodes + other];
}

#endif
