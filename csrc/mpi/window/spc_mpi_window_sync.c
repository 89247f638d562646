/* SPDX-License-Identifier: MIT */
/*
 * Synchronization of windows: fences; locks; post, start, complete and wait; flushes.
 *
 * Locks are granted in the order in which they were asked for. A release grants the lock to the next node, and wakes
 * all that wait: their descriptions name the holder, which has changed. The wait is one of the node's: posted receives
 * are served meanwhile, and a deadlock is proven.
 *
 * Post, start, complete and wait are messages of the window's own communicator.
 */
#include "mpi/window/spc_mpi_window.h"

#include "mpi/message/spc_mpi_diagnose.h"

enum { TAG_POST = SPC_MPI_TAGS, TAG_COMPLETE };

/* ---- checks ---- */

static bool is_in(const int *ranks, int count, int rank) {
    for (int i = 0; i < count && ranks != NULL; i++) {
        if (ranks[i] == rank) {
            return true;
        }
    }
    return false;
}

int spc_mpi_window_check_epoch(spc_mpi_window_t *window, int target) {
    if (window->is_locked[target] || is_in(window->access, window->access_count, target)) {
        return MPI_SUCCESS;
    }
    if (window->is_fenced) {
        window->is_fence_used = true;
        return MPI_SUCCESS;
    }
    return spc_mpi_fail(
        window->comm, MPI_ERR_RMA_SYNC,
        "no epoch lets this node use the memory of rank %d: call MPI_Win_fence, MPI_Win_lock or "
        "MPI_Win_start before",
        target);
}

/* MPI_ERR_RMA_SYNC unless this node has a lock of that member's memory. */
static int check_locked(const spc_mpi_window_t *window, int target) {
    return window->is_locked[target]
               ? MPI_SUCCESS
               : spc_mpi_fail(
                     window->comm, MPI_ERR_RMA_SYNC,
                     "this node has no lock of rank %d: call MPI_Win_lock or MPI_Win_lock_all before",
                     target);
}

int spc_mpi_window_check_unlocked(const spc_mpi_window_t *window) {
    if (window->access != NULL || window->exposure != NULL) {
        return spc_mpi_fail(window->comm, MPI_ERR_RMA_SYNC,
                            window->access != NULL
                                ? "MPI_Win_start has begun an epoch: MPI_Win_complete ends it"
                                : "MPI_Win_post has begun an epoch: MPI_Win_wait ends it");
    }
    for (int rank = 0; rank < window->comm->size; rank++) {
        if (window->is_locked[rank]) {
            return spc_mpi_fail(window->comm, MPI_ERR_RMA_SYNC,
                                "rank %d is still locked: call MPI_Win_unlock%s", rank,
                                window->is_all_locked ? "_all" : "");
        }
    }
    return MPI_SUCCESS;
}

int spc_mpi_window_check_fence(const spc_mpi_window_t *window) {
    return window->is_fence_used
               ? spc_mpi_fail(window->comm, MPI_ERR_RMA_SYNC,
                              "this node has used the window since its last MPI_Win_fence: another "
                              "MPI_Win_fence ends that epoch")
               : MPI_SUCCESS;
}

/* ---- fences ---- */

int spc_mpi_win_fence(int assert, MPI_Win win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    SPC_MPI_TRY(spc_mpi_window_check_unlocked(window));
    SPC_MPI_TRY(spc_mpi_barrier_inside(window->comm));
    window->is_fence_used = false;
    window->fences++;
    window->is_fenced = (assert &MPI_MODE_NOSUCCEED) == 0;
    return MPI_SUCCESS;
}

/* ---- locks ---- */

/* With the guard, as the next three. A rank that holds the lock; -1: nobody. */
static int holder_of(const spc_mpi_window_shared_t *control, int size) {
    int rank = 0;
    while (rank < size && control->place[rank].holds == SPC_MPI_LOCK_NONE) {
        rank++;
    }
    return rank < size ? rank : -1;
}

static spc_mpi_window_place_t *first_waiting(spc_mpi_window_shared_t *control, int size) {
    spc_mpi_window_place_t *first = NULL;
    for (int rank = 0; rank < size; rank++) {
        spc_mpi_window_place_t *place = &control->place[rank];
        if (place->wants != SPC_MPI_LOCK_NONE && (first == NULL || place->ticket < first->ticket)) {
            first = place;
        }
    }
    return first;
}

