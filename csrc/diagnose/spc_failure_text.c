/* SPDX-License-Identifier: MIT */
#include "diagnose/spc_failure_text.h"

#include <string.h>

#include "base/spc_error.h"
#include "base/spc_process.h"

/* Kinds of calls, as far as the consequences of a failure depend on them. */
typedef enum call_kind {
    CALL_COLLECTIVE, /* or any other */
    CALL_RECEIVES,
    CALL_SENDS,
    CALL_SENDS_SYNCHRONOUSLY,
    CALL_COMPLETES, /* requests of MPI */
    CALL_CLOSES,
    CALL_SENDS_IN_CYCLE,
    CALL_RECEIVES_IN_CYCLE,
} call_kind_t;

/* The first row whose text the name begins with decides. */
static const struct {
    const char *name;
    call_kind_t kind;
} kinds[] = {
    {"recv", CALL_RECEIVES},
    {"probe", CALL_RECEIVES},
    {"sendrecv", CALL_RECEIVES},
    {"MPI_Recv", CALL_RECEIVES},
    {"MPI_Probe", CALL_RECEIVES},
    {"MPI_Mprobe", CALL_RECEIVES},
    {"MPI_Sendrecv", CALL_RECEIVES},
    {"ssend", CALL_SENDS_SYNCHRONOUSLY},
    {"MPI_Ssend", CALL_SENDS_SYNCHRONOUSLY},
    {"MPI_Send", CALL_SENDS_SYNCHRONOUSLY}, /* it waits for its receiver with --rendezvous */
    {"MPI_Wait", CALL_COMPLETES},
    {"MPI_Test", CALL_COMPLETES},
    {"send", CALL_SENDS},
    {"move", CALL_SENDS},
    {"close", CALL_CLOSES},
    {"shutdown", CALL_CLOSES},
    {"coordinated_send", CALL_SENDS_IN_CYCLE},
    {"coordinated_recv", CALL_RECEIVES_IN_CYCLE},
};

static const char c_prefix[] = "spcomm_";

static bool begins_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_of_c(const spc_failed_call_t *failed) {
    return begins_with(failed->call, c_prefix);
}

static call_kind_t kind_of(const spc_failed_call_t *failed) {
    const char *name = failed->call + (is_of_c(failed) ? strlen(c_prefix) : 0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (begins_with(name, kinds[i].name)) {
            return kinds[i].kind;
        }
    }
    return CALL_COLLECTIVE;
}

/* ---- how another node ended ---- */

/* "ring.py:12 in step" behind `before`; nothing if the place is unknown. */
static void write_place(const spc_note_t *note, const char *before, FILE *out) {
    const char *slash = strrchr(note->file, '/');
    if (note->line != 0 && note->file[0] != '\0') {
        fprintf(out, "%s%s:%u", before, slash != NULL ? slash + 1 : note->file, note->line);
        if (note->function[0] != '\0' && note->function[0] != '<') {
            fprintf(out, " in %s", note->function);
        }
    }
}

void spc_failure_text_write_place(const spc_note_t *note, FILE *out) {
    write_place(note, ", at ", out);
}

/* "sys.exit(1) at ring.py:12 in step" */
static void write_end(const spc_note_t *end, FILE *out) {
    fprintf(out, "%s", end->words);
    write_place(end, " at ", out);
}

static void write_death(const spc_failed_call_t *failed, FILE *out) {
    char buffer[24];
    if (failed->reason < 0) {
        const int number = -failed->reason;
        const char *name = spc_process_signal_name(number, buffer, sizeof(buffer));
        fprintf(out, "killed by signal %d (%s)", number, name == buffer ? "unknown" : name);
        if (failed->has_end) {
            write_place(&failed->end, ", at ", out);
        }
    } else if (failed->has_end) {
        write_end(&failed->end, out);
    } else {
        fprintf(out, "it ended with exit code %d", failed->reason);
    }
}

