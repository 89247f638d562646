/* SPDX-License-Identifier: MIT */
/*
 * Requests and statuses: completion, cancelling, persistent and generalized requests, and those that the program never
 * completes.
 */
#include "mpi/message/spc_mpi_request.h"

#include "mpi/type/spc_mpi_pack.h"

#include "segment/spc_event.h"

spc_mpi_request_t spc_mpi_request_sent;

/* ---- the pool ---- */

/* A request in the pool keeps its handle; `is_used` says whether the handle is one of the program's. The thread that
 * called MPI_Init, usually the only one, has a pool of its own, without a lock: only that thread reads and writes
 * `own_pool`. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static spc_mpi_request_t *pool;
static spc_mpi_request_t *own_pool;
static _Thread_local bool has_own_pool __attribute__((tls_model("initial-exec")));
static spc_mpi_request_t *all_made; /* used or not */

void spc_mpi_requests_start(void) {
    spc_mpi_request_t *sent = &spc_mpi_request_sent;
    has_own_pool = true;
    atomic_init(&sent->core.done, true);
    sent->is_used = true;
    sent->source = MPI_ANY_SOURCE;
    sent->tag = MPI_ANY_TAG;
    sent->handle = (MPI_Request)spc_mpi_handle_create(SPC_MPI_REQUEST, sent);
}

static spc_mpi_request_t *take_from_pool(bool *is_new) {
    *is_new = false;
    if (has_own_pool && own_pool != NULL) {
        spc_mpi_request_t *own = own_pool;
        own_pool = own->next_free;
        return own;
    }
    pthread_mutex_lock(&pool_lock);
    spc_mpi_request_t *taken = pool;
    if (taken != NULL) {
        pool = taken->next_free;
    }
    pthread_mutex_unlock(&pool_lock);
    *is_new = taken == NULL;
    if (taken == NULL && (taken = calloc(1, sizeof(*taken))) != NULL) {
        taken->handle = (MPI_Request)spc_mpi_handle_create(SPC_MPI_REQUEST, taken);
        pthread_mutex_lock(&pool_lock);
        taken->next_made = all_made;
        all_made = taken;
        pthread_mutex_unlock(&pool_lock);
    }
    return taken;
}

static void give_to_pool(spc_mpi_request_t *request) {
    if (has_own_pool) {
        request->next_free = own_pool;
        own_pool = request;
        return;
    }
    pthread_mutex_lock(&pool_lock);
    request->next_free = pool;
    pool = request;
    pthread_mutex_unlock(&pool_lock);
}

/* Requests that a program forgets never return to the pool, so new ones always note their lines. */
static void note_place(spc_mpi_request_t *request, bool is_new) {
    request->made_by = spc_mpi_call;
    spc_mpi_place_note(&request->place, is_new);
    request->core.file = request->place.file;
    request->core.line = request->place.line;
}

static bool is_done(spc_mpi_request_t *request);

void spc_mpi_requests_end(void) {
    for (spc_mpi_request_t *request = all_made; request != NULL; request = request->next_made) {
        if (request->is_used) {
            spc_mpi_request_destroy(request);
        }
    }
}

/* MPI_COMM_WORLD and builtin types outlive every request. */
static void hold(spc_mpi_request_t *request, spc_mpi_comm_t *comm, spc_mpi_type_t *type) {
    request->comm = comm;
    request->type = type;
    if (comm != NULL && comm != spc_mpi.world) {
        spc_mpi_comm_retain(comm);
    }
    if (type != NULL && !type->is_builtin) {
        spc_mpi_type_retain(type);
    }
}

static void let_go(spc_mpi_request_t *request) {
    if (request->comm != NULL && request->comm != spc_mpi.world) {
        spc_mpi_comm_release(request->comm);
    }
    if (request->type != NULL && !request->type->is_builtin) {
        spc_mpi_type_release(request->type);
    }
    request->comm = NULL;
    request->type = NULL;
}

static int no_memory(const spc_mpi_comm_t *comm) {
    return spc_mpi_fail(comm, MPI_ERR_NO_MEM, "there is no memory for a request");
}

