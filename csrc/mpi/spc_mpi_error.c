/* SPDX-License-Identifier: MIT */
/*
 * Errors as codes. A code has the error class in its low bits, and above them the number of its sentence. The last
 * SENTENCES sentences are kept; an older code is explained by its class alone. Classes and codes that a program
 * adds lie above all of these.
 */
#include "mpi/spc_mpi.h"

#include <stdarg.h>

#include "api/spc_api_binding.h"
#include "mpi/message/spc_mpi_diagnose.h"

enum {
    CLASS_BITS = 8,
    SENTENCES = 64,
    CODES_END = SENTENCES << CLASS_BITS,
    ADDED_FIRST = MPI_ERR_LASTCODE + 1,
    ADDED_MAX = 1024,
};

_Static_assert(ADDED_FIRST >= CODES_END, "a code of a program differs from all of the library's");

typedef struct added {
    int error_class; /* of a code; of a class: itself */
    bool is_used;
    char text[MPI_MAX_ERROR_STRING];
} added_t;

typedef struct error_handler {
    MPI_Comm_errhandler_function
        *function; /* those of windows and files differ only in their handle's type */
} error_handler_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char sentences[SENTENCES][MPI_MAX_ERROR_STRING];
static unsigned sentence_count;
static added_t *added[ADDED_MAX];
static int added_count;

/* ---- classes ---- */

/* Each class of the standard, with its meaning. */
#define CLASSES(X)                                                   \
    X(SUCCESS, "no error")                                           \
    X(ERR_BUFFER, "invalid buffer pointer")                          \
    X(ERR_COUNT, "invalid count")                                    \
    X(ERR_TYPE, "invalid datatype")                                  \
    X(ERR_TAG, "invalid tag")                                        \
    X(ERR_COMM, "invalid communicator")                              \
    X(ERR_RANK, "invalid rank")                                      \
    X(ERR_REQUEST, "invalid request")                                \
    X(ERR_ROOT, "invalid root")                                      \
    X(ERR_GROUP, "invalid group")                                    \
    X(ERR_OP, "invalid operator")                                    \
    X(ERR_TOPOLOGY, "invalid topology")                              \
    X(ERR_DIMS, "invalid dimensions")                                \
    X(ERR_ARG, "invalid argument")                                   \
    X(ERR_UNKNOWN, "unknown error")                                  \
    X(ERR_TRUNCATE, "message truncated")                             \
    X(ERR_OTHER, "other error")                                      \
    X(ERR_INTERN, "internal error")                                  \
    X(ERR_PENDING, "pending request")                                \
    X(ERR_IN_STATUS, "error code is in the status")                  \
    X(ERR_ACCESS, "permission denied")                               \
    X(ERR_AMODE, "invalid access mode")                              \
    X(ERR_ASSERT, "invalid assertion")                               \
    X(ERR_BAD_FILE, "invalid file name")                             \
    X(ERR_BASE, "invalid base pointer")                              \
    X(ERR_CONVERSION, "error in data conversion")                    \
    X(ERR_DISP, "invalid displacement")                              \
    X(ERR_DUP_DATAREP, "data representation exists")                 \
    X(ERR_FILE_EXISTS, "file exists")                                \
    X(ERR_FILE_IN_USE, "file in use")                                \
    X(ERR_FILE, "invalid file handle")                               \
    X(ERR_INFO_KEY, "info key too long")                             \
    X(ERR_INFO_NOKEY, "no such info key")                            \
    X(ERR_INFO_VALUE, "info value too long")                         \
    X(ERR_INFO, "invalid info")                                      \
    X(ERR_IO, "input/output error")                                  \
    X(ERR_KEYVAL, "invalid key value")                               \
    X(ERR_LOCKTYPE, "invalid lock type")                             \
    X(ERR_NAME, "invalid service name")                              \
    X(ERR_NO_MEM, "out of memory")                                   \
    X(ERR_NOT_SAME, "arguments differ between processes")            \
    X(ERR_NO_SPACE, "no space left on device")                       \
    X(ERR_NO_SUCH_FILE, "no such file")                              \
    X(ERR_PORT, "invalid port")                                      \
    X(ERR_QUOTA, "quota exceeded")                                   \
    X(ERR_READ_ONLY, "read-only file or file system")                \
    X(ERR_RMA_ATTACH, "memory cannot be attached")                   \
    X(ERR_RMA_CONFLICT, "conflicting accesses to a window")          \
    X(ERR_RMA_RANGE, "target memory outside the window")             \
    X(ERR_RMA_SHARED, "memory cannot be shared")                     \
    X(ERR_RMA_SYNC, "wrong synchronization of one-sided operations") \
    X(ERR_SERVICE, "invalid service")                                \
    X(ERR_SIZE, "invalid size")                                      \
    X(ERR_SPAWN, "processes cannot be spawned")                      \
    X(ERR_UNSUPPORTED_DATAREP, "unsupported data representation")    \
    X(ERR_UNSUPPORTED_OPERATION, "unsupported operation")            \
    X(ERR_WIN, "invalid window")                                     \
    X(ERR_RMA_FLAVOR, "wrong flavor of window")                      \
    X(ERR_PROC_ABORTED, "process aborted")                           \
    X(ERR_VALUE_TOO_LARGE, "value too large")                        \
    X(ERR_SESSION, "invalid session")                                \
    X(ERR_ERRHANDLER, "invalid error handler")                       \
    X(ERR_ABI, "no such ABI")

