/* SPDX-License-Identifier: MIT */
/*
 * Windows: their memory, attributes, names and error handlers.
 */
#include "mpi/window/spc_mpi_window.h"

#include <errno.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { ALIGNMENT = 64 };

int spc_mpi_get_window(MPI_Win handle, spc_mpi_window_t **window) {
    *window = spc_mpi_handle_find(SPC_MPI_WINDOW, (intptr_t)handle);
    if (*window == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_WIN,
                            handle == MPI_WIN_NULL ? "the window is MPI_WIN_NULL"
                                                   : "the window is not a valid handle, or was freed");
    }
    return MPI_SUCCESS;
}

/* ---- mutexes between processes ---- */

static void start_mutex(pthread_mutex_t *mutex) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
#ifdef __linux__
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
#endif
    pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void spc_mpi_window_mutex_lock(pthread_mutex_t *mutex) {
    const int status = pthread_mutex_lock(mutex);
#ifdef __linux__
    if (status == EOWNERDEAD) {
        pthread_mutex_consistent(mutex);
    }
#else
    (void)status;
#endif
}

/* ---- making ---- */

/* Makes a communicator for the window alone. */
static int own_comm(const spc_mpi_comm_t *comm, spc_mpi_comm_t **own) {
    spc_comm_t *core;
    SPC_MPI_TRY(spc_mpi_check(comm, spc_comm_split(comm->core, 0, comm->rank, SPC_NO_DEADLINE, &core)));
    *own = spc_mpi_comm_wrap(core, comm);
    if (*own == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for a window");
    }
    spc_mpi_handle_free(SPC_MPI_COMM, (intptr_t)(*own)->handle);
    return MPI_SUCCESS;
}

static int check_making(const spc_mpi_comm_t *comm, MPI_Aint size, MPI_Aint unit) {
    if (size < 0) {
        return spc_mpi_fail(comm, MPI_ERR_SIZE, "size=%lld: a window's size is 0 or more", (long long)size);
    }
    if (unit < 1 || unit > INT_MAX) {
        return spc_mpi_fail(comm, MPI_ERR_DISP, "disp_unit=%lld: a unit is 1 or more bytes", (long long)unit);
    }
    for (int rank = 1; rank < comm->size; rank++) {
        if (spc_comm_box(comm->core, (uint32_t)rank) != spc_comm_box(comm->core, 0)) {
            return spc_mpi_fail(
                comm, MPI_ERR_RMA_SHARED,
                "a window needs memory that all its nodes share, and rank %d is in another box "
                "than rank 0; MPI_Comm_split_type with MPI_COMM_TYPE_SHARED gives a "
                "communicator of the nodes of one box",
                rank);
        }
    }
    return MPI_SUCCESS;
}

static void destroy(spc_mpi_window_t *window) {
    if (window->block != NULL) {
        spc_comm_release_block(window->comm->core, window->block);
    }
    if (window->comm != NULL) {
        spc_mpi_comm_release(window->comm);
    }
    free(window->own);
    free(window->member);
    free(window->control);
    free(window->is_locked);
    free(window->access);
    free(window->exposure);
    free(window);
}

static spc_mpi_window_t *create(spc_mpi_comm_t *comm, int flavor, MPI_Aint size, MPI_Aint unit) {
    spc_mpi_window_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    const size_t count = (size_t)comm->size;
    made->member = calloc(count, sizeof(*made->member));
    made->control = calloc(count, sizeof(*made->control));
    made->is_locked = calloc(count, sizeof(*made->is_locked));
    made->flavor = flavor;
    made->size = size;
    made->unit = (int)unit;
    made->info = MPI_INFO_NULL;
    if (made->member == NULL || made->control == NULL || made->is_locked == NULL) {
        destroy(made);
        return NULL;
    }
    return made;
}

