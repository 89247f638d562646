/* SPDX-License-Identifier: MIT */
#include "comm/spc_request.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/spc_clock.h"
#include "comm/spc_comm_perturb.h"
#include "segment/spc_event.h"

/* ---- posted receives, with the node's lock ---- */

/* Pairs with the acquire in spc_request_is_done: a thread that sees it sees the delivered data. */
static void complete(spc_request_t *request, int status) {
    request->status = status;
    atomic_store_explicit(&request->done, true, memory_order_release);
}

static void post(spc_node_t *node, spc_request_t *request) {
    request->next = NULL;
    request->posted = true;
    *node->posted_end = request;
    node->posted_end = &request->next;
    if (request->sink.data != NULL) {
        spc_inbox_post(node->inbox, &request->match, &request->sink, &request->place);
    }
}

/* `link` points to the request. */
static void unlink_at(spc_node_t *node, spc_request_t **link) {
    spc_request_t *request = *link;
    *link = request->next;
    if (node->posted_end == &request->next) {
        node->posted_end = link;
    }
    request->posted = false;
    if (request->match.posted != NULL) {
        spc_inbox_withdraw(node->inbox, &request->place);
        request->match.posted = NULL;
    }
}

static void deliver(spc_node_t *node, spc_request_t *request, spc_message_t *message) {
    (void)spc_comm_name_source(request->comm, SPC_OK, message);
    request->deliver(request, message);
    spc_inbox_release(node->inbox, message);
    if (request->posted) {
        node->posted_again = true;
    } else {
        complete(request, SPC_OK);
    }
}

/* True: the request got its message, or cannot because memory is short. */
static bool claim_one(spc_node_t *node, spc_request_t **link) {
    spc_request_t *request = *link;
    spc_message_t message;
    const int status = spc_inbox_take_queued(node->inbox, &request->match, &message);
    if (status == SPC_EAGAIN) {
        return false;
    }
    unlink_at(node, link);
    if (status == SPC_OK) {
        deliver(node, request, &message);
    } else {
        complete(request, status);
    }
    return true;
}

/* Threads of this node that wait for other requests look again. */
static void claim_queued(spc_node_t *node) {
    for (spc_request_t **link = &node->posted; *link != NULL && !spc_inbox_is_empty(node->inbox);) {
        if (claim_one(node, link)) {
            spc_inbox_note_stored(node->inbox);
        } else {
            link = &(*link)->next;
        }
    }
}

typedef struct chosen {
    spc_node_t *node;
    spc_request_t **link; /* link of the request that was chosen last */
} chosen_t;

static const spc_match_t *choose(void *argument, uint16_t context, int32_t source, int32_t tag) {
    chosen_t *chosen = argument;
    for (spc_request_t **link = &chosen->node->posted; *link != NULL; link = &(*link)->next) {
        const spc_match_t *match = &(*link)->match;
        if (match->context == context && (match->source == source || match->source == SPC_ANY_SOURCE)
            && (match->tag == tag || match->tag == SPC_ANY_TAG)) {
            chosen->link = link;
            return match;
        }
    }
    return NULL;
}

/* Takes arrivals of this source, or of any, each for the first request that it matches. */
static void claim_from(spc_node_t *node, int32_t source) {
    chosen_t chosen = {.node = node};
    const spc_inbox_choice_t choice = {choose, &chosen};
    spc_message_t message;
    while (node->posted != NULL && spc_inbox_take_chosen(node->inbox, source, &choice, &message) == SPC_OK) {
        spc_request_t *request = *chosen.link;
        unlink_at(node, chosen.link);
        deliver(node, request, &message);
        spc_inbox_note_stored(node->inbox);
    }
}

static bool any_source(const spc_node_t *node) {
    const spc_request_t *request = node->posted;
    while (request != NULL && request->match.source != SPC_ANY_SOURCE) {
        request = request->next;
    }
    return request != NULL;
}

/* A single posted receive takes its message as a blocking one does. */
static void claim_only(spc_node_t *node) {
    spc_request_t *request = node->posted;
    spc_message_t message;
    if (spc_inbox_take(node->inbox, &request->match, &message) == SPC_OK) {
        unlink_at(node, &node->posted);
        deliver(node, request, &message);
        spc_inbox_note_stored(node->inbox);
    }
}

