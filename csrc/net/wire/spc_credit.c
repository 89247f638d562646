/* SPDX-License-Identifier: MIT */
#include "net/wire/spc_credit.h"

#include "net/wire/spc_frame.h"
#include "segment/spc_config.h"

_Static_assert(SPC_CREDIT_FRAME_COST >= SPC_FRAME_HEADER_BYTES + 8,
               "a frame never takes more than its credit");

/* All nodes together, from all boxes: the most that the server may have to keep if no box reads. */
#define RUN_BYTES (UINT64_C(32) << 20)
#define RUN_WINDOW_LEAST (UINT64_C(8) << 10)
/* The nodes of one box, from all others: with other traffic beside it, 16 MiB. */
#define BOX_BYTES (UINT64_C(12) << 20)
/* 961 nodes in one box and one in each of 63 others is the worst: 60543 windows, 59 MiB. */
#define BOX_WINDOW_LEAST (UINT64_C(1) << 10)
#define WINDOW_MOST (UINT64_C(1) << 20)

static uint64_t largest(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t smallest(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* `most`: the number of nodes in the box that has most. */
static spc_credit_t choose(uint32_t nodes, uint32_t boxes, uint32_t most) {
    const uint64_t pairs = (uint64_t)nodes * (boxes - 1);
    const uint64_t towards = (uint64_t)most * (boxes - 1);
    const uint64_t of_run = largest(RUN_BYTES / pairs, RUN_WINDOW_LEAST);
    const uint64_t of_box = largest(BOX_BYTES / towards, BOX_WINDOW_LEAST);
    const uint64_t window = smallest(smallest(of_run, of_box), WINDOW_MOST);
    const uint64_t kept = largest(window * towards, BOX_BYTES);
    return (spc_credit_t){.window = window, .kept = kept + SPC_CREDIT_BESIDE_BYTES};
}

spc_credit_t spc_credit_of_map(const uint16_t *box_of_rank, uint32_t nodes, uint32_t boxes) {
    uint32_t count[SPC_BOXES_MAX] = {0};
    uint32_t most = 1;
    for (uint32_t rank = 0; rank < nodes; rank++) {
        most = (uint32_t)largest(most, ++count[box_of_rank[rank]]);
    }
    return choose(nodes, boxes, most);
}
