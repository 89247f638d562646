/* SPDX-License-Identifier: MIT */
/*
 * spc_call_text: the text of a wait, from its status board, and of collective operations.
 *
 * Pure functions on the caller's copy of an entry; each writes UTF-8 and no line break.
 */
#ifndef SPC_CALL_TEXT_H
#define SPC_CALL_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "reduce/spc_reduce.h"
#include "segment/spc_board.h"

/* "recv(source=1, tag=7)", "barrier()". `peer`: the text instead of the rank; NULL: the rank. */
void spc_call_text_write(const spc_board_entry_t *entry, const char *peer, FILE *out);

/* "barrier()", "global_sum() of an array of float64, 80 bytes"; the caller frees it. Shapes are not in a signature.
 * NULL: no memory. */
char *spc_call_text_collective(const spc_signature_t *call);

/* Whether it waits within such an operation. */
bool spc_call_text_is(const spc_board_entry_t *entry, spc_operation_t operation);

/* Whether it waits for others' use of an MPI window. */
bool spc_call_text_is_of_window(const spc_board_entry_t *entry);

/* "float64"; "numbers" if the core has no name for it. */
const char *spc_call_text_type(uint32_t type);

/* "ring.py:12 in step"; empty if it is not known. */
void spc_call_text_write_place(const spc_board_entry_t *entry, FILE *out);

/* The line of the program itself, without its indentation, of an MPI call; empty if it cannot be read here. */
void spc_call_text_write_source(const spc_board_entry_t *entry, FILE *out);

/* Text from a program, which may hold any bytes; nothing that a terminal would obey is written. */
void spc_call_text_write_name(const char *name, size_t length, FILE *out);

/* "3", or "ANY". */
void spc_call_text_write_number(int32_t number, FILE *out);

/* "node 3", "nodes 0-2, 5"; `word` is "node", or "Node" at the start of a sentence. */
void spc_call_text_write_ranks(const char *word, const bool *chosen, uint32_t nodes, FILE *out);

/* The collective call that the other nodes have to make: "barrier()", or "spcomm_barrier()". */
void spc_call_text_write_function(const spc_board_entry_t *entry, bool in_c, FILE *out);

/* The output of spc_call_text_write; the caller frees it. NULL: no memory. */
char *spc_call_text(const spc_board_entry_t *entry, const char *peer);

/* Whether both are at the same line of the same function, or both at an unknown line. */
bool spc_call_text_same_place(const spc_board_entry_t *one, const spc_board_entry_t *other);

#endif
