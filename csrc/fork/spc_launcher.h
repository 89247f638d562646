/* SPDX-License-Identifier: MIT */
/*
 * spc_launcher: recognizes that another launcher (mpiexec, srun) has started this program several times.
 *
 * Each of those processes becomes a run of one node, because spcomm reads its place from `spcomm run` only. One of them
 * prints a note about it. The rank and the number of processes come from the environment, as Open MPI, PMI (MPICH,
 * Intel MPI), Slurm and PMIx set them. A launcher that does not set the number is recognized by its rank 1, which
 * prints the note in place of rank 0: with one process there is nothing to print.
 *
 * Call it before other threads change the environment. Python and C print the same note through it.
 */
#ifndef SPC_LAUNCHER_H
#define SPC_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#define SPC_LAUNCHER_NOTE_BYTES 1024 /* enough for the sentence and a command; longer ones are cut */

/* Whether this process is the one that prints the note: one sentence without full stop. `note` is empty if there is no
 * other launcher. `program` is the text after `spcomm run -n N` in the suggested command. */
bool spc_launcher_note(const char *program, char *note, uint64_t note_bytes);

#endif
