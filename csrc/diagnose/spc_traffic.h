/* SPDX-License-Identifier: MIT */
/*
 * spc_traffic: detects whether any message was sent or any operation completed since the last look.
 *
 * For the supervisor, once in a while, when a run seems to stand still: nodes that poll in vain and nodes that exchange
 * messages by polling look alike otherwise. Reads only. Cost: a cache line for each slot of each pair of nodes.
 */
#ifndef SPC_TRAFFIC_H
#define SPC_TRAFFIC_H

#include <stdint.h>

#include "segment/spc_segment.h"

/* A number that differs when a message has been announced, or a collective operation of the whole run
 * completed. */
uint64_t spc_traffic_seen(const spc_segment_t *segment);

#endif
