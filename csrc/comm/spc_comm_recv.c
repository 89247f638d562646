/* SPDX-License-Identifier: MIT */
/*
 * Receiving: with or without waiting, with or without a place for the data; probing, polling, and giving back.
 * Perturbed if the run is.
 */
#include "comm/spc_comm_perturb.h"
#include "comm/spc_comm_private.h"

/*
 * Calls that never wait. A caller that polls in a loop is waiting too, so it must learn when no message can arrive.
 * These calls check for that only after they have found nothing: a call that finds a message costs no more than before.
 */

/* For a call that does not wait and has found nothing: SPC_EAGAIN or, with several boxes, SPC_EDISCONNECTED if nothing
 * can come any more; or a message that it has found after all, taken. Without the lock. */
static int look_again(spc_comm_t *comm, const spc_recv_call_t *call) {
    spc_node_t *node = comm->node;
    if (!spc_node_is_disconnected(node)) {
        return SPC_EAGAIN;
    }
    /* Messages from before the end may have come after the first look; all are here now. */
    pthread_mutex_lock(&node->lock);
    const int status = spc_inbox_take(node->inbox, &call->match, call->message);
    spc_node_unlock(node);
    return status == SPC_EAGAIN ? SPC_EDISCONNECTED : spc_comm_name_source(comm, status, call->message);
}

/* ---- receiving */

static bool test_recv(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    const spc_recv_call_t *call = wait->argument;
    pthread_mutex_lock(&node->lock);
    wait->status = spc_node_take(node, &call->match, call->message);
    spc_outbox_flush(node->outbox);
    spc_node_unlock(node);
    return wait->status != SPC_EAGAIN;
}

static bool waits_for_itself(spc_node_t *node) {
    pthread_mutex_lock(&node->lock);
    bool waits = spc_outbox_waiting(node->outbox, node->rank) != 0;
    pthread_mutex_unlock(&node->lock);
    return waits;
}

/* No node is left that could send. This node itself counts while it is alone, when other threads of it may send, and
 * while a message from it to itself is queued. */
static int doomed_from_anybody(spc_comm_t *comm) {
    uint32_t last = comm->rank;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (rank == comm->rank) {
            continue;
        }
        if (!spc_comm_has_left(comm, rank)) {
            return SPC_OK;
        }
        last = rank;
    }
    if (last == comm->rank) {
        return SPC_OK;
    }
    return waits_for_itself(comm->node) ? SPC_EAGAIN : spc_comm_blame(comm, last);
}

int spc_comm_doomed_match(spc_comm_t *comm, const spc_match_t *match) {
    int status = spc_comm_check_usable(comm); /* another thread may have closed it */
    if (status != SPC_OK) {
        return status;
    }
    if (match->source == SPC_ANY_SOURCE) {
        return doomed_from_anybody(comm);
    }
    uint32_t source = (uint32_t)(comm->rank_of == NULL ? match->source : comm->rank_of[match->source]);
    return spc_comm_has_left(comm, source) ? spc_comm_blame(comm, source) : SPC_OK;
}

void spc_comm_describe_match(const spc_comm_t *comm, const spc_match_t *match, spc_board_entry_t *entry,
                             spc_board_pair_t *pairs) {
    spc_comm_describe(comm, SPC_BOARD_RECEIVE, spc_comm_rank_of(comm, match->source), match->tag, entry);
    if (match->source == SPC_ANY_SOURCE) {
        spc_comm_need_others(comm, pairs);
    } else {
        spc_comm_need(comm, (uint32_t)entry->source, pairs);
    }
    entry->near_count = spc_inbox_near(comm->node->inbox, match, 0, &entry->near_source, &entry->near_tag);
    entry->near_source = entry->near_count != 0 ? spc_comm_rank_of(comm, entry->near_source) : 0;
    entry->flags &= ~(uint32_t)SPC_BOARD_ELSEWHERE;
    if (entry->near_count == 0) {
        entry->near_count = spc_inbox_near(comm->node->inbox, match, SPC_CONTEXT_KINDS, &entry->near_source,
                                           &entry->near_tag);
        entry->flags |= entry->near_count != 0 ? SPC_BOARD_ELSEWHERE : 0;
    }
}

/* The argument of a receive and of a probe begins with its match, where the source is a rank of the segment. */
static int doomed_by_source(spc_node_wait_t *wait) {
    return spc_comm_doomed_match(wait->owner, wait->argument);
}

static void describe_by_source(const spc_node_wait_t *wait, spc_board_entry_t *entry,
                               spc_board_pair_t *pairs) {
    spc_comm_describe_match(wait->owner, wait->argument, entry, pairs);
}

