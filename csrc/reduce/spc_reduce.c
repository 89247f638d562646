/* SPDX-License-Identifier: MIT */
#include "reduce/spc_reduce.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "reduce/spc_tree.h"

#define LEVELS_MAX 16 /* fan-in 2, 65535 nodes */

typedef struct level {
    uint32_t width; /* how many arrive at this level's groups */
    uint32_t first_counter;
} level_t;

typedef struct bank {
    spc_reduce_release_shared_t *release;
    spc_reduce_counter_shared_t *counters; /* of all levels, from the nodes upwards */
    spc_reduce_line_shared_t *lines;       /* by rank */
} bank_t;

struct spc_reduce {
    spc_reduce_options_t options;
    uint64_t phase; /* the last one started */
    uint32_t half;  /* of the scratch, to be used next */
    uint32_t shift; /* log2 of the fan-in */
    uint32_t level_count;
    level_t levels[LEVELS_MAX];
    bank_t banks[SPC_BANKS];
    spc_signature_t known; /* a signature and its hash */
    uint64_t known_hash;
};

/* Arguments of one start; lives as long as that call. */
typedef struct call {
    spc_signature_t signature;
    const spc_field_t *fields;
    uint64_t length_bytes;
    bool has_total; /* its value is the combined one already */
} call_t;

static inline const bank_t *bank_of(const spc_reduce_t *reduce, uint64_t phase) {
    return &reduce->banks[phase % SPC_BANKS];
}

/* The nodes that arrive at a group: the fan-in, or the remainder for the last group of a level. */
static inline uint32_t members_of(const spc_reduce_t *reduce, uint32_t level, uint32_t group) {
    const uint32_t rest = reduce->levels[level].width - (group << reduce->shift);
    const uint32_t fanin = 1u << reduce->shift;
    return rest < fanin ? rest : fanin;
}

/* Whether a value that is combined travels in the lines themselves. */
static inline bool is_short(const call_t *call) {
    return call->length_bytes <= SPC_LINE_VALUE_BYTES;
}

/* ---- combining the values of a group ---- */

static bool same_kind(const call_t *call, const spc_reduce_line_shared_t *line) {
    return memcmp(&line->signature, &call->signature, sizeof call->signature) == 0
           && (is_short(call) || line->value.scratch.length_bytes == call->length_bytes);
}

/* Hands a value on: to the next level in the line of the group's first node, from the top to all nodes. A long value is
 * already in the scratch of that node, where the next level looks for it. */
static void hand_on(const spc_reduce_t *reduce, const bank_t *bank, const call_t *call,
                    spc_reduce_line_shared_t *first, const void *value, bool top) {
    if (is_short(call)) {
        unsigned char *place = top ? bank->release->value.bytes : first->value.bytes;
        memcpy(place, value, SPC_LINE_VALUE_BYTES);
    } else if (top) {
        bank->release->value.offset = (uint64_t)((const unsigned char *)value - reduce->options.base);
    }
}

/* Combines the values of a group's members, all of which have arrived: into the line (or scratch) of its first one, or
 * at the top into the release. SPC_OK, SPC_EMISMATCH or SPC_EWIDE. Short values are combined in copies, as their lines
 * are only read, long ones where they lie. */
static int combine_group(const spc_reduce_t *reduce, const bank_t *bank, const call_t *call, uint32_t level,
                         uint32_t group) {
    const uint32_t members = members_of(reduce, level, group);
    const uint32_t step_shift = level * reduce->shift; /* a member of this level is 2^step_shift nodes */
    spc_reduce_line_shared_t *first = &bank->lines[(group << reduce->shift) << step_shift];
    uint64_t copies[SPC_TREE_STACK_MAX][SPC_LINE_VALUE_BYTES / 8];
    spc_tree_stack_t stack;
    spc_tree_start(&stack, (spc_operator_t)call->signature.operator, call->fields,
                   call->signature.field_count, NULL, 0);
    for (uint32_t i = 0; i < members; i++) {
        const spc_reduce_line_shared_t *line = first + ((uint64_t)i << step_shift);
        if (!same_kind(call, line)) {
            return SPC_EMISMATCH;
        }
        if (is_short(call)) {
            spc_tree_push(&stack, i, memcpy(copies[stack.count], line->value.bytes, SPC_LINE_VALUE_BYTES));
        } else {
            spc_tree_push(&stack, i, reduce->options.base + line->value.scratch.offset);
        }
    }
    spc_tree_finish(&stack);
    if (stack.status == SPC_OK) {
        hand_on(reduce, bank, call, first, stack.value[0], level + 1 == reduce->level_count);
    }
    return stack.status;
}

