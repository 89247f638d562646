/* SPDX-License-Identifier: MIT */
/*
 * The phases of csrc/reduce/spc_reduce.c: three nodes in groups of two, so that node 2 climbs alone and two arrive at
 * the top.
 *
 *        top            Arrivals at a counter are added atomically. The last to arrive at a group clears its
 *       /   \           counter, combines the group's lines into the first one, and climbs. The last at the top
 *     g0     g1         writes the result, and then the release.
 *    /  \     |
 *   0    1    2
 *
 * In each phase a node either waits at once (a barrier, a reduction, a gather: it also reads the others' lines), or
 * leaves the phase open and goes on (a fuzzy barrier), at most FUZZY of them. Banks are used again BANKS phases later.
 * Nodes may differ in this: the reducer does not know the difference.
 *
 * Claims: nobody gets a result without everybody's value of just that phase (assertions); no outcome or line is
 * overwritten before its last reader (assertions); nobody waits for ever (no invalid end state).
 * SPC_BANKS = 16 and SPC_FUZZY_MAX = 8 are safe because 3 and 1 are: BANKS >= FUZZY + 2 is what it takes.
 *
 * Variants that must fail, with an invalid end state (sleeps) or an assertion (fails):
 *   -DBREAK_ADD     sleeps: an arrival is a load and a store, so one may be lost
 *   -DBREAK_CLEAR   sleeps: counters are not cleared, so the bank's second use never ends
 *   -DBREAK_CLIMB   fails: the first to arrive climbs, before everybody's value is there
 *   -DBREAK_BANKS   fails: one bank less, so a line is overwritten while a slower node reads it
 *   -DBREAK_SETTLE  fails: the outcome of an open phase is not kept before its bank is used again
 */
#define NODES 3
#define PHASES 5
#define FUZZY 1
#ifdef BREAK_BANKS
#define BANKS 2
#else
#define BANKS 3
#endif

#define LINE(p, r) ((p) % BANKS) * NODES + (r)
#define GROUP(p, g) ((p) % BANKS) * 2 + (g)
#define MEMBERS(g) (2 - (g))
#define CONTRIBUTION(p, r) ((1 << (r)) + ((r) == 0 -> 8 * (p) : 0))
#define TOTAL(p) (7 + 8 * (p))

byte line_phase[BANKS * NODES];
byte line_value[BANKS * NODES];
byte group_arrivals[BANKS * 2];
byte top_arrivals[BANKS];
byte release_phase[BANKS];
byte release_value[BANKS];

/* before = counter++ */
inline add(counter) {
#ifdef BREAK_ADD
    before = counter;
    counter = before + 1;
#else
    d_step { before = counter; counter = before + 1 }
#endif
}

#ifdef BREAK_CLIMB
#define IS_LAST(members) (before == 0)
#else
#define IS_LAST(members) (before + 1 == (members))
#endif

#ifdef BREAK_CLEAR
#define CLEAR(counter) skip
#else
#define CLEAR(counter) counter = 0
#endif

inline start(p) {
    line_value[LINE(p, rank)] = CONTRIBUTION(p, rank);
    line_phase[LINE(p, rank)] = p;
    add(group_arrivals[GROUP(p, rank / 2)]);
    if
    :: IS_LAST(MEMBERS(rank / 2)) ->
        CLEAR(group_arrivals[GROUP(p, rank / 2)]);
        if
        :: rank / 2 == 0 ->
            assert(line_phase[LINE(p, 0)] == p && line_phase[LINE(p, 1)] == p);
            line_value[LINE(p, 0)] = line_value[LINE(p, 0)] + line_value[LINE(p, 1)]
        :: else -> skip
        fi;
        add(top_arrivals[p % BANKS]);
        if
        :: IS_LAST(2) ->
            CLEAR(top_arrivals[p % BANKS]);
            assert(line_phase[LINE(p, 0)] == p && line_phase[LINE(p, 2)] == p);
            release_value[p % BANKS] = line_value[LINE(p, 0)] + line_value[LINE(p, 2)];
            release_phase[p % BANKS] = p
        :: else -> skip
        fi
    :: else -> skip
    fi;
    before = 0
}

#define COMPLETE(p) (release_phase[(p) % BANKS] >= (p))

/* The outcome that a node takes with it must still be that of this phase. */
inline finish(p) {
    assert(release_phase[p % BANKS] == p);
    assert(release_value[p % BANKS] == TOTAL(p))
}

proctype node(byte rank) {
    byte phase = 1;
    byte open = 0; /* the phase that was left open */
    byte before = 0;
    byte other = 0;
    do
    :: phase > PHASES -> break
    :: else ->
#ifndef BREAK_SETTLE
        if
        :: open != 0 && COMPLETE(open) -> finish(open); open = 0
        :: else -> skip
        fi;
#endif
        start(phase);
        if
        :: open == 0 -> open = phase
        :: COMPLETE(phase) ->
            finish(phase);
            do
            :: other < NODES -> assert(line_phase[LINE(phase, other)] == phase); other++
            :: else -> break
            od;
            other = 0
        fi;
        phase++
    od;
    if
    :: open != 0 -> COMPLETE(open); finish(open)
    :: else -> skip
    fi
}

init {
    atomic {
        byte i = 0;
        do
        :: i < NODES -> run node(i); i++
        :: else -> break
        od
    }
}
