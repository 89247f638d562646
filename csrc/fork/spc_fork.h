/* SPDX-License-Identifier: MIT */
/*
 * spc_fork: a run without a launcher. The calling process becomes node 0 and is joined by copies of itself.
 *
 *     shell ── node 0 (the caller) ── supervisor ── node 1 … node n-1
 *
 * Node 0 forks the supervisor, the supervisor forks the other nodes. So node 0 is the supervisor's parent and the
 * others are its children, and all of them are in the caller's process group: Ctrl-C reaches all of them, and job
 * control works as usual. The supervisor runs C code only, and never returns into the program. It alone judges the
 * run:
 *
 *   - it reaps nodes 1 to n-1, watches node 0 (a pidfd; else it looks for its parent every 50 ms), and publishes every
 *     end in the segment, as `spcomm run` does, so that waits for a lost node fail at once;
 *   - the first failure ends the run: the other nodes get SIGTERM, and SIGKILL after grace_s; then it executes
 *     `options.conclude`, which prints in the words of `spcomm run` which node failed first, and sends node 0 the
 *     exit code of the run. Where the command cannot be executed, it prints one sentence of its own;
 *   - every 60 ms it examines the waits of the nodes (diagnose/spc_deadlock.h). Nodes that are proven to wait for ever
 *     end the run in the same way: a report instead of the sentence, exit code 99. A node 0 that ignores SIGTERM is
 *     killed like any other: then the shell sees 137;
 *   - after a run that went well but left messages or barriers, it executes the same command, which prints the
 *     warning;
 *   - it only notes Ctrl-C, SIGQUIT and SIGHUP, because the nodes get them, too; SIGTERM ends the run. If node 0 alone
 *     got one of them and ended with its code, the other nodes get the same one, not SIGTERM.
 *
 * It holds nothing of the program's: standard input and output are /dev/null, and of the other descriptors only
 * stderr stays open. Nodes 1 to n-1 have /dev/null as standard input.
 *
 * Consequences of the end of each process:
 *
 *   a node, 0 included   the supervisor ends the others, as above. When node 0 ends, the supervisor can neither tell a
 *                        signal from _exit nor learn the exit code, unless node 0 has reported it before: it "died".
 *   the supervisor       the kernel kills nodes 1 to n-1 (parent-death signal). Node 0 sees it in spc_fork_check, at
 *                        most a slice of its wait later, and marks them as died: its wait fails; its exit code is 125.
 *
 * Exit code. A shell waits for node 0's process. spc_fork_wait_at_exit has C's exit() wait for all nodes and leave with
 * the run's code. If the caller has SIGTERM at its default, node 0 gets a handler for it: a SIGTERM of the supervisor
 * leads to the same end, a SIGTERM of any other process to the default one.
 *
 * Several boxes (spc_meet.h). "Node 0" is then the caller, whatever its rank. The supervisor reports the first failure
 * to the box process, or that all nodes here have ended well, and waits for its answer: the exit code of the whole run,
 * and the reason. Until then it does not let node 0 go. It looks for no deadlock, because the gateways do. The end of
 * the box process ends the nodes here, with exit code 125; node 0 waits for its end, too.
 *
 * Callers: spc_fork_nodes once per process, before there are threads (see spc_fork_other_threads) and before the
 * caller attaches to the segment. Every copy writes the unwritten data of stdio: flush first. Objects live as long as
 * the process. NULL in the place of a spc_fork_t is a run of one node, which needs no supervisor.
 */
#ifndef SPC_FORK_H
#define SPC_FORK_H

#include <stdint.h>

#include "fork/spc_launcher.h"
#include "fork/spc_meet.h"

typedef struct spc_fork spc_fork_t;

typedef struct spc_fork_options {
    int descriptor; /* of a fresh segment for `nodes` nodes; the caller closes it, in every node */
    uint32_t nodes; /* 1: nothing is forked, unless other boxes have the rest */
    double grace_s; /* from SIGTERM to SIGKILL; 0: 3 seconds */
    const spc_meet_t
        *meet; /* of a run of several boxes; the caller closes it, in every node. NULL: one box */
    const char *const *conclude; /* as in spc_fork_join_options_t */
} spc_fork_options_t;

