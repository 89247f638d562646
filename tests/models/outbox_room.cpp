/* SPDX-License-Identifier: MIT */
/*
 * Memory orders of a sender whose outbox waits for room (csrc/message/spc_outbox.c, csrc/base/spc_wait.c): it does not
 * sleep while the row is free and its receiver believes it awake, and the message that it had queued comes whole.
 *
 * The row of one slot is full. The receiver reads it, frees it and looks whether the sender sleeps; the sender
 * announces its sleep and looks once more whether the row is free. At least one of them sees what the other has done.
 *
 * Variants in which one of the four is not in the one order of all sequentially consistent operations
 *   -DCONSUME   fails: the store that frees the slot, which is only a release
 *   -DNOTIFY    fails: the load of `sleeping`
 *   -DSLEEPING  fails: the store of `sleeping`
 *   -DTEST      fails: the second test, which is only an acquire
 */
#include "orders.hpp"

struct outbox_room : rl::test_suite<outbox_room, 2> {
    rl::atomic<unsigned> consumed, sleeping;
    rl::var<unsigned> slot;
    bool sleeps, is_woken;

    void before() {
        consumed($) = 0;
        sleeping($) = 0;
        slot($) = 1;
        sleeps = is_woken = false;
    }

    void thread(unsigned which) {
        if (which == 0) {
            sleeping($).store(1, ORDER(SLEEPING, seq_cst, relaxed));
            if (consumed($).load(ORDER(TEST, seq_cst, acquire)) == 1) {
                slot($) = 2;
            } else {
                sleeps = true;
            }
        } else {
            RL_ASSERT(slot($) == 1);
            consumed($).store(1, ORDER(CONSUME, seq_cst, release));
            is_woken = sleeping($).load(ORDER(NOTIFY, seq_cst, relaxed)) == 1;
        }
    }

    void after() {
        RL_ASSERT(!sleeps || is_woken);
    }
};

int main() {
    return check_orders<outbox_room>();
}
