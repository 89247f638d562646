/* SPDX-License-Identifier: MIT */
/*
 * spc_mpi: the MPI library on the core; shared parts of csrc/mpi. Only files of csrc/mpi include it.
 *
 *   spc_mpi_handle.c     handles to objects
 *   spc_mpi_error.c      error classes and sentences, error handlers
 *   spc_mpi_start.c      start and end, sessions, time, memory
 *   spc_mpi_attribute.c  attributes and info
 *   type/                spc_mpi_type.c: datatypes; spc_mpi_type_query.c answers questions about them, spc_mpi_pack.c
 *                        moves data by them; spc_mpi_op.c: operators
 *   message/             spc_mpi_request.c: requests and statuses; spc_mpi_message.c: messages, spc_mpi_partitioned.c:
 *                        those of several parts; spc_mpi_diagnose.c: lines of the program, and warnings
 *   comm/                spc_mpi_group.c: groups; spc_mpi_comm.c: communicators, spc_mpi_intercomm.c: those of two
 *                        groups; spc_mpi_collective.c: collectives that move data, spc_mpi_reduce.c: that combine it,
 *                        spc_mpi_later.c: that return a request; spc_mpi_topology.c: topologies, spc_mpi_neighbor.c:
 *                        collectives of neighbours
 *   window/              one-sided communication
 *   file/                files
 *
 * The headers of the folders include this one. Those of message/ know type/, the last three know both, but not each
 * other.
 *
 * One source for two ABIs: it names constants and types, which come from the mpi.h that generate.py makes for each, and
 * looks into a handle's value only in spc_mpi_handle.c. Counts are MPI_Count here; the entry points, also made from
 * functions.txt, convert ints. MPI_Send and MPI_Send_c are spc_mpi_send.
 *
 * Functions return MPI's error code. A caller's handle, rank, count or pointer may be wrong: spc_mpi_fail makes the
 * code, and keeps a sentence for it; the error handler decides whether the program sees it. Any thread may call any
 * function (MPI_THREAD_MULTIPLE).
 *
 * The process has one state, spc_mpi: a process is one node.
 */
#ifndef SPC_MPI_H
#define SPC_MPI_H

#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/spc_collect.h"
#include "comm/spc_comm_private.h"
#include "comm/spc_request.h"

#define SPC_MPI_TRY(expression)          \
    do {                                 \
        const int tried_ = (expression); \
        if (tried_ != MPI_SUCCESS) {     \
            return tried_;               \
        }                                \
    } while (0)

/* ---- counts ---- */

/* An array of counts or displacements: of int, or in a _c function of MPI_Count or MPI_Aint, which are equally wide. */
typedef struct spc_mpi_counts {
    const void *at; /* may be NULL */
    bool is_wide;
} spc_mpi_counts_t;

static inline MPI_Count spc_mpi_count(spc_mpi_counts_t counts, int64_t index) {
    return counts.is_wide ? ((const MPI_Count *)counts.at)[index] : ((const int *)counts.at)[index];
}

/* Copies a text, with its end, into the caller's memory; MPI_SUCCESS. */
static inline int spc_mpi_give_text(const char *text, char *to, int *length) {
    const size_t bytes = strlen(text);
    memcpy(to, text, bytes + 1);
    *length = (int)bytes;
    return MPI_SUCCESS;
}

/* For an int that a caller gets: MPI_UNDEFINED if the value does not fit. */
static inline int spc_mpi_narrow(MPI_Count value) {
    return value > INT_MAX || value < INT_MIN ? MPI_UNDEFINED : (int)value;
}

/* ---- objects ---- */

typedef struct spc_mpi_attribute {
    int key;
    void *value;
    struct spc_mpi_attribute *next;
} spc_mpi_attribute_t;

typedef struct spc_mpi_group {
    MPI_Group handle;
    int size;
    int rank;    /* of this node, or MPI_UNDEFINED */
    int members[]; /* ranks in the run */
} spc_mpi_group_t;