static const char *meaning(int error_class) {
    switch (error_class) {
#define CASE(name, text) \
    case MPI_##name:     \
        return "MPI_" #name ": " text;
        CLASSES(CASE)
#undef CASE
    default:
        return NULL;
    }
}

static added_t *added_at(int code) {
    const int index = code >= ADDED_FIRST ? code - ADDED_FIRST : -1;
    return index >= 0 && index < added_count && added[index]->is_used ? added[index] : NULL;
}

static int class_of(int code) {
    const added_t *own = added_at(code);
    return own != NULL ? own->error_class : code & ((1 << CLASS_BITS) - 1);
}

/* ---- raising ---- */

/* A program in C has left the line of the call, if spcomm mpicc compiled it. */
static _Noreturn void end_by(int code) {
    char place[SPC_MPI_PLACE_BYTES], who[SPC_MPI_PLACE_BYTES + 32] = "";
    const spc_mpi_place_t here = {.file = spcomm_mpi_here.file, .line = spcomm_mpi_here.line};
    (void)spc_mpi_place_text(&here, place);
    if (spc_mpi.node != NULL) {
        (void)snprintf(who, sizeof(who), "node %u%s: ", spc_mpi.node->rank, place);
    } else if (place[0] != '\0') {
        (void)snprintf(who, sizeof(who), "%s: ", place + strlen(" at "));
    }
    /* At once: another node's failure may end this one at any moment. */
    fprintf(stderr, "spcomm: %s%s\n", who, sentences[code >> CLASS_BITS & (SENTENCES - 1)]);
    spc_mpi_end(1);
}

static int raise_code(MPI_Errhandler errhandler, intptr_t handle, int code) {
    if (errhandler == MPI_ERRORS_RETURN) {
        return code;
    }
    const error_handler_t *own = spc_mpi_handle_find(SPC_MPI_ERRHANDLER, (intptr_t)errhandler);
    if (own == NULL) {
        end_by(code);
    }
    own->function((MPI_Comm *)(void *)&handle,
                  &code); /* a file's handle may be wider than a communicator's */
    return code;
}

/* The code of the sentence: "<MPI function>: ..." */
static int keep(int error_class, const char *format, va_list values) {
    char text[MPI_MAX_ERROR_STRING];
    int length = spc_mpi_call != NULL ? snprintf(text, sizeof(text), "%s: ", spc_mpi_call) : 0;
    (void)vsnprintf(text + length, sizeof(text) - (size_t)length, format, values);
    pthread_mutex_lock(&lock);
    const unsigned last = sentence_count & (SENTENCES - 1);
    if (strcmp(sentences[last], text) != 0) { /* a loop that fails again and again keeps one sentence */
        sentence_count++;
    }
    const unsigned number = sentence_count & (SENTENCES - 1);
    memcpy(sentences[number], text, sizeof(text));
    pthread_mutex_unlock(&lock);
    return error_class | (int)(number << CLASS_BITS);
}

int spc_mpi_fail(const spc_mpi_comm_t *comm, int error_class, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int code = keep(error_class, format, values);
    va_end(values);
    comm = comm != NULL ? comm : spc_mpi.self;
    return raise_code(comm != NULL ? comm->errhandler : spc_mpi.self_errhandler,
                      comm != NULL ? (intptr_t)comm->handle : (intptr_t)MPI_COMM_SELF, code);
}

int spc_mpi_fail_by(MPI_Errhandler errhandler, spc_mpi_kind_t kind, intptr_t handle, int error_class,
                    const char *format, ...) {
    va_list values;
    (void)kind;
    va_start(values, format);
    const int code = keep(error_class, format, values);
    va_end(values);
    return raise_code(errhandler, handle, code);
}

