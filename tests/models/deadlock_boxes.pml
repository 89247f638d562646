/* SPDX-License-Identifier: MIT */
/*
 * Proving a deadlock over several boxes (csrc/net/gateway/spc_gateway_deadlock.c): one round of the gateways.
 *
 * Two nodes, each in a box of its own, do a few things, any: send a message to the other, or receive from it; then they
 * end, sooner or later. A message lies in its sender's row until the gateway there sends it on, which with -DCREDIT may
 * take a while, and with -DROOM in the gateway of its receiver until the receiver's row has room; no node ends there. A
 * node that waits sleeps until it is notified, of a message or an end, and wakes some time later. Frames keep their
 * order. The end of a node is a frame, too, behind its messages; a node that waits for one whose end its box knows
 * fails, and goes on. tests/models/deadlock.pml has the details of a sleep and of a look within one box; here both are
 * one step.
 *
 * A round begins at any time. In each box, whenever it gets to it: the gateway reads the boards of its nodes; sends on
 * what it can, and sends a mark to the other box; when the other one's mark has come, it reads the boards again, and
 * reports the nodes whose boards are the same, and whose ends its nodes know of. From all reports the judge marks the
 * nodes that are left when those that are able have been struck out.
 *
 * Claims: no marked node ever comes out of its wait (an assertion). And when nothing moves any more, a round marks all
 * nodes that sleep (an assertion).
 *
 * Variants
 *   -DCREDIT         holds: a gateway may have no credit for a while
 *   -DROOM           holds: a gateway may have to wait for room in a row
 *   -DBREAK_ONCE     fails: one reading counts, without marks
 *   -DBREAK_MARK     fails: the second reading does not wait for the marks
 *   -DBREAK_FIRST    fails: the second reading counts alone
 *   -DBREAK_BOARD    fails: a node that slept at both readings counts, whether or not that is the same sleep
 *   -DBREAK_ORDER    fails: the mark is sent before what the nodes have left behind
 *   -DBREAK_CREDIT   fails: what waits for credit does not count as queued
 *   -DBREAK_ROOM     fails: what waits for room in the receiver's row does not, either
 *   -DBREAK_NOTICE   fails: a node counts that was notified, and has not looked
 *   -DBREAK_TOLD     fails: an end counts as soon as one box knows of it
 */
#define NODES 2
#define BOXES 2
#define BOX(n) (n)
#if defined(BREAK_CREDIT)
#define CREDIT
#elif defined(BREAK_ROOM)
#define ROOM
#endif
#if !defined(CREDIT) && !defined(ROOM)
#define ENDS
#endif
#if defined(QUICK) && !defined(BREAK_BOARD)
#define ACTS(n) 2
#else
#define ACTS(n) ((n) == 0 -> 3 : 2)
#endif

#define OTHER(n) (1 - (n))
#define PAIR(s, d) ((s) * NODES + (d))
#define ROUTE(b, c) ((b) * BOXES + (c))
#define AT(b, n) ((b) * NODES + (n))

/* Frames: a message of a pair, the end of a node, or */
#define END(n) (NODES * NODES + (n))
#define MARK (NODES * NODES + NODES)
chan route[BOXES * BOXES] = [6] of { byte };

byte left[NODES * NODES];   /* by pair: in the sender's row, for its gateway */
byte held[NODES * NODES];   /* with the receiver's gateway */
byte come[NODES * NODES];   /* in the receiver's row */
bool ended[NODES];
bool known[BOXES * NODES];  /* in this box: the end of that node */
bool asleep[NODES];
bool rung[NODES];           /* notified since its last test */
byte wait_number[NODES];

byte stage[BOXES];          /* of the round: 0: not asked */
byte marks[BOXES];          /* come in this round */
bool first[NODES];          /* slept at the first reading */
byte first_number[NODES];
bool pending[NODES];        /* has left something behind when the mark was sent */
bool claimed[NODES];        /* reported: the same at both */
bool queued[NODES];         /* reported: something of this node is on its way */
byte told[NODES];           /* boxes that have reported its end as known */
bool marked[NODES];
bool patient;               /* nothing moves any more, and there is credit and room for all */

