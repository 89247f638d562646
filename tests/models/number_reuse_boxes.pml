/* SPDX-License-Identifier: MIT */
/*
 * Numbers of communicators are used again over boxes (csrc/message/spc_numbers.h, csrc/net/gateway/
 * spc_gateway_traffic.c).
 *
 * There is one number. Three boxes have a node and a gateway each, and a link from each gateway to each other one. One
 * after another, communicators of two nodes have the number: 0 and 1, 0 and 2, and 0 and 1 again. In each, a node sends
 * the other one a message, which that does not receive, and node 0 arrives at a phase that the other never enters. Each
 * leaves, and sends its last message to both; what happens in one box is in number_reuse.pml, so here its own one
 * arrives at once. Messages go through a row to the gateway, which forwards them to the receiver's gateway in order. A
 * gateway announces to all boxes that a node has arrived or left, some time after that, when the rows of the node are
 * empty; then it gives up what it has of the communicator. A server keeps an arrival until the other node has arrived,
 * too.
 *
 * The members agree by a variable: nothing of an agreement pushes older frames out of a link. So the model has more
 * schedules than the code.
 *
 * Assertions say that a message which arrives belongs to the communicator that its receiver has under that number, or
 * finds it closed; and that what a gateway or the server hears of a communicator is not taken for news of another one.
 * A number that never becomes free is an invalid end state.
 *
 * Variants that must fail; sleeps: a node waits for ever for the number
 *   -DNO_GENERATION   fails: a gateway knows a communicator by its number and first member alone
 *   -DSERVER_WITHOUT   fails: the server knows it so
 *   -DOVERTAKES        fails: a gateway sends last messages ahead of the messages in the rows
 *   -DDROPS_LASTS      sleeps: a gateway drops last messages of communicators that its box has given up
 */
#define NODES 3
#ifdef QUICK
#define COMMUNICATORS 2
#else
#define COMMUNICATORS 3
#endif
#define NONE 15

#define OTHER(c, id) ((id) == 0 -> ((c) == 1 -> 2 : 1) : 0)
#define IS_MEMBER(c, id) ((id) == 0 || (id) == ((c) == 1 -> 2 : 1))

#define WAY(from, to) ((from) * NODES + (to))
#define OF(id, c) ((id) * COMMUNICATORS + (c))

mtype = { MESSAGE, LAST, LEFT };
#define LINK 2
chan row[NODES * NODES] = [2] of { mtype, byte };
chan link[NODES * NODES] = [LINK] of { mtype, byte }; /* between gateways */

byte has[NODES];       /* the communicator under the number; NONE: the number is free */
bool is_closed[NODES]; /* messages are dropped */
byte lasts[NODES];     /* that have come */
byte offers[COMMUNICATORS];

bool is_area[NODES * COMMUNICATORS]; /* the gateway of the box knows it */
bool has_left[NODES * COMMUNICATORS];
byte kept = NONE; /* the arrival that the server keeps, without generations */

inline hear_last(id) {
    lasts[id]++;
    if
    :: lasts[id] == 2 ->
        has[id] = NONE;
        is_closed[id] = 0;
        lasts[id] = 0
    :: else
    fi
}

inline hear(id) {
    if
    :: what == LAST -> hear_last(id)
    :: what == MESSAGE && is_closed[id]
    :: what == MESSAGE && !is_closed[id] -> assert(has[id] == about)
    fi
}

/* ---- nodes */

proctype node(byte id) {
    byte c;
    do
    :: c < COMMUNICATORS && IS_MEMBER(c, id) ->
        atomic { has[id] == NONE -> has[id] = c; offers[c]++; is_area[OF(id, c)] = 1 };
        atomic { offers[c] == 2 -> row[WAY(id, OTHER(c, id))]!MESSAGE(c) };
        atomic { is_closed[id] = 1; has_left[OF(id, c)] = 1 };
        atomic { row[WAY(id, OTHER(c, id))]!LAST(c); hear_last(id); c++ }
    :: c < COMMUNICATORS && !IS_MEMBER(c, id) -> c++
    :: c == COMMUNICATORS -> break
    od
}

