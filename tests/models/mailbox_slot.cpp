/* SPDX-License-Identifier: MIT */
/*
 * Memory orders of a slot of the mailbox (csrc/message/spc_mailbox.h): a receiver that sees a sequence sees the
 * message, and a sender that sees the slot free overwrites nothing that is still being read.
 *
 * One sender, one receiver, one slot, two messages. Sequence and `consumed` are atomic, the message is plain memory.
 *
 * Variants in which one order is relaxed
 *   -DANNOUNCE  fails: the sequence is not released after the message
 *   -DPEEK      fails: the message is read before the sequence
 *   -DCONSUME   fails: the slot is free before it has been read
 *   -DREFRESH   fails: the slot is written before it is known to be free
 */
#include "orders.hpp"

struct mailbox_slot : rl::test_suite<mailbox_slot, 2> {
    rl::atomic<unsigned> sequence, consumed;
    rl::var<unsigned> message;

    void before() {
        sequence($) = 0;
        consumed($) = 0;
    }

    void announce(unsigned number) {
        message($) = number;
        sequence($).store(number, ORDER(ANNOUNCE, release, relaxed));
    }

    void receive(unsigned number) {
        if (sequence($).load(ORDER(PEEK, acquire, relaxed)) == number) {
            RL_ASSERT(message($) == number);
            consumed($).store(number, ORDER(CONSUME, seq_cst, relaxed));
        }
    }

    void thread(unsigned which) {
        if (which == 0) {
            announce(1);
            if (consumed($).load(ORDER(REFRESH, seq_cst, relaxed)) == 1) {
                announce(2);
            }
        } else {
            receive(1);
            receive(2);
        }
    }
};

int main() {
    return check_orders<mailbox_slot>();
}
