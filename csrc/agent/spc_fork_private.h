/* SPDX-License-Identifier: MIT */
/*
 * Private to spc_fork: what its files share. spc_fork.c is what the nodes do, spc_fork_agent.c the agent's life,
 * spc_fork_watch.c what it hears and does about it, spc_fork_lookout.c how it finds deadlocks; spc_failures.[ch] and
 * diagnose/spc_verdict.[ch] have the words.
 *
 * Three pipes. `life`: the agent writes, node 0 reads; a word at the start (0: everybody exists, else an errno) and one
 * at the end (the exit code). Only the agent can write, so its end is the pipe's. `start`: a word for each other node,
 * to go on; a pipe of its own, or node 0 might take a slow node's. `report`: nodes write, the agent reads.
 */
#ifndef SPC_FORK_PRIVATE_H
#define SPC_FORK_PRIVATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/spc_failures.h"
#include "agent/spc_fork.h"
#include "diagnose/spc_deadlock.h"
#include "segment/spc_segment.h"

/* A signal with a value can be told from anybody else's SIGTERM. */
#if defined(_POSIX_REALTIME_SIGNALS) && _POSIX_REALTIME_SIGNALS > 0
#define SPC_HAS_SIGQUEUE 1
#else
#define SPC_HAS_SIGQUEUE 0
#endif

struct spc_fork {
    spc_segment_t segment; /* node 0, agent */
    pid_t process;         /* of this node: a copy of it is nobody */
    pid_t caller, agent;
    uint32_t rank, nodes;
    uint64_t grace_ns;
    uint64_t own_signals; /* 1 << (number - 1) for a handler that stands in this node */
    _Atomic uint64_t looked_ns; /* when spc_fork_check last did; relaxed: two threads may look at once */
    int life, report; /* this process's ends */
    uint64_t life_inode, report_inode; /* a program may close what is not its own, and open files */
    volatile sig_atomic_t is_waiting; /* node 0, for the handler of SIGTERM */
};

typedef struct spc_fork_agent {
    spc_fork_t *fork;
    pid_t *processes; /* by rank; 0 once reaped; [0] is node 0, 0 once gone */
    bool zero_is_over; /* node 0 is gone, or waits for us */
    int watch; /* node 0's pidfd, or -1 */
    spc_failures_t failures;
    unsigned char reports[2 * SPC_REPORT_BYTES]; /* what was read and not yet understood */
    uint32_t report_bytes;
    int heard; /* the last signal that the nodes may have got, too */
    bool is_ending; /* nodes have been told to */
    int signal; /* the run ends because of it */
    uint64_t due_ns; /* until then a victim is not blamed if a failure to blame may yet come */
    uint64_t settle_ns, told_ns, kill_ns, look_ns; /* when to do what; SPC_NO_DEADLINE: not */
    spc_deadlock_t *deadlock; /* NULL: there was no memory for it */
    char *verdict; /* the report of a deadlock, for which the run ends; else NULL */
    size_t verdict_bytes;
} spc_fork_agent_t;

/* What both files of the agent need: its streams, which lie where other programs have theirs. */
enum {
    SPC_WAKE_READ = 0,
    SPC_WAKE_WRITE = 1,
    SPC_SPEAK = 2,
    SPC_CODE_SPCOMM = 125, /* the exit code that says: spcomm itself */
    SPC_CODE_DEADLOCK = 99,
};

/* The agent's start: forks nodes 1 to n-1 of `fork->nodes`. Returns in each of them, with fork->rank set, and in the
 * agent with rank 0, SPC_OK or SPC_ESYSTEM (the nodes made so far are gone then). */
int spc_fork_agent_start(spc_fork_t *fork, pid_t *processes);

/* Watches over the run until it is over. `report` is the reading, fork->life the writing end. */
_Noreturn void spc_fork_agent_run(spc_fork_t *fork, pid_t *processes);

/* The agent's senses, in spc_fork_watch.c. None waits; each acts on what it finds. */
void spc_fork_hear_signals(spc_fork_agent_t *agent);
void spc_fork_hear_reports(spc_fork_agent_t *agent);
void spc_fork_reap(spc_fork_agent_t *agent);
void spc_fork_look_for_zero(spc_fork_agent_t *agent);
void spc_fork_obey_deadlines(spc_fork_agent_t *agent);

/* Tells the nodes to end by `number` (0: they know already), but for one (-1: all), and kills them after the grace
 * time. Nothing that follows counts. */
void spc_fork_end_run(spc_fork_agent_t *agent, int number, int32_t spared);

/* In spc_fork_lookout.c: a look now and then at what nodes wait for, until the run is told to end. */
void spc_fork_start_looking(spc_fork_agent_t *agent);
void spc_fork_look_for_deadlock(spc_fork_agent_t *agent);

#endif
