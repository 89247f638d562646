/* SPDX-License-Identifier: MIT */
/*
 * spc_api_binding: the way of the MPI library (csrc/mpi) into the run, in processes of Python and of C.
 *
 * In a Python process spcomm.startup() joins: its lines, its explanations and its end are then those of spcomm. The
 * Python binding fills `spc_api_binding` (spcomm/_core/mpi.pyx). In any other process spcomm_startup joins.
 */
#ifndef SPC_API_BINDING_H
#define SPC_API_BINDING_H

#include <stddef.h>

#include "comm/spc_comm.h"

typedef struct spc_api_binding {
    spc_comm_t *core; /* of the whole run; NULL: Python has not joined */
    /* Writes why a call of this name failed with this status, in the binding's words. With no lock held. */
    void (*explain)(spc_comm_t *core, int status, const char *call, char *text, size_t room);
    /* Returns the calling thread's line of the program, and writes its file, "ring.py"; 0: not known. With no lock
     * held. */
    int32_t (*locate)(char *file, size_t room);
    /* The library's own: writes the line of the program in C that made the call into the note; leaves it if unknown. */
    void (*note_line)(spc_note_t *note);
    /* The library's own: called at the end of a program that has not left the run by MPI_Finalize. */
    void (*at_end)(void);
    /* The library's own: this process has left its run, which still has its memory, and belongs to another one now, or
     * to none (NULL), as a node of a Cluster does between two calls. A status of the core. */
    int (*at_run)(spc_comm_t *core);
} spc_api_binding_t;

/* Written by the binding before the MPI library reads it, by the same thread. */
extern spc_api_binding_t spc_api_binding;

/* Joins the run; SPC_OK and its communicator. Else the sentence is printed. */
int spc_api_binding_join(spc_comm_t **core);

/* Leaves it, if Python does not do that at the end of the process. */
int spc_api_binding_leave(void);

/* "<why>", without the name of the call. */
void spc_api_binding_explain(spc_comm_t *core, int status, const char *call, char *text, size_t room);

/* Records in a traced run that a call of this name begins; `call` is a literal. */
void spc_api_binding_trace(spc_comm_t *core, const char *call);

/* Ends the process at once with this exit code, as a failure that the launcher names. */
_Noreturn void spc_api_binding_abort(int exit_code);

#endif
