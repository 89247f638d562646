/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "diagnose/spc_deadlock_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_clock.h"
#include "base/spc_error.h"
#include "reduce/spc_layout.h"
#include "reduce/spc_reduce.h"

#define ANY (-1) /* source or tag */

/* ---- texts of calls */

/* "3", or "ANY". */
static void write_number(int32_t number, FILE *out) {
    if (number == ANY) {
        fputs("ANY", out);
    } else {
        fprintf(out, "%d", number);
    }
}

void spc_call_text_write_ranks(const char *word, const bool *chosen, uint32_t nodes, FILE *out) {
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < nodes; rank++) {
        count += chosen[rank];
    }
    fprintf(out, count == 1 ? "%s " : "%ss ", word);
    const char *between = "";
    for (uint32_t rank = 0; rank < nodes; rank++) {
        uint32_t end = rank;
        while (end < nodes && chosen[end]) {
            end++;
        }
        if (end > rank) {
            fprintf(out, end > rank + 1 ? "%s%u-%u" : "%s%u", between, rank, end - 1);
            between = ", ";
            rank = end;
        }
    }
}

/* ---- texts of calls: reductions */

const char *spc_call_text_type(uint32_t type) {
    static const char *const words[SPC_TYPE_COUNT] = {
        [SPC_TYPE_INT8] = "int8",           [SPC_TYPE_INT16] = "int16",
        [SPC_TYPE_INT32] = "int32",         [SPC_TYPE_INT64] = "int64",
        [SPC_TYPE_UINT8] = "uint8",         [SPC_TYPE_UINT16] = "uint16",
        [SPC_TYPE_UINT32] = "uint32",       [SPC_TYPE_UINT64] = "uint64",
        [SPC_TYPE_FLOAT32] = "float32",     [SPC_TYPE_FLOAT64] = "float64",
        [SPC_TYPE_SIMTIME] = "SimTime",     [SPC_TYPE_BOOL] = "bool",
        [SPC_TYPE_COMPLEX64] = "complex64", [SPC_TYPE_COMPLEX128] = "complex128",
    };
    return type < SPC_TYPE_COUNT && words[type] != NULL ? words[type] : "numbers";
}

/* For types unknown to the core, a signature has the letter of NumPy's dtype. */
static const char *element_word(const spc_signature_t *call) {
    switch (call->root) {
    case 0:
        return spc_call_text_type(call->type);
    case 'e':
        return "float16";
    case 'g':
        return "longdouble";
    case 'G':
        return "clongdouble";
    default:
        return "numbers";
    }
}

static const char *kind_word(uint64_t kind) {
    switch (kind) {
    case SPC_KIND_INT:
        return "an int";
    case SPC_KIND_FLOAT:
        return "a float";
    case SPC_KIND_BOOL:
        return "a bool";
    case SPC_KIND_ARRAY:
        return "an array";
    case SPC_KIND_TUPLE:
        return "a tuple";
    case SPC_KIND_COMPLEX:
        return "a complex";
    case SPC_KIND_SCALAR:
        return "a NumPy scalar";
    case SPC_KIND_SIMTIME:
        return "a SimTime";
    default:
        return "a value";
    }
}

/* The function of the operation; NULL: it is a reduction. */
static const char *operation_word(const spc_signature_t *call) {
#define OPERATION_WORD(name, word) [SPC_OPERATION_##name] = word,
    static const char *const words[SPC_OPERATION_COUNT] = {SPC_OPERATIONS(OPERATION_WORD)};
    return call->operation < SPC_OPERATION_COUNT ? words[call->operation] : NULL;
}

static const char *reduction_word(const spc_signature_t *call) {
    switch (call->operator) {
    case SPC_SUM:
        return "global_sum";
    case SPC_MIN:
        return "global_min";
    case SPC_MAX:
        return "global_max";
    default:
        return "a collective operation";
    }
}

static uint64_t kind_of(const spc_signature_t *call) {
    return call->layout >> 56;
}

/* " of an array of float64, 80 bytes" */
static void write_value(const spc_signature_t *call, const char *type, FILE *out) {
    const uint64_t kind = kind_of(call);
    fprintf(out, " of %s", kind_word(kind));
    if (kind == SPC_KIND_ARRAY || kind == SPC_KIND_SCALAR) {
        fprintf(out, " of %s", type);
    }
    if (kind == SPC_KIND_ARRAY || kind == SPC_KIND_TUPLE) {
        fprintf(out, ", %llu bytes", (unsigned long long)call->length_bytes);
    }
}

static const char *operator_word(uint32_t number) {
#define OPERATOR_WORD(name, word) [SPC_##name] = word,
    static const char *const words[SPC_OPERATOR_COUNT] = {SPC_OPERATORS(OPERATOR_WORD)};
    return number < SPC_OPERATOR_COUNT ? words[number] : "a function";
}

/* "allreduce(op=SUM)", "reduce(op=SUM, root=2)". */
static void write_array_call(const spc_signature_t *call, FILE *out) {
    fprintf(out, "%s(op=%s", operation_word(call), operator_word(call->operator));
    if (call->operation == SPC_OPERATION_ARRAY_REDUCE) {
        fprintf(out, ", root=%u", call->root);
    }
    fputc(')', out);
    if (kind_of(call) != 0) {
        write_value(call, spc_call_text_type(call->type), out);
    }
}

static spc_signature_t call_of(const spc_board_entry_t *entry) {
    spc_signature_t call;
    memcpy(&call, entry->call, sizeof call);
    return call;
}

/* Whether it waits within such an operation. */
static bool is_call(const spc_board_entry_t *entry, spc_operation_t operation) {
    return call_of(entry).operation == operation;
}

static bool has_root(const spc_signature_t *call) {
    return call->operation == SPC_OPERATION_DATA_BCAST || call->operation == SPC_OPERATION_DATA_GATHER
           || call->operation == SPC_OPERATION_DATA_SCATTER;
}

