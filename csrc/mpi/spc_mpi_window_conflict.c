/* SPDX-License-Identifier: MIT */
/*
 * Conflicting accesses to a window, with --strict: bytes that one node puts, and another puts, gets or accumulates in
 * the same epoch.
 *
 * Each member's control block lists the last accesses to its memory, under the guard. An access counts until its node
 * has synchronized: by a fence, by unlocking or flushing, or by MPI_Win_complete. Accesses with different numbers of
 * fences before them cannot conflict, so for fences the numbers are compared. Items that are not adjacent are left out.
 */
#include "mpi/spc_mpi_diagnose.h"
#include "mpi/spc_mpi_window.h"

static const char *verb_of(spc_mpi_access_kind_t kind) {
    return kind == SPC_MPI_ACCESS_PUT ? "puts" : kind == SPC_MPI_ACCESS_GET ? "gets" : "accumulates";
}

static bool conflict(const spc_mpi_access_t *one, const spc_mpi_access_t *other) {
    const bool may_meet = one->kind == other->kind && one->kind != SPC_MPI_ACCESS_PUT;
    return other->kind != SPC_MPI_ACCESS_NONE && other->epoch == one->epoch && other->origin != one->origin
           && other->low < one->high && one->low < other->high && !may_meet;
}

/* With the guard. NULL: it is in the list now. */
static const spc_mpi_access_t *add(spc_mpi_accesses_t *list, const spc_mpi_access_t *access) {
    for (int i = 0; i < SPC_MPI_ACCESSES; i++) {
        if (conflict(access, &list->last[i])) {
            return &list->last[i];
        }
    }
    list->last[list->count++ % SPC_MPI_ACCESSES] = *access;
    return NULL;
}

int spc_mpi_window_access(const spc_mpi_window_t *window, int target, spc_mpi_access_kind_t kind,
                          MPI_Count low, MPI_Count high) {
    spc_mpi_window_shared_t *control = window->control[target];
    spc_mpi_access_t mine = {
        .kind = kind, .origin = window->comm->rank, .epoch = window->fences, .low = low, .high = high};
    spc_mpi_access_t other = {.kind = SPC_MPI_ACCESS_NONE};
    char line[SPC_MPI_PLACE_BYTES];
    spc_mpi_place_t here;
    spc_mpi_place_note(&here, true);
    (void)snprintf(mine.line, sizeof(mine.line), "%.*s", (int)sizeof(mine.line) - 1,
                   spc_mpi_place_text(&here, line));
    spc_mpi_window_mutex_lock(&control->guard);
    const spc_mpi_access_t *found = add(spc_mpi_window_accesses(window, target), &mine);
    if (found != NULL) {
        other = *found;
    }
    pthread_mutex_unlock(&control->guard);
    if (found == NULL) {
        return MPI_SUCCESS;
    }
    return spc_mpi_fail(
        window->comm, MPI_ERR_RMA_CONFLICT,
        "rank %d %s what rank %d %s%s in the same epoch: bytes %lld to %lld of the memory of rank "
        "%d; separate them by MPI_Win_fence or MPI_Win_unlock, or let both accumulate",
        mine.origin, verb_of(kind), other.origin, verb_of(other.kind), other.line,
        (long long)(low > other.low ? low : other.low), (long long)(high < other.high ? high : other.high),
        target);
}

void spc_mpi_window_forget_accesses(const spc_mpi_window_t *window, int target) {
    spc_mpi_window_shared_t *control = window->control[target];
    spc_mpi_window_mutex_lock(&control->guard);
    spc_mpi_accesses_t *list = spc_mpi_window_accesses(window, target);
    for (int i = 0; i < SPC_MPI_ACCESSES; i++) {
        if (list->last[i].origin == window->comm->rank) {
            list->last[i].kind = SPC_MPI_ACCESS_NONE;
        }
    }
    pthread_mutex_unlock(&control->guard);
}
