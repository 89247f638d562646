/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "api/spc_api_private.h"
#include "diagnose/spc_deadlock_report.h"

/* ---- collectives that move data
 *
 * A node whose data cannot be given takes part all the same and reports it, since the others wait for it; then it
 * fails. */

#define CALL_BYTES 64

/* SPC_OK if such a root exists; else SPC_ERANK, with its sentence. */
static int check_root(const spcomm_t *comm, const char *call, int32_t root) {
    if (root >= 0 && (uint32_t)root < comm->size) {
        return SPC_OK;
    }
    return spc_api_refuse_rank(comm, call, root, ", which should be root", "");
}

/* ---- data: state that a call leaves for its continuation */

/* False: another thread is inside one, or this thread's handler; the sentence reports which. */
static bool enter_collective(spcomm_t *comm, const char *call) {
    /* Acquire pairs with the release in leave_collective: the state that the last thread left is visible. */
    if (atomic_exchange_explicit(&comm->inside, true, memory_order_acquire)) {
        (void)spc_api_fail(comm, SPC_EBUSY, "%s", call);
        return false;
    }
    return true;
}

static void leave_collective(spcomm_t *comm) { /* pairs with enter_collective */
    atomic_store_explicit(&comm->inside, false, memory_order_release);
}

/* ---- data: a call */

typedef struct exchange {
    spcomm_t *comm;
    const char *name; /* a literal, "spcomm_bcast()" */
    spc_operation_t operation;
    int32_t root;
    const spcomm_data_t *data; /* data that this node gives */
    uint32_t count; /* 0, 1, or one for each node */
    int64_t timeout_ns;
    spcomm_message_t *messages; /* data that it gets */
    spc_api_encoded_t *encoded;
    spc_payload_t *payloads;
} exchange_t;

static bool has_root(const exchange_t *exchange) {
    return exchange->operation != SPC_OPERATION_DATA_ALLGATHER
           && exchange->operation != SPC_OPERATION_DATA_ALLTOALL;
}

/* "spcomm_bcast(root=1)" */
static const char *words_of(const exchange_t *exchange, char *text) {
    if (!has_root(exchange)) {
        return exchange->name;
    }
    snprintf(text, CALL_BYTES, "%.*s(root=%d)", (int)strcspn(exchange->name, "("), exchange->name,
             exchange->root);
    return text;
}

static int encode_all(exchange_t *exchange) {
    exchange->encoded = malloc(exchange->count * (sizeof(spc_api_encoded_t) + sizeof(spc_payload_t)) + 1);
    if (exchange->encoded == NULL) {
        return spc_api_fail(exchange->comm, SPC_ENOMEM, "%s", exchange->name);
    }
    exchange->payloads = (spc_payload_t *)(exchange->encoded + exchange->count);
    if (exchange->data == NULL && exchange->count != 0) {
        return spc_api_refuse(SPC_EINVAL, "%s: data is NULL; it is what this node gives", exchange->name);
    }
    for (uint32_t i = 0; i < exchange->count; i++) {
        const int status = spc_api_encode(exchange->name, &exchange->data[i], &exchange->encoded[i]);
        if (status != SPC_OK) {
            return status;
        }
        exchange->payloads[i] = exchange->encoded[i].payload;
    }
    return SPC_OK;
}

/* NULL: no memory. `encoded`: whether the data can be given; if not, the sentence has the reason. */
static spc_gathering_t *make(const exchange_t *exchange, int encoded) {
    spc_gathering_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    made->operation = exchange->operation;
    made->root = (uint32_t)exchange->root;
    made->payload_count = exchange->count;
    if (encoded != SPC_OK) {
        const size_t bytes = strlen(spcomm_last_error()) + CALL_BYTES;
        char *failure = malloc(bytes);
        if (failure == NULL) {
            free(made);
            return NULL;
        }
        made->failure_bytes =
            (uint32_t)snprintf(failure, bytes, "%s: %s", spcomm_error_name(encoded), spcomm_last_error());
        made->failure = failure;
        made->payload_count = 0;
    }
    return made;
}

