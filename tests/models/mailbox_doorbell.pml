/* SPDX-License-Identifier: MIT */
/*
 * Mailbox and doorbell (csrc/message/spc_mailbox.h): every announced message is received, once and in order,
 * and neither a receiver without messages nor a sender without room sleeps for ever.
 *
 * Two senders, each with a row of SLOTS slots in the mailbox of one receiver. A slot is its sequence number
 * here. The receiver publishes how far it got only every PUBLISH_EVERY slots. Everybody sleeps without a time
 * limit, so a lost wake-up is an invalid end state; assertions say that no slot is overwritten and none is
 * skipped.
 *
 * A slot is written with an ordinary store, which others may see late: it stands in the sender's buffer until
 * the process `memory` lets it out, or until the sequentially consistent fetch_or of the doorbell, which
 * empties the buffer.
 *
 * Variants that must fail; sleeps: somebody sleeps for ever (an invalid end state)
 *   -DSKIP_IF_SET      sleeps: the doorbell is not rung when its bit is seen set already
 *   -DSCAN_FIRST       sleeps: the receiver clears the bits after it has scanned the rows
 *   -DWEAK_DOORBELL    sleeps: the doorbell is an ordinary store too
 *   -DNO_DOORBELL_TEST sleeps: the sleeper looks only at rows that rang before it announced its sleep
 *   -DPUBLISH_EVERY=3  sleeps: the receiver publishes less often than a row is long
 */
#ifdef SKIP_IF_SET
#undef QUICK /* it takes three messages to show */
#endif

#define SENDERS 2
#ifdef QUICK
#define SLOTS 1
#define MESSAGES 2
#else
#define SLOTS 2
#define MESSAGES 3
#endif
#ifndef PUBLISH_EVERY
#define PUBLISH_EVERY SLOTS
#endif

byte slot[4];             /* SENDERS rows of SLOTS */
bool doorbell[SENDERS];   /* bits of one word: read, set and cleared together */
byte consumed[SENDERS];   /* published by the receiver */
byte received[SENDERS];   /* the receiver's own */

byte announced[SENDERS];  /* the sender's own: slots written */
byte visible[SENDERS];    /* how many of them others can see */
bool late_bell[SENDERS];  /* WEAK_DOORBELL: a bit in the sender's buffer, behind the slots */

/* One event a node: senders 0 and 1, receiver 2. */
#define RECEIVER 2
byte word[3];
bool sleeping[3];
bool asleep[3];

inline let_out(s) {
    slot[s * SLOTS + visible[s] % SLOTS] = visible[s] + 1;
    visible[s]++
}

active proctype memory() {
end:
    do
    :: atomic { visible[0] < announced[0] -> let_out(0) }
    :: atomic { visible[1] < announced[1] -> let_out(1) }
    :: atomic { late_bell[0] && visible[0] == announced[0] -> doorbell[0] = 1; late_bell[0] = 0 }
    :: atomic { late_bell[1] && visible[1] == announced[1] -> doorbell[1] = 1; late_bell[1] = 0 }
    od
}

inline notify(node) {
    if
    :: sleeping[node] -> word[node]++; asleep[node] = 0
    :: else
    fi
}

/* The kernel compares and falls asleep in one step, seen from the wakers. */
inline sleep_on(node, seen) {
    atomic {
        if
        :: word[node] == seen -> asleep[node] = 1
        :: else
        fi
    }
    !asleep[node];
    sleeping[node] = 0
}

inline ring(s) {
#if defined(SKIP_IF_SET)
    if
    :: doorbell[s]
    :: else -> atomic {
            do
            :: visible[s] < announced[s] -> let_out(s)
            :: else -> break
            od;
            doorbell[s] = 1
        }
    fi
#elif defined(WEAK_DOORBELL)
    late_bell[s] = 1
#else
    atomic {
        do
        :: visible[s] < announced[s] -> let_out(s)
        :: else -> break
        od;
        doorbell[s] = 1
    }
#endif
}

#define HAS_ROOM(s) (announced[s] - consumed[s] < SLOTS)

inline wait_for_room(s) {
    do
    :: HAS_ROOM(s) -> break
    :: else ->
        seen = word[s];
        sleeping[s] = 1;
        if
        :: HAS_ROOM(s) -> sleeping[s] = 0; break
        :: else
        fi;
        sleep_on(s, seen)
    od
}

proctype sender(byte s) {
    byte seen;
    do
    :: announced[s] == MESSAGES -> break
    :: else ->
        wait_for_room(s);
        assert(announced[s] - received[s] < SLOTS); /* the slot has been read */
        announced[s]++;
        ring(s);
        notify(RECEIVER)
    od
}

/* Reads all of row s that is there. */
inline scan(s) {
    do
    :: slot[s * SLOTS + received[s] % SLOTS] == received[s] + 1 ->
        received[s]++;
        any = 1;
        if
        :: received[s] % PUBLISH_EVERY == 0 -> consumed[s] = received[s]; notify(s)
        :: else
        fi
    :: else ->
        assert(slot[s * SLOTS + received[s] % SLOTS] <= received[s] + 1); /* none overwritten */
        break
    od
}

inline scan_rung() {
    if
    :: rung0 -> scan(0)
    :: else
    fi;
    if
    :: rung1 -> scan(1)
    :: else
    fi
}

/* The test of the receiver's wait: any = 1 if something came. */
inline drain() {
    any = 0;
#ifdef SCAN_FIRST
    atomic { rung0 = doorbell[0]; rung1 = doorbell[1] }
    scan_rung();
    atomic { doorbell[0] = 0; doorbell[1] = 0 }
#else
    atomic { rung0 = doorbell[0]; rung1 = doorbell[1]; doorbell[0] = 0; doorbell[1] = 0 }
    scan_rung()
#endif
}

active proctype receiver() {
    byte seen;
    bool any, rung0, rung1;
    do
    :: received[0] == MESSAGES && received[1] == MESSAGES -> break
    :: else ->
        drain();
        if
        :: any
        :: else ->
            seen = word[RECEIVER];
            sleeping[RECEIVER] = 1;
#ifdef NO_DOORBELL_TEST
            any = 0;
            scan_rung();
#else
            drain();
#endif
            if
            :: any -> sleeping[RECEIVER] = 0
            :: else -> sleep_on(RECEIVER, seen)
            fi
        fi
    od
}

init {
    atomic { run sender(0); run sender(1) }
}