static int wait_until(spc_comm_t *comm, bool (*test)(spc_node_wait_t *wait), void *call,
                      uint64_t deadline_ns) {
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test,
                            .doomed = doomed_by_source,
                            .describe = describe_by_source,
                            .owner = comm,
                            .argument = call};
    return spc_node_test_or_wait(&wait, deadline_ns);
}

static inline int prepare(const spc_comm_t *comm, uint16_t kind, int32_t source, int32_t tag,
                          spc_recv_call_t *call) {
    const int status = spc_comm_match(comm, source, tag, kind, &call->match);
    call->perturbed = status == SPC_PERTURBED;
    return call->perturbed ? SPC_OK : status;
}

/* ---- perturbed receives */

typedef struct shuffled_call {
    spc_recv_call_t recv; /* first: doomed_by_source reads nothing else */
    uint64_t number;
} shuffled_call_t;

/* With the lock: among all sources with a message, the one that this call prefers. */
static int choose_source(spc_comm_t *comm, const shuffled_call_t *call, spc_match_t *match) {
    uint64_t best = 0;
    int status = SPC_EAGAIN;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        spc_match_t one = call->recv.match;
        one.source = (int32_t)spc_comm_member(comm, rank);
        int32_t source, tag;
        uint64_t length;
        if (spc_inbox_peek(comm->node->inbox, &one, &source, &tag, &length) != SPC_OK) {
            continue;
        }
        uint64_t liking = spc_comm_perturb_choose(comm, call->number, SPC_ABOUT_SOURCE + rank) | 1;
        if (liking > best) {
            best = liking;
            *match = one;
            status = SPC_OK;
        }
    }
    return status;
}

/* With the lock. */
static int take_shuffled(spc_comm_t *comm, const shuffled_call_t *call) {
    spc_node_claim(comm->node);
    spc_match_t match = call->recv.match;
    int status = SPC_OK;
    if (match.source == SPC_ANY_SOURCE && spc_comm_is_perturbed(comm)) {
        status = choose_source(comm, call, &match);
    }
    status = status == SPC_OK ? spc_node_take(comm->node, &match, call->recv.message) : status;
    spc_outbox_flush(comm->node->outbox);
    return status;
}

static bool test_shuffled(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    pthread_mutex_lock(&node->lock);
    wait->status = take_shuffled(wait->owner, wait->argument);
    spc_node_unlock(node);
    return wait->status != SPC_EAGAIN;
}

/* Some message is there to be taken; it stays. */
static bool test_arrived(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    const shuffled_call_t *call = wait->argument;
    int32_t source, tag;
    uint64_t length;
    pthread_mutex_lock(&node->lock);
    wait->status = spc_inbox_peek(node->inbox, &call->recv.match, &source, &tag, &length);
    spc_node_unlock(node);
    return wait->status != SPC_EAGAIN;
}

#define LINGERING_NS 2000000 /* the longest */

/* The sleep once the first message is there, so that other senders may be chosen; 0: none. */
static uint64_t lingering_ns(const spc_comm_t *comm, uint64_t number) {
    const uint64_t chosen = spc_comm_perturb_choose(comm, number, SPC_ABOUT_LINGERING);
    const bool lively = number < SPC_LIVELY_CALLS;
    return chosen % (lively ? 2 : 32) != 0 ? 0 : 1 + (chosen >> 16) % LINGERING_NS;
}

/* Once the first message has come, waits for others that might be chosen instead. */
static int linger(spc_comm_t *comm, shuffled_call_t *call, uint64_t deadline_ns) {
    if (!spc_comm_is_perturbed(comm) || call->recv.match.source != SPC_ANY_SOURCE) {
        return SPC_OK;
    }
    const uint64_t duration_ns = lingering_ns(comm, call->number);
    if (duration_ns == 0) {
        return SPC_OK;
    }
    int status = wait_until(comm, test_arrived, call, deadline_ns);
    if (status == SPC_OK) {
        spc_comm_perturb_sleep(comm, duration_ns);
    }
    return status;
}

static int recv_perturbed(spc_comm_t *comm, const spc_recv_call_t *call, uint64_t deadline_ns) {
    spc_comm_perturb_before(comm);
    shuffled_call_t shuffled = {*call, spc_comm_perturb_number(comm)};
    int status = linger(comm, &shuffled, deadline_ns);
    if (status == SPC_OK) {
        status = wait_until(comm, test_shuffled, &shuffled, deadline_ns);
    }
    if (status == SPC_OK) {
        spc_comm_perturb_after(comm);
    }
    return status;
}

static int try_recv_perturbed(spc_comm_t *comm, const spc_recv_call_t *call) {
    shuffled_call_t shuffled = {*call, spc_comm_perturb_number(comm)};
    if (call->match.source != (int32_t)comm->node->rank && spc_comm_perturb_blinds(comm)) {
        return SPC_EAGAIN;
    }
    if (pthread_mutex_trylock(&comm->node->lock) != 0) {
        return SPC_EAGAIN;
    }
    int status = take_shuffled(comm, &shuffled);
    spc_node_unlock(comm->node);
    return status;
}

