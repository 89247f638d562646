/* SPDX-License-Identifier: MIT */
#include "diagnose/spc_mismatch.h"

#include <stdlib.h>
#include <string.h>

#include "diagnose/spc_deadlock_report.h"
#include "diagnose/spc_failure_text.h"

static bool same_signature(const spc_called_t *one, const spc_called_t *other) {
    return memcmp(&one->signature, &other->signature, sizeof(one->signature)) == 0;
}

bool spc_mismatch_differs(const spc_called_t *called, uint32_t count) {
    const spc_called_t *first = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (called[i].is_known && first != NULL && !same_signature(first, &called[i])) {
            return true;
        }
        first = called[i].is_known ? &called[i] : first;
    }
    return false;
}

static bool same_call(const spc_called_t *one, const spc_called_t *other) {
    return other->is_known && same_signature(one, other) && strcmp(one->note.words, other->note.words) == 0
           && one->note.line == other->note.line && strcmp(one->note.file, other->note.file) == 0
           && strcmp(one->note.function, other->note.function) == 0;
}

/* The caller frees it; NULL: no memory. */
static char *text_of(const spc_called_t *called) {
    return called->note.words[0] != '\0' ? strdup(called->note.words)
                                         : spc_call_text_collective(&called->signature);
}

/* Whether another operation has the same text. */
static bool is_ambiguous(const spc_called_t *called, uint32_t count, const spc_called_t *one) {
    char *text = spc_call_text_collective(&one->signature);
    bool found = false;
    for (uint32_t i = 0; i < count && text != NULL && !found; i++) {
        if (called[i].is_known && !same_signature(one, &called[i])) {
            char *other = spc_call_text_collective(&called[i].signature);
            found = other != NULL && strcmp(text, other) == 0;
            free(other);
        }
    }
    free(text);
    return found;
}

/* The nodes with the same call as the first of them. */
static void write_group(const spc_called_t *called, uint32_t count, const spc_called_t *first, FILE *out) {
    bool chosen[SPC_NODES_MAX] = {false};
    for (uint32_t i = 0; i < count; i++) {
        chosen[called[i].rank] |= same_call(first, &called[i]);
    }
    char *text = text_of(first);
    fprintf(out, "\n  ");
    spc_call_text_write_ranks("node", chosen, SPC_NODES_MAX, out);
    fprintf(out, ": %s", text != NULL ? text : "a collective operation");
    if (first->note.words[0] == '\0' && is_ambiguous(called, count, first)) {
        fprintf(out, " (of a different shape or type)");
    }
    spc_failure_text_write_place(&first->note, out);
    free(text);
}

static bool move_data(const spc_called_t *called, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t operation = called[i].signature.operation;
        if (called[i].is_known
            && (operation < SPC_OPERATION_DATA_BCAST || operation > SPC_OPERATION_DATA_ALLTOALL)) {
            return false;
        }
    }
    return true;
}

/* Compares "global_sum()" of "global_sum() of a float". */
static bool differ_in_name(const spc_called_t *called, uint32_t count) {
    char *first = NULL;
    bool found = false;
    for (uint32_t i = 0; i < count && !found; i++) {
        char *text = called[i].is_known ? text_of(&called[i]) : NULL;
        char *values = text != NULL ? strstr(text, " of ") : NULL;
        if (values != NULL) {
            *values = '\0';
        }
        found = first != NULL && text != NULL && strcmp(first, text) != 0;
        if (first == NULL) {
            first = text;
        } else {
            free(text);
        }
    }
    free(first);
    return found;
}

void spc_mismatch_write(const spc_called_t *called, uint32_t count, uint64_t phase, FILE *out) {
    const bool moves = move_data(called, count);
    fprintf(out, "the nodes %s (collective call %llu of each node):",
            moves || differ_in_name(called, count) ? "called different operations"
                                                   : "gave different types or shapes",
            (unsigned long long)phase);
    for (uint32_t i = 0; i < count; i++) {
        bool is_first = called[i].is_known;
        for (uint32_t before = 0; before < i && is_first; before++) {
            is_first = !same_call(&called[i], &called[before]);
        }
        if (is_first) {
            write_group(called, count, &called[i], out);
        }
    }
    fprintf(
        out,
        "\nAll nodes must call the same operations in the same order, with %s.     (spcomm explain SP105)",
        moves ? "the same root" : "values of the same type and shape");
}
