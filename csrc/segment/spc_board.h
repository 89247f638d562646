/* SPDX-License-Identifier: MIT */
/*
 * spc_board: each node's present wait, and the line of the program that waits.
 *
 * A node has one board and alone writes it. A wait that has lasted for some milliseconds publishes before it sleeps on,
 * and retracts as soon as it wakes: while the board is published, the node is inside a sleep, after a test that found
 * its wait unsatisfied. So a reader that sees the same odd `stuck` twice knows that the node did nothing in between.
 * Calls that need not wait never use the board.
 *
 * The supervisor reads it to report where all nodes are, and to prove a deadlock (diagnose/spc_deadlock.h).
 */
#ifndef SPC_BOARD_H
#define SPC_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_atomic.h"

enum {
    SPC_BOARD_FILE_BYTES = 256,
    SPC_BOARD_FUNCTION_BYTES = 64,
    SPC_BOARD_CALL_BYTES = 24,
    SPC_BOARD_MORE_BYTES = 512,
};

typedef enum spc_board_kind {
    SPC_BOARD_NOTHING,
    SPC_BOARD_RECEIVE, /* a message from one of the nodes it needs */
    SPC_BOARD_SEND, /* others have to receive: its limit is reached; at the end: room for queued messages */
    SPC_BOARD_PHASE, /* all nodes it needs have to arrive */
    SPC_BOARD_CYCLE, /* the same, or a coordinated message from a node that has not arrived */
    SPC_BOARD_RECEIPT, /* the node it needs has to receive */
    /* a message of the node it needs, within a collective that all have entered, or within CREATE_GROUP */
    SPC_BOARD_GATHERING,
} spc_board_kind_t;

/* Reasons why its wait may end without any action of a node. */
enum {
    SPC_BOARD_TIMED = 1, /* the call has a time limit */
    SPC_BOARD_THREADS = 2, /* other threads run, which may call spcomm */
    SPC_BOARD_TIMER = 4, /* a timer is armed */
    SPC_BOARD_HANDLER = 8, /* a signal has a handler of the program's own */
    SPC_BOARD_UNKNOWN = 16, /* the wait cannot name the nodes it needs */
    SPC_BOARD_UNCOUNTED = 32, /* the system does not tell whether other threads run */
    SPC_BOARD_AT_END = 64, /* with THREADS: the main program has ended, and Python waits for its threads */
    /* Those that the program itself has made. */
    SPC_BOARD_OWN_DOUBTS = SPC_BOARD_THREADS | SPC_BOARD_TIMER | SPC_BOARD_HANDLER | SPC_BOARD_UNCOUNTED
        | SPC_BOARD_AT_END,
};

enum {
    /* The call's name in a report. */
    SPC_BOARD_RENDEZVOUS = 1, /* of RECEIPT: a send that --rendezvous makes wait */
    SPC_BOARD_IN_C = 2, /* the binding does not know its caller's line: a program in C or C++ */
    /* Any node that can send to it may make it do anything, whatever it waits for. */
    SPC_BOARD_HANDLES = 4, /* a message may call a function of the program's */
    /* Its near message matches, but was sent in another communicator; near_source is a rank of the run. */
    SPC_BOARD_ELSEWHERE = 8,
};

