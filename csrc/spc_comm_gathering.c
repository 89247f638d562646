/* SPDX-License-Identifier: MIT */
/*
 * Collectives that move data: bcast, gather, allgather, scatter, alltoall.
 *
 *     entering  one phase, in which each node tells what it gives, and where the others find it. So when operation and
 *               root have been compared, the data are here, too: nobody waits twice, and no message wakes anybody.
 *     moving    only where the arena had no room: such payloads go as messages of the internal context, in parts. The
 *               parts of the others have said which of them to wait for, so every message that is sent is received.
 *
 * The messages of a phase have its number as their tag. Whatever goes wrong in between, they cannot be taken for those
 * of another one: TAG_BIT keeps them apart from those of a split, and numbers come again after 2^30 phases only.
 * The phase counts as entered (spc_pending_t) until the last message is here, so no other collective can begin before.
 */
#include <stdlib.h>
#include <string.h>

#include "spc_comm_gathering.h"
#include "spc_comm_perturb.h"

#define TAG_BIT UINT64_C(0x40000000)

enum { /* stages; the first is that of a zeroed structure */
       NEW,
       ENTERED,
       MOVING,
       OVER,
};

/* ---- entering ---- */

static bool is_valid(const spc_comm_t *comm, const spc_gathering_t *call) {
    uint32_t count = spc_gathering_is_for_each(call) ? comm->size : 1;
    return call->operation >= SPC_OPERATION_DATA_BCAST && call->operation <= SPC_OPERATION_DATA_ALLTOALL
           && call->root < comm->size && (call->payload_count == 0 || call->payload_count == count)
           && (call->payload_count != 0 || call->failure != NULL
               || !spc_gathering_gives_to_others(comm, call));
}

static int prepare(const spc_comm_t *comm, spc_gathering_t *call) {
    if (!is_valid(comm, call)) {
        return SPC_EINVAL;
    }
    call->failed = -1;
    if (call->slots == NULL) {
        call->slots = calloc(comm->size, sizeof(*call->slots));
    }
    if (call->messages == NULL) {
        call->messages = calloc(spc_gathering_messages(comm, call), sizeof(*call->messages));
    }
    return call->slots != NULL && call->messages != NULL ? SPC_OK : SPC_ENOMEM;
}

/* The structure is new, and so is the phase; unless a lost node has left this one in it before. */
static int enter_first(spc_comm_t *comm, spc_gathering_t *call, const spc_signature_t *signature) {
    unsigned char told[SPC_GATHERING_TOLD_BYTES];
    int status = prepare(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    uint64_t length = spc_gathering_tell(comm, call, told);
    status = spc_comm_start_phase(comm, signature, told, length);
    if (status == SPC_OK) {
        call->stage = ENTERED;
    } else {
        spc_gathering_take_back(comm, call);
    }
    return status;
}

/* Enters, unless it has already. */
static int enter_phase(spc_comm_t *comm, spc_gathering_t *call) {
    spc_signature_t signature = call->signature;
    if (signature.operation == SPC_OPERATION_NONE) {
        signature = (spc_signature_t){.operation = (uint8_t)call->operation, .root = call->root};
    }
    if (call->stage == NEW) {
        return enter_first(comm, call, &signature);
    }
    if (call->stage == OVER || !spc_comm_is_pending(comm)) {
        return SPC_EINVAL;
    }
    return spc_comm_start_phase(comm, &signature, NULL, 0);
}

/* After all have entered. */
static int leave_phase(spc_comm_t *comm, spc_gathering_t *call) {
    int status = spc_comm_outcome(comm);
    if (status != SPC_OK) {
        spc_gathering_take_back(comm, call);
        return status;
    }
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (spc_gathering_gives(call, rank, comm->rank)) {
            spc_gathering_hear(comm, call, rank);
        }
    }
    call->stage = MOVING;
    return SPC_OK;
}

/* ---- moving ---- */

static int32_t tag_of(const spc_comm_t *comm) {
    return (int32_t)(comm->pending.phase % TAG_BIT | TAG_BIT);
}

static int send_payload(const spc_comm_t *comm, const spc_gathering_t *call, uint32_t number) {
    int32_t members[SPC_NODES_MAX];
    spc_send_call_t send = {.destinations = members,
                            .destination_count = spc_gathering_members(comm, call, number, members),
                            .context = spc_comm_context(comm, SPC_CONTEXT_INTERNAL),
                            .tag = tag_of(comm),
                            .payload = &call->payloads[number]};
    return spc_comm_attempt_send(comm->node, &send);
}

/* As far as there is room. Who has the next rank comes first, so that not all send to the same node. */
static void send_rest(const spc_comm_t *comm, spc_gathering_t *call) {
    for (; call->sent < call->payload_count; call->sent++) {
        uint32_t number = (comm->rank + call->sent) % call->payload_count;
        if (call->slots[number].way != SPC_WAY_BY_MESSAGE) {
            continue;
        }
        int status = send_payload(comm, call, number);
        if (status == SPC_EAGAIN) {
            return;
        }
        call->status = status != SPC_OK ? status : call->status;
    }
}