/* Messages in the queues came before those in the rows. If all sources are known, only their rows are examined: the
 * doorbell would cost another cache line. The node's leader drains all others. */
static void claim_all(spc_node_t *node) {
    if (node->posted->next == NULL) {
        claim_only(node);
        return;
    }
    claim_queued(node);
    if (any_source(node)) {
        claim_from(node, SPC_ANY_SOURCE);
        return;
    }
    for (const spc_request_t *request = node->posted; request != NULL;) {
        const int32_t source = request->match.source;
        do { /* on to the next request of another source, which stays posted whatever comes from this one */
            request = request->next;
        } while (request != NULL && request->match.source == source);
        claim_from(node, source);
    }
}

/* The next message of a receive that was posted again may be here already, and nothing else would wake this node. */
static void claim(spc_node_t *node) {
    do {
        node->posted_again = false;
        claim_all(node);
    } while (node->posted_again && node->posted != NULL);
}

static void withdraw(spc_node_t *node, spc_request_t *request) {
    spc_request_t **link = &node->posted;
    while (*link != request) {
        link = &(*link)->next;
    }
    unlink_at(node, link);
}

/* ---- beginning ---- */

static void begin(spc_comm_t *comm, spc_request_kind_t kind, spc_request_t *request) {
    request->kind = kind;
    request->comm = comm;
    request->status = SPC_OK;
    request->posted = false;
    atomic_store_explicit(&request->done, false, memory_order_relaxed); /* no other thread knows it yet */
}

int spc_request_receive(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                        spc_request_t *request) {
    spc_node_t *node = comm->node;
    int status = spc_comm_perturb(comm, spc_comm_match(comm, source, tag, context, &request->match));
    if (status != SPC_OK) {
        return status;
    }
    begin(comm, SPC_REQUEST_RECEIVE, request);
    pthread_mutex_lock(&node->lock);
    node->claim = claim;
    post(node, request);
    pthread_mutex_unlock(&node->lock);
    return SPC_OK;
}

void spc_request_post(spc_comm_t *comm, uint32_t source, int32_t tag, spc_request_t *request) {
    spc_node_t *node = comm->node;
    request->kind = SPC_REQUEST_RECEIVE;
    request->comm = comm;
    request->match = (spc_match_t){.source = (int32_t)spc_comm_member(comm, source),
                                   .tag = tag,
                                   .context = spc_comm_context(comm, SPC_CONTEXT_INTERNAL)};
    node->claim = claim;
    post(node, request);
}

void spc_request_all(spc_comm_t *comm, spc_request_t *parts, spc_request_t *request) {
    begin(comm, SPC_REQUEST_ALL, request);
    request->parts = parts;
}

/* ---- completion ---- */

void spc_request_finish(spc_request_t *request) {
    spc_node_t *node = request->comm->node;
    pthread_mutex_lock(&node->lock);
    complete(request, SPC_OK);
    spc_inbox_note_stored(node->inbox);
    spc_node_unlock(node); /* followers */
    spc_event_notify(node->event, node->config->features);
}

/* The first part that fails is the one that counts. */
static bool are_parts_done(spc_request_t *request) {
    while (request->parts != NULL && spc_request_is_done(request->parts)) {
        request->status = request->status == SPC_OK ? request->parts->status : request->status;
        request->parts = request->parts->next_part;
    }
    return request->parts == NULL;
}

bool spc_request_is_done(spc_request_t *request) {
    if (atomic_load_explicit(&request->done, memory_order_acquire)) {
        return true;
    }
    if (request->kind == SPC_REQUEST_ALL && are_parts_done(request)) {
        complete(request, request->status);
        return true;
    }
    spc_comm_t *comm = request->comm;
    if (request->kind == SPC_REQUEST_SEND && spc_comm_is_taken(comm, &request->awaited)) {
        complete(request, SPC_OK);
        return true;
    }
    return false;
}

void spc_request_progress(spc_node_t *node) {
    spc_node_progress(node);
}

/* ---- waiting ---- */

typedef struct request_set {
    spc_request_t *const *requests;
    uint32_t count; /* of those that can end the wait: the first ones of the list */
    uint32_t described;
    uint32_t which;
} request_set_t;

