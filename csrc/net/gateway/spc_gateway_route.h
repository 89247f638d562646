/* SPDX-License-Identifier: MIT */
/*
 * spc_gateway_peers: routes to the other gateways, beside the link to the server (`direct` of spc_gateway_options_t).
 *
 * Each pair of boxes chooses its route once, before its first frame: a connection of its own between the two gateways,
 * with an spc_link over it, or the server (the relay), which forwards each frame to its box. All frames between the two
 * boxes take the chosen route: messages, arrivals, ends. So they arrive once and in the order in which they were sent.
 * Until the choice, frames are held, in order.
 *
 * The gateway of the lower box leads. As soon as it knows where the other listens, it asks for a connection. The owner
 * of the connections either hands one in at both ends, which chooses the direct route, or reports to the leader that
 * none can be made; then the leader notifies the other through the server, and both relay. A follower that is handed a
 * connection knows that its leader has chosen it: the leader sends its number over it, and hands in its own end.
 *
 * The leader replaces a connection that breaks later, and the link resumes on the new one. If there is none for
 * `limits.timeout_ns`, the run ends: the relay has not seen the numbers of that link, and cannot go on for it. Silence
 * alone never replaces a channel without a descriptor, which is MPI's.
 *
 * A gateway that has ended, with all of its frames acknowledged, announces it through the server, whose link surely
 * delivers that: then the others keep nothing for it any more.
 *
 * Only the files of the gateway use this header, with its lock held.
 */
#ifndef SPC_GATEWAY_ROUTE_H
#define SPC_GATEWAY_ROUTE_H

#include <poll.h>

#include "net/gateway/spc_gateway_private.h"

int spc_gateway_route_create(spc_gateway_t *gateway);
void spc_gateway_route_destroy(spc_gateway_t *gateway);

/* Takes a SPC_FRAME_ROUTE from the link to the server. */
int spc_gateway_on_route(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body);

/* Runs the clocks of these links, and handles connections that have broken. True: a connection is wanted
 * (spc_gateway_next_wanted). */
bool spc_gateway_route_look_after(spc_gateway_t *gateway);
uint64_t spc_gateway_route_deadline_ns(const spc_gateway_t *gateway);

/* Puts the connections to wait for into the array, which has room for all; returns how many. */
uint32_t spc_gateway_route_poll(const spc_gateway_t *gateway, struct pollfd polled[]);
int spc_gateway_route_read(spc_gateway_t *gateway, const struct pollfd polled[], uint32_t count);
/* Links whose channels have no descriptor are read again and again. True: there are such. */
bool spc_gateway_route_polls(const spc_gateway_t *gateway);
int spc_gateway_route_read_polled(spc_gateway_t *gateway);
/* So far, over all links: frames, except those that only show that an end is alive; and reads that got something. */
void spc_gateway_route_count(const spc_gateway_t *gateway, uint64_t *frames, uint64_t *reads);
/* True: there is work that only the reading thread does. */
bool spc_gateway_route_need_reader(const spc_gateway_t *gateway);

/* After _finish nothing more is sent. _are_flushed: all frames have arrived, or are in the link to the server. _leave
 * announces that this gateway leaves. */
void spc_gateway_route_finish(spc_gateway_t *gateway);
bool spc_gateway_route_are_flushed(const spc_gateway_t *gateway);
void spc_gateway_route_leave(spc_gateway_t *gateway);

#endif
