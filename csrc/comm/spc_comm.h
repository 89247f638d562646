/* SPDX-License-Identifier: MIT */
/*
 * spc_comm: ties a node together. A language binding sees only this header and the formats.
 *
 * A spc_comm_t is one node's communicator: a set of nodes, its own rank among them, and its operations with them.
 * Joining the run makes the first one, of all nodes; splitting makes the others. All communicators of a process share
 * one spc_node_t (node/spc_node.h), so a wait in one makes progress in all. Any thread of the process may call any
 * function at any time; two collectives at once on one communicator are refused (SPC_EBUSY). No lock is held while the
 * caller's `check` runs, and none while a call waits. All ranks here are ranks of the communicator.
 *
 * Deadlines are monotonic nanoseconds (spc_clock.h), SPC_NO_DEADLINE for none. A call that waits returns SPC_ETIMEDOUT,
 * SPC_EINTERRUPTED (`check` ended the wait), SPC_ELOST or SPC_EFINISHED (the rank is in spc_comm_culprit),
 * SPC_EDISCONNECTED (of several boxes: the box is in spc_comm_lost_box), SPC_EDEADLOCK (see spc_comm_watch_itself).
 *
 * In a forked child of a node every call returns SPC_EFORKED, and releasing does nothing.
 */
#ifndef SPC_COMM_H
#define SPC_COMM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/spc_clock.h"
#include "base/spc_error.h"
#include "base/spc_platform.h"
#include "diagnose/spc_deadlock_report.h"
#include "message/spc_format.h"
#include "message/spc_receipt.h"
#include "reduce/spc_layout.h"
#include "reduce/spc_ops.h"
#include "reduce/spc_reduce.h"
#include "segment/spc_arena.h"
#include "segment/spc_board.h"
#include "segment/spc_config.h"
#include "segment/spc_note.h"
#include "segment/spc_segment.h"
#include "segment/spc_status.h"
#include "segment/spc_trace.h"

typedef struct spc_comm spc_comm_t;

typedef struct spc_comm_options {
    int descriptor;  /* of the segment; the caller closes it */
    uint32_t rank;
    /* Runs in waiting threads before they sleep and after each slice of sleep: for signals. A status other than SPC_OK
     * ends the wait with SPC_EINTERRUPTED. May be NULL. */
    int (*check)(void *argument);
    void *check_argument; /* of locate and handle, too */
    /* Runs in one waiting thread, at the same places, when messages for handlers have come (spc_comm_handle): it takes
     * them. A status other than SPC_OK ends the wait with SPC_EINTERRUPTED. May be NULL. */
    int (*handle)(void *argument);
    /* Runs once in a wait that has lasted for milliseconds: fills in file, line and function of the caller, and reports
     * how many threads of the program there are beside this one; -1: as many as the process has; INT32_MIN: a signal
     * ends the wait, as in `check`. It may add signals to `own_signals`, for this wait. May be NULL. */
    int32_t (*locate)(void *argument, spc_board_entry_t *entry, uint64_t *own_signals);
    uint64_t own_signals; /* 1 << (number - 1) for each signal whose handler makes no call of this header */
} spc_comm_options_t;

/* ---- the segment, for the process that starts the nodes ---- */

/* Sizes all regions for this configuration. SPC_EINVAL. */
int spc_comm_plan(const spc_config_t *config, spc_segment_plan_t *plan);

/* Reads from existing data how many collectives of the whole run each node has started, by rank. SPC_ENOMEM. */
int spc_comm_count_collectives(const spc_segment_t *segment, uint64_t *counts);

/* Used by the supervisor. Ending: a node will do nothing more for the others, but its process may still run and read
 * messages that it has received. Ended: the process is gone, too; a node that sees the end also sees that the memory is
 * free. A process that waits at its exit is not gone: another thread of it may still read. */
void spc_comm_mark_ending(const spc_segment_t *segment, uint32_t rank, spc_node_state_t state,
                          int32_t reason);
