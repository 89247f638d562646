/* SPDX-License-Identifier: MIT */
/*
 * Numbers of communicators are used again (csrc/message/spc_numbers.h, csrc/comm/spc_comm_split.c).
 *
 * There is one number. One after another, communicators of two of three nodes have it: 0 and 1, 1 and 2, 0 and 2, and
 * 0 and 1 again. In each, a node may send a message to each member, itself included, and receives none of them. It
 * closes the communicator, while another of its threads may still be inside a send, and destroys it when that has come
 * back: then it sends its last message to both members. A message goes through the private queue of its sender and a row
 * of one slot, for each pair of nodes. A node gets the number again when it has heard as many last messages as the
 * communicator has members; the communicator is made when both members have the number.
 *
 * An assertion says that a message which arrives belongs to the communicator that its receiver has under that number,
 * or finds it closed and is dropped. A number that never becomes free is an invalid end state.
 *
 * Variants that must fail; sleeps: a node waits for ever for the number
 *   -DWHEN_DESTROYED  fails: a node has the number again as soon as it has destroyed the communicator itself
 *   -DWITHOUT_SELF    fails: a node does not wait for its own last message
 *   -DOVERTAKES       fails: a last message does not queue behind the messages before it
 *   -DAT_CLOSE        fails: the last message is sent when the communicator is closed, beside the other thread's send
 *   -DSTAYS_OPEN      fails: closing does not close the context, so that a late message is kept
 *   -DONLY_KNOWN      sleeps: a last message does not count before the communicator is made here
 */
#define NODES 3
#ifdef QUICK
#define COMMUNICATORS 3
#else
#define COMMUNICATORS 4
#endif
#define NONE 15 /* no communicator */
#define LAST 14 /* in place of the communicator of a message */

#define LEFT_OUT(c) ((c) == 0 || (c) == 3 -> 2 : ((c) == 1 -> 0 : 1))

#define WAY(from, to) ((from) * NODES + (to))
chan queue[NODES * NODES] = [4] of { byte };
chan row[NODES * NODES] = [1] of { byte };

byte has[NODES];       /* the communicator under the number; NONE: the number is free */
bool is_known[NODES];  /* it is made, so its size is known */
bool is_closed[NODES]; /* messages are dropped */
bool is_gone[NODES];   /* destroyed */
bool keeps[NODES];     /* a message for a receive */
byte lasts[NODES];     /* that have come */
byte offers[COMMUNICATORS];

#if defined WHEN_DESTROYED
#define MAY_RESERVE(id) (has[id] == NONE || is_gone[id])
#elif defined WITHOUT_SELF
#define MAY_RESERVE(id) (has[id] == NONE || (is_gone[id] && lasts[id] == 1))
#else
#define MAY_RESERVE(id) (has[id] == NONE)
#endif

inline forget(id) {
    has[id] = NONE;
    is_known[id] = 0;
    is_closed[id] = 0;
    is_gone[id] = 0;
    lasts[id] = 0
}

inline hear_last(id, from) {
    if
#if defined ONLY_KNOWN
    :: !is_known[id]
    :: is_known[id] -> lasts[id]++
#elif defined WITHOUT_SELF
    :: from == id
    :: from != id -> lasts[id]++
#else
    :: true -> lasts[id]++
#endif
    fi;
    if
    :: is_known[id] && lasts[id] == 2 -> forget(id)
    :: else
    fi
}

/* One slot of one row, by any thread of the node. */
inline read(id, from) {
    row[WAY(from, id)]?what;
    if
    :: what == LAST -> hear_last(id, from)
    :: what != LAST && is_closed[id]
    :: what != LAST && !is_closed[id] -> assert(has[id] == what); keeps[id] = 1
    fi;
    what = 0
}

inline flush(id, to) {
    queue[WAY(id, to)]?what;
    row[WAY(id, to)]!what;
    what = 0
}

#define CAN_FLUSH(id, to) (len(queue[WAY(id, to)]) > 0 && len(row[WAY(id, to)]) == 0)

/* Something that a wait does. */
#define PROGRESS(id)                                                          \
       :: atomic { len(row[WAY(0, id)]) > 0 -> read(id, 0) }                  \
       :: atomic { len(row[WAY(1, id)]) > 0 -> read(id, 1) }                  \
       :: atomic { len(row[WAY(2, id)]) > 0 -> read(id, 2) }                  \
       :: atomic { CAN_FLUSH(id, 0) -> flush(id, 0) }                         \
       :: atomic { CAN_FLUSH(id, 1) -> flush(id, 1) }                         \
       :: atomic { CAN_FLUSH(id, 2) -> flush(id, 2) }

inline wait_for_number(id) {
    do
    :: atomic { MAY_RESERVE(id) -> assert(!keeps[id]); forget(id); has[id] = c; offers[c]++; break }
    PROGRESS(id)
    od;
    do
    :: atomic { offers[c] == 2 -> is_known[id] = 1; break }
    PROGRESS(id)
    od
}

inline send_some(id) {
    to = 0;
    do
    :: to < NODES && to != LEFT_OUT(c) ->
        if
        :: queue[WAY(id, to)]!c
        :: skip
        fi;
        to++
    :: to < NODES && to == LEFT_OUT(c) -> to++
    :: to == NODES -> break
    od;
    to = 0
}

inline send_last(id) {
    atomic {
        do
        :: to < NODES && to != LEFT_OUT(c) ->
#ifdef OVERTAKES
            if
            :: len(row[WAY(id, to)]) == 0 -> row[WAY(id, to)]!LAST
            :: else -> queue[WAY(id, to)]!LAST
            fi;
#else
            queue[WAY(id, to)]!LAST;
#endif
            to++
        :: to < NODES && to == LEFT_OUT(c) -> to++
        :: to == NODES -> break
        od;
        to = 0
    }
}

/* One step: with the node's lock. */
inline close(id) {
    atomic {
#ifndef STAYS_OPEN
        is_closed[id] = 1;
        keeps[id] = 0;
#endif
        skip
    }
}

proctype node(byte id) {
    byte c, to, what;
    do
    :: c < COMMUNICATORS && id != LEFT_OUT(c) ->
        wait_for_number(id);
        send_some(id);
        close(id);
#ifdef AT_CLOSE
        send_last(id);
        send_some(id); /* of the other thread */
#else
        send_some(id);
        send_last(id);
#endif
        atomic { is_gone[id] = 1; c++ }
    :: c < COMMUNICATORS && id == LEFT_OUT(c) -> c++
    :: c == COMMUNICATORS -> break
    od;
end:
    do
    PROGRESS(id)
    od
}

init {
    atomic {
        has[0] = NONE;
        has[1] = NONE;
        has[2] = NONE;
        run node(0);
        run node(1);
        run node(2)
    }
}
