/* SPDX-License-Identifier: MIT */
/*
 * Reductions of arrays. The algorithm of each, and its signature, are those of spcomm/_core/generic_reduce.pyx: nodes
 * of both languages take part in the same reductions.
 */
#include <stdio.h>
#include <stdlib.h>

#include "api/spc_api_private.h"
#include "diagnose/spc_call_text.h"

/* The public numbers equal the core's. */
#define SAME_OPERATOR(public, core) _Static_assert((int)SPCOMM_##public == (int)SPC_##core, #public);
SAME_OPERATOR(SUM, SUM)
SAME_OPERATOR(MIN, MIN)
SAME_OPERATOR(MAX, MAX)
SAME_OPERATOR(PROD, PROD)
SAME_OPERATOR(LAND, LOGICAL_AND)
SAME_OPERATOR(LOR, LOGICAL_OR)
SAME_OPERATOR(LXOR, LOGICAL_XOR)
SAME_OPERATOR(BAND, BITWISE_AND)
SAME_OPERATOR(BOR, BITWISE_OR)
SAME_OPERATOR(BXOR, BITWISE_XOR)
SAME_OPERATOR(MINLOC, MINLOC)
SAME_OPERATOR(MAXLOC, MAXLOC)
#undef SAME_OPERATOR
#define SAME_ELEMENT(name, ctype)                                              \
    _Static_assert(SPCOMM_ELEMENT_PAIR_##name - SPCOMM_ELEMENT_PAIR_INT8       \
                       == (int)SPC_TYPE_PAIR_##name - (int)SPC_TYPE_PAIR_INT8, \
                   "pairs follow each other as in the core");
SPC_NUMBER_TYPES(SAME_ELEMENT)
#undef SAME_ELEMENT
_Static_assert(sizeof(spcomm_pair_t) == sizeof(spc_pair_t), "a pair is the core's");

/* ---- operands */

typedef struct array_call {
    spcomm_t *comm;
    const char *name; /* a literal, "spcomm_scan()" */
    const spcomm_data_t *values;
    int64_t timeout_ns;
    void *result;
    spc_collect_call_t core;
    uint64_t bytes;   /* of the values */
    uint64_t *counts; /* for reduce_scatter: elements */
} array_call_t;

static const char *operator_name(int32_t number) {
    static const char *const names[] = {
#define OPERATOR_NAME(name, word) word,
        SPC_OPERATORS(OPERATOR_NAME)
#undef OPERATOR_NAME
    };
    return names[number];
}

static uint32_t pick(uint32_t bytes, uint32_t one, uint32_t two, uint32_t four, uint32_t eight) {
    switch (bytes) {
    case 1:
        return one;
    case 2:
        return two;
    case 4:
        return four;
    case 8:
        return eight;
    default:
        return SPC_TYPE_NONE;
    }
}

/* The core's type of the elements; SPC_TYPE_NONE: the core has none. */
static uint32_t type_of(const spcomm_data_t *values) {
    const uint32_t bytes = values->array.item_bytes;
    switch (values->array.kind) {
    case 'b':
        return bytes == 1 ? SPC_TYPE_BOOL : SPC_TYPE_NONE;
    case 'i':
        return pick(bytes, SPC_TYPE_INT8, SPC_TYPE_INT16, SPC_TYPE_INT32, SPC_TYPE_INT64);
    case 'u':
        return pick(bytes, SPC_TYPE_UINT8, SPC_TYPE_UINT16, SPC_TYPE_UINT32, SPC_TYPE_UINT64);
    case 'f':
        return pick(bytes, SPC_TYPE_NONE, SPC_TYPE_NONE, SPC_TYPE_FLOAT32, SPC_TYPE_FLOAT64);
    case 'c':
        return bytes == 16 ? SPC_TYPE_COMPLEX128
                           : pick(bytes, SPC_TYPE_NONE, SPC_TYPE_NONE, SPC_TYPE_NONE, SPC_TYPE_COMPLEX64);
    case 'V':
        break;
    default:
        return SPC_TYPE_NONE;
    }
    if (values->element == SPCOMM_ELEMENT_SIMTIME) {
        return bytes == sizeof(spcomm_simtime_t) ? SPC_TYPE_SIMTIME : SPC_TYPE_NONE;
    }
    const bool is_pair = values->element >= SPCOMM_ELEMENT_PAIR_INT8
                         && values->element <= SPCOMM_ELEMENT_PAIR_FLOAT64 && bytes == sizeof(spc_pair_t);
    return is_pair ? (uint32_t)SPC_TYPE_PAIR_INT8 + (uint32_t)values->element - SPCOMM_ELEMENT_PAIR_INT8
                   : SPC_TYPE_NONE;
}

