/* SPDX-License-Identifier: MIT */
/*
 * The limit of queues (csrc/message/spc_outbox.h, spc_inbox.h): a flooder beside receives that name what they want.
 *
 * A receiver that waits takes in all that comes, and keeps what it does not want. What it keeps of a sender beyond SHARE
 * messages it publishes as `lent`. A sender accepts a message if what waits in its private queue and what is lent to it is
 * less than LIMIT, else its send waits; what it has accepted is announced as soon as the row has room.
 *
 * Node 0 floods: two messages that nobody wants yet, one that is asked for, then as many as are accepted at once, a message
 * of a collective, which needs no leave, and two more. Node 1 sends one message, sooner or later. The receiver
 * asks for that of node 1, for the one of node 0, for that of the collective, and then takes the rest.
 * Everybody sleeps without a time limit, so a message that is never found, and a lost wake-up, is an invalid end state.
 * An assertion says that the receiver keeps no more than share, limit and what fits into a row.
 *
 * Variants that must fail; sleeps: somebody sleeps for ever (an invalid end state)
 *   -DREFUSE         sleeps: a receiver that keeps SHARE messages does not read that row further
 *   -DCOLLECTIVE     sleeps: messages of collectives need leave, too
 *   -DQUEUE_WAITS    sleeps: what has been accepted waits, too, while the limit is reached
 *   -DNO_TELL        sleeps: who takes a message does not tell its sender
 *   -DNO_LEAVE       fails: a sender does not look at what is lent
 */
#define SLOTS 1
#define SHARE 1
#define LIMIT 2
#define BURST 3 /* so many are tried at once */

#define PLAIN 1
#define WANTED 2
#define HIDDEN 3

chan queue[2] = [8] of { byte }; /* private */
chan row[2] = [SLOTS] of { byte };
byte kept[2];   /* by the receiver, PLAIN only: the others are taken when they are seen */
byte lent[2];
bool has_wanted, has_hidden; /* kept, too */
bool is_done[2]; /* all that it sends is in its row */
byte taken;
byte sent;

#define RECEIVER 2
bool rung[3]; /* the word of its event has changed since it was read */
bool sleeping[3], asleep[3];

inline notify(node) {
    atomic {
        if
        :: sleeping[node] -> rung[node] = 1; asleep[node] = 0
        :: else
        fi
    }
}

inline sleep_on(node) {
    atomic {
        if
        :: !rung[node] -> asleep[node] = 1
        :: else
        fi
    }
    !asleep[node];
    sleeping[node] = 0
}

#ifdef NO_LEAVE
#define HAS_LEAVE(s) true
#else
#define HAS_LEAVE(s) (len(queue[s]) + lent[s] < LIMIT)
#endif
#ifdef QUEUE_WAITS
#define MAY_FLUSH(s) (lent[s] < LIMIT)
#else
#define MAY_FLUSH(s) true
#endif

inline flush(s) {
    atomic {
        do
        :: len(queue[s]) > 0 && len(row[s]) < SLOTS && MAY_FLUSH(s) -> queue[s]?kind; row[s]!kind; kind = 0; moved = 1
        :: else -> break
        od;
        if
        :: moved -> moved = 0; notify(RECEIVER)
        :: else
        fi
    }
}

/* Accepts it: 1 in `over`. One step: what matters is what comes before and what after its look at what is lent. */
inline attempt(s, what, needs_leave) {
    atomic {
        flush(s);
        over = 0;
        if
        :: !(needs_leave) || HAS_LEAVE(s) -> queue[s]!what; sent++; over = 1; flush(s)
        :: else
        fi
    }
}

inline send(s, what, needs_leave) {
    do
    :: true ->
        attempt(s, what, needs_leave);
        if
        :: over -> break
        :: else
        fi;
        atomic { rung[s] = 0; sleeping[s] = 1 }
        attempt(s, what, needs_leave);
        if
        :: over -> sleeping[s] = 0; break
        :: else -> sleep_on(s)
        fi
    od
}

/* As at its end. */
inline send_all(s) {
    do
    :: len(queue[s]) == 0 -> break
    :: else ->
        atomic { rung[s] = 0; sleeping[s] = 1 }
        flush(s);
        if
        :: len(queue[s]) == 0 -> sleeping[s] = 0; break
        :: else -> sleep_on(s)
        fi
    od;
    is_done[s] = 1;
    notify(RECEIVER)
}

#ifdef COLLECTIVE
#define LEAVE_OF_COLLECTIVE true
#else
#define LEAVE_OF_COLLECTIVE false
#endif

active proctype flooder() {
    byte count, kind;
    bool over, moved;
    send(0, PLAIN, true);
    send(0, PLAIN, true);
    send(0, WANTED, true);
    do
    :: count < BURST ->
        attempt(0, PLAIN, true);
        if
        :: over -> count++
        :: else -> break
        fi
    :: else -> break
    od;
    count = 0;
    send(0, HIDDEN, LEAVE_OF_COLLECTIVE);
    send(0, PLAIN, true);
    send(0, PLAIN, true);
    send_all(0)
}

active proctype other() {
    byte kind;
    bool over, moved;
    send(1, PLAIN, true);
    send_all(1)
}

inline lend(s) {
    lent[s] = (kept[s] > SHARE -> kept[s] - SHARE : 0)
}

#ifdef REFUSE
#define MAY_READ(s) (kept[s] < SHARE)
#else
#define MAY_READ(s) true
#endif

inline drain(s) {
    atomic {
        do
        :: len(row[s]) > 0 && MAY_READ(s) ->
            row[s]?kind;
            if
            :: kind == PLAIN -> kept[s]++
            :: kind == WANTED -> has_wanted = 1
            :: kind == HIDDEN -> has_hidden = 1
            fi;
            kind = 0;
            lend(s);
            assert(kept[s] <= SHARE + LIMIT + SLOTS);
            notify(s)
        :: else -> break
        od
    }
}

/* Tells it only if less is lent. */
inline take(s) {
    kept[s]--;
    taken++;
    if
    :: kept[s] >= SHARE ->
        lend(s);
#ifndef NO_TELL
        notify(s)
#endif
    :: else
    fi
}

#define HAS_COME ((step == 0 && kept[1] > 0) || (step == 1 && has_wanted) || (step == 2 && has_hidden) \
                  || (step == 3 && (kept[0] > 0 || (is_done[0] && len(row[0]) == 0))))

active proctype receiver() {
    byte step, kind;
    do
    :: step == 4 -> break
    :: else ->
        drain(0);
        drain(1);
        if
        :: HAS_COME ->
            if
            :: step == 0 -> take(1); step++
            :: step == 1 || step == 2 -> taken++; step++
            :: step == 3 && kept[0] > 0 -> take(0)
            :: step == 3 && kept[0] == 0 -> step++
            fi
        :: else ->
            atomic { rung[RECEIVER] = 0; sleeping[RECEIVER] = 1 }
            drain(0);
            drain(1);
            if
            :: HAS_COME -> sleeping[RECEIVER] = 0
            :: else -> sleep_on(RECEIVER)
            fi
        fi
    od;
    assert(taken == sent)
}
