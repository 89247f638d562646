/* SPDX-License-Identifier: MIT */
/*
 * spc_fuzzy: fuzzy barriers (SpeedesComm 2.2, 3.1): enter now, compute, ask or wait later.
 *
 * A thin layer over spc_reduce that keeps account of the open barriers: up to SPC_FUZZY_MAX may be in flight, and other
 * collectives may be called between the entry and the end of one. The layer remembers the outcome of a phase whose bank
 * is needed again before a caller asks for it. One thread of a node at a time.
 */
#ifndef SPC_FUZZY_H
#define SPC_FUZZY_H

#include "reduce/spc_reduce.h"

typedef struct spc_fuzzy {
    spc_reduce_t *reduce;
    uint32_t count;
    struct { /* the first `count`, oldest first */
        uint64_t phase;
        int32_t settled; /* its outcome is in `status` */
        int32_t status;
    } open[SPC_FUZZY_MAX];
} spc_fuzzy_t;

void spc_fuzzy_init(spc_fuzzy_t *fuzzy, spc_reduce_t *reduce);

/* Announces this node; SPC_ELIMIT if SPC_FUZZY_MAX are open already (complete ones count until they are left). The
 * phase is its handle. */
int spc_fuzzy_enter(spc_fuzzy_t *fuzzy, uint64_t *phase);

/* Ends it; SPC_OK or SPC_EMISMATCH. SPC_EINVAL if it is not open (any more), SPC_EAGAIN if some node has
 * not entered: then it stays open. */
int spc_fuzzy_leave(spc_fuzzy_t *fuzzy, uint64_t phase);

/* Call it before any new phase is started: keeps the outcomes of complete barriers, since their banks may be reused.
 * Entering calls it by itself. Cost: a load for each open barrier. */
void spc_fuzzy_settle(spc_fuzzy_t *fuzzy);

/* The number of open barriers; their phases, oldest first, for reports. */
uint32_t spc_fuzzy_open(const spc_fuzzy_t *fuzzy, uint64_t phases[SPC_FUZZY_MAX]);

#endif
