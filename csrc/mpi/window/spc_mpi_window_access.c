/* SPDX-License-Identifier: MIT */
/*
 * One-sided operations, and which of them conflict. Each is complete when its call returns, so its request, if it has
 * one, is done.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#ifdef __linux__
#include <sys/uio.h>
#endif

#include "mpi/message/spc_mpi_diagnose.h"
#include "mpi/message/spc_mpi_request.h"
#include "mpi/type/spc_mpi_pack.h"
#include "mpi/window/spc_mpi_window.h"

/* ---- accesses that conflict, with --strict: bytes that one node puts, and another puts, gets or accumulates in the
 * same epoch.
 *
 * Each member's control block lists the last accesses to its memory, under the guard. An access counts until its node
 * has synchronized: by a fence, by unlocking or flushing, or by MPI_Win_complete. Accesses with different numbers of
 * fences before them cannot conflict, so for fences the numbers are compared. Items with gaps are left out. */

/* Behind the places of the control block. */
static spc_mpi_accesses_t *accesses_to(const spc_mpi_window_t *window, int target) {
    return (spc_mpi_accesses_t *)(void *)&window->control[target]->place[window->comm->size];
}

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

/* MPI_ERR_RMA_CONFLICT if it conflicts with another node's. */
static int check_conflict(const spc_mpi_window_t *window, int target, spc_mpi_access_kind_t kind,
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
    const spc_mpi_access_t *found = add(accesses_to(window, target), &mine);
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
    spc_mpi_accesses_t *list = accesses_to(window, target);
    for (int i = 0; i < SPC_MPI_ACCESSES; i++) {
        if (list->last[i].origin == window->comm->rank) {
            list->last[i].kind = SPC_MPI_ACCESS_NONE;
        }
    }
    pthread_mutex_unlock(&control->guard);
}

/* ---- arguments ---- */

/* Items in the memory of a member. */
typedef struct target {
    const spc_mpi_window_t *window;
    int rank;
    uintptr_t start; /* in that process's memory; of memory in the segment, in this one's */
    bool is_here;
    MPI_Count count;
    spc_mpi_type_t *type;
} target_t;

/* One side's items. */
typedef struct items {
    void *buffer;
    MPI_Count count;
    spc_mpi_type_t *type;
} items_t;

/* ---- the kernel's copy ---- */

typedef struct transfer {
    const target_t *target;
    char *data;
    bool writes;
} transfer_t;

#ifdef __linux__
static ssize_t copy_once(const transfer_t *transfer, uintptr_t there, size_t bytes) {
    const pid_t process = (pid_t)transfer->target->window->member[transfer->target->rank].process;
    const struct iovec local = {transfer->data, bytes};
    const struct iovec remote = {(void *)there, bytes};
    return transfer->writes ? process_vm_writev(process, &local, 1, &remote, 1, 0)
                            : process_vm_readv(process, &local, 1, &remote, 1, 0);
}
#else
static ssize_t copy_once(const transfer_t *transfer, uintptr_t there, size_t bytes) {
    (void)transfer;
    (void)there;
    (void)bytes;
    errno = EPERM;
    return -1;
}
#endif

static int refuse_copy(const transfer_t *transfer) {
    const target_t *target = transfer->target;
    const char *verb = transfer->writes ? "written" : "read";
    if (errno == EPERM || errno == ENOSYS) {
        return spc_mpi_fail(
            target->window->comm, MPI_ERR_RMA_SHARED,
            "the system does not let the memory of rank %d be %s; memory of MPI_Win_allocate or "
            "MPI_Win_allocate_shared needs no permission",
            target->rank, verb);
    }
    return spc_mpi_fail(target->window->comm, MPI_ERR_RMA_RANGE, "the memory of rank %d cannot be %s: %s",
                        target->rank, verb, strerror(errno));
}

/* spc_mpi_take_run_t */
static int copy_run(void *argument, MPI_Count at, MPI_Count bytes) {
    transfer_t *transfer = argument;
    uintptr_t there = transfer->target->start + (uintptr_t)at;
    while (bytes > 0) {
        const ssize_t done = copy_once(transfer, there, (size_t)bytes);
        if (done <= 0) {
            return refuse_copy(transfer);
        }
        transfer->data += done;
        there += (uintptr_t)done;
        bytes -= done;
    }
    return MPI_SUCCESS;
}

/* ---- packed bytes to and from a member's memory ---- */

static int copy(const target_t *target, void *packed, bool writes) {
    const MPI_Count bytes = target->count * target->type->size;
    if (!target->is_here) {
        transfer_t transfer = {target, packed, writes};
        return spc_mpi_type_walk(target->type, 0, bytes, copy_run, &transfer);
    }
    if (writes) {
        spc_mpi_type_unpack(packed, bytes, (void *)target->start, target->count, target->type);
    } else {
        (void)spc_mpi_type_pack((void *)target->start, target->count, target->type, packed);
    }
    return MPI_SUCCESS;
}

