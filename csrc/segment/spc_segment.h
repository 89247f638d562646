/* SPDX-License-Identifier: MIT */
/*
 * spc_segment: one piece of shared memory per box, divided into regions.
 *
 * A region is `count` equal parts of `stride` bytes; the segment knows the place of each region, but not its contents.
 * The launcher creates it from a plan (spc_comm_plan makes one) and keeps it; every node attaches to the inherited
 * descriptor. It holds offsets only, never pointers: each process maps it at any address. Ranks that are threads may
 * attach several times in one process. All of it starts as zeros, and every structure in it takes zeros as its start.
 */
#ifndef SPC_SEGMENT_H
#define SPC_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/spc_config.h"

typedef enum spc_region {
    SPC_REGION_PLACE,    /* uint16_t by rank: its box; one part, none in a run of one box */
    SPC_REGION_STATUS,   /* spc_status: one part */
    SPC_REGION_EVENT,    /* spc_event: one part for each node, and one for the gateway */
    SPC_REGION_REDUCE,   /* spc_reduce: banks and lines */
    SPC_REGION_SCRATCH,  /* spc_reduce: one part for each node */
    SPC_REGION_COORDINATED, /* spc_coordinated: one part */
    SPC_REGION_BOARD,    /* spc_board: one part for each node */
    SPC_REGION_NOTE,     /* spc_note: one part for each node */
    SPC_REGION_TRACE,    /* spc_trace: one part for each node; none in a run without a trace */
    SPC_REGION_MAILBOX,  /* spc_mailbox: one part for each receiver */
    SPC_REGION_RING,     /* spc_ring: one part for each sender */
    SPC_REGION_ARENA,    /* spc_arena: one part for each sender */
    SPC_REGION_COUNT
} spc_region_t;

typedef struct spc_segment_plan {
    spc_config_t config;
    struct {
        uint64_t stride; /* rounded up to cache lines, or to pages if it is that large */
        uint32_t count;
    } region[SPC_REGION_COUNT];
} spc_segment_plan_t;

typedef struct spc_segment {
    unsigned char *base;
    uint64_t size_bytes;
    const spc_config_t *config; /* in the segment */
} spc_segment_t;

/* Creates the memory and writes its directory. The caller closes the descriptor. */
int spc_segment_create(const spc_segment_plan_t *plan, int *descriptor, uint64_t *size_bytes);

/* Maps it. SPC_EVERSION if another version of spcomm made it; the descriptor may be closed afterwards. */
int spc_segment_attach(spc_segment_t *segment, int descriptor);

void spc_segment_detach(spc_segment_t *segment);

/* The part `index` of a region; NULL if the region is empty. */
void *spc_segment_part(const spc_segment_t *segment, spc_region_t region, uint32_t index);

/* Bytes of one part. */
uint64_t spc_segment_stride(const spc_segment_t *segment, spc_region_t region);

/* The box of a node, and whether it is this one. Written once, before any node attaches. */
uint32_t spc_segment_box(const spc_segment_t *segment, uint32_t rank);
void spc_segment_set_boxes(const spc_segment_t *segment, const uint16_t *box_by_rank);

static inline bool spc_segment_is_here(const spc_segment_t *segment, uint32_t rank) {
    return segment->config->boxes == 1 || spc_segment_box(segment, rank) == segment->config->box;
}

/* Offsets within the segment, for references between processes. */
static inline uint64_t spc_segment_offset(const spc_segment_t *segment, const void *address) {
    return (uint64_t)((const unsigned char *)address - segment->base);
}

static inline void *spc_segment_address(const spc_segment_t *segment, uint64_t offset) {
    return segment->base + offset;
}

#endif
