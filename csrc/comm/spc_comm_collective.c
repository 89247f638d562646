/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "comm/spc_comm_perturb.h"
#include "comm/spc_comm_private.h"
#include "diagnose/spc_call_text.h"
#include "diagnose/spc_mismatch.h"

/* ---- one thread at a time ---- */

bool spc_comm_enter(spc_comm_t *comm) {
    uintptr_t nobody = 0;
    uintptr_t self = spc_node_this_thread();
    /* Acquire pairs with the release in leave: the last thread's changes to the reducer are visible. */
    return atomic_compare_exchange_strong_explicit(&comm->collective, &nobody, self, memory_order_acquire,
                                                   memory_order_relaxed)
           || (nobody == self && !comm->waits);
}

void spc_comm_leave(spc_comm_t *comm) { /* pairs with enter */
    atomic_store_explicit(&comm->collective, 0, memory_order_release);
}

int spc_comm_run_collective(spc_comm_t *comm, spc_comm_inside_t *inside, void *call) {
    int passed = spc_comm_check_callable(comm);
    int status = spc_comm_perturb(comm, passed);
    if (status != SPC_OK) {
        return status;
    }
    if (!spc_comm_enter(comm)) {
        return SPC_EBUSY;
    }
    status = inside(comm, call);
    spc_comm_leave(comm);
    if (passed == SPC_PERTURBED) {
        spc_comm_perturb_after(comm);
    }
    return status;
}

bool spc_comm_poll_phase(spc_comm_t *comm) {
    bool complete = spc_reduce_test(comm->reduce, comm->pending.phase);
    uint32_t polls = atomic_load_explicit(&comm->node->polls, memory_order_relaxed);
    for (uint32_t i = 0; i < polls && !complete; i++) {
        spc_cpu_relax();
        complete = spc_reduce_test(comm->reduce, comm->pending.phase);
    }
    return complete;
}

/* ---- collectives ---- */

typedef struct collective_call {
    const spc_signature_t *signature;
    const spc_field_t *fields;
    const void *value;
    uint64_t length_bytes;
    void *result;
    uint64_t deadline_ns;
} collective_call_t;

void spc_comm_settle_fuzzy(spc_comm_t *comm) {
    /* Acquire pairs with the release in fuzzy_leave; barriers are only opened by the thread that is inside. */
    if (atomic_load_explicit(&comm->fuzzy_open, memory_order_acquire) != 0) {
        pthread_mutex_lock(&comm->fuzzy_lock);
        spc_fuzzy_settle(&comm->fuzzy);
        pthread_mutex_unlock(&comm->fuzzy_lock);
    }
}

/* Starts the operation, or continues the one that was left. */
static int start_or_resume(spc_comm_t *comm, const collective_call_t *call) {
    spc_pending_t *pending = &comm->pending;
    if (spc_comm_is_pending(comm)) {
        bool same = memcmp(&pending->signature, call->signature, sizeof(pending->signature)) == 0;
        return same ? SPC_OK : SPC_EMISMATCH;
    }
    if (spc_coordinated_is_open(comm->cycle.account)) {
        return SPC_ECYCLE;
    }
    spc_comm_settle_fuzzy(comm);
    int status = spc_reduce_start(comm->reduce, call->signature, call->fields, call->value,
                                  call->length_bytes, &pending->phase);
    if (status == SPC_OK) {
        pending->signature = *call->signature;
        atomic_store_explicit(&pending->entered, true, memory_order_relaxed);
    }
    return status;
}

int spc_comm_start_phase(spc_comm_t *comm, const spc_signature_t *signature, const void *value,
                         uint64_t length_bytes) {
    const collective_call_t call = {signature, NULL, value, length_bytes, NULL, SPC_NO_DEADLINE};
    return start_or_resume(comm, &call);
}

int spc_comm_outcome(spc_comm_t *comm) {
    atomic_store_explicit(&comm->last_phase, comm->pending.phase, memory_order_relaxed);
    return spc_reduce_finish(comm->reduce, comm->pending.phase, NULL, 0);
}

/* After the phase is complete. */
static int finish(spc_comm_t *comm, const collective_call_t *call) {
    atomic_store_explicit(&comm->pending.entered, false, memory_order_relaxed);
    atomic_store_explicit(&comm->last_phase, comm->pending.phase, memory_order_relaxed);
    return spc_reduce_finish(comm->reduce, comm->pending.phase, call->result,
                             call->result != NULL ? call->length_bytes : 0);
}

static bool test_phase(spc_node_wait_t *wait) {
    const spc_comm_t *comm = wait->owner;
    const uint64_t *phase = wait->argument;
    return spc_reduce_test(comm->reduce, *phase);
}

/* Some node has not arrived, and never will. */
static int doom_of_phase(spc_comm_t *comm, uint64_t phase) {
    int status = spc_comm_check_usable(comm); /* another thread may have closed it */
    for (uint32_t rank = 0; rank < comm->size && status == SPC_OK; rank++) {
        if (spc_comm_has_left(comm, rank) && !spc_reduce_arrived(comm->reduce, phase, rank)) {
            status = spc_comm_blame(comm, rank);
        }
    }
    return status;
}