void spc_comm_mark_ended(const spc_segment_t *segment, uint32_t rank, spc_node_state_t state, int32_t reason);

/* Called by the supervisor, or for it: no more frames come from other boxes, because of this one (or
 * SPC_STATUS_SERVER). Every unfulfilled wait of the nodes here ends with SPC_EDISCONNECTED, and so does every later
 * one. The first culprit stays. */
void spc_comm_mark_disconnected(const spc_segment_t *segment, int32_t culprit);

/* ---- life ---- */

int spc_comm_create(const spc_comm_options_t *options, spc_comm_t **comm);

/* As join, in an attachment that the caller keeps, instead of options->descriptor: for ranks that are threads. */
int spc_comm_create_within(const spc_segment_t *segment, const spc_comm_options_t *options,
                           spc_comm_t **comm);

/* Divides the communicator: nodes that give the same color (0 or more) form a new one, ordered by key, then by rank; a
 * node that gives a negative color belongs to none (*part is NULL). Collective over `comm`; waits for all nodes. After
 * SPC_EINTERRUPTED or SPC_ETIMEDOUT the same call continues it. SPC_ENOMEM, on all nodes of that color: its first
 * node's arena has no room for the new communicator. SPC_ELIMIT: too many, ever. */
int spc_comm_split(spc_comm_t *comm, int64_t color, int64_t key, uint64_t deadline_ns, spc_comm_t **part);

/* Makes a communicator of these `count` members, ranks of `comm` without repetition, which get their ranks in this
 * order. Every member calls it with the same list, and this node is one of them; other nodes take no part. It waits for
 * the members. Several calls may be under way at once, also of several threads, if those with a member in common have
 * different tags, from 0 to SPC_GROUP_TAG_MAX. After SPC_EINTERRUPTED or SPC_ETIMEDOUT the same call continues it.
 * SPC_EFINISHED, SPC_ELOST: a member has ended; SPC_ENOMEM, SPC_ELIMIT: as in spc_comm_split, on all members.
 * SPC_ERANK, SPC_ETAG, SPC_EINVAL: a rank repeats, or this node is none of them. */
#define SPC_GROUP_TAG_MAX ((UINT32_C(1) << 29) - 1)
int spc_comm_create_group(spc_comm_t *comm, const uint32_t *members, uint32_t count, uint32_t tag,
                          uint64_t deadline_ns, spc_comm_t **made);

/* Sends queued messages (until the deadline), then leaves: the run's communicator publishes FINISHED; the members of
 * any other are notified, and messages that they send to this node are dropped. SPC_ETIMEDOUT if some message could not
 * be sent; the node has left all the same. Later calls: SPC_ECLOSED, but messages and blocks may still be released. Not
 * collective. */
int spc_comm_close(spc_comm_t *comm, uint64_t deadline_ns);

/* Frees it, after close and after the last message or block has been released. */
void spc_comm_destroy(spc_comm_t *comm);

uint32_t spc_comm_rank(const spc_comm_t *comm);
uint32_t spc_comm_size(const spc_comm_t *comm);
uint32_t spc_comm_rank_in_run(const spc_comm_t *comm, uint32_t rank);
/* Records the begin of an operation (CALL), in a run that is traced; `what` and `place` are names of spc_trace_name. A
 * part of the run adds its identity: in `context` its number, in `peer` its node 0 as a rank in the run, in `tag` the
 * rank here, in `bytes` the size. `detail`, in `number`, is the caller's. */
void spc_comm_trace_call(const spc_comm_t *comm, uint32_t what, uint32_t place, uint32_t detail);

/* Whether some of its members are in other boxes: then shared memory does not reach all. And the box of a member. */
bool spc_comm_is_wide(const spc_comm_t *comm);
uint32_t spc_comm_box(const spc_comm_t *comm, uint32_t rank);

const spc_config_t *spc_comm_config(const spc_comm_t *comm);

