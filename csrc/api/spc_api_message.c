/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdio.h>

#include "api/spc_api_private.h"
#include "base/spc_process.h"

#define CALL_BYTES 120

/* ---- destinations */

int spc_api_targets_one(const spcomm_t *comm, const char *call, int32_t dest, spc_api_targets_t *targets) {
    targets->count = 0;
    if (dest == SPCOMM_PROC_NULL) {
        return SPC_OK;
    }
    if (dest < 0 || (uint32_t)dest >= comm->size) {
        return spc_api_refuse_rank(comm, call, dest, "", ", and SPCOMM_PROC_NULL");
    }
    targets->count = 1;
    targets->ranks[0] = dest;
    return SPC_OK;
}

int spc_api_targets_set(const spcomm_t *comm, const char *call, const spcomm_destination_t *dest,
                        spc_api_targets_t *targets) {
    if (dest == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: dest is NULL; give a set, which may be empty", call);
    }
    targets->count = (uint32_t)spcomm_destination_to_ranks(dest, targets->ranks, SPCOMM_DESTINATION_RANKS);
    if (targets->count != 0 && (uint32_t)targets->ranks[targets->count - 1] >= comm->size) {
        return spc_api_refuse(SPC_ERANK,
                              "%s: node %d is in the set, and this %s has nodes 0 to %u; nothing was sent",
                              call, targets->ranks[targets->count - 1], spc_api_kind(comm), comm->size - 1);
    }
    return SPC_OK;
}

void spc_api_targets_all(const spcomm_t *comm, spc_api_targets_t *targets) {
    targets->count = comm->size;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        targets->ranks[rank] = (int32_t)rank;
    }
}

/* ---- sending */

/* `ahead`: the caller receives next. */
static int transmit(spcomm_t *comm, const char *call, const spc_api_targets_t *targets, int32_t tag,
                    const spcomm_data_t *data, uint64_t deadline_ns, bool ahead) {
    spc_api_encoded_t encoded;
    spc_send_call_t send;
    if (tag < 0) {
        return spc_api_refuse(SPC_ETAG, "%s: there is no tag %d; tags are 0 to %d", call, tag,
                              SPCOMM_TAG_MAX);
    }
    int status = spc_api_encode(call, data, &encoded);
    if (status != SPC_OK || targets->count == 0) {
        return status;
    }
    status = spc_comm_try_send(comm->core, targets->ranks, targets->count, SPC_CONTEXT_USER, tag,
                               &encoded.payload, &send);
    if (status == SPC_EAGAIN) {
        status = spc_comm_finish_send(comm->core, &send, ahead, deadline_ns);
    }
    return spc_api_fail(comm, status, "%s", call);
}

int spcomm_send(spcomm_t *comm, int32_t dest, int32_t tag, spcomm_data_t data, int64_t timeout_ns) {
    static const char call[] = "spcomm_send()";
    spc_api_targets_t targets;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    status = status == SPC_OK ? spc_api_targets_one(comm, call, dest, &targets) : status;
    return status == SPC_OK
               ? transmit(comm, call, &targets, tag, &data, spc_clock_deadline_ns(timeout_ns), false)
               : status;
}

int spcomm_send_set(spcomm_t *comm, const spcomm_destination_t *dest, int32_t tag, spcomm_data_t data,
                    int64_t timeout_ns) {
    static const char call[] = "spcomm_send_set()";
    spc_api_targets_t targets;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    status = status == SPC_OK ? spc_api_targets_set(comm, call, dest, &targets) : status;
    return status == SPC_OK
               ? transmit(comm, call, &targets, tag, &data, spc_clock_deadline_ns(timeout_ns), false)
               : status;
}

int spcomm_send_all(spcomm_t *comm, int32_t tag, spcomm_data_t data, int64_t timeout_ns) {
    static const char call[] = "spcomm_send_all()";
    spc_api_targets_t targets;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    spc_api_targets_all(comm, &targets);
    return transmit(comm, call, &targets, tag, &data, spc_clock_deadline_ns(timeout_ns), false);
}

int spcomm_ssend(spcomm_t *comm, int32_t dest, int32_t tag, spcomm_data_t data, int64_t timeout_ns) {
    static const char call[] = "spcomm_ssend()";
    spc_api_targets_t targets;
    spc_api_encoded_t encoded;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    status = status == SPC_OK ? spc_api_targets_one(comm, call, dest, &targets) : status;
    if (status == SPC_OK && tag < 0) {
        return spc_api_refuse(SPC_ETAG, "%s: there is no tag %d; tags are 0 to %d", call, tag,
                              SPCOMM_TAG_MAX);
    }
    if (status == SPC_OK && (uint32_t)dest == comm->rank && spc_process_threads() == 1) {
        return spc_api_refuse(SPC_ERANK,
                              "%s: node %d is this one, and has no other thread that could receive, so the "
                              "call could never return; use spcomm_send",
                              call, dest);
    }
    status = status == SPC_OK ? spc_api_encode(call, &data, &encoded) : status;
    if (status != SPC_OK || targets.count == 0) {
        return status;
    }
    status = spc_comm_ssend(comm->core, dest, SPC_CONTEXT_USER, tag, &encoded.payload,
                            spc_clock_deadline_ns(timeout_ns));
    return spc_api_fail(comm, status, "%s", call);
}

