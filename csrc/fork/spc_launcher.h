/* SPDX-License-Identifier: MIT */
/*
 * spc_launcher: the place that another launcher (mpiexec, srun) has given to this process.
 *
 * Rank, number of processes and the name of the job come from the environment, as Open MPI, MPICH's Hydra and Slurm set
 * them. All processes of a job find the same name. The variables pass on to the programs that a process starts, which
 * are not meant: so a process that has a place records it, and what it starts finds none.
 *
 * Call it before other threads change the environment. Python and C share it.
 */
#ifndef SPC_LAUNCHER_H
#define SPC_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#define SPC_LAUNCHER_NOTE_BYTES 1024 /* enough for the sentence and a command; longer ones are cut */
#define SPC_LAUNCHER_NAME_BYTES 96

typedef struct spc_launcher_place {
    uint32_t rank, size; /* in the job */
    uint32_t local_rank, local_size; /* on this machine */
    bool is_slurm;
    const char *launcher; /* the command, for users */
    char name[SPC_LAUNCHER_NAME_BYTES]; /* of an abstract socket: user, machine and job */
} spc_launcher_place_t;

/* SPC_OK: this process is one of a launcher's. SPC_EAGAIN: there is none, or it is Slurm and has started one process,
 * or the user does not want it (SPCOMM_ALONE=1): place->size is 1 if there is one, and `note` is a sentence about it,
 * or empty. SPC_EINVAL: its processes cannot be one run; `note` has a sentence without full stop. `program` is the text
 * after `spcomm run -n N` in the suggested command. */
int spc_launcher_find(spc_launcher_place_t *place, const char *program, char *note, uint64_t note_bytes);

/* Records that this process has its place, so that programs that it starts do not take it. */
void spc_launcher_record(void);

#endif
