/* SPDX-License-Identifier: MIT */
/*
 * Start and end, sessions, versions, time, memory, addresses.
 *
 * Without MPI_Init the node joins the run with the first session, and leaves it at the end of the process.
 */
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "api/spc_api_binding.h"
#include "mpi/file/spc_mpi_file.h"
#include "mpi/message/spc_mpi_diagnose.h"
#include "mpi/message/spc_mpi_request.h"

spc_mpi_t spc_mpi = {
    .world_errhandler = MPI_ERRORS_ARE_FATAL, .self_errhandler = MPI_ERRORS_ARE_FATAL, .is_watched = true};
_Thread_local const char *spc_mpi_call;

/* ---- start ---- */

static int refuse(void) {
    return spc_mpi_fail(NULL, MPI_ERR_OTHER, "%s",
                        spc_mpi.is_finished ? "MPI has ended: MPI_Finalize was called before"
                                            : "MPI is not started: call MPI_Init first");
}

static void predefine(spc_mpi_comm_t *comm, MPI_Comm handle, MPI_Errhandler errhandler, const char *name) {
    spc_mpi_handle_free(SPC_MPI_COMM, (intptr_t)comm->handle);
    comm->handle = handle;
    comm->errhandler = errhandler;
    (void)snprintf(comm->name, sizeof(comm->name), "%s", name);
}

/* The predefined communicators are there before any handle. MPI_COMM_SELF is a group of this node alone, so that no
 * node waits for another one here. */
static int start_comms(spc_comm_t *core) {
    spc_mpi_comm_t *world = spc_mpi_comm_wrap(core, NULL);
    const uint32_t rank = spc_comm_rank(core);
    spc_comm_t *own = NULL;
    if (world == NULL) {
        return SPC_ENOMEM;
    }
    int status = spc_comm_create_group(core, &rank, 1, 0, SPC_NO_DEADLINE, &own);
    spc_mpi_comm_t *self = status == SPC_OK ? spc_mpi_comm_wrap(own, NULL) : NULL;
    if (self == NULL) {
        return status != SPC_OK ? status : SPC_ENOMEM;
    }
    predefine(world, MPI_COMM_WORLD, spc_mpi.world_errhandler, "MPI_COMM_WORLD");
    predefine(self, MPI_COMM_SELF, spc_mpi.self_errhandler, "MPI_COMM_SELF");
    spc_mpi_request_sent.core.comm = core;
    spc_mpi.self = self;
    spc_mpi.world = world;
    return SPC_OK;
}

/* ---- what a report says of a waiting call ---- */

_Thread_local spcomm_mpi_here_t spcomm_mpi_here;

static uint32_t call_number(const char *call) {
#define NAME(name) "MPI_" #name,
    static const char *const names[] = {"", SPC_BOARD_MPI_CALLS(NAME)};
#undef NAME
    for (uint32_t number = 1; number < SPC_BOARD_MPI_COUNT; number++) {
        if (strcmp(names[number], call) == 0) {
            return number;
        }
    }
    return SPC_BOARD_MPI_NONE;
}

/* spc_node_t.annotate, in the thread that waits. A program in C has left its line, if spcomm mpicc compiled it. */
static void annotate(spc_board_entry_t *entry) {
    entry->flags |= spc_mpi_call != NULL ? call_number(spc_mpi_call) << SPC_BOARD_MPI_SHIFT : 0;
    if (entry->line == 0 && spcomm_mpi_here.file != NULL) {
        entry->line = (uint32_t)spcomm_mpi_here.line;
        (void)snprintf(entry->file, sizeof(entry->file), "%s", spcomm_mpi_here.file);
        (void)snprintf(entry->function, sizeof(entry->function), "%s", spcomm_mpi_here.function);
    }
}

/* spc_api_binding_t.note_line */
static void note_line(spc_note_t *note) {
    if (spcomm_mpi_here.file != NULL) {
        note->line = (uint32_t)spcomm_mpi_here.line;
        (void)snprintf(note->file, sizeof(note->file), "%s", spcomm_mpi_here.file);
        (void)snprintf(note->function, sizeof(note->function), "%s", spcomm_mpi_here.function);
    }
}

/* ---- from one run to the next: a node of a Cluster ---- */

/* Objects that the program made belong to the run, so their handles end. A window's memory stays: variables may still
 * refer to it. */