static void destroy(spcomm_t *comm, spc_gathering_t *gathering) {
    spc_comm_gathering_end(comm->core, gathering);
    free((void *)(uintptr_t)gathering->failure); /* as created here */
    free(gathering);
}

void spc_api_drop_left(spcomm_t *comm) {
    spc_api_left_t *left = &comm->left;
    if (left->gathering != NULL) {
        destroy(comm, left->gathering);
    }
    spc_collect_destroy(left->collect);
    free(left->counts);
    *left = (spc_api_left_t){.gathering = NULL};
}

/* A digest (FNV-1a) of the formats and lengths that this node gives. A call that goes on must have the same, since
 * parts of its messages may have been sent; what they contain is the program's. */
static uint64_t form_of(const exchange_t *exchange) {
    uint64_t form = UINT64_C(14695981039346656037);
    for (uint32_t i = 0; i < exchange->count; i++) {
        const spc_payload_t *payload = &exchange->payloads[i];
        form = (form ^ payload->format ^ (uint64_t)payload->meta_bytes << 8) * UINT64_C(1099511628211);
        form = (form ^ payload->data_bytes) * UINT64_C(1099511628211);
    }
    return form;
}

/* A new structure, or the one that the same call left. */
static int begin(const exchange_t *exchange, int encoded, spc_gathering_t **gathering) {
    spc_gathering_t *left = exchange->comm->left.gathering;
    if (left == NULL || left->operation != exchange->operation || left->root != (uint32_t)exchange->root) {
        *gathering = make(exchange, encoded);
        return *gathering != NULL ? SPC_OK : spc_api_fail(exchange->comm, SPC_ENOMEM, "%s", exchange->name);
    }
    if (encoded != SPC_OK && left->failure == NULL) {
        return encoded; /* it stays left */
    }
    if (left->failure == NULL && form_of(exchange) != exchange->comm->left.form) {
        return spc_api_refuse(SPC_EINVAL,
                              "%s: this node has left that call before its end; repeat it with data of the "
                              "same types and lengths",
                              exchange->name);
    }
    *gathering = left;
    exchange->comm->left.gathering = NULL;
    return SPC_OK;
}

/* ---- data: received data */

/* This node's own part: as private as data from other nodes. */
static int copy_own(spcomm_t *comm, const spc_payload_t *payload, spcomm_message_t *message) {
    const uint64_t bytes = payload->meta_bytes + payload->data_bytes;
    spc_message_t found = {.source = (int32_t)comm->rank,
                           .format = payload->format,
                           .meta_bytes = payload->meta_bytes,
                           .length_bytes = bytes,
                           .storage = SPC_STORED_HEAP,
                           .sole = 1};
    found.handle = found.bytes = malloc(bytes + 1);
    if (found.bytes == NULL) {
        return SPC_ENOMEM;
    }
    spc_payload_copy(payload, 0, bytes, found.bytes);
    const int status = spc_api_decode(comm, &found, true, message);
    if (status != SPC_OK) {
        free(found.handle);
    }
    return status;
}

/* The message becomes the program's. */
static int hand_over(spcomm_t *comm, spc_message_t *found, spcomm_message_t *message) {
    const int status = spc_api_decode(comm, found, true, message);
    if (status == SPC_OK) {
        *found = (spc_message_t){.storage = SPC_STORED_INLINE};
    }
    return status;
}

static int take_one(const exchange_t *exchange, spc_gathering_t *gathering) {
    spcomm_t *comm = exchange->comm;
    if ((uint32_t)exchange->root != comm->rank) {
        return hand_over(comm, gathering->messages, exchange->messages);
    }
    const bool is_scatter = exchange->operation == SPC_OPERATION_DATA_SCATTER;
    return exchange->messages == NULL
               ? SPC_OK
               : copy_own(comm, &exchange->payloads[is_scatter ? comm->rank : 0], exchange->messages);
}