/* ---- receiving */

typedef struct query {
    const char *name;
    int32_t source; /* as passed by the program */
    int32_t tag;
    int32_t core_source;
    int32_t core_tag;
} query_t;

static void add_number(char *text, const char *name, int32_t number) {
    size_t length = strlen(text);
    if (number == SPCOMM_ANY) {
        snprintf(text + length, CALL_BYTES - length, "%s=SPCOMM_ANY", name);
    } else if (number == SPCOMM_PROC_NULL) {
        snprintf(text + length, CALL_BYTES - length, "%s=SPCOMM_PROC_NULL", name);
    } else {
        snprintf(text + length, CALL_BYTES - length, "%s=%d", name, number);
    }
}

/* "spcomm_recv(source=1, tag=SPCOMM_ANY)": built only when it is needed. */
static const char *describe(const query_t *query, char *text) {
    snprintf(text, CALL_BYTES, "%s(", query->name);
    add_number(text, "source", query->source);
    add_number(text, ", tag", query->tag);
    strncat(text, ")", CALL_BYTES - strlen(text) - 1);
    return text;
}

static int prepare(spcomm_t *comm, query_t *query, const void *result) {
    char call[CALL_BYTES];
    int status = spc_api_check(comm, query->name);
    if (status != SPC_OK) {
        return status;
    }
    if (result == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: message is NULL; it is what the call fills in",
                              describe(query, call));
    }
    const bool is_constant = query->source == SPCOMM_ANY || query->source == SPCOMM_PROC_NULL;
    if (!is_constant && (query->source < 0 || (uint32_t)query->source >= comm->size)) {
        return spc_api_refuse_rank(comm, describe(query, call), query->source, "",
                                   ", and SPCOMM_ANY and SPCOMM_PROC_NULL");
    }
    if (query->tag != SPCOMM_ANY && query->tag < 0) {
        return spc_api_refuse(SPC_ETAG, "%s: there is no tag %d; tags are 0 to %d, and SPCOMM_ANY",
                              describe(query, call), query->tag, SPCOMM_TAG_MAX);
    }
    if (spc_api_has_handler(comm, query->tag)) {
        return spc_api_refuse(SPC_ETAG, "%s: messages with tag %d are for the handler of that tag",
                              describe(query, call), query->tag);
    }
    query->core_source = query->source == SPCOMM_ANY ? SPC_ANY_SOURCE : query->source;
    query->core_tag = query->tag == SPCOMM_ANY ? SPC_ANY_TAG : query->tag;
    return SPC_OK;
}

/* Turns the outcome of a core receive into a status. */
static int conclude(spcomm_t *comm, const query_t *query, int status, spc_message_t *found, bool any,
                    spcomm_message_t *message) {
    char call[CALL_BYTES];
    if (status == SPC_EAGAIN) {
        return status;
    }
    if (status == SPC_OK && found->format <= SPC_FORMAT_FLOAT64
        && spc_api_decode(comm, found, any, message) == SPC_OK) {
        return SPC_OK; /* the common case, which needs no text */
    }
    describe(query, call);
    if (status == SPC_OK) {
        return spc_api_hand_over(comm, call, found, any, message);
    }
    return spc_api_fail_receive(comm, status, call, query->core_source, query->core_tag);
}

/* Whether a prepared receive is from no node: then this is its message. Its memory is not written to. */
static bool is_from_nobody(const query_t *query, spcomm_message_t *message) {
    static const max_align_t nothing = {0};
    if (query->source != SPCOMM_PROC_NULL) {
        return false;
    }
    *message = (spcomm_message_t){.data = (void *)(uintptr_t)&nothing,
                                  .source = SPCOMM_PROC_NULL,
                                  .tag = query->tag,
                                  .format = SPCOMM_FORMAT_NONE};
    return true;
}

/* Called after prepare. */
static int receive_until(spcomm_t *comm, const query_t *query, uint64_t deadline_ns, bool any,
                         spcomm_message_t *message) {
    spc_message_t found;
    if (is_from_nobody(query, message)) {
        return SPC_OK;
    }
    int status = spc_api_run_handlers(comm);
    if (status == SPC_OK) {
        status = spc_comm_recv(comm->core, SPC_CONTEXT_USER, query->core_source, query->core_tag, deadline_ns,
                               &found);
    }
    return conclude(comm, query, status, &found, any, message);
}

