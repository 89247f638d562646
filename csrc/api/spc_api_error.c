/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/spc_api_private.h"
#include "diagnose/spc_call_text.h"

/* The public numbers are the core's: the list of errors is one. */
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

/* Text that is cut where the room ends. */
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

/* Where it ended, if its program is one that tells. */
static void add_end(writer_t *writer, const spcomm_t *comm, int32_t rank) {
    spc_note_t note;
    if (!spc_comm_end_of(comm->core, (uint32_t)rank, &note)) {
        return;
    }
    const char *slash = strrchr(note.file, '/');
    add(writer, ": %s", note.words);
    if (note.line != 0) {
        add(writer, " at %s:%u", slash != NULL ? slash + 1 : note.file, note.line);
    }
}

static void add_culprit(writer_t *writer, const spcomm_t *comm) {
    spc_node_state_t state;
    int32_t reason;
    int32_t rank = spc_comm_culprit(comm->core, &state, &reason);
    const uint32_t told = spc_comm_rank_in_run(comm->core, (uint32_t)rank);
    if (state == SPC_NODE_DIED) {
        add(writer, "node %u has died (%s %d", told, reason < 0 ? "signal" : "exit code", abs(reason));
        add_end(writer, comm, rank);
        add(writer, "); this call cannot complete without it");
    } else {
        add(writer, "node %u has finished", told);
        add_end(writer, comm, rank);
        add(writer, ", and takes part in nothing more");
    }
}

static void add_call(writer_t *writer, const spc_signature_t *signature) {
    char *words = spc_call_text_collective(signature);
    add(writer, "%s", words != NULL ? words : "a collective operation");
    free(words);
}

static void add_mismatch(writer_t *writer, const spcomm_t *comm) {
    spc_signature_t mine, other;
    uint64_t phase;
    if (!spc_comm_mismatch(comm->core, comm->rank, &mine, &phase)) {
        add(writer, "the nodes called different operations");
        return;
    }
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (spc_comm_mismatch(comm->core, rank, &other, &phase) && memcmp(&other, &mine, sizeof(mine)) != 0) {
            spc_note_t unknown = {.line = 0};
            spc_comm_note_call(comm->core, phase, &unknown); /* nodes of Python need not wait for a line */
            add(writer, "the nodes called different operations: node %u ",
                spc_comm_rank_in_run(comm->core, comm->rank));
            add_call(writer, &mine);
            add(writer, ", node %u ", spc_comm_rank_in_run(comm->core, rank));
            add_call(writer, &other);
            return;
        }
    }
    add(writer, "node %u has left ", spc_comm_rank_in_run(comm->core, comm->rank));
    add_call(writer, &mine);
    add(writer, " before its end; finish that first, by the same call again");
}

static void add_lost_box(writer_t *writer, const spcomm_t *comm) {
    const int32_t box = spc_comm_lost_box(comm->core);
    if (box == SPC_STATUS_SERVER) {
        add(writer, "the server that connects the boxes is lost");
    } else {
        add(writer, "the connection to box %d is lost", box);
    }
}

static void add_reason(writer_t *writer, const spcomm_t *comm, int status) {
    switch (status) {
    case SPC_ELOST:
    case SPC_EFINISHED:
        add_culprit(writer, comm);
        break;
    case SPC_EDISCONNECTED:
        add_lost_box(writer, comm);
        break;
    case SPC_EMISMATCH:
        add_mismatch(writer, comm);
        break;
    case SPC_ESYSTEM:
        add(writer, "%s", strerror(errno));
        break;
    case SPC_EFORKED:
        add(writer, "this process was forked by a node, and is not one itself");
        break;
    case SPC_ECLOSED:
        add(writer, "this communicator has been shut down, and no call is possible any more");
        break;
    case SPC_ECYCLE:
        add(writer, "this node is inside a cycle of coordinated messages; first receive until that is over");
        break;
    case SPC_ELIMIT:
        add(writer, "%s (fuzzy barriers: %d)", spc_error_message(status), SPC_FUZZY_MAX);
        break;
    case SPC_EVERSION:
        add(writer,
            "the run was started by another version of spcomm than %s, with which this program was built",
            SPCOMM_VERSION);
        break;
    default:
        add(writer, "%s", spc_error_message(status));
    }
}

int spc_api_fail(spcomm_t *comm, int status, const char *call, ...) {
    if (status == SPC_OK || status == SPC_EAGAIN) {
        return status;
    }
    writer_t writer = {spc_api_sentence(status), 0};
    va_list arguments;
    va_start(arguments, call);
    add_arguments(&writer, call, arguments);
    va_end(arguments);
    if (comm != NULL
        && comm->root != comm) { /* its arguments are ranks of the part, those that follow of the run */
        add(&writer, ", as node %u of a part of %u", comm->rank, comm->size);
    }
    add(&writer, ": ");
    add_reason(&writer, comm, status);
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

int spc_api_check(spcomm_t *comm, const char *call) {
    if (comm == NULL) {
        return spc_api_refuse(SPC_EINVAL, "%s: comm is NULL; spcomm_startup gives one", call);
    }
    int status = comm->core == NULL ? SPC_ECLOSED : spc_comm_usable(comm->core);
    return status == SPC_OK ? SPC_OK : spc_api_fail(comm, status, "%s", call);
}