int spc_mpi_request_create(spc_mpi_comm_t *comm, spc_mpi_type_t *type, size_t bytes,
                           spc_mpi_request_t **request) {
    bool is_new;
    spc_mpi_request_t *made = take_from_pool(&is_new);
    *request = NULL;
    if (made == NULL) {
        return no_memory(comm);
    }
    note_place(made, is_new);
    made->core.kind = SPC_REQUEST_NONE;
    made->core.status = SPC_OK;
    made->core.sink.data = NULL;
    made->core.comm = comm != NULL ? comm->core : spc_mpi.world->core;
    atomic_store_explicit(&made->core.done, false, memory_order_relaxed); /* no other thread knows it yet */
    made->is_used = true;
    made->is_persistent = made->is_cancelled = made->is_forgotten = made->is_reported = false;
    made->is_active = true;
    made->is_sealed = false;
    made->error = MPI_SUCCESS;
    made->source = MPI_ANY_SOURCE;
    made->tag = MPI_ANY_TAG;
    made->bytes = 0;
    made->format = 0;
    made->delivered = 0;
    made->start = NULL;
    made->finish = NULL;
    made->arguments = bytes != 0 ? calloc(1, bytes) : NULL;
    made->release = NULL;
    made->query = NULL;
    hold(made, comm, type);
    if (bytes != 0 && made->arguments == NULL) {
        spc_mpi_request_destroy(made);
        return no_memory(comm);
    }
    *request = made;
    return MPI_SUCCESS;
}

void spc_mpi_request_destroy(spc_mpi_request_t *request) {
    if (request == &spc_mpi_request_sent) {
        return;
    }
    spc_request_end(&request->core);
    if (request->release != NULL) {
        request->release(request);
    }
    let_go(request);
    free(request->arguments);
    request->arguments = NULL;
    request->is_used = false;
    give_to_pool(request);
}

int spc_mpi_request_done(spc_mpi_comm_t *comm, MPI_Request *handle) {
    spc_mpi_request_t *made;
    *handle = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_request_create(comm, NULL, 0, &made));
    atomic_store_explicit(&made->core.done, true, memory_order_relaxed); /* nobody waits for it yet */
    *handle = made->handle;
    return MPI_SUCCESS;
}

/* NULL for MPI_REQUEST_NULL. */
static int get_request(MPI_Request handle, spc_mpi_request_t **request) {
    *request = NULL;
    if (handle == MPI_REQUEST_NULL) {
        return MPI_SUCCESS;
    }
    if (handle == spc_mpi_request_sent.handle) { /* most of those that a program waits for */
        *request = &spc_mpi_request_sent;
        return MPI_SUCCESS;
    }
    *request = spc_mpi_handle_find(SPC_MPI_REQUEST, (intptr_t)handle);
    if (*request == NULL || !(*request)->is_used) {
        return spc_mpi_fail(NULL, MPI_ERR_REQUEST,
                            "the request is not a valid handle, or was completed already");
    }
    return MPI_SUCCESS;
}

static int get_some_request(MPI_Request handle, spc_mpi_request_t **request) {
    SPC_MPI_TRY(get_request(handle, request));
    return *request != NULL ? MPI_SUCCESS
                            : spc_mpi_fail(NULL, MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
}

static int check_count(int count) {
    return count >= 0 ? MPI_SUCCESS
                      : spc_mpi_fail(NULL, MPI_ERR_COUNT, "count=%d: a count cannot be negative", count);
}

/* Whether something may still happen to it: not if it is null, or persistent and not started. */
static bool is_open(const spc_mpi_request_t *request) {
    return request != NULL && (!request->is_persistent || request->is_active);
}

/* ---- statuses ---- */

/* Each ABI has words of its own beside the three fields that programs read. */
static int *hidden_words(MPI_Status *status) {
#ifdef SPC_MPI_STANDARD_ABI
    return status->MPI_internal;
#else
    return &status->count_lo;
#endif
}

/* MPI_STATUS_IGNORE, or NULL, which is another value in one of the ABIs. */
static bool is_ignored(const MPI_Status *status) {
    return status == MPI_STATUS_IGNORE || status == NULL;
}

void spc_mpi_status_set(MPI_Status *status, int source, int tag, MPI_Count bytes, bool is_cancelled) {
    if (is_ignored(status)) {
        return;
    }
    int *words = hidden_words(status);
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
    words[0] = (int)(uint32_t)((uint64_t)bytes & UINT32_MAX);
    words[1] = (int)((uint64_t)bytes >> 32 << 1) | is_cancelled;
}

MPI_Count spc_mpi_status_bytes(const MPI_Status *status) {
    const int *words = hidden_words((MPI_Status *)status);
    return (MPI_Count)((uint64_t)(uint32_t)words[0] | (uint64_t)((uint32_t)words[1] >> 1) << 32);
}

static bool was_cancelled(const MPI_Status *status) {
    return hidden_words((MPI_Status *)status)[1] & 1;
}

/* The status of an operation without a message: MPI_ANY_SOURCE, MPI_ANY_TAG, 0 bytes. */
static void clear_status(MPI_Status *status) {
    spc_mpi_status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
    if (!is_ignored(status)) {
        status->MPI_ERROR = MPI_SUCCESS;
    }
}

static MPI_Status *nth(MPI_Status statuses[], int index) {
    return statuses == MPI_STATUSES_IGNORE || statuses == NULL ? MPI_STATUS_IGNORE : &statuses[index];
}

/* Whole items only; MPI_UNDEFINED for anything else. */
int spc_mpi_get_count(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    const MPI_Count bytes = spc_mpi_status_bytes(status);
    if (type->size == 0) {
        *count = bytes == 0 ? 0 : MPI_UNDEFINED;
    } else {
        *count = bytes % type->size == 0 ? bytes / type->size : MPI_UNDEFINED;
    }
    return MPI_SUCCESS;
}

int spc_mpi_status_set_elements(MPI_Status *status, MPI_Datatype datatype, MPI_Count count) {
    spc_mpi_type_t *type;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &type));
    const spc_mpi_type_t *element = type->element != NULL ? type->element : type;
    const MPI_Count bytes = element->value_size == 0
                                ? count * element->size
                                : count / 2 * element->size + count % 2 * element->value_size;
    spc_mpi_status_set(status, status->MPI_SOURCE, status->MPI_TAG, bytes, was_cancelled(status));
    return MPI_SUCCESS;
}

