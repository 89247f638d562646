/* SPDX-License-Identifier: MIT */
/*
 * spc_fork: a run without a launcher. The calling process becomes node 0 and is joined by copies of itself.
 *
 *     shell ── node 0 (the caller) ── supervisor ── node 1 … node n-1
 *
 * Node 0 forks the supervisor, the supervisor forks the other nodes. So node 0 is the supervisor's parent and the
 * others are its children, and all of them are the caller's process group: Ctrl-C reaches everybody, job control
 * works as ever. The supervisor runs C code only, and never returns into the program. It alone judges how the run
 * goes:
 *
 *   - it reaps nodes 1 to n-1, watches node 0 (a pidfd; else it looks for its parent every 50 ms), and publishes every
 *     end in the segment, as `spcomm run` does, so that waits for a lost node fail at once;
 *   - the first failure ends the run: the other nodes get SIGTERM, and SIGKILL after grace_s; then it says on stderr,
 *     in the words of `spcomm run`, who was first, and tells node 0 the exit code that the run deserves;
 *   - every 60 ms it looks at what nodes wait for (diagnose/spc_deadlock.h). Nodes that are proven to wait for ever end
 *     the run in the same way: a report instead of the sentence, exit code 99. A node 0 that is deaf to SIGTERM is
 *     killed like any other: then the shell sees 137;
 *   - Ctrl-C, SIGQUIT and SIGHUP it only notes, for the nodes get them, too; SIGTERM ends the run.
 *
 * It holds nothing of the program's: standard input and output are /dev/null, and of the other descriptors only
 * stderr stays open. Nodes 1 to n-1 have /dev/null as standard input.
 *
 * What follows from whose end:
 *
 *   a node, 0 included   the supervisor ends the others, as above. Of node 0's end a signal cannot be told from _exit,
 *                        nor an exit code be learned, unless it said so before: it "died".
 *   the supervisor       the kernel kills nodes 1 to n-1 (parent-death signal). Node 0 sees it in spc_fork_check, at
 *                        most a slice of its wait later, and marks them as died: its wait fails; its exit code is 125.
 *
 * Exit code. Node 0's process is what a shell waits for. spc_fork_wait_at_exit has C's exit() wait for everybody and
 * leave with the run's code. SIGTERM, where the caller has it at its default, gets a handler in node 0: sent by the
 * supervisor it leads to the same end, and from anybody else to the default one.
 *
 * Several boxes (spc_meet.h). "Node 0" is the caller then, whatever its rank. The supervisor tells the box process of
 * the first failure, or that all nodes here have ended well, and waits for its answer: with which exit code the whole
 * run ends, and why. Until then it does not let node 0 go. It looks for no deadlock, for the gateways do. The end of
 * the box process ends the nodes here, with exit code 125; node 0 waits for its end, too.
 *
 * Who may call: spc_fork_nodes once per process, before there are threads (see spc_fork_other_threads) and before the
 * caller attaches to the segment. What stdio holds unwritten is written by every copy: flush first. Objects live as
 * long as the process. NULL in the place of a spc_fork_t is a run of one node, which needs no supervisor.
 */
#ifndef SPC_FORK_H
#define SPC_FORK_H

#include <stdint.h>

#include "fork/spc_meet.h"

typedef struct spc_fork spc_fork_t;

typedef struct spc_fork_options {
    int descriptor; /* of a fresh segment for `nodes` nodes; the caller closes it, in every node */
    uint32_t nodes; /* 1: nothing is forked, unless other boxes have the rest */
    double grace_s; /* from SIGTERM to SIGKILL; 0: 3 seconds */
    const spc_meet_t
        *meet; /* of a run of several boxes; the caller closes it, in every node. NULL: one box */
} spc_fork_options_t;

/* How many threads would not survive a fork. Threads that end by themselves when the process forks (of a BLAS library)
 * are not counted: if there are others than the caller, one process is forked to find out. 0 where unknown. */
uint32_t spc_fork_other_threads(void);

/* Returns in every node: *rank is 0 in the caller (with `meet`, its first rank). Either all nodes exist, or none but
 * the caller: SPC_ESYSTEM (errno says why: too many processes or descriptors, no memory), SPC_ENOMEM, SPC_EINVAL,
 * SPC_EVERSION. */
int spc_fork_nodes(const spc_fork_options_t *options, spc_fork_t **fork, uint32_t *rank);

/* Is this process the one that called? False for NULL. */
int spc_fork_is_caller(const spc_fork_t *fork);

/* For spc_comm_options_t. */
uint64_t spc_fork_own_signals(const spc_fork_t *fork);

/* Is the supervisor still there? For spc_comm_options_t.check, in all nodes; rarely more than reading the clock. Always
 * SPC_OK: in node 0 the other nodes' deaths are news enough; another node ends here. */
int spc_fork_check(void *fork);

/* Node 0, when it has nothing more to do for the others and would exit with `own_code`: waits until all have ended.
 * *exit_code is that of the first failure, its own included, or 0; 125 if the supervisor was killed (and stderr says
 * so). In other processes, and when called again: returns at once, *exit_code is own_code; so it does, too, where the
 * program has closed the descriptor of reports (closefrom, closerange): nothing can be agreed upon then. Never fails.
 */
int spc_fork_wait(spc_fork_t *fork, int own_code, int *exit_code);

/* The same by itself, at the very end: in C's exit(), after the functions registered later. SPC_ESYSTEM where the
 * system has no such hook that knows the code (on_exit): call spc_fork_wait as late as you can, then. */
int spc_fork_wait_at_exit(spc_fork_t *fork);

/* Where a node says that it fails before it has ended: frames of 4 bytes rank, 1 byte kind, 2 bytes length (little-
 * endian) and the payload, at most 4096 bytes, each in one write. Kinds: 'E' an exception, its name; 'L' the same,
 * because a node was lost; 'K' interrupted, the place; 'X' leaves, its exit code; 'T' a piece of traceback.
 * Close-on-exec; -1 for NULL. */
int spc_fork_report_descriptor(const spc_fork_t *fork);

#endif
