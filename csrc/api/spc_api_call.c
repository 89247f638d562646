/* SPDX-License-Identifier: MIT */
/*
 * The beginning and end of each call of the public C interface: checks, the trace, and the reason why it has failed.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/spc_api_private.h"

/* The public numbers equal the core's: there is one list of errors. */
#define SAME_NUMBER(name, number, message) \
    _Static_assert((int)SPCOMM_##name == (int)SPC_##name, "SPCOMM_" #name " differs from SPC_" #name);
SPC_ERRORS(SAME_NUMBER)
#undef SAME_NUMBER

const char *spcomm_error_name(int status) {
    switch (status) {
#define NAME_CASE(name, number, message) \
    case number:                         \
        return "SPCOMM_" #name;
        SPC_ERRORS(NAME_CASE)
#undef NAME_CASE
    default:
        return "SPCOMM_E?";
    }
}

const char *spcomm_error_message(int status) {
    return spc_error_message(status);
}

const char *spcomm_version(void) {
    return SPCOMM_VERSION;
}

/* ---- sentences ---- */

#define SENTENCE_BYTES 2048
#define CALL_BYTES 256 /* of a call's text: more is cut */

static _Thread_local spc_api_outcome_t last;
static _Thread_local char sentence[SENTENCE_BYTES];

const char *spcomm_last_error(void) {
    return sentence;
}

spc_api_outcome_t *spc_api_last_outcome(void) {
    return &last;
}

/* Appends text to this thread's sentence, cut where the room ends. */
typedef struct writer {
    size_t length;
} writer_t;

static writer_t begin_sentence(int status) {
    last.status = status;
    return (writer_t){0};
}

static void add_arguments(writer_t *writer, const char *format, va_list arguments) {
    size_t room = SENTENCE_BYTES - writer->length;
    int length = vsnprintf(sentence + writer->length, room, format, arguments);
    if (length > 0) {
        writer->length += (size_t)length < room ? (size_t)length : room - 1;
    }
}

__attribute__((format(printf, 2, 3))) static void add(writer_t *writer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_arguments(writer, format, arguments);
    va_end(arguments);
}

static void add_mismatch(writer_t *writer, const spcomm_t *comm, const spc_note_t *mine) {
    char *text = spc_comm_explain_mismatch(comm->core, mine != NULL ? mine : &(spc_note_t){.line = 0});
    add(writer, "%s", text != NULL ? text : spc_error_message(SPC_EMISMATCH));
    free(text);
}

/* The advice ends with the command that starts more nodes, unless the program itself has asked for one. */
static int write_wait(const spcomm_t *root, FILE *out) {
    char advice[SENTENCE_BYTES];
    if (root->asked_for_one) {
        snprintf(
            advice, sizeof(advice),
            "This program runs as one node because spcomm_startup, or its infile, asks for one; more nodes "
            "may be meant.");
    } else {
        snprintf(advice, sizeof(advice),
                 "This program runs as one node because it was started without spcomm run.\n"
                 "  Try: spcomm run -n 4 %s",
                 root->program);
    }
    return spc_comm_report_wait(root->core, advice, out);
}

char *spc_api_report_wait(const spcomm_t *root) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        return NULL;
    }
    int status = write_wait(root, out);
    if (fclose(out) != 0 || status != SPC_OK) {
        free(text);
        return NULL;
    }
    return text;
}

/* The report, without the name and the line break that a launcher needs. */
static void add_deadlock(writer_t *writer, const spcomm_t *comm) {
    static const char name[] = "spcomm: ";
    char *text = spc_api_report_wait(comm->root);
    if (text != NULL) {
        add(writer, "%.*s", (int)(strlen(text) - strlen(name) - 1), text + strlen(name));
    } else {
        add(writer, "%s", spc_error_message(SPC_EDEADLOCK));
    }
    free(text);
}

static void add_explanation(writer_t *writer, const spcomm_t *comm, int status, const char *call) {
    /* A part that was shut down has no core any more. */
    const spcomm_t *known = comm != NULL && comm->core == NULL ? comm->root : comm;
    char *text = spc_comm_explain(known != NULL ? known->core : NULL, status, call, NULL);
    add(writer, "%s", text != NULL ? text : spc_error_message(status));
    free(text);
}

static void add_reason(writer_t *writer, const spcomm_t *comm, int status, const char *call,
                       const spc_note_t *mine) {
    switch (status) {
    case SPC_EMISMATCH:
        add_mismatch(writer, comm, mine);
        break;
    case SPC_EDEADLOCK:
        add_deadlock(writer, comm);
        break;
    case SPC_ESYSTEM:
        add(writer, "%s", strerror(errno));
        break;
    case SPC_ENOMEM:
        add(writer, "%s", spc_error_message(status));
        break;
    case SPC_EINTERRUPTED:
        add(writer, "the handler of tag %d has ended this call", last.ended_by);
        break;
    default:
        add_explanation(writer, comm, status, call);
    }
}