static void write_collective(const spc_signature_t *call, FILE *out) {
    const char *name = operation_word(call);
    if (spc_operation_is_of_arrays(call->operation)) {
        write_array_call(call, out);
        return;
    }
    if (name != NULL) {
        fputs(name, out);
        if (has_root(call)) {
            fprintf(out, "(root=%u)", call->root);
        } else {
            fputs("()", out);
        }
        return;
    }
    fprintf(out, "%s()", reduction_word(call));
    write_value(call, element_word(call), out);
}

static void write_collective_of(const spc_board_entry_t *entry, FILE *out) {
    const spc_signature_t call = call_of(entry);
    write_collective(&call, out);
}

char *spc_call_text_collective(const spc_signature_t *call) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        return NULL;
    }
    write_collective(call, out);
    fclose(out);
    return text;
}

/* ---- texts of calls: functions */

/* C has a function for each type of value. */
static const char *type_suffix(uint64_t kind) {
    switch (kind) {
    case SPC_KIND_INT:
        return "_int64";
    case SPC_KIND_FLOAT:
        return "_double";
    case SPC_KIND_SIMTIME:
        return "_simtime";
    default:
        return "";
    }
}

/* MPI's name of the call; mpi4py's where the program is in Python: recv() probes first. NULL: no MPI call. */
static const char *mpi_word(const spc_board_entry_t *entry) {
#define MPI_WORD(name) [SPC_BOARD_MPI_##name] = "MPI_" #name,
    static const char *const words[SPC_BOARD_MPI_COUNT] = {SPC_BOARD_MPI_CALLS(MPI_WORD)};
#undef MPI_WORD
    const uint32_t number = entry->flags >> SPC_BOARD_MPI_SHIFT;
    if (number == SPC_BOARD_MPI_NONE || number >= SPC_BOARD_MPI_COUNT) {
        return NULL;
    }
    if ((entry->flags & SPC_BOARD_IN_C) != 0) {
        return words[number];
    }
    return number == SPC_BOARD_MPI_Mprobe ? "recv" : words[number] + strlen("MPI_");
}

/* The collective call that the other nodes have to make: "barrier()", or "spcomm_barrier()". */
static void write_function(const spc_board_entry_t *entry, bool in_c, FILE *out) {
    if (mpi_word(entry) != NULL) {
        fprintf(out, "%s()", mpi_word(entry));
        return;
    }
    const spc_signature_t call = call_of(entry);
    const char *name = entry->kind == SPC_BOARD_CYCLE ? "coordinated_recv" : operation_word(&call);
    const char *suffix = "";
    if (name == NULL) {
        name = reduction_word(&call);
        suffix = in_c ? type_suffix(kind_of(&call)) : "";
    } else if (in_c && call.operation == SPC_OPERATION_FUZZY) {
        name = "fuzzy_enter";
    }
    fprintf(out, "%s%s%s()", in_c ? "spcomm_" : "", name, suffix);
}

/* ---- texts of calls: calls */

/* Whether it waits within a collective, for room. */
static bool is_collective(const spc_board_entry_t *entry) {
    return !is_call(entry, SPC_OPERATION_NONE);
}

static void write_peer(const spc_board_entry_t *entry, const char *peer, FILE *out) {
    if (peer != NULL) {
        fputs(peer, out);
    } else {
        write_number(entry->source, out);
    }
}

static void write_message_call(const char *name, const spc_board_entry_t *entry, const char *peer,
                               FILE *out) {
    fputs(name, out);
    write_peer(entry, peer, out);
    fputs(", tag=", out);
    write_number(entry->tag, out);
    fputc(')', out);
}

/* Whether it waits for others' use of an MPI window. */
static bool is_of_window(const spc_board_entry_t *entry) {
    const uint32_t number = entry->flags >> SPC_BOARD_MPI_SHIFT;
    return number >= SPC_BOARD_MPI_Win_create && number <= SPC_BOARD_MPI_Win_wait;
}

/* A wait for a request names the operation that the request stands for. */
static bool waits_for_request(const spc_board_entry_t *entry) {
    const uint32_t number = entry->flags >> SPC_BOARD_MPI_SHIFT;
    return number == SPC_BOARD_MPI_Wait || number == SPC_BOARD_MPI_Waitall || number == SPC_BOARD_MPI_Waitany
           || number == SPC_BOARD_MPI_Waitsome;
}

/* One that waits for others' use of a window: its source is the node that holds the lock, and the tag the locked rank;
 * else the node that has not posted or completed. */
static bool write_window_call(const char *name, const spc_board_entry_t *entry, const char *peer, FILE *out) {
    switch (entry->kind == SPC_BOARD_RECEIVE ? entry->flags >> SPC_BOARD_MPI_SHIFT : SPC_BOARD_MPI_NONE) {
    case SPC_BOARD_MPI_Win_lock:
    case SPC_BOARD_MPI_Win_lock_all:
        fprintf(out, "%s(rank=%d), held by node ", name, entry->tag);
        break;
    case SPC_BOARD_MPI_Win_start:
    case SPC_BOARD_MPI_Win_wait:
        fprintf(out, "%s() for node ", name);
        break;
    default:
        return false;
    }
    write_peer(entry, peer, out);
    return true;
}

/* "MPI_Recv(source=1, tag=7)", "MPI_Waitall() for a receive(source=1, tag=7)", "MPI_Bcast(root=0)". */
static void write_mpi_call(const char *name, const spc_board_entry_t *entry, const char *peer, FILE *out) {
    const spc_signature_t call = call_of(entry);
    const bool sends = entry->kind == SPC_BOARD_SEND || entry->kind == SPC_BOARD_RECEIPT;
    if (write_window_call(name, entry, peer, out)) {
        return;
    }
    if ((entry->kind != SPC_BOARD_RECEIVE && !sends) || is_collective(entry)) {
        fputs(name, out);
        fprintf(out, has_root(&call) || call.operation == SPC_OPERATION_ARRAY_REDUCE ? "(root=%u)" : "()",
                call.root);
        return;
    }
    if (waits_for_request(entry)) {
        fprintf(out, "%s() for ", name);
        name = sends ? "a send" : "a receive";
    }
    fputs(name, out);
    write_message_call(sends ? "(dest=" : "(source=", entry, peer, out);
}

