/* SPDX-License-Identifier: MIT */
/*
 * Coordinated messages (csrc/message/spc_coordinated.h, csrc/comm/spc_comm_coordinated.c): three nodes go through CYCLES
 * cycles. In each node one thread receives; `sender` is all other threads of all nodes: it sends SENDS messages at most,
 * whenever it likes, from whomever to whomever: before the first receive of a cycle, within one, where it is refused,
 * and after it, while other nodes are still in there. The outbox may refuse a message. Node 0 may once call a barrier
 * instead, between its cycles: then that phase is a mismatch on all nodes, who enter another one and go on.
 *
 * Messages lie in `flying`, by the parity of the cycle they carry: two numbers are enough to tell cycles apart. What is
 * one hold of the node's lock is atomic: the lock is known to work. So is reading a column: no row that is read can be
 * written meanwhile, as the assertion on its stamp says.
 *
 * Claims: a node that ends a cycle has been handed all that was sent to it in this cycle, and nothing else, and nobody
 * sends to it in this cycle any more (assertions); nobody is more than one cycle ahead of another (an assertion); no row
 * is overwritten before its last reader, two halves being enough (an assertion); nobody waits for ever (no invalid end
 * state), and nothing is left at the end (assertions).
 *
 * Variants that must fail, with an invalid end state (sleeps) or an assertion (fails):
 *   -DBREAK_LOCK      fails: the row is raised after the message was announced, in another hold of the lock
 *   -DBREAK_UNDO      sleeps: a message that the outbox refused stays in the row
 *   -DBREAK_CLOSE     fails: sending goes on after the row was published
 *   -DBREAK_ROW       fails: the row is published after the phase was entered
 *   -DBREAK_EARLY     fails: rows are added up before the phase is complete
 *   -DBREAK_HALVES    fails: there is one half, not two
 *   -DBREAK_NUMBER    sleeps: messages carry no cycle number, and are handed over in any
 *   -DBREAK_MISMATCH  fails: a phase that was a mismatch is taken for a complete one
 *   -DBREAK_AGAIN     sleeps: after a mismatch no other phase is entered
 */
#define NODES 3
#define CYCLES 3
#ifdef QUICK
#define SENDS 1
#else
#define SENDS 2
#endif
#define PHASES 5 /* one for each cycle, one for the mismatch; from 1 */

#ifdef BREAK_HALVES
#define HALF(c) 0
#else
#define HALF(c) ((c) % 2)
#endif

#define PAIR(s, d) (s) * NODES + (d)
#define SLOT(c, s, d) ((c) % 2) * NODES * NODES + PAIR(s, d)

byte flying[2 * NODES * NODES]; /* announced, not handed over */
byte cycle[NODES];
bool published[NODES];
byte row[NODES * NODES];
byte shared_row[2 * NODES * NODES];
byte stamp[2 * NODES];
byte arrivals[PHASES];
bool mismatch[PHASES];

#define SHARED(c, s, d) HALF(c) * NODES * NODES + PAIR(s, d)

inline announce() {
    assert(cycle[me] == cycle[to] || cycle[me] == cycle[to] + 1);
    flying[SLOT(cycle[me], me, to)]++
}

inline send() {
#ifdef BREAK_LOCK
    atomic {
        if
        :: published[me] || cycle[me] == CYCLES -> raise = 0
        :: else -> announce(); raise = 1
        fi
    }
    if
    :: raise -> row[PAIR(me, to)]++
    :: else
    fi
#else
    atomic {
        if
#ifdef BREAK_CLOSE
        :: cycle[me] == CYCLES
#else
        :: published[me] || cycle[me] == CYCLES /* CycleError; or the test is over */
#endif
        :: else ->
            row[PAIR(me, to)]++;
            if
            :: announce()
#ifdef BREAK_UNDO
            :: true
#else
            :: row[PAIR(me, to)]-- /* refused */
#endif
            fi
        fi
    }
#endif
}

active proctype sender() {
    byte left = SENDS;
    byte me, to;
    bool raise;
    do
    :: atomic {
        left > 0 ->
            left--;
            if
            :: me = 0
            :: me = 1
            :: me = 2
            fi;
            if
            :: to = 0
            :: to = 1
            :: to = 2
            fi
    }
    send()
    :: break
    od
}