/* "an array of int32, shape (5, 3)", as Python prints arrays of numbers. */
static void write_values(const array_call_t *call, FILE *out) {
    const spcomm_array_t *array = &call->values->array;
    if (array->dimensions == 0) {
        fputs("a ndarray", out); /* a value without axes */
        return;
    }
    if (call->core.type >= SPC_TYPE_PAIR_INT8) {
        const uint32_t value = call->core.type - SPC_TYPE_PAIR_INT8 + SPC_TYPE_INT8;
        fprintf(out, "an array of pairs of %s and int64, shape (", spc_call_text_type(value));
    } else {
        fprintf(out, "an array of %s, shape (", spc_call_text_type(call->core.type));
    }
    for (uint32_t i = 0; i < array->dimensions; i++) {
        fprintf(out, i == 0 ? "%lld" : ", %lld", (long long)array->shape[i]);
    }
    fputs(array->dimensions == 1 ? ",)" : ")", out);
}

/* "allreduce(op=SUM) of an array of int32, shape (5,)": the node's call in a mismatch. */
static void describe(const array_call_t *call, char *text, size_t bytes) {
    const int name_length = (int)strcspn(call->name, "(") - 7; /* without "spcomm_" */
    FILE *out = fmemopen(text, bytes, "w");
    text[0] = '\0';
    if (out == NULL) {
        return;
    }
    fprintf(out, "%.*s(op=%s", name_length, call->name + 7, operator_name(call->core.operator));
    if (call->core.operation == SPC_OPERATION_ARRAY_REDUCE) {
        fprintf(out, ", root=%u", call->core.root);
    }
    fputs(") of ", out);
    write_values(call, out);
    fclose(out);
    text[bytes - 1] = '\0';
}

static int fail(const array_call_t *call, int status) {
    char doing[SPC_NOTE_WORDS_BYTES];
    if (status == SPC_EMISMATCH) {
        describe(call, doing, sizeof(doing));
    }
    return spc_api_fail_collective(call->comm, status, call->name, status == SPC_EMISMATCH ? doing : NULL);
}

/* ---- checks */

static int check_operator(const array_call_t *call, int32_t op) {
    if (op < 0 || op >= SPC_OPERATOR_COUNT) {
        return spc_api_refuse(SPC_EINVAL, "%s: there is no operator %d; they are SPCOMM_SUM to SPCOMM_MAXLOC",
                              call->name, op);
    }
    return SPC_OK;
}

static int check_order(const array_call_t *call) {
    const spcomm_array_t *array = &call->values->array;
    const uint16_t one = 1;
    const char native = *(const unsigned char *)&one == 1 ? '<' : '>';
    const bool is_foreign = array->byte_order != 0 && array->byte_order != '|' && array->byte_order != native;
    if (is_foreign || array->fortran != 0) {
        return spc_api_refuse(SPC_EINVAL, "%s: values must be in C's order and this machine's byte order",
                              call->name);
    }
    return SPC_OK;
}

static int check_type(const array_call_t *call) {
    const uint32_t type = call->core.type;
    const bool counts_bools =
        type == SPC_TYPE_BOOL && (call->core.operator == SPC_SUM || call->core.operator == SPC_PROD);
    if (type == SPC_TYPE_NONE) {
        return spc_api_refuse(
            SPC_EINVAL,
            "%s: items of kind '%c' and %u bytes cannot be combined in C; there are i, u (1, "
            "2, 4, 8 bytes), f (4, 8), c (8, 16), b, spcomm_simtimes and spcomm_pairs",
            call->name, call->values->array.kind, call->values->array.item_bytes);
    }
    if (counts_bools) {
        return spc_api_refuse(SPC_EINVAL, "%s: %s of bools would be a count; give them as int64", call->name,
                              operator_name(call->core.operator));
    }
    if (!spc_ops_has(call->core.operator, type)) {
        return spc_api_refuse(SPC_EINVAL, "%s: %s does not combine %s", call->name,
                              operator_name(call->core.operator),
                              type >= SPC_TYPE_PAIR_INT8 ? "pairs" : spc_call_text_type(type));
    }
    return SPC_OK;
}