void spc_call_text_write(const spc_board_entry_t *entry, const char *peer, FILE *out) {
    if (mpi_word(entry) != NULL) {
        write_mpi_call(mpi_word(entry), entry, peer, out);
        return;
    }
    switch ((spc_board_kind_t)entry->kind) {
    case SPC_BOARD_RECEIVE:
        write_message_call("recv(source=", entry, peer, out);
        break;
    case SPC_BOARD_RECEIPT:
        write_message_call(entry->flags & SPC_BOARD_RENDEZVOUS ? "send(dest=" : "ssend(dest=", entry, peer,
                           out);
        break;
    case SPC_BOARD_GATHERING:
        write_collective_of(entry, out);
        fputs(" for the part of node ", out);
        write_peer(entry, peer, out);
        break;
    case SPC_BOARD_SEND:
        if (is_collective(entry)) {
            write_collective_of(entry, out);
        } else if (entry->size != 0 && entry->tag == ANY) {
            fputs("the end of the program, with messages still queued", out);
        } else {
            write_message_call("send(dest=", entry, entry->source == ANY ? "several nodes" : peer, out);
        }
        break;
    case SPC_BOARD_CYCLE:
        fputs("coordinated_recv()", out);
        break;
    case SPC_BOARD_PHASE:
        write_collective_of(entry, out);
        break;
    case SPC_BOARD_NOTHING:
        fputs("a call", out);
        break;
    }
}

/* The output of spc_call_text_write; the caller frees it. NULL: no memory. */
static char *text_of_call(const spc_board_entry_t *entry, const char *peer) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        return NULL;
    }
    spc_call_text_write(entry, peer, out);
    fclose(out);
    return text;
}

/* ---- texts of calls: places */

/* As it is shown: one program may lie in different folders on several machines. */
static const char *name_of_file(const spc_board_entry_t *entry) {
    const char *slash = strrchr(entry->file, '/');
    return slash != NULL ? slash + 1 : entry->file;
}

/* Whether both are at the same line of the same function, or both at an unknown line. */
static bool is_same_place(const spc_board_entry_t *one, const spc_board_entry_t *other) {
    const bool same_file = strcmp(name_of_file(one), name_of_file(other)) == 0;
    return same_file
           && (one->file[0] == '\0'
               || (one->line == other->line && strcmp(one->function, other->function) == 0));
}

/* A name from a program may hold any bytes: the text contains nothing that a terminal would obey, of ASCII or of C1,
 * which is two bytes of UTF-8, or one where no character of UTF-8 goes on. */
static void write_call_name(const char *name, size_t length, FILE *out) {
    uint32_t more = 0; /* bytes of the character */
    const unsigned char *end = (const unsigned char *)name + length;
    for (const unsigned char *at = (const unsigned char *)name; at < end; at++) {
        const bool goes_on = (*at & 0xc0) == 0x80;
        const bool is_c1 = at[0] == 0xc2 && at + 1 < end && at[1] >= 0x80 && at[1] < 0xa0;
        const bool is_alone = goes_on && more == 0 && *at < 0xa0;
        fputc(*at < ' ' || *at == 0x7f || is_c1 || is_alone ? '?' : *at, out);
        more = is_c1 ? 0 : goes_on ? more - (more != 0) : *at >= 0xf0 ? 3 : *at >= 0xe0 ? 2 : *at >= 0xc0;
        at += is_c1;
    }
}

static void write_name(const char *name, FILE *out) {
    write_call_name(name, strlen(name), out);
}

void spc_call_text_write_place(const spc_board_entry_t *entry, FILE *out) {
    if (entry->file[0] == '\0') {
        return;
    }
    write_name(name_of_file(entry), out);
    fprintf(out, ":%u", entry->line);
    if (entry->function[0] != '\0' && entry->function[0] != '<') {
        fputs(" in ", out);
        write_name(entry->function, out);
    }
}

#define LINE_BYTES 160

/* The line of the program itself, without its indentation, of an MPI call; empty if it cannot be read here. */
static void write_source(const spc_board_entry_t *entry, FILE *out) {
    char line[LINE_BYTES] = "";
    FILE *file = mpi_word(entry) != NULL && entry->line != 0 ? fopen(entry->file, "r") : NULL;
    if (file == NULL) {
        return;
    }
    for (uint32_t number = 1; number <= entry->line && fgets(line, sizeof(line), file) != NULL;) {
        number += strchr(line, '\n') != NULL; /* a longer line comes in pieces */
    }
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    write_name(line + strspn(line, " \t"), out);
}

/* ---- the report */

#define NOBODY UINT32_MAX

enum {
    CIRCLE_SHOWN = 12,
    RELATION_BYTES = 24,
    PEERS_SHOWN = 4, /* more rows than these would hide their common pattern */
    COLUMNS = 3,
};

typedef struct report {
    const spc_waits_t *waits;
    const spc_deadlock_report_options_t *options;
    uint32_t nodes;
    const bool *known; /* of waits, as is `entry` */
    const spc_board_entry_t *entry;
    uint32_t kinds; /* of the waits: a bit each */
    bool in_c;      /* all of them, as the next */
    bool is_mpi;
    bool *these;    /* nodes that the text mentions, */
    bool *those;    /* and the nodes that they need */
    bool *done;     /* nodes that are fully described */
    FILE *out;
} report_t;

/* Only nodes among the waits count if others still run. */
static bool needs(const report_t *r, uint32_t rank, uint32_t other) {
    return spc_waits_needs(r->waits, rank, other) && (!r->options->in_vain || r->known[other]);
}

/* ---- the headline ---- */

/* "nodes 0, 2 of 4", "nodes 0, 2 of the 4 nodes of group 2" */
static void write_who(const report_t *r) {
    spc_call_text_write_ranks("node", r->known, r->nodes, r->out);
    fprintf(r->out, r->options->group != NULL ? " of the %u nodes%s" : " of %u", r->nodes, r->options->group);
}

static uint32_t doubts_of(const report_t *r) {
    uint32_t found = 0;
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        found |= r->known[rank] ? r->entry[rank].doubts : 0;
    }
    return found;
}

