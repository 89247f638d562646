/* SPDX-License-Identifier: MIT */
/*
 * The least that a message of SIZE bytes can cost on this machine: two processes, and no library.
 *
 *   floor pingpong|memcpy|loopback SIZE SECONDS BATCHES
 *
 * prints seconds per message, a line for each batch. "pingpong": half a round trip through shared memory; a payload of
 * up to 56 bytes is in the cache line of its number, a larger one is copied in by the sender and out by the receiver.
 * "memcpy": one copy, by one process. "loopback": half a round trip over TCP, both ends asleep in a read.
 *
 * Compiled by `spcomm bench`; no part of spcomm.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batches.h"

enum { LINE = 64, INLINE = 56, POLLS = 10000 };

/* One direction: the number of the last message, and its bytes, if they fit. The other side's acquire load of `number`
 * pairs with the release store of it. */
struct line {
    _Alignas(LINE) atomic_ulong number;
    char payload[INLINE];
};

struct shared {
    struct line line[2];
    atomic_bool over;
    _Alignas(LINE) char data[]; /* of either direction, SIZE bytes each */
};

static struct shared *shared;
static char *buffer;
static size_t size, apart;
static unsigned long number;
static int end = -1;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* ---- shared memory */

static char *place(int side) {
    return size <= INLINE ? shared->line[side].payload : shared->data + (size_t)side * apart;
}

static void put(int side) {
    memcpy(place(side), buffer, size);
    atomic_store_explicit(&shared->line[side].number, number, memory_order_release);
}

/* False: there is nothing to come any more. */
static bool get(int side) {
    for (long polls = 0; atomic_load_explicit(&shared->line[side].number, memory_order_acquire) != number;
         polls++) {
        if (polls > POLLS) {
            sched_yield();
            if (atomic_load_explicit(&shared->over, memory_order_relaxed)) {
                return false;
            }
        }
    }
    memcpy(buffer, place(side), size);
    return true;
}

static void pingpong(void *what, long count) {
    (void)what;
    for (long i = 0; i < count; i++) {
        number++;
        put(0);
        get(1);
    }
}

static void answer(void) {
    for (number = 1; get(0); number++) {
        put(1);
    }
}

static void copy(void *what, long count) {
    (void)what;
    for (long i = 0; i < count; i++) {
        memcpy(shared->data, buffer, size);
        atomic_signal_fence(memory_order_seq_cst); /* each copy is made */
    }
}

/* ---- TCP */

static bool write_all(void) {
    for (size_t done = 0; done < size;) {
        ssize_t wrote = send(end, buffer + done, size - done, MSG_NOSIGNAL);
        if (wrote <= 0) {
            return false;
        }
        done += (size_t)wrote;
    }
    return true;
}

static bool read_all(void) {
    for (size_t done = 0; done < size;) {
        ssize_t got = recv(end, buffer + done, size - done, 0);
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

static void loopback(void *what, long count) {
    (void)what;
    for (long i = 0; i < count; i++) {
        if (!write_all() || !read_all()) {
            fail("loopback");
        }
    }
}

static void connect_ends(int *here, int *there) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int yes = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    *there = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || *there < 0 || bind(listener, (struct sockaddr *)&address, length) != 0
        || listen(listener, 1) != 0 || getsockname(listener, (struct sockaddr *)&address, &length) != 0
        || connect(*there, (struct sockaddr *)&address, length) != 0
        || (*here = accept(listener, NULL, NULL)) < 0) {
        fail("loopback");
    }
    setsockopt(*here, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(*there, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    close(listener);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "floor pingpong|memcpy|loopback SIZE SECONDS BATCHES\n");
        return 2;
    }
    bool over_tcp = strcmp(argv[1], "loopback") == 0, alone = strcmp(argv[1], "memcpy") == 0;
    int there = -1;
    size = (size_t)atol(argv[2]);
    apart = (size + LINE - 1) / LINE * LINE;
    shared =
        mmap(NULL, sizeof *shared + 2 * apart, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    buffer = calloc(1, size);
    if (shared == MAP_FAILED || buffer == NULL) {
        fail("shared memory");
    }
    if (over_tcp) {
        connect_ends(&end, &there);
    }
    pid_t child = alone ? 0 : fork();
    if (child < 0) {
        fail("fork");
    }
    if (child == 0 && !alone) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (over_tcp) {
            close(end);
            end = there;
            while (read_all() && write_all()) {
            }
        } else {
            answer();
        }
        _exit(0);
    }
    if (over_tcp) {
        close(there);
    }
    measure(over_tcp ? loopback : alone ? copy : pingpong, NULL, alone ? 1 : 2, atof(argv[3]), atoi(argv[4]));
    atomic_store_explicit(&shared->over, true, memory_order_relaxed);
    if (over_tcp) {
        close(end);
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