/* ---- taking */

/* Looks that many times. */
static inline int try_to_take(spc_comm_t *comm, const spc_recv_call_t *call, uint32_t looks) {
    spc_node_t *node = comm->node;
    if (pthread_mutex_trylock(&node->lock) != 0) {
        return SPC_EAGAIN;
    }
    int status = spc_node_take(node, &call->match, call->message);
    for (uint32_t i = 1; i < looks && status == SPC_EAGAIN; i++) {
        spc_outbox_flush(node->outbox);
        spc_cpu_relax();
        status = spc_node_take(node, &call->match, call->message);
    }
    spc_outbox_flush(node->outbox);
    spc_node_unlock(node);
    return spc_comm_name_source(comm, status, call->message);
}

int spc_comm_try_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                      spc_message_t *message) {
    spc_recv_call_t call = {.message = message};
    int status = spc_comm_match(comm, source, tag, context, &call.match);
    if (status == SPC_OK) {
        status = try_to_take(comm, &call, 1);
    } else if (status == SPC_PERTURBED) {
        status = spc_comm_name_source(comm, try_recv_perturbed(comm, &call), message);
    }
    if (status == SPC_EAGAIN) {
        spc_node_note_vain(comm->node);
        status = look_again(comm, &call);
    }
    return status;
}

int spc_comm_poll_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                       spc_message_t *message, spc_recv_call_t *call) {
    call->message = message;
    int status = prepare(comm, context, source, tag, call);
    if (status != SPC_OK || call->perturbed) {
        return status == SPC_OK ? SPC_EAGAIN : status;
    }
    status = try_to_take(comm, call, 1);
    uint32_t polls = atomic_load_explicit(&comm->node->polls, memory_order_relaxed);
    for (uint32_t i = 0; i < polls && status == SPC_EAGAIN; i += SPC_NODE_LOOKS) {
        spc_cpu_relax();
        status = try_to_take(comm, call, SPC_NODE_LOOKS);
    }
    return status;
}

int spc_comm_finish_recv(spc_comm_t *comm, spc_recv_call_t *call, uint64_t deadline_ns) {
    const int status = call->perturbed ? recv_perturbed(comm, call, deadline_ns)
                                       : wait_until(comm, test_recv, call, deadline_ns);
    return spc_comm_name_source(comm, status, call->message);
}

int spc_comm_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                  spc_message_t *message) {
    spc_recv_call_t call = {.message = message};
    const int status = prepare(comm, context, source, tag, &call);
    return status == SPC_OK ? spc_comm_finish_recv(comm, &call, deadline_ns) : status;
}

int spc_comm_recv_into(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                       spc_sink_t *sink, spc_message_t *message) {
    spc_node_t *node = comm->node;
    spc_recv_call_t call = {.message = message};
    int status = prepare(comm, context, source, tag, &call);
    if (status != SPC_OK) {
        return status;
    }
    spc_posted_t posted;
    pthread_mutex_lock(&node->lock);
    spc_inbox_post(node->inbox, &call.match, sink, &posted);
    pthread_mutex_unlock(&node->lock);
    status = spc_comm_finish_recv(comm, &call, deadline_ns);
    pthread_mutex_lock(&node->lock);
    spc_inbox_withdraw(node->inbox, &posted);
    spc_node_unlock(node);
    return status;
}

int spc_comm_take(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, spc_message_t *message) {
    spc_recv_call_t call = {.message = message};
    /* It looks only at messages that are here: there is nothing to perturb. */
    int status = prepare(comm, context, source, tag, &call);
    if (status != SPC_OK) {
        return status;
    }
    pthread_mutex_lock(&comm->node->lock);
    status = spc_inbox_take_queued(comm->node->inbox, &call.match, message);
    spc_node_unlock(comm->node);
    return status == SPC_EAGAIN ? look_again(comm, &call) : spc_comm_name_source(comm, status, message);
}

/* ---- polling */

static uint64_t count_waiting(spc_comm_t *comm, uint16_t context) {
    spc_node_progress(comm->node);
    pthread_mutex_lock(&comm->node->lock);
    const uint64_t waiting = spc_inbox_count(comm->node->inbox, spc_comm_context(comm, context));
    spc_node_unlock(comm->node);
    return waiting;
}