inline publish() {
    d_step {
        shared_row[SHARED(cycle[me], me, 0)] = row[PAIR(me, 0)];
        shared_row[SHARED(cycle[me], me, 1)] = row[PAIR(me, 1)];
        shared_row[SHARED(cycle[me], me, 2)] = row[PAIR(me, 2)];
        stamp[HALF(cycle[me]) * NODES + me] = cycle[me] + 1
    }
}

inline enter(wrong) {
    atomic {
        phase++;
        if
        :: wrong -> mismatch[phase] = 1
        :: else
        fi;
        arrivals[phase]++
    }
}

#ifdef BREAK_EARLY
#define COMPLETE true
#else
#define COMPLETE (arrivals[phase] == NODES)
#endif

#ifdef BREAK_NUMBER
#define THERE(s) (flying[PAIR(s, me)] + flying[NODES * NODES + PAIR(s, me)] > 0)
#else
#define THERE(s) (flying[SLOT(cycle[me], s, me)] > 0)
#endif
#define NOTHING_THERE (!THERE(0) && !THERE(1) && !THERE(2))

inline take(s) {
#ifdef BREAK_NUMBER
    if
    :: flying[SLOT(cycle[me], s, me)] > 0 -> flying[SLOT(cycle[me], s, me)]--
    :: else -> flying[SLOT(cycle[me] + 1, s, me)]--
    fi;
#else
    flying[SLOT(cycle[me], s, me)]--;
#endif
    handed++
}

inline count() {
    d_step {
#ifndef BREAK_EARLY
        assert(stamp[HALF(cycle[me]) * NODES] == cycle[me] + 1);
        assert(stamp[HALF(cycle[me]) * NODES + 1] == cycle[me] + 1);
        assert(stamp[HALF(cycle[me]) * NODES + 2] == cycle[me] + 1);
#endif
        expected = shared_row[SHARED(cycle[me], 0, me)] + shared_row[SHARED(cycle[me], 1, me)] +
                   shared_row[SHARED(cycle[me], 2, me)];
        counted = 1;
        assert(handed <= expected)
    }
}

/* The cycle is over for this node: all of it is here. In one hold of the lock. */
inline next() {
    atomic {
        assert(flying[SLOT(cycle[me], 0, me)] + flying[SLOT(cycle[me], 1, me)] + flying[SLOT(cycle[me], 2, me)] == 0);
        row[PAIR(me, 0)] = 0;
        row[PAIR(me, 1)] = 0;
        row[PAIR(me, 2)] = 0;
        published[me] = 0;
        cycle[me]++;
        handed = 0;
        expected = 0;
        counted = 0
    }
}

proctype receiver(byte me) {
    byte phase, handed, expected;
    bool counted;
    bool may_err = (me == 0);
    do
    :: cycle[me] == CYCLES -> break
    :: cycle[me] < CYCLES && may_err && row[PAIR(me, 0)] + row[PAIR(me, 1)] + row[PAIR(me, 2)] == 0 ->
        may_err = 0;
        enter(true);
        arrivals[phase] == NODES
    :: cycle[me] < CYCLES ->
        published[me] = 1;
#ifdef BREAK_ROW
        enter(false);
        publish();
#else
        publish();
        enter(false);
#endif
        do
        :: atomic { THERE(0) -> take(0) }
        :: atomic { THERE(1) -> take(1) }
        :: atomic { THERE(2) -> take(2) }
        :: NOTHING_THERE && COMPLETE && !counted ->
            if
#ifndef BREAK_MISMATCH
            :: mismatch[phase] ->
#ifdef BREAK_AGAIN
                false
#else
                enter(false)
#endif
            :: else -> count()
#else
            :: true -> count()
#endif
            fi
        :: counted && handed == expected -> next(); break
        od
    od
}

init {
    byte i = 0;
    atomic {
        do
        :: i < NODES -> run receiver(i); i++
        :: else -> break
        od
    }
    cycle[0] == CYCLES && cycle[1] == CYCLES && cycle[2] == CYCLES;
    i = 0;
    do
    :: i < 2 * NODES * NODES -> assert(flying[i] == 0); i++
    :: else -> break
    od
}