#define IS_HERE(b, n) (BOX(n) == (b))
#define HAS(d) (come[PAIR(OTHER(d), d)] > 0)
#define DOOMED(d) known[AT(BOX(d), OTHER(d))]

#ifdef CREDIT
#define MAY_LACK_CREDIT !patient
#else
#define MAY_LACK_CREDIT false
#endif
#ifdef ROOM
#define MAY_LACK_ROOM !patient
#else
#define MAY_LACK_ROOM false
#endif

inline put(s, d) {
    come[PAIR(s, d)]++;
    rung[d] = 1
}

inline take() {
    if
    :: HAS(me) -> come[PAIR(OTHER(me), me)]--
    :: else /* it has failed */
    fi
}

/* A message that has come counts more than an end. */
inline receive() {
    do
    :: atomic {
        HAS(me) || DOOMED(me) ->
        assert(!marked[me]);
        take();
        break
       }
    :: atomic {
        !HAS(me) && !DOOMED(me) ->
        rung[me] = 0;
        wait_number[me]++;
        asleep[me] = 1
       }
end_asleep:
        atomic { rung[me] -> asleep[me] = 0 }
    od
}

proctype node(byte me) {
    byte acts;
    do
    :: acts < ACTS(me) ->
        acts++;
        if
        :: left[PAIR(me, OTHER(me))]++
        :: receive()
        fi
    :: break
    od;
#ifdef ENDS
    atomic { acts = 0; ended[me] = 1 }
#else
    skip
#endif
}

/* ---- gateways */

inline tell_end(b, n) {
    known[AT(b, n)] = 1;
    rung[b] = 1
}

inline send_end(n) {
    route[ROUTE(box, 1 - box)]!END(n)
}

inline send_on(s, d) {
    if
    :: IS_HERE(box, s) && left[PAIR(s, d)] > 0 -> left[PAIR(s, d)]--; route[ROUTE(box, BOX(d))]!PAIR(s, d)
    :: else
    fi
}

#define LEFT(s) (left[PAIR(s, OTHER(s))] > 0)
#define IS_NEWS(n) (IS_HERE(box, n) && ended[n] && !known[AT(box, n)] && !LEFT(n))

/* Everything, or nothing for want of credit; each of at most two messages. */
inline send_row(s, d) {
    if
    :: send_on(s, d); send_on(s, d)
    :: MAY_LACK_CREDIT && IS_HERE(box, s) && left[PAIR(s, d)] > 0
    fi
}

inline send_all(s) {
    send_row(s, OTHER(s));
    if
    :: IS_NEWS(s) -> tell_end(box, s); send_end(s)
    :: else
    fi
}

#ifdef BREAK_NOTICE
#define SLEEPS(n) (asleep[n])
#else
#define SLEEPS(n) (asleep[n] && !rung[n])
#endif

inline read_first(n) {
    if
    :: IS_HERE(box, n) -> first[n] = SLEEPS(n); first_number[n] = wait_number[n]
    :: else
    fi
}

#if defined(BREAK_FIRST) || defined(BREAK_ONCE)
#define IS_SAME(n) true
#elif defined(BREAK_BOARD)
#define IS_SAME(n) first[n]
#else
#define IS_SAME(n) (first[n] && first_number[n] == wait_number[n])
#endif

#define IS_HELD_FOR(s, d) (held[PAIR(s, d)] > 0 && IS_HERE(box, d))

inline report(n) {
    if
    :: IS_HERE(box, n) ->
        claimed[n] = SLEEPS(n) && IS_SAME(n);
#ifndef BREAK_CREDIT
        queued[n] = queued[n] || pending[n];
#endif
    :: else
    fi;
#ifndef BREAK_ROOM
    queued[n] = queued[n] || IS_HELD_FOR(n, OTHER(n));
#endif
    told[n] = told[n] + known[AT(box, n)]
}

