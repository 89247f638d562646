/* SPDX-License-Identifier: MIT */
/* The calls of a program in C or C++ in the trace of its node. It has their names; their lines nobody tells. */
#include <string.h>

#include "api/spc_api_private.h"
#include "segment/spc_trace.h"

enum { NAMES_MAX = 64, NAME_BYTES = 48 };

typedef struct name {
    _Atomic(const char *) call; /* release by number_of after `number`, acquire by readers */
    uint32_t number;
} name_t;

static name_t names[NAMES_MAX];
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;

/* "spcomm_send()": "send". */
static uint32_t name(spc_trace_t *trace, const char *call) {
    char text[NAME_BYTES] = "";
    const char *begin = strncmp(call, "spcomm_", 7) == 0 ? call + 7 : call;
    strncpy(text, begin, NAME_BYTES - 1);
    text[strcspn(text, "(")] = '\0';
    return spc_trace_name(trace, text);
}

static uint32_t number_of(spc_trace_t *trace, const char *call) {
    uint32_t i = 0;
    for (; i < NAMES_MAX; i++) {
        const char *known = atomic_load_explicit(&names[i].call, memory_order_acquire);
        if (known == call) {
            return names[i].number;
        }
        if (known == NULL) {
            break;
        }
    }
    pthread_mutex_lock(&naming); /* somebody else may have added one meanwhile: then a call has two numbers */
    while (i < NAMES_MAX && atomic_load_explicit(&names[i].call, memory_order_relaxed) != NULL) {
        i++;
    }
    uint32_t number = 0;
    if (i < NAMES_MAX) {
        number = names[i].number = name(trace, call);
        atomic_store_explicit(&names[i].call, call, memory_order_release);
    }
    pthread_mutex_unlock(&naming);
    return number;
}

spc_trace_t *spc_api_enter(const spcomm_t *comm, const char *call) {
    spc_trace_t *trace = comm == NULL || comm->core == NULL ? NULL : spc_comm_trace(comm->core);
    if (trace != NULL) {
        spc_trace_record(trace, &(spc_trace_event_t){.kind = SPC_TRACE_CALL, .what = number_of(trace, call)});
    }
    return trace;
}

void spc_api_leave(spc_trace_t *const *trace) {
    if (*trace != NULL) {
        spc_trace_record(*trace, &(spc_trace_event_t){.kind = SPC_TRACE_RETURN});
    }
}