/* Takes the value of this node's line (or scratch) into the release as the combined one. */
__attribute__((noinline)) static void release_total(const spc_reduce_t *reduce, const bank_t *bank,
                                                    const call_t *call) {
    spc_reduce_line_shared_t *line = &bank->lines[reduce->options.rank];
    const void *total =
        is_short(call) ? line->value.bytes : reduce->options.base + line->value.scratch.offset;
    hand_on(reduce, bank, call, line, total, true);
}

/* ---- layout: SPC_BANKS times [release, counters of all levels, one line a node] ---- */

static bool valid_shape(uint32_t nodes, uint32_t fanin) {
    const bool power_of_two = (fanin & (fanin - 1)) == 0;
    return nodes >= 1 && nodes <= UINT16_MAX && fanin >= 2 && (power_of_two || fanin >= nodes);
}

/* log2 of the fan-in; of the smallest power of two that makes the tree flat, if that is less. */
static uint32_t fanin_shift(uint32_t nodes, uint32_t fanin) {
    return nodes == 1 ? 1 : spc_tree_levels(nodes < fanin ? nodes : fanin);
}

static uint32_t groups_of(uint32_t width, uint32_t shift) {
    return (uint32_t)(((uint64_t)width + (1u << shift) - 1) >> shift);
}

/* Fills the levels from the nodes up to the one group at the top; returns how many counters there are. */
static uint32_t plan_levels(uint32_t nodes, uint32_t shift, level_t levels[LEVELS_MAX],
                            uint32_t *level_count) {
    uint32_t counters = 0;
    uint32_t width = nodes;
    uint32_t count = 0;
    do {
        levels[count].width = width;
        levels[count].first_counter = counters;
        width = groups_of(width, shift);
        counters += width;
        count++;
    } while (width > 1);
    *level_count = count;
    return counters;
}

/* Parts of a bank are padded to pairs of lines, which the hardware prefetches together. */
static uint64_t padded(uint64_t bytes) {
    return spc_round_up(bytes, 2 * SPC_CACHE_LINE);
}

static uint64_t bank_bytes(uint32_t nodes, uint32_t counters) {
    return padded(sizeof(spc_reduce_release_shared_t))
           + padded(counters * sizeof(spc_reduce_counter_shared_t))
           + padded(nodes * sizeof(spc_reduce_line_shared_t));
}

uint64_t spc_reduce_bytes(uint32_t nodes, uint32_t fanin) {
    level_t levels[LEVELS_MAX];
    uint32_t level_count;
    if (!valid_shape(nodes, fanin)) {
        return 0;
    }
    return SPC_BANKS * bank_bytes(nodes, plan_levels(nodes, fanin_shift(nodes, fanin), levels, &level_count));
}

uint64_t spc_reduce_completed(const void *shared, uint32_t nodes, uint32_t fanin) {
    uint64_t stride = spc_reduce_bytes(nodes, fanin) / SPC_BANKS;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < SPC_BANKS; i++) {
        const void *bank = (const unsigned char *)shared + i * stride;
        /* Relaxed: only a change of the value counts. */
        sum +=
            atomic_load_explicit(&((const spc_reduce_release_shared_t *)bank)->phase, memory_order_relaxed);
    }
    return sum;
}

