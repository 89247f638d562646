/* SPDX-License-Identifier: MIT */
/*
 * spc_numbers: the numbers of a node's communicators, and when one may be used again.
 *
 * A number stands in the context of each message, so it is taken from its reservation until no message of its
 * communicator can arrive here any more. Each member that has destroyed a communicator sends its last message in it
 * (SPC_SLOT_LAST) to every member in turn, itself included. Rows are in order, so the number is free once as many of
 * these have arrived as the communicator has members. docs/internals/collectives.md has the argument,
 * tests/models/number_reuse.pml and number_reuse_boxes.pml the models.
 *
 * The number of a communicator that a member did not destroy before it ended is never free again.
 *
 * Rows go on through gateways, so between boxes the same holds. But what gateways and the server tell each other of a
 * communicator takes other ways, and may be late: there a number is not enough, and each communicator has a generation,
 * too, which its first member gives it and never gives again.
 *
 * Private to the node; used under its lock. Nothing waits.
 */
#ifndef SPC_NUMBERS_H
#define SPC_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#define SPC_COMMUNICATORS_MAX (UINT32_C(1) << 14) /* context numbers have 16 bits, SPC_CONTEXT_KINDS take 2 */

typedef struct spc_numbers {
    uint32_t next; /* where the next search begins: all numbers have their turn */
    uint32_t generation; /* of the last reservation: each has its own */
    struct {
        uint16_t members; /* 0: free; SPC_NUMBER_TAKEN: not known (yet) */
        uint16_t lasts; /* members whose last message has come, perhaps before `members` is known */
    } number[SPC_COMMUNICATORS_MAX];
} spc_numbers_t;

#define SPC_NUMBER_TAKEN UINT16_MAX

/* SPC_ENOMEM. Number 0, the whole run's, is taken. */
int spc_numbers_create(spc_numbers_t **numbers);
void spc_numbers_destroy(spc_numbers_t *numbers);

/* Takes the first free number from `least` on; SPC_COMMUNICATORS_MAX if there is none. */
uint32_t spc_numbers_reserve(spc_numbers_t *numbers, uint32_t least);

/* Takes this number if it is free. */
bool spc_numbers_take(spc_numbers_t *numbers, uint32_t number);

/* Writes a bit for each number that is free. */
#define SPC_NUMBERS_WORDS (SPC_COMMUNICATORS_MAX / 64)
void spc_numbers_list_free(const spc_numbers_t *numbers, uint64_t words[SPC_NUMBERS_WORDS]);

/* No node sends messages with this reserved number: it is free. */
void spc_numbers_give_back(spc_numbers_t *numbers, uint32_t number);

/* A communicator of so many members has this reserved number; SPC_NUMBER_TAKEN: it keeps it. */
void spc_numbers_note_made(spc_numbers_t *numbers, uint32_t number, uint32_t members);

/* The last message of one more member has arrived. True: of all, and the number is free. */
bool spc_numbers_note_last(spc_numbers_t *numbers, uint32_t number);

#endif
