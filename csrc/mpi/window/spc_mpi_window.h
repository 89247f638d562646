/* SPDX-License-Identifier: MIT */
/*
 * spc_mpi_window: windows of one machine.
 *
 *   spc_mpi_window.c         memory, attributes, names
 *   spc_mpi_window_sync.c    fences, locks, and post, start, complete, wait
 *   spc_mpi_window_access.c  put, get and accumulate; with --strict accesses that conflict
 *
 * Each member keeps its control block in its arena. Memory of MPI_Win_allocate lies behind it, memory of
 * MPI_Win_allocate_shared behind rank 0's block: each member reaches it at an address of its own. Other memory
 * (MPI_Win_create, MPI_Win_create_dynamic, and what the arena has no room for) is reached by the kernel's copy between
 * processes.
 *
 * Each operation is carried out at once. Mutexes of the control block are robust: a process that dies while it holds
 * one does not block the others, which the end of the run then stops.
 *
 * A window has a communicator of its own, with the window's handle and error handler, so that spc_mpi_fail with that
 * communicator raises an error of the window.
 */
#ifndef SPC_MPI_WINDOW_H
#define SPC_MPI_WINDOW_H

#include "mpi/type/spc_mpi_type.h"

enum { SPC_MPI_WINDOW_LINE_BYTES = 60 };
enum { SPC_MPI_LOCK_NONE, SPC_MPI_LOCK_SHARED, SPC_MPI_LOCK_EXCLUSIVE };

/* The state of one rank at the lock of one member's memory; with the guard. */
typedef struct spc_mpi_window_place {
    uint32_t wants; /* SPC_MPI_LOCK_… while it waits */
    uint32_t holds;
    uint64_t ticket; /* among those that wait, the lowest goes first */
    _Atomic uint32_t is_granted; /* seq_cst by the granter, before it notifies; acquire by the waiter */
    /* of the call that wants or holds it: " at ring.py:8", or nothing */
    char line[SPC_MPI_WINDOW_LINE_BYTES];
} spc_mpi_window_place_t;

typedef struct spc_mpi_window_shared {
    pthread_mutex_t accumulate; /* held while an operation accumulates into this memory */
    pthread_mutex_t guard; /* of what follows */
    uint64_t tickets;
    spc_mpi_window_place_t place[]; /* by rank */
} spc_mpi_window_shared_t;

/* With --strict. */
enum { SPC_MPI_ACCESSES = 64 };

typedef enum spc_mpi_access_kind {
    SPC_MPI_ACCESS_NONE,
    SPC_MPI_ACCESS_PUT,
    SPC_MPI_ACCESS_GET,
    SPC_MPI_ACCESS_ACCUMULATE,
} spc_mpi_access_kind_t;

typedef struct spc_mpi_access {
    uint32_t kind; /* spc_mpi_access_kind_t */
    int32_t origin;
    uint64_t epoch; /* number of fences before it */
    MPI_Count low, high; /* bytes from the beginning of the memory */
    char line[SPC_MPI_WINDOW_LINE_BYTES + 4];
} spc_mpi_access_t;

typedef struct spc_mpi_accesses {
    uint64_t count;
    spc_mpi_access_t last[SPC_MPI_ACCESSES];
} spc_mpi_accesses_t;

typedef struct spc_mpi_window_member {
    void *base; /* in its own address space; of memory in the arena: in this one */
    MPI_Aint size;
    int unit;
    int process;
    uint64_t control_offset; /* in the segment; 0: the arena had no room */
    uint64_t memory_offset; /* 0: not in the segment */
} spc_mpi_window_member_t;

typedef struct spc_mpi_window {
    spc_mpi_comm_t *comm; /* its own */
    MPI_Win handle;
    int flavor;
    int unit;
    MPI_Aint size;
    void *own; /* freed with the window */
    spc_block_shared_t *block; /* this member's */
    spc_mpi_window_member_t *member; /* by rank, as the next two */
    spc_mpi_window_shared_t **control;
    bool *is_locked; /* by this node */
    bool is_fenced; /* a fence has begun an epoch */
    bool is_fence_used; /* and this node has used it since */
    uint64_t fences;
    bool is_all_locked;
    int *access; /* ranks of the group of MPI_Win_start, NULL: none */
    int *exposure; /* of MPI_Win_post; those that have completed are -1 */
    int access_count, exposure_count;
    MPI_Info info;
    spc_mpi_attribute_t *attributes;
    char name[MPI_MAX_OBJECT_NAME];
} spc_mpi_window_t;

/* MPI_SUCCESS and the object, or MPI_ERR_WIN. */
int spc_mpi_get_window(MPI_Win handle, spc_mpi_window_t **window);

void spc_mpi_window_mutex_lock(pthread_mutex_t *mutex);

/* MPI_ERR_RMA_SYNC unless this node may access the member's memory now; it does so next. */
int spc_mpi_window_check_epoch(spc_mpi_window_t *window, int target);

/* MPI_ERR_RMA_SYNC if this node has a lock, or is in an epoch of MPI_Win_start or MPI_Win_post. */
int spc_mpi_window_check_unlocked(const spc_mpi_window_t *window);

/* MPI_ERR_RMA_SYNC if this node has used the epoch of a fence, which only another fence ends. */
int spc_mpi_window_check_fence(const spc_mpi_window_t *window);

/* This node's accesses to that member's memory are synchronized. Only with --strict. */
void spc_mpi_window_forget_accesses(const spc_mpi_window_t *window, int target);

#endif