/* "another thread or a timer": they may end the waits. */
static void write_doubts(const report_t *r) {
    static const struct {
        uint32_t doubt;
        const char *words;
    } known[] = {{SPC_BOARD_THREADS | SPC_BOARD_UNCOUNTED, "another thread"},
                 {SPC_BOARD_TIMER, "a timer"},
                 {SPC_BOARD_HANDLER, "a signal handler"}};
    const char *between = "";
    for (uint32_t i = 0; i < sizeof known / sizeof *known; i++) {
        if ((doubts_of(r) & known[i].doubt) != 0) {
            fprintf(r->out, "%s%s", between, known[i].words);
            between = " or ";
        }
    }
}

static void write_headline(const report_t *r) {
    const char *group = r->options->group != NULL ? r->options->group : "";
    if (r->options->waited_s != 0) {
        if (r->nodes == 1) {
            fputs("the node", r->out);
        } else {
            write_who(r);
        }
        fprintf(r->out, " %s been waiting for %" PRIu64 " s, and only ",
                r->waits->known_count == 1 ? "has" : "have", r->options->waited_s);
        write_doubts(r);
        fputs(" of this program can end that\n", r->out);
    } else if (r->options->in_vain) {
        write_who(r);
        fprintf(r->out, " wait for each other, whatever %s\n",
                r->nodes - r->waits->known_count == 1 ? "the other node still does" : "the others still do");
    } else if (r->waits->known_count == r->nodes && r->nodes > 2) {
        fprintf(r->out, "all %u nodes%s wait, and no message is on its way\n", r->nodes, group);
    } else if (r->waits->known_count == r->nodes) {
        fprintf(r->out, r->nodes == 2 ? "both nodes%s wait" : "the node%s waits", group);
        fputs(", and no message is on its way\n", r->out);
    } else {
        write_who(r);
        fputs(r->waits->known_count == 1 ? " waits for what can never come\n"
                                         : " wait for each other only, and no message is on its way\n",
              r->out);
    }
}

/* ---- rows: nodes that do the same share one ---- */

static bool share_a_row(const spc_board_entry_t *one, const spc_board_entry_t *other) {
    return one->kind == other->kind && one->flags == other->flags && one->tag == other->tag
           && one->communicator == other->communicator && (one->source == ANY) == (other->source == ANY)
           && memcmp(one->call, other->call, sizeof one->call) == 0 && is_same_place(one, other);
}

static uint32_t offset_of(const spc_board_entry_t *entry) {
    int64_t size = entry->size != 0 ? entry->size : 1;
    return (uint32_t)((entry->source - (int64_t)entry->rank + size) % size);
}

/* r->these do the same. Whether they need a row for each peer: for two nodes that is clearer than "rank+1", and for few
 * it is clearer than "…". */
static bool is_row_for_each_peer(const report_t *r, uint32_t first) {
    uint32_t count = 0, peers = 0;
    bool same_offset = true;
    for (uint32_t rank = first; rank < r->nodes; rank++) {
        uint32_t former = first;
        while (former < rank && (!r->these[former] || r->entry[former].source != r->entry[rank].source)) {
            former++;
        }
        count += r->these[rank];
        peers += r->these[rank] && former == rank;
        same_offset =
            same_offset && (!r->these[rank] || offset_of(&r->entry[rank]) == offset_of(&r->entry[first]));
    }
    return peers > 1 && peers <= PEERS_SHOWN && (count == 2 || !same_offset);
}

/* Sets r->these to the nodes that share the row of this one. Returns how many; 0 if the row is that of an earlier
 * node. */
static uint32_t choose_row(report_t *r, uint32_t first) {
    uint32_t count = 0, begin = 0;
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        r->these[rank] = r->known[rank] && share_a_row(&r->entry[rank], &r->entry[first]);
    }
    while (begin < r->nodes && !r->these[begin]) {
        begin++;
    }
    bool apart = is_row_for_each_peer(r, begin);
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        r->these[rank] = r->these[rank] && (!apart || r->entry[rank].source == r->entry[first].source);
        count += r->these[rank];
        if (r->these[rank] && rank < first) {
            return 0;
        }
    }
    return r->known[first] ? count : 0;
}

/* The peers of nodes that share a row, as they follow from their ranks: "rank+1". NULL: all have the same peer. */
static const char *relation(const report_t *r, uint32_t first, char *room) {
    const spc_board_entry_t *one = &r->entry[first];
    uint32_t offset = offset_of(one);
    bool same_peer = true, same_offset = true;
    for (uint32_t rank = first; rank < r->nodes; rank++) {
        if (r->these[rank]) {
            same_peer = same_peer && r->entry[rank].source == one->source;
            same_offset = same_offset && offset_of(&r->entry[rank]) == offset;
        }
    }
    if (same_peer) {
        return NULL;
    }
    if (!same_offset) {
        return "…";
    }
    if (offset == 0) {
        snprintf(room, RELATION_BYTES, "rank");
    } else if (offset <= one->size / 2) {
        snprintf(room, RELATION_BYTES, "rank+%u", offset);
    } else {
        snprintf(room, RELATION_BYTES, "rank-%u", one->size - offset);
    }
    return room;
}

static void write_call(const report_t *r, uint32_t first, uint32_t count, FILE *out) {
    const spc_board_entry_t *entry = &r->entry[first];
    char room[RELATION_BYTES];
    spc_call_text_write(entry, relation(r, first, room), out);
    if (entry->communicator != 0 && entry->flags >> SPC_BOARD_MPI_SHIFT != 0) {
        if (!is_of_window(entry)) {
            fprintf(out, count == 1 ? ", as rank %u of a communicator of %u" : ", in another communicator",
                    entry->rank, entry->size);
        }
    } else if (entry->communicator != 0 && count == 1) {
        fprintf(out, ", as node %u of a part of %u", entry->rank, entry->size);
    } else if (entry->communicator != 0) {
        fputs(", in a part", out);
    }
}

/* Below the row: "        | comm.Recv(buffer, source=1)". */
static void write_source_below(const spc_board_entry_t *entry, FILE *out) {
    char *source = NULL;
    size_t bytes = 0;
    FILE *text = open_memstream(&source, &bytes);
    if (text == NULL) {
        return;
    }
    write_source(entry, text);
    fclose(text);
    if (bytes != 0) {
        fprintf(out, "\n          | %s", source);
    }
    free(source);
}