/* ---- gateways */

#define TO(id, which) (((id) + (which)) % NODES) /* the others: 1 and 2 */
#define ROOM(id, which) (len(link[WAY(id, TO(id, which))]) < LINK)

inline forward(id, to) {
    row[WAY(id, to)]?what(about);
    if
#ifdef DROPS_LASTS
    :: what == LAST && !is_area[OF(id, about)]
    :: what != LAST || is_area[OF(id, about)] -> link[WAY(id, to)]!what(about)
#else
    :: link[WAY(id, to)]!what(about)
#endif
    fi;
    about = 0;
    what = 0
}

#ifdef OVERTAKES
inline overtake(id, to) {
    row[WAY(id, to)]??LAST(about);
    link[WAY(id, to)]!LAST(about);
    about = 0;
    what = 0
}
#endif

inline tell_server(which) {
    if
#ifdef SERVER_WITHOUT
    :: kept == NONE -> kept = which
    :: kept != NONE -> assert(kept == which); kept = NONE
#else
    :: skip /* one place for each generation */
#endif
    fi
}

inline tell_left(id, which) {
    if
    :: id == 0 -> tell_server(which)
    :: else
    fi;
    link[WAY(id, TO(id, 1))]!LEFT(which);
    link[WAY(id, TO(id, 2))]!LEFT(which);
    is_area[OF(id, which)] = 0;
    has_left[OF(id, which)] = 0
}

/* The newest communicator that is known under the number. */
inline take_left(id) {
#ifdef NO_GENERATION
    if
#ifndef QUICK
    :: is_area[OF(id, 2)] -> assert(about == 2)
    :: !is_area[OF(id, 2)] && is_area[OF(id, 1)] -> assert(about == 1)
    :: !is_area[OF(id, 2)] && !is_area[OF(id, 1)] && is_area[OF(id, 0)] -> assert(about == 0)
#else
    :: is_area[OF(id, 1)] -> assert(about == 1)
    :: !is_area[OF(id, 1)] && is_area[OF(id, 0)] -> assert(about == 0)
#endif
    :: else
    fi
#else
    skip
#endif
}

inline receive(id, from) {
    link[WAY(from, id)]?what(about);
    if
    :: what == LEFT -> take_left(id)
    :: else -> hear(id)
    fi;
    about = 0;
    what = 0
}

#define ROWS_ARE_EMPTY(id) (len(row[WAY(id, TO(id, 1))]) == 0 && len(row[WAY(id, TO(id, 2))]) == 0)
#define TELLS(id, which)                                                                        \
    :: atomic { which < COMMUNICATORS && is_area[OF(id, which)] && has_left[OF(id, which)]      \
                && ROWS_ARE_EMPTY(id) && ROOM(id, 1) && ROOM(id, 2) -> tell_left(id, which) }

proctype gateway(byte id) {
    byte about;
    mtype what;
end:
    do
    :: atomic { len(row[WAY(id, TO(id, 1))]) > 0 && ROOM(id, 1) -> forward(id, TO(id, 1)) }
    :: atomic { len(row[WAY(id, TO(id, 2))]) > 0 && ROOM(id, 2) -> forward(id, TO(id, 2)) }
#ifdef OVERTAKES
    :: atomic { row[WAY(id, TO(id, 1))]??[LAST, 0] && ROOM(id, 1) -> overtake(id, TO(id, 1)) }
#endif
    :: atomic { len(link[WAY(TO(id, 1), id)]) > 0 -> receive(id, TO(id, 1)) }
    :: atomic { len(link[WAY(TO(id, 2), id)]) > 0 -> receive(id, TO(id, 2)) }
    TELLS(id, 0)
    TELLS(id, 1)
#ifndef QUICK
    TELLS(id, 2)
#endif
    od
}

init {
    atomic {
        has[0] = NONE;
        has[1] = NONE;
        has[2] = NONE;
        run node(0);
        run node(1);
        run node(2);
        run gateway(0);
        run gateway(1);
        run gateway(2)
    }
}
