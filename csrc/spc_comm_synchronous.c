/* SPDX-License-Identifier: MIT */
/*
 * Sending that waits for the receiver: the message asks for a receipt (message/spc_receipt.h), and the wait is over
 * when all receipts are there. One wait does both: it sends when there is room, and from then on looks for them.
 *
 * Two kinds of call use it. An ssend has one destination, and fails if that ends without taking the message. A send
 * that was told to wait (spc_comm_perturb.c) may have several, does not wait for its own node, and is content with
 * destinations that end: as ever, what is sent to them is dropped.
 */
#include "spc_comm_perturb.h"
#include "spc_comm_private.h"

static bool is_over(const spc_synchronous_call_t *call) {
    return call->sent && call->next == call->count;
}

/* ---- sending ---- */

/* With the lock. Can all be numbered? */
static int number_all(spc_node_t *node, spc_synchronous_call_t *call) {
    int status =
        node->receipts != NULL ? SPC_OK : spc_receipts_create(&node->segment, node->rank, &node->receipts);
    for (uint32_t i = 0; i < call->send->destination_count && status == SPC_OK; i++) {
        uint32_t rank = (uint32_t)call->send->destinations[i];
        status = spc_receipts_next(node->receipts, rank, &call->awaited[i].number);
        call->awaited[i].destination = (int32_t)rank;
        call->awaited[i].rank = (uint32_t)call->send->ranks[i];
    }
    return status;
}

/* With the lock, after sending: those that were taken by the outbox have used their numbers, and are waited for. */
static void note_sent(spc_node_t *node, spc_synchronous_call_t *call, int status) {
    for (uint32_t i = 0; i < call->send->destination_count; i++) {
        spc_awaited_t awaited = call->awaited[i];
        uint32_t rank = (uint32_t)awaited.destination;
        if (status != SPC_OK && !spc_outbox_took(node->outbox, rank)) {
            continue;
        }
        spc_receipts_note_sent(node->receipts, rank);
        if (call->content && rank == node->rank) {
            spc_receipts_settle(node->receipts, rank, awaited.number);
        } else {
            call->awaited[call->count++] = awaited;
        }
    }
    call->sent = true;
}

/* With the lock; `block` holds a copy of the payload, or is NULL. Nobody gets the block if it is not to be sent. */
static int send_locked(spc_node_t *node, void *argument, spc_block_shared_t *block) {
    spc_synchronous_call_t *call = argument;
    const spc_send_call_t *send = call->send;
    spc_outbox_flush(node->outbox);
    int refused = number_all(node, call);
    uint32_t count = refused == SPC_OK ? send->destination_count : 0;
    int status = refused;
    spc_outbox_ask(node->outbox, true);
    if (block != NULL) {
        status = spc_outbox_send_block(node->outbox, send->destinations, count, send->context, send->tag,
                                       send->payload, block);
    } else if (refused == SPC_OK && send->block != NULL) {
        status = spc_comm_move_locked(node, send);
    } else if (refused == SPC_OK) {
        status =
            spc_outbox_send(node->outbox, send->destinations, count, send->context, send->tag, send->payload);
    }
    spc_outbox_ask(node->outbox, false);
    if (refused == SPC_OK && status != SPC_EAGAIN) {
        note_sent(node, call, status);
    }
    return refused != SPC_OK ? refused : status;
}

/* ---- waiting ---- */

static bool is_taken(spc_comm_t *comm, const spc_synchronous_call_t *call, const spc_awaited_t *awaited) {
    return spc_receipts_given(comm->node->receipts, (uint32_t)awaited->destination, awaited->number)
           || (call->content && spc_comm_has_left(comm, awaited->rank));
}

static bool test_synchronous(spc_node_wait_t *wait) {
    spc_synchronous_call_t *call = wait->argument;
    if (!call->sent) {
        wait->status = spc_comm_hand_over(wait->node, call->send, send_locked, call);
        if (wait->status != SPC_OK) {
            return wait->status != SPC_EAGAIN;
        }
    }
    while (call->next < call->count && is_taken(wait->owner, call, &call->awaited[call->next])) {
        call->next++;
    }
    return is_over(call);
}

/* The receiver has ended, or left the communicator. */
static int doomed_synchronous(spc_node_wait_t *wait) {
    const spc_synchronous_call_t *call = wait->argument;
    spc_comm_t *comm = wait->owner;
    int status = spc_comm_check_usable(comm); /* another thread may have closed it */
    if (status != SPC_OK || call->content) {
        return status;
    }
    uint32_t rank = (uint32_t)call->send->ranks[0];
    return spc_comm_has_left(comm, rank) ? spc_comm_blame(comm, rank) : SPC_OK;
}

/* A receipt that is given while this node sleeps is known only to who looks at its bit: the board says which one. */
static void describe_synchronous(const spc_node_wait_t *wait, spc_board_entry_t *entry,
                                 spc_board_pair_t *pairs) {
    const spc_synchronous_call_t *call = wait->argument;
    if (call->sent && call->next < call->count) {
        spc_comm_describe_receipt(wait->owner, call, entry, pairs);
    } else {
        spc_comm_describe_send(wait->owner, call->send, entry);
    }
}

/* Receipts that come later are for nobody. */
static void settle_all(spc_node_t *node, const spc_synchronous_call_t *call) {
    if (call->count == 0) {
        return;
    }
    pthread_mutex_lock(&node->lock);
    for (uint32_t i = 0; i < call->count; i++) {
        spc_receipts_settle(node->receipts, (uint32_t)call->awaited[i].destination, call->awaited[i].number);
    }
    pthread_mutex_unlock(&node->lock);
}

int spc_comm_send_and_wait(spc_comm_t *comm, spc_synchronous_call_t *call, uint64_t deadline_ns) {
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_synchronous,
                            .doomed = doomed_synchronous,
                            .describe = describe_synchronous,
                            .owner = comm,
                            .argument = call};
    int status = SPC_OK;
    if (!test_synchronous(&wait)) {
        status = spc_node_wait_for(&wait, deadline_ns);
    }
    settle_all(comm->node, call);
    return status == SPC_OK ? wait.status : status;
}

int spc_comm_ssend(spc_comm_t *comm, int32_t destination, uint16_t context, int32_t tag,
                   const spc_payload_t *payload, uint64_t deadline_ns) {
    spc_send_call_t send = {
        .destinations = &destination, .destination_count = 1, .tag = tag, .payload = payload};
    int status = spc_comm_perturb(comm, spc_comm_prepare_send(comm, &send, context));
    if (status != SPC_OK) {
        return status;
    }
    if (spc_comm_has_left(comm, (uint32_t)destination)) {
        return spc_comm_blame(comm, (uint32_t)destination);
    }
    int32_t member = (int32_t)spc_comm_member(comm, (uint32_t)destination);
    spc_awaited_t awaited;
    send.destinations = &member;
    spc_synchronous_call_t call = {.send = &send, .awaited = &awaited};
    return spc_comm_send_and_wait(comm, &call, deadline_ns);
}
