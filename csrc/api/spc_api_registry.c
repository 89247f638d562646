/* SPDX-License-Identifier: MIT */
/*
 * The static state of the public C interface. The core has none, since ranks may be threads there. A C program is one
 * process and one node, can call spcomm_startup anywhere, and may forget spcomm_shutdown: so this file remembers.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* program_invocation_name */
#endif
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "api/spc_api_private.h"

enum { CALLS_MAX = 128, CALL_NAME_BYTES = 48 };

typedef struct call_number {
    _Atomic(const char *) call; /* release by spc_api_call_number after `number`, acquire by the same */
    uint32_t number;
} call_number_t;

static _Atomic(spcomm_t *) all;
static pthread_mutex_t startup = PTHREAD_MUTEX_INITIALIZER;
static call_number_t calls[CALLS_MAX];
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int last_status;
static _Thread_local int32_t ended_by;
static _Thread_local char sentence[SPC_API_SENTENCE_BYTES];

spcomm_t *spc_api_last(void) {
    /* Acquire pairs with the release in spc_api_keep: the structure is complete. */
    return atomic_load_explicit(&all, memory_order_acquire);
}

spcomm_t *spc_api_root(void) {
    spcomm_t *last = spc_api_last();
    return last == NULL ? NULL : last->root;
}

void spc_api_keep(spcomm_t *comm) {
    comm->next = atomic_load_explicit(&all, memory_order_relaxed);
    /* Release pairs with the acquire in spc_api_root. */
    while (!atomic_compare_exchange_weak_explicit(&all, &comm->next, comm, memory_order_release,
                                                  memory_order_relaxed)) {
    }
}

const char *spc_api_program(void) {
#ifdef __GLIBC__
    return program_invocation_name;
#else
    return "./program";
#endif
}

void spc_api_lock_startup(void) {
    pthread_mutex_lock(&startup);
}

void spc_api_unlock_startup(void) {
    pthread_mutex_unlock(&startup);
}

char *spc_api_sentence(int status) {
    last_status = status;
    return sentence;
}

int32_t *spc_api_ended_by(void) {
    return &ended_by;
}

bool spc_api_loss_was_last(void) {
    return last_status == SPC_ELOST || last_status == SPC_EFINISHED || last_status == SPC_EDISCONNECTED;
}

const char *spcomm_last_error(void) {
    return sentence;
}

spcomm_t *spcomm_current(void) {
    return spc_api_root();
}

/* ---- trace: the calls of C and C++ programs. Call names are recorded; C programs report no call sites. */

/* "spcomm_send()": "send". */
static uint32_t name_call(spc_trace_t *trace, const char *call) {
    char text[CALL_NAME_BYTES] = "";
    strncpy(text, strncmp(call, "spcomm_", 7) == 0 ? call + 7 : call, CALL_NAME_BYTES - 1);
    text[strcspn(text, "(")] = '\0';
    return spc_trace_name(trace, text);
}

/* Index of `call`, or the first free one from `at` on. */
static uint32_t find_call(const char *call, uint32_t at) {
    const char *known;
    while (at < CALLS_MAX && (known = atomic_load_explicit(&calls[at].call, memory_order_acquire)) != NULL
           && known != call) {
        at++;
    }
    return at;
}

uint32_t spc_api_call_number(spc_trace_t *trace, const char *call) {
    uint32_t at = find_call(call, 0);
    if (at < CALLS_MAX && atomic_load_explicit(&calls[at].call, memory_order_acquire) == call) {
        return calls[at].number;
    }
    pthread_mutex_lock(&naming);
    at = find_call(call, at); /* another thread may have been first */
    uint32_t number = 0;
    if (at < CALLS_MAX) {
        const bool is_new = atomic_load_explicit(&calls[at].call, memory_order_acquire) == NULL;
        number = is_new ? name_call(trace, call) : calls[at].number;
        calls[at].number = number;
        atomic_store_explicit(&calls[at].call, call, memory_order_release);
    }
    pthread_mutex_unlock(&naming);
    return number;
}

spc_trace_t *spc_api_enter(const spcomm_t *comm, const char *call) {
    spc_trace_t *trace = comm == NULL || comm->core == NULL ? NULL : spc_comm_trace(comm->core);
    if (trace != NULL) {
        spc_comm_trace_call(comm->core, spc_api_call_number(trace, call), 0, 0);
    }
    return trace;
}

void spc_api_leave(spc_trace_t *const *trace) {
    if (*trace != NULL) {
        spc_trace_record(*trace, &(spc_trace_event_t){.kind = SPC_TRACE_RETURN});
    }
}