static void end_run(void) {
    void *object;
    spc_mpi.world_errhandler = spc_mpi.world->errhandler;
    spc_mpi.self_errhandler = spc_mpi.self->errhandler;
    if (!spc_mpi.is_finished) { /* functions of the program, as at its end */
        (void)spc_mpi_attributes_free((intptr_t)MPI_COMM_SELF, &spc_mpi.self->attributes);
        (void)spc_mpi_attributes_free((intptr_t)MPI_COMM_WORLD, &spc_mpi.world->attributes);
    }
    spc_mpi_requests_end();
    while ((object = spc_mpi_handle_free_any(SPC_MPI_MESSAGE)) != NULL) {
        spc_mpi_message_forget(object);
    }
    while ((object = spc_mpi_handle_free_any(SPC_MPI_FILE)) != NULL) {
        spc_mpi_file_forget(object);
    }
    while (spc_mpi_handle_free_any(SPC_MPI_WINDOW) != NULL) {
    }
    while ((object = spc_mpi_handle_free_any(SPC_MPI_COMM)) != NULL) {
        spc_mpi_comm_release(object);
    }
    spc_mpi.world->core = NULL; /* Python's */
    spc_mpi_comm_release(spc_mpi.world);
    spc_mpi_comm_release(spc_mpi.self);
    spc_mpi.world = spc_mpi.self = NULL;
    spc_mpi.tracing = NULL;
}

static int begin_run(spc_comm_t *core) {
    spc_mpi.node = core->node;
    spc_mpi.runs++;
    core->node->annotate = annotate;
    const int status = start_comms(core);
    spc_mpi.tracing = core->node->tracing;
    spc_mpi.is_watched = spc_mpi.tracing != NULL;
    spc_mpi.is_finished = false;
    return status;
}

/* spc_api_binding_t.at_run */
static int change_run(spc_comm_t *core) {
    if (spc_mpi.world != NULL) {
        end_run();
    }
    return core != NULL ? begin_run(core) : SPC_OK;
}

/* spc_api_binding.at_end. In Python, mpi4py calls MPI_Finalize after it. */
static void report_end(void) {
    spc_mpi_requests_report();
    if (spc_api_binding.core == NULL && spc_mpi.is_started) {
        char text[SPC_MPI_PLACE_BYTES];
        const spc_mpi_place_t place = {.file = spcomm_mpi_here.file, .line = spcomm_mpi_here.line};
        const char *last = spc_mpi_place_text(&place, text);
        fprintf(
            stderr,
            "spcomm: warning: node %u ended without MPI_Finalize%s%s; other MPIs take that for a failure\n",
            spc_mpi.node->rank, last[0] != '\0' ? ", after its last call" : "", last);
    }
}

/* Joins the run, with this level of threads: once. */
static int join(int required) {
    spc_comm_t *core;
    if (spc_api_binding_join(&core) != SPC_OK) {
        spc_mpi_end(1); /* the sentence was printed; before its start MPI has no error handler */
    }
    spc_mpi.main_thread = pthread_self();
    spc_api_binding.at_end = report_end;
    spc_api_binding.at_run = change_run;
    spc_api_binding.note_line = note_line;
    const char *strict = getenv("SPCOMM_STRICT");
    spc_mpi.is_strict = strict != NULL && strict[0] != '\0' && strcmp(strict, "0") != 0;
    if (spc_mpi.is_strict) {
        atomic_store_explicit(&spc_mpi_sends_left, 1, memory_order_relaxed); /* and stays so */
    }
    spc_mpi.provided = required;
    if (!spc_mpi_types_start()) {
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "no memory left for the predefined datatypes");
    }
    spc_mpi_requests_start();
    const int status = begin_run(core);
    return status != SPC_ENOMEM
               ? spc_mpi_check(NULL, status)
               : spc_mpi_fail(
                     NULL, MPI_ERR_NO_MEM,
                     "the arena has no room for MPI_COMM_SELF; start with a larger --arena, such as 1M");
}

int spc_mpi_init_thread(int *argc, char ***argv, int required, int *provided) {
    (void)argc;
    (void)argv;
    if (spc_mpi.is_started) {
        return spc_mpi_fail(NULL, MPI_ERR_OTHER, "MPI has been started already; a program starts it once");
    }
    const bool known = required == MPI_THREAD_SINGLE || required == MPI_THREAD_FUNNELED
                       || required == MPI_THREAD_SERIALIZED || required == MPI_THREAD_MULTIPLE;
    const int level = known ? required : MPI_THREAD_MULTIPLE;
    if (spc_mpi.runs == 0) {
        SPC_MPI_TRY(join(level));
    }
    spc_mpi.provided = level;
    spc_mpi.is_started = true;
    if (provided != NULL) {
        *provided = spc_mpi.provided;
    }
    return MPI_SUCCESS;
}

