/* SPDX-License-Identifier: MIT */
#include "api/spc_api_private.h"

/* ---- sending */

/* An empty set begins the cycle, too: the core has to be called. */
static int transmit(spcomm_t *comm, const char *call, const spc_api_targets_t *targets,
                    const spcomm_data_t *data, int64_t timeout_ns) {
    spc_api_encoded_t encoded;
    spc_send_call_t send;
    int status = spc_api_encode(call, data, &encoded);
    if (status != SPC_OK) {
        return status;
    }
    status =
        spc_comm_coordinated_try_send(comm->core, targets->ranks, targets->count, &encoded.payload, &send);
    if (status == SPC_EAGAIN) {
        status = spc_comm_finish_send(comm->core, &send, true, spc_clock_deadline_ns(timeout_ns));
    }
    return spc_api_fail(comm, status, "%s", call);
}

int spcomm_coordinated_send(spcomm_t *comm, int32_t dest, spcomm_data_t data, int64_t timeout_ns) {
    static const char call[] = "spcomm_coordinated_send()";
    spc_api_targets_t targets;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    status = status == SPC_OK ? spc_api_targets_one(comm, call, dest, &targets) : status;
    return status == SPC_OK ? transmit(comm, call, &targets, &data, timeout_ns) : status;
}

int spcomm_coordinated_send_set(spcomm_t *comm, const spcomm_destination_t *dest, spcomm_data_t data,
                                int64_t timeout_ns) {
    static const char call[] = "spcomm_coordinated_send_set()";
    spc_api_targets_t targets;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    status = status == SPC_OK ? spc_api_targets_set(comm, call, dest, &targets) : status;
    return status == SPC_OK ? transmit(comm, call, &targets, &data, timeout_ns) : status;
}

int spcomm_coordinated_send_all(spcomm_t *comm, spcomm_data_t data, int64_t timeout_ns) {
    static const char call[] = "spcomm_coordinated_send_all()";
    spc_api_targets_t targets;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    spc_api_targets_all(comm, &targets);
    return transmit(comm, call, &targets, &data, timeout_ns);
}

/* ---- receiving */

static int receive(spcomm_t *comm, const char *call, int64_t timeout_ns, bool any, spcomm_message_t *message,
                   int *over) {
    spc_message_t found;
    bool is_over = false;
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    if (message == NULL || over == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: %s is NULL; it is what the call fills in", call,
                              message == NULL ? "message" : "over");
    }
    status = spc_comm_coordinated_recv(comm->core, spc_clock_deadline_ns(timeout_ns), &found, &is_over);
    if (status == SPC_OK && !is_over) {
        status = spc_api_hand_over(comm, call, &found, any, message);
        if (status != SPC_OK) {
            return status;
        }
        message->tag = 0; /* the tag was the cycle's number */
    }
    if (status == SPC_OK) {
        *over = is_over;
    }
    return spc_api_fail(comm, status, "%s", call);
}

int spcomm_coordinated_recv(spcomm_t *comm, int64_t timeout_ns, spcomm_message_t *message, int *over) {
    return receive(comm, "spcomm_coordinated_recv()", timeout_ns, false, message, over);
}

int spcomm_coordinated_recv_any(spcomm_t *comm, int64_t timeout_ns, spcomm_message_t *message, int *over) {
    return receive(comm, "spcomm_coordinated_recv_any()", timeout_ns, true, message, over);
}