int spc_mpi_status_set_elements_x(MPI_Status *status, MPI_Datatype datatype, MPI_Count count) {
    return spc_mpi_status_set_elements(status, datatype, count);
}

int spc_mpi_status_set_cancelled(MPI_Status *status, int flag) {
    spc_mpi_status_set(status, status->MPI_SOURCE, status->MPI_TAG, spc_mpi_status_bytes(status), flag != 0);
    return MPI_SUCCESS;
}

int spc_mpi_test_cancelled(const MPI_Status *status, int *flag) {
    *flag = was_cancelled(status);
    return MPI_SUCCESS;
}

int spc_mpi_status_get_source(const MPI_Status *status, int *source) {
    *source = status->MPI_SOURCE;
    return MPI_SUCCESS;
}

int spc_mpi_status_set_source(MPI_Status *status, int source) {
    status->MPI_SOURCE = source;
    return MPI_SUCCESS;
}

int spc_mpi_status_get_tag(const MPI_Status *status, int *tag) {
    *tag = status->MPI_TAG;
    return MPI_SUCCESS;
}

int spc_mpi_status_set_tag(MPI_Status *status, int tag) {
    status->MPI_TAG = tag;
    return MPI_SUCCESS;
}

int spc_mpi_status_get_error(const MPI_Status *status, int *err) {
    *err = status->MPI_ERROR;
    return MPI_SUCCESS;
}

int spc_mpi_status_set_error(MPI_Status *status, int err) {
    status->MPI_ERROR = err;
    return MPI_SUCCESS;
}

/* ---- data that must not change: with --strict ---- */

typedef struct sum {
    const char *buffer;
    uint64_t value;
} sum_t;

/* spc_mpi_take_run_t: FNV-1a, over words where there are any. */
static int add_run(void *argument, MPI_Count at, MPI_Count bytes) {
    sum_t *sum = argument;
    const char *from = sum->buffer + at;
    for (; bytes >= 8; bytes -= 8, from += 8) {
        uint64_t word;
        memcpy(&word, from, sizeof(word));
        sum->value = (sum->value ^ word) * UINT64_C(0x100000001b3);
        sum->value ^= sum->value >> 32;
    }
    for (; bytes > 0; bytes--, from++) {
        sum->value = (sum->value ^ (unsigned char)*from) * UINT64_C(0x100000001b3);
    }
    return MPI_SUCCESS;
}

static uint64_t sum_of(const spc_mpi_request_t *request) {
    sum_t sum = {.buffer = request->buffer, .value = UINT64_C(0xcbf29ce484222325)};
    (void)spc_mpi_type_walk(request->type, 0, request->count * request->type->size, add_run, &sum);
    return sum.value;
}

void spc_mpi_request_seal(spc_mpi_request_t *request, const void *buffer, MPI_Count count) {
    request->buffer = (void *)(uintptr_t)buffer;
    request->count = count;
    request->is_sealed = count > 0;
    request->seal = request->is_sealed ? sum_of(request) : 0;
}

static int check_seal(const spc_mpi_request_t *request) {
    char place[SPC_MPI_PLACE_BYTES];
    return !request->is_sealed || sum_of(request) == request->seal
               ? MPI_SUCCESS
               : spc_mpi_fail(request->comm, MPI_ERR_BUFFER,
                              "the data of the %s%s have changed before this call; the buffer is the "
                              "program's again only after it",
                              spc_mpi_call_word(request->made_by),
                              spc_mpi_place_text(&request->place, place));
}

/* ---- completion ---- */

