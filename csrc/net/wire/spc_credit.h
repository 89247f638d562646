/* SPDX-License-Identifier: MIT */
/*
 * spc_credit: limits the bytes that gateways have under way, and those that the server must be able to keep. Both ends
 * compute the limits from the map of the run, so that they agree without exchanging them.
 *
 * Each gateway may have `window` bytes under way to each node elsewhere. A box that does not read, but is not dead yet,
 * makes the server keep all of that: from each other box, for each node of that box. These bytes must fit into the
 * memory of its link (spc_server_options_t.retained_max), else a run would end although all boxes kept to the rules.
 *
 *   - A frame takes SPC_CREDIT_FRAME_COST and its payload from each destination's credit. On the link it is one header,
 *     one list of ranks and one payload, which is never more.
 *   - Credit may come back before the acknowledgement that frees the frames: then less than SPC_CREDIT_BESIDE_BYTES are
 *     kept beyond the windows, for a gateway acknowledges after SPC_LINK_ACKNOWLEDGE_BYTES, at the latest. Other frames
 *     for a box (credit, receipts, arrivals, ends) have room there, too.
 *
 * The smaller of two shares is the window: all windows of the run together, and those towards the largest box. Each has
 * a minimum, below which messages would be torn into tiny parts; so `kept` grows with jobs that have very many nodes,
 * and many of them in one box, but never to 64 MiB.
 */
#ifndef SPC_CREDIT_H
#define SPC_CREDIT_H

#include <stdint.h>

/* The cost of a frame, beside its body, to a destination's credit: a header, and a list of one rank. */
#define SPC_CREDIT_FRAME_COST 72

#define SPC_CREDIT_BESIDE_BYTES (UINT64_C(4) << 20)

typedef struct spc_credit {
    uint64_t window; /* bytes from one box to one node elsewhere */
    uint64_t kept;   /* bytes that the server keeps for one box, at most */
} spc_credit_t;

/* Computes the limits from the map: the box of each rank; there are at least 2 boxes. Any thread. */
spc_credit_t spc_credit_of_map(const uint16_t *box_of_rank, uint32_t nodes, uint32_t boxes);

#endif
