/* SPDX-License-Identifier: MIT */
/*
 * Proving a deadlock (csrc/diagnose/spc_deadlock.c, csrc/node/spc_node.c): who is said to wait for ever does.
 *
 * Three nodes do a few things each, any: send a message to another node, receive from a certain one or from any, enter
 * the barrier and wait in it; then they end, sooner or later. With -DRECEIPTS they wait until what they send has been
 * received, and do not come to the barrier. Who waits reads the word of its event, announces its
 * sleep, tests again, publishes its board, sleeps, and retracts the board first of all when it wakes. A sleep has no
 * time limit, but may end for nothing (SLICES times a node). Who changes something that others wait for tells them
 * afterwards, one by one, and may be stopped before that. An end is its state, then the epoch, then everybody is told.
 * Who waits for a node that has ended fails, and goes on; so does who waits for any when all others have ended, and who
 * is in a barrier that one of them has not entered.
 *
 * The detector looks once at any time. It reads one thing at a time: of each node `stuck`, then what is published and
 * the event's word, then who has arrived and who has ended; it strikes out who is able to go on, and reads each `stuck`
 * again. Those that are left are marked. What has come and what is queued (spc_deadlock.h) is not in the model: these
 * two rules only strike out more.
 *
 * Claims: no marked node ever comes out of its wait (an assertion). And when nothing moves any more, a look finds all
 * who sleep (an assertion).
 *
 * Variants
 *   -DRECEIPTS       holds: sends wait until they are received
 *   -DANSWERS        holds: the same where receipts are messages, of which the detector sees nothing
 *   -DBREAK_REREAD   fails: the detector does not look whether the boards are still the same
 *   -DBREAK_WORD     fails: it does not ask who was told of something since its last test
 *   -DBREAK_LATE     fails: the word on the board is read after that test
 *   -DBREAK_TEST     fails: the board is published before it
 *   -DBREAK_END      fails: a node counts as ended from its state on, when nobody has been told
 *   -DBREAK_BARRIER  fails: a barrier is blocked if any who is missing is: another one may end
 *   -DVAIN           holds: the same as BREAK_BARRIER, but a marked node may come out once a marked one's wait has failed
 *   -DBREAK_ANY      fails: a receive from any is blocked if one of the others is
 *   -DBREAK_MUTE     fails: who receives from any is never found
 *   -DBREAK_RECEIPT  fails: who waits for a receipt is blocked, whatever the receiver does
 *   -DBREAK_TAKE     fails: who receives does not tell the sender, whose receipt it has given
 *   -DBREAK_ANSWER   fails: the same where receipts are messages
 */
#if defined(BREAK_ANSWER)
#define BREAK_TAKE
#define ANSWERS
#endif
#if defined(BREAK_RECEIPT) || defined(BREAK_TAKE) || defined(ANSWERS)
#define RECEIPTS
#endif
#if defined(BREAK_REREAD) || defined(BREAK_WORD) || defined(BREAK_LATE) || defined(BREAK_TAKE)
#undef QUICK /* a mistake that shows only where somebody does two things */
#endif

#define NODES 3
#ifdef QUICK
#define ACTS(n) ((n) == 2 -> 0 : 1)
#else
#define ACTS(n) ((n) == 1 -> 2 : 1)
#endif
#define MAY_TO(n) (me == 0 || (n) != 2) /* nodes 1 and 2 only know the node before them */
#ifndef SLICES
#define SLICES 0 /* with 1 there are more states than can be looked at in minutes */
#endif
#define MAY_ACT (me != 2) /* node 2 only receives from node 1 */
#define ANY NODES          /* whom a wait needs: a node, any, or */
#define BARRIER (NODES + 1)
#define RECEIPT_OF(d) (NODES + 2 + (d)) /* from this node */
#define PAIR(s, d) ((s) * NODES + (d))

bool rung[NODES];           /* the word has changed since it was read before the last test */
bool sleeping[NODES];
bool asleep[NODES];
byte flying[NODES * NODES]; /* announced, not received */
bool arrived[NODES];        /* at the barrier; there is one */
bool given[NODES];          /* what this node sent last has been taken; it waits for that before it does more */
bool ended[NODES];
bool told[NODES];           /* everybody, of its end */
byte epoch;

bool stuck[NODES];          /* is odd */
bool moved[NODES];          /* has changed since the detector read it */
bool watched[NODES];
byte needs[NODES];          /* published with it */
bool board_rung[NODES];     /* the word has changed since it was read for the board */
byte considered[NODES];

bool marked[NODES];
bool failed; /* a marked one's wait, because of an end */