int spc_comm_poll(spc_comm_t *comm, uint16_t context, uint64_t *waiting) {
    int status = spc_comm_perturb(comm, spc_comm_check_callable(comm));
    if (status != SPC_OK) {
        return status;
    }
    *waiting = count_waiting(comm, context);
    if (*waiting == 0) {
        spc_node_note_vain(comm->node);
        if (spc_node_is_disconnected(comm->node)) {
            *waiting = count_waiting(comm, context); /* as above */
            status = *waiting == 0 ? SPC_EDISCONNECTED : SPC_OK;
        }
    }
    return status;
}

/* ---- active messages (ACLMPL 4): the receiver's half; senders do not know of handlers */

int spc_comm_handle(spc_comm_t *comm, int32_t tag) {
    spc_node_t *node = comm->node;
    int status = spc_comm_check_usable(comm);
    if (status != SPC_OK) {
        return status;
    }
    pthread_mutex_lock(&node->lock);
    status = spc_inbox_filter(node->inbox, spc_comm_context(comm, SPC_CONTEXT_USER), tag,
                              spc_comm_context(comm, SPC_CONTEXT_HANDLED));
    if (status == SPC_OK) {
        spc_note_add_handled(node->notes, spc_comm_context(comm, SPC_CONTEXT_USER), tag);
    }
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

/* ---- looking */

typedef struct probe_call {
    spc_match_t match; /* first: see doomed_by_source */
    int32_t source;
    int32_t tag;
    uint64_t length_bytes;
} probe_call_t;

static bool test_probe(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    probe_call_t *call = wait->argument;
    pthread_mutex_lock(&node->lock);
    spc_node_claim(node);
    wait->status = spc_inbox_peek(node->inbox, &call->match, &call->source, &call->tag, &call->length_bytes);
    spc_outbox_flush(node->outbox);
    spc_node_unlock(node);
    return wait->status != SPC_EAGAIN;
}

static void give_found(const spc_comm_t *comm, const probe_call_t *call, int32_t *found_source,
                       int32_t *found_tag, uint64_t *length_bytes) {
    *found_source = comm->rank_of == NULL ? call->source : comm->rank_of[call->source];
    *found_tag = call->tag;
    *length_bytes = call->length_bytes;
}

int spc_comm_probe(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                   int32_t *found_source, int32_t *found_tag, uint64_t *length_bytes) {
    probe_call_t call = {.source = 0};
    int status = spc_comm_perturb(comm, spc_comm_match(comm, source, tag, context, &call.match));
    if (status != SPC_OK) {
        return status;
    }
    status = wait_until(comm, test_probe, &call, deadline_ns);
    if (status == SPC_OK) {
        give_found(comm, &call, found_source, found_tag, length_bytes);
    }
    return status;
}

int spc_comm_try_probe(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, int32_t *found_source,
                       int32_t *found_tag, uint64_t *length_bytes) {
    probe_call_t call = {.source = 0};
    int status = spc_comm_match(comm, source, tag, context, &call.match);
    if (status == SPC_PERTURBED) {
        status = spc_comm_perturb_blinds(comm) ? SPC_EAGAIN : SPC_OK;
    }
    if (status != SPC_OK) {
        return status;
    }
    spc_node_wait_t wait = {.node = comm->node, .owner = comm, .argument = &call};
    spc_node_progress(comm->node);
    if (test_probe(&wait) && wait.status == SPC_OK) {
        give_found(comm, &call, found_source, found_tag, length_bytes);
        return SPC_OK;
    }
    spc_node_note_vain(comm->node);
    return wait.status != SPC_EAGAIN              ? wait.status
           : spc_node_is_disconnected(comm->node) ? SPC_EDISCONNECTED
                                                  : SPC_EAGAIN;
}

/* ---- giving back */

/* With the lock, for a coordinated message; SPC_ECYCLE: its cycle is over. */
static int check_back(const spc_comm_t *comm, int32_t tag) {
    return tag == spc_coordinated_tag(comm->cycle.account) ? SPC_OK : SPC_ECYCLE;
}

int spc_comm_put_back(spc_comm_t *comm, spc_message_t *message) {
    spc_node_t *node = comm->node;
    int32_t source = message->source;
    message->source = (int32_t)spc_comm_member(comm, (uint32_t)source);
    bool counted = message->context == spc_comm_context(comm, SPC_CONTEXT_COORDINATED);
    pthread_mutex_lock(&node->lock);
    int status = counted ? check_back(comm, message->tag) : SPC_OK;
    status = status != SPC_OK ? status : spc_inbox_put_back(node->inbox, message);
    if (counted && status == SPC_OK) {
        spc_coordinated_undo_handed(comm->cycle.account, source);
    }
    spc_node_unlock(node);
    if (status != SPC_OK) {
        message->source = source; /* it is still the caller's */
    }
    /* Another thread may wait for just this message. Pairs, through the lock, with its test before it sleeps. */
    spc_event_notify(node->event, node->config->features);
    return status;
}
