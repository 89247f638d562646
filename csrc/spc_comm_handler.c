/* SPDX-License-Identifier: MIT */
/* Active messages (ACLMPL 4): the receiver's half. Senders do not know of handlers. */
#include "spc_comm_private.h"

int spc_comm_handle(spc_comm_t *comm, int32_t tag) {
    spc_node_t *node = comm->node;
    int status = spc_comm_check_usable(comm);
    if (status != SPC_OK) {
        return status;
    }
    pthread_mutex_lock(&node->lock);
    status = spc_inbox_divert(node->inbox, spc_comm_context(comm, SPC_CONTEXT_USER), tag,
                              spc_comm_context(comm, SPC_CONTEXT_HANDLED));
    spc_node_unlock(node);
    /* Another thread may sleep beside such a message. Pairs, through the lock, with its look before it sleeps. */
    spc_event_notify(node->event, node->config->features);
    return status;
}

int spc_comm_take_handled(spc_comm_t *comm, spc_message_t *message) {
    const spc_match_t match = {
        .source = SPC_ANY_SOURCE, .tag = SPC_ANY_TAG, .context = spc_comm_context(comm, SPC_CONTEXT_HANDLED)};
    spc_node_t *node = comm->node;
    int status = spc_comm_check_usable(comm);
    if (status != SPC_OK) {
        return status;
    }
    pthread_mutex_lock(&node->lock);
    spc_outbox_flush(node->outbox);
    status = spc_inbox_take(node->inbox, &match, message);
    spc_node_unlock(node);
    return spc_comm_name_source(comm, status, message);
}