/* The longest value of one collective. */
uint64_t spc_comm_scratch_bytes(const spc_comm_t *comm);

/* In a run of one node that no other process watches, before its first call: from now on a wait that is proven to be
 * endless (diagnose/spc_deadlock.h) ends with SPC_EDEADLOCK. If another thread, a timer or a signal handler of this
 * process may still end a wait, there is no proof: `warn` runs once, as `check` does, when such a wait of the thread
 * that created the communicator has lasted for seconds. SPC_ENOMEM. */
int spc_comm_watch_itself(spc_comm_t *comm, int (*warn)(void *argument));

/* After SPC_EDEADLOCK, in the same thread, or in `warn`: the report of that wait; `advice` as in its options.
 * SPC_ENOMEM. */
int spc_comm_report_wait(const spc_comm_t *comm, const char *advice, FILE *out);

/* After SPC_EDISCONNECTED: the box whose connection broke, or SPC_STATUS_SERVER. */
int32_t spc_comm_lost_box(const spc_comm_t *comm);

/* The rank that made the last such call of this node fail with ELOST or EFINISHED, and how that rank ended; a LIVE one
 * has closed this communicator. */
int32_t spc_comm_culprit(const spc_comm_t *comm, spc_node_state_t *state, int32_t *reason);

/* The trace of this node; NULL: the run is not traced, or this process is a fork of the node. */
spc_trace_t *spc_comm_trace(const spc_comm_t *comm);

/* SPC_OK, SPC_ECLOSED or SPC_EFORKED. */
int spc_comm_usable(const spc_comm_t *comm);

/* ---- notes that a node leaves for others ---- */

/* Written by the binding, which knows lines: END before close; FUZZY and CYCLE with a place and no count, in case close
 * finds them open. By the MPI library: REQUEST before close. */
void spc_comm_note(spc_comm_t *comm, spc_note_kind_t kind, const spc_note_t *note);
bool spc_comm_has_note(const spc_comm_t *comm, spc_note_kind_t kind);

/* Announces that this node's process will end with that exit code, which is not 0: for the others it dies when it
 * closes. */
void spc_comm_note_failure(spc_comm_t *comm, int32_t exit_code);

/* Counts one more error, or one less (-1), that is alive in this node and that it sends to others; see spc_status.h. */
void spc_comm_note_raised(spc_comm_t *comm, int32_t change);

void spc_comm_note_sent(spc_comm_t *comm, const spc_note_sent_t *sent);
void spc_comm_forget_sent(spc_comm_t *comm);

/* Where that node sent a message of this tag and format to this one, if it noted that in this box. */
bool spc_comm_sent_by(const spc_comm_t *comm, uint32_t rank, int32_t tag, uint32_t format,
                      spc_note_sent_t *sent);

/* After SPC_EMISMATCH: what the nodes called and what they have to do, as text that follows the name of the call; the
 * caller frees it. `mine` is this node's call in the program's words, and its line. It publishes that, and waits for
 * those of the others, up to half a second for a node that records none. NULL: no memory. */
char *spc_comm_explain_mismatch(spc_comm_t *comm, const spc_note_t *mine);

/* After a call has failed with `status` (not SPC_EMISMATCH, SPC_EDEADLOCK, SPC_ENOMEM, SPC_ESYSTEM): why, as text that
 * follows the call; the caller frees it. `call` is in the program's words, `since` as in diagnose/spc_failure_text.h.
 * `comm` may be NULL where there is none yet. NULL: no memory. */
char *spc_comm_explain(const spc_comm_t *comm, int status, const char *call, const char *since);

/* After a receive has failed: a sentence about messages here that nearly match; the caller frees it. NULL: there are
 * none, or no memory. */
char *spc_comm_explain_near(const spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag);

/* Counts these messages, with source and tag of the first. */
uint32_t spc_comm_near(const spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                       int32_t *near_source, int32_t *near_tag);