int spc_mpi_init(int *argc, char ***argv) {
    return spc_mpi_init_thread(argc, argv, MPI_THREAD_SINGLE, NULL);
}

int spc_mpi_initialized(int *flag) {
    *flag = spc_mpi.is_started;
    return MPI_SUCCESS;
}

int spc_mpi_finalized(int *flag) {
    *flag = spc_mpi.is_finished;
    return MPI_SUCCESS;
}

int spc_mpi_query_thread(int *provided) {
    *provided = spc_mpi.provided;
    return MPI_SUCCESS;
}

int spc_mpi_is_thread_main(int *flag) {
    *flag = pthread_equal(spc_mpi.main_thread, pthread_self());
    return MPI_SUCCESS;
}

/* ---- end ---- */

/* Frees attributes of MPI_COMM_SELF first: their delete functions are the programs' exit hooks. */
int spc_mpi_finalize(void) {
    if (!spc_mpi.is_started) { /* there are sessions */
        return refuse();
    }
    SPC_MPI_TRY(spc_mpi_attributes_free((intptr_t)MPI_COMM_SELF, &spc_mpi.self->attributes));
    SPC_MPI_TRY(spc_mpi_attributes_free((intptr_t)MPI_COMM_WORLD, &spc_mpi.world->attributes));
    if (spc_api_binding.core == NULL) {
        spc_mpi_requests_report();
    }
    spc_mpi.is_finished = spc_mpi.is_watched = true;
    const int status = spc_api_binding_leave();
    if (status != SPC_OK) {
        return spc_mpi_check(spc_mpi.world, status);
    }
    return MPI_SUCCESS;
}

_Noreturn void spc_mpi_end(int exit_code) {
    spc_api_binding_abort(exit_code);
}

int spc_mpi_abort(MPI_Comm comm, int errorcode) {
    (void)comm; /* MPI allows a library to end more processes: the whole run */
    fprintf(stderr, "spcomm: node %u called MPI_Abort with error code %d\n",
            spc_mpi.node != NULL ? spc_mpi.node->rank : 0, errorcode);
    spc_mpi_end(errorcode);
}

/* ---- sessions ---- */

typedef struct session {
    MPI_Session handle;
    MPI_Errhandler errhandler;
    MPI_Info info;
    spc_mpi_buffer_t buffer;
} session_t;

static const char *const set_names[] = {"mpi://WORLD", "mpi://SELF"};
enum { WORLD_SET, SELF_SET, SETS };

/* MPI_SUCCESS and the object, or MPI_ERR_SESSION. */
static int get_session(MPI_Session handle, session_t **session) {
    *session = spc_mpi_handle_find(SPC_MPI_SESSION, (intptr_t)handle);
    return *session != NULL
               ? MPI_SUCCESS
               : spc_mpi_fail(NULL, MPI_ERR_SESSION,
                              handle == MPI_SESSION_NULL ? "the session is MPI_SESSION_NULL"
                                                         : "the session is not a valid handle, or was ended");
}

#define FAIL(session, error_class, ...)                                                               \
    spc_mpi_fail_by((session)->errhandler, SPC_MPI_SESSION, (intptr_t)(session)->handle, error_class, \
                    __VA_ARGS__)

/* ---- sessions: start and end ---- */

/* Threads may begin their sessions at the same time. */
static int join_once(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const int code = spc_mpi.runs == 0 ? join(MPI_THREAD_MULTIPLE) : MPI_SUCCESS;
    pthread_mutex_unlock(&lock);
    return code;
}

int spc_mpi_session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session) {
    *session = MPI_SESSION_NULL;
    if (spc_mpi.is_finished) {
        return spc_mpi_fail_by(errhandler, SPC_MPI_SESSION, (intptr_t)MPI_SESSION_NULL, MPI_ERR_OTHER,
                               "MPI has ended: a session begins before MPI_Finalize");
    }
    SPC_MPI_TRY(join_once());
    SPC_MPI_TRY(spc_mpi_check_errhandler(errhandler));
    session_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for a session");
    }
    const int code = spc_mpi_info_copy(info, &made->info);
    if (code != MPI_SUCCESS) {
        free(made);
        return code;
    }
    made->errhandler = errhandler;
    made->handle = (MPI_Session)spc_mpi_handle_create(SPC_MPI_SESSION, made);
    *session = made->handle;
    return MPI_SUCCESS;
}