/* Further lines of the row: "        + a receive(source=1, tag=2), begun at ring.py:9"; of nodes that share it those of
 * the first. */
static void write_more_below(const report_t *r, uint32_t first, uint32_t count, FILE *out) {
    const char *more = r->entry[first].more;
    bool is_same = true;
    for (uint32_t rank = first; count > 1 && rank < r->nodes; rank++) {
        is_same = is_same && (!r->these[rank] || strcmp(r->entry[rank].more, more) == 0);
    }
    while (*more != '\0') {
        const size_t length = strcspn(more, "\n");
        fputs("\n          + ", out);
        if (!is_same) {
            fprintf(out, "of node %u: ", first);
        }
        write_call_name(more, length, out);
        more += length + (more[length] == '\n');
    }
}

static int write_row(const report_t *r, uint32_t first, uint32_t count, spc_deadlock_report_row_t *row,
                     void *argument) {
    char *call = NULL, *place = NULL;
    size_t bytes;
    FILE *out = open_memstream(&call, &bytes);
    if (out != NULL) {
        write_call(r, first, count, out);
        fclose(out);
        out = open_memstream(&place, &bytes);
    }
    if (out != NULL) {
        spc_call_text_write_place(&r->entry[first], out);
        if (r->out != NULL) { /* a report, and not rows for a table of another */
            write_source_below(&r->entry[first], out);
            write_more_below(r, first, count, out);
        }
        fclose(out);
    }
    int status = call != NULL && place != NULL ? row(argument, r->these, call, place) : SPC_ENOMEM;
    free(call);
    free(place);
    return status;
}

static int write_rows(report_t *r, spc_deadlock_report_row_t *row, void *argument) {
    int status = SPC_OK;
    for (uint32_t rank = 0; rank < r->nodes && status == SPC_OK; rank++) {
        uint32_t count = choose_row(r, rank);
        status = count != 0 ? write_row(r, rank, count, row, argument) : SPC_OK;
    }
    return status;
}

/* ---- the table ---- */

typedef struct table {
    uint32_t nodes;
    uint32_t rows;
    char *(*cells)[COLUMNS];
} table_t;

