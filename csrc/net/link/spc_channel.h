/* SPDX-License-Identifier: MIT */
/*
 * spc_channel: carries bytes to another end and back, in order, until it breaks; never waits.
 *
 * One interface: spc_channel_tcp adopts a connected socket; a TLS channel (spcomm/_core/net.pyx) encrypts the bytes
 * that go over one; tests have a pair of ends in one process, with faults from a seed and a clock of their own. A
 * broken channel stays broken: bytes on their way are lost, and spc_link resumes on a new one.
 *
 * One thread at a time for each channel.
 */
#ifndef SPC_CHANNEL_H
#define SPC_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/wire/spc_frame.h"

#define SPC_CHANNEL_PIECES_MAX 64 /* of one write; more are left for the next */

typedef struct spc_channel spc_channel_t;

/* Functions of an implementation; callers use the functions below. */
typedef struct spc_channel_methods {
    int (*read)(spc_channel_t *channel, void *buffer, size_t room_bytes, size_t *got_bytes);
    int (*write)(spc_channel_t *channel, const spc_frame_piece_t *pieces, uint32_t count,
                 size_t *taken_bytes);
    int (*descriptor)(const spc_channel_t *channel);
    void (*destroy)(spc_channel_t *channel);
    /* Truth values; NULL: never. */
    int (*holds)(const spc_channel_t *channel);
    int (*has_unread)(const spc_channel_t *channel);
} spc_channel_methods_t;

struct spc_channel {
    const spc_channel_methods_t *methods;
};

/* Reads. SPC_OK: at least one byte; SPC_EAGAIN: nothing there now; SPC_ESYSTEM: broken, errno is the cause (the other
 * end has closed it: ECONNRESET). Unread bytes are in the descriptor, unless spc_channel_has_unread reports
 * otherwise. */
static inline int spc_channel_read(spc_channel_t *channel, void *buffer, size_t room_bytes,
                                   size_t *got_bytes) {
    return channel->methods->read(channel, buffer, room_bytes, got_bytes);
}

/* Writes as much as there is room for now, perhaps part of a piece: SPC_OK: at least one byte; SPC_EAGAIN: no room now;
 * SPC_ESYSTEM: broken. Raises no signal. With no pieces: writes only bytes that it holds. */
static inline int spc_channel_write(spc_channel_t *channel, const spc_frame_piece_t *pieces, uint32_t count,
                                    size_t *taken_bytes) {
    return channel->methods->write(channel, pieces, count, taken_bytes);
}

/* Whether it holds bytes that the system has not taken yet: it wants to write. */
static inline bool spc_channel_holds(const spc_channel_t *channel) {
    return channel->methods->holds != NULL && channel->methods->holds(channel) != 0;
}

/* Whether it has bytes that its descriptor does not signal: read again. */
static inline bool spc_channel_has_unread(const spc_channel_t *channel) {
    return channel->methods->has_unread != NULL && channel->methods->has_unread(channel) != 0;
}

/* The descriptor to poll; -1: there is none. */
static inline int spc_channel_descriptor(const spc_channel_t *channel) {
    return channel->methods->descriptor(channel);
}

/* Closes it and frees it; NULL is allowed. */
static inline void spc_channel_destroy(spc_channel_t *channel) {
    if (channel != NULL) {
        channel->methods->destroy(channel);
    }
}

/* Takes over a connected stream socket (TCP, or one of a socketpair), which becomes non-blocking and is closed with
 * the channel. SPC_EINVAL: not a socket; SPC_ENOMEM. If it fails the descriptor is still the caller's. */
int spc_channel_tcp_create(int descriptor, spc_channel_t **channel);

#endif
