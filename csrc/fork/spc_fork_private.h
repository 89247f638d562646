/* SPDX-License-Identifier: MIT */
/*
 * spc_fork_private: shared parts of a node and the supervisor of its run. spc_fork.c has the nodes' side;
 * spc_fork_supervisor.c is the supervisor, and calls nothing of it.
 *
 * Three pipes. `life`: the supervisor writes, node 0 reads; a word at the start (0: all nodes exist, else an errno)
 * and one at the end (the exit code). Only the supervisor can write, so its end is the pipe's. `start`: a word for
 * each other node, to go on; a pipe of its own, or node 0 might take a slow node's. `report`: nodes write, the
 * supervisor reads.
 */
#ifndef SPC_FORK_PRIVATE_H
#define SPC_FORK_PRIVATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "fork/spc_failures.h"
#include "fork/spc_fork.h"
#include "fork/spc_launcher.h"
#include "segment/spc_segment.h"

/* The value distinguishes the supervisor's SIGTERM from any other SIGTERM. */
#if defined(_POSIX_REALTIME_SIGNALS) && _POSIX_REALTIME_SIGNALS > 0
#define SPC_HAS_SIGQUEUE 1
#else
#define SPC_HAS_SIGQUEUE 0
#endif

enum { SPC_CODE_SPCOMM = 125 }; /* the exit code for a failure of spcomm itself */

/* The command that reports the end of the run. */
typedef struct spc_conclusion {
    int descriptor; /* of the segment */
    const uint32_t *ranks; /* of the nodes of this machine */
    uint32_t count;
    /* At most 8 words, and NULL; the descriptor and the ranks follow them. NULL: spcomm conclude. */
    const char *const *command;
} spc_conclusion_t;

struct spc_fork {
    spc_segment_t segment; /* node 0, supervisor */
    pid_t process;         /* of this node: a copy of it is no node */
    pid_t caller, supervisor;
    pid_t launcher; /* the parent of this process, if there is a place */
    pid_t box; /* the box process, a child of node 0; -1: there is one box */
    int box_socket; /* the supervisor's end */
    const spc_launcher_place_t
        *place; /* of another launcher, which has started all nodes; NULL: we fork them */
    spc_launcher_place_t kept_place;
    int listener, handed_report; /* the supervisor's, for them: it hands out the segment and this end */
    spc_conclusion_t conclusion; /* the supervisor's */
    uint32_t rank, nodes;
    uint32_t *ranks; /* of the nodes here; the first one is node 0's */
    uint32_t local_nodes;
    uint64_t grace_ns;
    uint64_t own_signals; /* 1 << (number - 1) for a handler that stands in this node */
    _Atomic uint64_t looked_ns; /* when spc_fork_check last did; relaxed: two threads may look at once */
    int life, report; /* this process's ends */
    uint64_t life_inode, report_inode; /* a program may close what is not its own, and open files */
    volatile sig_atomic_t is_waiting; /* node 0, for the handler of SIGTERM */
    volatile sig_atomic_t is_told; /* the supervisor's SIGTERM came before this process had joined */
};

/* A node, as the supervisor sees it. A caller is a process that it did not fork: it has called startup itself. */
typedef struct spc_fork_node {
    pid_t process; /* 0 once reaped, or gone, or not there yet, and of nodes in other boxes */
    int life;      /* a caller's: where the exit code of the run goes; -1: none */
    int watch;     /* a caller's pidfd; -1: none */
    void *self;    /* a caller's spc_fork_t, in its memory */
    bool is_caller;
    bool is_over; /* a caller is gone, or waits for the supervisor */
    bool has_joined; /* a caller that another launcher has started */
    /* It runs, in a process-id namespace of its own: it has no number here, and gets no signals. */
    bool is_unseen;
} spc_fork_node_t;

/* Watches over the run until it is over. `report` is the reading, fork->life the writing end. */
_Noreturn void spc_fork_supervisor_run(spc_fork_t *fork, spc_fork_node_t *nodes);

#endif
