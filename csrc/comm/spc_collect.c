/* SPDX-License-Identifier: MIT */
#include "comm/spc_collect.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_atomic.h"
#include "reduce/spc_tree.h"

/* ---- a call, and a phase of it */

/* Arrays are divided at multiples of this many elements: no two nodes write to one cache line. */
#define SPC_COLLECT_GRAIN 64

/* A tile is combined while it is in a core's own cache; all tiles under way, and the halves made of them, have to
 * fit. */
#define SPC_COLLECT_TILE_BYTES UINT64_C(32768)
#define SPC_COLLECT_WORK_BYTES (4 * SPC_COLLECT_TILE_BYTES)

/* A node's memory, as published to the others in its scratch. */
typedef struct spc_collect_place {
    uint64_t input; /* offset of its input; of a copy without the elements that only it reads */
    uint64_t result; /* offset of the place where others may write; 0: nowhere */
    uint64_t block; /* offset of the block with that place */
    uint64_t has_room; /* 1, or 0: it has no memory to show */
} spc_collect_place_shared_t;

_Static_assert(sizeof(spc_collect_place_shared_t) == 32, "spc_collect_place_shared_t lies in shared memory");

typedef enum spc_collect_stage {
    SPC_COLLECT_START,
    SPC_COLLECT_SHOWING, /* blocks are taken and filled; waits until all nodes have shown theirs */
    SPC_COLLECT_WORKING,
    SPC_COLLECT_ENDING, /* this node's work is done, waits for the others' */
    SPC_COLLECT_OVER
} spc_collect_stage_t;

struct spc_collect {
    spc_comm_t *comm;
    spc_collect_call_t call; /* DEFAULT is resolved */
    spc_signature_t signature;
    uint64_t hash;
    uint32_t rank;
    uint32_t size;
    uint64_t element_bytes;
    uint64_t bytes; /* of the input */
    uint64_t first; /* of REDUCE_SCATTER: this node's first element */
    spc_collect_stage_t stage;
    uint32_t step; /* number of phases that are over */
    uint64_t done; /* TREE and FLAT: elements; BINARY_SWAP: rounds */
    void *result; /* NULL: none yet */
    spc_block_shared_t *block; /* of this node, or NULL */
    bool input_is_copied; /* copy the input into the block: others read it there */
    bool is_shared; /* all nodes have a pin in the block */
    uint64_t tile; /* elements */
    unsigned char *work; /* memory for partial results: SPC_COLLECT_WORK_BYTES */
    const void **sources; /* room for one per node */
    void **targets; /* the same */
    spc_collect_place_shared_t *places; /* by rank, once stage is WORKING */
};

static inline bool is_prefix(const spc_collect_call_t *call) {
    return call->operation == SPC_OPERATION_ARRAY_SCAN || call->operation == SPC_OPERATION_ARRAY_EXSCAN;
}

/* Takes part in the next phase of the operation: with a field, the phase combines the values; without one, they may be
 * read by spc_comm_contribution until the next phase. */
static int run_phase(spc_collect_t *collect, const spc_field_t *field, const void *value, uint64_t bytes,
                     void *result, uint64_t deadline_ns) {
    spc_signature_t signature = collect->signature;
    signature.layout = spc_layout_of(collect->call.kind, collect->hash, collect->step);
    signature.field_count = field != NULL;
    const int status =
        spc_comm_collective(collect->comm, &signature, field, value, bytes, result, deadline_ns);
    collect->step += status == SPC_OK;
    return status;
}

bool spc_collect_has_result(const spc_collect_call_t *call, uint32_t rank) {
    switch (call->operation) {
    case SPC_OPERATION_ARRAY_REDUCE:
        return rank == call->root;
    case SPC_OPERATION_ARRAY_EXSCAN:
        return rank != 0;
    default:
        return true;
    }
}

/* ---- the same elements of several nodes, combined along the tree */

static void start(spc_tree_stack_t *stack, const spc_collect_t *collect, const spc_field_t *field) {
    spc_tree_start(stack, collect->call.operator, field, 1, collect->work,
                   collect->tile * collect->element_bytes);
}

