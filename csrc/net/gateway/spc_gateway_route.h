/* SPDX-License-Identifier: MIT */
/*
 * spc_gateway_peers: the ways to the other gateways, beside the link to the server (`direct` of spc_gateway_options_t).
 *
 * Each pair of boxes chooses its way once, before its first frame: a connection of its own between the two gateways,
 * with an spc_link over it, or the server (the relay), which forwards each frame to its box. All that the two boxes
 * send to each other takes the chosen way: messages, arrivals, ends. So it arrives once and in the order in which it
 * was sent. Until the choice, frames are held, in order.
 *
 * Of two gateways, that of the lower box leads. As soon as it knows where the other listens, it asks for a connection.
 * Whoever makes connections either hands one in at both ends, which chooses the direct way, or reports to the leader
 * that none can be made; then the leader tells the other, through the server, and both relay. A follower that is handed
 * a connection knows that its leader has chosen it: the leader sends its number over it, and hands in its own end.
 *
 * A connection that breaks later is made anew by the leader, and the link resumes on it. If it stays away for
 * `link_timeout_ns`, the run ends: the relay has not seen the numbers of that link, and cannot go on for it.
 *
 * A gateway that has ended, with all of its frames acknowledged, says so through the server, whose link delivers that
 * for sure: then nothing is kept for it any more.
 *
 * For the files of the gateway only, with its lock.
 */
#ifndef SPC_GATEWAY_ROUTE_H
#define SPC_GATEWAY_ROUTE_H

#include <poll.h>

#include "net/gateway/spc_gateway_private.h"

int spc_gateway_route_create(spc_gateway_t *gateway);
void spc_gateway_route_destroy(spc_gateway_t *gateway);

/* A SPC_FRAME_ROUTE from the link to the server. */
int spc_gateway_on_route(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body);

/* Clocks, and connections that have broken. True: a connection is wanted (spc_gateway_next_wanted). */
bool spc_gateway_route_look_after(spc_gateway_t *gateway);
uint64_t spc_gateway_route_deadline_ns(const spc_gateway_t *gateway);

/* Connections to wait for, into the array, which has room for all; returns how many. */
uint32_t spc_gateway_route_poll(const spc_gateway_t *gateway, struct pollfd polled[]);
int spc_gateway_route_read(spc_gateway_t *gateway, const struct pollfd polled[], uint32_t count);
/* Something that only the reading thread does is to be done. */
bool spc_gateway_route_need_reader(const spc_gateway_t *gateway);

/* Nothing more will be sent; then: what was, has arrived, or is in the link to the server; then: says that this gateway
 * leaves. */
void spc_gateway_route_finish(spc_gateway_t *gateway);
bool spc_gateway_route_are_flushed(const spc_gateway_t *gateway);
void spc_gateway_route_leave(spc_gateway_t *gateway);

#endif
