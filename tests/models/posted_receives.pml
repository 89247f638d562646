/* SPDX-License-Identifier: MIT */
/*
 * Posted receives claim messages in the order of posting (csrc/comm/spc_request.c, csrc/node/spc_node.h).
 *
 * A sender writes three messages, which match every receive. Thread A of their receiver posts two receives, may cancel
 * the first one, and then calls a receive that waits; afterwards it waits for both, and receives once more if it has
 * cancelled one. Thread B waits for something else meanwhile: either thread may be the leader, which sleeps on the
 * node's event; the other one is a follower, which sleeps until the leader hands over or says that something was stored.
 * The node's lock orders the threads; the sender writes between any two steps of them.
 *
 * Assertions: the receives have the messages in the order in which they were posted or called, a cancelled one has none,
 * and no message is lost. A thread that nobody wakes is an invalid end state.
 *
 * Variants that must fail; sleeps: a thread sleeps for ever
 *   -DTAKE_FROM_ROW   fails: after the claim, a receive that waits looks into the row, too
 *   -DEACH_LOOKS      fails: each posted receive in turn looks into the row, instead of each arrival at the receives
 *   -DROW_FIRST       fails: arrivals are claimed before messages of the queue
 *   -DNO_CLAIM        fails: a receive that waits does not let the posted ones claim first
 *   -DCANCEL_BESIDE   sleeps: a cancel looks without the lock whether its receive is still posted
 *   -DSILENT          sleeps: the leader does not tell followers that something was stored
 *   -DNO_HANDOVER     sleeps: a leader that leaves does not wake a follower
 */
#define MESSAGES 3
#define A 0
#define B 1
#define NOBODY 2
#define CALLED 2 /* in place of a posted receive: the one that waits */

chan row = [2] of { byte };
chan queue = [MESSAGES] of { byte };
chan posted = [2] of { byte };

byte got[3]; /* by receive: its message; 0: none yet */
byte again;  /* the message of the last receive */
bool is_cancelled, was_posted, is_over; /* is_over: what thread B waits for */

bool is_locked, news;
byte leader = NOBODY;
byte handover; /* modulo 4 */
bool sleeping, rung; /* the node's event */

#define LOCK atomic { !is_locked -> is_locked = 1 }

inline unlock() {
    atomic {
        if
        :: news ->
#ifndef SILENT
            handover = (handover + 1) % 4;
#endif
            news = 0
        :: else
        fi;
        is_locked = 0
    }
}

inline notify() {
    atomic {
        if
        :: sleeping -> rung = 1
        :: else
        fi
    }
}

/* One message at a time: others may be written meanwhile. */
inline drain() {
    do
    :: atomic { len(row) > 0 -> row?message; queue!message; message = 0; news = 1 }
    :: atomic { len(row) == 0 -> break }
    od
}

/* Of the queue, each posted receive in turn. */
inline claim_queued() {
    atomic {
        do
        :: len(posted) > 0 && len(queue) > 0 -> posted?request; queue?got[request]; news = 1
        :: len(posted) == 0 || len(queue) == 0 -> break
        od;
        request = 0
    }
}

#ifdef EACH_LOOKS
/* Each posted receive in turn looks into the row. */
inline claim_arrivals() {
    count = len(posted);
    do
    :: atomic {
           count > 0 ->
           posted?request;
           if
           :: len(row) > 0 -> row?got[request]; news = 1
           :: len(row) == 0 -> posted!request
           fi;
           request = 0;
           count--
       }
    :: atomic { count == 0 -> break }
    od
}
#else
/* Each arrival goes to the first posted receive. */
inline claim_arrivals() {
    do
    :: atomic { len(posted) > 0 && len(row) > 0 -> posted?request; row?got[request]; request = 0; news = 1 }
    :: atomic { len(posted) == 0 || len(row) == 0 -> break }
    od
}
#endif

inline claim() {
#ifdef ROW_FIRST
    claim_arrivals();
    claim_queued()
#else
    claim_queued();
    claim_arrivals()
#endif
}