/* Number of UTF-8 characters. */
static int width_of(const char *text) {
    int width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

static int add_row(void *argument, const bool *ranks, const char *call, const char *place) {
    table_t *table = argument;
    char **cells = table->cells[table->rows++];
    size_t bytes;
    FILE *out = open_memstream(&cells[0], &bytes);
    if (out != NULL) {
        spc_call_text_write_ranks("node", ranks, table->nodes, out);
        fclose(out);
    }
    cells[1] = strdup(call);
    cells[2] = strdup(place);
    return cells[0] != NULL && cells[1] != NULL && cells[2] != NULL ? SPC_OK : SPC_ENOMEM;
}

/* Two blanks before the columns, and between them; none after the last column. */
static void print_table(const table_t *table, FILE *out) {
    int widths[COLUMNS] = {0};
    for (uint32_t row = 0; row < table->rows; row++) {
        for (int i = 0; i < COLUMNS; i++) {
            const int width = width_of(table->cells[row][i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    for (uint32_t row = 0; row < table->rows; row++) {
        int behind = 0;
        for (int i = 0; i < COLUMNS; i++) {
            const char *text = table->cells[row][i];
            if (*text != '\0') { /* only the last column may be empty */
                fprintf(out, "%*s%s", *text != '\n' ? behind + 2 : 0, "", text); /* or only lines below it */
            }
            behind = widths[i] - width_of(text);
        }
        fputc('\n', out);
    }
}

static int write_table(report_t *r) {
    table_t table = {.nodes = r->nodes, .cells = calloc(r->nodes, sizeof *table.cells)};
    if (table.cells == NULL) {
        return SPC_ENOMEM;
    }
    int status = write_rows(r, add_row, &table);
    if (status == SPC_OK) {
        print_table(&table, r->out);
    }
    for (uint32_t row = 0; row < table.rows; row++) {
        for (int i = 0; i < COLUMNS; i++) {
            free(table.cells[row][i]);
        }
    }
    free(table.cells);
    return status;
}

/* ---- the circle ---- */

/* The first of the others that it needs; NOBODY: none is certain. */
static uint32_t next_of(const report_t *r, uint32_t rank) {
    const spc_board_entry_t *entry = &r->entry[rank];
    if (!r->known[rank] || (entry->kind == SPC_BOARD_RECEIVE && entry->source == ANY)) {
        return NOBODY;
    }
    for (uint32_t other = 0; other < r->nodes; other++) {
        if (r->known[other] && needs(r, rank, other)) {
            return other;
        }
    }
    return NOBODY;
}

/* The first node met twice on the path from this one; NOBODY: the path ends. */
static uint32_t find_again(report_t *r, uint32_t from) {
    memset(r->these, 0, r->nodes * sizeof *r->these);
    while (from != NOBODY && !r->these[from]) {
        r->these[from] = true;
        from = next_of(r, from);
    }
    return from;
}

static void write_circle(report_t *r) {
    uint32_t start = NOBODY, length = 2;
    for (uint32_t rank = 0; rank < r->nodes && start == NOBODY; rank++) {
        start = r->known[rank] ? find_again(r, rank) : NOBODY;
    }
    if (start == NOBODY || r->nodes == 1) {
        return;
    }
    for (uint32_t rank = next_of(r, start); rank != start; rank = next_of(r, rank)) {
        length++;
    }
    if (length > CIRCLE_SHOWN) {
        return;
    }
    fprintf(r->out, "  circle: %u", start);
    for (uint32_t rank = next_of(r, start); rank != start; rank = next_of(r, rank)) {
        fprintf(r->out, " → %u", rank);
    }
    fprintf(r->out, " → %u\n", start);
}

/* ---- which nodes ---- */

static bool is_of(const report_t *r, uint32_t rank, spc_board_kind_t kind) {
    return r->known[rank] && r->entry[rank].kind == kind;
}

static bool is_in_phase(const report_t *r, uint32_t rank) {
    return r->known[rank] && spc_board_is_phase(&r->entry[rank]);
}

static bool has_kind(const report_t *r, spc_board_kind_t kind) {
    return (r->kinds & UINT32_C(1) << kind) != 0;
}

static uint32_t count(const report_t *r, const bool *chosen) {
    uint32_t found = 0;
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        found += chosen[rank];
    }
    return found;
}

static void choose_kind(report_t *r, spc_board_kind_t kind) {
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        r->these[rank] = is_of(r, rank, kind);
    }
}

/* Sets r->those to the nodes for which r->these wait. */
static void choose_needed(report_t *r) {
    memset(r->those, 0, r->nodes * sizeof *r->those);
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        for (uint32_t other = 0; r->these[rank] && other < r->nodes; other++) {
            r->those[other] = r->those[other] || needs(r, rank, other);
        }
    }
}

/* ---- text */

static void say(const report_t *r, const char *text) {
    fputs(text, r->out);
}

/* "recv()", or "spcomm_recv()"; of MPI "Recv()", or "MPI_Recv()". */
static void say_function(const report_t *r, const char *name) {
    if (r->is_mpi) {
        fprintf(r->out, "%s%c%s()", r->in_c ? "MPI_" : "", *name - 'a' + 'A', name + 1);
    } else {
        fprintf(r->out, "%s%s()", r->in_c ? "spcomm_" : "", name);
    }
}

static void say_nodes(const report_t *r, const char *word, const bool *chosen) {
    spc_call_text_write_ranks(word, chosen, r->nodes, r->out);
}

static void say_verb(const report_t *r, const bool *chosen, const char *verb) {
    fprintf(r->out, count(r, chosen) == 1 ? " %ss" : " %s", verb);
}

/* ---- display of one node ---- */

static void say_near(const report_t *r, uint32_t rank) {
    const spc_board_entry_t *entry = &r->entry[rank];
    bool by_tag = entry->near_source == entry->source || entry->source == ANY;
    fprintf(r->out, "  Node %u has ", rank);
    if (entry->near_count == 1) {
        say(r, "a message");
    } else {
        fprintf(r->out, "%u messages, the first", entry->near_count);
    }
    if ((entry->flags & SPC_BOARD_ELSEWHERE) != 0) {
        fprintf(r->out,
                " from node %d with tag %d, sent in another communicator than the one in which it waits.\n"
                "  Try: send and receive in the same communicator.",
                entry->near_source, entry->near_tag);
        return;
    }
    fprintf(r->out, " from node %d with tag %d, and waits for one of %s ", entry->near_source,
            entry->near_tag, by_tag ? "tag" : "node");
    write_number(by_tag ? entry->tag : entry->source, r->out);
    fprintf(r->out, ".\n  Try: receive with %s=%d, or send what is waited for.", by_tag ? "tag" : "source",
            by_tag ? entry->near_tag : entry->near_source);
}

static bool say_what_one_node_shows(const report_t *r) {
    if ((doubts_of(r) & SPC_BOARD_AT_END) != 0) {
        say(r, "  The main program has ended, and threads of it still wait: the run ends when they do.\n"
               "  Try: send what they wait for, or start them with daemon=True, so that they end with the "
               "program.");
        return true;
    }
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        if (r->known[rank] && r->entry[rank].near_count != 0) {
            say_near(r, rank);
            return true;
        }
    }
    if (r->options->advice != NULL && !has_kind(r, SPC_BOARD_SEND)) {
        fprintf(r->out, "  %s", r->options->advice);
        return true;
    }
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        bool receives = is_of(r, rank, SPC_BOARD_RECEIVE);
        if ((receives || is_of(r, rank, SPC_BOARD_RECEIPT))
            && r->entry[rank].source == (int32_t)r->entry[rank].rank) {
            fprintf(r->out,
                    "  Node %u %s itself, and nobody else can.\n  Try: check how the rank is computed.", rank,
                    receives ? "receives from" : "sends synchronously to");
            return true;
        }
    }
    return false;
}

/* ---- messages ---- */

static bool all_at_one_place(const report_t *r) {
    uint32_t first = NOBODY;
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        first = first == NOBODY && r->known[rank] ? rank : first;
        if (r->known[rank] && !is_same_place(&r->entry[rank], &r->entry[first])) {
            return false;
        }
    }
    return true;
}

/* spcomm's C has no sendrecv. */
static void say_or_sendrecv(const report_t *r) {
    say(r, r->is_mpi && r->in_c ? ", or use MPI_Sendrecv()." : r->in_c ? "." : ", or use sendrecv().");
}

static void say_nobody_sends(const report_t *r) {
    if (all_at_one_place(r)) {
        say(r, "  No matching message has been sent: each of these nodes waits to receive.\n  Try: let one "
               "node send before it receives");
        say_or_sendrecv(r);
    } else {
        say(r,
            "  All of these receive, and nobody is left who could send to them.\n"
            "  Try: let one node send before it receives here; is an answer missing, or a last message that "
            "ends a loop?");
    }
}

static void say_limit_moves(const report_t *r) {
    const char *limit = r->options->has_launcher ? "--queue-limit" : "a limit of";
    uint64_t enough_bytes = 0;
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        const bool needs_more = is_of(r, rank, SPC_BOARD_SEND) && r->entry[rank].phase > enough_bytes;
        enough_bytes = needs_more ? r->entry[rank].phase : enough_bytes;
    }
    if (enough_bytes != 0) {
        fprintf(r->out, "%s %" PRIu64 "K lets these sends go on, and", limit, (enough_bytes + 1023) / 1024);
    } else {
        say(r, r->options->has_launcher ? limit : "a higher limit");
    }
    say(r, " only moves the point where it stops.");
}

/* Some nodes have no room for the messages they send. */
static void say_full(report_t *r) {
    choose_kind(r, SPC_BOARD_SEND);
    if (count(r, r->these) == r->waits->known_count) {
        say(r, r->nodes == 1 ? "  The queue is full: the node sends more to itself than it receives.\n"
                             : "  The queues are full: every node sends more than anybody receives.\n");
        say(r, "  Try: receive between the sends; ");
        say_limit_moves(r);
        return;
    }
    choose_needed(r);
    say(r, "  ");
    say_nodes(r, "Node", r->these);
    say_verb(r, r->these, "send");
    say(r, " more to ");
    say_nodes(r, "node", r->those);
    say(r, " than the queues hold, and nobody receives it.\n"
           "  Try: receive before waiting for anything else; ");
    say_limit_moves(r);
}