/* By rank; all or none. */
static int take_all(const exchange_t *exchange, spc_gathering_t *gathering) {
    spcomm_t *comm = exchange->comm;
    const uint32_t own = exchange->count == 1 ? 0 : comm->rank;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        const int status = rank == comm->rank
                               ? copy_own(comm, &exchange->payloads[own], &exchange->messages[rank])
                               : hand_over(comm, &gathering->messages[rank], &exchange->messages[rank]);
        if (status != SPC_OK) {
            while (rank-- > 0) {
                spcomm_message_free(&exchange->messages[rank]);
            }
            return status;
        }
    }
    return SPC_OK;
}

static int take(const exchange_t *exchange, spc_gathering_t *gathering) {
    switch (exchange->operation) {
    case SPC_OPERATION_DATA_BCAST:
    case SPC_OPERATION_DATA_SCATTER:
        return take_one(exchange, gathering);
    case SPC_OPERATION_DATA_GATHER:
        return (uint32_t)exchange->root == exchange->comm->rank ? take_all(exchange, gathering) : SPC_OK;
    default:
        return take_all(exchange, gathering);
    }
}

/* ---- data: the whole call */

static int refuse_failed(const exchange_t *exchange, const spc_gathering_t *gathering, const char *words) {
    const bool is_one =
        exchange->operation == SPC_OPERATION_DATA_BCAST || exchange->operation == SPC_OPERATION_DATA_SCATTER;
    const spc_message_t *reason = &gathering->messages[is_one ? 0 : gathering->failed];
    return spc_api_refuse(SPC_EFAILED, "%s: node %u gave nothing, because it raised %.*s", words,
                          spc_comm_rank_in_run(exchange->comm->core, (uint32_t)gathering->failed),
                          (int)spc_message_data_bytes(reason), (const char *)spc_message_data(reason));
}

static int conclude(const exchange_t *exchange, int status, spc_gathering_t *gathering) {
    char text[CALL_BYTES];
    const char *words = words_of(exchange, text);
    const bool is_over = status == SPC_OK || status == SPC_ELOST || status == SPC_EFINISHED;
    if (gathering->failure != NULL && is_over) { /* lost nodes may have ended because of it */
        return spc_api_refuse(SPC_EINVAL, "%s", gathering->failure + strlen("SPCOMM_EINVAL: "));
    }
    if (status != SPC_OK) {
        return spc_api_fail_collective(exchange->comm, status, words, NULL);
    }
    if (gathering->failed >= 0) {
        return refuse_failed(exchange, gathering, words);
    }
    return spc_api_fail(exchange->comm, take(exchange, gathering), "%s", words);
}

static int run(exchange_t *exchange) {
    spcomm_t *comm = exchange->comm;
    spc_gathering_t *gathering = NULL;
    int status = begin(exchange, encode_all(exchange), &gathering);
    if (status != SPC_OK) {
        return status;
    }
    gathering->payloads = exchange->payloads;
    status = spc_comm_gathering(comm->core, gathering, spc_clock_deadline_ns(exchange->timeout_ns));
    const int concluded = conclude(exchange, status, gathering);
    if (status == SPC_ETIMEDOUT || status == SPC_EINTERRUPTED) {
        comm->left.gathering = gathering;
        comm->left.form = gathering->failure == NULL ? form_of(exchange) : 0;
    } else {
        destroy(comm, gathering);
    }
    return concluded;
}

static int gather(exchange_t *exchange) {
    spcomm_t *comm = exchange->comm;
    int status = spc_api_check(comm, exchange->name);
    status = status == SPC_OK ? check_root(comm, exchange->name, exchange->root) : status;
    if (status != SPC_OK) {
        return status;
    }
    const bool is_root = (uint32_t)exchange->root == comm->rank;
    const bool may_be_null = exchange->operation == SPC_OPERATION_DATA_BCAST
                                 ? is_root
                                 : exchange->operation == SPC_OPERATION_DATA_GATHER && !is_root;
    if (exchange->messages == NULL && !may_be_null) {
        return spc_api_refuse(SPC_EINVAL, "%s: the place for what comes is NULL", exchange->name);
    }
    if (!enter_collective(comm, exchange->name)) {
        return SPC_EBUSY;
    }
    status = run(exchange);
    free(exchange->encoded);
    leave_collective(comm);
    return status;
}