static void find_banks(spc_reduce_t *reduce, uint32_t counters) {
    const uint32_t nodes = reduce->options.nodes;
    unsigned char *start = reduce->options.shared;
    for (uint32_t i = 0; i < SPC_BANKS; i++) {
        unsigned char *part = start + i * bank_bytes(nodes, counters);
        bank_t *bank = &reduce->banks[i];
        bank->release = (spc_reduce_release_shared_t *)(void *)part;
        part += padded(sizeof *bank->release);
        bank->counters = (spc_reduce_counter_shared_t *)(void *)part;
        part += padded(counters * sizeof *bank->counters);
        bank->lines = (spc_reduce_line_shared_t *)(void *)part;
    }
}

int spc_reduce_create(const spc_reduce_options_t *options, spc_reduce_t **result) {
    if (!valid_shape(options->nodes, options->fanin) || options->rank >= options->nodes
        || (uintptr_t)options->shared % SPC_CACHE_LINE != 0 || (uintptr_t)options->scratch % 8 != 0
        || options->scratch_bytes % 8 != 0) {
        return SPC_EINVAL;
    }
    spc_reduce_t *reduce = calloc(1, sizeof *reduce);
    if (reduce == NULL) {
        return SPC_ENOMEM;
    }
    reduce->options = *options;
    reduce->shift = fanin_shift(options->nodes, options->fanin);
    find_banks(reduce, plan_levels(options->nodes, reduce->shift, reduce->levels, &reduce->level_count));
    reduce->known_hash = spc_signature_hash(&reduce->known);
    *result = reduce;
    return SPC_OK;
}

void spc_reduce_destroy(spc_reduce_t *reduce) {
    free(reduce);
}

/* ---- signatures ---- */