static bool any_by_rendezvous(const report_t *r) {
    bool any = false;
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        any = any || (r->these[rank] && (r->entry[rank].flags & SPC_BOARD_RENDEZVOUS) != 0);
    }
    return any;
}

/* Some nodes wait until their messages are received. */
static void say_unreceived(report_t *r) {
    choose_kind(r, SPC_BOARD_RECEIPT);
    choose_needed(r);
    bool told = any_by_rendezvous(r);
    say(r, told ? "  With --rendezvous, " : "  ");
    say_function(r, told ? "send" : "ssend");
    say(r, " returns when its message has been received");
    if (count(r, r->these) == r->waits->known_count) {
        say(r, ": every node sends first.\n  Try: let one node receive before it sends");
        say_or_sendrecv(r);
        return;
    }
    say(r, ", and ");
    say_nodes(r, "node", r->those);
    say_verb(r, r->those, "wait");
    say(r, " for something else.\n  Try: let ");
    say_nodes(r, "node", r->those);
    say(r, " receive first");
    if (!told) {
        say(r, ", or use ");
        say_function(r, "send");
        say(r, ", which does not wait");
    }
    say(r, ".");
}

/* ---- collective operations ---- */

/* Sets r->these to the nodes in the same operation as this one, of the same communicator. SPC_ENOMEM. */
static int choose_operation(report_t *r, uint32_t first) {
    char *words = text_of_call(&r->entry[first], NULL);
    int status = words != NULL ? SPC_OK : SPC_ENOMEM;
    memset(r->these, 0, r->nodes * sizeof *r->these);
    for (uint32_t rank = 0; rank < r->nodes && status == SPC_OK; rank++) {
        if (!is_in_phase(r, rank) || r->entry[rank].communicator != r->entry[first].communicator) {
            continue;
        }
        char *other = text_of_call(&r->entry[rank], NULL);
        status = other != NULL ? SPC_OK : SPC_ENOMEM;
        r->these[rank] = other != NULL && strcmp(other, words) == 0;
        free(other);
    }
    free(words);
    return status;
}

static void say_who_is_missing(report_t *r, uint32_t first, const char *word) {
    choose_needed(r);
    say_nodes(r, word, r->these);
    say_verb(r, r->these, "wait");
    say(r, " in ");
    spc_call_text_write(&r->entry[first], NULL, r->out);
    say(r, r->entry[first].communicator != 0 ? " of a part for " : " for ");
    say_nodes(r, "node", r->those);
}

/* Some nodes are in collective operations that others never reach. */
static int say_missing(report_t *r) {
    uint32_t operations = 0, last = 0;
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        if (!is_in_phase(r, rank) || r->done[rank]) {
            continue;
        }
        int status = choose_operation(r, rank);
        if (status != SPC_OK) {
            return status;
        }
        say(r, operations == 0 ? "  " : "; ");
        say_who_is_missing(r, rank, operations == 0 ? "Node" : "node");
        for (uint32_t other = 0; other < r->nodes; other++) {
            r->done[other] = r->done[other] || r->these[other];
        }
        operations++;
        last = rank;
    }
    if (operations > 1) {
        say(r,
            ".\n  Try: have all nodes call the same operations in the same order, those of parts among those "
            "of the run.");
        return SPC_OK;
    }
    say(r, ", which must call it, too.\n  Try: have every node call ");
    write_function(&r->entry[last], r->in_c, r->out);
    say(r, ", also those that take another branch, before it waits for them.");
    return SPC_OK;
}

/* A collective that all have entered: a node that does not give its part must have left it. A group, whose members
 * begin one by one: one of them has not begun. */
static void say_left(report_t *r) {
    uint32_t rank = 0;
    while (rank + 1 < r->nodes && !is_of(r, rank, SPC_BOARD_GATHERING)) {
        rank++;
    }
    fprintf(r->out, "  Node %u waits in ", rank);
    spc_call_text_write(&r->entry[rank], NULL, r->out);
    if (is_call(&r->entry[rank], SPC_OPERATION_CREATE_GROUP)) {
        say(r, ", which must call it, too.\n"
               "  Try: have every member call it, with the same list and tag, before it waits for others.");
        return;
    }
    say(r, ", which has left that call before its end.\n"
           "  Try: after an interruption, end it by the same call again.");
}

/* ---- MPI windows ---- */

static bool waits_in(const report_t *r, uint32_t rank, spc_board_mpi_call_t call) {
    return r->known[rank] && r->entry[rank].flags >> SPC_BOARD_MPI_SHIFT == (uint32_t)call
           && r->entry[rank].kind == SPC_BOARD_RECEIVE;
}

/* Some node waits for a lock, or for the other side of an epoch. */
static bool say_window(const report_t *r) {
    static const struct {
        spc_board_mpi_call_t call;
        const char *words;
    } known[] = {
        {SPC_BOARD_MPI_Win_lock,
         "a lock that another node keeps while it waits itself.\n  Try: unlock before "
         "waiting for anything else, and lock ranks in one order on all nodes."},
        {SPC_BOARD_MPI_Win_lock_all, "a lock that another node keeps while it waits itself.\n  Try: unlock "
                                     "before waiting for anything else."},
        {SPC_BOARD_MPI_Win_start,
         "a node that has not exposed its memory.\n  Try: let it call Win_post first, "
         "with a group that has this node."},
        {SPC_BOARD_MPI_Win_wait, "a node that has not ended its accesses.\n  Try: let it call Win_complete "
                                 "first."},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        for (uint32_t rank = 0; rank < r->nodes; rank++) {
            if (waits_in(r, rank, known[i].call)) {
                fprintf(r->out, "  Node %u waits for %s", rank, known[i].words);
                return true;
            }
        }
    }
    return false;
}

/* ---- the whole report ---- */

