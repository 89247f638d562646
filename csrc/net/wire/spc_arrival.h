/* SPDX-License-Identifier: MIT */
/*
 * spc_arrival: the body of an ARRIVE frame: the mask of the boxes that take part (u64), then the arrivals one by one,
 * each with
 *
 *   head      40 bytes
 *   fields    of values that are combined: signature.field_count of them
 *   row       after a stamp: of coordinated messages, a count for each member
 *   value     length_bytes, padded to a multiple of 8
 *
 * in the byte order of the machines, which is the same for all of a run and its server. An arrival stands for `span`
 * members from `first` on, which all have arrived with this signature; the value is their combined one: a subtree of
 * reduce/spc_subtree.h. Gateways send arrivals of one member each; the server sends an arrival of all members, once
 * it has combined them. At a barrier there is no value to combine. The fields of a combined value that is out of
 * range have the type WIDE.
 *
 * Pure functions; any thread may call them.
 */
#ifndef SPC_ARRIVAL_H
#define SPC_ARRIVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "reduce/spc_reduce.h"

typedef struct spc_arrival_head {
    spc_signature_t signature;
    uint32_t first;
    uint32_t span;
    uint32_t stamp; /* stamp of the row that follows; 0: no row follows */
    uint32_t length_bytes;
} spc_arrival_head_t;

_Static_assert(sizeof(spc_arrival_head_t) == 40, "spc_arrival_head_t travels between machines");

typedef struct spc_arrival {
    spc_arrival_head_t head;
    const spc_field_t *fields; /* NULL: none */
    const uint64_t *row;       /* NULL: none */
    const unsigned char *value;
} spc_arrival_t;

/* Reads the arrival at *at of `length_bytes` bytes, in which it starts at a multiple of 8, and moves *at behind it.
 * `members`: of the communicator, as many as a row has. SPC_EINVAL: it does not fit, or has too many fields. Does not
 * check whether operation, types and lengths agree. */
int spc_arrival_read(const unsigned char *bytes, uint32_t length_bytes, uint32_t members, uint32_t *at,
                     spc_arrival_t *arrival);

/* Whether the reader can combine it: the value has fields, whose types the operator knows, and their length; or it is
 * the arrival at a barrier, which has neither fields nor a value. */
bool spc_arrival_combines(const spc_arrival_t *arrival);

#endif
