/* SPDX-License-Identifier: MIT */
/*
 * A block that is handed on (csrc/segment/spc_arena.h): its owner, who looks for blocks without pins whenever it needs
 * room, never takes one that somebody uses, whoever passes it to whom meanwhile.
 *
 * One block, of the arena of the owner, and NODES nodes that pass it among themselves: at most MOVES times, to anybody, to
 * the node it came from too. Whoever has it may give it back instead. There is a pin a node, and the counter of moves.
 * All of these are sequentially consistent. The owner reads the counter, the pins one by one, and the counter again. An
 * announcement is a message that only its receiver takes; mailbox_doorbell.pml has that.
 *
 * `users` counts who may read or write the block, and the announcement that is on its way; the assertion says that there
 * are none when the owner takes it.
 *
 * Variants that must fail:
 *   -DNO_COUNTER       fails: the owner looks at the pins only
 *   -DCOUNT_FIRST      fails: the counter is raised before the receiver's pin is set
 *   -DCOUNT_LAST       fails: the counter is raised after the giver's pin is cleared
 *   -DCLEAR_FIRST      fails: the giver's pin is cleared before the receiver's is set
 *   -DANNOUNCE_FIRST   fails: the giver's pin is cleared after the announcement: by then it may have the block again
 */
#define NODES 3
#ifndef MOVES
#ifdef QUICK
#define MOVES 2
#else
#define MOVES 6
#endif
#endif

bool pin[NODES];
byte moves;
byte moved;               /* how often it has been passed on: a bound for this model only */
bool announced[NODES];    /* a message to this node that has the block */
byte users;
bool taken;               /* by the owner: it is over */

inline set_pins(giver, receiver) {
#if defined(COUNT_FIRST)
    moves++;
    pin[receiver] = 1;
    pin[giver] = 0
#elif defined(COUNT_LAST)
    pin[receiver] = 1;
    pin[giver] = 0;
    moves++
#elif defined(CLEAR_FIRST)
    pin[giver] = 0;
    moves++;
    pin[receiver] = 1
#elif defined(ANNOUNCE_FIRST)
    pin[receiver] = 1;
    moves++
#else
    pin[receiver] = 1;
    moves++;
    pin[giver] = 0
#endif
}

inline pass(giver, receiver) {
    moved++;
    set_pins(giver, receiver);
    announced[receiver] = 1;
#ifdef ANNOUNCE_FIRST
    pin[giver] = 0
#endif
}

inline give_back(giver) {
    atomic { users--; pin[giver] = 0 }
}

proctype node(byte me) {
end:
    do
    :: atomic { announced[me] -> announced[me] = 0 };
        if
        :: give_back(me)
        :: moved < MOVES && me != 0 -> pass(me, 0)
        :: moved < MOVES && me != 1 -> pass(me, 1)
        :: moved < MOVES && me != 2 -> pass(me, 2)
        fi
    od
}

proctype owner() {
    byte before, i;
    bool found;
    do
    :: taken -> break
    :: else ->
        before = moves;
        found = 0;
        i = 0;
        do
        :: i == NODES -> break
        :: else -> found = found || pin[i]; i++
        od;
#ifdef NO_COUNTER
        before = moves;
#endif
        if
        :: !found && moves == before ->
            assert(users == 0);
            taken = 1
        :: else
        fi
    od
}

init {
    atomic {
        users = 1;
        pin[0] = 1;
        announced[0] = 1;
        run node(0);
        run node(1);
        run node(2);
        run owner()
    }
}
