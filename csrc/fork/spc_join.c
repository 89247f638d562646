/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_join.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/spc_clock.h"
#include "base/spc_error.h"

#define NAMES 8       /* that are tried where others have taken one */
#define HELLO_S 1     /* for a process that has connected to send its place */
#define AGAIN_MS 5    /* between two tries */
#define HANDED 2      /* descriptors */
#define REFUSE_S 5    /* for the others, which started at the same time, to ask */

#ifdef SO_PEERCRED /* Linux */

static socklen_t write_address(const spc_launcher_place_t *place, int number, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int bytes = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s.%d", place->name, number);
    return (socklen_t)(sizeof address->sun_family + 1 + (size_t)bytes);
}

/* A socket above the descriptors of the streams, which the program may have closed. */
static int make_socket(void) {
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || made > 2) {
        return made;
    }
    int moved = fcntl(made, F_DUPFD_CLOEXEC, 3);
    close(made);
    return moved;
}

/* Is the other end a process of this user? */
static bool is_own(int connection, pid_t *process) {
    struct ucred found = {0};
    socklen_t bytes = sizeof found;
    bool known = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &found, &bytes) == 0;
    *process = found.pid;
    return known && found.uid == geteuid();
}

/* SPC_EAGAIN: nobody listens there. SPC_EINVAL: another user does. */
static int try_connect(const spc_launcher_place_t *place, int number, int *connection) {
    struct sockaddr_un address;
    const socklen_t bytes = write_address(place, number, &address);
    pid_t process;
    *connection = make_socket();
    if (*connection < 0) {
        return SPC_ESYSTEM;
    }
    int status = connect(*connection, (struct sockaddr *)&address, bytes) != 0 ? SPC_EAGAIN
                 : is_own(*connection, &process)                               ? SPC_OK
                                                                               : SPC_EINVAL;
    if (status != SPC_OK) {
        close(*connection);
        *connection = -1;
    }
    return status;
}

int spc_join_listen(const spc_launcher_place_t *place, int *listener) {
    int status = SPC_EINVAL, found;
    *listener = make_socket();
    for (int number = 0; number < NAMES && *listener >= 0; number++) {
        struct sockaddr_un address;
        const socklen_t bytes = write_address(place, number, &address);
        if (bind(*listener, (struct sockaddr *)&address, bytes) == 0 && listen(*listener, SOMAXCONN) == 0) {
            return SPC_OK;
        }
        status = try_connect(place, number, &found);
        if (status == SPC_OK) {
            close(found);
            break;
        }
    }
    if (*listener >= 0) {
        close(*listener);
    }
    *listener = -1;
    errno = EADDRINUSE;
    return status == SPC_OK ? SPC_EAGAIN : SPC_ESYSTEM;
}

/* The first of the names at which a process of this user listens. */
static int connect_once(const spc_launcher_place_t *place, int *connection) {
    int status = SPC_EINVAL;
    for (int number = 0; number < NAMES && status == SPC_EINVAL; number++) {
        status = try_connect(place, number, connection);
    }
    return status;
}

static int wait_for_first(const spc_launcher_place_t *place, int (*check)(void *), void *argument,
                          int *connection) {
    const uint64_t until_ns = spc_clock_now_ns() + SPC_JOIN_S * UINT64_C(1000000000);
    int status;
    while ((status = connect_once(place, connection)) == SPC_EAGAIN || status == SPC_EINVAL) {
        if (spc_clock_now_ns() >= until_ns) {
            return SPC_ETIMEDOUT;
        }
        (void)poll(NULL, 0, AGAIN_MS);
        int checked = check != NULL ? check(argument) : SPC_OK;
        if (checked != SPC_OK) {
            return checked;
        }
    }
    return status;
}

typedef union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(HANDED * sizeof(int))];
} control_t;

/* Reads the answer: a word, and the descriptors; or a status, which is negative, and a sentence. */
static int receive(spc_join_t *joined, int (*check)(void *), void *argument, char *sentence, uint64_t bytes) {
    int32_t process = 0;
    int handed[HANDED] = {-1, -1};
    for (;;) {
        control_t control;
        struct iovec pieces[] = {{.iov_base = &process, .iov_len = sizeof process},
                                 {.iov_base = sentence, .iov_len = bytes - 1}};
        struct msghdr message = {.msg_iov = pieces,
                                 .msg_iovlen = 2,
                                 .msg_control = control.room,
                                 .msg_controllen = sizeof control};
        const ssize_t got = recvmsg(joined->connection, &message, MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR) {
            const int status = check != NULL ? check(argument) : SPC_OK;
            if (status != SPC_OK) {
                return status;
            }
            continue;
        }
        if (got > (ssize_t)sizeof process && process < 0) {
            sentence[(uint64_t)got - sizeof process] = '\0';
            return process;
        }
        const struct cmsghdr *found = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
        if (found == NULL || found->cmsg_type != SCM_RIGHTS || got != (ssize_t)sizeof process
            || found->cmsg_len != CMSG_LEN(sizeof handed)) {
            return SPC_ELOST;
        }
        memcpy(handed, CMSG_DATA(found), sizeof handed);
        joined->segment = handed[0];
        joined->report = handed[1];
        joined->supervisor = process;
        return SPC_OK;
    }
}