inline note_pending(n) {
    pending[n] = pending[n] || (IS_HERE(box, n) && LEFT(n))
}

inline send_marks() {
    route[ROUTE(box, 1 - box)]!MARK
}

#if defined(BREAK_ONCE) || defined(BREAK_MARK)
#define HAS_ALL_MARKS true
#else
#define HAS_ALL_MARKS (marks[box] == 1)
#endif

inline take_frame(c) {
    atomic {
        route[ROUTE(c, box)]?frame ->
        if
        :: frame < NODES * NODES ->
            if
            :: put(frame / NODES, frame % NODES)
            :: MAY_LACK_ROOM -> held[frame]++
            fi
        :: frame >= NODES * NODES && frame < MARK -> tell_end(box, frame - NODES * NODES)
        :: frame == MARK -> marks[box]++
        fi;
        frame = 0
    }
}

#define SEND_ON(s, d) atomic { IS_HERE(box, s) && left[PAIR(s, d)] > 0 -> send_on(s, d) }
#define SEND_END(n) atomic { IS_NEWS(n) -> tell_end(box, n); send_end(n) }
#define MAKE_ROOM(s, d) atomic { IS_HERE(box, d) && held[PAIR(s, d)] > 0 -> held[PAIR(s, d)]--; put(s, d) }

proctype gateway(byte box) {
    byte frame;
end:
    do
    :: atomic {
        stage[box] == 1 ->
        read_first(0); read_first(1);
        stage[box] = 2
#ifdef BREAK_ORDER
        ; send_marks()
#endif
       }
    :: atomic {
        stage[box] == 2 ->
        send_all(0); send_all(1);
        note_pending(0); note_pending(1);
#ifndef BREAK_ORDER
        send_marks();
#endif
        stage[box] = 3
       }
    :: atomic {
        stage[box] == 3 && HAS_ALL_MARKS -> report(0); report(1); stage[box] = 4
       }
    :: take_frame(1 - box)
    :: SEND_ON(0, 1)
    :: SEND_ON(1, 0)
    :: SEND_END(0)
    :: SEND_END(1)
    :: MAKE_ROOM(0, 1)
    :: MAKE_ROOM(1, 0)
    od
}

/* ---- the judge */

#ifdef BREAK_TOLD
#define GONE(n) (told[n] > 0)
#else
#define GONE(n) (told[n] == BOXES)
#endif
#define ABLE(n) (!claimed[n] && !GONE(n))

#define NEEDED_ABLE(n) ABLE(OTHER(n))

inline strike(n) {
    if
    :: claimed[n] && (queued[n] || NEEDED_ABLE(n)) -> claimed[n] = 0
    :: else
    fi
}

inline forget(n) {
    first[n] = 0;
    first_number[n] = 0;
    pending[n] = 0;
    claimed[n] = 0;
    queued[n] = 0;
    told[n] = 0
}

#define ALL_STAGES(s) (stage[0] == (s) && stage[1] == (s))

inline set_stages(s) {
    stage[0] = s;
    stage[1] = s;
    marks[0] = 0;
    marks[1] = 0
}

inline round() {
    d_step { set_stages(1) }
    d_step {
        ALL_STAGES(4) ->
        strike(0); strike(1);
        strike(0); strike(1);
        marked[0] = claimed[0];
        marked[1] = claimed[1];
        forget(0); forget(1);
        set_stages(0)
    }
}

proctype judge() {
    round();
    if
    :: marked[0] || marked[1] -> goto done
    :: else -> timeout
    fi;
    patient = 1;
    round();
#ifdef ENDS
    assert(asleep[0] == marked[0] && asleep[1] == marked[1]);
#endif
done:
    skip
}

init {
    atomic {
        run gateway(0); run gateway(1);
        run judge();
        run node(0); run node(1)
    }
}