/* The program's functions run at completion: `query` fills the status, `free_function` frees its state. */
static int complete_generalized(spc_mpi_request_t *request, MPI_Request *handle, MPI_Status *status) {
    MPI_Status spare;
    MPI_Status *filled = !is_ignored(status) ? status : &spare;
    clear_status(filled);
    int code = request->query(request->extra_state, filled);
    if (request->free_function != NULL) {
        const int freed = request->free_function(request->extra_state);
        code = code != MPI_SUCCESS ? code : freed;
    }
    spc_mpi_request_destroy(request);
    *handle = MPI_REQUEST_NULL;
    return code;
}

static int explain(const spc_mpi_comm_t *comm, int error, int status, MPI_Count bytes, MPI_Count room,
                   int source) {
    if (status != SPC_OK) {
        return spc_mpi_check(comm, status);
    }
    if (error == MPI_ERR_TRUNCATE) {
        return spc_mpi_fail(
            comm, error,
            "the message of rank %d has %lld bytes, and there is room for %lld; receive more items, "
            "or send fewer",
            source, (long long)bytes, (long long)room);
    }
    return error;
}

int spc_mpi_complete(spc_mpi_request_t *request, MPI_Request *handle, MPI_Status *status) {
    if (!is_open(request)) {
        clear_status(status);
        return MPI_SUCCESS;
    }
    if (request->query != NULL) {
        return complete_generalized(request, handle, status);
    }
    spc_mpi_status_set(status, request->source, request->tag, request->bytes, request->is_cancelled);
    if (request == &spc_mpi_request_sent) {
        *handle = MPI_REQUEST_NULL;
        return MPI_SUCCESS;
    }
    int code = MPI_SUCCESS;
    if (request->format != 0 && request->error == MPI_SUCCESS) {
        code = spc_mpi_note_mismatch(&(spc_mpi_mismatch_t){.comm = request->comm,
                                                           .type = request->type,
                                                           .source = request->source,
                                                           .tag = request->tag,
                                                           .format = request->format,
                                                           .place = &request->place});
    }
    if (__builtin_expect(request->is_sealed, 0)) {
        code = check_seal(request);
    }
    if (request->error != MPI_SUCCESS || request->core.status != SPC_OK) {
        const MPI_Count room = request->type != NULL ? request->count * request->type->size : 0;
        code = explain(request->comm, request->error, request->core.status, request->bytes, room,
                       request->source);
    }
    if (code == MPI_SUCCESS && request->finish != NULL) {
        code = request->finish(request);
    }
    if (request->is_persistent) {
        request->is_active = false;
        spc_request_end(&request->core);
    } else {
        spc_mpi_request_destroy(request);
        *handle = MPI_REQUEST_NULL;
    }
    return code;
}

static bool is_done(spc_mpi_request_t *request) {
    return spc_request_is_done(&request->core);
}

/* It is still open. */
static int explain_wait(const spc_mpi_request_t *request, int status) {
    char call[64];
    switch (request->core.kind) {
    case SPC_REQUEST_RECEIVE:
        return spc_mpi_check_receive(request->comm, request->peer, request->wanted_tag, status);
    case SPC_REQUEST_SEND:
        (void)snprintf(call, sizeof(call), "ssend(tag=%d)", request->core.tag);
        return spc_mpi_check_as(request->comm, status, call, "");
    default:
        return spc_mpi_check_as(request->comm, status, request->made_by, "");
    }
}

/* Waits for the first of them; the others are there for reports. */
static int wait_first(spc_mpi_request_t *request, spc_request_t *const *list, uint32_t count) {
    const int status = spc_request_wait_first(list, count, SPC_NO_DEADLINE);
    return status == SPC_OK || atomic_load_explicit(&request->core.done, memory_order_acquire)
               ? MPI_SUCCESS
               : explain_wait(request, status);
}

/* Waits until it is done; its error, if any, is that of spc_mpi_complete. */
static int wait_for(spc_mpi_request_t *request) {
    spc_request_t *core = &request->core;
    return wait_first(request, &core, 1);
}

/* ---- one request ---- */

int spc_mpi_wait(MPI_Request *request, MPI_Status *status) {
    spc_mpi_request_t *found;
    SPC_MPI_TRY(get_request(*request, &found));
    if (is_open(found)) {
        SPC_MPI_TRY(wait_for(found));
    }
    return spc_mpi_complete(found, request, status);
}

/* Whether it is done, after arrivals have been handled. The supervisor notices a program that asks in vain. */
static bool look_for(spc_mpi_request_t *request) {
    if (!is_open(request) || is_done(request)) {
        return true;
    }
    spc_request_progress(spc_mpi.node);
    if (is_done(request)) {
        return true;
    }
    spc_node_note_vain(spc_mpi.node);
    return false;
}

int spc_mpi_test(MPI_Request *request, int *flag, MPI_Status *status) {
    spc_mpi_request_t *found;
    SPC_MPI_TRY(get_request(*request, &found));
    *flag = look_for(found);
    return *flag ? spc_mpi_complete(found, request, status) : MPI_SUCCESS;
}