#define COME(d) (flying[PAIR(0, d)] + flying[PAIR(1, d)] + flying[PAIR(2, d)] > 0)
#define OTHER(n, k) (((n) + (k)) % NODES)
#define ALL_ARRIVED (arrived[0] && arrived[1] && arrived[2])
#define IS_TRUE ((need < NODES && flying[PAIR(need, me)] > 0) || (need == ANY && COME(me)) \
                 || (need == BARRIER && ALL_ARRIVED) || (need > BARRIER && given[me]))
#define MISSING(k) (ended[OTHER(me, k)] && !arrived[OTHER(me, k)])
#define IS_DOOMED ((need < NODES && ended[need]) \
                   || (need == ANY && ended[OTHER(me, 1)] && ended[OTHER(me, 2)]) \
                   || (need == BARRIER && (MISSING(1) || MISSING(2))) \
                   || (need > BARRIER && ended[need - RECEIPT_OF(0)]))

inline raise(n) {
    atomic { rung[n] = 1; board_rung[n] = 1; asleep[n] = 0 }
}

inline notify(n) {
    atomic {
        if
        :: sleeping[n] -> raise(n)
        :: else
        fi
    }
}

inline notify_others() {
    notify(OTHER(me, 1));
    notify(OTHER(me, 2))
}

/* The test of a wait: what has come counts more than an end, of which it looks only at news. One step: what matters
 * is what comes before and what after it. */
inline test() {
    atomic {
        over = IS_TRUE;
        if
        :: !over && epoch != mine -> mine = epoch; over = IS_DOOMED
        :: else
        fi
    }
}

inline change_stuck(to_what) {
    stuck[me] = to_what;
    moved[me] = watched[me]
}

inline publish() {
    atomic {
        needs[me] = need;
        considered[me] = mine;
        change_stuck(1)
    }
}

inline read_word() {
    rung[me] = 0;
    board_rung[me] = 0
}

/* The receiver gives the receipt at once, and then tells the sender. */
inline take_from(s) {
    flying[PAIR(s, me)]--;
#ifdef RECEIPTS
    given[s] = 1;
#ifndef BREAK_TAKE
    from = s
#endif
#endif
}

inline take() {
    atomic {
        if
        :: need < NODES && flying[PAIR(need, me)] > 0 -> take_from(need)
        :: need == ANY && flying[PAIR(OTHER(me, 1), me)] > 0 -> take_from(OTHER(me, 1))
        :: need == ANY && flying[PAIR(OTHER(me, 2), me)] > 0 -> take_from(OTHER(me, 2))
        :: need > BARRIER -> given[me] = 0
        :: else
        fi;
        need = 0;
        mine = 0;
        over = 0
    }
}

/* Each wait looks at all ends that were before it. What only the node itself could notice is one step. */
inline wait() {
    atomic { mine = 255; read_word(); sleeping[me] = 1 }
    do
    :: true ->
#ifdef BREAK_TEST
        publish();
#endif
        test();
        if
        :: over -> break
        :: else
        fi;
        atomic {
#ifdef BREAK_LATE
            board_rung[me] = 0;
#endif
#ifndef BREAK_TEST
            publish();
#endif
            asleep[me] = !rung[me]
        }
end_asleep:
        if
        :: !asleep[me]
        :: atomic { asleep[me] && slices[me] < SLICES -> slices[me]++; asleep[me] = 0 }
        fi;
        atomic { change_stuck(0); read_word() }
    od;
    atomic {
#ifdef VAIN
        failed = failed || (marked[me] && IS_DOOMED && !(IS_TRUE));
        assert(!marked[me] || failed);
#else
        assert(!marked[me]);
#endif
        sleeping[me] = 0;
        change_stuck(0);
        read_word();
        considered[me] = 0;
        needs[me] = 0;
        take()
    }
#ifdef RECEIPTS
    if
    :: from != NODES -> notify(from); from = NODES
    :: else
    fi
#endif
}

byte slices[NODES];

proctype node(byte me) {
    byte acts, need, mine, to;
    byte from = NODES; /* whose message was taken, who is to be told */
    bool over;
    do
    :: acts < ACTS(me) ->
        acts++;
        if
        :: me != 2 && MAY_TO(OTHER(me, 1)) -> to = OTHER(me, 1)
        :: MAY_TO(OTHER(me, 2)) -> to = OTHER(me, 2)
        fi;
        if
#ifdef RECEIPTS
        :: MAY_ACT -> flying[PAIR(me, to)]++; notify(to); need = RECEIPT_OF(to); wait()
#else
        :: MAY_ACT -> flying[PAIR(me, to)]++; notify(to)
#endif
        :: need = to; wait()
        :: MAY_ACT -> need = ANY; wait()
#ifndef RECEIPTS
        :: MAY_ACT && !arrived[me] -> arrived[me] = 1;
            if
            :: ALL_ARRIVED -> notify_others()
            :: else
            fi;
            need = BARRIER;
            wait()
#endif
        fi;
        to = 0
    :: break
    od;
    ended[me] = 1;
    epoch++;
    raise(OTHER(me, 1));
    atomic { raise(OTHER(me, 2)); told[me] = 1 }
}