static void write_how_it_ended(const spc_failed_call_t *failed, FILE *out) {
    if (failed->state == SPC_NODE_LIVE) {
        const bool is_python = !is_of_c(failed) && !begins_with(failed->call, "MPI_");
        fprintf(out, "has closed this communicator%s", is_python ? " (or left its `with` block)" : "");
        return;
    }
    fprintf(out, failed->state == SPC_NODE_DIED ? "has died" : "has finished");
    if (failed->state == SPC_NODE_DIED
        && (failed->reason != 0 || failed->has_end)) { /* else nobody knows how */
        fprintf(out, " (");
        write_death(failed, out);
        fprintf(out, ")");
    } else if (failed->has_end) {
        fprintf(out, " (");
        write_end(&failed->end, out);
        fprintf(out, ")");
    }
}

static const char *consequence_of_loss(const spc_failed_call_t *failed, call_kind_t kind) {
    const bool receives = kind == CALL_RECEIVES;
    if (kind == CALL_COMPLETES) {
        return "The request can't be completed any more";
    }
    if (kind == CALL_SENDS_SYNCHRONOUSLY) {
        return "It has not received the message";
    }
    if (failed->state == SPC_NODE_LIVE) {
        return receives ? "No such message is left" : "All its nodes must call this";
    }
    if (failed->state == SPC_NODE_DIED) {
        return receives ? "Its message cannot come any more" : "This call cannot complete without it";
    }
    return "It will send nothing more, and no such message is left";
}

/* "MPI_Bcast" of "MPI_Bcast_c": the call with large counts is the same one. */
static int name_length(const char *call) {
    const int length = (int)strcspn(call, "(,");
    return length > 2 && strncmp(call + length - 2, "_c", 2) == 0 ? length - 2 : length;
}

static void write_loss(const spc_failed_call_t *failed, FILE *out) {
    const call_kind_t kind = kind_of(failed);
    const bool finished = failed->state != SPC_NODE_LIVE && failed->state != SPC_NODE_DIED;
    if (kind == CALL_RECEIVES
        && (strstr(failed->call, "source=ANY") != NULL
            || strstr(failed->call, "source=SPCOMM_ANY") != NULL)) {
        fprintf(out,
                "all other nodes have ended without sending such a message.\nThe last is node %u, which ",
                failed->culprit);
        write_how_it_ended(failed, out);
        fprintf(out, ".");
    } else {
        fprintf(out, "node %u ", failed->culprit);
        write_how_it_ended(failed, out);
        if (kind == CALL_SENDS_IN_CYCLE || kind == CALL_RECEIVES_IN_CYCLE) {
            fprintf(out,
                    ".\nIt has not received in this cycle, or has announced messages that cannot come any "
                    "more.\nThis cycle cannot end.");
        } else if (finished && (kind == CALL_COLLECTIVE || kind == CALL_SENDS || kind == CALL_CLOSES)) {
            const int length = name_length(failed->call);
            fprintf(out,
                    ".\nIt will call nothing more, but all nodes must call %.*s().\n  Try: let node %u call "
                    "%.*s(), too; it may have left a loop early, or skipped a branch.",
                    length, failed->call, failed->culprit, length, failed->call);
        } else {
            fprintf(out, ".\n%s.", consequence_of_loss(failed, kind));
        }
    }
    fprintf(out, "     (spcomm explain SP104)");
}

/* ---- times, cycles, other statuses ---- */

static void write_time_out(const spc_failed_call_t *failed, FILE *out) {
    switch (kind_of(failed)) {
    case CALL_CLOSES:
        fprintf(out,
                "node %u could not send everything that was queued: the receivers did not receive it, and it "
                "is lost",
                failed->rank);
        break;
    case CALL_SENDS:
    case CALL_SENDS_IN_CYCLE:
        fprintf(out,
                "the queue of node %u stayed at its limit, because its receivers receive too little; nothing "
                "was sent",
                failed->rank);
        break;
    case CALL_SENDS_SYNCHRONOUSLY:
        fprintf(out,
                "no node received the message of node %u in that time; it has been sent, and may still be "
                "received",
                failed->rank);
        break;
    case CALL_RECEIVES:
        fprintf(out, "no such message came to node %u in that time", failed->rank);
        break;
    case CALL_RECEIVES_IN_CYCLE:
        fprintf(out,
                "in that time no message came to node %u, and not all nodes %s or one of their messages is "
                "still on its way; the cycle stays open, call it again",
                failed->rank, is_of_c(failed) ? "receive" : "called coordinated_recv()");
        break;
    case CALL_COMPLETES:
    case CALL_COLLECTIVE:
        fprintf(out, "not all %u nodes came in that time; node %u stays entered: repeat the same call",
                failed->size, failed->rank);
        break;
    }
}