static int check_range(const target_t *target, MPI_Aint disp) {
    const spc_mpi_window_member_t *member = &target->window->member[target->rank];
    const spc_mpi_type_t *type = target->type;
    if (target->count * type->size == 0 || target->window->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        return MPI_SUCCESS;
    }
    MPI_Count start, last;
    if (__builtin_mul_overflow(disp, member->unit, &start) || start > INT64_MAX / 4 || start < INT64_MIN / 4
        || __builtin_mul_overflow(target->count - 1, type->extent, &last) || last > INT64_MAX / 4
        || last < INT64_MIN / 4) {
        return spc_mpi_fail(target->window->comm, MPI_ERR_RMA_RANGE,
                            "target_disp=%lld, target_count=%lld: no window is that large", (long long)disp,
                            (long long)target->count);
    }
    const MPI_Count low = start + type->true_lb + (last < 0 ? last : 0);
    const MPI_Count high = start + type->true_lb + type->true_extent + (last > 0 ? last : 0);
    if (low >= 0 && high <= member->size) {
        return MPI_SUCCESS;
    }
    return spc_mpi_fail(target->window->comm, MPI_ERR_RMA_RANGE,
                        "bytes %lld to %lld of the memory of rank %d; its window has %lld bytes",
                        (long long)low, (long long)high, target->rank, (long long)member->size);
}

/* The caller has set target->type and count. In a dynamic window the kernel copies even within this node, and refuses
 * an invalid address. */
static int find_target(spc_mpi_window_t *window, int rank, MPI_Aint disp, target_t *target) {
    const spc_mpi_window_member_t *member = &window->member[rank];
    target->window = window;
    target->rank = rank;
    if (target->count < 0) {
        return spc_mpi_fail(window->comm, MPI_ERR_COUNT, "target_count=%lld: a count cannot be negative",
                            (long long)target->count);
    }
    SPC_MPI_TRY(spc_mpi_window_check_epoch(window, rank));
    SPC_MPI_TRY(check_range(target, disp));
    target->start = (uintptr_t)member->base + (uintptr_t)(disp * member->unit);
    target->is_here = window->flavor != MPI_WIN_FLAVOR_DYNAMIC
                      && (member->memory_offset != 0 || rank == window->comm->rank);
    return MPI_SUCCESS;
}

/* With --strict. Items with gaps between them may lie between those of another node: they are left out. */
static int note_access(const target_t *target, MPI_Aint disp, spc_mpi_access_kind_t kind) {
    const MPI_Count low = disp * target->window->member[target->rank].unit;
    const MPI_Count bytes = target->count * target->type->extent;
    return !spc_mpi.is_strict || !target->type->is_dense || bytes == 0
               ? MPI_SUCCESS
               : check_conflict(target->window, target->rank, kind, low, low + bytes);
}

static int check_items(const spc_mpi_window_t *window, const items_t *items, const target_t *target) {
    if (items->count < 0) {
        return spc_mpi_fail(window->comm, MPI_ERR_COUNT, "count=%lld: a count cannot be negative",
                            (long long)items->count);
    }
    SPC_MPI_TRY(spc_mpi_check_buffer(window->comm, "the origin's or result's address", items->buffer,
                                     items->count, items->type));
    const MPI_Count here = items->count * items->type->size;
    const MPI_Count there = target->count * target->type->size;
    if (here != there) {
        return spc_mpi_fail(window->comm, MPI_ERR_TRUNCATE,
                            "the origin has %lld bytes and the target %lld; they must be equally many",
                            (long long)here, (long long)there);
    }
    return MPI_SUCCESS;
}

static void *take_memory(const spc_mpi_window_t *window, MPI_Count bytes, int *code) {
    void *memory = malloc((size_t)bytes + 1);
    if (memory == NULL) {
        *code =
            spc_mpi_fail(window->comm, MPI_ERR_NO_MEM, "there is no memory for %lld bytes", (long long)bytes);
    }
    return memory;
}

/* ---- put and get ---- */

static int move(const items_t *items, const target_t *target, bool writes) {
    int code = MPI_SUCCESS;
    const MPI_Count bytes = target->count * target->type->size;
    if (bytes == 0 || items->type->is_dense) {
        return bytes == 0 ? MPI_SUCCESS : copy(target, items->buffer, writes);
    }
    void *packed = take_memory(target->window, bytes, &code);
    if (packed == NULL) {
        return code;
    }
    if (writes) {
        (void)spc_mpi_type_pack(items->buffer, items->count, items->type, packed);
    }
    code = copy(target, packed, writes);
    if (!writes && code == MPI_SUCCESS) {
        spc_mpi_type_unpack(packed, bytes, items->buffer, items->count, items->type);
    }
    free(packed);
    return code;
}