static int class_of_status(int status) {
    switch (status) {
    case SPC_ERANK:
        return MPI_ERR_RANK;
    case SPC_ETAG:
        return MPI_ERR_TAG;
    case SPC_ENOMEM:
        return MPI_ERR_NO_MEM;
    case SPC_ECLOSED:
        return MPI_ERR_COMM;
    case SPC_ELOST:
    case SPC_EFINISHED:
    case SPC_EDISCONNECTED:
        return MPI_ERR_PROC_ABORTED;
    case SPC_ETRUNCATED:
        return MPI_ERR_TRUNCATE;
    default:
        return MPI_ERR_OTHER;
    }
}

int spc_mpi_check(const spc_mpi_comm_t *comm, int status) {
    return __builtin_expect(status == SPC_OK, 1) ? MPI_SUCCESS
                                                 : spc_mpi_check_as(comm, status, spc_mpi_call, "");
}

int spc_mpi_check_as(const spc_mpi_comm_t *comm, int status, const char *call, const char *more) {
    char text[MPI_MAX_ERROR_STRING];
    const spc_mpi_comm_t *known = comm != NULL ? comm : spc_mpi.world;
    spc_api_binding_explain(known != NULL ? known->core : NULL, status, call, text, sizeof(text));
    return spc_mpi_fail(comm, class_of_status(status), "%s%s", text, more);
}

int spc_mpi_refuse_null(const char *name) {
    return spc_mpi_fail(NULL, MPI_ERR_ARG, "%s is NULL, and the call needs memory there", name);
}

/* The pools of mpi4py.futures start their workers in a thread of their own. If that fails, the main thread waits for
 * them for ever, and no other thread can tell it, so the run ends here. */
int spc_mpi_left_out(const char *call) {
    const bool spawns = strncmp(call, "MPI_Comm_spawn", strlen("MPI_Comm_spawn")) == 0;
    spc_mpi_call = call;
    const int code =
        spc_mpi_fail(NULL, MPI_ERR_UNSUPPORTED_OPERATION, "spcomm does not have this function; %s",
                     spawns ? "all processes start together: spcomm run -n N PROGRAM, and for a pool of "
                              "mpi4py.futures spcomm run -n N -m mpi4py.futures PROGRAM"
                            : "spcomm's guide on MPI programs lists what it has");
    if (spc_mpi.runs > 0 && !pthread_equal(spc_mpi.main_thread, pthread_self())) {
        end_by(code);
    }
    return code;
}

/* ---- queries ---- */

int spc_mpi_error_class(int errorcode, int *errorclass) {
    *errorclass = class_of(errorcode);
    return MPI_SUCCESS;
}

static void describe(int code, char *text, size_t room) {
    const added_t *own = added_at(code);
    const char *known = meaning(class_of(code));
    const char *sentence = sentences[code >> CLASS_BITS & (SENTENCES - 1)];
    if (own != NULL) {
        (void)snprintf(text, room, "%s", own->text);
    } else if (known == NULL) {
        (void)snprintf(text, room, "MPI error %d", code);
    } else if (code >> CLASS_BITS == 0 || code >= CODES_END || code < 0) {
        (void)snprintf(text, room, "%s", known);
    } else {
        (void)snprintf(text, room, "%.*s: %s", (int)strcspn(known, ":"), known, sentence);
    }
}

int spc_mpi_error_string(int errorcode, char *string, int *resultlen) {
    char text[MPI_MAX_ERROR_STRING];
    pthread_mutex_lock(&lock);
    describe(errorcode, text, sizeof(text));
    pthread_mutex_unlock(&lock);
    return spc_mpi_give_text(text, string, resultlen);
}

/* ---- classes and codes of the program ---- */

static int add(int error_class, int *number) {
    pthread_mutex_lock(&lock);
    int index = 0;
    while (index < added_count && added[index]->is_used) {
        index++;
    }
    if (index == added_count && index < ADDED_MAX) {
        added[index] = calloc(1, sizeof(*added[index]));
        added_count += added[index] != NULL;
    }
    const bool has_room = index < added_count;
    if (has_room) {
        *number = ADDED_FIRST + index;
        *added[index] = (added_t){.error_class = error_class < 0 ? *number : error_class, .is_used = true};
    }
    pthread_mutex_unlock(&lock);
    return has_room ? MPI_SUCCESS
                    : spc_mpi_fail(NULL, MPI_ERR_OTHER, "there is no room for more than %d error codes",
                                   ADDED_MAX);
}

