/* SPDX-License-Identifier: MIT */
/*
 * spc_request: operations that are begun now and completed later: receives, synchronous sends, and lists of them that
 * are one operation.
 *
 * The caller owns the request, zeroed at first, and keeps it until it is done or cancelled. Any thread may begin, test
 * or wait; one thread at a time uses a given request.
 *
 * Posted receives. Each takes the first message that matches it, in the order in which they were posted, and before any
 * receive that is called later. Every wait and every poll of the node, whatever it is for, hands messages over in this
 * way (spc_node_claim). `deliver` gets the message with the node's lock held: it copies the data and returns; the
 * request releases the message. For a node that has posted nothing all of this costs one test.
 *
 * Waiting for any of several: any node that one of them needs can end the wait, and it fails only when none of them can
 * be completed any more.
 */
#ifndef SPC_REQUEST_H
#define SPC_REQUEST_H

#include "comm/spc_comm_private.h"

typedef struct spc_request spc_request_t;

typedef enum spc_request_kind {
    SPC_REQUEST_NONE, /* complete as soon as `done` is set, by whoever owns it */
    SPC_REQUEST_RECEIVE,
    SPC_REQUEST_SEND, /* done when the receiver has taken the message */
    SPC_REQUEST_ALL, /* done when all of its parts are */
} spc_request_kind_t;

/* With the node's lock. `message` is released afterwards. Its source is a rank of the communicator.
 * If the request has a sink that is filled, the data are there and not in the message. The function may post the
 * request again: then it is not done, but waits for another message. It may send, and must not drain. */
typedef void spc_request_deliver_t(spc_request_t *request, spc_message_t *message);

struct spc_request {
    spc_request_kind_t kind;
    spc_comm_t *comm;
    int status;        /* SPC_OK, or why a completed one has failed */
    _Atomic bool done; /* release by the thread that completes it; acquire by spc_request_is_done */
    int32_t tag; /* for descriptions, of a send or of a message that no program sees; as the next three */
    const char *name; /* of ALL: the call that made it */
    const char *file; /* where it was begun, if its owner knows; else NULL */
    int32_t line;

    /* RECEIVE; with the node's lock while it is posted. */
    spc_match_t match; /* the source as a rank of the segment */
    spc_request_deliver_t *deliver;
    spc_sink_t sink; /* data NULL: none */
    spc_posted_t place;
    bool posted;
    spc_request_t *next;

    spc_awaited_t awaited; /* SEND */

    spc_request_t *parts; /* ALL: its parts, but for the first ones that are known to be done */
    spc_request_t *next_part; /* of a part: the next one of the same ALL; NULL: none */
};

/* Posts a receive; the next wait or progress looks for its message. The caller has set deliver, and the sink if the
 * place of the data is known. SPC_ERANK, SPC_ECLOSED, SPC_EFORKED. Never waits. */
int spc_request_receive(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                        spc_request_t *request);

/* With the node's lock, for messages that no program sees: posts a receive from this rank of the communicator, again if
 * `deliver` calls it. The caller has set deliver, and has checked that the communicator may be used. */
void spc_request_post(spc_comm_t *comm, uint32_t source, int32_t tag, spc_request_t *request);

/* Copies the payload and asks for a receipt. Waits only for room: while the private queue is at its limit. */
int spc_request_send(spc_comm_t *comm, int32_t destination, uint16_t context, int32_t tag,
                     const spc_payload_t *payload, uint64_t deadline_ns, spc_request_t *request);

/* Makes one request of these, linked by next_part, which have been begun; NULL: of none. */
void spc_request_all(spc_comm_t *comm, spc_request_t *parts, spc_request_t *request);

/* Completes a request of kind NONE, from any thread, and wakes the thread that waits for it. */
void spc_request_finish(spc_request_t *request);

/* Whether it is complete now, as far as this node knows. Looks at no messages: spc_request_progress does. */
bool spc_request_is_done(spc_request_t *request);

/* Sends queued messages, takes arrivals, and hands them to posted receives. */
void spc_request_progress(spc_node_t *node);

/* Waits until one of them is done; `*which` is the first such. NULL entries are left out. Fails as other waits do:
 * spc_comm.h; then none of them is done. */
int spc_request_wait_any(spc_request_t *const *requests, uint32_t count, uint64_t deadline_ns,
                         uint32_t *which);

/* Waits for the first of the list; the others, which the caller needs, too, are for the description. */
int spc_request_wait_first(spc_request_t *const *requests, uint32_t count, uint64_t deadline_ns);

/* Waits for this one. */
int spc_request_wait(spc_request_t *request, uint64_t deadline_ns);

/* Withdraws a posted receive. False: it is done already, or no receive. */
bool spc_request_cancel(spc_request_t *request);

/* The memory of a posted receive's sink is the caller's again; its message is delivered like one without a sink. */
void spc_request_forget_sink(spc_request_t *request);

/* Ends a request, done or not, that its owner no longer needs: withdraws it, settles its receipt. */
void spc_request_end(spc_request_t *request);

#endif