typedef struct spc_mpi_type spc_mpi_type_t; /* spc_mpi_type.h */
typedef struct spc_mpi_topology spc_mpi_topology_t; /* spc_mpi_topology.c */

typedef struct spc_mpi_request spc_mpi_request_t; /* spc_mpi_request.h */

/* The program's memory for buffered sends. */
typedef struct spc_mpi_buffer {
    void *memory;
    MPI_Count bytes;
} spc_mpi_buffer_t;

typedef struct spc_mpi_channel spc_mpi_channel_t; /* spc_mpi_partitioned.c */

/* A communicator, of one group or (an intercommunicator) of two. The core of an intercommunicator holds both groups:
 * the local group's ranks begin at `local_first`, the remote group's at `remote_first`. */
typedef struct spc_mpi_comm {
    spc_comm_t *core; /* NULL until the request of MPI_Comm_idup is complete */
    _Atomic int references; /* the handle's, and each open request's; the last one closes the core */
    MPI_Comm handle;
    int rank;
    int size;
    spc_mpi_group_t *group;
    spc_mpi_group_t *remote; /* NULL: of one group */
    int local_first;
    int remote_first;
    struct spc_mpi_comm *local; /* of two groups: the local group's own, which programs never see */
    spc_mpi_topology_t *topology; /* NULL: none */
    MPI_Errhandler errhandler;
    MPI_Info info;
    spc_mpi_attribute_t *attributes;
    /* The number of persistent collectives made so far; relaxed, because it orders nothing else. */
    _Atomic uint32_t persistent;
    spc_mpi_buffer_t buffer;
    spc_mpi_channel_t *channels;
    char name[MPI_MAX_OBJECT_NAME];
} spc_mpi_comm_t;

typedef struct spc_mpi {
    spc_mpi_comm_t *world; /* NULL before MPI_Init and the first session, and between two runs */
    spc_mpi_comm_t *self;
    MPI_Errhandler world_errhandler; /* of both while they are NULL */
    MPI_Errhandler self_errhandler;
    spc_node_t *node;
    spc_trace_t *tracing; /* NULL: calls are not traced */
    bool is_watched; /* by spc_mpi_enter_watched: traced, not started yet, or finished */
    pthread_t main_thread;
    unsigned runs; /* that this process has taken part in: several as a node of a Cluster */
    int provided; /* the level of threads */
    bool is_strict; /* --strict: doubtful calls are errors, and requests note their lines in Python, too */
    bool is_started; /* by MPI_Init */
    bool is_finished;
} spc_mpi_t;

extern spc_mpi_t spc_mpi;

/* The name of the MPI function that this thread is in, and the line that called it. */
extern _Thread_local const char *spc_mpi_call __attribute__((tls_model("initial-exec")));
extern _Thread_local spcomm_mpi_here_t spcomm_mpi_here __attribute__((tls_model("initial-exec")));

/* Whether the call of this thread that makes a datatype is a _c form. */
extern _Thread_local bool spc_mpi_call_is_large __attribute__((tls_model("initial-exec")));

/* ---- entry points ---- */

int spc_mpi_enter_watched(const char *call, bool at_any_time);
void spc_mpi_trace_end(void);

/* `at_any_time`: the call is allowed before MPI_Init and after MPI_Finalize, too. Others fail then: MPI_ERR_OTHER. */
static inline int spc_mpi_enter(const char *call, bool at_any_time) {
    spc_mpi_call = call;
    return __builtin_expect(spc_mpi.is_watched, 0) ? spc_mpi_enter_watched(call, at_any_time) : MPI_SUCCESS;
}

static inline int spc_mpi_leave(int code) {
    if (__builtin_expect(spc_mpi.tracing != NULL, 0)) {
        spc_mpi_trace_end();
    }
    return code;
}

/* Refuses, in an entry point, an argument that no implementation could use. */
#define SPC_MPI_REFUSE(condition, name)                      \
    do {                                                     \
        if (__builtin_expect((condition), 0)) {              \
            return spc_mpi_leave(spc_mpi_refuse_null(name)); \
        }                                                    \
    } while (0)