int spc_mpi_session_finalize(MPI_Session *session) {
    session_t *found;
    SPC_MPI_TRY(get_session(*session, &found));
    spc_mpi_handle_free(SPC_MPI_SESSION, (intptr_t)*session);
    (void)spc_mpi_info_free(&found->info);
    free(found);
    *session = MPI_SESSION_NULL;
    return MPI_SUCCESS;
}

int spc_mpi_session_get_info(MPI_Session session, MPI_Info *info_used) {
    session_t *found;
    SPC_MPI_TRY(get_session(session, &found));
    return spc_mpi_info_dup(found->info, info_used);
}

/* ---- sessions: process sets, the two that every MPI has ---- */

int spc_mpi_session_get_num_psets(MPI_Session session, MPI_Info info, int *npset_names) {
    session_t *found;
    (void)info;
    SPC_MPI_TRY(get_session(session, &found));
    *npset_names = SETS;
    return MPI_SUCCESS;
}

/* A length of 0 asks for the length alone. */
int spc_mpi_session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int *pset_len, char *pset_name) {
    session_t *found;
    (void)info;
    SPC_MPI_TRY(get_session(session, &found));
    if (n < 0 || n >= SETS) {
        return FAIL(found, MPI_ERR_ARG, "n=%d: there are %d process sets (0 to %d)", n, SETS, SETS - 1);
    }
    if (*pset_len > 0) {
        (void)snprintf(pset_name, (size_t)*pset_len, "%s", set_names[n]);
    }
    *pset_len = (int)strlen(set_names[n]) + 1;
    return MPI_SUCCESS;
}

static int find_set(const session_t *session, const char *name, int *set) {
    for (*set = 0; *set < SETS; ++*set) {
        if (strcasecmp(name, set_names[*set]) == 0) {
            return MPI_SUCCESS;
        }
    }
    return FAIL(session, MPI_ERR_ARG, "there is no process set %s; there are %s and %s", name,
                set_names[WORLD_SET], set_names[SELF_SET]);
}

static MPI_Comm comm_of(int set) {
    return set == WORLD_SET ? MPI_COMM_WORLD : MPI_COMM_SELF;
}

int spc_mpi_session_get_pset_info(MPI_Session session, const char *pset_name, MPI_Info *info) {
    session_t *found;
    int set, size;
    char text[16];
    SPC_MPI_TRY(get_session(session, &found));
    SPC_MPI_TRY(find_set(found, pset_name, &set));
    SPC_MPI_TRY(spc_mpi_comm_size(comm_of(set), &size));
    (void)snprintf(text, sizeof(text), "%d", size);
    SPC_MPI_TRY(spc_mpi_info_create(info));
    return spc_mpi_info_set(*info, "mpi_size", text);
}

int spc_mpi_group_from_session_pset(MPI_Session session, const char *pset_name, MPI_Group *newgroup) {
    session_t *found;
    int set;
    *newgroup = MPI_GROUP_NULL;
    SPC_MPI_TRY(get_session(session, &found));
    SPC_MPI_TRY(find_set(found, pset_name, &set));
    return spc_mpi_comm_group(comm_of(set), newgroup);
}

/* ---- sessions: error handlers ---- */

int spc_mpi_session_create_errhandler(MPI_Session_errhandler_function *session_errhandler_fn,
                                      MPI_Errhandler *errhandler) {
    return spc_mpi_errhandler_make(*(void **)&session_errhandler_fn, errhandler);
}

int spc_mpi_session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler) {
    session_t *found;
    SPC_MPI_TRY(get_session(session, &found));
    SPC_MPI_TRY(spc_mpi_check_errhandler(errhandler));
    found->errhandler = errhandler;
    return MPI_SUCCESS;
}

int spc_mpi_session_get_errhandler(MPI_Session session, MPI_Errhandler *errhandler) {
    session_t *found;
    SPC_MPI_TRY(get_session(session, &found));
    *errhandler = found->errhandler;
    return MPI_SUCCESS;
}

