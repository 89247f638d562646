/* SPDX-License-Identifier: MIT */
/*
 * spc_agent_peers: links from one agent to another, beside those to the server (`direct` of spc_agent_options_t).
 *
 * With them each pair of boxes has one stream of frames of its own, an spc_link from end to end, and all that nodes
 * and agents tell each other goes over it: messages, arrivals, ends. So it arrives once and in the order in which it
 * was sent, whatever the way, which is a matter of the link's channel: a connection between the two agents (the direct
 * route), or a tunnel through the server (the relay). Changing the route is attaching another channel; the link
 * resumes on it, as it does after a connection has broken.
 *
 * Of two agents, that of the lower box leads: it makes connections, and numbers the channels. What it says about them
 * goes through the server, so it comes in order: the other follows, and attaches what the last word was about.
 * Connections have numbers of their own, which whoever makes them tells the other end first: which comes sooner, the
 * word or the connection, is not known. A follower that finds its channel broken says so. A leader whose channel
 * breaks goes on through the tunnel at once, and asks for another connection.
 *
 * An agent that has ended, with all of its frames acknowledged, says so through the server, whose link delivers that
 * for sure: then nothing is kept for it any more.
 *
 * For the files of the agent only, with its lock.
 */
#ifndef SPC_AGENT_PEERS_H
#define SPC_AGENT_PEERS_H

#include <poll.h>

#include "net/spc_agent_private.h"

enum { SPC_AGENT_PEERS_BUFFER_BYTES = 1 << 16 };

typedef struct spc_agent_tunnel spc_agent_tunnel_t;

/* What agents say to each other through the server: the tag of a SPC_FRAME_ROUTE. Its total_bytes is the number of the
 * channel, its offset that of the connection. */
typedef enum spc_agent_word {
    SPC_AGENT_LISTENS = 1,     /* to all: body: where connections may be made */
    SPC_AGENT_ASKS_LINK,       /* follower: something waits for a channel */
    SPC_AGENT_ASKS_DIRECT,     /* follower: … and a connection is worth while */
    SPC_AGENT_ALLOWS_DIRECT,   /* follower: spc_agent_route */
    SPC_AGENT_FORBIDS_DIRECT,
    SPC_AGENT_SWITCHES,        /* leader: the channel is that connection */
    SPC_AGENT_BROKEN,          /* follower: it has broken */
    SPC_AGENT_LEAVES,          /* to all: has sent all, and needs nothing */
} spc_agent_word_t;

struct spc_agent_peer {
    spc_agent_t *agent;
    uint32_t box;
    spc_link_t *link;           /* NULL: nothing was said to it yet, nor by it */
    spc_agent_tunnel_t *tunnel; /* that the link goes through; or NULL */
    uint32_t number;            /* of the channel */
    bool is_direct;             /* that channel is a connection */
    bool wants_direct;          /* nodes of these boxes speak with each other */
    bool may_be_direct;         /* spc_agent_route */
    bool is_wanted; /* leader: a connection is to be made, and whoever makes them has not been told which; */
    bool is_awaited; /* has been told */
    bool has_complained; /* follower: SPC_AGENT_BROKEN, of this channel */
    bool is_over; /* SPC_AGENT_LEAVES */
    uint32_t connection; /* the last that was asked for, or, of the follower, switched to */
    int pending; /* follower: one that was handed in, and the leader has not switched to; or -1 */
    uint32_t pending_connection;
    uint64_t changes; /* of the route */
    char address[SPC_AGENT_ADDRESS_BYTES]; /* where it listens; empty: not known */
};

int spc_agent_peers_create(spc_agent_t *agent);
void spc_agent_peers_destroy(spc_agent_t *agent);

/* In place of the link to the server: one frame to each box that it concerns. */
int spc_agent_peers_queue(spc_agent_t *agent, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                          uint32_t count);
void spc_agent_peers_write(spc_agent_t *agent);

/* Clocks, and channels that have broken. True: a connection is wanted (spc_agent_next_wanted). */
bool spc_agent_peers_look_after(spc_agent_t *agent);
uint64_t spc_agent_peers_deadline_ns(const spc_agent_t *agent);

/* Connections to wait for, into the array, which has room for all; returns how many. */
uint32_t spc_agent_peers_poll(const spc_agent_t *agent, struct pollfd polled[]);
int spc_agent_peers_read(spc_agent_t *agent, const struct pollfd polled[], uint32_t count);
/* Something that only the reading thread does is to be done. */
bool spc_agent_peers_need_reader(const spc_agent_t *agent);

/* Nothing more will be sent; then: what was, has arrived; then: says that this agent leaves. */
void spc_agent_peers_finish(spc_agent_t *agent);
bool spc_agent_peers_are_flushed(const spc_agent_t *agent);
void spc_agent_peers_leave(spc_agent_t *agent);

/* ---- spc_agent_routes.c */

bool spc_agent_peer_leads(const spc_agent_peer_t *peer);
/* There is a link from now on. `is_work`: nodes have something for each other, and a connection is worth while. */
int spc_agent_peer_open(spc_agent_peer_t *peer, bool is_work);
/* Its link has no channel. */
bool spc_agent_peer_is_down(const spc_agent_peer_t *peer);
void spc_agent_peer_look_after(spc_agent_peer_t *peer, uint64_t now_ns);

/* Frames of these kinds from the link to the server. */
int spc_agent_take_bytes(spc_agent_t *agent, const spc_frame_t *frame, const unsigned char *body);
int spc_agent_take_route(spc_agent_t *agent, const spc_frame_t *frame, const unsigned char *body);

/* ---- spc_agent_tunnel.c */

/* The link goes through the server from now on. */
int spc_agent_tunnel_attach(spc_agent_peer_t *peer, uint32_t number);
/* These have come through it. What a frame among them led to, if not SPC_OK. */
int spc_agent_tunnel_feed(spc_agent_peer_t *peer, const unsigned char *bytes, size_t length_bytes);

#endif
