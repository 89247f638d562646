/* SPDX-License-Identifier: MIT */
/*
 * spc_subtree: combines values of several nodes outside their shared memory, along the tree of spc_tree.h.
 *
 * A subtree is a value that stands for `span` members from `first` on: a leaf of the tree for one member, and an inner
 * node for those whose values have been combined already. Two subtrees that are the children of one node become that
 * node, again and again, until only the largest complete subtrees of the input are left: one value if all members were
 * given, else the fewest from which another party can continue. A party with some of the members (a server, a gateway
 * with others below it) may therefore combine them, in any order, and the bits stay those of one box.
 *
 * Pure functions; any thread may call them.
 */
#ifndef SPC_SUBTREE_H
#define SPC_SUBTREE_H

#include <stdint.h>

#include "reduce/spc_ops.h"

typedef struct spc_subtree {
    uint32_t first;
    uint32_t span;
    void *value; /* starts at a multiple of 8 bytes */
} spc_subtree_t;

/* `members`: of the whole tree. `subtrees` are in the order of `first`; *count is their number, and becomes the number
 * left. Values are combined in place of the left one, all others are only read. SPC_OK; SPC_EWIDE, as spc_ops_combine:
 * the values are then undefined; SPC_EINVAL, and nothing was done: they overlap, are in another order, one is not
 * complete, or the operator does not support a type. */
int spc_subtree_combine(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count,
                        uint32_t members, spc_subtree_t *subtrees, uint32_t *count);

#endif
