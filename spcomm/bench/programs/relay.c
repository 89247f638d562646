/* SPDX-License-Identifier: MIT */
/*
 * What a relay costs that does nothing else: two ends and a process between them, over TCP on this machine.
 *
 *   relay sleep|spin pingpong|stream SIZE SECONDS BATCHES
 *
 * prints seconds per message, a line for each batch: half a round trip of SIZE bytes, or SIZE bytes one way,
 * STREAM of them before the receiver says one byte. "sleep": everybody waits in a read. "spin": nobody does; where
 * there are fewer than three cores, who finds nothing lets others go on.
 *
 * Compiled by `spcomm bench`; no part of spcomm.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batches.h"

enum { STREAM = 64, CHUNK = 1 << 16, CORES = 3 };

static bool spins, yields;

static void fail(const char *what) {
    perror(what);
    _exit(1);
}

/* ---- sockets */

static void set_up(int end) {
    const int yes = 1;
    if (setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0
        || (spins && fcntl(end, F_SETFL, O_NONBLOCK) != 0)) {
        fail("socket");
    }
}

static int listen_here(struct sockaddr_in *address) {
    socklen_t length = sizeof *address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (listener < 0 || bind(listener, (struct sockaddr *)address, sizeof *address) != 0
        || listen(listener, 2) != 0 || getsockname(listener, (struct sockaddr *)address, &length) != 0) {
        fail("listen");
    }
    return listener;
}

static int connect_to(const struct sockaddr_in *address) {
    int end = socket(AF_INET, SOCK_STREAM, 0);
    if (end < 0 || connect(end, (const struct sockaddr *)address, sizeof *address) != 0) {
        fail("connect");
    }
    set_up(end);
    return end;
}

/* Nothing came, or nothing went. True: try again. */
static bool again(void) {
    if (errno != EAGAIN && errno != EINTR) {
        return false;
    }
    if (yields) {
        sched_yield();
    }
    return true;
}

/* 0 bytes: the other end is gone. */
static size_t read_some(int end, char *bytes, size_t room) {
    ssize_t got;
    do {
        got = read(end, bytes, room);
    } while (got < 0 && again());
    return got > 0 ? (size_t)got : 0;
}

static bool read_all(int end, char *bytes, size_t length) {
    while (length > 0) {
        size_t got = read_some(end, bytes, length);
        if (got == 0) {
            return false;
        }
        bytes += got;
        length -= got;
    }
    return true;
}

static bool write_all(int end, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t gone = send(end, bytes, length, MSG_NOSIGNAL);
        if (gone < 0 && !again()) {
            return false;
        }
        bytes += gone > 0 ? gone : 0;
        length -= gone > 0 ? (size_t)gone : 0;
    }
    return true;
}

/* ---- the relay */

static void *carry(void *argument) {
    const int *ends = argument;
    static _Thread_local char bytes[CHUNK];
    for (;;) {
        size_t got = read_some(ends[0], bytes, sizeof bytes);
        if (got == 0 || !write_all(ends[1], bytes, got)) {
            _exit(0);
        }
    }
}

static void carry_spinning(const int ends[2]) {
    static char bytes[CHUNK];
    for (int from = 0;; from = !from) {
        ssize_t got = read(ends[from], bytes, sizeof bytes);
        if (got == 0 || (got < 0 && !again()) || (got > 0 && !write_all(ends[!from], bytes, (size_t)got))) {
            _exit(0);
        }
    }
}

static void relay(int listener) {
    int ends[2] = {accept(listener, NULL, NULL), accept(listener, NULL, NULL)};
    if (ends[0] < 0 || ends[1] < 0) {
        fail("accept");
    }
    set_up(ends[0]);
    set_up(ends[1]);
    if (spins) {
        carry_spinning(ends);
    }
    int back[2] = {ends[1], ends[0]};
    pthread_t thread;
    if (pthread_create(&thread, NULL, carry, back) != 0) {
        fail("thread");
    }
    carry(ends);
}

/* ---- the ends */

static void answer(int end, bool streams, char *bytes, size_t size) {
    for (int number = 1; read_all(end, bytes, size); number = number % STREAM + 1) {
        if (streams ? number == STREAM && !write_all(end, bytes, 1) : !write_all(end, bytes, size)) {
            break;
        }
    }
    _exit(0);
}

struct exchange {
    int end;
    bool streams;
    char *bytes;
    size_t size;
};

static void batch(void *argument, long count) {
    const struct exchange *what = argument;
    bool works = true;
    for (long number = 0; works && number < count; number++) {
        what->bytes[0] = (char)number;
        for (int i = 0; works && i < (what->streams ? STREAM : 1); i++) {
            works = write_all(what->end, what->bytes, what->size);
        }
        works = works && read_all(what->end, what->bytes, what->streams ? 1 : what->size);
    }
    if (!works) {
        fail("the other end");
    }
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "relay sleep|spin pingpong|stream SIZE SECONDS BATCHES\n");
        return 2;
    }
    spins = strcmp(argv[1], "spin") == 0;
    yields = spins && sysconf(_SC_NPROCESSORS_ONLN) < CORES;
    bool streams = strcmp(argv[2], "stream") == 0;
    size_t size = (size_t)atol(argv[3]);
    char *bytes = calloc(1, size);
    struct sockaddr_in address;
    int listener = listen_here(&address);
    if (bytes == NULL || size == 0) {
        fail("size");
    }
    if (fork() == 0) {
        relay(listener);
    }
    close(listener);
    int end = connect_to(&address);
    if (fork() == 0) {
        close(end);
        answer(connect_to(&address), streams, bytes, size);
    }
    struct exchange what = {end, streams, bytes, size};
    measure(batch, &what, streams ? STREAM : 2, atof(argv[4]), atoi(argv[5]));
    shutdown(end, SHUT_RDWR);
    while (wait(NULL) > 0) {
    }
    return 0;
}