/* Text behind the call. Its arguments are ranks of the part; the ranks that follow are those of the run. */
static void add_part(writer_t *writer, const spcomm_t *comm) {
    if (comm != NULL && comm->root != comm) {
        add(writer, ", as node %u of a part of %u", comm->rank, comm->size);
    }
    add(writer, ": ");
}

int spc_api_fail(spcomm_t *comm, int status, const char *call, ...) {
    if (status == SPC_OK || status == SPC_EAGAIN) {
        return status;
    }
    char words[CALL_BYTES];
    writer_t writer = begin_sentence(status);
    va_list arguments;
    va_start(arguments, call);
    (void)vsnprintf(words, sizeof(words), call, arguments);
    va_end(arguments);
    add(&writer, "%s", words);
    add_part(&writer, comm);
    add_reason(&writer, comm, status, words, NULL);
    return status;
}

int spc_api_fail_collective(spcomm_t *comm, int status, const char *call, const spc_note_t *mine) {
    if (status == SPC_OK) {
        return status;
    }
    writer_t writer = begin_sentence(status);
    add(&writer, "%s", call);
    add_part(&writer, comm);
    add_reason(&writer, comm, status, call, mine);
    if (status == SPC_EINTERRUPTED) {
        add(&writer, "; node %u stays entered: repeat the same call",
            spc_comm_rank_in_run(comm->core, comm->rank));
    }
    return status;
}

int spc_api_refuse(int status, const char *format, ...) {
    writer_t writer = begin_sentence(status);
    va_list arguments;
    va_start(arguments, format);
    add_arguments(&writer, format, arguments);
    va_end(arguments);
    return status;
}

int spc_api_refuse_rank(const spcomm_t *comm, const char *call, int32_t rank, const char *role,
                        const char *constants) {
    if (rank > 0 && comm->size == 1 && comm->root == comm && !comm->asked_for_one) {
        return spc_api_refuse(SPC_ERANK,
                              "%s: there is no node %d%s; this is a run of one node: start it with "
                              "`spcomm run -n 4 %s`",
                              call, rank, role, comm->root->program);
    }
    return spc_api_refuse(SPC_ERANK, "%s: there is no node %d%s; this %s has nodes 0 to %u%s", call, rank,
                          role, spc_api_kind(comm), comm->size - 1, constants);
}

int spc_api_check(spcomm_t *comm, const char *call) {
    if (comm == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: comm is NULL; spcomm_startup gives one", call);
    }
    int status = comm->core == NULL ? SPC_ECLOSED : spc_comm_usable(comm->core);
    return status == SPC_OK ? SPC_OK : spc_api_fail(comm, status, "%s", call);
}

/* ---- trace: the calls of C and C++ programs. Call names are recorded; C programs report no call sites. */

enum { CALLS_MAX = 128, CALL_NAME_BYTES = 48 };

typedef struct call_number {
    _Atomic(const char *) call; /* release by find_number after `number`, acquire by the same */
    uint32_t number;
} call_number_t;

static call_number_t calls[CALLS_MAX];
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;

/* "spcomm_send()": "send". */
static uint32_t name_call(spc_trace_t *trace, const char *call) {
    char text[CALL_NAME_BYTES] = "";
    strncpy(text, strncmp(call, "spcomm_", 7) == 0 ? call + 7 : call, CALL_NAME_BYTES - 1);
    text[strcspn(text, "(")] = '\0';
    return spc_trace_name(trace, text);
}

/* Index of `call`, or the first free one from `at` on. */
static uint32_t find_call(const char *call, uint32_t at) {
    const char *known;
    while (at < CALLS_MAX && (known = atomic_load_explicit(&calls[at].call, memory_order_acquire)) != NULL
           && known != call) {
        at++;
    }
    return at;
}

/* The number of a call's name in the node's trace; `call` is a literal. 0: none is left, which no program reaches.
 * Not inline: untraced calls would pay for its registers. */
__attribute__((noinline)) static uint32_t find_number(spc_trace_t *trace, const char *call) {
    uint32_t at = find_call(call, 0);
    if (at < CALLS_MAX && atomic_load_explicit(&calls[at].call, memory_order_acquire) == call) {
        return calls[at].number;
    }
    pthread_mutex_lock(&naming);
    at = find_call(call, at); /* another thread may have been first */
    uint32_t number = 0;
    if (at < CALLS_MAX) {
        const bool is_new = atomic_load_explicit(&calls[at].call, memory_order_acquire) == NULL;
        number = is_new ? name_call(trace, call) : calls[at].number;
        calls[at].number = number;
        atomic_store_explicit(&calls[at].call, call, memory_order_release);
    }
    pthread_mutex_unlock(&naming);
    return number;
}

spc_trace_t *spc_api_enter(const spcomm_t *comm, const char *call) {
    spc_trace_t *trace = comm == NULL || comm->core == NULL ? NULL : spc_comm_trace(comm->core);
    if (trace != NULL) {
        spc_comm_trace_call(comm->core, find_number(trace, call), 0, 0);
    }
    return trace;
}
