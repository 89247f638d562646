/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_meet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spc_error.h"
#include "base/spc_process.h"

#define COMMAND_WORDS 16
#define NUMBERS 4

static const char *const default_command[] = {"spcomm", "meet", NULL};

/* The words of the command line, and the texts of the numbers in it. */
typedef struct words {
    const char *word[COMMAND_WORDS + NUMBERS + 3];
    char number[NUMBERS][16];
} words_t;

static int explain(char *message, uint64_t message_bytes, int status, const char *text, const char *detail) {
    (void)snprintf(message, message_bytes, "%s%s", text, detail);
    return status;
}

static void write_words(words_t *words, const spc_meet_options_t *options, int descriptor) {
    const char *const *command = options->command != NULL ? options->command : default_command;
    const int32_t numbers[NUMBERS] = {descriptor, options->local_nodes, options->total_nodes,
                                      options->group_id};
    uint32_t count = 0;
    while (count < COMMAND_WORDS && command[count] != NULL) {
        words->word[count] = command[count];
        count++;
    }
    for (int i = 0; i < NUMBERS; i++) {
        snprintf(words->number[i], sizeof words->number[i], "%d", numbers[i]);
        words->word[count++] = words->number[i];
    }
    words->word[count++] = options->infile;
    words->word[count++] = options->program != NULL ? options->program : "a program";
    words->word[count] = NULL;
}

/* Runs in the forked process. It reports its errors as the box process would. */
static _Noreturn void become_box(const words_t *words, int descriptor) {
    static const char missing[] = "the box process cannot be started: there is no command spcomm in PATH; it "
                                  "comes with the Python package "
                                  "(python -m pip install spcomm), and its folder has to be in PATH";
    spc_process_start_clean();
    if (fcntl(descriptor, F_SETFD, 0) == 0) {
        (void)execvp(words->word[0], (char *const *)words->word);
    }
    const char *text = errno == ENOENT ? missing : "the box process cannot be started";
    const spc_meet_header_t header = {SPC_ESYSTEM, (uint32_t)strlen(text)};
    if (write(descriptor, &header, sizeof header) < 0 || write(descriptor, text, header.bytes) < 0) {
        _exit(126);
    }
    _exit(127);
}

static int start(const spc_meet_options_t *options, spc_meet_t *meet) {
    int ends[2];
    words_t words;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        return SPC_ESYSTEM;
    }
    for (int i = 0; i < 2; i++) { /* 0 to 2 are for the streams, even if the program has closed them */
        int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
        int error = errno;
        close(ends[i]);
        ends[i] = moved;
        errno = error;
    }
    write_words(&words, options, ends[1]);
    meet->process = ends[0] >= 0 && ends[1] >= 0 ? fork() : -1;
    if (meet->process == 0) {
        become_box(&words, ends[1]);
    }
    int error = errno;
    close(ends[1]);
    meet->socket = ends[0];
    errno = error;
    return meet->process > 0 ? SPC_OK : SPC_ESYSTEM;
}

/* Reads whole pieces; the descriptor comes with the first one. SPC_EAGAIN: the other end is gone. */
static int receive(const spc_meet_options_t *options, spc_meet_t *meet, void *to, uint64_t bytes) {
    unsigned char *at = to;
    while (bytes > 0) {
        union {
            struct cmsghdr header;
            char room[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec piece = {.iov_base = at, .iov_len = bytes};
        struct msghdr message = {.msg_iov = &piece,
                                 .msg_iovlen = 1,
                                 .msg_control = control.room,
                                 .msg_controllen = sizeof control};
        ssize_t got = recvmsg(meet->socket, &message, 0);
        if (got < 0 && errno == EINTR) {
            int status = options->check != NULL ? options->check(options->check_argument) : SPC_OK;
            if (status != SPC_OK) {
                return status;
            }
            continue;
        }
        if (got <= 0) {
            return SPC_EAGAIN;
        }
        struct cmsghdr *found = CMSG_FIRSTHDR(&message);
        if (found != NULL && found->cmsg_type == SCM_RIGHTS && meet->descriptor < 0) {
            memcpy(&meet->descriptor, CMSG_DATA(found), sizeof meet->descriptor);
            (void)fcntl(meet->descriptor, F_SETFD, FD_CLOEXEC);
        }
        at += got;
        bytes -= (uint64_t)got;
    }
    return SPC_OK;
}

static int hear(const spc_meet_options_t *options, spc_meet_t *meet, char *message, uint64_t message_bytes) {
    spc_meet_header_t header;
    int status = receive(options, meet, &header, sizeof header);
    if (status == SPC_OK && header.code != 0) {
        uint64_t bytes = header.bytes < message_bytes - 1 ? header.bytes : message_bytes - 1;
        status = receive(options, meet, message, bytes);
        message[status == SPC_OK ? bytes : 0] = '\0';
        status = status == SPC_OK ? header.code : status;
    } else if (status == SPC_OK
               && (meet->descriptor < 0 || header.bytes != meet->local_nodes * sizeof *meet->ranks)) {
        status = SPC_EAGAIN;
    }
    status = status == SPC_OK ? receive(options, meet, meet->ranks, header.bytes) : status;
    return status == SPC_EAGAIN
               ? explain(message, message_bytes, SPC_ESYSTEM, "the box process has ended without a word", "")
               : status;
}

int spc_meet(const spc_meet_options_t *options, spc_meet_t *meet, char *message, uint64_t message_bytes) {
    *meet = (spc_meet_t){.descriptor = -1,
                         .socket = -1,
                         .process = -1,
                         .local_nodes = (uint32_t)options->local_nodes,
                         .total_nodes = (uint32_t)options->total_nodes};
    message[0] = '\0';
    meet->ranks = calloc(meet->local_nodes, sizeof *meet->ranks);
    int status = meet->ranks != NULL ? start(options, meet) : SPC_ENOMEM;
    if (status != SPC_OK) {
        (void)explain(message, message_bytes, status,
                      "the box process cannot be started: ", strerror(status == SPC_ENOMEM ? ENOMEM : errno));
    } else {
        status = hear(options, meet, message, message_bytes);
    }
    if (status != SPC_OK) {
        spc_meet_close(meet);
        if (meet->process > 0) {
            (void)kill(meet->process, SIGTERM); /* ignored once it has to tell the server that it leaves */
            while (waitpid(meet->process, NULL, 0) < 0 && errno == EINTR) {
            }
        }
    }
    return status;
}

void spc_meet_close(spc_meet_t *meet) {
    int *descriptors[] = {&meet->descriptor, &meet->socket};
    for (int i = 0; i < 2; i++) {
        if (*descriptors[i] >= 0) {
            close(*descriptors[i]);
        }
        *descriptors[i] = -1;
    }
    free(meet->ranks);
    meet->ranks = NULL;
}