static uint64_t mix(uint64_t x) { /* murmur3's finaliser: every bit of x reaches every bit of the result */
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

uint64_t spc_signature_hash(const spc_signature_t *signature) {
    uint64_t words[3];
    memcpy(words, signature, sizeof words);
    return mix(mix(mix(words[0] + 1) + words[1]) + words[2]) >> 16;
}

/* Programs repeat themselves: the last signature's hash is kept. */
static uint64_t hash_of(spc_reduce_t *reduce, const spc_signature_t *signature) {
    if (memcmp(signature, &reduce->known, sizeof *signature) != 0) {
        reduce->known = *signature;
        reduce->known_hash = spc_signature_hash(signature);
    }
    return reduce->known_hash;
}

/* ---- one phase ---- */

/* SPC_OK, or SPC_EWIDE if a field is wide, or SPC_EINVAL. */
static int check_reduction(const spc_reduce_t *reduce, const call_t *call) {
    int status = SPC_OK;
    if (call->signature.operator >= SPC_OPERATOR_COUNT) {
        return SPC_EINVAL;
    }
    for (uint32_t i = 0; i < call->signature.field_count; i++) {
        if (!spc_ops_has((spc_operator_t)call->signature.operator, call->fields[i].type)) {
            return SPC_EINVAL;
        }
        status = call->fields[i].type == SPC_TYPE_WIDE ? SPC_EWIDE : status;
    }
    if (call->length_bytes != spc_fields_bytes(call->fields, call->signature.field_count)
        || (!is_short(call) && call->length_bytes > reduce->options.scratch_bytes)) {
        return SPC_EINVAL;
    }
    return status;
}

static int check_call(const spc_reduce_t *reduce, const call_t *call) {
    switch (call->signature.operation) {
    case SPC_OPERATION_BARRIER:
    case SPC_OPERATION_FUZZY:
    case SPC_OPERATION_COORDINATED:
        return call->length_bytes == 0 ? SPC_OK : SPC_EINVAL;
    case SPC_OPERATION_REDUCE:
        return check_reduction(reduce, call);
    case SPC_OPERATION_GATHER:
    case SPC_OPERATION_SPLIT:
    case SPC_OPERATION_DATA_BCAST:
    case SPC_OPERATION_DATA_GATHER:
    case SPC_OPERATION_DATA_ALLGATHER:
    case SPC_OPERATION_DATA_SCATTER:
    case SPC_OPERATION_DATA_ALLTOALL:
        return call->length_bytes <= reduce->options.scratch_bytes ? SPC_OK : SPC_EINVAL;
    case SPC_OPERATION_ARRAY_ALLREDUCE:
    case SPC_OPERATION_ARRAY_REDUCE:
    case SPC_OPERATION_ARRAY_REDUCE_SCATTER:
    case SPC_OPERATION_ARRAY_SCAN:
    case SPC_OPERATION_ARRAY_EXSCAN:
        if (spc_reduce_combines(&call->signature)) {
            return check_reduction(reduce, call);
        }
        return call->length_bytes <= reduce->options.scratch_bytes ? SPC_OK : SPC_EINVAL;
    default:
        return SPC_EINVAL;
    }
}

static unsigned char *fields_of(const spc_reduce_t *reduce) {
    return (unsigned char *)reduce->options.scratch + 2 * reduce->options.scratch_bytes;
}

/* Short values that are combined go into the line; all others to the half of the scratch that was not used last. */
static void publish_value(spc_reduce_t *reduce, spc_reduce_line_shared_t *line, const call_t *call,
                          const void *value) {
    unsigned char *place = line->value.bytes;
    const bool combined = spc_reduce_combines(&call->signature);
    if (!combined || !is_short(call)) {
        place = (unsigned char *)reduce->options.scratch + reduce->half * reduce->options.scratch_bytes;
        reduce->half ^= 1;
        line->value.scratch.offset = (uint64_t)(place - reduce->options.base);
        line->value.scratch.length_bytes = call->length_bytes;
    }
    if (call->length_bytes != 0) {
        memcpy(place, value, call->length_bytes);
    }
    if (reduce->options.here != 0 && call->fields != NULL) {
        memcpy(fields_of(reduce), call->fields, call->signature.field_count * sizeof(*call->fields));
    }
    if (combined && reduce->options.nodes == 1) { /* no other node writes there */
        spc_ops_alone((spc_operator_t)call->signature.operator, call->fields, call->signature.field_count,
                      place);
    }
}

/* The paper's last box: releases all nodes. Waiting nodes read one line, which has the result too. `is_node`: a node
 * does this for itself, and is awake; a gateway that uses the half of a node does not. */
static void release(spc_reduce_t *reduce, const bank_t *bank, uint64_t phase, int status, bool is_node) {
    const spc_reduce_options_t *options = &reduce->options;
    bank->release->status = status;
    /* Pairs with the load in spc_reduce_test: status and value are visible with it. seq_cst, because the loads of
     * `sleeping` in spc_event_notify must not come before it. */
    atomic_store_explicit(&bank->release->phase, phase, memory_order_seq_cst);
    for (uint32_t rank = 0; rank < options->nodes; rank++) {
        if (rank != options->rank || !is_node) {
            const uint32_t member = options->members == NULL ? rank : options->members[rank];
            spc_event_notify(&options->events[member], options->features);
        }
    }
}

/* Counts this node in, and climbs as long as it is the last of its group. */
static void arrive(spc_reduce_t *reduce, const bank_t *bank, const call_t *call, uint64_t phase, int status,
                   bool is_node) {
    const uint64_t hash = hash_of(reduce, &call->signature);
    const uint32_t gateways = reduce->options.here != 0; /* they arrive at the one group of such a run */
    /* Sum of the hashes of all signatures below here, mod 2^48, above 16 zero bits. */
    uint64_t sum = is_node ? hash << 16 : 0;
    uint32_t member = reduce->options.rank;
    for (uint32_t level = 0; level < reduce->level_count; level++) {
        const uint32_t group = member >> reduce->shift;
        spc_reduce_counter_shared_t *counter = &bank->counters[reduce->levels[level].first_counter + group];
        if (status != SPC_OK) {
            atomic_store_explicit(&counter->status, status, memory_order_relaxed); /* published below */
        }
        /* Release: our line, and the values we combined. Acquire, for the last: all lines below this group. */
        const uint64_t before = atomic_fetch_add_explicit(&counter->arrivals, sum + 1, memory_order_acq_rel);
        if ((before & 0xffff) + 1 != members_of(reduce, level, group) + gateways) {
            return; /* another node comes later, and climbs */
        }
        sum += before & ~UINT64_C(0xffff);
        status = atomic_load_explicit(&counter->status, memory_order_relaxed);
        /* No node comes here again before the release of this phase, which orders the clearing. */
        atomic_store_explicit(&counter->arrivals, 0, memory_order_relaxed);
        if (status != SPC_OK) {
            atomic_store_explicit(&counter->status, SPC_OK, memory_order_relaxed);
        } else if (__builtin_expect(call->has_total, 0)) {
            release_total(reduce, bank, call);
        } else if (spc_reduce_combines(&call->signature)) {
            status = combine_group(reduce, bank, call, level, group);
        }
        member = group;
    }
    /* Equal signatures always give this sum, so signatures refused here did differ. Different ones give it with a
     * chance of 2^-48 (2^-48 times the number of equal ones, if that is a power of two). */
    if (sum != (hash * reduce->options.nodes) << 16) {
        status = SPC_EMISMATCH;
    }
    release(reduce, bank, phase, status, is_node);
}

/* The last of this box's nodes notifies the gateway. */
static void arrive_here(const spc_reduce_t *reduce, const bank_t *bank) {
    const spc_reduce_options_t *options = &reduce->options;
    /* Acquire and release, so that the last node's notice stands for all; then the gateway reads the lines. */
    if (atomic_fetch_add_explicit(&bank->release->here, 1, memory_order_acq_rel) + 1 == options->here) {
        /* No node comes here again before the phase is complete. seq_cst: before the load of `sleeping`. */
        atomic_store_explicit(&bank->release->here, 0, memory_order_seq_cst);
        spc_event_notify(options->gateway, options->features);
    }
}

/* Takes the next phase and arrives, with a value if there is one. */
static void start(spc_reduce_t *reduce, call_t *call, const void *value, bool has_value, int status) {
    if (call->signature.type == SPC_TYPE_WIDE) {
        call->signature.type = SPC_TYPE_INT;
    }
    const uint64_t phase = ++reduce->phase;
    const bank_t *bank = bank_of(reduce, phase);
    spc_reduce_line_shared_t *line = &bank->lines[reduce->options.rank];
    line->signature = call->signature;
    if (has_value) {
        publish_value(reduce, line, call, value);
    }
    /* For spc_reduce_signature and _arrived; nodes that combine learn of the arrival from the counter. */
    atomic_store_explicit(&line->phase, phase, memory_order_release);
    arrive(reduce, bank, call, phase, status, true);
    if (__builtin_expect(reduce->options.gateway != NULL, 0)) {
        arrive_here(reduce, bank);
    }
}

int spc_reduce_start(spc_reduce_t *reduce, const spc_signature_t *signature, const spc_field_t *fields,
                     const void *value, uint64_t length_bytes, uint64_t *phase) {
    call_t call = {.signature = *signature, .fields = fields, .length_bytes = length_bytes};
    const int status = check_call(reduce, &call);
    if (status == SPC_EINVAL) {
        return status;
    }
    *phase = reduce->phase + 1;
    start(reduce, &call, value, signature->operation >= SPC_OPERATION_REDUCE, status);
    return SPC_OK;
}

int spc_reduce_start_combined(spc_reduce_t *reduce, const spc_signature_t *signature,
                              const spc_field_t *fields, const void *total, uint64_t length_bytes) {
    const bool is_barrier = spc_reduce_is_barrier(signature);
    call_t call = {.signature = *signature,
                   .fields = fields,
                   .length_bytes = length_bytes,
                   .has_total = total != NULL && !is_barrier};
    const int status = check_call(reduce, &call);
    if (status == SPC_EINVAL || (!is_barrier && !spc_reduce_combines(signature))) {
        return SPC_EINVAL;
    }
    start(reduce, &call, total, call.has_total, status);
    return SPC_OK;
}

bool spc_reduce_test(const spc_reduce_t *reduce, uint64_t phase) {
    const spc_reduce_release_shared_t *release = bank_of(reduce, phase)->release;
    /* Pairs with the store in release(); seq_cst as the second test of a sleeper. */
    return atomic_load_explicit(&release->phase, memory_order_seq_cst) >= phase;
}

int spc_reduce_finish(spc_reduce_t *reduce, uint64_t phase, void *result, uint64_t length_bytes) {
    const spc_reduce_release_shared_t *release = bank_of(reduce, phase)->release;
    if (atomic_load_explicit(&release->phase, memory_order_acquire) != phase) { /* pairs with release() */
        return SPC_EINVAL;
    }
    if (release->status == SPC_OK && result != NULL && length_bytes != 0) {
        const bool is_short = length_bytes <= SPC_LINE_VALUE_BYTES;
        const unsigned char *in_scratch = reduce->options.base + (is_short ? 0 : release->value.offset);
        memcpy(result, is_short ? release->value.bytes : in_scratch, length_bytes);
    }
    return release->status;
}

/* ---- queries ---- */

void spc_reduce_contribution(const spc_reduce_t *reduce, uint64_t phase, uint32_t rank, const void **bytes,
                             uint64_t *length_bytes) {
    const spc_reduce_line_shared_t *line = &bank_of(reduce, phase)->lines[rank];
    *bytes = reduce->options.base + line->value.scratch.offset;
    *length_bytes = line->value.scratch.length_bytes;
}

bool spc_reduce_read(const spc_reduce_t *reduce, uint64_t phase, spc_contribution_t *contribution) {
    const spc_reduce_line_shared_t *line = &bank_of(reduce, phase)->lines[reduce->options.rank];
    if (atomic_load_explicit(&line->phase, memory_order_acquire) != phase) { /* pairs with spc_reduce_start */
        return false;
    }
    *contribution = (spc_contribution_t){.signature = line->signature};
    if (line->signature.operation < SPC_OPERATION_REDUCE) {
        return true;
    }
    contribution->length_bytes = line->value.scratch.length_bytes;
    if (spc_reduce_combines(&line->signature)) {
        contribution->fields = (const spc_field_t *)(const void *)fields_of(reduce);
        contribution->length_bytes = spc_fields_bytes(contribution->fields, line->signature.field_count);
        if (contribution->length_bytes <= SPC_LINE_VALUE_BYTES) {
            contribution->value = line->value.bytes;
            return true;
        }
    }
    contribution->value = reduce->options.base + line->value.scratch.offset;
    return true;
}

void spc_reduce_pass(spc_reduce_t *reduce, uint64_t phase) {
    spc_contribution_t contribution;
    if (!spc_reduce_read(reduce, phase, &contribution)) {
        return; /* impossible: it has arrived, and continues only after this */
    }
    const call_t call = {.signature = contribution.signature,
                         .fields = contribution.fields,
                         .length_bytes = contribution.length_bytes};
    arrive(reduce, bank_of(reduce, phase), &call, phase, SPC_OK, false);
}

bool spc_reduce_arrived(const spc_reduce_t *reduce, uint64_t phase, uint32_t rank) {
    return spc_reduce_line_arrived(&bank_of(reduce, phase)->lines[rank], phase);
}

const spc_reduce_line_shared_t *spc_reduce_lines(const spc_reduce_t *reduce, uint64_t phase) {
    return bank_of(reduce, phase)->lines;
}

bool spc_reduce_signature(const spc_reduce_t *reduce, uint64_t phase, uint32_t rank,
                          spc_signature_t *signature) {
    const spc_reduce_line_shared_t *line = &bank_of(reduce, phase)->lines[rank];
    if (atomic_load_explicit(&line->phase, memory_order_acquire) != phase) { /* pairs with spc_reduce_start */
        return false;
    }
    *signature = line->signature;
    return true;
}

uint64_t spc_reduce_last(const spc_reduce_t *reduce, uint32_t rank) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < SPC_BANKS; i++) {
        /* Relaxed: only the number is used. */
        uint64_t phase = atomic_load_explicit(&reduce->banks[i].lines[rank].phase, memory_order_relaxed);
        last = phase > last ? phase : last;
    }
    return last;
}
