/* SPDX-License-Identifier: MIT */
/*
 * spc_meet: a box without a launcher meets the other boxes of its run at a server (`spcomm serve`).
 *
 *     shell ── node 0 of the box (the caller) ─┬─ box process ── gateway
 *                                              └─ supervisor ── the other nodes (spc_fork.h)
 *
 * The box process is spcomm's Python (`spcomm meet`). It connects to the server that the infile names, waits there
 * until all nodes of the run have come, makes the segment, and runs the gateway. So connections, encryption and the
 * code of the server exist once, and C programs need Python on the machine for this.
 *
 * Both ends of the socket speak frames: 4 bytes code, 4 bytes length (of this machine's byte order), text.
 *
 *   to the caller        code 0: the text is the ranks of this box's nodes, 4 bytes each, the caller's first, and the
 *                        segment's descriptor comes along. Otherwise a status, and why there is no run
 *   to the supervisor    the run is over, with this exit code; the text is to be printed. Empty: its own report; the
 *                        character 0: nothing, because another box has said it
 *   from the supervisor  this box's nodes have ended, or fail and will end: the run's exit code as the supervisor
 *                        sees it, and the record of the failure (spc_failures.h)
 *
 * The end of the socket ends the other one: the box process ends when no process of the program holds it, and the
 * supervisor ends the nodes.
 */
#ifndef SPC_MEET_H
#define SPC_MEET_H

#include <stdint.h>
#include <sys/types.h>

#define SPC_MEET_MESSAGE_BYTES 2048
#define SPC_MEET_TEXT_BYTES 65536 /* of a frame, at most */

typedef struct spc_meet_header {
    int32_t code;
    uint32_t bytes;
} spc_meet_header_t;

typedef struct spc_meet_options {
    const char *const *command; /* starts the box process, NULL at its end; NULL: `spcomm meet` */
    int32_t local_nodes;
    int32_t total_nodes;
    int32_t group_id;
    const char *infile; /* "": the boxes are those of a step of Slurm */
    const char *program; /* its name, for users; NULL: "a program" */
    int (*check)(void *argument); /* after a signal; another status than SPC_OK ends the wait. NULL: none */
    void *check_argument;
} spc_meet_options_t;

typedef struct spc_meet {
    int descriptor; /* of the segment */
    int socket; /* to the box process */
    pid_t process;
    uint32_t *ranks; /* local_nodes of them */
    uint32_t local_nodes;
    uint32_t total_nodes;
} spc_meet_t;

/* Waits for the other boxes, as long as the infile's timeout allows. On failure nothing is left, `message` has a
 * sentence without full stop, and the status gives the cause: SPC_EINVAL (the boxes, or the infile, contradict each
 * other; a wrong code), SPC_ETIMEDOUT, SPC_EVERSION, SPC_EDISCONNECTED (no server), SPC_ESYSTEM (no box process, no
 * memory), or the status of the check. */
int spc_meet(const spc_meet_options_t *options, spc_meet_t *meet, char *message, uint64_t message_bytes);

/* Closes both descriptors, in a process that needs them no more, and forgets the ranks. */
void spc_meet_close(spc_meet_t *meet);

#endif
