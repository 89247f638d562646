/* SPDX-License-Identifier: MIT */
/*
 * spc_mpi_file: files of several processes, by pread and pwrite.
 *
 *   spc_mpi_file.c         opening, sizes, views, pointers
 *   spc_mpi_file_access.c  reading and writing
 *
 * Every process opens the file, so that nodes of several boxes need one file system. The shared pointer is a word in
 * rank 0's arena; for nodes in several boxes it is a file without a name, which a lock of the system guards. Each
 * operation is carried out at once.
 *
 * A file has a communicator of its own, with the file's handle and error handler, so that spc_mpi_fail with that
 * communicator raises an error of the file.
 */
#ifndef SPC_MPI_FILE_H
#define SPC_MPI_FILE_H

#include "mpi/type/spc_mpi_type.h"

typedef struct spc_mpi_file {
    spc_mpi_comm_t *comm;
    MPI_File handle;
    int descriptor;
    int amode;
    char *name;

    /* The view. Types hold a reference. */
    MPI_Offset disp;
    spc_mpi_type_t *etype;
    spc_mpi_type_t *filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    bool is_external;

    MPI_Offset position;       /* in etypes */
    spc_block_shared_t *block; /* of rank 0 */
    _Atomic int64_t *shared;   /* in etypes; NULL: it is not in memory. Relaxed: data travel by the file */
    int pointer;               /* descriptor of the file that has it instead; -1: there is none */
    bool has_begun; /* a split collective, which has moved `begun_bytes` */
    MPI_Count begun_bytes;
    bool is_atomic;
    MPI_Info info;
} spc_mpi_file_t;

/* MPI_SUCCESS and the object, or MPI_ERR_FILE by the handler of MPI_FILE_NULL. */
int spc_mpi_get_file(MPI_File handle, spc_mpi_file_t **file);

/* Closes this node's file when the run is over. */
void spc_mpi_file_forget(spc_mpi_file_t *file);

/* Fails by errno, and names the file. */
int spc_mpi_file_fail(const spc_mpi_file_t *file, int error);

/* MPI_ERR_UNSUPPORTED_OPERATION if the file has no shared pointer. */
int spc_mpi_file_check_shared(const spc_mpi_file_t *file);

/* Adds to the shared pointer, or sets it; stores its old value. */
int spc_mpi_file_add_shared(const spc_mpi_file_t *file, MPI_Offset more, MPI_Offset *before);
int spc_mpi_file_set_shared(const spc_mpi_file_t *file, MPI_Offset to);

#endif