static bool test_any(spc_node_wait_t *wait) {
    request_set_t *set = wait->argument;
    spc_node_t *node = wait->node;
    pthread_mutex_lock(&node->lock);
    spc_node_claim(node);
    spc_outbox_flush(node->outbox);
    spc_node_unlock(node);
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->requests[i] != NULL && spc_request_is_done(set->requests[i])) {
            set->which = i;
            return true;
        }
    }
    return false;
}

static int doomed_one(spc_request_t *request);

/* A message may change it: spc_request_post. */
static spc_match_t match_of(const spc_request_t *receive) {
    spc_node_t *node = receive->comm->node;
    pthread_mutex_lock(&node->lock);
    const spc_match_t match = receive->match;
    pthread_mutex_unlock(&node->lock);
    return match;
}

/* After this, what the sender of a part has sent before its end is here. */
static void take_last(const spc_request_t *part, const spc_match_t *match) {
    spc_node_t *node = part->comm->node;
    pthread_mutex_lock(&node->lock);
    if (part->kind == SPC_REQUEST_RECEIVE && match->source != SPC_ANY_SOURCE) {
        (void)spc_inbox_drain_row(node->inbox, (uint32_t)match->source);
    }
    spc_node_claim(node);
    spc_node_unlock(node);
}

/* The test of the wait may end the part that is judged, and then wait for another one: so that is judged only if it is
 * open, for a message of the same node, although all is here that can end it. */
static int doomed_parts(spc_request_t *request) {
    while (!are_parts_done(request)) {
        spc_request_t *part = request->parts;
        const bool receives = part->kind == SPC_REQUEST_RECEIVE;
        const spc_match_t match = receives ? match_of(part) : (spc_match_t){0};
        const int status = receives ? spc_comm_doomed_match(part->comm, &match) : doomed_one(part);
        if (status == SPC_OK || status == SPC_EAGAIN) {
            return status;
        }
        take_last(part, &match);
        if (!spc_request_is_done(part) && (!receives || match_of(part).source == match.source)) {
            return status;
        }
    }
    return SPC_OK;
}

static int doomed_one(spc_request_t *request) {
    spc_comm_t *comm = request->comm;
    switch (request->kind) {
    case SPC_REQUEST_RECEIVE:
        return spc_comm_doomed_match(comm, &request->match);
    case SPC_REQUEST_SEND:
        return spc_comm_has_left(comm, request->awaited.rank) ? spc_comm_blame(comm, request->awaited.rank)
                                                              : SPC_OK;
    case SPC_REQUEST_ALL:
        return doomed_parts(request);
    default:
        return SPC_OK; /* its owner completes it */
    }
}

/* One that may still be completed is enough. */
static int doomed_any(spc_node_wait_t *wait) {
    const request_set_t *set = wait->argument;
    int status = SPC_OK;
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->requests[i] == NULL) {
            continue;
        }
        status = doomed_one(set->requests[i]);
        if (status == SPC_OK || status == SPC_EAGAIN) {
            return status;
        }
    }
    return status;
}

static void describe_one(const spc_request_t *request, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    spc_comm_t *comm = request->comm;
    switch (request->kind) {
    case SPC_REQUEST_RECEIVE:
        spc_comm_describe_match(comm, &request->match, entry, pairs);
        if (request->match.context % SPC_CONTEXT_KINDS == SPC_CONTEXT_INTERNAL) {
            entry->tag = request->tag;
            entry->near_count = 0;
        }
        break;
    case SPC_REQUEST_SEND: {
        spc_send_call_t send = {.tag = request->tag};
        spc_awaited_t awaited = request->awaited;
        const spc_synchronous_call_t call = {.send = &send, .awaited = &awaited, .count = 1};
        spc_comm_describe_receipt(comm, &call, entry, pairs);
        break;
    }
    case SPC_REQUEST_ALL: { /* without its first open part it is never done */
        const spc_request_t *part = request->parts;
        while (part != NULL
               && atomic_load_explicit(&part->done, memory_order_relaxed)) { /* as in describe_any */
            part = part->next_part;
        }
        if (part != NULL) {
            describe_one(part, entry, pairs);
        }
        break;
    }
    default:
        entry->doubts |= SPC_BOARD_UNKNOWN; /* the program itself completes it, from another thread */
    }
}