/* ---- messages ---- */

/* A send or a receive that a call without waiting has prepared, and that finish_send or finish_recv goes on with.
 * Callers read no field. */
typedef struct spc_send_call {
    const int32_t *destinations; /* ranks of the segment */
    const int32_t *ranks; /* the same as ranks of the communicator */
    uint32_t destination_count;
    uint16_t context;
    bool perturbed; /* the perturber has a part in it */
    int32_t tag;
    const spc_payload_t *payload;
    spc_block_shared_t **block; /* NULL, or the payload's block: it is moved, and NULL here afterwards */
    spc_comm_t *counted_by; /* NULL, or the communicator whose cycle counts and tags the message */
    struct spc_synchronous_call *asking; /* NULL, or what waits for its receipts; not with counted_by */
} spc_send_call_t;

typedef struct spc_recv_call {
    spc_match_t match; /* first: what ends its wait reads nothing else. The source is a rank of the segment */
    spc_message_t *message;
    bool perturbed;
} spc_recv_call_t;

/* Copies the payload and returns; waits only while the private queue is at its limit. Destinations must be distinct. */
int spc_comm_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count, uint16_t context,
                  int32_t tag, const spc_payload_t *payload, uint64_t deadline_ns);

/* As send, for a caller that receives next: where the run's configuration makes sends wait for their receivers, this
 * one does not. */
int spc_comm_send_ahead(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                        uint16_t context, int32_t tag, const spc_payload_t *payload, uint64_t deadline_ns);

/* As send, but never waits, not even for another thread. SPC_EAGAIN: nothing was sent; finish_send goes on with `call`,
 * while destinations and payload stay in their places. */
int spc_comm_try_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                      uint16_t context, int32_t tag, const spc_payload_t *payload, spc_send_call_t *call);

/* The rest of a send, or of a coordinated one; `ahead`: of spc_comm_send_ahead. */
int spc_comm_finish_send(spc_comm_t *comm, spc_send_call_t *call, bool ahead, uint64_t deadline_ns);

/* Sends, and waits until the receiver has taken the message: matched it, in whatever order. The first match counts,
 * even if the receiver puts the message back. SPC_ELOST, SPC_EFINISHED: the receiver has ended, or closed the
 * communicator, without taking it. After SPC_ETIMEDOUT and SPC_EINTERRUPTED the message has been sent all the same,
 * unless the private queue was at its limit all the time. To oneself: another thread has to receive. */
int spc_comm_ssend(spc_comm_t *comm, int32_t destination, uint16_t context, int32_t tag,
                   const spc_payload_t *payload, uint64_t deadline_ns);

/* Takes the first message that matches; SPC_EAGAIN: none, or another thread is at it. Never waits. This, spc_comm_take,
 * spc_comm_poll and spc_comm_fuzzy_done fail with SPC_EDISCONNECTED if they find nothing and nothing can come. */
int spc_comm_try_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                      spc_message_t *message);

/* As try_recv, but polls a moment (a few microseconds; not at all where cores are shared): for callers with a lock of
 * their own that is worth keeping that long. SPC_EAGAIN: finish_recv goes on with `call`. */
int spc_comm_poll_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                       spc_message_t *message, spc_recv_call_t *call);

/* Waits for the message of a receive that poll_recv has prepared. */
int spc_comm_finish_recv(spc_comm_t *comm, spc_recv_call_t *call, uint64_t deadline_ns);

/* Waits until a message matches, and takes it. */
int spc_comm_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                  spc_message_t *message);

/* As recv, for a caller that knows where the data belong if the message is just as `sink` describes (all except
 * `filled`). If sink->filled, they are there and not in the message, which must be released; otherwise the message is
 * like any other, but sink->data may have been written to all the same. */
int spc_comm_recv_into(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                       spc_sink_t *sink, spc_message_t *message);

/* Searches only messages that have been moved into the queues already. */
int spc_comm_take(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, spc_message_t *message);