static void grant(spc_mpi_window_shared_t *control, int size) {
    for (;;) {
        spc_mpi_window_place_t *next = first_waiting(control, size);
        const int holder = holder_of(control, size);
        const bool is_free = holder < 0
                             || (control->place[holder].holds == SPC_MPI_LOCK_SHARED && next != NULL
                                 && next->wants == SPC_MPI_LOCK_SHARED);
        if (next == NULL || !is_free) {
            return;
        }
        next->holds = next->wants;
        next->wants = SPC_MPI_LOCK_NONE;
        atomic_store_explicit(&next->is_granted, 1, memory_order_seq_cst);
    }
}

/* Wakes granted nodes, too: they check whether they hold the lock. */
static void wake_others(const spc_mpi_window_t *window) {
    const spc_comm_t *core = window->comm->core;
    for (int rank = 0; rank < window->comm->size; rank++) {
        if (rank != window->comm->rank) {
            spc_event_notify(&core->node->events[spc_comm_member(core, (uint32_t)rank)],
                             core->node->config->features);
        }
    }
}

static void release(const spc_mpi_window_t *window, int target) {
    if (spc_mpi.is_strict) {
        spc_mpi_window_forget_accesses(window, target);
    }
    spc_mpi_window_shared_t *control = window->control[target];
    spc_mpi_window_place_t *mine = &control->place[window->comm->rank];
    spc_mpi_window_mutex_lock(&control->guard);
    mine->holds = mine->wants = SPC_MPI_LOCK_NONE;
    grant(control, window->comm->size);
    pthread_mutex_unlock(&control->guard);
    wake_others(window);
}

typedef struct lock_call {
    const spc_mpi_window_t *window;
    spc_mpi_window_shared_t *control;
    int target;
} lock_call_t;

/* Acquire: the accesses of the granting node happened before. */
static bool is_granted(spc_node_wait_t *wait) {
    const lock_call_t *call = wait->argument;
    return atomic_load_explicit(&call->control->place[call->window->comm->rank].is_granted,
                                memory_order_acquire)
           != 0;
}

/* A wait for the lock is a wait for its holder; `line`: where the holder called for it. */
static bool match_holder(const lock_call_t *call, spc_match_t *match, char line[SPC_MPI_WINDOW_LINE_BYTES]) {
    const spc_comm_t *core = call->window->comm->core;
    spc_mpi_window_mutex_lock(&call->control->guard);
    const int holder = holder_of(call->control, call->window->comm->size);
    memcpy(line, holder >= 0 ? call->control->place[holder].line : "",
           holder >= 0 ? SPC_MPI_WINDOW_LINE_BYTES : 1);
    pthread_mutex_unlock(&call->control->guard);
    if (holder < 0 || holder == call->window->comm->rank) {
        return false;
    }
    *match = (spc_match_t){.source = (int32_t)spc_comm_member(core, (uint32_t)holder),
                           .tag = call->target,
                           .context = spc_comm_context(core, SPC_CONTEXT_INTERNAL)};
    return true;
}

static int is_doomed(spc_node_wait_t *wait) {
    spc_match_t match;
    char line[SPC_MPI_WINDOW_LINE_BYTES];
    return match_holder(wait->argument, &match, line) ? spc_comm_doomed_match(wait->owner, &match) : SPC_OK;
}

static void describe(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    spc_match_t match;
    char line[SPC_MPI_WINDOW_LINE_BYTES];
    if (match_holder(wait->argument, &match, line)) {
        spc_comm_describe_match(wait->owner, &match, entry, pairs);
        (void)snprintf(entry->more, sizeof(entry->more), line[0] != '\0' ? "locked%s\n" : "", line);
    } else {
        entry->doubts |= SPC_BOARD_UNKNOWN; /* it has been granted just now */
    }
}

static int await_lock(const spc_mpi_window_t *window, int target) {
    lock_call_t call = {window, window->control[target], target};
    spc_node_wait_t wait = {.node = spc_mpi.node,
                            .test = is_granted,
                            .doomed = is_doomed,
                            .describe = describe,
                            .owner = window->comm->core,
                            .argument = &call};
    const int status = is_granted(&wait) ? SPC_OK : spc_node_wait_for(&wait, SPC_NO_DEADLINE);
    if (status != SPC_OK) {
        release(window, target);
    }
    return spc_mpi_check(window->comm, status);
}

