/* SPDX-License-Identifier: MIT */
/*
 * Handlers of active messages. The core files their messages under a context of their own (spc_comm_handle). The call
 * that finds them takes them here and passes them to the program, without any lock.
 */
#include <stdlib.h>

#include "api/spc_api_private.h"

/* With the lock; NULL: there is none. */
static spc_api_handler_t *find(const spcomm_t *comm, int32_t tag) {
    const uint32_t count = atomic_load_explicit(&comm->handler_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        if (comm->handlers[i].tag == tag) {
            return &comm->handlers[i];
        }
    }
    return NULL;
}

static bool has_handlers(const spcomm_t *comm) {
    /* Relaxed: the lock, taken next, orders the reads of the list; a handler that is being registered may be missed. */
    return atomic_load_explicit(&comm->handler_count, memory_order_relaxed) != 0;
}

bool spc_api_has_handler(spcomm_t *comm, int32_t tag) {
    if (!has_handlers(comm)) {
        return false;
    }
    pthread_mutex_lock(&comm->lock);
    const bool found = find(comm, tag) != NULL;
    pthread_mutex_unlock(&comm->lock);
    return found;
}

/* ---- registering */

/* With the lock. A handler is in place before any message is filed for it. */
static int add_handler(spcomm_t *comm, const spc_api_handler_t *handler) {
    spc_api_handler_t *known = find(comm, handler->tag);
    if (known != NULL) {
        *known = *handler;
        return SPC_OK;
    }
    const uint32_t count = atomic_load_explicit(&comm->handler_count, memory_order_relaxed);
    spc_api_handler_t *grown = realloc(comm->handlers, (count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return SPC_ENOMEM;
    }
    grown[count] = *handler;
    comm->handlers = grown;
    atomic_store_explicit(&comm->handler_count, count + 1, memory_order_relaxed);
    const int status = spc_comm_handle(comm->core, handler->tag);
    if (status != SPC_OK) {
        atomic_store_explicit(&comm->handler_count, count, memory_order_relaxed);
    }
    return status;
}

int spcomm_handler(spcomm_t *comm, int32_t tag, spcomm_handler_t *handler, void *argument) {
    static const char call[] = "spcomm_handler()";
    const spc_api_handler_t made = {tag, handler, argument};
    SPC_API_RECORD(comm, call);
    int status = spc_api_check(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    if (tag < 0) {
        return spc_api_refuse(SPC_ETAG, "%s: there is no tag %d; tags are 0 to %d", call, tag,
                              SPCOMM_TAG_MAX);
    }
    if (handler == NULL) {
        return spc_api_refuse(
            SPC_EINVAL, "%s: handler is NULL; it is the function that takes messages of tag %d", call, tag);
    }
    pthread_mutex_lock(&comm->lock);
    status = add_handler(comm, &made);
    pthread_mutex_unlock(&comm->lock);
    return spc_api_fail(comm, status, "%s", call);
}

void spc_api_drop_handlers(spcomm_t *comm) {
    pthread_mutex_lock(&comm->lock);
    atomic_store_explicit(&comm->handler_count, 0, memory_order_relaxed);
    free(comm->handlers);
    comm->handlers = NULL;
    pthread_mutex_unlock(&comm->lock);
}

/* ---- calling */

/* Takes the next message and finds its handler. False: there is none. Without memory the message stays for the next
 * call. */
static bool take(spcomm_t *comm, spcomm_message_t *message, spc_api_handler_t *handler) {
    spc_message_t found;
    pthread_mutex_lock(&comm->lock);
    bool taken = has_handlers(comm) && spc_comm_take_handled(comm->core, &found) == SPC_OK;
    if (taken) {
        *handler = *find(comm, found.tag);
        taken = spc_api_decode(comm, &found, true, message) == SPC_OK;
        if (!taken) {
            (void)spc_comm_put_back(comm->core, &found);
        }
    }
    pthread_mutex_unlock(&comm->lock);
    return taken;
}

static void record(const spcomm_t *comm, spc_trace_kind_t kind, const spcomm_message_t *message) {
    spc_trace_t *trace = spc_comm_trace(comm->root->core);
    if (trace == NULL) {
        return;
    }
    spc_trace_event_t event = {.kind = (uint8_t)kind};
    if (message != NULL) {
        event.peer = (int32_t)spc_comm_rank_in_run(comm->core, (uint32_t)message->source);
        event.tag = message->tag;
    }
    spc_trace_record(trace, &event);
}

int spc_api_run_handlers(spcomm_t *comm) {
    spcomm_message_t message;
    spc_api_handler_t handler;
    while (has_handlers(comm) && take(comm, &message, &handler)) {
        record(comm, SPC_TRACE_HANDLE, &message);
        const int answer = handler.function(comm, &message, handler.argument);
        record(comm, SPC_TRACE_HANDLED, NULL);
        if (answer != 0) {
            *spc_api_ended_by() = handler.tag;
            return SPC_EINTERRUPTED;
        }
    }
    return SPC_OK;
}

int spc_api_handle(void *argument) {
    (void)argument;
    int status = SPC_OK;
    for (spcomm_t *comm = spc_api_last(); comm != NULL && status == SPC_OK; comm = comm->next) {
        status = spc_api_run_handlers(comm);
    }
    return status;
}
