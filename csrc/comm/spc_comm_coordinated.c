/* SPDX-License-Identifier: MIT */
/*
 * Cycles of coordinated messages: message/spc_coordinated.h counts; this file sends, receives, enters phases and waits.
 *
 * Messages travel like others, in a context of their own, with the cycle's number as their tag: so messages of the next
 * cycle stay in the inbox until this one is over. The first receive publishes the row and enters a phase, in this
 * order; every receive takes a message if there is one, and only if there is none checks whether the phase is complete
 * and all messages have been handed over.
 *
 * A mismatch ends the phase for all nodes, but not the cycle: no node has added any rows, so rows and messages stay as
 * they are, and the next receive enters another phase. So the n-th phase of this kind without a mismatch belongs to the
 * n-th cycle, on all nodes.
 */
#include "comm/spc_comm_perturb.h"
#include "comm/spc_comm_private.h"

/* ---- one thread at a time ---- */

/* Not a thread's name: calls by a signal handler of the thread that is inside are refused, too. */
#define SPC_INSIDE_RECEIVE ((uintptr_t)1)

static bool enter_receive(spc_comm_t *comm) {
    uintptr_t nobody = 0;
    /* Like spc_comm_enter, and left in the same way. */
    return atomic_compare_exchange_strong_explicit(&comm->collective, &nobody, SPC_INSIDE_RECEIVE,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* ---- receiving ---- */

typedef struct receive_call {
    spc_message_t *message;
    bool over;
} receive_call_t;

/* Closes sending; the first receive calls it. */
static void publish(spc_comm_t *comm) {
    if (!spc_coordinated_is_published(comm->cycle.account)) {
        spc_coordinated_publish(comm->cycle.account);
    }
}

/* After publishing: enters the phase. */
static int enter_phase(spc_comm_t *comm) {
    static const spc_signature_t signature = {.operation = SPC_OPERATION_COORDINATED};
    spc_comm_settle_fuzzy(comm);
    int status = spc_reduce_start(comm->reduce, &signature, NULL, NULL, 0, &comm->cycle.phase);
    comm->cycle.entered = status == SPC_OK;
    return status;
}

/* With the lock: takes a message of this cycle. */
static int take_locked(spc_comm_t *comm, spc_message_t *message) {
    spc_node_t *node = comm->node;
    const spc_match_t match = {
        .source = SPC_ANY_SOURCE,
        .tag = spc_coordinated_tag(comm->cycle.account),
        .context = spc_comm_context(comm, SPC_CONTEXT_COORDINATED),
    };
    int status = spc_inbox_take(node->inbox, &match, message);
    if (spc_comm_name_source(comm, status, message) == SPC_OK) {
        spc_coordinated_note_handed(comm->cycle.account, message->source);
    }
    spc_outbox_flush(node->outbox);
    return status;
}

/* Whether all nodes have entered: SPC_OK, SPC_EAGAIN or SPC_EMISMATCH. */
static int look_at_phase(spc_comm_t *comm) {
    spc_cycle_t *cycle = &comm->cycle;
    if (cycle->complete) {
        return SPC_OK;
    }
    if (!spc_reduce_test(comm->reduce, cycle->phase)) {
        return SPC_EAGAIN;
    }
    int status = spc_reduce_finish(comm->reduce, cycle->phase, NULL, 0);
    cycle->complete = status == SPC_OK;
    if (status != SPC_OK) {
        cycle->entered = false; /* the next receive enters another phase */
        atomic_store_explicit(&comm->last_phase, cycle->phase, memory_order_relaxed);
    }
    return status;
}

/* With the lock, after the phase is complete and no message was there to take: SPC_OK if the cycle is over, and the
 * next one is open; else SPC_EAGAIN. */
static int end_locked(spc_comm_t *comm) {
    spc_coordinated_t *account = comm->cycle.account;
    if (!spc_coordinated_is_counted(account)) {
        (void)spc_coordinated_count(account); /* all nodes have published: they have entered */
    }
    if (!spc_coordinated_is_over(account)) {
        return SPC_EAGAIN;
    }
    spc_coordinated_next(account);
    comm->cycle.entered = false;
    comm->cycle.complete = false;
    return SPC_OK;
}

/* With the lock. */
static int receive_locked(spc_comm_t *comm, receive_call_t *call) {
    int status = take_locked(comm, call->message);
    if (status != SPC_EAGAIN) {
        return status;
    }
    status = look_at_phase(comm);
    status = status == SPC_OK ? end_locked(comm) : status;
    call->over = status == SPC_OK;
    return status;
}

static bool test_receive(spc_node_wait_t *wait) {
    spc_comm_t *comm = wait->owner;
    pthread_mutex_lock(&comm->node->lock);
    wait->status = receive_locked(comm, wait->argument);
    spc_node_unlock(comm->node);
    return wait->status != SPC_EAGAIN;
}

/* Finds a node that has left without entering the phase or, once the phase is complete, with messages to come. The rows
 * are read when the phase is complete, which needs no other end: until then, ask again. */
static int doomed_receive(spc_node_wait_t *wait) {
    spc_comm_t *comm = wait->owner;
    int status = spc_comm_check_usable(comm); /* another thread may have closed it */
    bool somebody = false;
    pthread_mutex_lock(&comm->node->lock);
    bool counted = spc_coordinated_is_counted(comm->cycle.account);
    for (uint32_t rank = 0; rank < comm->size && status == SPC_OK; rank++) {
        if (!spc_comm_has_left(comm, rank)) {
            continue;
        }
        somebody = true;
        bool missing = counted ? spc_coordinated_missing(comm->cycle.account, rank) != 0
                               : !spc_reduce_arrived(comm->reduce, comm->cycle.phase, rank);
        status = missing ? spc_comm_blame(comm, rank) : SPC_OK;
    }
    pthread_mutex_unlock(&comm->node->lock);
    return status == SPC_OK && somebody && !counted ? SPC_EAGAIN : status;
}

static void describe_receive(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const spc_comm_t *comm = wait->owner;
    spc_comm_describe_phase(comm, SPC_BOARD_CYCLE, comm->cycle.phase, entry, pairs);
}

/* ---- calls ---- */

int spc_comm_coordinated_recv(spc_comm_t *comm, uint64_t deadline_ns, spc_message_t *message, bool *over) {
    receive_call_t call = {.message = message};
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_receive,
                            .doomed = doomed_receive,
                            .describe = describe_receive,
                            .owner = comm,
                            .argument = &call};
    int status = spc_comm_perturb(comm, spc_comm_check_callable(comm));
    if (status != SPC_OK) {
        return status;
    }
    if (!enter_receive(comm)) {
        return SPC_EBUSY;
    }
    status = spc_comm_is_pending(comm) ? SPC_EMISMATCH : SPC_OK;
    if (status == SPC_OK && !comm->cycle.entered) {
        pthread_mutex_lock(&comm->node->lock);
        publish(comm);
        pthread_mutex_unlock(&comm->node->lock);
        status = enter_phase(comm);
    }
    status = status == SPC_OK ? spc_node_test_or_wait(&wait, deadline_ns) : status;
    spc_comm_leave(comm);
    *over = call.over;
    return status;
}

/* The same, once, and without waiting for the lock. */
static int try_to_receive(spc_comm_t *comm, receive_call_t *call) {
    spc_node_t *node = comm->node;
    if (pthread_mutex_trylock(&node->lock) != 0) {
        return SPC_EAGAIN;
    }
    int status = SPC_OK;
    if (comm->cycle.entered) {
        status = receive_locked(comm, call);
        spc_node_unlock(node);
        return status;
    }
    publish(comm);
    pthread_mutex_unlock(&node->lock);
    status = enter_phase(comm);
    return status == SPC_OK ? SPC_EAGAIN : status;
}

int spc_comm_coordinated_poll(spc_comm_t *comm, spc_message_t *message, bool *over) {
    receive_call_t call = {.message = message};
    int status = spc_comm_check_callable(comm);
    if (status != SPC_OK) {
        return spc_comm_defer_perturbed(status);
    }
    if (!enter_receive(comm)) {
        return SPC_EBUSY;
    }
    status = spc_comm_is_pending(comm) ? SPC_EMISMATCH : SPC_EAGAIN;
    uint32_t polls = 2 + atomic_load_explicit(&comm->node->polls, memory_order_relaxed);
    for (uint32_t i = 0; i < polls && status == SPC_EAGAIN; i++) {
        if (i > 1) {
            spc_cpu_relax();
        }
        status = try_to_receive(comm, &call);
    }
    spc_comm_leave(comm);
    *over = call.over;
    return status;
}
