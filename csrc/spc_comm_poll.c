/* SPDX-License-Identifier: MIT */
/*
 * Calls that never wait, and have found nothing. Who makes them in a loop waits all the same, and is to hear of it when
 * nothing comes any more. They look at that only then: a call that finds something costs what it did.
 */
#include "spc_comm_perturb.h"
#include "spc_comm_private.h"

int spc_comm_look_again(spc_comm_t *comm, const spc_recv_call_t *call) {
    spc_node_t *node = comm->node;
    if (!spc_node_is_disconnected(node)) {
        return SPC_EAGAIN;
    }
    /* What came before the end may have come after the first look; it is all here now. */
    pthread_mutex_lock(&node->lock);
    const int status = spc_inbox_take(node->inbox, &call->match, call->message);
    spc_node_unlock(node);
    return status == SPC_EAGAIN ? SPC_EDISCONNECTED : spc_comm_name_source(comm, status, call->message);
}

static uint64_t count(spc_comm_t *comm, uint16_t context) {
    spc_node_progress(comm->node);
    pthread_mutex_lock(&comm->node->lock);
    const uint64_t waiting = spc_inbox_count(comm->node->inbox, spc_comm_context(comm, context));
    spc_node_unlock(comm->node);
    return waiting;
}

int spc_comm_poll(spc_comm_t *comm, uint16_t context, uint64_t *waiting) {
    int status = spc_comm_perturb(comm, spc_comm_pass_gate(comm));
    if (status != SPC_OK) {
        return status;
    }
    *waiting = count(comm, context);
    if (*waiting == 0) {
        spc_node_note_vain(comm->node);
        if (spc_node_is_disconnected(comm->node)) {
            *waiting = count(comm, context); /* as above */
            status = *waiting == 0 ? SPC_EDISCONNECTED : SPC_OK;
        }
    }
    return status;
}