/* MPI functions that may wait: a number in the high bits of the flags; 0: the call is none of MPI's. */
#define SPC_BOARD_MPI_CALLS(X)      \
    X(Recv)                         \
    X(Mprobe)                       \
    X(Probe)                        \
    X(Sendrecv)                     \
    X(Sendrecv_replace)             \
    X(Wait)                         \
    X(Waitall)                      \
    X(Waitany)                      \
    X(Waitsome)                     \
    X(Send)                         \
    X(Ssend)                        \
    X(Rsend)                        \
    X(Bsend)                        \
    X(Isend)                        \
    X(Issend)                       \
    X(Barrier)                      \
    X(Bcast)                        \
    X(Gather)                       \
    X(Gatherv)                      \
    X(Scatter)                      \
    X(Scatterv)                     \
    X(Allgather)                    \
    X(Allgatherv)                   \
    X(Alltoall)                     \
    X(Alltoallv)                    \
    X(Alltoallw)                    \
    X(Reduce)                       \
    X(Allreduce)                    \
    X(Scan)                         \
    X(Exscan)                       \
    X(Reduce_scatter)               \
    X(Reduce_scatter_block)         \
    X(Comm_split)                   \
    X(Comm_split_type)              \
    X(Comm_dup)                     \
    X(Comm_dup_with_info)           \
    X(Comm_create)                  \
    X(Comm_create_group)            \
    X(Comm_create_from_group)       \
    X(Intercomm_create)             \
    X(Intercomm_create_from_groups) \
    X(Intercomm_merge)              \
    X(Cart_create)                  \
    X(Cart_sub)                     \
    X(Graph_create)                 \
    X(Dist_graph_create)            \
    X(Dist_graph_create_adjacent)   \
    X(Neighbor_allgather)           \
    X(Neighbor_allgatherv)          \
    X(Neighbor_alltoall)            \
    X(Neighbor_alltoallv)           \
    X(Neighbor_alltoallw)           \
    X(Win_create)                   \
    X(Win_create_dynamic)           \
    X(Win_allocate)                 \
    X(Win_allocate_shared)          \
    X(Win_free)                     \
    X(Win_fence)                    \
    X(Win_lock)                     \
    X(Win_lock_all)                 \
    X(Win_unlock)                   \
    X(Win_unlock_all)               \
    X(Win_start)                    \
    X(Win_complete)                 \
    X(Win_post)                     \
    X(Win_wait)                     \
    X(File_open)                    \
    X(File_set_view)                \
    X(File_set_size)                \
    X(File_preallocate)             \
    X(File_sync)                    \
    X(File_set_atomicity)           \
    X(File_read_all)                \
    X(File_write_all)               \
    X(File_read_at_all)             \
    X(File_write_at_all)            \
    X(File_read_ordered)            \
    X(File_write_ordered)           \
    X(File_close)                   \
    X(Ibarrier)                     \
    X(Finalize)

typedef enum spc_board_mpi_call {
    SPC_BOARD_MPI_NONE,
#define SPC_BOARD_MPI_ENUM(name) SPC_BOARD_MPI_##name,
    SPC_BOARD_MPI_CALLS(SPC_BOARD_MPI_ENUM)
#undef SPC_BOARD_MPI_ENUM
        SPC_BOARD_MPI_COUNT
} spc_board_mpi_call_t;

enum { SPC_BOARD_MPI_SHIFT = 8 };

/* Ranks are those of the call's communicator. */
typedef struct spc_board_entry {
    uint32_t kind; /* spc_board_kind_t */
    uint32_t doubts; /* SPC_BOARD_TIMED …; 0: only nodes can end the wait */
    uint32_t epoch; /* number of ends (spc_status) that the wait has considered */
    uint32_t word; /* of the node's event, as read before the last test: later events change it */
    uint32_t flags; /* SPC_BOARD_RENDEZVOUS … */
    uint32_t communicator;
    uint32_t rank;
    uint32_t size;
    int32_t source; /* or destination; SPC_ANY_SOURCE */
    int32_t tag;
    int32_t near_source; /* a message here that differs in source or tag; if near_count is not 0 */
    int32_t near_tag;
    uint32_t near_count;
    uint32_t line; /* 0: not known */
    uint64_t since_ns;
    uint64_t phase; /* of RECEIPT: its number; of SEND: the limit in bytes that would be enough, or 0 */
    uint64_t lines_offset; /* of the reducer's lines for that phase, in the segment; of RECEIPT: the row */
    unsigned char
        call[SPC_BOARD_CALL_BYTES]; /* a spc_signature_t, of PHASE and GATHERING; zeros: no collective */
    char function[SPC_BOARD_FUNCTION_BYTES];
    char file[SPC_BOARD_FILE_BYTES];
    char more[SPC_BOARD_MORE_BYTES]; /* further lines for its row in a report, each with its line break */
} spc_board_entry_t;

