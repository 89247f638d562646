/* SPDX-License-Identifier: MIT */
/*
 * Reductions in pieces as long as the reducer's scratch memory: by the reducer itself (TREE), whose last arriver
 * combines for all, or by each node for itself out of everybody's scratch (FLAT), which takes one phase and no second
 * copy. They need no other memory, so they always work.
 */
#include <string.h>

#include "collect/spc_collect_private.h"

static uint64_t lesser(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

static const unsigned char *input_at(const spc_collect_t *collect, uint64_t element) {
    return (const unsigned char *)collect->call.input + element * collect->element_bytes;
}

static unsigned char *memory_at(const spc_collect_t *collect, uint64_t element) {
    return (unsigned char *)collect->call.memory + element * collect->element_bytes;
}

static void finish(spc_collect_t *collect) {
    collect->stage = SPC_COLLECT_OVER;
    collect->result = spc_collect_has_result(&collect->call, collect->rank) ? collect->call.memory : NULL;
}

/* ---- TREE ---- */

/* The reducer takes multiples of 8 bytes: the rest of an array goes through the work memory. */
static int reduce_rest(spc_collect_t *collect, const spc_field_t *field, unsigned char *to,
                       uint64_t deadline_ns) {
    const uint64_t bytes = field->count * collect->element_bytes;
    memset(collect->work, 0, 8 * ((bytes + 7) / 8));
    memcpy(collect->work, input_at(collect, collect->done), bytes);
    int status = spc_collect_phase(collect, field, collect->work, spc_fields_bytes(field, 1), collect->work,
                                   deadline_ns);
    if (status == SPC_OK && to != NULL) {
        memcpy(to, collect->work, bytes);
    }
    return status;
}

static int reduce_piece(spc_collect_t *collect, uint64_t room, uint64_t deadline_ns) {
    const uint64_t left = collect->call.count - collect->done;
    uint64_t elements = lesser(left, room);
    if (elements * collect->element_bytes % 8 != 0 && elements > SPC_COLLECT_GRAIN) {
        elements -= elements % SPC_COLLECT_GRAIN; /* the rest comes by itself */
    }
    const bool wanted = spc_collect_has_result(&collect->call, collect->rank);
    const spc_field_t field = {collect->call.type, (uint32_t)elements};
    unsigned char *to = wanted ? memory_at(collect, collect->done) : NULL;
    const uint64_t bytes = elements * collect->element_bytes;
    const int status = bytes % 8 != 0 ? reduce_rest(collect, &field, to, deadline_ns)
                                      : spc_collect_phase(collect, &field, input_at(collect, collect->done),
                                                          bytes, to, deadline_ns);
    collect->done += status == SPC_OK ? elements : 0;
    return status;
}

/* An empty array takes a phase, too: for the comparison. */
int spc_collect_run_tree(spc_collect_t *collect, uint64_t deadline_ns) {
    const uint64_t room = spc_comm_scratch_bytes(collect->comm) / collect->element_bytes;
    int status = SPC_OK;
    do {
        status = reduce_piece(collect, room, deadline_ns);
    } while (status == SPC_OK && collect->done < collect->call.count);
    if (status == SPC_OK) {
        finish(collect);
    }
    return status;
}

/* ---- FLAT ---- */

/* Which of the elements from `first` to `end` this node wants, and what they are made of: the inputs of `sources`
 * nodes. */
typedef struct want {
    uint64_t first;
    uint64_t end;
    uint32_t sources;
} want_t;

static want_t want_of(const spc_collect_t *collect, uint64_t first, uint64_t end) {
    want_t want = {first, end, collect->size};
    uint64_t mine;
    if (!spc_collect_has_result(&collect->call, collect->rank)) {
        want.end = first;
    }
    switch (collect->call.operation) {
    case SPC_OPERATION_ARRAY_REDUCE_SCATTER:
        mine = collect->first + collect->call.counts[collect->rank];
        want.first = first > collect->first ? first : collect->first;
        want.end = lesser(end, mine);
        break;
    case SPC_OPERATION_ARRAY_SCAN:
        want.sources = collect->rank + 1;
        break;
    case SPC_OPERATION_ARRAY_EXSCAN:
        want.sources = collect->rank;
        break;
    default:
        break;
    }
    return want;
}

/* Out of everybody's scratch, which begins with element collect->done. */
static void combine_piece(spc_collect_t *collect, uint64_t elements) {
    const want_t want = want_of(collect, collect->done, collect->done + elements);
    for (uint64_t at = want.first; at < want.end; at += collect->tile) {
        for (uint32_t rank = 0; rank < want.sources; rank++) {
            uint64_t bytes;
            spc_comm_contribution(collect->comm, rank, &collect->sources[rank], &bytes);
            collect->sources[rank] =
                (const unsigned char *)collect->sources[rank] + (at - collect->done) * collect->element_bytes;
        }
        spc_collect_combine(collect, want.sources, lesser(want.end - at, collect->tile),
                            memory_at(collect, at - collect->first));
    }
}

int spc_collect_run_flat(spc_collect_t *collect, uint64_t deadline_ns) {
    const uint64_t room = spc_comm_scratch_bytes(collect->comm) / collect->element_bytes;
    do {
        const uint64_t elements = lesser(collect->call.count - collect->done, room);
        const int status = spc_collect_phase(collect, NULL, input_at(collect, collect->done),
                                             elements * collect->element_bytes, NULL, deadline_ns);
        if (status != SPC_OK) {
            return status;
        }
        combine_piece(collect, elements);
        collect->done += elements;
    } while (collect->done < collect->call.count);
    finish(collect);
    return SPC_OK;
}