static int put_or_get(void *buffer, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint disp,
                      MPI_Count target_count, MPI_Datatype target_type, MPI_Win win, bool writes) {
    spc_mpi_window_t *window;
    items_t items = {.buffer = buffer, .count = count};
    target_t target = {.count = target_count};
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    SPC_MPI_TRY(spc_mpi_check_rank(window->comm, "target_rank", rank, false));
    if (rank == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_get_committed(window->comm, type, &items.type));
    SPC_MPI_TRY(spc_mpi_get_committed(window->comm, target_type, &target.type));
    SPC_MPI_TRY(find_target(window, rank, disp, &target));
    SPC_MPI_TRY(check_items(window, &items, &target));
    SPC_MPI_TRY(note_access(&target, disp, writes ? SPC_MPI_ACCESS_PUT : SPC_MPI_ACCESS_GET));
    return move(&items, &target, writes);
}

int spc_mpi_put(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
                MPI_Win win) {
    return put_or_get((void *)origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                      target_count, target_datatype, win, true);
}

int spc_mpi_get(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win) {
    return put_or_get(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                      target_datatype, win, false);
}

/* ---- accumulate ---- */

/* Packed bytes: fresh = old op fresh. Elements with holes in them are laid out for the operator. */
static int combine(const target_t *target, MPI_Op op, const char *old, char *fresh) {
    const spc_mpi_comm_t *comm = target->window->comm;
    const spc_mpi_type_t *element = target->type->element;
    if (element == NULL || element->size == 0) {
        return spc_mpi_fail(comm, MPI_ERR_TYPE, "operators need elements of one predefined datatype");
    }
    const MPI_Count bytes = target->count * target->type->size;
    const MPI_Count count = bytes / element->size;
    if (element->is_dense) {
        return spc_mpi_combine(comm, op, old, fresh, count, element);
    }
    int code = MPI_SUCCESS;
    char *left = take_memory(target->window, 2 * count * element->extent, &code);
    if (left == NULL) {
        return code;
    }
    char *right = left + count * element->extent;
    spc_mpi_type_unpack(old, bytes, left, count, element);
    spc_mpi_type_unpack(fresh, bytes, right, count, element);
    code = spc_mpi_combine(comm, op, left, right, count, element);
    (void)spc_mpi_type_pack(right, count, element, fresh);
    free(left);
    return code;
}

/* `fresh` has the packed origin, and `old` gets the packed target as it was. */
static int exchange(const target_t *target, MPI_Op op, char *old, char *fresh) {
    pthread_mutex_t *mutex = &target->window->control[target->rank]->accumulate;
    spc_mpi_window_mutex_lock(mutex);
    int code = copy(target, old, false);
    if (code == MPI_SUCCESS && op != MPI_NO_OP && op != MPI_REPLACE) {
        code = combine(target, op, old, fresh);
    }
    if (code == MPI_SUCCESS && op != MPI_NO_OP) {
        code = copy(target, fresh, true);
    }
    pthread_mutex_unlock(mutex);
    return code;
}

static int accumulate(const items_t *origin, const items_t *result, const target_t *target, MPI_Op op) {
    int code = MPI_SUCCESS;
    const MPI_Count bytes = target->count * target->type->size;
    if (bytes == 0) {
        return MPI_SUCCESS; /* whatever the operator combines */
    }
    char *old = take_memory(target->window, 2 * bytes, &code);
    if (old == NULL) {
        return code;
    }
    if (op != MPI_NO_OP) {
        (void)spc_mpi_type_pack(origin->buffer, origin->count, origin->type, old + bytes);
    }
    code = exchange(target, op, old, old + bytes);
    if (code == MPI_SUCCESS && result != NULL) {
        spc_mpi_type_unpack(old, bytes, result->buffer, result->count, result->type);
    }
    free(old);
    return code;
}

static int check_accumulate_op(const spc_mpi_window_t *window, MPI_Op op) {
    return op == MPI_REPLACE || op == MPI_NO_OP ? MPI_SUCCESS : spc_mpi_check_op(window->comm, op);
}

