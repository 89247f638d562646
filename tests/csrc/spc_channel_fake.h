/* SPDX-License-Identifier: MIT */
/*
 * spc_channel_fake: two ends of a channel in one process, for tests: its time is the test's, its faults come from a
 * seed or from the test, and the same seed does the same again.
 *
 * What one end writes the other reads later: after a delay, in pieces cut anywhere. A wire that is cut breaks at both
 * ends, and what was on its way is lost; a blackhole goes on taking bytes, and none arrives; a flipped bit arrives.
 * Destroying one end cuts the wire; the other end stays until it is destroyed, too.
 *
 * One thread at a time for both ends.
 */
#ifndef SPC_CHANNEL_FAKE_H
#define SPC_CHANNEL_FAKE_H

#include <stdbool.h>

#include "base/spc_clock.h"
#include "net/link/spc_channel.h"

/* Probabilities are per mille, of each read or write that moves bytes. */
typedef struct spc_channel_fake_options {
    uint64_t seed;
    spc_clock_fn now_ns;
    uint64_t delay_max_ns;
    size_t room_bytes; /* on the way in one direction, at most; 0: 64 KiB */
    bool splits;       /* reads and writes move a part only, as often as not */
    uint32_t cut, flip, blackhole;
} spc_channel_fake_options_t;

/* SPC_ENOMEM. */
int spc_channel_fake_create(const spc_channel_fake_options_t *options, spc_channel_t *ends[2]);

/* Faults at a moment of the test's choice; of either end, for both. */
void spc_channel_fake_cut(spc_channel_t *end);
void spc_channel_fake_blackhole(spc_channel_t *end);

/* The bytes on their way to this end. */
size_t spc_channel_fake_coming(const spc_channel_t *end);

#endif
