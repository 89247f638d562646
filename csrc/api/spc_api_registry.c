/* SPDX-License-Identifier: MIT */
/*
 * The static state of the public C interface. The core has none, since ranks may be threads there; a C program is one
 * process and one node, can call spcomm_startup anywhere, and may forget spcomm_shutdown: someone has to remember.
 */
#include <stdatomic.h>

#include "api/spc_api_private.h"

static _Atomic(spcomm_t *) all;
static pthread_mutex_t startup = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int last_status;
static _Thread_local char sentence[SPC_API_SENTENCE_BYTES];

spcomm_t *spc_api_root(void) {
    /* Acquire pairs with the release in spc_api_keep: the structure is complete. */
    spcomm_t *last = atomic_load_explicit(&all, memory_order_acquire);
    return last == NULL ? NULL : last->root;
}

void spc_api_keep(spcomm_t *comm) {
    comm->next = atomic_load_explicit(&all, memory_order_relaxed);
    /* Release pairs with the acquire in spc_api_root. */
    while (!atomic_compare_exchange_weak_explicit(&all, &comm->next, comm, memory_order_release,
                                                  memory_order_relaxed)) {
    }
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

bool spc_api_loss_was_last(void) {
    return last_status == SPC_ELOST || last_status == SPC_EFINISHED || last_status == SPC_EDISCONNECTED;
}

const char *spcomm_last_error(void) {
    return sentence;
}

spcomm_t *spcomm_current(void) {
    return spc_api_root();
}
