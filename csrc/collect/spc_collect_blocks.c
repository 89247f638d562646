/* SPDX-License-Identifier: MIT */
/*
 * What the nodes show each other. A node that wants a result into which others write, or whose input lies outside the
 * segment, takes one block for both: node i reads element e of all inputs before it writes element e of any result, and
 * nobody else reads or writes e. So a copy of an input becomes the result in place, and is in a cache when it does.
 */
#include <string.h>

#include "collect/spc_collect_private.h"

/* The input, without what lies from `kept` to `kept_end`. */
static void copy_input(const spc_collect_t *collect, unsigned char *to, uint64_t kept, uint64_t kept_end) {
    const unsigned char *from = collect->call.input;
    const uint64_t before = kept * collect->element_bytes;
    const uint64_t behind = kept_end * collect->element_bytes;
    if (before != 0) {
        memcpy(to, from, before);
    }
    if (behind < collect->bytes) {
        memcpy(to + behind, from + behind, collect->bytes - behind);
    }
}

void spc_collect_prepare(spc_collect_t *collect, bool wants_result, uint64_t kept, uint64_t kept_end) {
    spc_collect_place_shared_t *mine = &collect->places[collect->rank];
    *mine = (spc_collect_place_shared_t){.has_room = 1};
    collect->input_is_copied =
        !spc_comm_offset(collect->comm, collect->call.input, collect->bytes, &mine->input);
    if (!collect->input_is_copied && !wants_result) {
        return;
    }
    if (spc_comm_take_block(collect->comm, collect->bytes, &collect->block) != SPC_OK) {
        collect->block = NULL;
        mine->has_room = 0;
        return;
    }
    unsigned char *payload = spc_block_payload(collect->block);
    uint64_t payload_offset = 0;
    (void)spc_comm_offset(collect->comm, payload, collect->bytes, &payload_offset);
    if (collect->input_is_copied) {
        mine->input = payload_offset;
        copy_input(collect, payload, kept, kept_end);
    }
    if (wants_result) {
        mine->result = payload_offset;
        (void)spc_comm_offset(collect->comm, collect->block, 0, &mine->block);
        spc_comm_share_block(collect->comm, collect->block);
        collect->is_shared = true;
    }
}

/* Nobody has touched anything: the block is still this node's alone, whatever was said of it. */
static void drop_untouched(spc_collect_t *collect) {
    if (collect->is_shared) {
        spc_comm_unshare_block(collect->comm, collect->block);
        collect->is_shared = false;
    }
    if (collect->block != NULL) {
        spc_comm_release_block(collect->comm, collect->block);
        collect->block = NULL;
    }
}

int spc_collect_show(spc_collect_t *collect, uint64_t deadline_ns) {
    const spc_collect_place_shared_t mine = collect->places[collect->rank];
    int status = spc_collect_phase(collect, NULL, &mine, sizeof(mine), NULL, deadline_ns);
    bool room = true;
    if (status == SPC_EMISMATCH || status == SPC_ELOST || status == SPC_EFINISHED) {
        drop_untouched(collect); /* and nobody ever will: this phase does not come about */
        collect->stage = SPC_COLLECT_START;
    }
    if (status != SPC_OK) {
        return status;
    }
    for (uint32_t rank = 0; rank < collect->size; rank++) {
        const void *shown;
        uint64_t bytes;
        spc_comm_contribution(collect->comm, rank, &shown, &bytes);
        memcpy(&collect->places[rank], shown, sizeof(mine));
        room = room && collect->places[rank].has_room != 0;
    }
    if (!room) {
        drop_untouched(collect);
        collect->stage = SPC_COLLECT_OVER;
        return SPC_ENOMEM;
    }
    collect->stage = SPC_COLLECT_WORKING;
    return SPC_OK;
}

int spc_collect_end(spc_collect_t *collect, uint64_t deadline_ns) {
    int status = spc_collect_phase(collect, NULL, NULL, 0, NULL, deadline_ns);
    if (status != SPC_OK) {
        return status;
    }
    collect->stage = SPC_COLLECT_OVER;
    const bool is_result = collect->is_shared && spc_collect_has_result(&collect->call, collect->rank);
    if (collect->is_shared) {
        spc_comm_unshare_block(collect->comm, collect->block);
        collect->is_shared = false;
    }
    if (is_result) {
        collect->result = spc_block_payload(collect->block);
    } else if (collect->block != NULL) {
        spc_comm_release_block(collect->comm, collect->block);
        collect->block = NULL;
    }
    return SPC_OK;
}

/* From stage WORKING on others hold this node's block, and this node theirs. Each lets go of them when it does nothing
 * there any more, and whoever is the last gives the block back. In stage SHOWING the others' are not known; who leaves
 * an operation there, and lives, makes all others wait for it anyway. */
void spc_collect_drop(spc_collect_t *collect) {
    const bool knows_others = collect->stage == SPC_COLLECT_WORKING || collect->stage == SPC_COLLECT_ENDING;
    for (uint32_t rank = 0; knows_others && rank < collect->size; rank++) {
        if (rank != collect->rank && collect->places[rank].result != 0) {
            spc_comm_release_block(collect->comm,
                                   spc_comm_address(collect->comm, collect->places[rank].block));
        }
    }
    if (collect->block != NULL) {
        spc_comm_release_block(collect->comm, collect->block);
        collect->block = NULL;
    }
}

const void *spc_collect_input_of(const spc_collect_t *collect, uint32_t rank, uint64_t element) {
    const uint64_t at = element * collect->element_bytes;
    return (const unsigned char *)spc_comm_address(collect->comm, collect->places[rank].input) + at;
}

void *spc_collect_result_of(const spc_collect_t *collect, uint32_t rank, uint64_t element) {
    const uint64_t at = element * collect->element_bytes;
    return (unsigned char *)spc_comm_address(collect->comm, collect->places[rank].result) + at;
}