int spc_mpi_request_get_status(MPI_Request request, int *flag, MPI_Status *status) {
    spc_mpi_request_t *found;
    SPC_MPI_TRY(get_request(request, &found));
    *flag = look_for(found);
    if (!*flag) {
        return MPI_SUCCESS;
    }
    if (!is_open(found)) {
        clear_status(status);
    } else if (found->query != NULL) {
        MPI_Status spare;
        MPI_Status *filled = !is_ignored(status) ? status : &spare;
        clear_status(filled);
        return found->query(found->extra_state, filled);
    } else {
        spc_mpi_status_set(status, found->source, found->tag, found->bytes, found->is_cancelled);
        if (found->finish != NULL) {
            return found->finish(found);
        }
    }
    return MPI_SUCCESS;
}

int spc_mpi_request_free(MPI_Request *request) {
    spc_mpi_request_t *found;
    SPC_MPI_TRY(get_some_request(*request, &found));
    *request = MPI_REQUEST_NULL;
    if (is_open(found) && found->core.kind == SPC_REQUEST_RECEIVE && !is_done(found)) {
        found->is_forgotten = true; /* it still takes its message: `deliver` */
        return MPI_SUCCESS;
    }
    if (found->query != NULL && found->free_function != NULL) {
        SPC_MPI_TRY(found->free_function(found->extra_state));
    }
    spc_mpi_request_destroy(found);
    return MPI_SUCCESS;
}

int spc_mpi_cancel(MPI_Request *request) {
    spc_mpi_request_t *found;
    SPC_MPI_TRY(get_some_request(*request, &found));
    if (found->query != NULL) {
        return found->cancel != NULL ? found->cancel(found->extra_state, is_done(found)) : MPI_SUCCESS;
    }
    if (is_open(found) && spc_request_cancel(&found->core)) {
        found->is_cancelled = true;
        found->source = MPI_ANY_SOURCE;
        found->bytes = 0;
        atomic_store_explicit(&found->core.done, true, memory_order_release); /* pairs with is_done */
    }
    return MPI_SUCCESS;
}

/* ---- lists of requests ---- */

/* The first error becomes MPI_ERR_IN_STATUS, whose sentence includes that of the error. */
static int fail_in_status(const spc_mpi_comm_t *comm, int index, int count, int code) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    (void)spc_mpi_error_string(code, text, &length);
    return spc_mpi_fail(comm, MPI_ERR_IN_STATUS, "request %d of %d: %.400s", index, count, text);
}

static int are_all_done(int count, const MPI_Request requests[], int *flag) {
    SPC_MPI_TRY(check_count(count));
    *flag = 1;
    for (int i = 0; i < count; i++) {
        spc_mpi_request_t *found;
        SPC_MPI_TRY(get_request(requests[i], &found));
        *flag = *flag && (!is_open(found) || is_done(found));
    }
    return MPI_SUCCESS;
}

static int look_for_all(int count, const MPI_Request requests[], int *flag) {
    SPC_MPI_TRY(are_all_done(count, requests, flag));
    if (*flag) {
        return MPI_SUCCESS;
    }
    spc_request_progress(spc_mpi.node);
    SPC_MPI_TRY(are_all_done(count, requests, flag));
    if (!*flag) {
        spc_node_note_vain(spc_mpi.node);
    }
    return MPI_SUCCESS;
}

int spc_mpi_testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status *array_of_statuses) {
    SPC_MPI_TRY(look_for_all(count, array_of_requests, flag));
    return *flag ? spc_mpi_waitall(count, array_of_requests, array_of_statuses) : MPI_SUCCESS;
}

int spc_mpi_request_get_status_all(int count, const MPI_Request array_of_requests[], int *flag,
                                   MPI_Status *array_of_statuses) {
    SPC_MPI_TRY(look_for_all(count, array_of_requests, flag));
    for (int i = 0; *flag && i < count; i++) {
        int done;
        SPC_MPI_TRY(spc_mpi_request_get_status(array_of_requests[i], &done, nth(array_of_statuses, i)));
    }
    return MPI_SUCCESS;
}

/* The open ones of a list, for the core; NULL in the places of others. */
typedef struct open_list {
    spc_request_t **cores;
    spc_request_t *few[32];
    uint32_t count;
    uint32_t open;
} open_list_t;

