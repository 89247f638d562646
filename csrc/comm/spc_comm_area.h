/* SPDX-License-Identifier: MIT */
/*
 * spc_comm_area: layout of a communicator's part of shared memory.
 *
 * The communicator of the whole run has regions of the segment. A split communicator has an area: a block of the arena
 * of its first member in this box, sent to all members here, which find its parts by their number alone. If it has
 * members in other boxes, each box has an area of its own, laid out for all members; a table of the members precedes
 * it, for this box's gateway, which stands in for members elsewhere.
 *
 * Pure functions of the configuration; communicators and gateways call them.
 */
#ifndef SPC_COMM_AREA_H
#define SPC_COMM_AREA_H

#include <stdint.h>

#include "base/spc_atomic.h"
#include "segment/spc_segment.h"

/* A communicator's shared memory. For the whole run it is regions of the segment; for a split communicator it is a
 * block of the arena of its first member, which all members hold until they destroy the communicator. */
typedef struct spc_comm_area {
    void *reduce;
    unsigned char *scratch; /* of rank 0; the others follow, a stride apart */
    uint64_t scratch_stride; /* 2 * scratch_bytes, in the segment rounded up */
    uint64_t scratch_bytes;
    void *coordinated;
    _Atomic uint8_t *left; /* by rank: has closed this communicator; NULL for the run's: see spc_status */
} spc_comm_area_t;

/* The whole run's area, in the segment. */
spc_comm_area_t spc_comm_area_of_run(const spc_segment_t *segment);

/* Layout for a communicator of `size` members: the number of bytes, all zero at first, and the place of each part. */
uint64_t spc_comm_area_bytes(const spc_config_t *config, uint32_t size);
spc_comm_area_t spc_comm_area_in(const spc_config_t *config, uint32_t size, unsigned char *memory);

/* Precedes the area of a split communicator with members in several boxes: for the gateways. */
typedef struct spc_comm_table {
    uint32_t size;
    uint32_t generation; /* with the first member it tells communicators of one number apart: spc_numbers.h */
    uint16_t member[]; /* ranks in the run, by rank */
} spc_comm_table_t;

static inline uint32_t spc_comm_table_bytes(uint32_t size) {
    return (uint32_t)spc_round_up(sizeof(spc_comm_table_t) + size * sizeof(uint16_t), 2 * SPC_CACHE_LINE);
}

#endif