static size_t control_bytes(const spc_mpi_comm_t *comm) {
    const size_t bytes = sizeof(spc_mpi_window_shared_t) + sizeof(spc_mpi_window_place_t) * (size_t)comm->size
                         + (spc_mpi.is_strict ? sizeof(spc_mpi_accesses_t) : 0);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Takes the block of this member, with room for `bytes` behind its control, or with the control alone. Returns the
 * place of the memory; NULL: there was no room for it. */
static void *take_block(spc_mpi_window_t *window, size_t bytes, spc_mpi_window_member_t *mine) {
    const spc_mpi_comm_t *comm = window->comm;
    const size_t head = control_bytes(comm);
    bool has_memory = bytes != 0 && spc_comm_take_block(comm->core, head + bytes, &window->block) == SPC_OK;
    if (!has_memory && spc_comm_take_block(comm->core, head, &window->block) != SPC_OK) {
        window->block = NULL;
        return NULL;
    }
    spc_mpi_window_shared_t *control = spc_block_payload(window->block);
    memset(control, 0, head + (has_memory ? bytes : 0));
    start_mutex(&control->accumulate);
    start_mutex(&control->guard);
    spc_comm_share_block(comm->core, window->block);
    (void)spc_comm_offset(comm->core, control, head, &mine->control_offset);
    mine->memory_offset = has_memory ? mine->control_offset + head : 0;
    return has_memory ? (char *)control + head : NULL;
}

/* All members fail for the same reason, and none uses another one's block. */
static void give_back(const spc_mpi_window_t *window) {
    if (window->block != NULL) {
        spc_comm_unshare_block(window->comm->core, window->block);
    }
}

static int find_controls(spc_mpi_window_t *window) {
    const spc_mpi_comm_t *comm = window->comm;
    for (int rank = 0; rank < comm->size; rank++) {
        const uint64_t offset = window->member[rank].control_offset;
        if (offset == 0) {
            give_back(window);
            return spc_mpi_fail(
                comm, MPI_ERR_NO_MEM,
                "the arena of rank %d has no room for a window; spcomm run --arena makes it larger", rank);
        }
        window->control[rank] = spc_comm_address(comm->core, offset);
    }
    return MPI_SUCCESS;
}

/* Exchanges the members' descriptions; memory in arenas gets its address in this process. */
static int join(spc_mpi_window_t *window, spc_mpi_window_member_t *mine) {
    const spc_mpi_comm_t *comm = window->comm;
    mine->size = window->size;
    mine->unit = window->unit;
    mine->process = (int)getpid();
    SPC_MPI_TRY(spc_mpi_allgather_bytes(comm, mine, sizeof(*mine), window->member));
    SPC_MPI_TRY(find_controls(window));
    for (int rank = 0; rank < comm->size; rank++) {
        spc_mpi_window_member_t *member = &window->member[rank];
        if (member->memory_offset != 0) {
            member->base = spc_comm_address(comm->core, member->memory_offset);
        }
    }
    return MPI_SUCCESS;
}

/* The window is the program's from now on: errors are the window's. */
static int publish(spc_mpi_window_t *window, MPI_Info info, MPI_Win *handle) {
    SPC_MPI_TRY(spc_mpi_hints_set(spc_mpi_window_hints, info, &window->info));
    window->handle = (MPI_Win)spc_mpi_handle_create(SPC_MPI_WINDOW, window);
    if ((intptr_t)window->handle == 0) {
        return spc_mpi_fail(window->comm, MPI_ERR_NO_MEM, "there is no room for another window");
    }
    window->comm->handle = (MPI_Comm)(intptr_t)window->handle;
    window->comm->errhandler = MPI_ERRORS_ARE_FATAL;
    *handle = window->handle;
    return MPI_SUCCESS;
}

static int begin(MPI_Comm handle, int flavor, MPI_Aint size, MPI_Aint unit, spc_mpi_window_t **window) {
    spc_mpi_comm_t *comm;
    SPC_MPI_TRY(spc_mpi_get_intra(handle, &comm));
    SPC_MPI_TRY(check_making(comm, size, unit));
    *window = create(comm, flavor, size, unit);
    if (*window == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for a window");
    }
    const int code = own_comm(comm, &(*window)->comm);
    if (code != MPI_SUCCESS) {
        destroy(*window);
        return code;
    }
    (*window)->comm->handle = handle; /* until the window is published, errors are the communicator's */
    return MPI_SUCCESS;
}

/* On an error, discards the window that is being made. Returns the code. */
static int end(int code, spc_mpi_window_t *window) {
    if (code != MPI_SUCCESS) {
        destroy(window);
    }
    return code;
}

/* With Yama, the kernel lets other processes read this one's memory only if it says so. */
static void allow_access(void) {
#if defined(__linux__) && defined(PR_SET_PTRACER)
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
}

static int create_on(void *base, spc_mpi_window_t *window, MPI_Info info, MPI_Win *handle) {
    spc_mpi_window_member_t mine = {.base = base};
    uint64_t offset;
    allow_access();
    (void)take_block(window, 0, &mine);
    if (window->size != 0 && spc_comm_offset(window->comm->core, base, (uint64_t)window->size, &offset)) {
        mine.memory_offset = offset; /* for example memory of another window */
    }
    SPC_MPI_TRY(join(window, &mine));
    return publish(window, info, handle);
}

int spc_mpi_win_create(void *base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                       MPI_Win *win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(begin(comm, MPI_WIN_FLAVOR_CREATE, size, disp_unit, &window));
    return end(create_on(base, window, info, win), window);
}

int spc_mpi_win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(begin(comm, MPI_WIN_FLAVOR_DYNAMIC, 0, 1, &window));
    return end(create_on(NULL, window, info, win), window);
}