static int list_open(int count, const MPI_Request requests[], open_list_t *list) {
    SPC_MPI_TRY(check_count(count));
    list->count = (uint32_t)count;
    list->open = 0;
    const bool is_short = (size_t)count <= sizeof(list->few) / sizeof(list->few[0]);
    list->cores = is_short ? list->few : malloc(sizeof(*list->cores) * (size_t)(uint32_t)count);
    if (list->cores == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for a list of %d requests", count);
    }
    for (int i = 0; i < count; i++) {
        spc_mpi_request_t *found;
        const int code = get_request(requests[i], &found);
        if (code != MPI_SUCCESS) {
            if (!is_short) {
                free(list->cores);
            }
            return code;
        }
        list->cores[i] = is_open(found) ? &found->core : NULL;
        list->open += is_open(found);
    }
    return MPI_SUCCESS;
}

static void list_end(open_list_t *list) {
    if (list->cores != list->few) {
        free(list->cores);
    }
}

/* From the first request that is not yet done, the rest of the list is kept for reports. */
static int wait_in_list(int index, int count, const MPI_Request requests[], spc_mpi_request_t *request,
                        open_list_t *list, int *from) {
    if (is_done(request)) {
        return MPI_SUCCESS;
    }
    if (*from < 0) {
        SPC_MPI_TRY(list_open(count - index, requests + index, list));
        *from = index;
    }
    return wait_first(request, list->cores + (index - *from), (uint32_t)(count - index));
}

static int wait_for_all(int count, MPI_Request requests[], MPI_Status *statuses, open_list_t *list,
                        int *from) {
    int first_code = MPI_SUCCESS, first = 0;
    for (int i = 0; i < count; i++) {
        spc_mpi_request_t *found;
        MPI_Status *status = nth(statuses, i);
        SPC_MPI_TRY(get_request(requests[i], &found));
        int code = is_open(found) ? wait_in_list(i, count, requests, found, list, from) : MPI_SUCCESS;
        code = code != MPI_SUCCESS ? code : spc_mpi_complete(found, &requests[i], status);
        if (code != MPI_SUCCESS && first_code == MPI_SUCCESS) {
            first_code = code;
            first = i;
        }
        if (!is_ignored(status) && (code != MPI_SUCCESS || first_code != MPI_SUCCESS)) {
            status->MPI_ERROR = code;
        }
    }
    return first_code == MPI_SUCCESS ? MPI_SUCCESS : fail_in_status(NULL, first, count, first_code);
}

int spc_mpi_waitall(int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses) {
    open_list_t list;
    int from = -1;
    SPC_MPI_TRY(check_count(count));
    const int code = wait_for_all(count, array_of_requests, array_of_statuses, &list, &from);
    if (from >= 0) {
        list_end(&list);
    }
    return code;
}

/* The index of one that is done, among receives of the one whose message was delivered first; -1: none. Programs that
 * count the senders' last messages, and then cancel the receives that are left, rely on this order. */
static int find_done(const open_list_t *list) {
    const spc_mpi_request_t *first = NULL;
    int which = -1;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->cores[i] != NULL && spc_request_is_done(list->cores[i])) {
            const spc_mpi_request_t *request = (const spc_mpi_request_t *)list->cores[i];
            if (first == NULL || request->delivered < first->delivered) {
                first = request;
                which = (int)i;
            }
        }
    }
    return which;
}

static int look_for_any(const open_list_t *list) {
    int which = find_done(list);
    if (which < 0) {
        spc_request_progress(spc_mpi.node);
        which = find_done(list);
    }
    if (which < 0) {
        spc_node_note_vain(spc_mpi.node);
    }
    return which;
}

static int wait_for_any(const open_list_t *list, int *which) {
    uint32_t found = 0;
    const int status = spc_request_wait_any(list->cores, list->count, SPC_NO_DEADLINE, &found);
    SPC_MPI_TRY(spc_mpi_check(NULL, status));
    *which = find_done(list);
    return MPI_SUCCESS;
}

static int complete_at(int index, MPI_Request requests[], MPI_Status *status) {
    spc_mpi_request_t *found;
    SPC_MPI_TRY(get_request(requests[index], &found));
    return spc_mpi_complete(found, &requests[index], status);
}

int spc_mpi_waitany(int count, MPI_Request array_of_requests[], int *indx, MPI_Status *status) {
    open_list_t list;
    SPC_MPI_TRY(list_open(count, array_of_requests, &list));
    *indx = MPI_UNDEFINED;
    int code = MPI_SUCCESS;
    if (list.open == 0) {
        clear_status(status);
    } else {
        code = wait_for_any(&list, indx);
    }
    list_end(&list);
    return code != MPI_SUCCESS || *indx == MPI_UNDEFINED ? code
                                                         : complete_at(*indx, array_of_requests, status);
}