static int doomed_phase(spc_node_wait_t *wait) {
    const uint64_t *phase = wait->argument;
    return doom_of_phase(wait->owner, *phase);
}

static void describe_phase(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const uint64_t *phase = wait->argument;
    spc_comm_describe_phase(wait->owner, SPC_BOARD_PHASE, *phase, entry, pairs);
}

int spc_comm_wait_for_phase(spc_comm_t *comm, uint64_t phase, uint64_t deadline_ns) {
    if (spc_reduce_test(comm->reduce, phase)) {
        return SPC_OK;
    }
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_phase,
                            .doomed = doomed_phase,
                            .describe = describe_phase,
                            .owner = comm,
                            .argument = &phase};
    return spc_node_wait_for(&wait, deadline_ns);
}

static int collect_inside(spc_comm_t *comm, void *argument) {
    const collective_call_t *call = argument;
    int status = start_or_resume(comm, call);
    if (status == SPC_OK) {
        comm->waits = true;
        status = spc_comm_wait_for_phase(comm, comm->pending.phase, call->deadline_ns);
        comm->waits = false;
    }
    return status == SPC_OK ? finish(comm, call) : status;
}

int spc_comm_collective_inside(spc_comm_t *comm, const spc_signature_t *signature, const spc_field_t *fields,
                               const void *value, uint64_t length_bytes, void *result, uint64_t deadline_ns) {
    collective_call_t call = {signature, fields, value, length_bytes, result, deadline_ns};
    return collect_inside(comm, &call);
}

int spc_comm_collective(spc_comm_t *comm, const spc_signature_t *signature, const spc_field_t *fields,
                        const void *value, uint64_t length_bytes, void *result, uint64_t deadline_ns) {
    collective_call_t call = {signature, fields, value, length_bytes, result, deadline_ns};
    return spc_comm_run_collective(comm, collect_inside, &call);
}

int spc_comm_collective_poll(spc_comm_t *comm, const spc_signature_t *signature, const spc_field_t *fields,
                             const void *value, uint64_t length_bytes, void *result) {
    collective_call_t call = {signature, fields, value, length_bytes, result, SPC_NO_DEADLINE};
    int status = spc_comm_check_callable(comm);
    if (status != SPC_OK) {
        return spc_comm_defer_perturbed(status);
    }
    if (!spc_comm_enter(comm)) {
        return SPC_EBUSY;
    }
    status = start_or_resume(comm, &call);
    if (status != SPC_OK) {
        spc_comm_leave(comm);
        return status;
    }
    if (!spc_comm_poll_phase(comm)) {
        return SPC_EAGAIN; /* still inside: this thread's spc_comm_collective continues */
    }
    status = finish(comm, &call);
    spc_comm_leave(comm);
    return status;
}

void spc_comm_contribution(const spc_comm_t *comm, uint32_t rank, const void **bytes,
                           uint64_t *length_bytes) {
    uint64_t phase = atomic_load_explicit(&comm->last_phase, memory_order_relaxed);
    spc_reduce_contribution(comm->reduce, phase, rank, bytes, length_bytes);
}

bool spc_comm_mismatch(const spc_comm_t *comm, uint32_t rank, spc_signature_t *signature, uint64_t *phase) {
    *phase = spc_comm_is_pending(comm) ? comm->pending.phase
                                       : atomic_load_explicit(&comm->last_phase, memory_order_relaxed);
    return spc_reduce_signature(comm->reduce, *phase, rank, signature);
}

/* ---- mismatches ---- */

/* Phases of different communicators are different operations. Not 0. */
static uint64_t key_of(const spc_comm_t *comm, uint64_t phase) {
    return phase * SPC_COMMUNICATORS_MAX + comm->number;
}

void spc_comm_forget_call(const spc_comm_t *comm) {
    spc_note_t note;
    if (spc_note_read(comm->node->notes, SPC_NOTE_CALL, &note)
        && note.key % SPC_COMMUNICATORS_MAX == comm->number) {
        note.key = 0;
        spc_note_write(comm->node->notes, SPC_NOTE_CALL, &note);
    }
}

#define LOOK_NS UINT64_C(200000) /* interval between two looks for another node's note */
/* Times to wait for the other nodes' calls: nodes that wait in the operation have learnt of the mismatch; nodes that
 * learn of it only when they ask come later. */
#define AT_ONCE_NS INT64_C(500000000)
#define LATER_NS INT64_C(50000000)

/* Waits for the line of `rank`, whose program may record none. */
static spc_note_t hear_call(const spc_comm_t *comm, uint32_t rank, uint64_t key, uint8_t operation) {
    const bool is_later = operation == SPC_OPERATION_FUZZY || operation == SPC_OPERATION_COORDINATED;
    const uint64_t deadline_ns = spc_clock_deadline_ns(is_later ? LATER_NS : AT_ONCE_NS);
    for (;;) {
        spc_note_t note;
        if (spc_note_read(spc_comm_notes(comm, rank), SPC_NOTE_CALL, &note) && note.key == key) {
            return note;
        }
        if (spc_comm_has_left(comm, rank) || spc_clock_now_ns() >= deadline_ns) {
            return (spc_note_t){.line = 0};
        }
        spc_clock_sleep_ns(LOOK_NS);
    }
}