/* The kernels read items in place. */
static int check_alignment(const array_call_t *call, const char *name, const void *memory) {
    const spcomm_array_t *array = &call->values->array;
    size_t alignment = array->kind == 'V' ? sizeof(int64_t) : array->item_bytes;
    alignment = array->kind == 'c' ? alignment / 2 : alignment;
    return call->bytes == 0 || memory == NULL || (uintptr_t)memory % alignment == 0
               ? SPC_OK
               : spc_api_refuse(SPC_EINVAL,
                                "%s: %s begin at an address that is not divisible by %zu, as items of this "
                                "type require; copy them with memcpy to memory of their type",
                                call->name, name, alignment);
}

/* Determines type and shape of the values. SPC_EINVAL. */
static int read_values(array_call_t *call) {
    const spcomm_array_t *array = &call->values->array;
    spc_api_encoded_t encoded;
    int status = spc_api_encode(call->name, call->values, &encoded); /* kind, shape, NULL */
    status = status == SPC_OK ? check_order(call) : status;
    if (status != SPC_OK) {
        return status;
    }
    call->bytes = encoded.payload.data_bytes;
    call->core.type = type_of(call->values);
    status = check_type(call);
    status = status == SPC_OK ? check_alignment(call, "values", call->values->data) : status;
    if (status != SPC_OK) {
        return status;
    }
    const uint64_t hash = spc_layout_mix(spc_layout_mix(0, SPC_KIND_ARRAY), call->core.type);
    call->core.kind = SPC_KIND_ARRAY;
    call->core.hash = spc_layout_mix_shape(hash, array->dimensions, array->shape);
    call->core.count = call->bytes / array->item_bytes;
    call->core.input = call->values->data;
    return SPC_OK;
}

static int check_result(const array_call_t *call) {
    const bool has = spc_collect_has_result(&call->core, call->comm->rank);
    if (call->result == NULL && has && call->bytes != 0) {
        return spc_api_refuse(SPC_EINVAL, "%s: result is NULL", call->name);
    }
    return has && call->values->format == SPCOMM_FORMAT_ARRAY ? check_alignment(call, "results", call->result)
                                                              : SPC_OK;
}

/* ---- with an object of the core */

/* Takes the object that the same call left, or none: *collect is NULL. SPC_EINVAL: the call has other memory, which
 * would be mixed with the old one. */
static int take_left(array_call_t *call, spc_collect_t **collect) {
    spc_api_left_t *left = &call->comm->left;
    const spc_collect_call_t *old = &left->call, *new = &call->core;
    const bool is_same = left->collect != NULL && old->operation == new->operation
                         && old->operator == new->operator && old->root == new->root && old->type == new->type
                         && old->hash == new->hash;
    if (!is_same) {
        return SPC_OK; /* if one was left, the core refuses this call */
    }
    if (old->input != new->input || old->memory != new->memory) {
        return spc_api_refuse(
            SPC_EINVAL,
            "%s: this node has left that call before its end; repeat it with the same values "
            "and result",
            call->name);
    }
    *collect = left->collect;
    free(call->counts);
    call->counts = left->counts;
    left->collect = NULL;
    left->counts = NULL;
    return SPC_OK;
}

static int run_object(array_call_t *call, spc_collect_t *collect) {
    const uint64_t deadline_ns = spc_clock_deadline_ns(call->timeout_ns);
    int status = spc_collect_run(collect, deadline_ns);
    if (status == SPC_ENOMEM) { /* some node's arena has no room: all nodes come here */
        spc_collect_use_no_blocks(collect, call->core.memory);
        status = spc_collect_run(collect, deadline_ns);
    }
    if (status == SPC_OK) {
        spc_block_shared_t *block = NULL;
        const void *made = spc_collect_take_result(collect, &block);
        if (block != NULL) {
            memcpy(call->result, made, call->bytes);
            spc_comm_release_block(call->comm->core, block);
        }
    }
    return status;
}

