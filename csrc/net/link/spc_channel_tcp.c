/* SPDX-License-Identifier: MIT */
/* Channels over connected sockets. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net/link/spc_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/spc_error.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* SO_NOSIGPIPE instead */
#endif

typedef struct spc_channel_tcp {
    spc_channel_t channel; /* first: both addresses are the same */
    int descriptor;
} spc_channel_tcp_t;

/* Status of a socket call that has moved no byte. */
static int status_of_error(void) {
    if (errno == EAGAIN || errno == EWOULDBLOCK
        || errno == EINTR) { /* interrupted: the waiting caller looks again */
        return SPC_EAGAIN;
    }
    /* Out of buffers for the moment, not broken. */
    return errno == ENOBUFS || errno == ENOMEM ? SPC_EAGAIN : SPC_ESYSTEM;
}

static int tcp_read(spc_channel_t *channel, void *buffer, size_t room_bytes, size_t *got_bytes) {
    const spc_channel_tcp_t *tcp = (const spc_channel_tcp_t *)channel;
    ssize_t got = recv(tcp->descriptor, buffer, room_bytes, 0);
    if (got < 0) {
        return status_of_error();
    }
    if (got == 0) {
        errno = ECONNRESET; /* the other end closed it: never in good order; spc_link knows more */
        return SPC_ESYSTEM;
    }
    *got_bytes = (size_t)got;
    return SPC_OK;
}

static int tcp_write(spc_channel_t *channel, const spc_frame_piece_t *pieces, uint32_t count,
                     size_t *taken_bytes) {
    const spc_channel_tcp_t *tcp = (const spc_channel_tcp_t *)channel;
    struct iovec vectors[SPC_CHANNEL_PIECES_MAX];
    uint32_t used = count < SPC_CHANNEL_PIECES_MAX ? count : SPC_CHANNEL_PIECES_MAX;
    for (uint32_t i = 0; i < used; i++) {
        vectors[i] = (struct iovec){(void *)(uintptr_t)pieces[i].start, pieces[i].length_bytes};
    }
    struct msghdr message = {.msg_iov = vectors};
    message.msg_iovlen = used; /* its type differs between systems */
    ssize_t taken = sendmsg(tcp->descriptor, &message, MSG_NOSIGNAL);
    if (taken < 0) {
        return status_of_error();
    }
    *taken_bytes = (size_t)taken;
    return SPC_OK;
}

static int tcp_descriptor(const spc_channel_t *channel) {
    return ((const spc_channel_tcp_t *)channel)->descriptor;
}

static void tcp_destroy(spc_channel_t *channel) {
    close(((spc_channel_tcp_t *)channel)->descriptor);
    free(channel);
}

static const spc_channel_methods_t tcp_methods = {tcp_read,    tcp_write, tcp_descriptor,
                                                  tcp_destroy, NULL,      NULL};

/* Each of these options improves something, and none is required: a Unix socket has no TCP options. */
static void set_options(int descriptor) {
    const int yes = 1;
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
#ifdef SO_NOSIGPIPE
    (void)setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
#endif
}

int spc_channel_tcp_create(int descriptor, spc_channel_t **channel) {
    int type = 0;
    socklen_t type_bytes = sizeof type;
    if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &type_bytes) != 0 || type != SOCK_STREAM) {
        return SPC_EINVAL;
    }
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0
        || fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
        return SPC_EINVAL;
    }
    spc_channel_tcp_t *tcp = malloc(sizeof *tcp);
    if (tcp == NULL) {
        return SPC_ENOMEM;
    }
    set_options(descriptor);
    *tcp = (spc_channel_tcp_t){{&tcp_methods}, descriptor};
    *channel = &tcp->channel;
    return SPC_OK;
}