/* An interruption left that call, which all nodes know alike. */
static void write_unfinished(const spc_comm_t *comm, const spc_called_t *called, FILE *out) {
    char *text = NULL;
    for (uint32_t rank = 0; rank < comm->size && text == NULL; rank++) {
        text = called[rank].is_known ? spc_call_text_collective(&called[rank].signature) : NULL;
    }
    fprintf(out, "node %u has left %s before its end. Finish that first, by the same call again.",
            spc_comm_rank_in_run(comm, comm->rank), text != NULL ? text : "another operation");
    free(text);
}

char *spc_comm_explain_mismatch(spc_comm_t *comm, const spc_note_t *mine) {
    char *text = NULL;
    size_t bytes;
    uint64_t phase = 0;
    spc_called_t *called = calloc(comm->size, sizeof(*called));
    FILE *out = called != NULL ? open_memstream(&text, &bytes) : NULL;
    if (out == NULL) {
        free(called);
        return NULL;
    }
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        called[rank].rank = spc_comm_rank_in_run(comm, rank);
        called[rank].is_known = spc_comm_mismatch(comm, rank, &called[rank].signature, &phase);
    }
    if (spc_mismatch_differs(called, comm->size)) {
        spc_note_t note = *mine;
        note.key = key_of(comm, phase);
        spc_comm_note(comm, SPC_NOTE_CALL, &note);
        for (uint32_t rank = 0; rank < comm->size; rank++) {
            if (called[rank].is_known) {
                called[rank].note = hear_call(comm, rank, note.key, called[rank].signature.operation);
            }
        }
        spc_mismatch_write(called, comm->size, phase, out);
    } else {
        write_unfinished(comm, called, out);
    }
    fclose(out);
    free(called);
    return text;
}

/* ---- fuzzy barriers ---- */

int spc_comm_fuzzy_enter(spc_comm_t *comm, uint64_t *phase) {
    int status = spc_comm_perturb(comm, spc_comm_check_callable(comm));
    if (status != SPC_OK) {
        return status;
    }
    if (!spc_comm_enter(comm)) {
        return SPC_EBUSY;
    }
    if (spc_comm_is_pending(comm)) {
        status = SPC_EMISMATCH;
    } else if (spc_coordinated_is_open(comm->cycle.account)) {
        status = SPC_ECYCLE;
    } else {
        pthread_mutex_lock(&comm->fuzzy_lock);
        status = spc_fuzzy_enter(&comm->fuzzy, phase);
        atomic_store_explicit(&comm->fuzzy_open, comm->fuzzy.count, memory_order_release);
        pthread_mutex_unlock(&comm->fuzzy_lock);
    }
    spc_comm_leave(comm);
    return status;
}

static int fuzzy_leave(spc_comm_t *comm, uint64_t phase) {
    pthread_mutex_lock(&comm->fuzzy_lock);
    int status = spc_fuzzy_leave(&comm->fuzzy, phase);
    atomic_store_explicit(&comm->fuzzy_open, comm->fuzzy.count, memory_order_release);
    pthread_mutex_unlock(&comm->fuzzy_lock);
    if (status == SPC_EMISMATCH) {
        atomic_store_explicit(&comm->last_phase, phase, memory_order_relaxed);
    }
    return status;
}

int spc_comm_fuzzy_done(spc_comm_t *comm, uint64_t phase) {
    int status = spc_comm_check_callable(comm);
    if (status == SPC_PERTURBED) {
        status = spc_comm_perturb_blinds(comm) ? SPC_EAGAIN : SPC_OK;
    }
    if (status != SPC_OK) {
        return status;
    }
    if (spc_reduce_test(comm->reduce, phase)) {
        return fuzzy_leave(comm, phase);
    }
    spc_node_note_vain(comm->node);
    spc_node_progress(comm->node);
    status = spc_status_epoch(comm->node->status) != 0 ? doom_of_phase(comm, phase) : SPC_OK;
    status = spc_node_is_disconnected(comm->node) ? SPC_EDISCONNECTED : status;
    return status != SPC_OK && !spc_reduce_test(comm->reduce, phase) ? status : SPC_EAGAIN;
}

int spc_comm_fuzzy_wait(spc_comm_t *comm, uint64_t phase, uint64_t deadline_ns) {
    int status = spc_comm_perturb(comm, spc_comm_check_callable(comm));
    if (status == SPC_OK && spc_coordinated_is_open(comm->cycle.account)) {
        return SPC_ECYCLE;
    }
    status = status != SPC_OK ? status : spc_comm_wait_for_phase(comm, phase, deadline_ns);
    return status == SPC_OK ? fuzzy_leave(comm, phase) : status;
}
