/* SPDX-License-Identifier: MIT */
#include "diagnose/spc_waits.h"

#include <stdlib.h>

#include "base/spc_error.h"
#include "reduce/spc_reduce.h"

bool spc_waits_read_board(const spc_segment_t *segment, uint32_t rank, spc_board_entry_t *entry,
                          bool needed[]) {
    const spc_board_shared_t *board = spc_segment_part(segment, SPC_REGION_BOARD, rank);
    const uint32_t nodes = segment->config->nodes;
    uint32_t stuck = spc_board_stuck(board);
    if (!spc_board_is_stuck(stuck) || !spc_board_read(board, stuck, entry)) {
        return false;
    }
    const spc_reduce_line_shared_t *lines = spc_segment_address(segment, entry->lines_offset);
    for (uint32_t other = 0; other < nodes; other++) {
        spc_board_pair_t pair = spc_board_read_pair(board, other);
        needed[other] = entry->kind == SPC_BOARD_SEND ? pair.lent != 0 : pair.needed != 0;
        if (spc_board_is_phase(entry) && pair.needed != 0 && pair.needed <= nodes) {
            needed[other] = !spc_reduce_line_arrived(&lines[pair.needed - 1], entry->phase);
        }
    }
    return spc_board_stuck(board) == stuck;
}

int spc_waits_create(uint32_t nodes, spc_waits_t *waits) {
    *waits = (spc_waits_t){.nodes = nodes,
                           .known = calloc(nodes, sizeof *waits->known),
                           .entry = calloc(nodes, sizeof *waits->entry),
                           .needed = calloc((uint64_t)nodes * nodes, sizeof *waits->needed)};
    if (waits->known == NULL || waits->entry == NULL || waits->needed == NULL) {
        spc_waits_free(waits);
        return SPC_ENOMEM;
    }
    return SPC_OK;
}

void spc_waits_free(spc_waits_t *waits) {
    free(waits->known);
    free(waits->entry);
    free(waits->needed);
}