/* Waits until a message matches, and leaves it in place. */
int spc_comm_probe(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                   int32_t *found_source, int32_t *found_tag, uint64_t *length_bytes);

/* As probe, but does not wait: SPC_EAGAIN. Makes progress. */
int spc_comm_try_probe(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, int32_t *found_source,
                       int32_t *found_tag, uint64_t *length_bytes);

/* From now on messages with this tag, also those in the queues, are hidden from receives: they have the context HANDLED
 * and wait for spc_comm_take_handled, which options.handle or any other caller calls. SPC_ENOMEM. */
int spc_comm_handle(spc_comm_t *comm, int32_t tag);

/* Takes the first of them, in order of arrival; also makes progress. SPC_EAGAIN. Never waits. */
int spc_comm_take_handled(spc_comm_t *comm, spc_message_t *message);

/* Moves arrivals into the queues and sends queued messages; returns how many messages of `context` wait in the
 * queues. */
int spc_comm_poll(spc_comm_t *comm, uint16_t context, uint64_t *waiting);

/* Ends a received message: its memory goes back to its owner. Any thread; also after close. Idempotent. */
void spc_message_release(spc_comm_t *comm, spc_message_t *message);

/* Gives a message back to its place in the queue, as if it had not been received. SPC_ENOMEM; SPC_ECYCLE of a
 * coordinated message whose cycle is over: it is still the caller's. */
int spc_comm_put_back(spc_comm_t *comm, spc_message_t *message);

/* For a message of storage ARENA that several nodes got: whether the others have released it by now. If so, it is this
 * node's alone from here on: `sole`. Never waits; any thread. */
bool spc_message_claim(spc_comm_t *comm, spc_message_t *message);

/* Releases by handle the memory of a message of storage ARENA or HEAP: for owners that outlive the message. */
void spc_comm_release_stored(spc_comm_t *comm, spc_storage_t storage, void *handle);

/* ---- blocks ---- */

/*
 * A block is a piece of an arena, spc_block_payload and capacity_bytes of it. A node that has taken a block holds it
 * until it releases or moves it; so does one that has received a block (a message of storage ARENA: its handle is the
 * block), but it may be written, and moved, only if the message was `sole`.
 */

/* Takes a block of this node's arena with room for `length_bytes`, of any content. SPC_EAGAIN: there is no room now;
 * send the data another way. Any thread, never waits. */
int spc_comm_take_block(spc_comm_t *comm, uint64_t length_bytes, spc_block_shared_t **block);

/* As that, for a copy of a received message: such blocks take half of the arena at most, so that there is always room
 * for messages to send, however many are kept. */
int spc_comm_take_kept(spc_comm_t *comm, uint64_t length_bytes, spc_block_shared_t **block);

/* Any thread, also inside garbage collection and after close. */
void spc_comm_release_block(spc_comm_t *comm, spc_block_shared_t *block);

/* Moves a block to one node, without a copy, as a message: [meta][data] lie at its start; payload->meta and ->data are
 * not read. The block is then the receiver's alone, and *block becomes NULL; otherwise nothing was done. Waits only
 * where the run's configuration makes sends wait for their receivers, with no timeout. In order with all other sends.
 * To a node that has ended: the block is free. */
int spc_comm_move_block(spc_comm_t *comm, int32_t destination, uint16_t context, int32_t tag,
                        const spc_payload_t *payload, uint64_t deadline_ns, spc_block_shared_t **block);

/* Waits until the process of each node that has died is gone, and no longer holds its received messages. Before that,
 * spc_comm_block_bytes counts them. SPC_ETIMEDOUT, SPC_EINTERRUPTED, SPC_EDISCONNECTED. */
int spc_comm_await_gone(spc_comm_t *comm, uint64_t deadline_ns);

/* Bytes of this node's arena that are given out, to any node; for tests and statistics. Looks at every block. */
uint64_t spc_comm_block_bytes(spc_comm_t *comm);