static void explain(const spc_launcher_place_t *place, int status, char *message, uint64_t bytes) {
    const char *what = status == SPC_ETIMEDOUT ? "has not called startup() within 30 s"
                                               : "has ended, or does not know this process";
    if (status == SPC_ESYSTEM) {
        (void)snprintf(message, bytes, "node %u cannot join the run (%s)", place->rank, strerror(errno));
    } else {
        (void)snprintf(
            message, bytes,
            "node %u of %u waits in vain: the first process of %s on this machine %s; every process "
            "that %s starts has to call it",
            place->rank, place->size, place->launcher, what, place->launcher);
    }
}

int spc_join_connect(const spc_launcher_place_t *place, const void *self, int (*check)(void *),
                     void *argument, spc_join_t *joined, char *message, uint64_t message_bytes) {
    const spc_join_hello_t hello = {
        .rank = place->rank, .size = place->size, .self = (uint64_t)(uintptr_t)self};
    *joined = (spc_join_t){.connection = -1, .segment = -1, .report = -1};
    message[0] = '\0';
    int status = wait_for_first(place, check, argument, &joined->connection);
    if (status == SPC_OK) {
        const ssize_t sent = send(joined->connection, &hello, sizeof hello, MSG_NOSIGNAL);
        status = sent == (ssize_t)sizeof hello ? receive(joined, check, argument, message, message_bytes)
                                               : SPC_ELOST;
    }
    if (status != SPC_OK) {
        if (message[0] == '\0') {
            explain(place, status, message, message_bytes);
        }
        if (joined->connection >= 0) {
            close(joined->connection);
        }
        joined->connection = -1;
    }
    return status;
}

/* Reads the place of a process that has connected. It sends it at once, or is none of ours. */
static bool read_hello(int connection, spc_join_hello_t *hello) {
    const struct timeval limit = {.tv_sec = HELLO_S};
    pid_t process;
    if (!is_own(connection, &process)) {
        return false;
    }
    (void)setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (recv(connection, hello, sizeof *hello, MSG_WAITALL) != (ssize_t)sizeof *hello) {
        return false;
    }
    hello->process = process;
    return true;
}

int spc_join_accept(int listener, spc_join_hello_t *hello) {
    int connection;
    while ((connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (read_hello(connection, hello)) {
            return connection;
        }
        close(connection);
    }
    return -1;
}

void spc_join_refuse(int listener, uint32_t others, int status, const char *sentence) {
    const uint64_t until_ns = spc_clock_now_ns() + REFUSE_S * UINT64_C(1000000000);
    const int32_t word = status;
    struct iovec pieces[] = {{.iov_base = (void *)&word, .iov_len = sizeof word},
                             {.iov_base = (void *)sentence, .iov_len = strlen(sentence)}};
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    while (others > 0) {
        const uint64_t now_ns = spc_clock_now_ns();
        const uint64_t left_ms = now_ns < until_ns ? (until_ns - now_ns) / 1000000 : 0;
        spc_join_hello_t hello;
        if (poll(&ready, 1, (int)left_ms) <= 0) {
            return;
        }
        const int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (connection >= 0 && read_hello(connection, &hello)) {
            (void)sendmsg(connection, &message, MSG_NOSIGNAL);
            others--;
        }
        if (connection >= 0) {
            close(connection);
        }
    }
}

int spc_join_hand(int connection, const int handed[2], pid_t supervisor) {
    int32_t process = (int32_t)supervisor;
    control_t control = {0};
    struct iovec piece = {.iov_base = &process, .iov_len = sizeof process};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(HANDED * sizeof(int));
    memcpy(CMSG_DATA(rights), handed, HANDED * sizeof(int));
    return sendmsg(connection, &message, MSG_NOSIGNAL) == (ssize_t)sizeof process ? SPC_OK : SPC_ELOST;
}

bool spc_join_has_ended(int connection) {
    char byte;
    const ssize_t got = recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

#else /* no abstract sockets, or nothing that tells whose process the other one is */

int spc_join_listen(const spc_launcher_place_t *place, int *listener) {
    (void)place;
    *listener = -1;
    errno = ENOTSUP;
    return SPC_ESYSTEM;
}

int spc_join_connect(const spc_launcher_place_t *place, const void *self, int (*check)(void *),
                     void *argument, spc_join_t *joined, char *message, uint64_t message_bytes) {
    (void)self, (void)check, (void)argument;
    *joined = (spc_join_t){.connection = -1, .segment = -1, .report = -1};
    (void)snprintf(message, message_bytes, "on this system processes of %s cannot be one run",
                   place->launcher);
    return SPC_ESYSTEM;
}

int spc_join_accept(int listener, spc_join_hello_t *hello) {
    (void)listener, (void)hello;
    return -1;
}

void spc_join_refuse(int listener, uint32_t others, int status, const char *sentence) {
    (void)listener, (void)others, (void)status, (void)sentence;
}

int spc_join_hand(int connection, const int handed[2], pid_t supervisor) {
    (void)connection, (void)handed, (void)supervisor;
    return SPC_ELOST;
}

bool spc_join_has_ended(int connection) {
    (void)connection;
    return false;
}

#endif
