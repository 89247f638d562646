/* SPDX-License-Identifier: MIT */
#include "reduce/spc_fuzzy.h"

#include <string.h>

#include "base/spc_error.h"

void spc_fuzzy_init(spc_fuzzy_t *fuzzy, spc_reduce_t *reduce) {
    memset(fuzzy, 0, sizeof *fuzzy);
    fuzzy->reduce = reduce;
}

int spc_fuzzy_enter(spc_fuzzy_t *fuzzy, uint64_t *phase) {
    static const spc_signature_t signature = {.operation = SPC_OPERATION_FUZZY};
    if (fuzzy->count == SPC_FUZZY_MAX) {
        return SPC_ELIMIT;
    }
    spc_fuzzy_settle(fuzzy);
    const int status = spc_reduce_start(fuzzy->reduce, &signature, NULL, NULL, 0, phase);
    if (status == SPC_OK) {
        fuzzy->open[fuzzy->count].phase = *phase;
        fuzzy->open[fuzzy->count].settled = 0;
        fuzzy->count++;
    }
    return status;
}

/* Remembers the outcome of a barrier that is complete. */
static void settle(spc_fuzzy_t *fuzzy, uint32_t index) {
    const uint64_t phase = fuzzy->open[index].phase;
    if (!fuzzy->open[index].settled && spc_reduce_test(fuzzy->reduce, phase)) {
        fuzzy->open[index].status = spc_reduce_finish(fuzzy->reduce, phase, NULL, 0);
        fuzzy->open[index].settled = 1;
    }
}

void spc_fuzzy_settle(spc_fuzzy_t *fuzzy) {
    for (uint32_t i = 0; i < fuzzy->count; i++) {
        settle(fuzzy, i);
    }
}

int spc_fuzzy_leave(spc_fuzzy_t *fuzzy, uint64_t phase) {
    uint32_t index = 0;
    while (index < fuzzy->count && fuzzy->open[index].phase != phase) {
        index++;
    }
    if (index == fuzzy->count) {
        return SPC_EINVAL;
    }
    settle(fuzzy, index);
    if (!fuzzy->open[index].settled) {
        return SPC_EAGAIN;
    }
    const int status = fuzzy->open[index].status;
    fuzzy->count--;
    memmove(&fuzzy->open[index], &fuzzy->open[index + 1], (fuzzy->count - index) * sizeof fuzzy->open[0]);
    return status;
}

uint32_t spc_fuzzy_open(const spc_fuzzy_t *fuzzy, uint64_t phases[SPC_FUZZY_MAX]) {
    for (uint32_t i = 0; i < fuzzy->count; i++) {
        phases[i] = fuzzy->open[i].phase;
    }
    return fuzzy->count;
}
