/* SPDX-License-Identifier: MIT */
#include "comm/spc_comm_perturb.h"

enum {
    SLOW_NS = 2000000, /* longest delays */
    LONG_NS = 1000000,
    SHORT_NS = 150000,
    BLOCK_CALLS = 32, /* calls before the pace changes */
};

typedef enum pace {
    PACE_BRISK, /* no delays: other nodes get out of step with this one */
    PACE_NORMAL,
    PACE_SLOW,
} pace_t;

/* ---- choices */

/* The finaliser of splitmix64. */
static uint64_t mix(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

uint64_t spc_comm_perturb_choose(const spc_comm_t *comm, uint64_t number, uint32_t about) {
    uint64_t bits = mix(comm->config->perturb_seed + UINT64_C(0x9e3779b97f4a7c15));
    bits = mix(bits ^ ((uint64_t)comm->node->rank << 32 | about));
    return mix(bits + number * UINT64_C(0x9e3779b97f4a7c15));
}

static pace_t pace_of(const spc_comm_t *comm, uint64_t number) {
    static const pace_t paces[] = {PACE_BRISK, PACE_NORMAL, PACE_NORMAL, PACE_SLOW};
    uint64_t block = number / BLOCK_CALLS;
    uint64_t chosen = spc_comm_perturb_choose(comm, block, SPC_ABOUT_PACE);
    bool lively = number < SPC_LIVELY_CALLS || (chosen >> 8) % 8 == 0;
    return lively ? paces[chosen % 4] : PACE_BRISK;
}

/* ---- delays */

void spc_comm_perturb_delay(spc_comm_t *comm, uint32_t about) {
    uint64_t number = spc_comm_perturb_number(comm);
    pace_t pace = pace_of(comm, number);
    uint64_t chosen = spc_comm_perturb_choose(comm, number, about);
    uint64_t fine = chosen >> 16;
    uint32_t sixteenth = chosen % 16;
    if (pace == PACE_BRISK || sixteenth < (pace == PACE_SLOW ? 4 : 8)) {
        return;
    }
    if (pace == PACE_SLOW) {
        spc_comm_perturb_sleep(comm, fine % SLOW_NS);
    } else if (sixteenth < 12) {
        spc_platform_yield();
    } else {
        spc_comm_perturb_sleep(comm, fine % (sixteenth < 15 ? SHORT_NS : LONG_NS));
    }
}
