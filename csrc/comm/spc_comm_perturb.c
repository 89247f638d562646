/* SPDX-License-Identifier: MIT */
#include "comm/spc_comm_perturb.h"

/* The subject of a choice: one call makes several. */
enum {
    ABOUT_PACE = 1,
    ABOUT_BEFORE,
    ABOUT_AFTER,
    ABOUT_BLINDNESS,
    ABOUT_LINGERING,
    ABOUT_SOURCE = 256, /* and one more for each source */
};

enum {
    START_NS = 50000000, /* longest delays */
    SLOW_NS = 2000000,
    LONG_NS = 1000000,
    SHORT_NS = 150000,
    BLOCK_CALLS = 32, /* calls before the pace changes */
    LIVELY_BLOCKS = 32, /* after these, long runs continue with few delays */
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

static uint64_t choose(const spc_comm_t *comm, uint64_t number, uint32_t about) {
    uint64_t bits = mix(comm->config->perturb_seed + UINT64_C(0x9e3779b97f4a7c15));
    bits = mix(bits ^ ((uint64_t)comm->node->rank << 32 | about));
    return mix(bits + number * UINT64_C(0x9e3779b97f4a7c15));
}

uint64_t spc_comm_perturb_number(spc_comm_t *comm) {
    /* Relaxed: only choices follow from it. */
    return atomic_fetch_add_explicit(&comm->node->perturbed_calls, 1, memory_order_relaxed);
}

static pace_t pace_of(const spc_comm_t *comm, uint64_t number) {
    static const pace_t paces[] = {PACE_BRISK, PACE_NORMAL, PACE_NORMAL, PACE_SLOW};
    uint64_t block = number / BLOCK_CALLS;
    uint64_t chosen = choose(comm, block, ABOUT_PACE);
    bool lively = block < LIVELY_BLOCKS || (chosen >> 8) % 8 == 0;
    return lively ? paces[chosen % 4] : PACE_BRISK;
}

/* ---- delays */

void spc_comm_perturb_sleep(const spc_comm_t *comm, uint64_t duration_ns) {
    _Atomic uint32_t nobody_wakes = 0;
    spc_platform_sleep(comm->config->features, &nobody_wakes, 0, duration_ns);
}

static void delay(const spc_comm_t *comm, uint64_t number, uint32_t about) {
    pace_t pace = pace_of(comm, number);
    uint64_t chosen = choose(comm, number, about);
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

/* ---- before and after calls */

void spc_comm_perturb_before(spc_comm_t *comm) {
    if (spc_comm_is_perturbed(comm)) {
        delay(comm, spc_comm_perturb_number(comm), ABOUT_BEFORE);
    }
}

void spc_comm_perturb_after(spc_comm_t *comm) {
    if (spc_comm_is_perturbed(comm)) {
        delay(comm, spc_comm_perturb_number(comm), ABOUT_AFTER);
    }
}

bool spc_comm_perturb_blinds(spc_comm_t *comm) {
    return spc_comm_is_perturbed(comm)
           && choose(comm, spc_comm_perturb_number(comm), ABOUT_BLINDNESS) % 4 == 0;
}

void spc_comm_perturb_start(spc_comm_t *comm) {
    if (spc_comm_is_perturbed(comm)) {
        uint64_t chosen = choose(comm, spc_comm_perturb_number(comm), ABOUT_BEFORE);
        spc_comm_perturb_sleep(comm, chosen % 4 == 0 ? 0 : (chosen >> 16) % START_NS);
    }
}

/* ---- receives from ANY */

uint64_t spc_comm_perturb_liking(const spc_comm_t *comm, uint64_t number, uint32_t rank) {
    return choose(comm, number, ABOUT_SOURCE + rank) | 1;
}

uint64_t spc_comm_perturb_lingering_ns(const spc_comm_t *comm, uint64_t number) {
    const uint64_t chosen = choose(comm, number, ABOUT_LINGERING);
    const bool lively = number < LIVELY_BLOCKS * BLOCK_CALLS;
    return chosen % (lively ? 2 : 32) != 0 ? 0 : 1 + (chosen >> 16) % SLOW_NS;
}
