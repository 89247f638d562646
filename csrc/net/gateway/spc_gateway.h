/* SPDX-License-Identifier: MIT */
/*
 * spc_gateway: stands in, in one box, for the nodes of all other boxes.
 *
 * A box's segment is laid out for all nodes of the run, and every structure in it has one writer. For a node in another
 * box that writer is this box's gateway: it reads the mailboxes of absent nodes and forwards the messages it finds
 * there, and it writes messages for the nodes here into the rows, rings and arenas of their senders. So nodes know
 * nothing of boxes. The same holds for arrivals at a phase of the reducer, for receipts, for ends of nodes and for
 * communicators that a node has closed.
 *
 * Order. Messages from one node to another arrive in the order in which they were sent, as in one box. They arrive
 * before the sender's arrival at a phase, its closing of a communicator and its end become known: the gateway looks for
 * these events first, then at the mailboxes, and sends the messages before the events.
 *
 * Credit. For each node elsewhere the gateway may send a limited number of bytes; the gateway there gives credit back
 * when the messages are in the node's row. Without credit it leaves messages where they are: the row fills, and the
 * sender queues and in the end waits, as for any slow receiver. Other destinations go on.
 *
 * Two threads share one lock: the thread of spc_gateway_run sleeps on the gateway's event, as nodes do on theirs; the
 * other thread sleeps at the connection. Each thread handles its own events, so neither hands work to the other.
 * Neither needs an interpreter.
 *
 * With `direct`, traffic between the nodes of two boxes goes from gateway to gateway, if the owner of the connections
 * can make one between them, and through the server otherwise; each pair chooses once, before its first frame.
 *
 * Deadlocks. Gateways look at the status boards of their nodes. When some nodes wait for long, all gateways read their
 * boards twice, so that nothing can be on its way; one gateway, the judge, puts all boards together and searches for a
 * proof (docs/internals/deadlock.md). When a box does not answer, nothing is proven.
 *
 * When the connection breaks, the gateway calls `broken`; the owner hands in a new connection, and the link resumes
 * where it was.
 */
#ifndef SPC_GATEWAY_H
#define SPC_GATEWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "net/link/spc_link.h"
#include "segment/spc_segment.h"

#define SPC_GATEWAY_SENTENCE_BYTES 256
#define SPC_GATEWAY_ADDRESS_BYTES 64

typedef struct spc_gateway spc_gateway_t;

typedef struct spc_gateway_options {
    int segment; /* descriptor; stays the caller's */
    const spc_segment_t *within; /* borrowed instead of it, until the gateway is destroyed; or NULL */
    uint32_t job;
    spc_link_limits_t limits;
    void (*broken)(void *argument); /* from a gateway's thread, without its lock: needs a new connection */
    bool direct; /* the same value in all boxes */
    void (*wanted)(void *argument); /* as `broken`: spc_gateway_next_wanted has something */
    void (*blocked)(void *argument); /* as `broken`, but with its lock: see spc_gateway_blocked; or NULL */
    void *argument;
} spc_gateway_options_t;

/* SPC_EINVAL: the run has one box; SPC_EVERSION, SPC_ESYSTEM: see spc_segment_attach; SPC_ENOMEM. */
int spc_gateway_create(const spc_gateway_options_t *options, spc_gateway_t **gateway);
void spc_gateway_destroy(spc_gateway_t *gateway); /* only once spc_gateway_run is over; NULL is allowed */

/* Hands in the first connection, or one in place of the last; any thread. Takes the channel in any case. */
int spc_gateway_attach(spc_gateway_t *gateway, spc_channel_t *channel);

/* ---- with `direct`; any thread */

/* Sends the other gateways the address at which they may connect: an opaque text here; empty: nowhere. Each gateway
 * calls it once. SPC_EINVAL: not `direct`, or too long. */
int spc_gateway_listens(spc_gateway_t *gateway, const char *address);

/* Returns the gateway to connect to now, and where it listens. SPC_EAGAIN: none. The caller tries while
 * spc_gateway_is_wanted, first sends the number over the connection, and hands the connection in; or reports with
 * spc_gateway_relay_peer that none can be made. */
int spc_gateway_next_wanted(spc_gateway_t *gateway, uint32_t *box, uint32_t *number,
                            char address[SPC_GATEWAY_ADDRESS_BYTES]);

/* Whether that connection is still of use. */
bool spc_gateway_is_wanted(spc_gateway_t *gateway, uint32_t box, uint32_t number);

/* Hands in such a connection, at either end, once its number is known there. A connection that is no longer needed is
 * closed. SPC_EINVAL: no such box. Takes the channel in any case. */
int spc_gateway_attach_peer(spc_gateway_t *gateway, uint32_t box, uint32_t number, spc_channel_t *channel);

/* Reports that no such connection can be made: the two boxes go through the server, for ever. Changes nothing if it was
 * to replace a connection that has broken. */
void spc_gateway_relay_peer(spc_gateway_t *gateway, uint32_t box, uint32_t number);

typedef struct spc_gateway_peer_counts {
    bool is_direct;
    spc_link_counts_t link; /* its counts, or zeros: the link to the server counts relayed frames */
} spc_gateway_peer_counts_t;

int spc_gateway_count_peer(spc_gateway_t *gateway, uint32_t box, spc_gateway_peer_counts_t *counts);

/* ---- running */

/* Runs until all nodes of this box are gone and all other boxes know it: SPC_OK. SPC_ETIMEDOUT: the other end of a link
 * has been silent for too long; SPC_ECLOSED: the server has ended the job, see spc_gateway_sentence; SPC_EINTERRUPTED:
 * spc_gateway_stop; SPC_EINVAL: received frames make no sense; SPC_ENOMEM. */
int spc_gateway_run(spc_gateway_t *gateway);
void spc_gateway_stop(spc_gateway_t *gateway);

/* The reason, after SPC_ECLOSED; it ends with a zero. */
const char *spc_gateway_sentence(const spc_gateway_t *gateway);

/* After spc_gateway_run has failed: the box at fault, as far as is known: this box, or that of the sentence, or
 * SPC_STATUS_SERVER. */
int32_t spc_gateway_culprit(const spc_gateway_t *gateway);

/* After a failure: ends all waits of the nodes here (SPC_EDISCONNECTED). */
void spc_gateway_disconnect(spc_gateway_t *gateway);

typedef enum spc_gateway_proof {
    SPC_GATEWAY_PROVEN_NOTHING,
    SPC_GATEWAY_PROVEN_DEADLOCK,
    SPC_GATEWAY_PROVEN_VAIN, /* waits in vain, as in spc_deadlock.h: given once */
} spc_gateway_proof_t;

/* After `blocked` was called: what is proven, and a segment with the status boards of the nodes of all boxes that it is
 * proven of; it belongs to the gateway and to no box. The boards of other nodes are not published in it. After
 * SPC_GATEWAY_PROVEN_VAIN it stays so until spc_gateway_go_on. */
spc_gateway_proof_t spc_gateway_blocked(spc_gateway_t *gateway, const spc_segment_t **together);
void spc_gateway_go_on(spc_gateway_t *gateway);

void spc_gateway_count(spc_gateway_t *gateway, spc_link_counts_t *counts);

#endif