static int say_all(report_t *r) {
    if (say_window(r) || say_what_one_node_shows(r)) {
        return SPC_OK;
    }
    if (r->kinds == UINT32_C(1) << SPC_BOARD_RECEIVE) {
        say_nobody_sends(r);
    } else if (has_kind(r, SPC_BOARD_SEND)) {
        say_full(r);
    } else if (has_kind(r, SPC_BOARD_PHASE) || has_kind(r, SPC_BOARD_CYCLE)) {
        return say_missing(r);
    } else if (has_kind(r, SPC_BOARD_GATHERING)) {
        say_left(r);
    } else if (has_kind(r, SPC_BOARD_RECEIPT)) {
        say_unreceived(r);
    } else {
        say(r, "  Each of these waits for another one of them.\n"
               "  Try: look at the lines above: one of them must do its part before it waits.");
    }
    return SPC_OK;
}

static int write_all(report_t *r) {
    fprintf(r->out, "spcomm: %s%s", r->options->in_vain || r->options->waited_s != 0 ? "warning: " : "",
            r->options->waited_s != 0 ? "" : "DEADLOCK — ");
    write_headline(r);
    int status = write_table(r);
    if (status == SPC_OK) {
        write_circle(r);
        status = say_all(r);
        fputs("     (spcomm explain SP101)\n", r->out);
    }
    if (r->options->in_vain) {
        const bool is_one = r->nodes - r->waits->known_count == 1;
        fprintf(r->out, "  The run goes on until %s, or a node ends, which makes waits fail.\n",
                is_one ? "the other node waits" : "the others wait");
    }
    return status;
}

/* The caller frees r->these. */
static int prepare(report_t *r, const spc_waits_t *waits, const spc_deadlock_report_options_t *options,
                   FILE *out) {
    bool *room = calloc(waits->nodes, 3 * sizeof *room);
    if (room == NULL) {
        return SPC_ENOMEM;
    }
    *r = (report_t){.waits = waits,
                    .options = options,
                    .nodes = waits->nodes,
                    .known = waits->known,
                    .entry = waits->entry,
                    .in_c = true,
                    .is_mpi = true,
                    .these = room,
                    .those = room + waits->nodes,
                    .done = room + 2 * (size_t)waits->nodes,
                    .out = out};
    for (uint32_t rank = 0; rank < r->nodes; rank++) {
        r->kinds |= r->known[rank] ? UINT32_C(1) << r->entry[rank].kind % 32 : 0;
        r->in_c = r->in_c && (!r->known[rank] || (r->entry[rank].flags & SPC_BOARD_IN_C) != 0);
        r->is_mpi = r->is_mpi && (!r->known[rank] || r->entry[rank].flags >> SPC_BOARD_MPI_SHIFT != 0);
    }
    return SPC_OK;
}

int spc_deadlock_report_write(const spc_waits_t *waits, const spc_deadlock_report_options_t *options,
                              FILE *out) {
    report_t r;
    int status = prepare(&r, waits, options, out);
    if (status == SPC_OK) {
        status = write_all(&r);
        free(r.these);
    }
    return status;
}

int spc_deadlock_report_rows(const spc_waits_t *waits, spc_deadlock_report_row_t *row, void *argument) {
    report_t r;
    int status = prepare(&r, waits, NULL, NULL);
    if (status == SPC_OK) {
        status = write_rows(&r, row, argument);
        free(r.these);
    }
    return status;
}

/* The time for which the last one of these nodes has been waiting. */
static uint64_t waited_s(const spc_waits_t *waits) {
    uint64_t now_ns = spc_clock_now_ns(), since_ns = 0;
    for (uint32_t rank = 0; rank < waits->nodes; rank++) {
        since_ns = waits->known[rank] && waits->entry[rank].since_ns > since_ns ? waits->entry[rank].since_ns
                                                                                : since_ns;
    }
    return now_ns > since_ns ? (now_ns - since_ns) / UINT64_C(1000000000) : 0;
}

/* A board may change while it is read, for its node wakes now and then and sleeps again: then it is read again. */
enum {
    TRIES = 100,
    REST_NS = 100000,
};

static bool read_patiently(const spc_segment_t *segment, uint32_t rank, spc_waits_t *waits) {
    bool *needed = &waits->needed[(uint64_t)rank * waits->nodes];
    for (int i = 0; i < TRIES; i++) {
        if (spc_waits_read_board(segment, rank, &waits->entry[rank], needed)) {
            return true;
        }
        spc_clock_sleep_ns(REST_NS);
    }
    return false;
}

/* Called after a look that has proven a deadlock. SPC_OK; SPC_EAGAIN: no board could be read; SPC_ENOMEM. */
static int read_waits(const spc_segment_t *segment, const spc_deadlock_t *deadlock, spc_waits_t *waits) {
    uint32_t nodes = segment->config->nodes;
    int status = spc_waits_create(nodes, waits);
    if (status != SPC_OK) {
        return status;
    }
    for (uint32_t rank = 0; rank < nodes; rank++) {
        waits->known[rank] = spc_deadlock_has(deadlock, rank) && read_patiently(segment, rank, waits);
        waits->known_count += waits->known[rank];
    }
    if (waits->known_count == 0) {
        spc_waits_free(waits);
        return SPC_EAGAIN;
    }
    return SPC_OK;
}

char *spc_deadlock_report_text(const spc_segment_t *segment, const spc_deadlock_t *found, uint64_t least_s,
                               size_t *bytes) {
    spc_deadlock_report_options_t options = {0};
    spc_waits_t waits;
    char *text = NULL;
    if (read_waits(segment, found, &waits) != SPC_OK) {
        return NULL; /* the nodes wait on: the next look finds them again */
    }
    options.waited_s = least_s != 0 ? waited_s(&waits) : 0;
    FILE *out = options.waited_s >= least_s ? open_memstream(&text, bytes) : NULL;
    bool failed = out == NULL || spc_deadlock_report_write(&waits, &options, out) != SPC_OK;
    failed = (out != NULL && fclose(out) != 0) || failed;
    spc_waits_free(&waits);
    if (failed) {
        free(text);
        text = NULL;
    }
    return text;
}