#define SPC_MPI_CHECK_INFO(info)                                                                    \
    do {                                                                                            \
        if (__builtin_expect((info) != MPI_INFO_NULL && !spc_mpi_is_info(info), 0)) {               \
            return spc_mpi_leave(                                                                   \
                spc_mpi_fail(NULL, MPI_ERR_INFO, "%s is not a valid handle, or was freed", #info)); \
        }                                                                                           \
    } while (0)
int spc_mpi_refuse_null(const char *name);
bool spc_mpi_is_info(MPI_Info info);

/* A function that is not in this library. */
int spc_mpi_left_out(const char *call);

/* PMPI_Send is the function and MPI_Send a weak name of it, so that a profiling tool can define its own MPI_Send. */
#ifdef __APPLE__
#define SPC_MPI_ALIAS(result, name, parameters) __asm__(".globl _" #name "\n_" #name " = _P" #name);
#else
#define SPC_MPI_ALIAS(result, name, parameters) \
    result name parameters __attribute__((weak, alias("P" #name)));
#endif

#include "spc_mpi_list.h"

enum { SPC_MPI_PLACE_BYTES = 128 };

/* Keep a buffer for buffered sends, and give it back: the library copies anyway. spc_mpi_message.c. */
int spc_mpi_attach(const spc_mpi_comm_t *comm, spc_mpi_buffer_t *place, void *buffer, MPI_Count size);
int spc_mpi_detach(spc_mpi_buffer_t *place, void *buffer_addr, MPI_Count *size);

/* ---- handles: spc_mpi_handle.c ---- */

typedef enum spc_mpi_kind {
    SPC_MPI_COMM = 1,
    SPC_MPI_GROUP,
    SPC_MPI_TYPE,
    SPC_MPI_REQUEST,
    SPC_MPI_OP,
    SPC_MPI_INFO,
    SPC_MPI_ERRHANDLER,
    SPC_MPI_MESSAGE,
    SPC_MPI_WINDOW,
    SPC_MPI_FILE,
    SPC_MPI_SESSION,
    SPC_MPI_KINDS,
} spc_mpi_kind_t;

/* A new handle for this object, as an integer for a cast to the ABI's type; 0: too many objects, or no memory. */
intptr_t spc_mpi_handle_create(spc_mpi_kind_t kind, void *object);

/* The object; NULL for anything that is not a handle of this kind, or was freed. No lock, any thread. */
void *spc_mpi_handle_find(spc_mpi_kind_t kind, intptr_t handle);

void spc_mpi_handle_free(spc_mpi_kind_t kind, intptr_t handle);

/* Frees one of the handles in use, and returns its object; NULL: none are in use. */
void *spc_mpi_handle_free_any(spc_mpi_kind_t kind);

/* ---- errors: spc_mpi_error.c ---- */

/* Makes the code of an error of this class with its sentence, "<MPI function>: <text>", and calls the error handler of
 * `comm`; NULL: of MPI_COMM_SELF. Returns the code if the program is to see it. */
int spc_mpi_fail(const spc_mpi_comm_t *comm, int error_class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with another object's error handler, which is called with this handle; for windows and files. */
int spc_mpi_fail_by(MPI_Errhandler errhandler, spc_mpi_kind_t kind, intptr_t handle, int error_class,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Error handlers of any kind of object. */
int spc_mpi_errhandler_make(void *function, MPI_Errhandler *errhandler);
int spc_mpi_check_errhandler(MPI_Errhandler errhandler);
int spc_mpi_raise(MPI_Errhandler errhandler, intptr_t handle, int code);

/* The highest error code in use, of the program's own, too. */
int spc_mpi_last_code(void);

/* MPI_SUCCESS for SPC_OK; else fails with the core's explanation. */
int spc_mpi_check(const spc_mpi_comm_t *comm, int status);

/* Fails with this call's explanation of the status, followed by `more`. */
int spc_mpi_check_as(const spc_mpi_comm_t *comm, int status, const char *call, const char *more);

/* Ends the process, and with it the run, as MPI_Abort does. */
_Noreturn void spc_mpi_end(int exit_code);

/* ---- communicators: spc_mpi_comm.c ---- */

/* MPI_SUCCESS and the object, or MPI_ERR_COMM; MPI_ERR_OTHER between two runs. The other function also gives one of
 * MPI_Comm_idup that has no core yet. */
int spc_mpi_get_comm(MPI_Comm handle, spc_mpi_comm_t **comm);
int spc_mpi_get_any_comm(MPI_Comm handle, spc_mpi_comm_t **comm);

/* The same for a communicator of one group. */
int spc_mpi_get_intra(MPI_Comm handle, spc_mpi_comm_t **comm);

/* Wraps a core, which the communicator then owns, and makes its handle. NULL: no memory. */
spc_mpi_comm_t *spc_mpi_comm_wrap(spc_comm_t *core, const spc_mpi_comm_t *parent);

/* The same; MPI_ERR_NO_MEM: the core is closed. */
int spc_mpi_comm_adopt(spc_comm_t *core, const spc_mpi_comm_t *parent, spc_mpi_comm_t **made);
void spc_mpi_core_close(spc_comm_t *core);

void spc_mpi_comm_retain(spc_mpi_comm_t *comm);
void spc_mpi_comm_release(spc_mpi_comm_t *comm);

/* Frees its handle, and releases the handle's reference. */
void spc_mpi_comm_discard(spc_mpi_comm_t *comm);

/* A communicator of this group, whose members are in `comm` and all call it with the same tag. Tags below
 * SPC_MPI_GROUP_TAGS are the program's; the library makes the others, from texts and for intercommunicators. */
#define SPC_MPI_GROUP_TAGS (1u << 28)
int spc_mpi_comm_of_group(spc_mpi_comm_t *comm, const spc_mpi_group_t *group, uint32_t tag,
                          spc_mpi_comm_t **made);
uint32_t spc_mpi_hash_tag(const char *text); /* NULL is allowed */

/* Gives an intercommunicator the local group's own communicator, with this core, which is closed after an error. */
int spc_mpi_intercomm_give_local(spc_mpi_comm_t *comm, spc_comm_t *own);

/* MPI_Comm_split of an intercommunicator; *made is NULL if the new one has no members in one of the groups. */
int spc_mpi_intercomm_split(spc_mpi_comm_t *comm, int64_t color, int key, spc_mpi_comm_t **made);

/* The number of ranks that messages may name: the remote group's, if there is one. */
static inline int spc_mpi_peers(const spc_mpi_comm_t *comm) {
    return comm->remote != NULL ? comm->remote->size : comm->size;
}

/* A peer's rank in the core, and back. */
static inline int spc_mpi_to_core(const spc_mpi_comm_t *comm, int rank) {
    return comm->remote != NULL ? rank + comm->remote_first : rank;
}

static inline int spc_mpi_from_core(const spc_mpi_comm_t *comm, int rank) {
    return comm->remote != NULL ? rank - comm->remote_first : rank;
}

/* The number of a persistent collective: the same on all nodes, because all make them in the same order. */
static inline int spc_mpi_next_persistent(spc_mpi_comm_t *comm) {
    return (int)(atomic_fetch_add_explicit(&comm->persistent, 1, memory_order_relaxed) & INT32_MAX);
}

/* MPI_ERR_RANK unless it is a peer or, where the caller allows it, MPI_PROC_NULL or MPI_ANY_SOURCE. `role`: "dest". */
int spc_mpi_check_rank(const spc_mpi_comm_t *comm, const char *role, int rank, bool any_is_allowed);

/* Bytes between members, for this library's own use; ranks of the core, tags of INTERNAL from SPC_MPI_TAGS on. */
#define SPC_MPI_TAGS 0x10000000
/* The tags of collectives that return a request: this one, or this one + the number of a persistent collective. */
#define SPC_MPI_TAGS_LATER 0x14000000
#define SPC_MPI_TAGS_LATER_MAX 0x3ffffff
/* Those between neighbours: + the number of the neighbour, and 2^10 times that of a persistent collective. */
#define SPC_MPI_TAGS_NEIGHBOR 0x18000000
#define SPC_MPI_TAGS_NEIGHBOR_MAX 0xffff
#define SPC_MPI_TAGS_INTERCOMM 0x1c000000 /* + 26 bits of the tag of MPI_Intercomm_create; up to 2^29 */
#define SPC_MPI_TAGS_PARTITIONED 0x20000000 /* up to 2^31 */
int spc_mpi_send_bytes(const spc_mpi_comm_t *comm, int destination, int tag, const void *data,
                       uint64_t bytes);
int spc_mpi_recv_bytes(const spc_mpi_comm_t *comm, int source, int tag, void *data, uint64_t bytes);

void spc_mpi_channels_free(spc_mpi_channel_t *channels);

/* ---- groups: spc_mpi_group.c ---- */

/* Room for `size` members, which the caller fills, before spc_mpi_group_publish finds this node's rank. */
spc_mpi_group_t *spc_mpi_group_create(int size);
spc_mpi_group_t *spc_mpi_group_copy(const spc_mpi_group_t *from); /* NULL: no memory */
int spc_mpi_group_publish(spc_mpi_group_t *group, MPI_Group *handle);
int spc_mpi_get_group(MPI_Group handle, const spc_mpi_group_t **group);
/* MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL. */
int spc_mpi_groups_relate(const spc_mpi_group_t *left, const spc_mpi_group_t *right);
int spc_mpi_group_find(const spc_mpi_group_t *group, int member); /* its rank, or -1 */

/* ---- attributes and info: spc_mpi_attribute.c ---- */

int spc_mpi_attribute_set(intptr_t owner, spc_mpi_attribute_t **list, int key, void *value);
int spc_mpi_attribute_get(const spc_mpi_attribute_t *list, int key, void *value, int *flag);
int spc_mpi_attribute_delete(intptr_t owner, spc_mpi_attribute_t **list, int key);
int spc_mpi_attributes_copy(intptr_t owner, const spc_mpi_attribute_t *from, spc_mpi_attribute_t **to);
int spc_mpi_attributes_free(intptr_t owner, spc_mpi_attribute_t **list);

int spc_mpi_info_copy(MPI_Info info, MPI_Info *copy); /* an empty one for MPI_INFO_NULL */

/* The hints that the standard defines for a kind of object. A hint with a preset has that value until the program sets
 * another; nothing in this library depends on any. */
typedef struct spc_mpi_hint {
    const char *key; /* NULL: the end of the list */
    const char *preset; /* or NULL */
} spc_mpi_hint_t;
extern const spc_mpi_hint_t spc_mpi_comm_hints[], spc_mpi_window_hints[], spc_mpi_file_hints[];

/* Adds the hints of `info` to those of an object, which are MPI_INFO_NULL at first; ignores other keys. */
int spc_mpi_hints_set(const spc_mpi_hint_t *hints, MPI_Info info, MPI_Info *own);
int spc_mpi_hints_get(const spc_mpi_hint_t *hints, MPI_Info own, MPI_Info *info_used);

/* ---- topologies: spc_mpi_topology.c ---- */

spc_mpi_topology_t *spc_mpi_topology_copy(const spc_mpi_topology_t *from); /* NULL for NULL */
void spc_mpi_topology_free(spc_mpi_topology_t *topology);

/* ---- collectives: spc_mpi_collective.c ---- */

int spc_mpi_barrier_inside(const spc_mpi_comm_t *comm);
int spc_mpi_bcast_bytes(const spc_mpi_comm_t *comm, void *data, uint64_t bytes, int root);

/* Each member's bytes, in the order of ranks. */
int spc_mpi_allgather_bytes(const spc_mpi_comm_t *comm, const void *mine, uint64_t bytes, void *all);

#endif