static void write_cycle(const spc_failed_call_t *failed, FILE *out) {
    const char *since = failed->since != NULL ? failed->since : "";
    const bool in_c = is_of_c(failed); /* the SpeedesComm interface has other names: none is told */
    const char *until = in_c ? "until the cycle is over"
                             : "until coordinated_recv() returns None or the loop over "
                               "coordinated_messages() ends";
    if (kind_of(failed) == CALL_SENDS_IN_CYCLE) {
        fprintf(out,
                "node %u receives the coordinated messages of this cycle%s; after its first %s nothing can "
                "be sent in it. Nothing was sent, and the cycle goes on: receive %s, then send in the next "
                "one.",
                failed->rank, since, in_c ? "receive" : "coordinated_recv()", until);
    } else {
        fprintf(out,
                "node %u is within a cycle of coordinated messages%s; until its end no call may synchronise "
                "the nodes. Nothing was done or lost, and the cycle goes on: receive %s%s, then call this.",
                failed->rank, since, until, in_c ? "" : " (leaving the loop early leaves the cycle open)");
    }
}

static void write_busy(const spc_failed_call_t *failed, FILE *out) {
    const call_kind_t kind = kind_of(failed);
    if (kind == CALL_SENDS_IN_CYCLE || kind == CALL_RECEIVES_IN_CYCLE) {
        fprintf(out,
                "another thread of node %u is inside %s or a collective operation; receives and collective "
                "calls of one node must come one after another (other threads may send)",
                failed->rank, is_of_c(failed) ? "a receive" : "coordinated_recv()");
    } else {
        fprintf(out,
                "node %u is inside a collective operation already (another thread, or the call that runs "
                "this handler); collective calls of one node must come one after another",
                failed->rank);
    }
}

static void write_disconnection(const spc_failed_call_t *failed, FILE *out) {
    if (failed->lost_box < 0) {
        fprintf(out, "the server that connects the boxes is lost");
    } else {
        fprintf(out, "the connection to box %d is lost", failed->lost_box);
    }
    fprintf(out, ", and no node can wait for anything any more");
}

void spc_failure_text_write(const spc_failed_call_t *failed, FILE *out) {
    switch (failed->status) {
    case SPC_ELOST:
    case SPC_EFINISHED:
        write_loss(failed, out);
        break;
    case SPC_ETIMEDOUT:
        write_time_out(failed, out);
        break;
    case SPC_EDISCONNECTED:
        write_disconnection(failed, out);
        break;
    case SPC_ECYCLE:
        write_cycle(failed, out);
        break;
    case SPC_EBUSY:
        write_busy(failed, out);
        break;
    case SPC_ECLOSED:
        fprintf(out,
                "node %u has closed this communicator, after which nothing can be sent or received in it",
                failed->rank);
        break;
    case SPC_EFORKED:
        fprintf(out,
                "this process was forked by node %u and is not a node. Let the node itself communicate, and "
                "pass results to it by other means.",
                failed->rank);
        break;
    case SPC_EVERSION:
        fprintf(out, "the run was started by another version of spcomm. Install the same version for the "
                     "launcher and for all nodes, and compile programs in C again.");
        break;
    case SPC_ELIMIT:
        fprintf(out, "eight fuzzy barriers are open already, the most that may be; wait for one first");
        break;
    case SPC_EFORMAT:
        fprintf(out, "%s", spc_error_message(failed->status));
        break;
    default:
        fprintf(out, "%s (%s)", spc_error_message(failed->status), spc_error_name(failed->status));
    }
}

void spc_failure_text_write_near(uint32_t count, uint32_t sender, int32_t tag, bool by_tag, FILE *out) {
    if (count == 1) {
        fprintf(out, "Here is, though, a message");
    } else {
        fprintf(out, "Here are, though, %u messages, the first", count);
    }
    fprintf(out,
            " from node %u with tag %d: a different %s from the one requested.     (spcomm explain SP108)",
            sender, tag, by_tag ? "tag" : "sender");
}
