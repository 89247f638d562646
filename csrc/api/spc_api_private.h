/* SPDX-License-Identifier: MIT */
/*
 * spc_api_private: shared parts of the public C interface (spcomm/spcomm.h). No other file includes it.
 *
 *   spc_api_call.c         common to all calls: checks, the sentences of spcomm_last_error, the trace
 *   spc_api_collective.c   barriers, reductions of numbers and of arrays, bcast, scatter, gather, allgather, alltoall
 *   spc_api_message.c      sending and receiving: data, messages, handlers, coordinated messages
 *   spc_api_startup.c      the run this process was started for; joining, leaving, dividing; all communicators
 *
 * The interface adds no protocol: all exact behaviour is in spc_comm. These files check arguments, turn timeouts into
 * deadlines and statuses into sentences, and hand memory over to the program.
 */
#ifndef SPC_API_PRIVATE_H
#define SPC_API_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "comm/spc_collect.h"
#include "comm/spc_comm.h"
#include "fork/spc_fork.h"
#include "spcomm/spcomm.h"

/* A function that takes all messages of a tag. */
typedef struct spc_api_handler {
    int32_t tag;
    spcomm_handler_t *function;
    void *argument;
} spc_api_handler_t;

/* State that an unfinished collective call leaves for its continuation. Belongs to the thread inside. */
typedef struct spc_api_left {
    spc_gathering_t *gathering; /* NULL: none */
    uint64_t form;              /* of the data that this node gave to it: their formats and lengths */
    spc_collect_t *collect;     /* NULL: none */
    spc_collect_call_t call;    /* of collect */
    uint64_t *counts;
} spc_api_left_t;

/* A communicator's handle. It is never freed: a call after shutdown finds it closed. Their number is that of the
 * communicators made. */
struct spcomm {
    spc_comm_t *core; /* NULL: a part that was shut down */
    uint32_t rank;
    uint32_t size;
    int32_t group;
    uint64_t start_ns;
    struct spcomm *root; /* the run's own */
    struct spcomm *next; /* all handles of the process: spc_api_startup.c */
    /* The next three are the root's. The command that started this program, as far as it is known. */
    const char *program;
    void (*at_end)(void); /* before a process that ends with exit code 0 leaves the run; NULL: nothing */
    bool asked_for_one; /* a run of one node, because the program says so */
    spc_fork_t *fork;    /* NULL unless this process or its parent forked the nodes */
    int report;          /* descriptor: where a failing node reports its reason; -1: nowhere */
    uint64_t report_inode; /* identity of the root's file: a program may close it, and open others */
    /* Guards the fuzzy barrier entered without a handle, and handlers; `core`, where these use it. */
    pthread_mutex_t lock;
    uint64_t fuzzy_phase;
    bool in_fuzzy;
    spc_api_handler_t *handlers;
    _Atomic uint32_t handler_count; /* relaxed: read before the lock is taken */
    _Atomic bool inside; /* a thread is in a call that uses `left`: acquire by enter, release by leave */
    spc_api_left_t left;
};

/* "run", or "part" for the result of a split. */
static inline const char *spc_api_kind(const spcomm_t *comm) {
    return comm->root == comm ? "run" : "part";
}

/* ---- errors: set the sentence and return `status` ---- */

/* "<call>: <meaning of the status here>"; the call as printf. */
int spc_api_fail(spcomm_t *comm, int status, const char *call, ...) __attribute__((format(printf, 3, 4)));

/* Sets the whole sentence. */
int spc_api_refuse(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As spc_api_fail, for a collective call that may have timed out. `mine`: this node's call and line, for
 * SPC_EMISMATCH; NULL or without words: the signature gives the call. */
int spc_api_fail_collective(spcomm_t *comm, int status, const char *call, const spc_note_t *mine);

/* The last failure of this thread. */
typedef struct spc_api_outcome {
    int status;
    int32_t ended_by; /* the tag whose handler ended the call */
} spc_api_outcome_t;

spc_api_outcome_t *spc_api_last_outcome(void);

/* The report on the last wait of this thread, which spc_comm_watch_itself has judged; the caller frees it. NULL: no
 * memory. */
char *spc_api_report_wait(const spcomm_t *root);

/* SPC_OK if calls on `comm` are allowed, else the status, with its sentence. */
int spc_api_check(spcomm_t *comm, const char *call);

/* SPC_ERANK, with its sentence. `role` follows the rank; `constants`, which are allowed too, the ranks that exist. */
int spc_api_refuse_rank(const spcomm_t *comm, const char *call, int32_t rank, const char *role,
                        const char *constants);

/* ---- collective calls that can be continued ---- */

/* After close: no call continues the one that was left. */
void spc_api_drop_left(spcomm_t *comm);

/* ---- handlers ---- */

/* Calls the handlers of messages that have come. SPC_OK; SPC_EINTERRUPTED: a handler ended this call. */
int spc_api_run_handlers(spcomm_t *comm);

/* ---- trace ---- */

/* Traces this call from here to the end of the block, if its node has a trace. `call` is a literal. */
#define SPC_API_RECORD(comm, call) \
    spc_trace_t *recorded __attribute__((cleanup(spc_api_leave), unused)) = spc_api_enter(comm, call)

spc_trace_t *spc_api_enter(const spcomm_t *comm, const char *call); /* NULL: nothing is traced */

static inline void spc_api_leave(spc_trace_t *const *trace) {
    if (*trace != NULL) {
        spc_trace_record(*trace, &(spc_trace_event_t){.kind = SPC_TRACE_RETURN});
    }
}

/* ---- data ---- */

enum {
    SPC_API_META_MAX = sizeof(spc_array_meta_t) + 8 * SPCOMM_DIMENSIONS_MAX + 64,
};

typedef struct spc_api_encoded {
    spc_payload_t payload;
    _Alignas(8) unsigned char meta[SPC_API_META_MAX];
} spc_api_encoded_t;

/* Fills the payload, which refers to `data` and `encoded`. SPC_EINVAL with a sentence. */
int spc_api_encode(const char *call, const spcomm_data_t *data, spc_api_encoded_t *encoded);

/* Turns the core's message into the program's: afterwards it has been released, or belongs to `message`. With `any`
 * every format is given as it is. SPC_EFORMAT, SPC_ENOMEM: nothing has changed, and the caller gives it back. */
int spc_api_decode(spcomm_t *comm, spc_message_t *found, bool any, spcomm_message_t *message);

#endif