/* ---- memory that the nodes share ---- */

/* Shares a block of this node's arena, before the others learn of it: all members of the communicator use it from now
 * on, each until its spc_comm_release_block. A member that dies no longer uses anything. */
void spc_comm_share_block(spc_comm_t *comm, spc_block_shared_t *block);

/* Called by its owner, which knows that the others no longer use it: spares them the release. */
void spc_comm_unshare_block(spc_comm_t *comm, spc_block_shared_t *block);

/* Finds the location of memory in the segment, which others resolve by spc_comm_address. False: some of the memory lies
 * elsewhere. */
bool spc_comm_offset(const spc_comm_t *comm, const void *address, uint64_t bytes, uint64_t *offset);
void *spc_comm_address(const spc_comm_t *comm, uint64_t offset);

/* ---- coordinated messages ---- */

/*
 * A cycle: all nodes send, then each receives until it has every message that was sent to it. It begins with a node's
 * first coordinated send or receive and is over for it when a receive reports that; the next may begin at once. Within
 * it new collectives, fuzzy barriers and waits for one return SPC_ECYCLE, and so does a coordinated send after the
 * first receive: nothing was done, the cycle goes on. Only these receives see messages of a cycle.
 */

/* As spc_comm_try_send; finish_send goes on with this, too. SPC_ECYCLE; at the begin of a cycle: SPC_EMISMATCH if a
 * timeout has left a collective, SPC_EBUSY if another thread is inside one. No destination at all begins a cycle,
 * too. */
int spc_comm_coordinated_try_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                                  const spc_payload_t *payload, spc_send_call_t *call);

/* Takes the next message of the cycle, of any sender, in order from each; or sets *over without a message, and the next
 * cycle may begin. Waits while neither is certain. One thread at a time: SPC_EBUSY. SPC_EMISMATCH: another node called
 * something else. The cycle stays open, all sent messages count, and the next receive asks the others again; also if
 * this node has left a collective, which must be ended first. SPC_ELOST, SPC_EFINISHED: a node will never receive, or
 * has ended before it could send the messages it had counted. Messages that are there are received first. After these,
 * SPC_ETIMEDOUT and SPC_EINTERRUPTED call it again. */
int spc_comm_coordinated_recv(spc_comm_t *comm, uint64_t deadline_ns, spc_message_t *message, bool *over);

/* As recv, but polls a moment as spc_comm_poll_recv does, and does not wait for another thread: SPC_EAGAIN: call
 * recv. */
int spc_comm_coordinated_poll(spc_comm_t *comm, spc_message_t *message, bool *over);

/* ---- collectives ---- */

/* Enters and waits. After SPC_ETIMEDOUT, SPC_EINTERRUPTED the operation stays entered: the same call again continues
 * it, another one returns SPC_EMISMATCH. `result` may equal `value`. */
int spc_comm_collective(spc_comm_t *comm, const spc_signature_t *signature, const spc_field_t *fields,
                        const void *value, uint64_t length_bytes, void *result, uint64_t deadline_ns);

/* As collective, for callers with a lock worth keeping: SPC_EAGAIN if it is not over within a few microseconds; it
 * stays entered, call spc_comm_collective next. */
int spc_comm_collective_poll(spc_comm_t *comm, const spc_signature_t *signature, const spc_field_t *fields,
                             const void *value, uint64_t length_bytes, void *result);

/* Whether this node has left a collective operation before its end: it is entered still, and may be continued. */
bool spc_comm_is_entered(const spc_comm_t *comm);

/* The value that `rank` gave: after a GATHER has returned SPC_OK, until this node's next collective but one. */
void spc_comm_contribution(const spc_comm_t *comm, uint32_t rank, const void **bytes, uint64_t *length_bytes);

/* After SPC_EMISMATCH: the call of `rank`, if that is known (true), and the phase, a running number. */
bool spc_comm_mismatch(const spc_comm_t *comm, uint32_t rank, spc_signature_t *signature, uint64_t *phase);