static int combine_object(array_call_t *call) {
    spc_api_left_t *left = &call->comm->left;
    spc_collect_t *collect = NULL;
    call->core.memory = spc_collect_has_result(&call->core, call->comm->rank) ? call->result : NULL;
    int status = take_left(call, &collect);
    if (status != SPC_OK) {
        return status;
    }
    status = collect == NULL ? spc_collect_create(call->comm->core, &call->core, &collect) : SPC_OK;
    if (status != SPC_OK) {
        return fail(call, status);
    }
    status = run_object(call, collect);
    if (status == SPC_ETIMEDOUT || status == SPC_EINTERRUPTED) {
        left->collect = collect;
        left->call = call->core;
        left->counts = call->counts;
        call->counts = NULL;
    } else {
        spc_collect_destroy(collect);
    }
    return fail(call, status);
}

/* ---- in one step */

static int combine_short(array_call_t *call) {
    spc_signature_t signature;
    spc_field_t field;
    void *result = call->result;
    spc_collect_describe_short(&call->core, &signature, &field);
    if (!spc_collect_has_result(&call->core, call->comm->rank)) {
        result = NULL;
    }
    const int status = spc_comm_collective(call->comm->core, &signature, &field, call->core.input,
                                           call->bytes, result, spc_clock_deadline_ns(call->timeout_ns));
    return fail(call, status);
}

/* A number or a time: as Python's int, float and SimTime. */
static int combine_number(array_call_t *call) {
    uint32_t type = SPC_TYPE_INT, kind = SPC_KIND_INT;
    if (call->values->format == SPCOMM_FORMAT_FLOAT64) {
        type = SPC_TYPE_FLOAT64;
        kind = SPC_KIND_FLOAT;
    } else if (call->values->format == SPCOMM_FORMAT_SIMTIME) {
        type = SPC_TYPE_SIMTIME;
        kind = SPC_KIND_SIMTIME;
    }
    const spc_field_t field = {type, 1};
    const spc_signature_t signature = {
        .operation = (uint8_t)call->core.operation,
        .operator = (uint8_t)call->core.operator,
        .root = call->core.root,
        .type = (uint8_t)type,
        .field_count = 1,
        .length_bytes = spc_type_size(type),
        .layout = spc_layout_of_one(kind),
    };
    unsigned char combined[sizeof(spcomm_simtime_t)];
    const int status =
        spc_comm_collective(call->comm->core, &signature, &field, &call->values->value,
                            signature.length_bytes, combined, spc_clock_deadline_ns(call->timeout_ns));
    if (status == SPC_OK && spc_collect_has_result(&call->core, call->comm->rank)) {
        memcpy(call->result, combined, signature.length_bytes);
    }
    return spc_api_fail_collective(call->comm, status, call->name, NULL);
}

static bool is_number(const array_call_t *call) {
    const int32_t format = call->values->format;
    return format == SPCOMM_FORMAT_INT64 || format == SPCOMM_FORMAT_FLOAT64
           || format == SPCOMM_FORMAT_SIMTIME;
}

/* ---- the whole call */

static int refuse_values(const array_call_t *call) {
    return spc_api_refuse(
        SPC_EINVAL,
        "%s: values are an array (spcomm_array, spcomm_simtimes, spcomm_pairs); allreduce and "
        "reduce by SUM, MIN and MAX also take spcomm_int64, spcomm_float64 and spcomm_simtime",
        call->name);
}

static int combine_entered(array_call_t *call) {
    spcomm_t *comm = call->comm;
    if (is_number(call)) {
        return combine_number(call);
    }
    return call->counts == NULL && spc_collect_is_short(comm->core, &call->core) ? combine_short(call)
                                                                                 : combine_object(call);
}

/* All arguments are checked. */
static int enter(array_call_t *call) {
    if (!spc_api_enter_collective(call->comm, call->name)) {
        return SPC_EBUSY;
    }
    const int status = combine_entered(call);
    spc_api_leave_collective(call->comm);
    return status;
}

static int prepare(array_call_t *call, int32_t op, int32_t root) {
    int status = spc_api_check(call->comm, call->name);
    status = status == SPC_OK ? spc_api_check_root(call->comm, call->name, root) : status;
    status = status == SPC_OK ? check_operator(call, op) : status;
    if (status != SPC_OK) {
        return status;
    }
    call->core.operator = (spc_operator_t)op;
    call->core.root = (uint32_t)root;
    if (call->values->format == SPCOMM_FORMAT_ARRAY) {
        return read_values(call);
    }
    const bool at_once = call->core.operation == SPC_OPERATION_ARRAY_ALLREDUCE
                         || call->core.operation == SPC_OPERATION_ARRAY_REDUCE;
    call->bytes = sizeof(int64_t); /* not 0 */
    return is_number(call) && at_once && op <= SPCOMM_MAX ? SPC_OK : refuse_values(call);
}