static int lock(spc_mpi_window_t *window, uint32_t kind, int target) {
    spc_mpi_window_shared_t *control = window->control[target];
    spc_mpi_window_place_t *mine = &control->place[window->comm->rank];
    if (window->is_locked[target]) {
        return spc_mpi_fail(window->comm, MPI_ERR_RMA_SYNC,
                            "this node has locked rank %d already; MPI_Win_unlock releases it", target);
    }
    SPC_MPI_TRY(spc_mpi_window_check_fence(window));
    spc_mpi_place_t here;
    char line[SPC_MPI_PLACE_BYTES];
    spc_mpi_place_note(&here, false);
    (void)spc_mpi_place_text(&here, line);
    spc_mpi_window_mutex_lock(&control->guard);
    (void)snprintf(mine->line, sizeof(mine->line), "%.*s", (int)sizeof(mine->line) - 1, line);
    atomic_store_explicit(&mine->is_granted, 0, memory_order_relaxed); /* the guard orders it */
    mine->wants = kind;
    mine->ticket = ++control->tickets;
    grant(control, window->comm->size);
    pthread_mutex_unlock(&control->guard);
    SPC_MPI_TRY(await_lock(window, target));
    window->is_locked[target] = true;
    return MPI_SUCCESS;
}

static int get_target(MPI_Win win, int rank, spc_mpi_window_t **window) {
    SPC_MPI_TRY(spc_mpi_get_window(win, window));
    return spc_mpi_check_rank((*window)->comm, "rank", rank, false);
}

int spc_mpi_win_lock(int lock_type, int rank, int assert, MPI_Win win) {
    spc_mpi_window_t *window;
    (void)assert;
    SPC_MPI_TRY(get_target(win, rank, &window));
    if (lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED) {
        return spc_mpi_fail(window->comm, MPI_ERR_LOCKTYPE,
                            "lock_type=%d: it is MPI_LOCK_EXCLUSIVE or MPI_LOCK_SHARED", lock_type);
    }
    const bool is_exclusive = lock_type == MPI_LOCK_EXCLUSIVE;
    return rank == MPI_PROC_NULL
               ? MPI_SUCCESS
               : lock(window, is_exclusive ? SPC_MPI_LOCK_EXCLUSIVE : SPC_MPI_LOCK_SHARED, rank);
}

