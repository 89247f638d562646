/* SPDX-License-Identifier: MIT */
/*
 * spc_gateway: stands in, in one box, for the nodes of all other boxes.
 *
 * A box's segment is laid out for all nodes of the run, and every structure in it has one writer. For a node that is in
 * another box that writer is this box's gateway: it reads the mailboxes of absent nodes and sends on what it finds
 * there, and it writes what comes for the nodes here into the rows, rings and arenas of its sender. So nodes know
 * nothing of boxes. The same holds for arrivals at a phase of the reducer, for receipts, for ends of nodes and for
 * communicators that a node has closed.
 *
 * Order. What a node sends to another arrives in that order, as in one box, and before what it tells by arriving at a
 * phase, by closing a communicator or by its end: the gateway looks for these first, then at the mailboxes, and sends
 * the messages before the news.
 *
 * Credit. For each node elsewhere the gateway may send so many bytes; the gateway there gives credit back when the
 * messages are in the node's row. Without credit it leaves messages where they are: the row fills, and the sender
 * queues and in the end waits, as for any slow receiver. Other destinations go on.
 *
 * Two threads share one lock: that of spc_gateway_run sleeps on the gateway's event, as nodes do on theirs; another one
 * sleeps where the connection is. Each does what its news asks for itself, so nothing is handed from one to the other.
 * Neither needs an interpreter.
 *
 * With `direct`, what nodes of two boxes say goes from gateway to gateway, if whoever makes connections can make one
 * between them, and through the server otherwise; each pair chooses once, before its first frame (spc_gateway_route.h).
 *
 * Deadlocks. Gateways look at the status boards of their nodes. Where some wait for long all gateways read theirs,
 * twice, so that nothing can be on its way; one of them puts all together and proves (docs/internals/deadlock.md).
 * Where a box does not answer nothing is proven.
 *
 * When the connection breaks `broken` is called; whoever makes connections hands in a new one, and the link goes on
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
    uint64_t heartbeat_ns, suspect_ns, broken_ns, link_timeout_ns; /* as in spc_link.h */
    void (*broken)(void *argument); /* by a gateway's thread, without its lock: a new connection is needed */
    bool direct; /* the same in all boxes */
    void (*wanted)(void *argument); /* the same: spc_gateway_next_wanted has something */
    void (*blocked)(void *argument); /* the same, with its lock: see spc_gateway_blocked; or NULL */
    void *argument;
} spc_gateway_options_t;

/* SPC_EINVAL: the run has one box; SPC_EVERSION, SPC_ESYSTEM: see spc_segment_attach; SPC_ENOMEM. */
int spc_gateway_create(const spc_gateway_options_t *options, spc_gateway_t **gateway);
void spc_gateway_destroy(spc_gateway_t *gateway); /* spc_gateway_run is over; NULL is allowed */

/* The first connection, or one in place of the last; any thread. Takes the channel in any case. */
int spc_gateway_attach(spc_gateway_t *gateway, spc_channel_t *channel);

/* ---- with `direct`; any thread */

/* Tells the other gateways where they may connect: a text without meaning here; empty: nowhere. Each gateway does so
 * once. SPC_EINVAL: not `direct`, or too long. */
int spc_gateway_listens(spc_gateway_t *gateway, const char *address);

/* To which gateway a connection is to be made now, and where it listens. SPC_EAGAIN: to none. Whoever asks tries while
 * spc_gateway_is_wanted, sends the number over the connection, first of all, and hands it in; or reports that none can
 * be made, with spc_gateway_relay_peer. */
int spc_gateway_next_wanted(spc_gateway_t *gateway, uint32_t *box, uint32_t *number,
                            char address[SPC_GATEWAY_ADDRESS_BYTES]);

/* Whether that one is still of use. */
bool spc_gateway_is_wanted(spc_gateway_t *gateway, uint32_t box, uint32_t number);

/* Such a connection, at either end, once its number is known there. One that is not needed any more is closed.
 * SPC_EINVAL: no such box. Takes the channel in any case. */
int spc_gateway_attach_peer(spc_gateway_t *gateway, uint32_t box, uint32_t number, spc_channel_t *channel);

/* That one cannot be made: the two boxes go through the server, for ever. Of one in place of another that has broken:
 * changes nothing. */
void spc_gateway_relay_peer(spc_gateway_t *gateway, uint32_t box, uint32_t number);

typedef struct spc_gateway_peer_counts {
    bool is_direct;
    spc_link_counts_t link; /* of the connection; else zeros: the link to the server counts what it relays */
} spc_gateway_peer_counts_t;

int spc_gateway_count_peer(spc_gateway_t *gateway, uint32_t box, spc_gateway_peer_counts_t *counts);

/* ---- running */

/* Until all nodes of this box are gone and everybody has been told: SPC_OK. SPC_ETIMEDOUT: the other end of a link
 * has been silent for too long; SPC_ECLOSED: the server has ended the job, see spc_gateway_sentence; SPC_EINTERRUPTED:
 * spc_gateway_stop; SPC_EINVAL: what came makes no sense; SPC_ENOMEM. */
int spc_gateway_run(spc_gateway_t *gateway);
void spc_gateway_stop(spc_gateway_t *gateway);

/* After SPC_ECLOSED: why; it ends with a zero. */
const char *spc_gateway_sentence(const spc_gateway_t *gateway);

/* After spc_gateway_run has failed: the box whose fault it is, as far as is known; this one, or that of the sentence.
 */
uint32_t spc_gateway_culprit(const spc_gateway_t *gateway);

/* After that: the nodes here wait for nothing more (SPC_EDISCONNECTED). */
void spc_gateway_disconnect(spc_gateway_t *gateway);

/* Once `blocked` was called: in this segment, which is the gateway's and no box's, are the status boards of the nodes
 * of all boxes that are proven to wait for ever; those of the others are not published. NULL: nothing is proven. */
const spc_segment_t *spc_gateway_blocked(spc_gateway_t *gateway);

void spc_gateway_count(spc_gateway_t *gateway, spc_link_counts_t *counts);

#endif