int spc_mpi_session_call_errhandler(MPI_Session session, int errorcode) {
    session_t *found;
    SPC_MPI_TRY(get_session(session, &found));
    return spc_mpi_raise(found->errhandler, (intptr_t)session, errorcode);
}

/* ---- sessions: buffers for buffered sends ---- */

int spc_mpi_session_attach_buffer(MPI_Session session, void *buffer, MPI_Count size) {
    session_t *found;
    SPC_MPI_TRY(get_session(session, &found));
    return spc_mpi_attach(NULL, &found->buffer, buffer, size);
}

int spc_mpi_session_detach_buffer(MPI_Session session, void *buffer_addr, MPI_Count *size) {
    session_t *found;
    SPC_MPI_TRY(get_session(session, &found));
    return spc_mpi_detach(&found->buffer, buffer_addr, size);
}

int spc_mpi_session_flush_buffer(MPI_Session session) {
    session_t *found;
    return get_session(session, &found);
}

int spc_mpi_session_iflush_buffer(MPI_Session session, MPI_Request *request) {
    session_t *found;
    SPC_MPI_TRY(get_session(session, &found));
    return spc_mpi_buffer_iflush(request);
}

/* ---- versions and machine ---- */

int spc_mpi_get_version(int *version, int *subversion) {
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

int spc_mpi_get_library_version(char *version, int *resultlen) {
    return spc_mpi_give_text("spcomm", version, resultlen);
}

int spc_mpi_get_processor_name(char *name, int *resultlen) {
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    (void)gethostname(host, sizeof(host) - 1);
    return spc_mpi_give_text(host, name, resultlen);
}

/* -1, -1: not the standard's ABI. */
int spc_mpi_abi_get_version(int *abi_major, int *abi_minor) {
#ifdef SPC_MPI_STANDARD_ABI
    *abi_major = 1;
    *abi_minor = 0;
#else
    *abi_major = -1;
    *abi_minor = -1;
#endif
    return MPI_SUCCESS;
}

int spc_mpi_abi_get_info(MPI_Info *info) {
    SPC_MPI_TRY(spc_mpi_info_create(info));
    SPC_MPI_TRY(spc_mpi_info_set(*info, "mpi_aint_size", "8"));
    SPC_MPI_TRY(spc_mpi_info_set(*info, "mpi_count_size", "8"));
    return spc_mpi_info_set(*info, "mpi_offset_size", "8");
}

/* This library has no Fortran interface. */
int spc_mpi_abi_get_fortran_info(MPI_Info *info) {
    *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
}

int spc_mpi_get_hw_resource_info(MPI_Info *hw_info) {
    return spc_mpi_info_create(hw_info);
}

double spc_mpi_wtime(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double spc_mpi_wtick(void) {
    return 1e-9;
}

/* ---- memory and addresses ---- */

int spc_mpi_alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr) {
    (void)info;
    if (size < 0) {
        return spc_mpi_fail(NULL, MPI_ERR_ARG, "size is %lld; it cannot be negative", (long long)size);
    }
    void *memory = malloc(size > 0 ? (size_t)size : 1);
    if (memory == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for %lld bytes", (long long)size);
    }
    *(void **)baseptr = memory;
    return MPI_SUCCESS;
}

int spc_mpi_free_mem(void *base) {
    free(base);
    return MPI_SUCCESS;
}

int spc_mpi_get_address(const void *location, MPI_Aint *address) {
    *address = (MPI_Aint)location;
    return MPI_SUCCESS;
}

MPI_Aint spc_mpi_aint_add(MPI_Aint base, MPI_Aint disp) {
    return (MPI_Aint)((uint64_t)base + (uint64_t)disp);
}

MPI_Aint spc_mpi_aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
    return (MPI_Aint)((uint64_t)addr1 - (uint64_t)addr2);
}

/* ---- calls that are watched ---- */

int spc_mpi_enter_watched(const char *call, bool at_any_time) {
    if (!at_any_time && (spc_mpi.runs == 0 || spc_mpi.is_finished)) {
        return refuse();
    }
    if (spc_mpi.tracing != NULL) {
        spc_api_binding_trace(spc_mpi.world->core, call);
    }
    return MPI_SUCCESS;
}

void spc_mpi_trace_end(void) {
    spc_trace_record(spc_mpi.tracing, &(spc_trace_event_t){.kind = SPC_TRACE_RETURN});
}
