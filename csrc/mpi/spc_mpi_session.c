/* SPDX-License-Identifier: MIT */
/*
 * Sessions: MPI without MPI_Init. The node joins the run with the first session or with MPI_Init, whichever comes
 * first, and leaves it in MPI_Finalize or at the end of the process. The process sets are the two that every MPI has.
 */
#include <strings.h>

#include "mpi/spc_mpi_request.h"

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

/* ---- start and end ---- */

/* Threads may begin their sessions at the same time. */
static int join_once(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const int code = spc_mpi.runs == 0 ? spc_mpi_join(MPI_THREAD_MULTIPLE) : MPI_SUCCESS;
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

/* ---- process sets ---- */

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

/* ---- error handlers ---- */

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

/* ---- buffers for buffered sends ---- */

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