/* `result` NULL: not wanted. The handles of types are in order: origin, result, target. */
static int accumulate_by(items_t *origin, items_t *result, const MPI_Datatype types[3], int rank,
                         MPI_Aint disp, MPI_Count target_count, MPI_Op op, MPI_Win win) {
    spc_mpi_window_t *window;
    target_t target = {.count = target_count};
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    SPC_MPI_TRY(spc_mpi_check_rank(window->comm, "target_rank", rank, false));
    if (rank == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(check_accumulate_op(window, op));
    SPC_MPI_TRY(spc_mpi_get_committed(window->comm, types[2], &target.type));
    SPC_MPI_TRY(find_target(window, rank, disp, &target));
    SPC_MPI_TRY(note_access(&target, disp, SPC_MPI_ACCESS_ACCUMULATE));
    if (op != MPI_NO_OP) {
        SPC_MPI_TRY(spc_mpi_get_committed(window->comm, types[0], &origin->type));
        SPC_MPI_TRY(check_items(window, origin, &target));
    }
    if (result != NULL) {
        SPC_MPI_TRY(spc_mpi_get_committed(window->comm, types[1], &result->type));
        SPC_MPI_TRY(check_items(window, result, &target));
    }
    return accumulate(origin, result, &target, op);
}

int spc_mpi_accumulate(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                       int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                       MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
    items_t origin = {.buffer = (void *)origin_addr, .count = origin_count};
    const MPI_Datatype types[] = {origin_datatype, target_datatype, target_datatype};
    return accumulate_by(&origin, NULL, types, target_rank, target_disp, target_count, op, win);
}

int spc_mpi_get_accumulate(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                           void *result_addr, MPI_Count result_count, MPI_Datatype result_datatype,
                           int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                           MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
    items_t origin = {.buffer = (void *)origin_addr, .count = origin_count};
    items_t result = {.buffer = result_addr, .count = result_count};
    const MPI_Datatype types[] = {origin_datatype, result_datatype, target_datatype};
    return accumulate_by(&origin, &result, types, target_rank, target_disp, target_count, op, win);
}

int spc_mpi_fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
                         MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
    return spc_mpi_get_accumulate(origin_addr, 1, datatype, result_addr, 1, datatype, target_rank,
                                  target_disp, 1, datatype, op, win);
}

/* `old` gets what was there. */
static int swap_if_equal(const target_t *target, const void *origin, const void *compare, void *old) {
    pthread_mutex_t *mutex = &target->window->control[target->rank]->accumulate;
    spc_mpi_window_mutex_lock(mutex);
    int code = copy(target, old, false);
    if (code == MPI_SUCCESS && memcmp(old, compare, (size_t)target->type->size) == 0) {
        code = copy(target, (void *)origin, true);
    }
    pthread_mutex_unlock(mutex);
    return code;
}

int spc_mpi_compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
                             MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win) {
    spc_mpi_window_t *window;
    target_t target = {.count = 1};
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    SPC_MPI_TRY(spc_mpi_check_rank(window->comm, "target_rank", target_rank, false));
    if (target_rank == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(spc_mpi_get_committed(window->comm, datatype, &target.type));
    if (!target.type->is_builtin || !target.type->is_dense) {
        return spc_mpi_fail(window->comm, MPI_ERR_TYPE, "%s: values are of one predefined datatype",
                            target.type->name);
    }
    SPC_MPI_TRY(find_target(window, target_rank, target_disp, &target));
    SPC_MPI_TRY(spc_mpi_check_buffer(window->comm, "origin_addr", origin_addr, 1, target.type));
    SPC_MPI_TRY(spc_mpi_check_buffer(window->comm, "compare_addr", compare_addr, 1, target.type));
    SPC_MPI_TRY(spc_mpi_check_buffer(window->comm, "result_addr", result_addr, 1, target.type));
    SPC_MPI_TRY(note_access(&target, target_disp, SPC_MPI_ACCESS_ACCUMULATE));
    return swap_if_equal(&target, origin_addr, compare_addr, result_addr);
}

/* ---- with a request, in an epoch of locks ---- */

static int done(int code, MPI_Request *request) {
    *request = MPI_REQUEST_NULL;
    return code != MPI_SUCCESS ? code : spc_mpi_request_done(spc_mpi.world, request);
}

int spc_mpi_rput(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                 int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
                 MPI_Win win, MPI_Request *request) {
    return done(spc_mpi_put(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                            target_count, target_datatype, win),
                request);
}

int spc_mpi_rget(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                 MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win,
                 MPI_Request *request) {
    return done(spc_mpi_get(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                            target_count, target_datatype, win),
                request);
}

int spc_mpi_raccumulate(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                        int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                        MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request) {
    return done(spc_mpi_accumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                                   target_count, target_datatype, op, win),
                request);
}

int spc_mpi_rget_accumulate(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                            void *result_addr, MPI_Count result_count, MPI_Datatype result_datatype,
                            int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                            MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request) {
    return done(spc_mpi_get_accumulate(origin_addr, origin_count, origin_datatype, result_addr, result_count,
                                       result_datatype, target_rank, target_disp, target_count,
                                       target_datatype, op, win),
                request);
}