/* ---- lines for a report: one for each request ---- */

enum { LAST_LINE_BYTES = 24 };

/* "a receive(source=1, tag=2), begun at ring.py:9" */
static int write_one(const spc_request_t *request, const spc_board_entry_t *entry, char *text, size_t room) {
    static const char *const names[] = {[SPC_REQUEST_RECEIVE] = "a receive(source=",
                                        [SPC_REQUEST_SEND] = "a send(dest=",
                                        [SPC_REQUEST_ALL] = "",
                                        [SPC_REQUEST_NONE] = "an operation of the program's own"};
    const bool has_peer = request->kind == SPC_REQUEST_RECEIVE || request->kind == SPC_REQUEST_SEND;
    char source[16] = "ANY", tag[16] = "ANY", place[128] = "";
    if (entry->source != SPC_ANY_SOURCE) {
        (void)snprintf(source, sizeof(source), "%" PRId32, entry->source);
    }
    if (entry->tag != SPC_ANY_TAG) {
        (void)snprintf(tag, sizeof(tag), "%" PRId32, entry->tag);
    }
    if (request->file != NULL) {
        const char *slash = strrchr(request->file, '/');
        (void)snprintf(place, sizeof(place), ", begun at %s:%" PRId32,
                       slash != NULL ? slash + 1 : request->file, request->line);
    }
    return has_peer ? snprintf(text, room, "%s%s, tag=%s)%s\n", names[request->kind], source, tag, place)
                    : snprintf(text, room, "%s%s%s\n", names[request->kind],
                               request->kind == SPC_REQUEST_ALL ? request->name : "", place);
}

/* Appends the line; if there is no room for it and a last line, counts it in `left_out`. */
static void add_line(const spc_request_t *request, const spc_board_entry_t *one, spc_board_entry_t *entry,
                     uint32_t *left_out) {
    const size_t length = strlen(entry->more), room = sizeof(entry->more) - length - LAST_LINE_BYTES;
    const int added = *left_out == 0 ? write_one(request, one, entry->more + length, room) : 0;
    if (*left_out != 0 || added < 0 || (size_t)added >= room) {
        entry->more[length] = '\0';
        ++*left_out;
    }
}

static void add_left_out(uint32_t left_out, spc_board_entry_t *entry) {
    const size_t length = strlen(entry->more);
    if (left_out != 0) {
        (void)snprintf(entry->more + length, sizeof(entry->more) - length, "%" PRIu32 " more\n", left_out);
    }
}

/* Keeps the first request, or the first for which a message nearly matches, for the row of the report. */
static void choose_row(const spc_board_entry_t *one, bool is_first, spc_board_entry_t *entry) {
    const uint32_t doubts = entry->doubts | one->doubts;
    if (is_first || (entry->near_count == 0 && one->near_count != 0)) {
        const size_t before = offsetof(spc_board_entry_t, more);
        memcpy(entry, one, before);
    }
    entry->doubts = doubts;
}

/* With several, any node that one of them needs can end the wait, which is what RECEIVE means. */
static void describe_any(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const request_set_t *set = wait->argument;
    spc_board_pair_t not_needed[SPC_NODES_MAX + 1];
    uint32_t lines = 0, needed = 0, left_out = 0;
    const char *file = NULL;
    entry->near_count = 0;
    entry->more[0] = '\0';
    const spc_board_entry_t blank = *entry;
    for (uint32_t i = 0; i < set->described; i++) {
        const spc_request_t *request = set->requests[i];
        /* Relaxed: a request that becomes done in the meantime wakes this node, which describes the rest again. */
        if (request == NULL || atomic_load_explicit(&request->done, memory_order_relaxed)) {
            continue;
        }
        spc_board_entry_t one = blank;
        describe_one(request, &one, i < set->count ? pairs : not_needed);
        one.doubts = i < set->count ? one.doubts : 0;
        add_line(request, &one, entry, &left_out);
        choose_row(&one, lines == 0, entry);
        file = request->file;
        needed += i < set->count;
        lines++;
    }
    add_left_out(left_out, entry);
    if (needed > 1) {
        entry->kind = SPC_BOARD_RECEIVE;
    }
    if (lines == 1 && file == NULL) {
        entry->more[0] = '\0'; /* the row says all of it */
    }
}