int spc_mpi_last_code(void) {
    int count = added_count;
    while (count > 0 && !added[count - 1]->is_used) {
        count--;
    }
    return count > 0 ? ADDED_FIRST + count - 1 : MPI_ERR_LASTCODE;
}

int spc_mpi_add_error_class(int *errorclass) {
    return add(-1, errorclass);
}

int spc_mpi_add_error_code(int errorclass, int *errorcode) {
    return add(errorclass, errorcode);
}

static int get_added(int number, added_t **own) {
    *own = added_at(number);
    return *own != NULL ? MPI_SUCCESS
                        : spc_mpi_fail(NULL, MPI_ERR_ARG,
                                       "%d: this program has added no such error class or code", number);
}

int spc_mpi_add_error_string(int errorcode, const char *string) {
    added_t *own;
    SPC_MPI_TRY(get_added(errorcode, &own));
    (void)snprintf(own->text, sizeof(own->text), "%s", string);
    return MPI_SUCCESS;
}

/* Removes a class or a code on which nothing depends any more. */
static int remove_added(int number, bool is_class) {
    added_t *own;
    SPC_MPI_TRY(get_added(number, &own));
    if ((own->error_class == number) != is_class) {
        return spc_mpi_fail(NULL, MPI_ERR_ARG, "%d is an error %s", number, is_class ? "code" : "class");
    }
    if (own->text[0] != '\0') {
        return spc_mpi_fail(NULL, MPI_ERR_OTHER, "%d has a string: remove that first", number);
    }
    for (int i = 0; is_class && i < added_count; i++) {
        if (added[i]->is_used && added[i]->error_class == number && ADDED_FIRST + i != number) {
            return spc_mpi_fail(NULL, MPI_ERR_OTHER, "the error class %d has the code %d: remove that first",
                                number, ADDED_FIRST + i);
        }
    }
    own->is_used = false;
    return MPI_SUCCESS;
}

int spc_mpi_remove_error_class(int errorclass) {
    return remove_added(errorclass, true);
}

int spc_mpi_remove_error_code(int errorcode) {
    return remove_added(errorcode, false);
}

int spc_mpi_remove_error_string(int errorcode) {
    added_t *own;
    SPC_MPI_TRY(get_added(errorcode, &own));
    own->text[0] = '\0';
    return MPI_SUCCESS;
}

/* ---- error handlers ---- */

int spc_mpi_errhandler_make(void *function, MPI_Errhandler *errhandler) {
    error_handler_t *made = malloc(sizeof(*made));
    if (made == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for an error handler");
    }
    *(void **)&made->function = function;
    *errhandler = (MPI_Errhandler)spc_mpi_handle_create(SPC_MPI_ERRHANDLER, made);
    return MPI_SUCCESS;
}

int spc_mpi_check_errhandler(MPI_Errhandler errhandler) {
    const bool is_known = errhandler == MPI_ERRORS_RETURN || errhandler == MPI_ERRORS_ARE_FATAL
                          || errhandler == MPI_ERRORS_ABORT
                          || spc_mpi_handle_find(SPC_MPI_ERRHANDLER, (intptr_t)errhandler) != NULL;
    return is_known ? MPI_SUCCESS
                    : spc_mpi_fail(NULL, MPI_ERR_ARG, "errhandler is not a valid handle of an error handler");
}

int spc_mpi_raise(MPI_Errhandler errhandler, intptr_t handle, int code) {
    (void)raise_code(errhandler, handle, code);
    return MPI_SUCCESS;
}

int spc_mpi_comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn,
                                   MPI_Errhandler *errhandler) {
    return spc_mpi_errhandler_make(*(void **)&comm_errhandler_fn, errhandler);
}

/* Frees only the caller's handle: objects keep using the handler. */
int spc_mpi_errhandler_free(MPI_Errhandler *errhandler) {
    SPC_MPI_TRY(spc_mpi_check_errhandler(*errhandler));
    *errhandler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

/* mpi4py calls it before it returns from Idup. */
int spc_mpi_comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_any_comm(comm, &found));
    SPC_MPI_TRY(spc_mpi_check_errhandler(errhandler));
    found->errhandler = errhandler;
    if (found->local != NULL) {
        found->local->errhandler = errhandler;
    }
    return MPI_SUCCESS;
}

int spc_mpi_comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    *errhandler = found->errhandler;
    return MPI_SUCCESS;
}

int spc_mpi_comm_call_errhandler(MPI_Comm comm, int errorcode) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return spc_mpi_raise(found->errhandler, (intptr_t)comm, errorcode);
}
