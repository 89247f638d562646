/* SPDX-License-Identifier: MIT */
/*
 * Collectives that move data. A node whose data cannot be given takes part all the same and reports it, since the
 * others wait for it; then it fails.
 */
#include <stdio.h>
#include <stdlib.h>

#include "api/spc_api_private.h"

#define CALL_BYTES 64

/* ---- state that a call leaves for its continuation */

bool spc_api_enter_collective(spcomm_t *comm, const char *call) {
    /* Acquire pairs with the release in leave: the state that the last thread left is visible. */
    if (atomic_exchange_explicit(&comm->inside, true, memory_order_acquire)) {
        (void)spc_api_fail(comm, SPC_EBUSY, "%s", call);
        return false;
    }
    return true;
}

void spc_api_leave_collective(spcomm_t *comm) { /* pairs with enter */
    atomic_store_explicit(&comm->inside, false, memory_order_release);
}

/* ---- a call */

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

/* ---- received data */

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

/* ---- the whole call */

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
    status = status == SPC_OK ? spc_api_check_root(comm, exchange->name, exchange->root) : status;
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
    if (!spc_api_enter_collective(comm, exchange->name)) {
        return SPC_EBUSY;
    }
    status = run(exchange);
    free(exchange->encoded);
    spc_api_leave_collective(comm);
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