/* Into `found`; 0: nothing there. */
inline take() {
    LOCK;
    if
    :: len(posted) > 0 ->
        drain();
#ifndef NO_CLAIM
        claim();
#endif
        atomic {
            if
            :: len(queue) > 0 -> queue?found
#ifdef TAKE_FROM_ROW
            :: len(queue) == 0 && len(row) > 0 -> row?found
            :: len(queue) == 0 && len(row) == 0
#else
            :: len(queue) == 0
#endif
            fi
        }
    :: len(posted) == 0 ->
        atomic {
            if
            :: len(queue) > 0 -> queue?found
            :: len(queue) == 0 && len(row) > 0 -> row?found
            :: len(queue) == 0 && len(row) == 0
            fi
        }
    fi;
    unlock()
}

inline progress() {
    LOCK;
    drain();
    if
    :: len(posted) > 0 -> claim()
    :: len(posted) == 0
    fi;
    unlock()
}

#define FOR_MESSAGE 0
#define FOR_REQUESTS 1
#define FOR_END 2

inline test(what) {
    is_met = 0;
    if
    :: what == FOR_MESSAGE -> take(); is_met = found != 0
    :: what == FOR_REQUESTS -> progress(); is_met = (is_cancelled || got[0] != 0) && got[1] != 0
    :: what == FOR_END -> progress(); is_met = is_over
    fi
}

inline lead(what) {
    atomic { sleeping = 1; rung = 0 }
    test(what);
    if
    :: is_met
    :: !is_met -> rung
    fi;
    sleeping = 0
}

inline follow(me, what) {
    seen = handover;
    test(what);
    if
    :: is_met
    :: !is_met -> handover != seen || leader == NOBODY
    fi;
    seen = 0
}

inline stop_leading(me) {
    atomic {
        if
        :: leader == me ->
#ifdef NO_HANDOVER
            leader = me
#else
            leader = NOBODY; handover = (handover + 1) % 4
#endif
        :: else
        fi
    }
}

inline wait_for(me, what) {
    test(what);
    do
    :: is_met -> break
    :: !is_met ->
        atomic {
            if
            :: leader == NOBODY -> leader = me
            :: else
            fi
        }
        if
        :: leader == me -> lead(what)
        :: leader != me -> follow(me, what)
        fi
    od;
    stop_leading(me);
    is_met = 0
}

inline post(number) {
    LOCK;
    posted!number;
    unlock()
}

/* Of the first one: by a claim it may be done already. */
inline cancel() {
#ifdef CANCEL_BESIDE
    was_posted = got[0] == 0;
#endif
    LOCK;
    claim();
#ifndef CANCEL_BESIDE
    was_posted = got[0] == 0;
#endif
    atomic {
        if
        :: was_posted && posted?[0] -> posted?0 /* the list's head: it was posted first */
        :: else
        fi;
        is_cancelled = was_posted
    }
    unlock()
}

active proctype sender() {
    byte next = 1;
    do
    :: next <= MESSAGES -> row!next; notify(); next++
    :: next > MESSAGES -> break
    od
}

active proctype thread_a() {
    byte message, request, count, found, seen;
    bool is_met;
    post(0);
    post(1);
    if
    :: cancel()
    :: skip
    fi;
    wait_for(A, FOR_MESSAGE);
    got[CALLED] = found;
    found = 0;
    wait_for(A, FOR_REQUESTS);
    if
    :: is_cancelled -> wait_for(A, FOR_MESSAGE); again = found
    :: else
    fi;
    assert(is_cancelled == (got[0] == 0));
    assert(got[0] < got[1] && got[1] < got[CALLED]);
    assert(got[0] + got[1] + got[CALLED] + again == 1 + 2 + 3);
    LOCK;
    is_over = 1;
    news = 1;
    unlock();
    notify()
}

active proctype thread_b() {
    byte message, request, count, found, seen;
    bool is_met;
    wait_for(B, FOR_END)
}
