/* SPDX-License-Identifier: MIT */
/*
 * spc_api_private: shared parts of the public C interface (spcomm/spcomm.h). No other file includes it.
 *
 *   spc_api_registry.c     the static state of the process; calls in the trace
 *   spc_api_error.c        statuses, and the sentences of spcomm_last_error
 *   spc_api_startup.c      the run this process was started for; joining, leaving, dividing
 *   spc_api_collective.c   barriers, reductions of numbers and of arrays, bcast, scatter, gather, allgather, alltoall
 *   spc_api_message.c      sending and receiving: data, messages, handlers, coordinated messages
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
    struct spcomm *next; /* all handles of the process: spc_api_registry.c */
    bool asked_for_one;  /* of the root: a run of one node, because the program says so */
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

/* ---- registry: the only static state. A process is one node, so one of each is enough. ---- */

#define SPC_API_SENTENCE_BYTES 2048
#define SPC_API_CALL_BYTES 256 /* of a call's text: more is cut */

spcomm_t *spc_api_root(void);
spcomm_t *spc_api_last(void);       /* the first handle, linked by `next` */
void spc_api_keep(spcomm_t *comm);  /* the first one is the root */
const char *spc_api_program(void);  /* the command that started this program, as far as it is known */
void spc_api_lock_startup(void);    /* two threads may call spcomm_startup at once */
void spc_api_unlock_startup(void);
char *spc_api_sentence(int status); /* this thread's, SPC_API_SENTENCE_BYTES, about to be filled */
bool spc_api_loss_was_last(void);   /* this thread's last failure was caused by lost nodes */
int32_t *spc_api_ended_by(void);    /* of this thread: the tag whose handler ended a call */

/* The number of a call's name in the node's trace; `call` is a literal. 0: none is left, which no program reaches. */
uint32_t spc_api_call_number(spc_trace_t *trace, const char *call);

/* ---- errors: set the sentence and return `status` ---- */

/* "<call>: <meaning of the status here>"; the call as printf. */
int spc_api_fail(spcomm_t *comm, int status, const char *call, ...) __attribute__((format(printf, 3, 4)));

/* The same for a receive: a message that nearly matches is told, too. */
int spc_api_fail_receive(spcomm_t *comm, int status, const char *call, int32_t source, int32_t tag);

/* Sets the whole sentence. */
int spc_api_refuse(int status, const char *sentence, ...) __attribute__((format(printf, 2, 3)));

/* Writes the line of the program that calls into the note of a mismatch; NULL: it is not known. Set by the library of
 * MPI's way into the run, spc_api_binding.c. */
extern void (*spc_api_note_line)(spc_note_t *note);

/* Called before a process that ends with exit code 0 leaves the run; NULL: nothing is to be done. Set as well by
 * spc_api_binding.c. */
extern void (*spc_api_at_end)(void);

/* As spc_api_fail, for a collective call that may have timed out. `doing`: this node's call, for SPC_EMISMATCH; NULL:
 * the signature gives it. */
int spc_api_fail_collective(spcomm_t *comm, int status, const char *call, const char *doing);

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

/* Calls the handlers of messages that have come, in all communicators: spc_comm_options_t.handle. */
int spc_api_handle(void *argument);

/* Before a part is destroyed. */
void spc_api_drop_handlers(spcomm_t *comm);

/* ---- trace ---- */

/* Traces this call from here to the end of the block, if its node has a trace. `call` is a literal. */
#define SPC_API_RECORD(comm, call) \
    spc_trace_t *recorded __attribute__((cleanup(spc_api_leave), unused)) = spc_api_enter(comm, call)

spc_trace_t *spc_api_enter(const spcomm_t *comm, const char *call); /* NULL: nothing is traced */
void spc_api_leave(spc_trace_t *const *trace);

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