static int receive(spcomm_t *comm, query_t *query, int64_t timeout_ns, bool any, spcomm_message_t *message) {
    SPC_API_RECORD(comm, query->name);
    int status = prepare(comm, query, message);
    return status == SPC_OK ? receive_until(comm, query, spc_clock_deadline_ns(timeout_ns), any, message)
                            : status;
}

int spcomm_recv(spcomm_t *comm, int32_t source, int32_t tag, int64_t timeout_ns, spcomm_message_t *message) {
    query_t query = {"spcomm_recv", source, tag, 0, 0};
    return receive(comm, &query, timeout_ns, false, message);
}

int spcomm_recv_any(spcomm_t *comm, int32_t source, int32_t tag, int64_t timeout_ns,
                    spcomm_message_t *message) {
    query_t query = {"spcomm_recv_any", source, tag, 0, 0};
    return receive(comm, &query, timeout_ns, true, message);
}

int spcomm_sendrecv(spcomm_t *comm, int32_t dest, int32_t tag, spcomm_data_t data, int32_t source,
                    int32_t recv_tag, int64_t timeout_ns, spcomm_message_t *message) {
    query_t query = {"spcomm_sendrecv", source, recv_tag, 0, 0};
    const uint64_t deadline_ns = spc_clock_deadline_ns(timeout_ns);
    spc_api_targets_t targets;
    SPC_API_RECORD(comm, query.name);
    int status = prepare(comm, &query, message);
    status = status == SPC_OK ? spc_api_targets_one(comm, "spcomm_sendrecv()", dest, &targets) : status;
    status = status == SPC_OK ? transmit(comm, "spcomm_sendrecv()", &targets, tag, &data, deadline_ns, true)
                              : status;
    return status == SPC_OK ? receive_until(comm, &query, deadline_ns, false, message) : status;
}

/* A call that never waits: one of the core's. */
static int receive_now(spcomm_t *comm, query_t *query,
                       int (*call)(spc_comm_t *, uint16_t, int32_t, int32_t, spc_message_t *),
                       spcomm_message_t *message) {
    spc_message_t found;
    SPC_API_RECORD(comm, query->name);
    int status = prepare(comm, query, message);
    if (status == SPC_OK && is_from_nobody(query, message)) {
        return SPC_OK;
    }
    status = status == SPC_OK ? spc_api_run_handlers(comm) : status;
    if (status == SPC_EINTERRUPTED) {
        return conclude(comm, query, status, NULL, false, NULL);
    }
    if (status != SPC_OK) {
        return status;
    }
    status = call(comm->core, SPC_CONTEXT_USER, query->core_source, query->core_tag, &found);
    return conclude(comm, query, status, &found, false, message);
}

int spcomm_try_recv(spcomm_t *comm, int32_t source, int32_t tag, spcomm_message_t *message) {
    query_t query = {"spcomm_try_recv", source, tag, 0, 0};
    return receive_now(comm, &query, spc_comm_try_recv, message);
}

int spcomm_take(spcomm_t *comm, int32_t source, int32_t tag, spcomm_message_t *message) {
    query_t query = {"spcomm_take", source, tag, 0, 0};
    return receive_now(comm, &query, spc_comm_take, message);
}

int spcomm_probe(spcomm_t *comm, int32_t source, int32_t tag, int64_t timeout_ns, int32_t *found_source,
                 int32_t *found_tag, size_t *bytes) {
    query_t query = {"spcomm_probe", source, tag, 0, 0};
    int32_t from = SPCOMM_PROC_NULL, with = tag;
    uint64_t length = 0;
    SPC_API_RECORD(comm, query.name);
    int status = prepare(comm, &query, &query);
    if (status != SPC_OK) {
        return status;
    }
    status = source == SPCOMM_PROC_NULL ? SPC_OK : spc_api_run_handlers(comm);
    if (status == SPC_OK && source != SPCOMM_PROC_NULL) {
        status = spc_comm_probe(comm->core, SPC_CONTEXT_USER, query.core_source, query.core_tag,
                                spc_clock_deadline_ns(timeout_ns), &from, &with, &length);
    }
    if (status != SPC_OK) {
        return conclude(comm, &query, status, NULL, false, NULL);
    }
    if (found_source != NULL) {
        *found_source = from;
    }
    if (found_tag != NULL) {
        *found_tag = with;
    }
    if (bytes != NULL) {
        *bytes = length;
    }
    return SPC_OK;
}

int spcomm_poll(spcomm_t *comm, uint64_t *waiting) {
    static const char call[] = "spcomm_poll()";
    uint64_t count = 0;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status == SPC_OK) {
        status = spc_api_run_handlers(comm);
        status = status == SPC_OK ? spc_comm_poll(comm->core, SPC_CONTEXT_USER, &count) : status;
        status = spc_api_fail(comm, status, "%s", call);
    }
    if (status == SPC_OK && waiting != NULL) {
        *waiting = count;
    }
    return status;
}
