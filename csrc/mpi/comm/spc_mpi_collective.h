/* SPDX-License-Identifier: MIT */
/*
 * spc_mpi_collective: a collective call as an object, with checked arguments.
 *
 * spc_mpi_prepare_* checks the arguments of one MPI function and fills the object; spc_mpi_collective_run carries it
 * out. MPI_Gather and MPI_Igather do both; MPI_Gather_init keeps the object for MPI_Start. The object refers to lists
 * of the caller until `keep` (spc_mpi_later.c) has copied them.
 *
 * Between two groups (intercommunicators), peers are the ranks of the other group.
 */
#ifndef SPC_MPI_COLLECTIVE_H
#define SPC_MPI_COLLECTIVE_H

#include "mpi/type/spc_mpi_type.h"

typedef enum spc_mpi_collective_kind {
    SPC_MPI_BARRIER,
    SPC_MPI_BCAST,
    SPC_MPI_GATHER,
    SPC_MPI_ALLGATHER,
    SPC_MPI_SCATTER,
    SPC_MPI_ALLTOALL,
    SPC_MPI_REDUCE,
    SPC_MPI_ALLREDUCE,
    SPC_MPI_REDUCE_SCATTER,
    SPC_MPI_SCAN,
    SPC_MPI_EXSCAN,
} spc_mpi_collective_kind_t;

/* Data that a node gives, or gets: one part, or one for each peer, one after another or where lists place them. */
typedef struct spc_mpi_side {
    bool is_used; /* false: this node gives, or gets, nothing */
    bool is_listed;
    void *buffer;
    MPI_Count count; /* of one part, unless listed */
    spc_mpi_counts_t counts;
    spc_mpi_counts_t displacements; /* in extents of the type; with `types` in bytes */
    spc_mpi_type_t *type;
    spc_mpi_type_t **types; /* NULL: all parts are of `type` */
} spc_mpi_side_t;

typedef struct spc_mpi_part {
    void *at;
    MPI_Count count;
    const spc_mpi_type_t *type;
} spc_mpi_part_t;

typedef struct spc_mpi_collective {
    spc_mpi_collective_kind_t kind;
    spc_mpi_comm_t *comm;
    int root;
    int tag; /* of its messages, if it returns a request */
    bool is_in_place; /* this node's own part lies in the receive buffer */
    spc_mpi_side_t send;
    spc_mpi_side_t recv;
    MPI_Op op;
    int core_op; /* the core's operator for the elements, or -1 */
    void *lists; /* memory of the call, freed by spc_mpi_collective_end */
} spc_mpi_collective_t;

static inline spc_mpi_part_t spc_mpi_whole(const spc_mpi_side_t *side) {
    return (spc_mpi_part_t){side->buffer, side->count, side->type};
}

static inline spc_mpi_part_t spc_mpi_part(const spc_mpi_side_t *side, int peer) {
    const spc_mpi_type_t *type = side->types != NULL ? side->types[peer] : side->type;
    const MPI_Count count = side->is_listed ? spc_mpi_count(side->counts, peer) : side->count;
    const MPI_Count place = side->is_listed ? spc_mpi_count(side->displacements, peer) : peer * count;
    const MPI_Count bytes = side->types != NULL ? place : place * type->extent;
    return (spc_mpi_part_t){(void *)((uintptr_t)side->buffer + (uintptr_t)bytes), count, type};
}

static inline bool spc_mpi_is_root(const spc_mpi_collective_t *call) {
    return call->comm->remote != NULL ? call->root == MPI_ROOT : call->root == call->comm->rank;
}

/* ---- preparing: spc_mpi_collective.c, and of reductions spc_mpi_reduce.c ---- */

int spc_mpi_prepare_barrier(spc_mpi_collective_t *call, MPI_Comm comm);
int spc_mpi_prepare_bcast(spc_mpi_collective_t *call, void *buffer, MPI_Count count, MPI_Datatype datatype,
                          int root, MPI_Comm comm);

/* The arguments of one side, as the caller gave them. */
typedef struct spc_mpi_given {
    const void *buffer;
    MPI_Count count;
    const spc_mpi_counts_t *counts; /* NULL: not listed */
    const spc_mpi_counts_t *displacements;
    MPI_Datatype type;
    const MPI_Datatype *types;
} spc_mpi_given_t;

