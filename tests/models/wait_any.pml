/* SPDX-License-Identifier: MIT */
/*
 * Waiting for any of several requests, and the proof that nobody can go on (csrc/comm/spc_request.c, describe_any).
 *
 * Each of three nodes begins some of these, as it pleases: a receive from the next node, a synchronous send to the
 * previous one, a nonblocking barrier of all; then it waits until any of them is done, for as long as one is not, and
 * ends. A receive is done when its node, in any of its waits, finds the message; the send, when that has happened; the
 * barrier, when all have entered it. A node that waits publishes the nodes that it needs: of one request, what that
 * needs, and for the barrier that is each node that has not entered; of several, the union of what each of them needs,
 * of which one is enough.
 *
 * A judge looks at all of this in one step (tests/models/deadlock.pml is about how it does that): a node is able if it
 * runs, if what it waits for is there, or if it needs a node that is able (of a lone barrier: only such nodes). It
 * condemns the others. An assertion says that no condemned node ever goes on, and another that none is overlooked: when
 * nothing moves any more, all that wait are condemned.
 *
 * Variants that must fail:
 *   -DFIRST_ONLY  fails: a wait publishes what the first of its requests needs
 *   -DALL_NEEDED  fails: a wait for several is judged as one that needs all of their nodes
 *   -DENTERED     fails: a lone barrier needs those that have entered it, too
 *   -DENDED_HELP  fails: a node that has ended counts as able
 */
#define NODES 3
#define RUNS 0
#define WAITS 1
#define ENDED 2

#define NEXT(i) (((i) + 1) % NODES)
#define PREVIOUS(i) (((i) + NODES - 1) % NODES)

byte state[NODES];
bool receives[NODES], sends[NODES], enters[NODES]; /* begun */
bool received[NODES];                              /* the message of the next node; so its send is done */
bool is_condemned[NODES];

byte entered; /* nodes inside the barrier */

#define RECEIVE_IS_THERE(i) (receives[i] && !received[i] && sends[NEXT(i)])
#define RECEIVE_IS_OPEN(i) (receives[i] && !received[i])
#define SEND_IS_OPEN(i) (sends[i] && !received[PREVIOUS(i)])
#define BARRIER_IS_OPEN(i) (enters[i] && entered < NODES)
#define OPEN(i) (RECEIVE_IS_OPEN(i) + SEND_IS_OPEN(i) + BARRIER_IS_OPEN(i))

/* What each wait has published, at its beginning. */
bool waits_receive[NODES], waits_send[NODES], waits_barrier[NODES];

/* One of those that it waits for is done, or can be at once. */
#define IS_MET(i) ((waits_receive[i] && (received[i] || sends[NEXT(i)])) || (waits_send[i] && received[PREVIOUS(i)]) \
                   || (waits_barrier[i] && entered == NODES))

#define COUNT(i) (waits_receive[i] + waits_send[i] + waits_barrier[i])

bool able[NODES];

#ifdef ENDED_HELP
#define HELPS(i) (able[i] || state[i] == ENDED)
#else
#define HELPS(i) able[i]
#endif

#ifdef ENTERED
#define HAS_ENTERED_OR_HELPS(i) HELPS(i)
#else
#define HAS_ENTERED_OR_HELPS(i) (enters[i] || HELPS(i))
#endif
#define BARRIER_HELPS(i) (HAS_ENTERED_OR_HELPS(NEXT(i)) && HAS_ENTERED_OR_HELPS(PREVIOUS(i)))

#if defined FIRST_ONLY
#define UNION_HELPS(i) (waits_receive[i] -> HELPS(NEXT(i)) : HELPS(PREVIOUS(i)))
#elif defined ALL_NEEDED
#define UNION_HELPS(i) (HELPS(NEXT(i)) && HELPS(PREVIOUS(i)))
#else
#define UNION_HELPS(i) (((waits_receive[i] || waits_barrier[i]) && HELPS(NEXT(i))) \
                        || ((waits_send[i] || waits_barrier[i]) && HELPS(PREVIOUS(i))))
#endif

#define LONE_HELPS(i) (waits_barrier[i] -> BARRIER_HELPS(i) \
                       : (waits_receive[i] -> HELPS(NEXT(i)) : HELPS(PREVIOUS(i))))

#define CAN(i) (state[i] == RUNS || (state[i] == WAITS && (IS_MET(i) || (COUNT(i) > 1 -> UNION_HELPS(i) : LONE_HELPS(i)))))

inline look_at(i) {
    able[i] = able[i] || CAN(i)
}

/* Able nodes make others able, through two of them at most. */
inline judge() {
    d_step {
        able[0] = 0;
        able[1] = 0;
        able[2] = 0;
        round = 0;
        do
        :: round < NODES -> look_at(0); look_at(1); look_at(2); round++
        :: round == NODES -> break
        od;
        round = 0;
        is_condemned[0] = is_condemned[0] || (state[0] == WAITS && !able[0]);
        is_condemned[1] = is_condemned[1] || (state[1] == WAITS && !able[1]);
        is_condemned[2] = is_condemned[2] || (state[2] == WAITS && !able[2])
    }
}

inline begin(i) {
    if
    :: receives[i] = 1
    :: skip
    fi;
    if
    :: sends[i] = 1
    :: skip
    fi;
    if
    :: atomic { enters[i] = 1; entered++ }
    :: skip
    fi
}

/* For those that are open now; what is done meanwhile ends the wait at once. */
inline publish(i) {
    waits_receive[i] = RECEIVE_IS_OPEN(i);
    waits_send[i] = SEND_IS_OPEN(i);
    waits_barrier[i] = BARRIER_IS_OPEN(i);
    state[i] = WAITS
}

inline wake(i) {
    assert(!is_condemned[i]);
    received[i] = received[i] || RECEIVE_IS_THERE(i);
    state[i] = RUNS
}

proctype node(byte i) {
    begin(i);
    do
    :: atomic { OPEN(i) > 0 -> publish(i) }
end_of_a_deadlock:
        atomic { IS_MET(i) -> wake(i) }
    :: atomic { OPEN(i) == 0 -> break }
    od;
    state[i] = ENDED;
end:
    false
}

proctype supervisor() {
    byte round;
    judge();
    timeout -> judge();
    assert(state[0] != WAITS || is_condemned[0]);
    assert(state[1] != WAITS || is_condemned[1]);
    assert(state[2] != WAITS || is_condemned[2])
}

init {
    atomic {
        run node(0);
        run node(1);
        run node(2);
        run supervisor()
    }
}