/* As spc_tree_finish_to, also of one value. */
static void finish_to(spc_tree_stack_t *stack, const spc_collect_t *collect, void *to) {
    if (stack->count > 1) {
        spc_tree_finish_to(stack, to);
        return;
    }
    if (to != stack->value[0]) {
        memcpy(to, stack->value[0], stack->fields->count * collect->element_bytes);
    }
    spc_ops_alone(stack->operator, stack->fields, 1, to);
}

/* Combines sources[0 … count - 1] along the tree into `to`, which may be one of them. The last source waits for the
 * end, so that the combinations which write to `to` come last, and only the first of these reads sources. */
static void combine_sources(const spc_collect_t *collect, uint32_t count, uint64_t elements, void *to) {
    const spc_field_t field = {collect->call.type, (uint32_t)elements};
    spc_tree_stack_t stack;
    start(&stack, collect, &field);
    for (uint32_t i = 0; i + 1 < count; i++) {
        spc_tree_push(&stack, i, collect->sources[i]);
    }
    stack.value[stack.count++] = collect->sources[count - 1];
    finish_to(&stack, collect, to);
}

/* targets[i] = the combination of sources[0 … i], or without i itself; a target may be the source of the same number,
 * and is NULL where no node wants it. */
static void make_prefixes(const spc_collect_t *collect, uint64_t elements) {
    const bool without_own = collect->call.operation == SPC_OPERATION_ARRAY_EXSCAN;
    const spc_field_t field = {collect->call.type, (uint32_t)elements};
    spc_tree_stack_t stack;
    start(&stack, collect, &field);
    for (uint32_t i = 0; i < collect->size; i++) {
        void *leaf = spc_tree_slot(&stack); /* a copy, because its place may be the target */
        memcpy(leaf, collect->sources[i], elements * collect->element_bytes);
        if (without_own && i > 0 && collect->targets[i] != NULL) {
            finish_to(&stack, collect, collect->targets[i]);
        }
        spc_tree_push(&stack, i, leaf);
        if (!without_own && collect->targets[i] != NULL) {
            finish_to(&stack, collect, collect->targets[i]);
        }
    }
}

/* ---- blocks that the nodes show each other */

/*
 * A node takes one block for both result and input if others write into the result, or if the input lies outside the
 * segment: node i reads element e of all inputs before it writes element e of any result, and no other node reads or
 * writes e. So a copy of an input becomes the result in place, while it is in a cache.
 */

/* Copies the input, except for the elements from `kept` to `kept_end`. */
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

/* Takes a block if it needs one: for a result, or for an input that lies elsewhere. Others will write to it if
 * `is_shared`. Elements from `kept` to `kept_end` of the input are not copied. */
