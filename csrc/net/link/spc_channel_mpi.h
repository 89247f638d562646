/* SPDX-License-Identifier: MIT */
/*
 * spc_channel_mpi: a channel to one other process of an MPI communicator.
 *
 * It is compiled without any mpi.h: its caller gives it the functions of the library that the process has loaded, and
 * the size of a handle. In MPICH's ABI a handle is an int, in Open MPI's and the standard's it is a pointer.
 *
 * Bytes are gathered into slots, each of which is one message; receives are posted ahead. There is no descriptor, so
 * the owner has to read now and then, even when it only sends: MPI moves data during its calls. One thread at a time
 * for all channels of a process (MPI_THREAD_SERIALIZED). Creating one calls no MPI. MPI has no connections that could
 * be made anew, so an error of MPI breaks the channel for good.
 */
#ifndef SPC_CHANNEL_MPI_H
#define SPC_CHANNEL_MPI_H

#include "net/link/spc_channel.h"

enum { SPC_MPI_STATUS_BYTES = 64 }; /* at least sizeof(MPI_Status) of every library */

/* A handle of MPI: a communicator, a datatype, a request. */
typedef union spc_mpi_handle {
    int narrow;
    void *wide;
} spc_mpi_handle_t;

typedef void spc_mpi_function_t(void); /* of MPI; called with the type that it has */

typedef struct spc_mpi_functions {
    bool are_wide; /* handles are pointers */
    spc_mpi_handle_t byte; /* MPI_BYTE */
    spc_mpi_function_t *isend, *irecv, *test, *wait, *cancel, *get_count;
} spc_mpi_functions_t;

/* The functions must outlive the channel. Both ends need the same tag, which no other channel of the two processes
 * uses. SPC_ENOMEM. */
int spc_channel_mpi_create(const spc_mpi_functions_t *mpi, spc_mpi_handle_t comm, int rank, int tag,
                           spc_channel_t **channel);

#endif
