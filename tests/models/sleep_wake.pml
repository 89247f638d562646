/* SPDX-License-Identifier: MIT */
/*
 * Sleeping and waking (csrc/base/spc_wait.c, csrc/segment/spc_event.h): no wake-up is lost.
 *
 * A sleeper waits, again and again, until both wakers have made their condition true once more. Sleeps have
 * no time limit, so a lost wake-up leaves the sleeper asleep for ever, which spin reports as an invalid end
 * state.
 *
 * Spin's memory is sequentially consistent. What is not, here, is modelled by a store that waits in a buffer
 * (`late_…`) until a process of its own lets it out, or until its writer executes a sequentially consistent
 * store, which empties the buffer first. The sleeper's clearing of `sleeping` is such a store in the true
 * protocol: it need not be ordered.
 *
 * Variants that must fail; sleeps: somebody sleeps for ever (an invalid end state)
 *   -DSKIP_RETEST      sleeps: the sleeper does not test again after it has announced itself
 *   -DLATE_READ        sleeps: it reads the word after that test, instead of before
 *   -DWEAK_SLEEPER     sleeps: its announcement is an ordinary store
 *   -DWEAK_WAKER       sleeps: the waker's condition is an ordinary store
 *   -DNO_BUMP          sleeps: the waker wakes without changing the word
 *   -DEARLY_LOOK       sleeps: the waker looks at `sleeping` before it makes the condition true
 */
#define WAKERS 2
#define ROUNDS 2

byte word;
bool sleeping;
byte made[WAKERS];      /* the condition: how often each waker has made it true */
bool asleep;            /* the kernel's list of who sleeps on the word */

bool late_clear;        /* sleeping = 0, in the sleeper's buffer */
bool late_set;          /* sleeping = 1, behind it */
byte late_made[WAKERS]; /* stores of `made` in the waker's buffer */

/* A value that one processor has stored and others do not see yet becomes visible at some time. */
active proctype memory() {
    byte i;
end:
    do
    :: atomic { late_clear -> sleeping = 0; late_clear = 0 }
    :: atomic { late_set && !late_clear -> sleeping = 1; late_set = 0 }
    :: atomic { late_made[0] > 0 -> made[0] = made[0] + late_made[0]; late_made[0] = 0 }
    :: atomic { late_made[1] > 0 -> made[1] = made[1] + late_made[1]; late_made[1] = 0 }
    od
}

inline announce() {
#ifdef WEAK_SLEEPER
    late_set = 1
#else
    atomic { late_clear = 0; sleeping = 1 }
#endif
}

/* A later store of the same processor: what stands in the buffer before it is overtaken by it. */
inline withdraw() {
    atomic { late_set = 0; late_clear = 1 }
}

#define IS_TRUE (made[0] >= round && made[1] >= round)

active proctype sleeper() {
    byte round = 1;
    byte seen;
    do
    :: round > ROUNDS -> break
    :: else ->
        do
        :: IS_TRUE -> break
        :: else ->
#ifndef LATE_READ
            seen = word;
#endif
            announce();
#ifndef SKIP_RETEST
            if
            :: IS_TRUE -> withdraw(); break
            :: else
            fi;
#endif
#ifdef LATE_READ
            seen = word;
#endif
            /* The kernel compares and falls asleep in one step, seen from the wakers. */
            atomic {
                if
                :: word == seen -> asleep = 1
                :: else
                fi
            }
            !asleep;
            withdraw()
        od;
        round++
    od
}

proctype waker(byte i) {
    byte round = 1;
    bool somebody;
    do
    :: round > ROUNDS -> break
    :: else ->
#ifdef EARLY_LOOK
        somebody = sleeping;
#endif
#ifdef WEAK_WAKER
        late_made[i]++;
#else
        made[i]++;
#endif
#ifndef EARLY_LOOK
        somebody = sleeping;
#endif
        if
        :: somebody ->
#ifndef NO_BUMP
            word++;
#endif
            asleep = 0
        :: else
        fi;
        round++
    od
}

init {
    atomic { run waker(0); run waker(1) }
}
