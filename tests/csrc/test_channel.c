/* SPDX-License-Identifier: MIT */
/* Channels over sockets. */
#include "net/link/spc_channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/spc_error.h"
#include "check.h"

static void make_pair(spc_channel_t *ends[2]) {
    int descriptors[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, descriptors));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(spc_channel_tcp_create(descriptors[i], &ends[i]));
        CHECK_EQ(spc_channel_descriptor(ends[i]), descriptors[i]);
    }
}

TEST(bytes_go_both_ways) {
    spc_channel_t *ends[2];
    char buffer[64];
    size_t bytes;
    make_pair(ends);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(spc_channel_read(ends[i], buffer, sizeof buffer, &bytes), SPC_EAGAIN);
        const spc_frame_piece_t pieces[3] = {{"one ", 4}, {NULL, 0}, {"two", 3}};
        CHECK_OK(spc_channel_write(ends[i], pieces, 3, &bytes));
        CHECK_EQ_U(bytes, 7);
        CHECK_OK(spc_channel_read(ends[1 - i], buffer, sizeof buffer, &bytes));
        CHECK_EQ_U(bytes, 7);
        CHECK_MEM(buffer, "one two", 7);
    }
    spc_channel_destroy(ends[0]);
    spc_channel_destroy(ends[1]);
    spc_channel_destroy(NULL);
}

/* More than a socket takes: neither end waits, and nothing is lost. */
TEST(a_full_socket) {
    enum { PIECES = 100, BYTES = 10000 };
    spc_channel_t *ends[2];
    unsigned char *data = malloc(BYTES), *buffer = malloc(BYTES);
    spc_frame_piece_t pieces[PIECES];
    size_t taken, got, written = 0, seen = 0;
    make_pair(ends);
    for (int i = 0; i < BYTES; i++) {
        data[i] = (unsigned char)(i % 251);
    }
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = (spc_frame_piece_t){data, BYTES};
    }
    CHECK_OK(spc_channel_write(ends[0], pieces, PIECES, &taken));
    CHECK(taken <= SPC_CHANNEL_PIECES_MAX * BYTES);
    written += taken;
    int status;
    for (;;) { /* go on where the last one stopped, until there is no room */
        pieces[0] = (spc_frame_piece_t){data + written % BYTES, BYTES - written % BYTES};
        status = spc_channel_write(ends[0], pieces, 1, &taken);
        if (status != SPC_OK) {
            break;
        }
        written += taken;
        CHECK(written < (size_t)1 << 30);
    }
    CHECK_EQ(status, SPC_EAGAIN);
    while (spc_channel_read(ends[1], buffer, BYTES, &got) == SPC_OK) {
        for (size_t i = 0; i < got; i++, seen++) {
            CHECK_EQ(buffer[i], seen % BYTES % 251);
        }
    }
    CHECK_EQ_U(seen, written);
    spc_channel_destroy(ends[0]);
    spc_channel_destroy(ends[1]);
    free(data);
    free(buffer);
}

/* Broken at both ends, and no signal: this process would be gone. */
TEST(a_closed_socket_is_broken) {
    spc_channel_t *ends[2];
    char buffer[8];
    size_t bytes;
    const spc_frame_piece_t piece = {"x", 1};
    make_pair(ends);
    CHECK_OK(spc_channel_write(ends[0], &piece, 1, &bytes));
    spc_channel_destroy(ends[0]);
    CHECK_OK(
        spc_channel_read(ends[1], buffer, sizeof buffer, &bytes)); /* what was sent before is still there */
    CHECK_EQ(spc_channel_read(ends[1], buffer, sizeof buffer, &bytes), SPC_ESYSTEM);
    CHECK_EQ(errno, ECONNRESET);
    CHECK_EQ(spc_channel_write(ends[1], &piece, 1, &bytes), SPC_ESYSTEM);
    CHECK_EQ(errno, EPIPE);
    spc_channel_destroy(ends[1]);
}

static int connect_to(int listener) {
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    CHECK_OK(getsockname(listener, (struct sockaddr *)&address, &length));
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(descriptor >= 0);
    CHECK_OK(connect(descriptor, (struct sockaddr *)&address, length));
    return descriptor;
}

TEST(options_of_tcp) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(listener >= 0);
    CHECK_OK(bind(listener, (struct sockaddr *)&address, sizeof address));
    CHECK_OK(listen(listener, 1));
    int descriptor = connect_to(listener), value = 0;
    socklen_t length = sizeof value;
    spc_channel_t *channel;
    CHECK_OK(spc_channel_tcp_create(descriptor, &channel));
    CHECK_OK(getsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &value, &length));
    CHECK_NE(value, 0);
    CHECK((fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0);
    CHECK((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
    spc_channel_destroy(channel);
    CHECK_EQ(fcntl(descriptor, F_GETFD), -1); /* closed */
    close(listener);
}

TEST(what_is_no_stream_socket) {
    int pipes[2], datagrams[2];
    spc_channel_t *channel;
    CHECK_OK(pipe(pipes));
    CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams));
    CHECK_EQ(spc_channel_tcp_create(pipes[0], &channel), SPC_EINVAL);
    CHECK_EQ(spc_channel_tcp_create(datagrams[0], &channel), SPC_EINVAL);
    CHECK_EQ(spc_channel_tcp_create(-1, &channel), SPC_EINVAL);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(close(pipes[i])); /* still the caller's */
        CHECK_OK(close(datagrams[i]));
    }
}

TEST_MAIN()