static int allocate(spc_mpi_window_t *window, MPI_Info info, void **base, MPI_Win *handle) {
    spc_mpi_window_member_t mine = {0};
    const size_t bytes = (size_t)window->size;
    *base = take_block(window, bytes, &mine);
    if (*base == NULL) {
        allow_access();
        if (posix_memalign(&window->own, ALIGNMENT, bytes + 1) != 0) {
            window->own = NULL;
            return spc_mpi_fail(window->comm, MPI_ERR_NO_MEM, "there is no memory for %zu bytes", bytes);
        }
        memset(window->own, 0, bytes);
        mine.base = *base = window->own;
    }
    SPC_MPI_TRY(join(window, &mine));
    return publish(window, info, handle);
}

int spc_mpi_win_allocate(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr,
                         MPI_Win *win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(begin(comm, MPI_WIN_FLAVOR_ALLOCATE, size, disp_unit, &window));
    return end(allocate(window, info, baseptr, win), window);
}

/* ---- memory that all have in common ---- */

/* The members' parts follow one another behind rank 0's control. */
static int place_parts(spc_mpi_window_t *window, uint64_t total) {
    const spc_mpi_comm_t *comm = window->comm;
    uint64_t offset = window->member[0].memory_offset;
    if (total != 0 && offset == 0) {
        give_back(window);
        return spc_mpi_fail(
            comm, MPI_ERR_NO_MEM,
            "the arena of rank 0 has no room for %llu bytes that all share; spcomm run --arena "
            "makes it larger",
            (unsigned long long)total);
    }
    for (int rank = 0; rank < comm->size; rank++) {
        window->member[rank].base = offset != 0 ? spc_comm_address(comm->core, offset) : NULL;
        window->member[rank].memory_offset = offset;
        offset += (uint64_t)window->member[rank].size;
    }
    return MPI_SUCCESS;
}

static int allocate_shared(spc_mpi_window_t *window, MPI_Info info, void **base, MPI_Win *handle) {
    const spc_mpi_comm_t *comm = window->comm;
    spc_mpi_window_member_t mine = {0};
    uint64_t total = 0;
    uint64_t *sizes = malloc(sizeof(*sizes) * (size_t)comm->size);
    if (sizes == NULL) {
        return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for a window");
    }
    const uint64_t own = (uint64_t)window->size;
    const int code = spc_mpi_allgather_bytes(comm, &own, sizeof(own), sizes);
    for (int rank = 0; rank < comm->size && code == MPI_SUCCESS; rank++) {
        total += sizes[rank];
    }
    free(sizes);
    SPC_MPI_TRY(code);
    (void)take_block(window, comm->rank == 0 ? (size_t)total : 0, &mine);
    SPC_MPI_TRY(join(window, &mine));
    SPC_MPI_TRY(place_parts(window, total));
    *base = window->member[comm->rank].base;
    return publish(window, info, handle);
}

int spc_mpi_win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                                void *baseptr, MPI_Win *win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(begin(comm, MPI_WIN_FLAVOR_SHARED, size, disp_unit, &window));
    return end(allocate_shared(window, info, baseptr, win), window);
}

int spc_mpi_win_shared_query(MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void *baseptr) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    if (window->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        return spc_mpi_fail(window->comm, MPI_ERR_RMA_FLAVOR,
                            "a dynamic window has no memory that others could address");
    }
    SPC_MPI_TRY(spc_mpi_check_rank(window->comm, "rank", rank, false));
    for (int first = 0; rank == MPI_PROC_NULL; first++) { /* the first that has memory, or the last */
        rank = window->member[first].size != 0 || first + 1 == window->comm->size ? first : rank;
    }
    const spc_mpi_window_member_t *member = &window->member[rank];
    const bool is_here = member->memory_offset != 0 || rank == window->comm->rank;
    *size = is_here ? member->size : 0;
    *disp_unit = member->unit;
    *(void **)baseptr = is_here && member->size != 0 ? member->base : NULL;
    return MPI_SUCCESS;
}

/* ---- dynamic windows ---- */

static int check_dynamic(const spc_mpi_window_t *window) {
    return window->flavor == MPI_WIN_FLAVOR_DYNAMIC
               ? MPI_SUCCESS
               : spc_mpi_fail(window->comm, MPI_ERR_RMA_FLAVOR,
                              "memory is attached to windows of MPI_Win_create_dynamic only");
}

/* Nothing to do: all of a process's memory can be reached already. */
int spc_mpi_win_attach(MPI_Win win, void *base, MPI_Aint size) {
    spc_mpi_window_t *window;
    (void)base;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    SPC_MPI_TRY(check_dynamic(window));
    return size >= 0
               ? MPI_SUCCESS
               : spc_mpi_fail(window->comm, MPI_ERR_SIZE, "size=%lld: a size is 0 or more", (long long)size);
}