static int wait_for(request_set_t *set, uint64_t deadline_ns) {
    spc_comm_t *comm = NULL;
    for (uint32_t i = 0; i < set->count && comm == NULL; i++) {
        comm = set->requests[i] != NULL ? set->requests[i]->comm : NULL;
    }
    if (comm == NULL) {
        return SPC_EINVAL;
    }
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_any,
                            .doomed = doomed_any,
                            .describe = describe_any,
                            .owner = comm,
                            .argument = set};
    return spc_node_test_or_wait(&wait, deadline_ns);
}

int spc_request_wait_any(spc_request_t *const *requests, uint32_t count, uint64_t deadline_ns,
                         uint32_t *which) {
    request_set_t set = {requests, count, count, 0};
    const int status = wait_for(&set, deadline_ns);
    *which = set.which;
    return status;
}

/* As spc_comm_poll_recv. */
static bool poll_receive(spc_request_t *request) {
    spc_node_t *node = request->comm->node;
    const uint32_t polls = atomic_load_explicit(&node->polls, memory_order_relaxed);
    for (uint32_t i = 0;; i += SPC_NODE_LOOKS) {
        bool is_done = false;
        pthread_mutex_lock(&node->lock);
        for (uint32_t look = 0; look < SPC_NODE_LOOKS && !is_done; look++) {
            spc_node_claim(node);
            spc_outbox_flush(node->outbox);
            is_done = atomic_load_explicit(&request->done, memory_order_acquire);
            if (!is_done) {
                spc_cpu_relax();
            }
        }
        spc_node_unlock(node);
        if (is_done || i >= polls) {
            return is_done;
        }
    }
}

int spc_request_wait_first(spc_request_t *const *requests, uint32_t count, uint64_t deadline_ns) {
    request_set_t set = {requests, 1, count, 0};
    if (atomic_load_explicit(&requests[0]->done, memory_order_acquire)
        || (requests[0]->kind == SPC_REQUEST_RECEIVE && poll_receive(requests[0]))) {
        return requests[0]->status;
    }
    const int status = wait_for(&set, deadline_ns);
    return status == SPC_OK ? requests[0]->status : status;
}

int spc_request_wait(spc_request_t *request, uint64_t deadline_ns) {
    return spc_request_wait_first(&request, 1, deadline_ns);
}

/* ---- ending ---- */

bool spc_request_cancel(spc_request_t *request) {
    if (request->kind != SPC_REQUEST_RECEIVE) {
        return false;
    }
    spc_node_t *node = request->comm->node;
    pthread_mutex_lock(&node->lock);
    spc_node_claim(node); /* a message that has already come takes precedence */
    const bool was_posted = request->posted;
    if (was_posted) {
        withdraw(node, request);
    }
    spc_node_unlock(node);
    return was_posted;
}

void spc_request_forget_sink(spc_request_t *request) {
    spc_node_t *node = request->comm->node;
    pthread_mutex_lock(&node->lock);
    if (request->posted && request->match.posted != NULL) {
        spc_inbox_withdraw(node->inbox, &request->place);
        request->match.posted = NULL;
        request->sink.data = NULL;
    }
    spc_node_unlock(node);
}

void spc_request_end(spc_request_t *request) {
    if (request->kind == SPC_REQUEST_SEND) {
        spc_node_t *node = request->comm->node;
        pthread_mutex_lock(&node->lock);
        spc_receipts_settle(node->receipts, (uint32_t)request->awaited.destination, request->awaited.number);
        pthread_mutex_unlock(&node->lock);
    } else if (request->kind == SPC_REQUEST_RECEIVE
               && !atomic_load_explicit(&request->done, memory_order_acquire)) {
        (void)spc_request_cancel(request);
    }
    for (; request->kind == SPC_REQUEST_ALL && request->parts != NULL;
         request->parts = request->parts->next_part) {
        spc_request_end(request->parts);
    }
    request->kind = SPC_REQUEST_NONE;
}