#define ABLE(n) (!blocked[n] && !gone[n])
#define NEEDED_ABLE(n) (ABLE(OTHER(n, 1)) || ABLE(OTHER(n, 2)))
#define COMING(n, k) (!here[OTHER(n, k)] && ABLE(OTHER(n, k)))
#ifdef BREAK_ANY
#define ANY_GOES (ABLE(OTHER(i, 1)) && ABLE(OTHER(i, 2)))
#elif defined(BREAK_MUTE)
#define ANY_GOES true
#else
#define ANY_GOES NEEDED_ABLE(i)
#endif
#if defined(BREAK_BARRIER) || defined(VAIN)
#define ABSENT_BLOCKED(k) (!here[OTHER(i, k)] && !ABLE(OTHER(i, k)))
#define BARRIER_GOES (!ABSENT_BLOCKED(1) && !ABSENT_BLOCKED(2))
#else
#define BARRIER_GOES ((here[0] && here[1] && here[2]) || COMING(i, 1) || COMING(i, 2))
#endif

#ifdef BREAK_RECEIPT
#define RECEIPT_GOES receipt[i]
#elif defined(ANSWERS)
#define RECEIPT_GOES ABLE(need[i] - RECEIPT_OF(0))
#else
#define RECEIPT_GOES (receipt[i] || ABLE(need[i] - RECEIPT_OF(0)))
#endif

inline strike(n) {
    i = n;
    if
    :: blocked[n] && ((need[n] < NODES && ABLE(need[n])) || (need[n] == ANY && ANY_GOES)
                      || (need[n] == BARRIER && BARRIER_GOES) || (need[n] > BARRIER && RECEIPT_GOES)) -> blocked[n] = 0; left--
    :: else
    fi
}

inline read_stuck(n) {
    atomic { blocked[n] = stuck[n]; watched[n] = stuck[n] }
}

inline forget(n) {
    blocked[n] = 0;
    watched[n] = 0;
    moved[n] = 0
}

inline read_board(n) {
    atomic {
        if
        :: blocked[n] && !moved[n] && considered[n] == epoch -> need[n] = needs[n]
        :: else -> forget(n)
        fi
    }
#ifndef BREAK_WORD
    atomic {
        if
        :: blocked[n] && board_rung[n] -> forget(n); need[n] = 0
        :: else
        fi
    }
#endif
}

inline read_arrival_and_end(n) {
    here[n] = arrived[n];
    receipt[n] = given[n];
#ifdef BREAK_END
    gone[n] = ended[n]
#else
    gone[n] = told[n]
#endif
}

inline reread(n) {
#ifndef BREAK_REREAD
    left = (blocked[n] && moved[n] -> 0 : left)
#else
    skip
#endif
}

/* Gives up as soon as nobody is left. */
#define NOBODY (!blocked[0] && !blocked[1] && !blocked[2])

inline look() {
    first = epoch;
    read_stuck(0);
    read_stuck(1);
    read_stuck(2);
    do
    :: NOBODY -> break
    :: else ->
        read_board(0);
        read_board(1);
        read_board(2);
        if
        :: NOBODY -> break
        :: else
        fi;
        d_step { /* arrivals and ends only grow */
            read_arrival_and_end(0);
            read_arrival_and_end(1);
            read_arrival_and_end(2);
            left = blocked[0] + blocked[1] + blocked[2];
            k = 0;
            do
            :: k < NODES -> strike(0); strike(1); strike(2); k++
            :: else -> break
            od;
            k = 0; i = 0;
            need[0] = 0; need[1] = 0; need[2] = 0;
            here[0] = 0; here[1] = 0; here[2] = 0;
            gone[0] = 0; gone[1] = 0; gone[2] = 0;
            receipt[0] = 0; receipt[1] = 0; receipt[2] = 0
        }
        if
        :: left -> reread(0); reread(1); reread(2)
        :: else
        fi;
        break
    od;
    atomic {
        left = (epoch == first -> left : 0);
        marked[0] = left && blocked[0];
        marked[1] = left && blocked[1];
        marked[2] = left && blocked[2];
        forget(0); forget(1); forget(2);
        first = 0
    }
}

proctype detector() {
    byte need[NODES];
    bool blocked[NODES], here[NODES], gone[NODES], receipt[NODES];
    byte first, left, k, i;
    look();
    if
    :: left -> goto done
    :: timeout
    fi;
    look();
    assert(asleep[0] == marked[0] && asleep[1] == marked[1] && asleep[2] == marked[2]);
done:
    skip
}

init {
    atomic { run node(0); run node(1); run node(2); run detector() }
}
