/* SPDX-License-Identifier: MIT */
/*
 * A block that is handed on (csrc/segment/spc_arena.h): its owner, who looks for blocks without pins whenever it needs
 * room, never takes one that somebody uses, whoever passes it to whom meanwhile.
 *
 * One block, of the arena of the owner, which writes it and sends it, to one node or to several, itself among them or
 * not. Then NODES nodes pass it among themselves: at most MOVES times, to anybody, to the node it came from too. Who got
 * it as one of several may do so once it finds the pins of all others cleared. Whoever has it may give it back instead.
 * There is a pin a node, and the counter of moves. All of these are sequentially consistent. The owner sends before it
 * looks (both under one lock); it reads the counter, the pins one by one, and the counter again. An announcement is a
 * message that only its receiver takes; mailbox_doorbell.pml has that.
 *
 * A node may be killed at any step; it may have reported its failure before that, while it still ran. The launcher then
 * publishes two words: `ended` wakes the survivors, and `gone` voids the pins of the dead. A survivor that accounts for
 * the pins first waits for `gone`. Of a node that reported nothing, `gone` is there as soon as its end is known.
 *
 * `users` counts who may read or write the block, and the announcements that are on their way, to nodes that live. The
 * assertions say that there are none when the owner takes the block, and only one where a node takes it for its own.
 *
 * Variants that must fail:
 *   -DNO_COUNTER       fails: the owner looks at the pins only
 *   -DCOUNT_FIRST      fails: the counter is raised before the receiver's pin is set
 *   -DCOUNT_LAST       fails: the counter is raised after the giver's pin is cleared
 *   -DCLEAR_FIRST      fails: the giver's pin is cleared before the receiver's is set
 *   -DANNOUNCE_FIRST   fails: the giver's pin is cleared after the announcement: by then it may have the block again
 *   -DRELEASE_LAST     fails: so is the pin that the owner has while it writes and sends the block
 *   -DPIN_ONE_BY_ONE   fails: of several receivers one may find itself alone before the next one is told
 *   -DREPORTED_IS_GONE fails: a node that reports its failure counts as gone, though its process still runs
 *   -DWAKE_FIRST       fails: survivors hear of the end of a process before its pins are void
 *   -DCOUNT_AT_ONCE    fails: a survivor accounts for the pins of a node whose failure was reported while it runs
 */
#define NODES 3
#ifndef MOVES
#ifdef QUICK
#define MOVES 2
#else
#define MOVES 5
#endif
#endif

bool pin[NODES];
byte moves;
byte moved;               /* how often it has been passed on: a bound for this model only */
byte announced[NODES];    /* a message to this node that has the block: to it ALONE, or to others, too */
#define ALONE 1
#define SHARED 2
bool uses[NODES];         /* this node may use the block, or will be told of it */
bool passing;             /* `from` has done with the block and will announce it to `to`, unless it dies */
byte from, to;
byte victim = NODES;      /* who is killed; NODES: nobody */
bool dead, reported;      /* its process is no more; it has reported its failure */
bool ended, gone;         /* in its line of the status */
#define lives(i) (!dead || victim != i)
#define users ((uses[0] && lives(0)) + (uses[1] && lives(1)) + (uses[2] && lives(2)) + \
               (passing && lives(from) && lives(to)))
#define pinned(i) (pin[i] && !(gone && victim == i))
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
    atomic { moved++; uses[giver] = 0; passing = 1; from = giver; to = receiver };
    set_pins(giver, receiver);
    atomic { announced[receiver] = ALONE; uses[receiver] = 1; passing = 0; from = 0; to = 0 }
#ifdef ANNOUNCE_FIRST
    pin[giver] = 0
#endif
}

inline give_back(giver) {
    atomic { uses[giver] = 0; pin[giver] = 0 }
}

inline look_for_others(me) {
    i = 0;
    sole = 1;
    do
    :: i == NODES -> break
    :: else -> sole = sole && (i == me || !pin[i]); i++
    od;
    i = 0
}

proctype node(byte me) {
    byte i;
    bool sole;
    {
end:
    do
    :: atomic { announced[me] != 0 -> sole = (announced[me] == ALONE); announced[me] = 0 };
        if
        :: !sole -> look_for_others(me)
        :: else
        fi;
        assert(!sole || users == 1);
        if
        :: give_back(me)
        :: sole && moved < MOVES && me != 0 -> pass(me, 0)
        :: sole && moved < MOVES && me != 1 -> pass(me, 1)
        :: sole && moved < MOVES && me != 2 -> pass(me, 2)
        fi;
        sole = 0
    od
    } unless { dead && victim == me }
}

proctype launcher() {
    if
    :: atomic { reported = 1; ended = 1 }
#ifdef REPORTED_IS_GONE
        gone = 1
#endif
    :: skip
    fi;
    dead = 1;
#ifndef WAKE_FIRST
    gone = 1;
#endif
    ended = 1;
    gone = 1
}

proctype survivor() {
end:
    atomic {
        ended -> assert(reported || gone);
#ifndef COUNT_AT_ONCE
        gone;
#endif
        assert(!pinned(victim))
    }
}

/* `first` and `second` may be the same node; the owner is node 0. */
inline send(first, second) {
    atomic { uses[first] = 1; uses[second] = 1 };
    pin[first] = 1;
#ifndef PIN_ONE_BY_ONE
    pin[second] = 1;
#endif
#ifndef RELEASE_LAST
    if
    :: first != 0 && second != 0 -> pin[0] = 0
    :: else
    fi;
#endif
    announced[first] = (first == second -> ALONE : SHARED);
    if
    :: first == second
    :: else ->
#ifdef PIN_ONE_BY_ONE
        pin[second] = 1;
#endif
        announced[second] = SHARED
    fi;
#ifdef RELEASE_LAST
    if
    :: first != 0 && second != 0 -> pin[0] = 0
    :: else
    fi;
#endif
}

proctype owner() {
    byte before, i;
    bool found;
    pin[0] = 1;
    if
    :: send(1, 1)
    :: send(1, 2)
    :: send(1, 0)
    :: send(0, 1)
    fi;
    do
    :: taken -> break
    :: else ->
        before = moves;
        do
        :: i == NODES -> break
        :: else -> atomic { found = found || pinned(i); i++ }
        od;
#ifdef NO_COUNTER
        before = moves;
#endif
        if
        :: !found && moves == before ->
            assert(users == 0);
            taken = 1
        :: else
        fi;
        atomic { before = 0; found = 0; i = 0 }
    od
}

init {
    atomic {
        run node(0);
        run node(1);
        run node(2);
        run owner();
        run survivor();
        if
        :: victim = 1; run launcher()
#ifndef QUICK
        :: victim = 2; run launcher()
#endif
        :: skip
        fi
    }
}
