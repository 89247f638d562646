/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "diagnose/spc_call_text.h"

#include <string.h>

#include "reduce/spc_layout.h"
#include "reduce/spc_reduce.h"

#define ANY (-1) /* source or tag */

void spc_call_text_write_number(int32_t number, FILE *out) {
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

/* ---- reductions ---- */

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

bool spc_call_text_is(const spc_board_entry_t *entry, spc_operation_t operation) {
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

/* ---- functions ---- */

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

void spc_call_text_write_function(const spc_board_entry_t *entry, bool in_c, FILE *out) {
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

/* ---- calls ---- */

/* Whether it waits within a collective, for room. */
static bool is_collective(const spc_board_entry_t *entry) {
    return !spc_call_text_is(entry, SPC_OPERATION_NONE);
}

static void write_peer(const spc_board_entry_t *entry, const char *peer, FILE *out) {
    if (peer != NULL) {
        fputs(peer, out);
    } else {
        spc_call_text_write_number(entry->source, out);
    }
}

static void write_message_call(const char *name, const spc_board_entry_t *entry, const char *peer,
                               FILE *out) {
    fputs(name, out);
    write_peer(entry, peer, out);
    fputs(", tag=", out);
    spc_call_text_write_number(entry->tag, out);
    fputc(')', out);
}

bool spc_call_text_is_of_window(const spc_board_entry_t *entry) {
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

char *spc_call_text(const spc_board_entry_t *entry, const char *peer) {
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

/* ---- places ---- */

/* As it is shown: one program may lie in different folders on several machines. */
static const char *name_of_file(const spc_board_entry_t *entry) {
    const char *slash = strrchr(entry->file, '/');
    return slash != NULL ? slash + 1 : entry->file;
}

bool spc_call_text_same_place(const spc_board_entry_t *one, const spc_board_entry_t *other) {
    const bool same_file = strcmp(name_of_file(one), name_of_file(other)) == 0;
    return same_file
           && (one->file[0] == '\0'
               || (one->line == other->line && strcmp(one->function, other->function) == 0));
}

/* A name from a program may hold any bytes: the text contains nothing that a terminal would obey, of ASCII or of C1,
 * which is two bytes of UTF-8, or one where no character of UTF-8 goes on. */
void spc_call_text_write_name(const char *name, size_t length, FILE *out) {
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
    spc_call_text_write_name(name, strlen(name), out);
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

void spc_call_text_write_source(const spc_board_entry_t *entry, FILE *out) {
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