int spc_mpi_win_detach(MPI_Win win, const void *base) {
    spc_mpi_window_t *window;
    (void)base;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    return check_dynamic(window);
}

/* ---- the end ---- */

/* After the barrier no other member uses this one's block. */
int spc_mpi_win_free(MPI_Win *win) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(*win, &window));
    SPC_MPI_TRY(spc_mpi_window_check_unlocked(window));
    SPC_MPI_TRY(spc_mpi_window_check_fence(window));
    SPC_MPI_TRY(spc_mpi_attributes_free((intptr_t)*win, &window->attributes));
    SPC_MPI_TRY(spc_mpi_barrier_inside(window->comm));
    if (window->info != MPI_INFO_NULL) {
        SPC_MPI_TRY(spc_mpi_info_free(&window->info));
    }
    spc_comm_unshare_block(window->comm->core, window->block);
    spc_mpi_handle_free(SPC_MPI_WINDOW, (intptr_t)*win);
    destroy(window);
    *win = MPI_WIN_NULL;
    return MPI_SUCCESS;
}

/* ---- groups, names, info ---- */

int spc_mpi_win_get_group(MPI_Win win, MPI_Group *group) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    return spc_mpi_group_publish(spc_mpi_group_copy(window->comm->group), group);
}

int spc_mpi_win_set_name(MPI_Win win, const char *win_name) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    (void)snprintf(window->name, sizeof(window->name), "%s", win_name);
    return MPI_SUCCESS;
}

int spc_mpi_win_get_name(MPI_Win win, char *win_name, int *resultlen) {
    spc_mpi_window_t *window;
    const char *name = "MPI_WIN_NULL";
    if (win != MPI_WIN_NULL) {
        SPC_MPI_TRY(spc_mpi_get_window(win, &window));
        name = window->name;
    }
    return spc_mpi_give_text(name, win_name, resultlen);
}

int spc_mpi_win_set_info(MPI_Win win, MPI_Info info) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    return spc_mpi_hints_set(spc_mpi_window_hints, info, &window->info);
}

int spc_mpi_win_get_info(MPI_Win win, MPI_Info *info_used) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    return spc_mpi_hints_get(spc_mpi_window_hints, window->info, info_used);
}

/* ---- attributes ---- */

int spc_mpi_win_set_attr(MPI_Win win, int win_keyval, void *attribute_val) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    return spc_mpi_attribute_set((intptr_t)win, &window->attributes, win_keyval, attribute_val);
}

int spc_mpi_win_delete_attr(MPI_Win win, int win_keyval) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    return spc_mpi_attribute_delete((intptr_t)win, &window->attributes, win_keyval);
}

/* The base is the attribute itself; the others are pointers to it. NULL: no such key. */
static void *predefined(spc_mpi_window_t *window, int key) {
    static int model = MPI_WIN_UNIFIED;
    switch (key) {
    case MPI_WIN_SIZE:
        return &window->size;
    case MPI_WIN_DISP_UNIT:
        return &window->unit;
    case MPI_WIN_CREATE_FLAVOR:
        return &window->flavor;
    case MPI_WIN_MODEL:
        return &model;
    default:
        return NULL;
    }
}

int spc_mpi_win_get_attr(MPI_Win win, int win_keyval, void *attribute_val, int *flag) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    void *known = predefined(window, win_keyval);
    if (win_keyval == MPI_WIN_BASE || known != NULL) {
        *(void **)attribute_val = known != NULL ? known : window->member[window->comm->rank].base;
        *flag = 1;
        return MPI_SUCCESS;
    }
    return spc_mpi_attribute_get(window->attributes, win_keyval, attribute_val, flag);
}

/* ---- error handlers ---- */

int spc_mpi_win_create_errhandler(MPI_Win_errhandler_function *win_errhandler_fn,
                                  MPI_Errhandler *errhandler) {
    return spc_mpi_errhandler_make(*(void **)&win_errhandler_fn, errhandler);
}

int spc_mpi_win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    SPC_MPI_TRY(spc_mpi_check_errhandler(errhandler));
    window->comm->errhandler = errhandler;
    return MPI_SUCCESS;
}

int spc_mpi_win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    *errhandler = window->comm->errhandler;
    return MPI_SUCCESS;
}

int spc_mpi_win_call_errhandler(MPI_Win win, int errorcode) {
    spc_mpi_window_t *window;
    SPC_MPI_TRY(spc_mpi_get_window(win, &window));
    return spc_mpi_raise(window->comm->errhandler, (intptr_t)win, errorcode);
}