typedef struct spc_fork_join_options {
    const spc_launcher_place_t *place;
    int descriptor; /* of the first process of each machine: a fresh segment, which the caller closes */
    const spc_meet_options_t
        *meet; /* in place of it, where the run is on several machines. NULL: one machine */
    int (*check)(void *argument); /* while it waits; another status than SPC_OK ends the wait. NULL: none */
    void *check_argument;
    /* The command that reports how the run has ended: at most 8 words, and NULL. The descriptor of the segment and the
     * ranks of this machine follow them. NULL: spcomm conclude. */
    const char *const *conclude;
} spc_fork_join_options_t;

/* The number of threads that would not survive a fork. Threads that end by themselves when the process forks (of a BLAS
 * library) are not counted: if there are others than the caller, one process is forked to find out. 0 where unknown. */
uint32_t spc_fork_other_threads(void);

/* Returns in every node: *rank is 0 in the caller (with `meet`, its first rank). Either all nodes exist, or none but
 * the caller: SPC_ESYSTEM (errno says why: too many processes or descriptors, no memory), SPC_ENOMEM, SPC_EINVAL,
 * SPC_EVERSION. */
int spc_fork_nodes(const spc_fork_options_t *options, spc_fork_t **fork, uint32_t *rank);

/* In each process of another launcher (mpiexec, srun): joins the run of all of them, under its own rank. The first
 * process of a machine forks the supervisor; none of them needs another. *descriptor is that of the segment, which the
 * caller closes. SPC_ETIMEDOUT, SPC_EINVAL, SPC_ESYSTEM, SPC_ENOMEM, SPC_EVERSION, SPC_EDISCONNECTED, or the status of
 * the check, with a sentence without full stop in `message`; SPC_ELOST if the first process has failed, which says
 * why. */
int spc_fork_join(const spc_fork_join_options_t *options, spc_fork_t **fork, int *descriptor, char *message,
                  uint64_t message_bytes);

/* Has this process called one of these two, or is it a copy of one that has? False for NULL. */
int spc_fork_is_caller(const spc_fork_t *fork);

/* For spc_comm_options_t. */
uint64_t spc_fork_own_signals(const spc_fork_t *fork);

/* Is the supervisor still there? For spc_comm_options_t.check, in all nodes; rarely more than reading the clock. Always
 * SPC_OK: in node 0 the other nodes' deaths are sufficient news; another node ends here. */
int spc_fork_check(void *fork);

/* For node 0, when it has nothing more to do for the others and would exit with `own_code`: waits until all have ended.
 * *exit_code is that of the first failure, its own included, or 0; 125 if the supervisor was killed (stderr reports
 * it). In other processes, and when called again, it returns at once, and *exit_code is own_code. The same holds if the
 * program has closed the descriptor of reports (closefrom, closerange): then no agreement is possible. Never fails.
 */
int spc_fork_wait(spc_fork_t *fork, int own_code, int *exit_code);

/* Does the same by itself, at the very end: in C's exit(), after the functions registered later. SPC_ESYSTEM if the
 * system has no such hook that knows the code (on_exit): then call spc_fork_wait as late as you can. */
int spc_fork_wait_at_exit(spc_fork_t *fork);

/* The descriptor on which a node reports its failure before it ends: frames of 4 bytes rank, 1 byte kind, 2 bytes
 * length (little-endian) and the payload, at most 4096 bytes, each in one write. Kinds: 'E' an exception, its name; 'L'
 * the same, because a node was lost; 'K' interrupted, the place; 'X' leaves, its exit code; 'T' a piece of traceback.
 * Close-on-exec; -1 for NULL. */
int spc_fork_report_descriptor(const spc_fork_t *fork);

#endif