static void prepare_block(spc_collect_t *collect, bool wants_result, uint64_t kept, uint64_t kept_end) {
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

/* No other node has touched it: the block is still this node's alone, even if it was shown. */
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

/* Shows this node's place and learns the places of the others. SPC_ENOMEM: some node has no room, and all learn it. */
static int show_place(spc_collect_t *collect, uint64_t deadline_ns) {
    const spc_collect_place_shared_t mine = collect->places[collect->rank];
    int status = run_phase(collect, NULL, &mine, sizeof(mine), NULL, deadline_ns);
    bool room = true;
    if (status == SPC_EMISMATCH || status == SPC_ELOST || status == SPC_EFINISHED) {
        drop_untouched(collect); /* and no node ever will: this phase never completes */
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

/* Waits until all nodes have done their work; then blocks are their owners' alone. */
static int finish_work(spc_collect_t *collect, uint64_t deadline_ns) {
    int status = run_phase(collect, NULL, NULL, 0, NULL, deadline_ns);
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

/* Gives its blocks back. From stage WORKING on others hold this node's block, and this node theirs. Each node releases
 * a block when it no longer uses it, and the last one gives it back. In stage SHOWING the others' blocks are not known;
 * a live node that leaves an operation there makes all others wait for it anyway. */
static void drop_blocks(spc_collect_t *collect) {
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

/* Element `element` of the memory that `rank` shows. */
static const void *input_of(const spc_collect_t *collect, uint32_t rank, uint64_t element) {
    const uint64_t at = element * collect->element_bytes;
    return (const unsigned char *)spc_comm_address(collect->comm, collect->places[rank].input) + at;
}

static void *result_of(const spc_collect_t *collect, uint32_t rank, uint64_t element) {
    const uint64_t at = element * collect->element_bytes;
    return (unsigned char *)spc_comm_address(collect->comm, collect->places[rank].result) + at;
}

/* ---- pieces, through the scratch memory of the reducer */

/*
 * Reductions in pieces as long as the reducer's scratch memory: by the reducer itself (TREE), whose last arriver
 * combines for all, or by each node for itself out of all nodes' scratch (FLAT), which takes one phase and no second
 * copy. They need no other memory, so they always work.
 */

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

/* ---- the algorithms: each continues at `stage`, `step` and `done` */

/* ---- TREE */

/* The reducer takes multiples of 8 bytes: the rest of an array goes through the work memory. */
static int reduce_rest(spc_collect_t *collect, const spc_field_t *field, unsigned char *to,
                       uint64_t deadline_ns) {
    const uint64_t bytes = field->count * collect->element_bytes;
    memset(collect->work, 0, 8 * ((bytes + 7) / 8));
    memcpy(collect->work, input_at(collect, collect->done), bytes);
    int status =
        run_phase(collect, field, collect->work, spc_fields_bytes(field, 1), collect->work, deadline_ns);
    if (status == SPC_OK && to != NULL) {
        memcpy(to, collect->work, bytes);
    }
    return status;
}

static int reduce_piece(spc_collect_t *collect, uint64_t room, uint64_t deadline_ns) {
    const uint64_t left = collect->call.count - collect->done;
    uint64_t elements = lesser(left, room);
    if (elements * collect->element_bytes % 8 != 0 && elements > SPC_COLLECT_GRAIN) {
        elements -= elements % SPC_COLLECT_GRAIN; /* the rest is a piece by itself */
    }
    const bool wanted = spc_collect_has_result(&collect->call, collect->rank);
    const spc_field_t field = {collect->call.type, (uint32_t)elements};
    unsigned char *to = wanted ? memory_at(collect, collect->done) : NULL;
    const uint64_t bytes = elements * collect->element_bytes;
    const int status =
        bytes % 8 != 0 ? reduce_rest(collect, &field, to, deadline_ns)
                       : run_phase(collect, &field, input_at(collect, collect->done), bytes, to, deadline_ns);
    collect->done += status == SPC_OK ? elements : 0;
    return status;
}

static int run_tree(spc_collect_t *collect, uint64_t deadline_ns) {
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

/* ---- FLAT */

/* Elements from `first` to `end` that this node wants, and their operands: the inputs of `sources` nodes. */
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

/* Combines out of the scratch of all nodes, which begins with element collect->done. */
static void combine_piece(spc_collect_t *collect, uint64_t elements) {
    const want_t want = want_of(collect, collect->done, collect->done + elements);
    for (uint64_t at = want.first; at < want.end; at += collect->tile) {
        for (uint32_t rank = 0; rank < want.sources; rank++) {
            uint64_t bytes;
            spc_comm_contribution(collect->comm, rank, &collect->sources[rank], &bytes);
            collect->sources[rank] =
                (const unsigned char *)collect->sources[rank] + (at - collect->done) * collect->element_bytes;
        }
        combine_sources(collect, want.sources, lesser(want.end - at, collect->tile),
                        memory_at(collect, at - collect->first));
    }
}

static int run_flat(spc_collect_t *collect, uint64_t deadline_ns) {
    const uint64_t room = spc_comm_scratch_bytes(collect->comm) / collect->element_bytes;
    do {
        const uint64_t elements = lesser(collect->call.count - collect->done, room);
        const int status = run_phase(collect, NULL, input_at(collect, collect->done),
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

/* ---- SLICES */

/*
 * Node i combines the i-th part of all inputs, tile by tile, and writes it to all places that want it. Two phases: all
 * inputs are there, all results are there.
 */

typedef struct slice {
    uint64_t first;
    uint64_t end;
} slice_t;

static uint64_t boundary(const spc_collect_t *collect, uint32_t rank) {
    const uint64_t grains = spc_round_up(collect->call.count, SPC_COLLECT_GRAIN) / SPC_COLLECT_GRAIN;
    const uint64_t at = grains / collect->size * rank + grains % collect->size * rank / collect->size;
    return rank == collect->size ? collect->call.count : at * SPC_COLLECT_GRAIN;
}

static slice_t own_slice(const spc_collect_t *collect) {
    if (collect->call.operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER) {
        return (slice_t){collect->first, collect->first + collect->call.counts[collect->rank]};
    }
    return (slice_t){boundary(collect, collect->rank), boundary(collect, collect->rank + 1)};
}

/* Elements that only this node reads are not copied. */
static void find_sources(const spc_collect_t *collect, uint64_t element) {
    for (uint32_t rank = 0; rank < collect->size; rank++) {
        collect->sources[rank] = input_of(collect, rank, element);
    }
    collect->sources[collect->rank] =
        (const unsigned char *)collect->call.input + element * collect->element_bytes;
}

static void combine_tile(spc_collect_t *collect, uint64_t element, uint64_t elements) {
    const uint64_t bytes = elements * collect->element_bytes;
    void *to = (unsigned char *)collect->call.memory + (element - collect->first) * collect->element_bytes;
    uint32_t made_for = collect->rank;
    if (collect->call.operation == SPC_OPERATION_ARRAY_REDUCE) {
        made_for = collect->call.root;
    }
    if (collect->places[made_for].result != 0) {
        to = result_of(collect, made_for, element);
    }
    combine_sources(collect, collect->size, elements, to);
    for (uint32_t rank = 0; rank < collect->size; rank++) {
        if (rank != made_for && collect->places[rank].result != 0) {
            memcpy(result_of(collect, rank, element), to, bytes);
        }
    }
}

static void scan_tile(spc_collect_t *collect, uint64_t element, uint64_t elements) {
    for (uint32_t rank = 0; rank < collect->size; rank++) {
        const bool wanted = collect->places[rank].result != 0;
        collect->targets[rank] = wanted ? result_of(collect, rank, element) : NULL;
    }
    make_prefixes(collect, elements);
}

static void work(spc_collect_t *collect) {
    const slice_t slice = own_slice(collect);
    for (uint64_t at = slice.first; at < slice.end; at += collect->tile) {
        const uint64_t elements = slice.end - at < collect->tile ? slice.end - at : collect->tile;
        find_sources(collect, at);
        (is_prefix(&collect->call) ? scan_tile : combine_tile)(collect, at, elements);
    }
    if (collect->call.operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER) {
        collect->result = collect->call.memory;
    }
}

static int run_slices(spc_collect_t *collect, uint64_t deadline_ns) {
    int status = SPC_OK;
    if (collect->stage == SPC_COLLECT_START) {
        const slice_t slice = own_slice(collect);
        const bool is_scattered = collect->call.operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER;
        prepare_block(collect, !is_scattered && spc_collect_has_result(&collect->call, collect->rank),
                      slice.first, slice.end);
        collect->stage = SPC_COLLECT_SHOWING;
    }
    if (collect->stage == SPC_COLLECT_SHOWING) {
        status = show_place(collect, deadline_ns);
    }
    if (collect->stage == SPC_COLLECT_WORKING && status == SPC_OK) {
        work(collect);
        collect->stage = SPC_COLLECT_ENDING;
    }
    return status != SPC_OK ? status : finish_work(collect, deadline_ns);
}

/* ---- BINARY_SWAP */

/*
 * Binary swap (ACLMPL 4), in the rounds of spc_tree.h. A rank's part is found by halving, bit 0 of the rank first. In a
 * round each node combines what it keeps of its part, and reads its partner's copy of that.
 *
 * A node's part lies in its block. A round writes only the half that this node keeps, while its partner reads the other
 * half. A phase of the communicator separates the rounds. In the last round each finished part goes to all nodes that
 * want it: in the block of node p only p's own part is still read then, by p and its partner, which keep to their own
 * halves.
 */

typedef struct part {
    uint64_t first;
    uint64_t end;
} part_t;

/* The part held by a node whose group has formed in `rounds` rounds, all of them exchanges. */
static part_t part_of(const spc_collect_t *collect, uint32_t rank, uint32_t rounds) {
    part_t part = {0, collect->call.count};
    for (uint32_t k = 0; k < rounds; k++) {
        uint64_t middle = part.first + spc_round_up((part.end - part.first) / 2, SPC_COLLECT_GRAIN);
        middle = middle < part.end ? middle : part.end;
        if ((rank >> k & 1) == 0) {
            part.end = middle;
        } else {
            part.first = middle;
        }
    }
    return part;
}

/* The address of `rank`'s part before `round`: in its block once it has combined there, else in its input. */
static const void *held_by(const spc_collect_t *collect, uint32_t rank, uint32_t round, uint64_t element) {
    for (uint32_t earlier = 0; earlier < round; earlier++) {
        if (spc_tree_turn(rank, earlier, collect->size).role != SPC_TREE_WAITS) {
            return result_of(collect, rank, element);
        }
    }
    if (rank == collect->rank) {
        return (const unsigned char *)collect->call.input + element * collect->element_bytes;
    }
    return input_of(collect, rank, element);
}

static void deliver(const spc_collect_t *collect, part_t part) {
    const uint64_t bytes = (part.end - part.first) * collect->element_bytes;
    const void *from = result_of(collect, collect->rank, part.first);
    for (uint32_t rank = 0; rank < collect->size; rank++) {
        if (rank != collect->rank && spc_collect_has_result(&collect->call, rank) && bytes != 0) {
            memcpy(result_of(collect, rank, part.first), from, bytes);
        }
    }
}

/* A tile is delivered while it is in the cache. */
static void play(spc_collect_t *collect, uint32_t round, bool is_last) {
    const spc_tree_turn_t turn = spc_tree_turn(collect->rank, round, collect->size);
    if (turn.role == SPC_TREE_WAITS) {
        return;
    }
    const part_t part = part_of(collect, collect->rank, turn.role == SPC_TREE_EXCHANGES ? round + 1 : round);
    for (uint64_t at = part.first; at < part.end; at += collect->tile) {
        const uint64_t elements = part.end - at < collect->tile ? part.end - at : collect->tile;
        const void *mine = held_by(collect, collect->rank, round, at);
        const void *other = held_by(collect, turn.partner, round, at);
        collect->sources[0] = turn.is_left ? mine : other;
        collect->sources[1] = turn.is_left ? other : mine;
        combine_sources(collect, 2, elements, result_of(collect, collect->rank, at));
        if (is_last) {
            deliver(collect, (part_t){at, at + elements});
        }
    }
}

/* Other nodes need none of the elements that this node keeps for itself in the first round. */
static void prepare(spc_collect_t *collect) {
    part_t kept = {collect->call.count, collect->call.count};
    if (spc_tree_turn(collect->rank, 0, collect->size).role == SPC_TREE_EXCHANGES) {
        kept = part_of(collect, collect->rank, 1);
    }
    prepare_block(collect, true, kept.first, kept.end);
    collect->stage = SPC_COLLECT_SHOWING;
}

/* The first round follows the phase in which all nodes have shown their inputs; each other round follows a phase of its
 * own, in which all have finished the round before. */
static int play_all(spc_collect_t *collect, uint64_t deadline_ns) {
    const uint32_t rounds = spc_tree_levels(collect->size);
    while (collect->done < rounds) {
        if (collect->done != 0) {
            int status = run_phase(collect, NULL, NULL, 0, NULL, deadline_ns);
            if (status != SPC_OK) {
                return status;
            }
        }
        play(collect, (uint32_t)collect->done, collect->done + 1 == rounds);
        collect->done++;
    }
    collect->stage = SPC_COLLECT_ENDING;
    return SPC_OK;
}

static int run_swap(spc_collect_t *collect, uint64_t deadline_ns) {
    int status = SPC_OK;
    if (collect->stage == SPC_COLLECT_START) {
        prepare(collect);
    }
    if (collect->stage == SPC_COLLECT_SHOWING) {
        status = show_place(collect, deadline_ns);
    }
    if (collect->stage == SPC_COLLECT_WORKING && status == SPC_OK) {
        status = play_all(collect, deadline_ns);
    }
    return status != SPC_OK ? status : finish_work(collect, deadline_ns);
}

/* ---- choice of the algorithm */

/* Measured crossovers, in bytes of a node's input: docs/internals/collectives.md has the table. */
enum {
    SLICES_FROM_BYTES_A_NODE = 8192, /* against TREE: its two phases take as many turns as there are nodes */
    SLICES_FROM_BYTES = 65536, /* the latest crossover: the length of the reducer's scratch memory */
    SCATTERED_SLICES_FROM_BYTES = 16384, /* against FLAT, without TREE */
};

static bool may_combine_at_once(const spc_collect_call_t *call) {
    return call->operation == SPC_OPERATION_REDUCE || call->operation == SPC_OPERATION_ARRAY_ALLREDUCE
           || call->operation == SPC_OPERATION_ARRAY_REDUCE;
}

static spc_collect_algorithm_t choose_default(uint32_t size, const spc_collect_call_t *call) {
    const uint64_t bytes = call->count * spc_type_size(call->type);
    if (!may_combine_at_once(call)) {
        return bytes < SCATTERED_SLICES_FROM_BYTES ? SPC_COLLECT_FLAT : SPC_COLLECT_SLICES;
    }
    uint64_t from_bytes = (uint64_t)size * SLICES_FROM_BYTES_A_NODE;
    from_bytes = from_bytes < SLICES_FROM_BYTES ? from_bytes : SLICES_FROM_BYTES;
    return bytes < from_bytes ? SPC_COLLECT_TREE : SPC_COLLECT_SLICES;
}

/* Blocks exist for the nodes of one box only. */
static spc_collect_algorithm_t without_blocks(const spc_collect_call_t *call) {
    if (call->algorithm == SPC_COLLECT_FLAT || !may_combine_at_once(call)) {
        return SPC_COLLECT_FLAT;
    }
    return SPC_COLLECT_TREE;
}

/* The algorithm that DEFAULT means for this call; any other stands for itself, but a single node uses FLAT. */
static spc_collect_algorithm_t choose(const spc_comm_t *comm, const spc_collect_call_t *call) {
    if (call->operation == SPC_OPERATION_REDUCE) { /* a phase in which nothing is combined has another name */
        return SPC_COLLECT_TREE;
    }
    if (spc_comm_is_wide(comm)) {
        return without_blocks(call);
    }
    if (call->algorithm != SPC_COLLECT_DEFAULT && spc_comm_size(comm) > 1) {
        return call->algorithm;
    }
    return spc_comm_size(comm) == 1 ? SPC_COLLECT_FLAT : choose_default(spc_comm_size(comm), call);
}

/* ---- choice of the way */

static bool is_short(const spc_comm_t *comm, const spc_collect_call_t *call) {
    const uint64_t bytes = call->count * spc_type_size(call->type);
    if (bytes == 0 || bytes % 8 != 0 || bytes > spc_comm_scratch_bytes(comm) || !may_combine_at_once(call)
        || call->algorithm != SPC_COLLECT_DEFAULT) {
        return false;
    }
    return spc_comm_size(comm) == 1 || choose(comm, call) == SPC_COLLECT_TREE;
}

static spc_collect_combiner_t choose_combiner(const spc_comm_t *comm, const spc_collect_call_t *call) {
    if (call->kind != 0 && call->kind != SPC_KIND_ARRAY) {
        const bool is_known =
            call->operator == SPC_SUM || call->operator == SPC_MIN || call->operator == SPC_MAX;
        return is_known && may_combine_at_once(call) && call->algorithm == SPC_COLLECT_DEFAULT
                   ? SPC_COLLECT_AT_ONCE
                   : SPC_COLLECT_BY_CALLER;
    }
    if (call->type == SPC_TYPE_NONE || !spc_ops_has(call->operator, call->type)) {
        return SPC_COLLECT_BY_CALLER;
    }
    return is_short(comm, call) ? SPC_COLLECT_AT_ONCE : SPC_COLLECT_BY_CORE;
}

/* By gatherings, which no scratch memory limits. */
static spc_collect_algorithm_t choose_rounds(const spc_comm_t *comm, const spc_collect_call_t *call) {
    if (spc_comm_size(comm) == 1 || !may_combine_at_once(call)) {
        return SPC_COLLECT_FLAT;
    }
    if (call->algorithm == SPC_COLLECT_DEFAULT) {
        return call->count < SLICES_FROM_BYTES ? SPC_COLLECT_FLAT : SPC_COLLECT_SLICES;
    }
    const bool is_whole = call->algorithm == SPC_COLLECT_TREE || call->algorithm == SPC_COLLECT_FLAT;
    return is_whole || call->count != 0 ? call->algorithm : SPC_COLLECT_FLAT;
}

spc_collect_way_t spc_collect_way(const spc_comm_t *comm, const spc_collect_call_t *call) {
    return (spc_collect_way_t){choose_combiner(comm, call), choose_rounds(comm, call)};
}

void spc_collect_describe_short(const spc_collect_call_t *call, spc_signature_t *signature,
                                spc_field_t *field) {
    *field = (spc_field_t){call->type, (uint32_t)call->count};
    *signature = (spc_signature_t){
        .operation = (uint8_t)call->operation,
        .operator = (uint8_t)call->operator,
        .root = call->root,
        .type = (uint8_t)call->type,
        .field_count = 1,
        .length_bytes = call->count * spc_type_size(call->type),
        .layout = spc_layout_of(call->kind, call->hash, 0),
    };
}

/* ---- description of a call */

uint64_t spc_collect_memory_bytes(const spc_comm_t *comm, const spc_collect_call_t *call) {
    const spc_collect_algorithm_t algorithm = choose(comm, call);
    const uint64_t element_bytes = spc_type_size(call->type);
    if (!spc_collect_has_result(call, spc_comm_rank(comm))) {
        return 0;
    }
    if (call->operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER) {
        return call->counts[spc_comm_rank(comm)] * element_bytes;
    }
    const bool by_pieces = algorithm == SPC_COLLECT_TREE || algorithm == SPC_COLLECT_FLAT;
    return by_pieces ? call->count * element_bytes : 0;
}

static bool counts_add_up(const spc_collect_call_t *call, uint32_t size) {
    uint64_t left = call->count;
    for (uint32_t rank = 0; rank < size; rank++) {
        if (call->counts[rank] > left) {
            return false;
        }
        left -= call->counts[rank];
    }
    return left == 0;
}

static bool is_allowed(const spc_collect_call_t *call, uint32_t size) {
    const bool is_scattered = call->operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER;
    const bool is_number = call->type > SPC_TYPE_WIDE && spc_ops_has(call->operator, call->type);
    const bool only_whole = call->algorithm == SPC_COLLECT_TREE || call->algorithm == SPC_COLLECT_BINARY_SWAP;
    return (spc_operation_is_of_arrays(call->operation) || call->operation == SPC_OPERATION_REDUCE)
           && (unsigned)call->algorithm < SPC_COLLECT_ALGORITHM_COUNT && is_number && call->root < size
           && call->count <= UINT64_MAX / 2 / spc_type_size(call->type)
           && (!only_whole || may_combine_at_once(call)) && (!is_scattered || counts_add_up(call, size));
}

/* ---- life */

static uint64_t hash_of(const spc_collect_call_t *call, uint32_t size) {
    uint64_t hash = spc_layout_mix(spc_layout_mix(call->hash, (uint64_t)call->algorithm), call->type);
    for (uint32_t rank = 0; call->operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER && rank < size; rank++) {
        hash = spc_layout_mix(hash, call->counts[rank]);
    }
    return hash;
}

/* A multiple of the grain: as many elements as fit a tile, and few enough that all partial results fit the work
 * memory. */
static uint64_t choose_tile(uint64_t element_bytes, uint32_t size) {
    uint64_t bytes = SPC_COLLECT_WORK_BYTES / (spc_tree_levels(size) + 1);
    bytes = bytes < SPC_COLLECT_TILE_BYTES ? bytes : SPC_COLLECT_TILE_BYTES;
    return bytes / element_bytes / SPC_COLLECT_GRAIN * SPC_COLLECT_GRAIN;
}

static uint64_t first_of(const spc_collect_call_t *call, uint32_t rank) {
    uint64_t first = 0;
    for (uint32_t i = 0; call->operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER && i < rank; i++) {
        first += call->counts[i];
    }
    return first;
}

static void fill(spc_collect_t *made, const spc_collect_call_t *call) {
    made->call = *call;
    made->call.algorithm = choose(made->comm, call);
    made->rank = spc_comm_rank(made->comm);
    made->element_bytes = spc_type_size(call->type);
    made->bytes = call->count * made->element_bytes;
    made->first = first_of(call, made->rank);
    made->tile = choose_tile(made->element_bytes, made->size);
    made->hash = hash_of(&made->call, made->size);
    made->signature = (spc_signature_t){
        .length_bytes = made->bytes,
        .root = call->root,
        .operation = (uint8_t)call->operation,
        .operator = (uint8_t)call->operator,
        .type = (uint8_t)call->type,
    };
}

int spc_collect_create(spc_comm_t *comm, const spc_collect_call_t *call, spc_collect_t **collect) {
    const uint32_t size = spc_comm_size(comm);
    if (!is_allowed(call, size)) {
        return SPC_EINVAL;
    }
    spc_collect_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->comm = comm;
    made->size = size;
    made->work = malloc(SPC_COLLECT_WORK_BYTES);
    made->sources = calloc(size + 1, sizeof(*made->sources)); /* two at least */
    made->targets = calloc(size, sizeof(*made->targets));
    made->places = calloc(size, sizeof(*made->places));
    if (made->work == NULL || made->sources == NULL || made->targets == NULL || made->places == NULL) {
        spc_collect_destroy(made);
        return SPC_ENOMEM;
    }
    fill(made, call);
    *collect = made;
    return SPC_OK;
}

void spc_collect_destroy(spc_collect_t *collect) {
    if (collect == NULL) {
        return;
    }
    if (collect->places != NULL) {
        drop_blocks(collect);
    }
    free(collect->work);
    free(collect->sources);
    free(collect->targets);
    free(collect->places);
    free(collect);
}

void spc_collect_use_no_blocks(spc_collect_t *collect, void *memory) {
    spc_collect_call_t *call = &collect->call;
    call->algorithm = may_combine_at_once(call) ? SPC_COLLECT_TREE : SPC_COLLECT_FLAT;
    call->memory = memory;
    collect->hash = hash_of(call, collect->size);
    collect->stage = SPC_COLLECT_START;
    collect->step = 0;
    collect->done = 0;
}

/* ---- running */

int spc_collect_run(spc_collect_t *collect, uint64_t deadline_ns) {
    if (collect->stage == SPC_COLLECT_OVER) {
        return SPC_EINVAL;
    }
    switch (collect->call.algorithm) {
    case SPC_COLLECT_TREE:
        return run_tree(collect, deadline_ns);
    case SPC_COLLECT_FLAT:
        return run_flat(collect, deadline_ns);
    case SPC_COLLECT_SLICES:
        return run_slices(collect, deadline_ns);
    default:
        return run_swap(collect, deadline_ns);
    }
}

void *spc_collect_take_result(spc_collect_t *collect, spc_block_shared_t **block) {
    void *result = collect->result; /* NULL until the call is over; then the block is the result, or gone */
    *block = NULL;
    if (result != NULL) {
        *block = collect->block;
        collect->block = NULL;
    }
    collect->result = NULL;
    return result;
}