int spcomm_bcast(spcomm_t *comm, spcomm_data_t data, int32_t root, int64_t timeout_ns,
                 spcomm_message_t *message) {
    exchange_t exchange = {
        comm, "spcomm_bcast()", SPC_OPERATION_DATA_BCAST, root, &data, 0, timeout_ns, message, NULL, NULL};
    SPC_API_RECORD(comm, exchange.name);
    exchange.count = comm != NULL && (uint32_t)root == comm->rank ? 1 : 0;
    return gather(&exchange);
}

int spcomm_scatter(spcomm_t *comm, const spcomm_data_t *data, int32_t root, int64_t timeout_ns,
                   spcomm_message_t *message) {
    exchange_t exchange = {
        comm, "spcomm_scatter()", SPC_OPERATION_DATA_SCATTER, root, data, 0, timeout_ns, message, NULL, NULL};
    SPC_API_RECORD(comm, exchange.name);
    exchange.count = comm != NULL && (uint32_t)root == comm->rank ? comm->size : 0;
    return gather(&exchange);
}

int spcomm_gather(spcomm_t *comm, spcomm_data_t data, int32_t root, int64_t timeout_ns,
                  spcomm_message_t *messages) {
    exchange_t exchange = {
        comm, "spcomm_gather()", SPC_OPERATION_DATA_GATHER, root, &data, 1, timeout_ns, messages, NULL, NULL};
    SPC_API_RECORD(comm, exchange.name);
    return gather(&exchange);
}

int spcomm_allgather(spcomm_t *comm, spcomm_data_t data, int64_t timeout_ns, spcomm_message_t *messages) {
    exchange_t exchange = {
        comm, "spcomm_allgather()", SPC_OPERATION_DATA_ALLGATHER, 0, &data, 1, timeout_ns, messages, NULL,
        NULL};
    SPC_API_RECORD(comm, exchange.name);
    return gather(&exchange);
}

int spcomm_alltoall(spcomm_t *comm, const spcomm_data_t *data, int64_t timeout_ns,
                    spcomm_message_t *messages) {
    exchange_t exchange = {
        comm, "spcomm_alltoall()", SPC_OPERATION_DATA_ALLTOALL, 0, data, 0, timeout_ns, messages, NULL, NULL};
    SPC_API_RECORD(comm, exchange.name);
    exchange.count = comm != NULL ? comm->size : 0;
    return gather(&exchange);
}

/* ---- reductions of arrays
 *
 * The algorithm of each, and its signature, are those of spcomm/_core/reductions.pyx: nodes of both languages take
 * part in the same reductions. */

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

/* ---- arrays: operands */

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
    spc_note_t mine;
    const bool is_described = status == SPC_EMISMATCH && call->core.kind == SPC_KIND_ARRAY;
    if (is_described) {
        mine = (spc_note_t){.line = 0};
        describe(call, mine.words, sizeof(mine.words));
    }
    return spc_api_fail_collective(call->comm, status, call->name, is_described ? &mine : NULL);
}

/* ---- arrays: checks */

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