int spc_mpi_win_unlock(int rank, MPI_Win win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(get_target(win, rank, &window));
    if (rank == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(check_locked(window, rank));
    window->is_locked[rank] = false;
    release(window, rank);
    return MPI_SUCCESS;
}

int spc_mpi_win_lock_all(int assert, MPI_Win win) {
    spc_mpi_window_t *window;
    (void)assert;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    for (int rank = 0; rank < window->comm->size; rank++) {
        SPC_MPI_TRY(lock(window, SPC_MPI_LOCK_SHARED, rank));
    }
    window->is_all_locked = true;
    return MPI_SUCCESS;
}

int spc_mpi_win_unlock_all(MPI_Win win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    if (!window->is_all_locked) {
        return spc_mpi_fail(window->comm, MPI_ERR_RMA_SYNC, "MPI_Win_lock_all was not called before");
    }
    for (int rank = 0; rank < window->comm->size; rank++) {
        window->is_locked[rank] = false;
        release(window, rank);
    }
    window->is_all_locked = false;
    return MPI_SUCCESS;
}

/* ---- flushes: operations are complete when their calls return ---- */

static int flush(int rank, MPI_Win win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(get_target(win, rank, &window));
    atomic_thread_fence(memory_order_seq_cst);
    if (rank == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    if (spc_mpi.is_strict) {
        spc_mpi_window_forget_accesses(window, rank);
    }
    return check_locked(window, rank);
}

int spc_mpi_win_flush(int rank, MPI_Win win) {
    return flush(rank, win);
}

int spc_mpi_win_flush_local(int rank, MPI_Win win) {
    return flush(rank, win);
}

static int flush_all(MPI_Win win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    atomic_thread_fence(memory_order_seq_cst);
    bool has_lock = false;
    for (int rank = 0; rank < window->comm->size; rank++) {
        has_lock = has_lock || window->is_locked[rank];
        if (spc_mpi.is_strict) {
            spc_mpi_window_forget_accesses(window, rank);
        }
    }
    if (has_lock) {
        return MPI_SUCCESS;
    }
    return check_locked(window, 0);
}

int spc_mpi_win_flush_all(MPI_Win win) {
    return flush_all(win);
}

int spc_mpi_win_flush_local_all(MPI_Win win) {
    return flush_all(win);
}

int spc_mpi_win_sync(MPI_Win win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    atomic_thread_fence(memory_order_seq_cst);
    return MPI_SUCCESS;
}

/* ---- post, start, complete, wait ---- */

/* The group's members as ranks of the window; the call that ends the epoch frees the list. */
static int ranks_of(const spc_mpi_window_t *window, MPI_Group handle, int **ranks, int *count) {
    const spc_mpi_group_t *group;
    SPC_MPI_TRY(spc_mpi_get_group(handle, &group));
    int *list = malloc(sizeof(*list) * (size_t)(group->size + 1));
    if (list == NULL) {
        return spc_mpi_fail(window->comm, MPI_ERR_NO_MEM, "there is no memory for a group");
    }
    for (int i = 0; i < group->size; i++) {
        list[i] = spc_mpi_group_find(window->comm->group, group->members[i]);
        if (list[i] < 0) {
            free(list);
            return spc_mpi_fail(window->comm, MPI_ERR_GROUP,
                                "rank %d of the group is not in the window's group", i);
        }
    }
    *ranks = list;
    *count = group->size;
    return MPI_SUCCESS;
}

static int tell(const spc_mpi_window_t *window, const int *ranks, int count, int tag) {
    for (int i = 0; i < count; i++) {
        SPC_MPI_TRY(spc_mpi_send_bytes(window->comm, ranks[i], tag, NULL, 0));
    }
    return MPI_SUCCESS;
}

int spc_mpi_win_post(MPI_Group group, int assert, MPI_Win win) {
    spc_mpi_window_t *window;
    (void)assert;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    if (window->exposure != NULL) {
        return spc_mpi_fail(window->comm, MPI_ERR_RMA_SYNC,
                            "MPI_Win_post has begun an epoch already: MPI_Win_wait ends it");
    }
    SPC_MPI_TRY(ranks_of(window, group, &window->exposure, &window->exposure_count));
    return tell(window, window->exposure, window->exposure_count, TAG_POST);
}

int spc_mpi_win_start(MPI_Group group, int assert, MPI_Win win) {
    spc_mpi_window_t *window;
    char nothing;
    (void)assert;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    if (window->access != NULL) {
        return spc_mpi_fail(window->comm, MPI_ERR_RMA_SYNC,
                            "MPI_Win_start has begun an epoch already: MPI_Win_complete ends it");
    }
    SPC_MPI_TRY(spc_mpi_window_check_fence(window));
    SPC_MPI_TRY(ranks_of(window, group, &window->access, &window->access_count));
    for (int i = 0; i < window->access_count; i++) {
        SPC_MPI_TRY(spc_mpi_recv_bytes(window->comm, window->access[i], TAG_POST, &nothing, 0));
    }
    return MPI_SUCCESS;
}

int spc_mpi_win_complete(MPI_Win win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    if (window->access == NULL) {
        return spc_mpi_fail(window->comm, MPI_ERR_RMA_SYNC, "MPI_Win_start was not called before");
    }
    for (int i = 0; spc_mpi.is_strict && i < window->access_count; i++) {
        spc_mpi_window_forget_accesses(window, window->access[i]);
    }
    const int code = tell(window, window->access, window->access_count, TAG_COMPLETE);
    free(window->access);
    window->access = NULL;
    return code;
}

static int check_posted(const spc_mpi_window_t *window) {
    return window->exposure != NULL
               ? MPI_SUCCESS
               : spc_mpi_fail(window->comm, MPI_ERR_RMA_SYNC, "MPI_Win_post was not called before");
}

static void end_exposure(spc_mpi_window_t *window) {
    free(window->exposure);
    window->exposure = NULL;
}

int spc_mpi_win_wait(MPI_Win win) {
    spc_mpi_window_t *window;
    char nothing;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    SPC_MPI_TRY(check_posted(window));
    for (int i = 0; i < window->exposure_count; i++) {
        if (window->exposure[i] >= 0) {
            SPC_MPI_TRY(spc_mpi_recv_bytes(window->comm, window->exposure[i], TAG_COMPLETE, &nothing, 0));
            window->exposure[i] = -1;
        }
    }
    end_exposure(window);
    return MPI_SUCCESS;
}

int spc_mpi_win_test(MPI_Win win, int *flag) {
    spc_mpi_window_t *window;
    spc_message_t message;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    SPC_MPI_TRY(check_posted(window));
    *flag = 0;
    for (int i = 0; i < window->exposure_count; i++) {
        if (window->exposure[i] < 0) {
            continue;
        }
        spc_comm_t *core = window->comm->core;
        const int status =
            spc_comm_try_recv(core, SPC_CONTEXT_INTERNAL, window->exposure[i], TAG_COMPLETE, &message);
        if (status == SPC_EAGAIN) {
            return MPI_SUCCESS;
        }
        SPC_MPI_TRY(spc_mpi_check(window->comm, status));
        spc_message_release(core, &message);
        window->exposure[i] = -1;
    }
    end_exposure(window);
    *flag = 1;
    return MPI_SUCCESS;
}