int spc_mpi_testany(int count, MPI_Request array_of_requests[], int *indx, int *flag, MPI_Status *status) {
    open_list_t list;
    SPC_MPI_TRY(list_open(count, array_of_requests, &list));
    const int which = list.open != 0 ? look_for_any(&list) : -1;
    *flag = list.open == 0 || which >= 0;
    *indx = which >= 0 ? which : MPI_UNDEFINED;
    list_end(&list);
    if (*flag && which < 0) {
        clear_status(status);
    }
    return which >= 0 ? complete_at(which, array_of_requests, status) : MPI_SUCCESS;
}

int spc_mpi_request_get_status_any(int count, const MPI_Request array_of_requests[], int *indx, int *flag,
                                   MPI_Status *status) {
    open_list_t list;
    SPC_MPI_TRY(list_open(count, array_of_requests, &list));
    const int which = list.open != 0 ? look_for_any(&list) : -1;
    *flag = list.open == 0 || which >= 0;
    *indx = which >= 0 ? which : MPI_UNDEFINED;
    list_end(&list);
    if (which >= 0) {
        int done;
        return spc_mpi_request_get_status(array_of_requests[which], &done, status);
    }
    if (*flag) {
        clear_status(status);
    }
    return MPI_SUCCESS;
}

/* Completes all requests of the list that are done now. */
static int complete_done(const open_list_t *list, MPI_Request requests[], int *outcount, int indices[],
                         MPI_Status statuses[]) {
    int first_code = MPI_SUCCESS, first = 0;
    *outcount = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->cores[i] == NULL || !spc_request_is_done(list->cores[i])) {
            continue;
        }
        MPI_Status *status = nth(statuses, *outcount);
        const int code = complete_at((int)i, requests, status);
        if (code != MPI_SUCCESS && first_code == MPI_SUCCESS) {
            first_code = code;
            first = (int)i;
        }
        if (!is_ignored(status) && first_code != MPI_SUCCESS) {
            status->MPI_ERROR = code;
        }
        indices[(*outcount)++] = (int)i;
    }
    return first_code == MPI_SUCCESS ? MPI_SUCCESS
                                     : fail_in_status(NULL, first, (int)list->count, first_code);
}

static int some(int count, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[],
                bool waits) {
    open_list_t list;
    SPC_MPI_TRY(list_open(count, requests, &list));
    *outcount = MPI_UNDEFINED;
    int code = MPI_SUCCESS, which;
    if (list.open != 0) {
        code = waits ? wait_for_any(&list, &which) : (which = look_for_any(&list), MPI_SUCCESS);
        code = code == MPI_SUCCESS ? complete_done(&list, requests, outcount, indices, statuses) : code;
    }
    list_end(&list);
    return code;
}

int spc_mpi_waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                     MPI_Status *array_of_statuses) {
    return some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses, true);
}

int spc_mpi_testsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                     MPI_Status *array_of_statuses) {
    return some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses, false);
}

int spc_mpi_request_get_status_some(int incount, const MPI_Request array_of_requests[], int *outcount,
                                    int array_of_indices[], MPI_Status *array_of_statuses) {
    open_list_t list;
    SPC_MPI_TRY(list_open(incount, array_of_requests, &list));
    *outcount = list.open == 0 ? MPI_UNDEFINED : 0;
    int code = MPI_SUCCESS;
    if (list.open != 0 && look_for_any(&list) >= 0) {
        for (uint32_t i = 0; i < list.count && code == MPI_SUCCESS; i++) {
            if (list.cores[i] != NULL && spc_request_is_done(list.cores[i])) {
                int done;
                code = spc_mpi_request_get_status(array_of_requests[i], &done,
                                                  nth(array_of_statuses, *outcount));
                array_of_indices[(*outcount)++] = (int)i;
            }
        }
    }
    list_end(&list);
    return code;
}

/* ---- persistent ones ---- */

int spc_mpi_start(MPI_Request *request) {
    spc_mpi_request_t *found;
    SPC_MPI_TRY(get_some_request(*request, &found));
    if (!found->is_persistent || found->is_active) {
        return spc_mpi_fail(found->comm, MPI_ERR_REQUEST,
                            found->is_persistent
                                ? "the request is started already: wait for it first"
                                : "the request is not persistent: only those of MPI_..._init are "
                                  "started");
    }
    found->is_cancelled = false;
    found->error = MPI_SUCCESS;
    found->format = 0;
    found->core.kind = SPC_REQUEST_NONE;
    found->core.status = SPC_OK;
    const int code = found->start(found);
    found->is_active = code == MPI_SUCCESS;
    return code;
}

int spc_mpi_startall(int count, MPI_Request array_of_requests[]) {
    SPC_MPI_TRY(check_count(count));
    for (int i = 0; i < count; i++) {
        SPC_MPI_TRY(spc_mpi_start(&array_of_requests[i]));
    }
    return MPI_SUCCESS;
}

/* ---- generalized ones: another thread of the program completes them ---- */