/* A number or a time: as Python's int, float and SimTime. False: it is an array, or of no use. */
static bool read_number(array_call_t *call) {
    switch (call->values->format) {
    case SPCOMM_FORMAT_INT64:
        call->core.type = SPC_TYPE_INT;
        call->core.kind = SPC_KIND_INT;
        break;
    case SPCOMM_FORMAT_FLOAT64:
        call->core.type = SPC_TYPE_FLOAT64;
        call->core.kind = SPC_KIND_FLOAT;
        break;
    case SPCOMM_FORMAT_SIMTIME:
        call->core.type = SPC_TYPE_SIMTIME;
        call->core.kind = SPC_KIND_SIMTIME;
        break;
    default:
        return false;
    }
    call->bytes = spc_type_size(call->core.type);
    call->core.hash = spc_layout_mix(0, call->core.kind);
    call->core.count = 1;
    call->core.input = &call->values->value;
    return true;
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

/* ---- arrays: with an object of the core */

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

/* ---- arrays: in one step */

static int combine_short(array_call_t *call) {
    spc_signature_t signature;
    spc_field_t field;
    void *result = call->result;
    spc_collect_describe_short(&call->core, &signature, &field);
    if (!spc_collect_has_result(&call->core, call->comm->rank)) {
        result = NULL;
    }
    const int status =
        spc_comm_collective(call->comm->core, &signature, &field, call->core.input, signature.length_bytes,
                            result, spc_clock_deadline_ns(call->timeout_ns));
    return fail(call, status);
}

/* ---- arrays: the whole call */

static int refuse_values(const array_call_t *call) {
    return spc_api_refuse(
        SPC_EINVAL,
        "%s: values are an array (spcomm_array, spcomm_simtimes, spcomm_pairs); allreduce and "
        "reduce by SUM, MIN and MAX also take spcomm_int64, spcomm_float64 and spcomm_simtime",
        call->name);
}

static int combine_entered(array_call_t *call) {
    const spc_collect_way_t way = spc_collect_way(call->comm->core, &call->core);
    return way.combiner == SPC_COLLECT_AT_ONCE ? combine_short(call) : combine_object(call);
}

/* All arguments are checked. */
static int enter(array_call_t *call) {
    if (!enter_collective(call->comm, call->name)) {
        return SPC_EBUSY;
    }
    const int status = combine_entered(call);
    leave_collective(call->comm);
    return status;
}

static int prepare(array_call_t *call, int32_t op, int32_t root) {
    int status = spc_api_check(call->comm, call->name);
    status = status == SPC_OK ? check_root(call->comm, call->name, root) : status;
    status = status == SPC_OK ? check_operator(call, op) : status;
    if (status != SPC_OK) {
        return status;
    }
    call->core.operator = (spc_operator_t)op;
    call->core.root = (uint32_t)root;
    if (call->values->format == SPCOMM_FORMAT_ARRAY) {
        return read_values(call);
    }
    const bool is_known =
        read_number(call) && spc_collect_way(call->comm->core, &call->core).combiner == SPC_COLLECT_AT_ONCE;
    return is_known ? SPC_OK : refuse_values(call);
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

/* ---- arrays: reduce_scatter */

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

/* ---- barriers */

int spcomm_barrier(spcomm_t *comm, int64_t timeout_ns) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    SPC_API_RECORD(comm, "spcomm_barrier()");
    int status = spc_api_check(comm, "spcomm_barrier()");
    if (status != SPC_OK) {
        return status;
    }
    status =
        spc_comm_collective(comm->core, &signature, NULL, NULL, 0, NULL, spc_clock_deadline_ns(timeout_ns));
    return spc_api_fail_collective(comm, status, "spcomm_barrier()", NULL);
}

/* ---- fuzzy barriers */

static int refuse_null_fuzzy(const char *call) {
    return spc_api_refuse(SPC_EINVAL, "%s: fuzzy is NULL; it is what spcomm_fuzzy_enter has filled in", call);
}

int spcomm_fuzzy_enter(spcomm_t *comm, spcomm_fuzzy_t *fuzzy) {
    static const char call[] = "spcomm_fuzzy_enter()";
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    if (fuzzy == NULL) {
        return refuse_null_fuzzy(call);
    }
    return spc_api_fail(comm, spc_comm_fuzzy_enter(comm->core, &fuzzy->phase), "%s", call);
}

int spcomm_fuzzy_done(spcomm_t *comm, spcomm_fuzzy_t *fuzzy, int *done) {
    static const char call[] = "spcomm_fuzzy_done()";
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    if (fuzzy == NULL || done == NULL) {
        return refuse_null_fuzzy(call);
    }
    status = spc_comm_fuzzy_done(comm->core, fuzzy->phase);
    if (status == SPC_OK || status == SPC_EAGAIN) {
        *done = status == SPC_OK;
        return SPC_OK;
    }
    return spc_api_fail(comm, status, "%s", call);
}

int spcomm_fuzzy_wait(spcomm_t *comm, spcomm_fuzzy_t *fuzzy, int64_t timeout_ns) {
    static const char call[] = "spcomm_fuzzy_wait()";
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    if (fuzzy == NULL) {
        return refuse_null_fuzzy(call);
    }
    status = spc_comm_fuzzy_wait(comm->core, fuzzy->phase, spc_clock_deadline_ns(timeout_ns));
    return spc_api_fail_collective(comm, status, call, NULL);
}

/* Without a handle there is one at a time, as in the paper: a return value of 1 could not name its barrier. */
int spcomm_enter_fuzzy_barrier(spcomm_t *comm) {
    static const char call[] = "spcomm_enter_fuzzy_barrier()";
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    pthread_mutex_lock(&comm->lock);
    bool already = comm->in_fuzzy;
    if (!already) {
        status = spc_comm_fuzzy_enter(comm->core, &comm->fuzzy_phase);
        comm->in_fuzzy = status == SPC_OK;
    }
    pthread_mutex_unlock(&comm->lock);
    if (already) {
        return spc_api_refuse(SPC_ELIMIT,
                              "%s: this node is in a fuzzy barrier already; try to exit until that gives 1, "
                              "or use spcomm_fuzzy_enter, which has up to %d at a time",
                              call, SPC_FUZZY_MAX);
    }
    return spc_api_fail(comm, status, "%s", call);
}

/* With the lock. After a mismatch the barrier is over; one that a lost node keeps from ending stays. */
static int ask_entered(spcomm_t *comm) {
    int status = spc_comm_fuzzy_done(comm->core, comm->fuzzy_phase);
    comm->in_fuzzy = status != SPC_OK && status != SPC_EMISMATCH;
    return status;
}

int spcomm_exit_fuzzy_barrier(spcomm_t *comm, int *done) {
    static const char call[] = "spcomm_exit_fuzzy_barrier()";
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    if (done == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: done is NULL; it is where 0 or 1 goes", call);
    }
    pthread_mutex_lock(&comm->lock);
    bool any = comm->in_fuzzy;
    status = any ? ask_entered(comm) : SPC_EINVAL;
    pthread_mutex_unlock(&comm->lock);
    if (!any) {
        return spc_api_refuse(
            SPC_EINVAL, "%s: this node is in no fuzzy barrier; enter one first; after a 1 it is over", call);
    }
    if (status == SPC_OK || status == SPC_EAGAIN) {
        *done = status == SPC_OK;
        return SPC_OK;
    }
    return spc_api_fail(comm, status, "%s", call);
}

/* ---- reductions of numbers */

/* One value, or the three of spcomm_values_t. */
static int reduce(spcomm_t *comm, const char *name, spc_operator_t operator, uint64_t layout,
                  const spc_field_t *fields, uint8_t field_count, const void *value, int64_t timeout_ns,
                  void *result) {
    const spc_signature_t signature = {
        .operation = SPC_OPERATION_REDUCE,
        .operator = (uint8_t)operator,
        .type = (uint8_t)fields[0].type,
        .field_count = field_count,
        .length_bytes = spc_fields_bytes(fields, field_count),
        .layout = layout,
    };
    unsigned char combined[sizeof(spcomm_values_t)];
    SPC_API_RECORD(comm, name);
    int status = spc_api_check(comm, name);
    if (status != SPC_OK) {
        return status;
    }
    if (value == NULL || result == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: %s is NULL", name, value == NULL ? "values" : "result");
    }
    status = spc_comm_collective(comm->core, &signature, fields, value, signature.length_bytes, combined,
                                 spc_clock_deadline_ns(timeout_ns));
    if (status == SPC_OK) {
        memcpy(result, combined, signature.length_bytes);
    }
    return spc_api_fail_collective(comm, status, name, NULL);
}

#define REDUCE_ONE(function, ctype, kind, core_type, operator)                                    \
    int function(spcomm_t *comm, ctype value, int64_t timeout_ns, ctype *result) {                \
        const spc_field_t field = {core_type, 1};                                                 \
        return reduce(comm, #function "()", operator, spc_layout_of_one(kind), &field, 1, &value, \
                      timeout_ns, result);                                                        \
    }

REDUCE_ONE(spcomm_global_min_int64, int64_t, SPC_KIND_INT, SPC_TYPE_INT, SPC_MIN)
REDUCE_ONE(spcomm_global_max_int64, int64_t, SPC_KIND_INT, SPC_TYPE_INT, SPC_MAX)
REDUCE_ONE(spcomm_global_sum_int64, int64_t, SPC_KIND_INT, SPC_TYPE_INT, SPC_SUM)
REDUCE_ONE(spcomm_global_min_double, double, SPC_KIND_FLOAT, SPC_TYPE_FLOAT64, SPC_MIN)
REDUCE_ONE(spcomm_global_max_double, double, SPC_KIND_FLOAT, SPC_TYPE_FLOAT64, SPC_MAX)
REDUCE_ONE(spcomm_global_sum_double, double, SPC_KIND_FLOAT, SPC_TYPE_FLOAT64, SPC_SUM)
REDUCE_ONE(spcomm_global_min_simtime, spcomm_simtime_t, SPC_KIND_SIMTIME, SPC_TYPE_SIMTIME, SPC_MIN)
REDUCE_ONE(spcomm_global_max_simtime, spcomm_simtime_t, SPC_KIND_SIMTIME, SPC_TYPE_SIMTIME, SPC_MAX)
REDUCE_ONE(spcomm_global_sum_simtime, spcomm_simtime_t, SPC_KIND_SIMTIME, SPC_TYPE_SIMTIME, SPC_SUM)

_Static_assert(sizeof(spcomm_values_t) == 40, "the fields follow each other without gaps");

static int reduce_values(spcomm_t *comm, const char *name, spc_operator_t operator,
                         const spcomm_values_t *values, int64_t timeout_ns, spcomm_values_t *result) {
    const spc_field_t fields[] = {{SPC_TYPE_INT, 1}, {SPC_TYPE_FLOAT64, 1}, {SPC_TYPE_SIMTIME, 1}};
    static const uint64_t kinds[] = {3, SPC_KIND_INT, SPC_KIND_FLOAT, SPC_KIND_SIMTIME};
    uint64_t hash = spc_layout_mix(0, SPC_KIND_TUPLE);
    for (uint32_t i = 0; i < 4; i++) {
        hash = spc_layout_mix(hash, kinds[i]);
    }
    return reduce(comm, name, operator, spc_layout_of(SPC_KIND_TUPLE, hash, 0), fields, 3, values, timeout_ns,
                  result);
}

int spcomm_global_min(spcomm_t *comm, const spcomm_values_t *values, int64_t timeout_ns,
                      spcomm_values_t *result) {
    return reduce_values(comm, "spcomm_global_min()", SPC_MIN, values, timeout_ns, result);
}

int spcomm_global_max(spcomm_t *comm, const spcomm_values_t *values, int64_t timeout_ns,
                      spcomm_values_t *result) {
    return reduce_values(comm, "spcomm_global_max()", SPC_MAX, values, timeout_ns, result);
}

int spcomm_global_sum(spcomm_t *comm, const spcomm_values_t *values, int64_t timeout_ns,
                      spcomm_values_t *result) {
    return reduce_values(comm, "spcomm_global_sum()", SPC_SUM, values, timeout_ns, result);
}
