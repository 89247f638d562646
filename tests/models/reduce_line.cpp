/* SPDX-License-Identifier: MIT */
/*
 * Memory orders of the reducer (csrc/reduce/spc_reduce.c): the last node of a group sees the lines of all others, each
 * that sees the release sees the result, and the counter is clear for whoever comes after the release.
 *
 * NODES nodes of one group, each with a line. After the release, those that have seen it arrive once more.
 *
 * Variants: one order is relaxed, or two steps change places
 *   -DARRIVE      fails: the count does not publish and take the lines
 *   -DRELEASE     fails: the release comes before the result
 *   -DTEST        fails: the result is read before the release
 *   -DCLEAR_LATE  fails: the counter is cleared after the release
 */
#include "orders.hpp"

#ifdef QUICK
#define NODES 2
#else
#define NODES 3
#endif

struct reduce_line : rl::test_suite<reduce_line, NODES> {
    rl::atomic<unsigned> arrivals, phase;
    rl::var<unsigned> line[NODES], result;

    void before() {
        arrivals($) = 0;
        phase($) = 0;
    }

    /* Whether the phase is released for this node. */
    bool arrive(unsigned which) {
        line[which]($) = which + 1;
        if (arrivals($).fetch_add(1, ORDER(ARRIVE, acq_rel, relaxed)) + 1 != NODES) {
            return phase($).load(ORDER(TEST, seq_cst, relaxed)) == 1;
        }
        unsigned sum = 0;
        for (unsigned i = 0; i < NODES; i++) {
            sum += line[i]($);
        }
        result($) = sum;
#ifdef CLEAR_LATE
        phase($).store(1, ORDER(RELEASE, seq_cst, relaxed));
        arrivals($).store(0, rl::mo_relaxed);
#else
        arrivals($).store(0, rl::mo_relaxed);
        phase($).store(1, ORDER(RELEASE, seq_cst, relaxed));
#endif
        return true;
    }

    void thread(unsigned which) {
        if (arrive(which)) {
            RL_ASSERT(result($) == NODES * (NODES + 1) / 2);
            RL_ASSERT(arrivals($).fetch_add(1, rl::mo_relaxed) < NODES);
        }
    }
};

int main() {
    return check_orders<reduce_line>();
}