static int combine(spcomm_t *comm, const char *name, spc_operation_t operation, const spcomm_data_t *values,
                   int32_t op, int32_t root, int64_t timeout_ns, void *result) {
    array_call_t call = {
        .comm = comm, .name = name, .values = values, .timeout_ns = timeout_ns, .result = result};
    SPC_API_RECORD(comm, name);
    call.core.operation = operation;
    int status = prepare(&call, op, root);
    status = status == SPC_OK ? check_result(&call) : status;
    return status == SPC_OK ? enter(&call) : status;
}

int spcomm_allreduce(spcomm_t *comm, spcomm_data_t values, int32_t op, int64_t timeout_ns, void *result) {
    return combine(comm, "spcomm_allreduce()", SPC_OPERATION_ARRAY_ALLREDUCE, &values, op, 0, timeout_ns,
                   result);
}

int spcomm_reduce(spcomm_t *comm, spcomm_data_t values, int32_t op, int32_t root, int64_t timeout_ns,
                  void *result) {
    return combine(comm, "spcomm_reduce()", SPC_OPERATION_ARRAY_REDUCE, &values, op, root, timeout_ns,
                   result);
}

int spcomm_scan(spcomm_t *comm, spcomm_data_t values, int32_t op, int64_t timeout_ns, void *result) {
    return combine(comm, "spcomm_scan()", SPC_OPERATION_ARRAY_SCAN, &values, op, 0, timeout_ns, result);
}

int spcomm_exscan(spcomm_t *comm, spcomm_data_t values, int32_t op, int64_t timeout_ns, void *result) {
    return combine(comm, "spcomm_exscan()", SPC_OPERATION_ARRAY_EXSCAN, &values, op, 0, timeout_ns, result);
}

/* ---- reduce_scatter */

/* Converts rows to elements. */
static int read_counts(array_call_t *call, const int64_t *rows) {
    const spcomm_array_t *array = &call->values->array;
    const uint32_t size = call->comm->size;
    if (array->dimensions == 0) {
        return spc_api_refuse(SPC_EINVAL, "%s: values have no axes; the first axis is divided", call->name);
    }
    const int64_t length = array->shape[0];
    const uint64_t row = length > 0 ? call->core.count / (uint64_t)length : 0;
    int64_t left = length;
    call->counts = malloc(size * sizeof(*call->counts));
    if (call->counts == NULL) {
        return spc_api_fail(call->comm, SPC_ENOMEM, "%s", call->name);
    }
    for (uint32_t rank = 0; rank < size; rank++) {
        const int64_t mine = rows != NULL ? rows[rank] : length / size + (rank < length % size);
        if (mine < 0 || mine > left) {
            return spc_api_refuse(
                SPC_EINVAL, "%s: counts[%u] is %lld, and %lld of %lld rows are left; a count is 0 or more",
                call->name, rank, (long long)mine, (long long)left, (long long)length);
        }
        left -= mine;
        call->counts[rank] = (uint64_t)mine * row;
    }
    return left == 0
               ? SPC_OK
               : spc_api_refuse(SPC_EINVAL, "%s: the counts are %lld together, and the first axis is %lld",
                                call->name, (long long)(length - left), (long long)length);
}

int spcomm_reduce_scatter(spcomm_t *comm, spcomm_data_t values, int32_t op, const int64_t *counts,
                          int64_t timeout_ns, void *result) {
    array_call_t call = {.comm = comm,
                         .name = "spcomm_reduce_scatter()",
                         .values = &values,
                         .timeout_ns = timeout_ns,
                         .result = result};
    SPC_API_RECORD(comm, "spcomm_reduce_scatter()");
    call.core.operation = SPC_OPERATION_ARRAY_REDUCE_SCATTER;
    int status = prepare(&call, op, 0);
    status = status == SPC_OK ? read_counts(&call, counts) : status;
    if (status == SPC_OK) {
        call.core.counts = call.counts;
        if (result == NULL && call.counts[comm->rank] != 0) {
            status = spc_api_refuse(SPC_EINVAL, "%s: result is NULL", call.name);
        } else {
            status = check_alignment(&call, "results", result);
        }
    }
    status = status == SPC_OK ? enter(&call) : status;
    free(call.counts);
    return status;
}
