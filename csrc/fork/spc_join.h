/* SPDX-License-Identifier: MIT */
/*
 * spc_join: processes that another launcher has started on this machine find the supervisor of their run.
 *
 *     mpiexec, srun ─┬─ first process of the machine ── supervisor (spc_fork.h)
 *                    └─ another one ── socket ──────────┘
 *
 * The first process listens at an abstract socket and forks the supervisor, which inherits it. All processes connect,
 * the first one, too. Each sends its place (spc_join_hello_t), and gets the descriptors of the segment and of the pipe
 * of reports. The connection stays: over it the supervisor sends the exit code of the run, one word, and its end is the
 * end of the supervisor. If there is no run, the first process sends the others why instead, before it fails itself.
 *
 * Anyone may have taken the name, and anyone may connect. Both ends ask the kernel whose process the other one is: a
 * listener of another user is passed over, for the next of a few names, and a connection of one is closed.
 */
#ifndef SPC_JOIN_H
#define SPC_JOIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fork/spc_launcher.h"

#define SPC_JOIN_S 30 /* for all processes of the launcher to come */
#define SPC_JOIN_MESSAGE_BYTES 2048

typedef struct spc_join_hello {
    uint32_t rank, size;
    uint64_t self;   /* address of the sender's spc_fork_t */
    int32_t process; /* as the kernel says */
    int32_t unused;
} spc_join_hello_t;

typedef struct spc_join {
    int connection, segment, report; /* descriptors, close-on-exec; -1 after a failure */
    pid_t supervisor;
} spc_join_t;

/* The first process: SPC_ESYSTEM, SPC_EAGAIN if a process of this user listens there already. */
int spc_join_listen(const spc_launcher_place_t *place, int *listener);

/* The first process, if there is no run: sends the others the status and the sentence, until so many have asked, a few
 * seconds have passed, or a signal comes. */
void spc_join_refuse(int listener, uint32_t others, int status, const char *sentence);

/* Each process: waits for the first one. `check`: after each try; another status than SPC_OK ends the wait (NULL:
 * none). SPC_ETIMEDOUT, SPC_ELOST (the supervisor has ended, or does not know this process), SPC_ESYSTEM, or what the
 * first one failed with, with a sentence without full stop in `message`. */
int spc_join_connect(const spc_launcher_place_t *place, const void *self, int (*check)(void *),
                     void *argument, spc_join_t *joined, char *message, uint64_t message_bytes);

/* The supervisor: the next process that has connected, and its place; -1: none waits. The listener does not block. */
int spc_join_accept(int listener, spc_join_hello_t *hello);

/* The supervisor: sends it the descriptors of segment and report. SPC_ELOST if it is gone. */
int spc_join_hand(int connection, const int handed[2], pid_t supervisor);

/* Has the other end of a connection ended? */
bool spc_join_has_ended(int connection);

#endif
