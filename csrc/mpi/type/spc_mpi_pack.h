/* SPDX-License-Identifier: MIT */
/*
 * spc_mpi_pack: the loops that datatypes consist of; spc_mpi_type.c makes them. See spc_mpi_pack.c for their kinds.
 *
 * Functions that make a loop return NULL if memory is short. They retain the loops that they are given.
 */
#ifndef SPC_MPI_PACK_H
#define SPC_MPI_PACK_H

#include "mpi/type/spc_mpi_type.h"

typedef enum spc_mpi_loop_kind {
    SPC_MPI_BLOCK,
    SPC_MPI_REPEAT,
    SPC_MPI_BLOCKS,
    SPC_MPI_PARTS
} spc_mpi_loop_kind_t;

typedef struct spc_mpi_block {
    MPI_Count at, bytes;
} spc_mpi_block_t;

typedef struct spc_mpi_loop_part {
    MPI_Count at;
    spc_mpi_loop_t *loop;
} spc_mpi_loop_part_t;

struct spc_mpi_loop {
    _Atomic int references;
    spc_mpi_loop_kind_t kind;
    MPI_Count size;      /* bytes of data */
    MPI_Count low, high; /* its first byte, and the one after its last */
    MPI_Count at;
    MPI_Count bytes;         /* BLOCK */
    MPI_Count count;         /* the others */
    MPI_Count stride;        /* REPEAT */
    spc_mpi_loop_t *child;   /* REPEAT */
    union {
        spc_mpi_block_t blocks[0];
        spc_mpi_loop_part_t parts[0];
    };
};

spc_mpi_loop_t *spc_mpi_loop_retain(spc_mpi_loop_t *loop);
void spc_mpi_loop_release(spc_mpi_loop_t *loop);

spc_mpi_loop_t *spc_mpi_loop_block(MPI_Count at, MPI_Count bytes);

/* `child` at `at`, `at` + stride, ... */
spc_mpi_loop_t *spc_mpi_loop_repeat(spc_mpi_loop_t *child, MPI_Count at, MPI_Count count, MPI_Count stride);

/* Empty lists with room for `count`; adding joins adjacent blocks, and drops empty ones. Simplify returns the loop to
 * keep. */
spc_mpi_loop_t *spc_mpi_loop_blocks(MPI_Count count);
void spc_mpi_loop_add_block(spc_mpi_loop_t *loop, MPI_Count at, MPI_Count bytes);
spc_mpi_loop_t *spc_mpi_loop_parts(MPI_Count count);
void spc_mpi_loop_add_part(spc_mpi_loop_t *loop, MPI_Count at, spc_mpi_loop_t *part);
spc_mpi_loop_t *spc_mpi_loop_simplify(spc_mpi_loop_t *loop);

/* Calls `take` for each run of adjacent bytes, in order, of the data bytes `from` to `from` + bytes of items that
 * follow one another, at places relative to the first item. Stops at the first code other than MPI_SUCCESS, and returns
 * it. */
typedef int spc_mpi_take_run_t(void *argument, MPI_Count at, MPI_Count bytes);
int spc_mpi_type_walk(const spc_mpi_type_t *type, MPI_Count from, MPI_Count bytes, spc_mpi_take_run_t *take,
                      void *argument);

#endif