#define SPC_MPI_EVEN(buffer_, count_, type_) \
    (&(spc_mpi_given_t){.buffer = buffer_, .count = count_, .type = type_})
#define SPC_MPI_LISTED(buffer_, counts_, displacements_, type_) \
    (&(spc_mpi_given_t){                                        \
        .buffer = buffer_, .counts = &(counts_), .displacements = &(displacements_), .type = type_})
#define SPC_MPI_TYPED(buffer_, counts_, displacements_, types_) \
    (&(spc_mpi_given_t){                                        \
        .buffer = buffer_, .counts = &(counts_), .displacements = &(displacements_), .types = types_})

int spc_mpi_prepare_gather(spc_mpi_collective_t *call, const spc_mpi_given_t *send,
                           const spc_mpi_given_t *recv, int root, MPI_Comm comm);
int spc_mpi_prepare_allgather(spc_mpi_collective_t *call, const spc_mpi_given_t *send,
                              const spc_mpi_given_t *recv, MPI_Comm comm);
int spc_mpi_prepare_scatter(spc_mpi_collective_t *call, const spc_mpi_given_t *send,
                            const spc_mpi_given_t *recv, int root, MPI_Comm comm);
int spc_mpi_prepare_alltoall(spc_mpi_collective_t *call, const spc_mpi_given_t *send,
                             const spc_mpi_given_t *recv, MPI_Comm comm);

/* `counts` NULL: `count` items for each; of REDUCE_SCATTER only. `root`: of REDUCE only. */
int spc_mpi_prepare_reduction(spc_mpi_collective_t *call, spc_mpi_collective_kind_t kind, const void *sendbuf,
                              void *recvbuf, MPI_Count count, const spc_mpi_counts_t *counts,
                              MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm);

/* Checks a root, which between two groups may be MPI_ROOT or MPI_PROC_NULL; and MPI_IN_PLACE, which calls within one
 * group may have. */
int spc_mpi_check_root(const spc_mpi_comm_t *comm, int root);
int spc_mpi_check_in_place(const spc_mpi_collective_t *call, bool is_allowed);

/* ---- carrying out: now, or by spc_mpi_later.c ---- */

int spc_mpi_collective_run(const spc_mpi_collective_t *call);

/* Runs and ends it. `prepared`: the result of preparing it; after an error nothing is left to run. */
int spc_mpi_collective_once(spc_mpi_collective_t *call, int prepared);

void spc_mpi_collective_end(spc_mpi_collective_t *call);

/* The parts of it: spc_mpi_reduce.c, and for two groups spc_mpi_intercomm.c. */
int spc_mpi_reduction_run(const spc_mpi_collective_t *call);
int spc_mpi_inter_run(const spc_mpi_collective_t *call);

/* Checks the length and the format of data that a rank gave against their part, which shorter data may not fill
 * (`is_exact`: they have to); MPI_ERR_TRUNCATE. */
int spc_mpi_check_part(const spc_mpi_comm_t *comm, int source, MPI_Count bytes, uint8_t format,
                       spc_mpi_part_t part, bool is_exact);

/* Copies a message's data to its part, and releases nothing; as spc_mpi_check_part. */
int spc_mpi_take_part(const spc_mpi_comm_t *comm, const spc_message_t *message, int source,
                      spc_mpi_part_t part);

/* Copies this node's own part where it is both given and received. */
int spc_mpi_copy_own(const spc_mpi_collective_t *call);

/* Copies the part of a reduction's total that this node gets. */
int spc_mpi_take_total(const spc_mpi_collective_t *call, spc_mpi_part_t total);

/* Copies items of one type to items of another. */
int spc_mpi_copy_part(const spc_mpi_comm_t *comm, spc_mpi_part_t from, spc_mpi_part_t to);

/* Room for items of any type, with the holes at their ends, at an address as MPI has it; the caller frees `memory`.
 * MPI_ERR_NO_MEM. */
typedef struct spc_mpi_items {
    spc_mpi_part_t part;
    void *memory;
} spc_mpi_items_t;
int spc_mpi_items_create(const spc_mpi_comm_t *comm, MPI_Count count, const spc_mpi_type_t *type,
                         spc_mpi_items_t *items);

/* Takes part in a gathering of the core. After success the caller calls spc_comm_gathering_end; after a failure it has
 * been called. */
int spc_mpi_gathering(const spc_mpi_comm_t *comm, spc_gathering_t *gathering);

#endif