int spc_mpi_grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
                           MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request) {
    spc_mpi_comm_t *world;
    spc_mpi_request_t *made;
    *request = MPI_REQUEST_NULL;
    SPC_MPI_TRY(spc_mpi_get_comm(MPI_COMM_WORLD, &world));
    SPC_MPI_TRY(spc_mpi_request_create(world, NULL, 0, &made));
    made->query = query_fn;
    made->free_function = free_fn;
    made->cancel = cancel_fn;
    made->extra_state = extra_state;
    *request = made->handle;
    return MPI_SUCCESS;
}

int spc_mpi_grequest_complete(MPI_Request request) {
    spc_mpi_request_t *found;
    SPC_MPI_TRY(get_some_request(request, &found));
    if (found->query == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_REQUEST, "the request is not one of MPI_Grequest_start");
    }
    spc_request_finish(&found->core);
    return MPI_SUCCESS;
}

/* ---- requests that the program never completes ---- */

/* Whether it is a receive that still waits, or another request that the program never completed. */
static bool is_left(spc_mpi_request_t *request) {
    if (!request->is_used || (request->is_persistent && !request->is_active)) {
        return false;
    }
    const bool is_waiting = request->core.kind == SPC_REQUEST_RECEIVE && !spc_request_is_done(&request->core);
    return is_waiting || (!request->is_forgotten && request->query == NULL);
}

static bool are_alike(const spc_mpi_request_t *one, const spc_mpi_request_t *other) {
    return strcmp(one->made_by, other->made_by) == 0 && one->place.line == other->place.line
           && (one->place.file == NULL) == (other->place.file == NULL)
           && (one->place.file == NULL || strcmp(one->place.file, other->place.file) == 0);
}

static void report(spc_mpi_request_t *request, int count) {
    char place[SPC_MPI_PLACE_BYTES], near[SPC_MPI_PLACE_BYTES] = "", what[64];
    const bool waits = request->core.kind == SPC_REQUEST_RECEIVE && !spc_request_is_done(&request->core);
    const bool is_known = request->place.file != NULL || spc_mpi.is_strict;
    if (count == 1) {
        (void)snprintf(what, sizeof(what), "the %s", waits ? "receive" : "request");
    } else {
        (void)snprintf(what, sizeof(what), "%d %ss", count, waits ? "receive" : "request");
    }
    if (waits && request->comm != NULL) {
        spc_mpi_near_text(request->comm, request->peer, request->wanted_tag, near, sizeof(near));
    }
    fprintf(stderr, "spcomm: warning: node %u: %s of %s%s %s%s; complete %s with %s or %s%s\n",
            spc_mpi.node->rank, what, spc_mpi_call_word(request->made_by),
            spc_mpi_place_text(&request->place, place),
            waits        ? "got no message"
            : count == 1 ? "was never completed"
                         : "were never completed",
            near, count == 1 ? "it" : "them", spc_mpi_call_word("MPI_Wait"), spc_mpi_call_word("MPI_Test"),
            is_known ? "" : " (--strict shows the line)");
}

/* A receive that was never completed may be into a function's variable, and the function may have returned. */
static void leave_buffers_alone(void) {
    for (spc_mpi_request_t *request = all_made; request != NULL; request = request->next_made) {
        if (request->is_used && request->core.kind == SPC_REQUEST_RECEIVE && !request->is_forgotten
            && !spc_request_is_done(&request->core)) {
            request->count = 0;
            spc_request_forget_sink(&request->core);
        }
        if (request->is_used && request->core.kind == SPC_REQUEST_ALL) {
            spc_request_end(&request->core);
        }
    }
}

/* Messages that have come in the meantime count. */
void spc_mpi_requests_report(void) {
    if (spc_mpi.world == NULL) {
        return; /* it has left its run */
    }
    spc_note_t note = {.count = 0};
    leave_buffers_alone();
    spc_request_progress(spc_mpi.node);
    for (spc_mpi_request_t *request = all_made; request != NULL; request = request->next_made) {
        if (!is_left(request) || request->is_reported) {
            continue;
        }
        const bool waits = request->core.kind == SPC_REQUEST_RECEIVE && !spc_request_is_done(&request->core);
        int count = 0;
        for (spc_mpi_request_t *other = request; other != NULL; other = other->next_made) {
            const bool other_waits =
                other->core.kind == SPC_REQUEST_RECEIVE && !spc_request_is_done(&other->core);
            if (is_left(other) && other_waits == waits && are_alike(request, other)) {
                other->is_reported = true;
                count++;
            }
        }
        report(request, count);
        note.count += (uint32_t)count;
    }
    if (note.count != 0) {
        spc_comm_note(spc_mpi.world->core, SPC_NOTE_REQUEST, &note);
    }
}
