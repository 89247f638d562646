/* SPDX-License-Identifier: MIT */
/*
 * A channel to another agent that goes through the server: what is written travels in frames of the link to the server,
 * and what has come in such a frame is read at once. It has no descriptor, always has room, and never breaks by
 * itself: the link below it outlives its connections.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "net/spc_agent_peers.h"

struct spc_agent_tunnel {
    spc_channel_t channel; /* first: the two addresses are one */
    spc_agent_peer_t *peer;
    uint32_t number;
    const unsigned char *bytes; /* of a frame that has come, not read yet */
    size_t left_bytes;
};

static int tunnel_read(spc_channel_t *channel, void *buffer, size_t room_bytes, size_t *got_bytes) {
    spc_agent_tunnel_t *tunnel = (spc_agent_tunnel_t *)channel;
    if (tunnel->left_bytes == 0) {
        return SPC_EAGAIN;
    }
    *got_bytes = tunnel->left_bytes < room_bytes ? tunnel->left_bytes : room_bytes;
    memcpy(buffer, tunnel->bytes, *got_bytes);
    tunnel->bytes += *got_bytes;
    tunnel->left_bytes -= *got_bytes;
    return SPC_OK;
}

/* As many of the bytes from `*offset` of the first piece on as one frame holds; moves on to where the next begins. */
static uint32_t fill(const spc_frame_piece_t **next, uint32_t *left, size_t *offset,
                     spc_frame_piece_t taken[]) {
    size_t room = SPC_FRAME_BODY_MAX;
    uint32_t used = 0;
    while (*left > 0 && room > 0) {
        const size_t length = (*next)->length_bytes - *offset;
        const size_t bytes = length < room ? length : room;
        taken[used++] = (spc_frame_piece_t){(const unsigned char *)(*next)->start + *offset, bytes};
        room -= bytes;
        *offset += bytes;
        if (bytes == length) {
            (*next)++;
            (*left)--;
            *offset = 0;
        }
    }
    return used;
}

/* Takes everything: nobody would say when there is room for the rest. */
static int tunnel_write(spc_channel_t *channel, const spc_frame_piece_t *pieces, uint32_t count,
                        size_t *taken_bytes) {
    const spc_agent_tunnel_t *tunnel = (const spc_agent_tunnel_t *)channel;
    const spc_agent_t *agent = tunnel->peer->agent;
    const spc_frame_t frame = {.kind = SPC_FRAME_BYTES,
                               .source = (uint16_t)agent->box,
                               .destination = (uint16_t)tunnel->peer->box,
                               .tag = (int32_t)tunnel->number};
    spc_frame_piece_t taken[SPC_CHANNEL_PIECES_MAX];
    uint32_t left = count < SPC_CHANNEL_PIECES_MAX ? count : SPC_CHANNEL_PIECES_MAX;
    size_t offset = 0;
    *taken_bytes = 0;
    while (left > 0) {
        const uint32_t used = fill(&pieces, &left, &offset, taken);
        const int status = spc_link_queue(agent->link, &frame, taken, used);
        if (status != SPC_OK) {
            errno = EPIPE; /* the link to the server is over, and says why itself */
            return status == SPC_EAGAIN ? status : SPC_ESYSTEM;
        }
        for (uint32_t i = 0; i < used; i++) {
            *taken_bytes += taken[i].length_bytes;
        }
    }
    return SPC_OK;
}

static int tunnel_descriptor(const spc_channel_t *channel) {
    (void)channel;
    return -1;
}

static void tunnel_destroy(spc_channel_t *channel) {
    spc_agent_tunnel_t *tunnel = (spc_agent_tunnel_t *)channel;
    if (tunnel->peer->tunnel == tunnel) {
        tunnel->peer->tunnel = NULL;
    }
    free(tunnel);
}

static const spc_channel_methods_t tunnel_methods = {tunnel_read, tunnel_write, tunnel_descriptor,
                                                     tunnel_destroy};

int spc_agent_tunnel_attach(spc_agent_peer_t *peer, uint32_t number) {
    spc_agent_tunnel_t *tunnel = malloc(sizeof(*tunnel));
    if (tunnel == NULL) {
        return SPC_ENOMEM;
    }
    *tunnel = (spc_agent_tunnel_t){.channel = {&tunnel_methods}, .peer = peer, .number = number};
    spc_link_detach(peer->link);
    peer->tunnel = tunnel;
    const int status = spc_link_attach(peer->link, &tunnel->channel);
    if (status != SPC_OK) {
        tunnel_destroy(&tunnel->channel);
    }
    return status;
}

int spc_agent_tunnel_feed(spc_agent_peer_t *peer, const unsigned char *bytes, size_t length_bytes) {
    int status = SPC_OK;
    if (peer->tunnel != NULL) {
        peer->tunnel->bytes = bytes;
        peer->tunnel->left_bytes = length_bytes;
    }
    /* The link reads a bounded number of times; and it ends the channel if the bytes are wrong. */
    while (status == SPC_OK && peer->tunnel != NULL && peer->tunnel->left_bytes != 0) {
        status = spc_link_read(peer->link);
    }
    return status;
}
