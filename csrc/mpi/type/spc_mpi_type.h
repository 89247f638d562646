/* SPDX-License-Identifier: MIT */
/*
 * spc_mpi_type: datatypes as loops, and operators.
 *
 * A datatype is described by loops, not by a list of its pieces: a vector is a count, a stride and what it repeats. So
 * a description is as long as the calls that made it, and packing needs memory for the packed bytes only.
 *
 * Types never change after they are published. A freed type lives until the last request or type that uses it has
 * ended: each holds a reference.
 */
#ifndef SPC_MPI_TYPE_H
#define SPC_MPI_TYPE_H

#include "mpi/spc_mpi.h"

typedef struct spc_mpi_loop spc_mpi_loop_t; /* spc_mpi_pack.c */

/* The arguments of the call that made the type, for MPI_Type_get_contents. In a _c form, all counts but the first
 * `head` and the last `tail` ones, and all addresses, are large counts. */
typedef struct spc_mpi_contents {
    int combiner;
    bool is_large;
    MPI_Count count_count, address_count, type_count;
    MPI_Count head, tail;
    const MPI_Count *counts;
    const MPI_Aint *addresses;
    spc_mpi_type_t *const *types;
} spc_mpi_contents_t;

struct spc_mpi_type {
    _Atomic int references; /* the program's, and those of requests, files and other types */
    bool is_freed; /* the program has no handle any more, but others still use it */
    MPI_Datatype handle; /* valid until the last reference is released: an operator may be given it */
    bool is_builtin;
    _Atomic bool is_committed; /* relaxed; unused for builtin types, which are always committed */
    bool is_dense; /* one block from the beginning to the end of its extent */
    MPI_Count size;
    MPI_Count lb, extent;
    MPI_Count true_lb, true_extent;
    MPI_Count alignment; /* of its most aligned element */
    MPI_Count value_size; /* of a builtin pair of a value and its index; 0: it is not a pair */
    uint32_t core; /* the spc_type_t of each element, or SPC_TYPE_NONE */
    const spc_mpi_type_t *element; /* the builtin type of each element; NULL: they differ */
    spc_mpi_loop_t *loop;
    spc_mpi_contents_t contents;
    spc_mpi_attribute_t *attributes;
    char name[MPI_MAX_OBJECT_NAME];
};

bool spc_mpi_types_start(void); /* the builtin ones; before any other call. False: no memory */

/* The type whose items the program's operator combines in this thread; else NULL. It may have been freed. */
extern _Thread_local const spc_mpi_type_t *spc_mpi_combined_type __attribute__((tls_model("initial-exec")));

/* MPI_SUCCESS and the object, or MPI_ERR_TYPE by the error handler of `comm`, which may be NULL. */
int spc_mpi_get_type(const spc_mpi_comm_t *comm, MPI_Datatype handle, spc_mpi_type_t **type);

/* The same for data that are sent or received: MPI_ERR_TYPE also without MPI_Type_commit. */
int spc_mpi_get_committed(const spc_mpi_comm_t *comm, MPI_Datatype handle, spc_mpi_type_t **type);
void spc_mpi_type_retain(spc_mpi_type_t *type);
void spc_mpi_type_release(spc_mpi_type_t *type);

/* MPI_ERR_BUFFER if items would lie at NULL; MPI_BOTTOM is allowed with a type made of addresses. */
int spc_mpi_check_buffer(const spc_mpi_comm_t *comm, const char *role, const void *buffer, MPI_Count count,
                         const spc_mpi_type_t *type);

/* Copies `count` items out of `buffer`, one after another without holes; returns the number of bytes. */
MPI_Count spc_mpi_type_pack(const void *buffer, MPI_Count count, const spc_mpi_type_t *type, void *packed);

/* Copies packed bytes, count * type->size at most, into `count` items. */
void spc_mpi_type_unpack(const void *packed, MPI_Count bytes, void *buffer, MPI_Count count,
                         const spc_mpi_type_t *type);

/* Another type of the same description, with a handle of its own, which the program frees; a builtin type has none. */
int spc_mpi_type_copy(const spc_mpi_type_t *old, MPI_Datatype *newtype);

/* The address of item number `index`. */
static inline void *spc_mpi_item(const void *buffer, MPI_Count index, const spc_mpi_type_t *type) {
    return (char *)buffer + index * type->extent;
}

/* Data for the core: in place if the type is dense, else packed into memory that spc_mpi_payload_end frees. */
typedef struct spc_mpi_payload {
    spc_payload_t core;
    void *copy;
} spc_mpi_payload_t;

/* MPI_ERR_COUNT, MPI_ERR_NO_MEM. */
int spc_mpi_payload_begin(const spc_mpi_comm_t *comm, const void *buffer, MPI_Count count,
                          const spc_mpi_type_t *type, spc_mpi_payload_t *payload);
static inline void spc_mpi_payload_end(spc_mpi_payload_t *payload) {
    free(payload->copy);
}

/* Sends data with a tag of INTERNAL to ranks of the core, waits for none of them, and ends the payload. */
int spc_mpi_payload_send(const spc_mpi_comm_t *comm, const int32_t *to, uint32_t count, int tag,
                         spc_mpi_payload_t *payload);

/* The format byte of a message carries the element's type, so the receiver sees a mismatch at no cost. */
#define SPC_MPI_FORMAT 0x40
static inline uint8_t spc_mpi_format(const spc_mpi_type_t *type) {
    return type->core == SPC_TYPE_NONE ? SPC_FORMAT_RAW : (uint8_t)(SPC_MPI_FORMAT | type->core);
}

/* ---- operators: spc_mpi_op.c ---- */

/* MPI_SUCCESS if it is an operator; else MPI_ERR_OP. */
int spc_mpi_check_op(const spc_mpi_comm_t *comm, MPI_Op op);

/* The operator lives, and its handle with it, until the last reference is released. Predefined ones live always. */
void spc_mpi_op_retain(MPI_Op op);
void spc_mpi_op_release(MPI_Op op);

/* The same; MPI_ERR_OP also if it cannot combine the elements of this type. */
int spc_mpi_check_operands(const spc_mpi_comm_t *comm, MPI_Op op, const spc_mpi_type_t *type);

/* The core's operator if the core has it for the elements of this type; else -1. And the core's type of the elements:
 * `core`, or UINT8 for MPI_BYTE. */
int spc_mpi_core_op(MPI_Op op, const spc_mpi_type_t *type);
uint32_t spc_mpi_core_type(const spc_mpi_type_t *type);

/* right = left op right, for `count` items of the type. */
int spc_mpi_combine(const spc_mpi_comm_t *comm, MPI_Op op, const void *left, void *right, MPI_Count count,
                    const spc_mpi_type_t *type);

#endif