static void take_rest(const spc_comm_t *comm, spc_gathering_t *call) {
    spc_node_t *node = comm->node;
    spc_match_t match = {.tag = tag_of(comm), .context = spc_comm_context(comm, SPC_CONTEXT_INTERNAL)};
    pthread_mutex_lock(&node->lock);
    for (uint32_t rank = 0; rank < comm->size && call->missing != 0; rank++) {
        if (!call->slots[rank].awaited) {
            continue;
        }
        spc_message_t *message = spc_gathering_message(comm, call, rank);
        match.source = (int32_t)spc_comm_member(comm, rank);
        int status = spc_inbox_take(node->inbox, &match, message);
        if (status != SPC_EAGAIN) {
            message->tag = 0; /* it is nobody's concern */
            call->slots[rank].awaited = false;
            call->missing--;
            call->status = status != SPC_OK ? status : call->status;
            message->source = (int32_t)rank;
        }
    }
    spc_outbox_flush(node->outbox);
    spc_node_unlock(node);
}

static bool has_moved(const spc_comm_t *comm, spc_gathering_t *call) {
    if (call->sent < call->payload_count) {
        send_rest(comm, call);
    }
    if (call->missing != 0) {
        take_rest(comm, call);
    }
    return call->sent == call->payload_count && call->missing == 0;
}

static bool test_moved(spc_node_wait_t *wait) {
    return has_moved(wait->owner, wait->argument);
}

/* Somebody has left before its message came. Twice: between the two looks its row was drained. */
static int doomed_move(spc_node_wait_t *wait) {
    spc_comm_t *comm = wait->owner;
    spc_gathering_t *call = wait->argument;
    int status = spc_comm_check_usable(comm); /* another thread may have closed it */
    for (uint32_t rank = 0; rank < comm->size && status == SPC_OK; rank++) {
        spc_gathering_slot_t *slot = &call->slots[rank];
        if (slot->awaited && spc_comm_has_left(comm, rank)) {
            status = slot->suspected ? spc_comm_blame(comm, rank) : SPC_EAGAIN;
            slot->suspected = true;
        }
    }
    return status;
}

static void describe_move(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const spc_comm_t *comm = wait->owner;
    const spc_gathering_t *call = wait->argument;
    int32_t source = SPC_ANY_SOURCE;
    for (uint32_t rank = 0; rank < comm->size && source == SPC_ANY_SOURCE; rank++) {
        source = call->slots[rank].awaited ? (int32_t)rank : SPC_ANY_SOURCE;
    }
    spc_comm_describe_gathering(comm, source, tag_of(comm), entry, pairs);
}

static int move(spc_comm_t *comm, spc_gathering_t *call) {
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_moved,
                            .doomed = doomed_move,
                            .describe = describe_move,
                            .owner = comm,
                            .argument = call};
    return has_moved(comm, call) ? SPC_OK : spc_node_wait_for(&wait, SPC_NO_DEADLINE);
}

/* ---- all of it ---- */

/* After its phase is complete: it is over, however it went, unless `status` is SPC_EINTERRUPTED. */
static int conclude(spc_comm_t *comm, spc_gathering_t *call, int status) {
    if (status != SPC_EINTERRUPTED) {
        atomic_store_explicit(&comm->pending.entered, false, memory_order_relaxed);
        call->stage = OVER;
    }
    return status == SPC_OK ? call->status : status;
}

static int wait_inside(spc_comm_t *comm, spc_gathering_t *call) {
    int status = SPC_OK;
    if (call->stage == ENTERED) {
        status = spc_comm_wait_for_phase(comm, comm->pending.phase, SPC_NO_DEADLINE);
        if (status == SPC_ELOST || status == SPC_EFINISHED) {
            spc_gathering_take_back(comm, call); /* somebody has not arrived, and never will */
        }
        if (status == SPC_OK && (status = leave_phase(comm, call)) != SPC_OK) {
            return conclude(comm, call, status);
        }
    }
    return status == SPC_OK ? conclude(comm, call, move(comm, call)) : status;
}

static int gather_inside(spc_comm_t *comm, void *argument) {
    spc_gathering_t *call = argument;
    int status = enter_phase(comm, call);
    if (status == SPC_OK) {
        comm->waits = true;
        status = wait_inside(comm, call);
        comm->waits = false;
    }
    return status;
}

int spc_comm_gathering(spc_comm_t *comm, spc_gathering_t *call) {
    return spc_comm_run_collective(comm, gather_inside, call);
}

int spc_comm_gathering_poll(spc_comm_t *comm, spc_gathering_t *call) {
    int status = spc_comm_pass_gate(comm);
    if (status != SPC_OK) {
        return status;
    }
    if (!spc_comm_enter(comm)) {
        return SPC_EBUSY;
    }
    status = enter_phase(comm, call);
    if (status == SPC_OK) {
        if (call->stage == ENTERED) {
            status = spc_comm_poll_phase(comm) ? leave_phase(comm, call) : SPC_EAGAIN;
        }
        if (status == SPC_EAGAIN || (status == SPC_OK && !has_moved(comm, call))) {
            return SPC_EAGAIN; /* still inside: this thread's spc_comm_gathering goes on */
        }
        status = conclude(comm, call, status);
    }
    spc_comm_leave(comm);
    return status;
}

void spc_comm_gathering_end(spc_comm_t *comm, spc_gathering_t *call) {
    for (uint32_t i = 0; call->messages != NULL && i < spc_gathering_messages(comm, call); i++) {
        spc_message_release(comm, &call->messages[i]);
    }
    free(call->slots);
    free(call->messages);
    call->slots = NULL;
    call->messages = NULL;
}
