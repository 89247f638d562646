/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
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

void (*spc_api_note_line)(spc_note_t *note);

/* ---- sentences ---- */

/* Appends text, cut where the room ends. */
typedef struct writer {
    char *text;
    size_t length;
} writer_t;

static void add_arguments(writer_t *writer, const char *format, va_list arguments) {
    size_t room = SPC_API_SENTENCE_BYTES - writer->length;
    int length = vsnprintf(writer->text + writer->length, room, format, arguments);
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

static void add_mismatch(writer_t *writer, const spcomm_t *comm, const char *doing) {
    spc_note_t mine = {.line = 0};
    (void)snprintf(mine.words, sizeof(mine.words), "%s", doing != NULL ? doing : "");
    if (spc_api_note_line != NULL) {
        spc_api_note_line(&mine);
    }
    char *text = spc_comm_explain_mismatch(comm->core, &mine);
    add(writer, "%s", text != NULL ? text : spc_error_message(SPC_EMISMATCH));
    free(text);
}

/* The advice ends with the command that starts more nodes, unless the program itself has asked for one. */
static int write_wait(const spcomm_t *root, FILE *out) {
    char advice[SPC_API_SENTENCE_BYTES];
    if (root->asked_for_one) {
        snprintf(
            advice, sizeof(advice),
            "This program runs as one node because spcomm_startup, or its infile, asks for one; more nodes "
            "may be meant.");
    } else {
        snprintf(advice, sizeof(advice),
                 "This program runs as one node because it was started without spcomm run.\n"
                 "  Try: spcomm run -n 4 %s",
                 spc_api_program());
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
                       const char *doing) {
    switch (status) {
    case SPC_EMISMATCH:
        add_mismatch(writer, comm, doing);
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
        add(writer, "the handler of tag %d has ended this call", *spc_api_ended_by());
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
    char words[SPC_API_CALL_BYTES];
    writer_t writer = {spc_api_sentence(status), 0};
    va_list arguments;
    va_start(arguments, call);
    (void)vsnprintf(words, sizeof(words), call, arguments);
    va_end(arguments);
    add(&writer, "%s", words);
    add_part(&writer, comm);
    add_reason(&writer, comm, status, words, NULL);
    return status;
}

int spc_api_fail_receive(spcomm_t *comm, int status, const char *call, int32_t source, int32_t tag) {
    (void)spc_api_fail(comm, status, "%s", call);
    if (status == SPC_ELOST || status == SPC_EFINISHED || status == SPC_ETIMEDOUT) {
        char *sentence = spc_api_sentence(status);
        writer_t writer = {sentence, strlen(sentence)};
        char *near = spc_comm_explain_near(comm->core, SPC_CONTEXT_USER, source, tag);
        if (near != NULL) {
            add(&writer, "%s\n%s", strchr(".)", sentence[writer.length - 1]) != NULL ? "" : ".", near);
        }
        free(near);
    }
    return status;
}

int spc_api_fail_collective(spcomm_t *comm, int status, const char *call, const char *doing) {
    if (status == SPC_OK) {
        return status;
    }
    writer_t writer = {spc_api_sentence(status), 0};
    add(&writer, "%s", call);
    add_part(&writer, comm);
    add_reason(&writer, comm, status, call, doing);
    if (status == SPC_EINTERRUPTED) {
        add(&writer, "; node %u stays entered: repeat the same call",
            spc_comm_rank_in_run(comm->core, comm->rank));
    }
    return status;
}

int spc_api_refuse(int status, const char *sentence, ...) {
    writer_t writer = {spc_api_sentence(status), 0};
    va_list arguments;
    va_start(arguments, sentence);
    add_arguments(&writer, sentence, arguments);
    va_end(arguments);
    return status;
}

int spc_api_refuse_rank(const spcomm_t *comm, const char *call, int32_t rank, const char *role,
                        const char *constants) {
    if (rank > 0 && comm->size == 1 && comm->root == comm && !comm->asked_for_one) {
        return spc_api_refuse(SPC_ERANK,
                              "%s: there is no node %d%s; this is a run of one node: start it with "
                              "`spcomm run -n 4 %s`",
                              call, rank, role, spc_api_program());
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