/* This node and another one, by its rank in the run. */
typedef struct spc_board_pair {
    uint32_t received; /* number of slots of its row that have been read */
    uint32_t queued; /* messages to it that wait for room */
    uint32_t needed; /* 0: no; else one more than its rank in the communicator */
    uint32_t lent; /* 1: it keeps messages of this node beyond its share: they count against the limit */
} spc_board_pair_t;

#define SPC_BOARD_ENTRY_WORDS (sizeof(spc_board_entry_t) / 4)
#define SPC_BOARD_PAIR_WORDS (sizeof(spc_board_pair_t) / 4)

/* The time of the node's first thread, by spc_clock, in a run that counts it (spc_node_times.h). The node writes it,
 * relaxed: the supervisor reads when its process has ended. */
typedef struct spc_board_times {
    _Atomic uint64_t started_ns; /* when its startup ended; 0: it has not */
    _Atomic uint64_t closed_ns; /* 0: it has not closed */
    _Atomic uint64_t core_started_ns; /* the kernel's count of its time without a core, when it started */
    _Atomic uint64_t core_closed_ns; /* and at the last look-up, which is at its close */
    _Atomic uint64_t waiting_since_ns; /* 0: it does not wait */
    _Atomic uint64_t waited_ns; /* of its waits that are over, without its time without a core */
} spc_board_times_t;

typedef struct spc_board_spent { /* a copy */
    uint64_t started_ns;
    uint64_t closed_ns;
    uint64_t core_started_ns;
    uint64_t core_closed_ns;
    uint64_t waiting_since_ns;
    uint64_t waited_ns;
} spc_board_spent_t;

typedef struct spc_board_shared {
    _Atomic uint32_t stuck; /* odd while published */
    _Atomic uint32_t vain; /* polls that found nothing */
    spc_board_times_t times;
    _Atomic uint32_t entry[SPC_BOARD_ENTRY_WORDS];
    _Atomic uint32_t pair[]; /* SPC_BOARD_PAIR_WORDS for each node and for the gateway */
} spc_board_shared_t;

_Static_assert(sizeof(spc_board_entry_t) == 936, "the entry is copied word by word");
_Static_assert(sizeof(spc_board_shared_t) == 992, "spc_board_shared_t lies in shared memory");

uint64_t spc_board_bytes(uint32_t nodes);

/* Called by the node; `pair` has count elements. */
void spc_board_publish(spc_board_shared_t *board, const spc_board_entry_t *entry,
                       const spc_board_pair_t *pair, uint32_t count);
void spc_board_retract(spc_board_shared_t *board);

/* All nodes it needs have to arrive, and its line shows which have. */
static inline bool spc_board_is_phase(const spc_board_entry_t *entry) {
    return entry->kind == SPC_BOARD_PHASE || entry->kind == SPC_BOARD_CYCLE;
}

static inline bool spc_board_is_stuck(uint32_t stuck) {
    return stuck % 2 != 0;
}

static inline uint32_t spc_board_stuck(const spc_board_shared_t *board) {
    /* seq_cst: pairs with publish and retract. The node's actions before either are visible. */
    return atomic_load_explicit(&board->stuck, memory_order_seq_cst);
}

static inline uint32_t spc_board_vain(const spc_board_shared_t *board) {
    return atomic_load_explicit(&board->vain, memory_order_relaxed); /* a hint */
}

spc_board_spent_t spc_board_read_times(const spc_board_shared_t *board);

/* Copies the published board, if it still is published after the copy: `stuck` as read before. */
bool spc_board_read(const spc_board_shared_t *board, uint32_t stuck, spc_board_entry_t *entry);

/* State of one pair; true only as long as `stuck` stays the same, which the reader checks at the end. */
spc_board_pair_t spc_board_read_pair(const spc_board_shared_t *board, uint32_t rank);

#endif