/* ---- collectives that move data ---- */

/*
 * The data that one node gives and gets in one of SPC_OPERATION_DATA_…: BCAST and SCATTER from the root to the others,
 * GATHER from the others to the root, ALLGATHER and ALLTOALL from all to all; SCATTER and ALLTOALL have a payload for
 * each node, the others one for all. A node's payload for itself is ignored: the caller handles it.
 *
 * All nodes enter one phase, which compares operation and root (or the given signature) and carries short payloads;
 * longer ones follow as messages. A node that has nothing to give enters it, too, with `failure`, so that no node waits
 * for it in vain.
 */
typedef struct spc_gathering_slot {
    spc_block_shared_t *block; /* the payload for this rank (slot 0: for all) lies here; NULL: it does not */
    uint8_t way; /* of that payload */
    bool awaited; /* a message from this rank is missing */
    bool suspected; /* and the rank had left at the last check */
} spc_gathering_slot_t;

enum { SPC_GATHERING_FEW = 8 };

typedef struct spc_gathering {
    uint32_t operation;
    uint32_t root; /* 0 if it has none */
    /* To compare, if this is a step of another operation; zeros: operation and root. */
    spc_signature_t signature;
    const spc_payload_t *payloads; /* one, or one for each rank; a continued call gives the same */
    uint32_t payload_count; /* 0: gives nothing */
    uint32_t failure_bytes;
    const char
        *failure; /* NULL, or in UTF-8 why this node, though it should, gives nothing; payload_count is 0 */

    /* Received data. BCAST and SCATTER give one message; the others give one for each rank, of which that of this rank
     * (and all of a GATHER, unless this is the root) is without bytes. */
    spc_message_t *messages;
    int32_t failed; /* -1, or a rank that gave `failure`, which is its message */

    /* Its own state: zeros at first. */
    uint32_t stage;
    uint32_t sent; /* payloads, or 1 for all ranks */
    uint32_t missing; /* messages */
    int32_t status; /* of a step that failed, but must not keep others waiting */
    spc_gathering_slot_t *slots; /* by rank */
    /* For slots and messages of few nodes, without an allocation: the structure stays where it is until its end. */
    spc_gathering_slot_t few[SPC_GATHERING_FEW];
    spc_message_t one;
} spc_gathering_t;

/* Takes part, and waits until this node has given and got everything. SPC_ETIMEDOUT, SPC_EINTERRUPTED: it stays
 * entered, the same call continues it, every other collective is SPC_EMISMATCH. After any other status it is over.
 * Before: a zeroed structure with this node's payloads; afterwards spc_comm_gathering_end. */
int spc_comm_gathering(spc_comm_t *comm, spc_gathering_t *call, uint64_t deadline_ns);

/* As that, for callers with a lock worth keeping: SPC_EAGAIN if it is not over within a few microseconds; it stays
 * entered, call spc_comm_gathering next. */
int spc_comm_gathering_poll(spc_comm_t *comm, spc_gathering_t *call);

/* Frees its memory; releases messages that are still there. Idempotent; also after close. */
void spc_comm_gathering_end(spc_comm_t *comm, spc_gathering_t *call);

/* ---- fuzzy barriers ---- */

/* SPC_ELIMIT if SPC_FUZZY_MAX are open; SPC_EMISMATCH inside a collective that a timeout has left. Never waits. */
int spc_comm_fuzzy_enter(spc_comm_t *comm, uint64_t *phase);

/* SPC_OK, SPC_EAGAIN, SPC_EMISMATCH; SPC_ELOST if it cannot complete any more. Also makes progress. */
int spc_comm_fuzzy_done(spc_comm_t *comm, uint64_t phase);

/* Waits until it is done. */
int spc_comm_fuzzy_wait(spc_comm_t *comm, uint64_t phase, uint64_t deadline_ns);

#endif
