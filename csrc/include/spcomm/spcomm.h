/* SPDX-License-Identifier: MIT */
/*
 * spcomm.h: spcomm for programs in C and C++. docs/reference/c.md has examples.
 *
 *     cc program.c $(spcomm config --cflags --libs) -o program && spcomm run -n 4 ./program
 *
 * Statuses. Every function that can fail returns SPCOMM_OK (0) or a negative SPCOMM_E number and gives its results
 * through out-parameters, which it leaves alone when it fails. spcomm_last_error() has the sentence that belongs to the
 * last failure of the calling thread.
 *
 * Waiting. Exactly the functions with a `timeout_ns` may wait: nanoseconds, 0 to look once, SPCOMM_FOREVER for no
 * limit. Whatever a call waits for, it goes on sending what is queued and receiving what arrives.
 *
 * Collective calls (barriers, reductions, bcast and its like, cycles of coordinated messages) have to be made by all
 * nodes, in the same order. One that timed out stays entered: make the same call again, with the same memory, to go on
 * with it; another one is refused. If the memory holds other data of the same types and lengths by then, they continue
 * the first ones, and nodes may get a part of each.
 *
 * Threads. Any thread may call anything at any time, but collective calls one after another.
 *
 * Memory. What a call is given it has copied when it returns. What a receive gives belongs to the program, may be
 * written, and is ended by spcomm_message_free.
 *
 * In a process that a node has forked every call fails with SPCOMM_EFORKED.
 */
#ifndef SPCOMM_SPCOMM_H
#define SPCOMM_SPCOMM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "spcomm/destination.h"
#include "spcomm/simtime.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPCOMM_VERSION "0.1.0"

typedef struct spcomm spcomm_t;

/* ---- statuses ---- */

enum {
    SPCOMM_OK = 0,
    SPCOMM_EINVAL = -1,       /* an argument has a value that is not allowed */
    SPCOMM_ENOMEM = -2,       /* no memory left */
    SPCOMM_ESYSTEM = -3,      /* a system call failed; errno has the reason */
    SPCOMM_EAGAIN = -4,       /* nothing there yet */
    SPCOMM_ETIMEDOUT = -5,    /* the timeout passed */
    SPCOMM_EINTERRUPTED = -6, /* a handler has ended the call */
    SPCOMM_ELOST = -7,        /* a node that this call needs has died */
    SPCOMM_EFINISHED = -8,    /* a node that this call needs has finished */
    SPCOMM_ETRUNCATED = -9,   /* a message does not fit where it should go; it stays queued */
    SPCOMM_EMISMATCH = -10,   /* the nodes called different collective operations */
    SPCOMM_EFORMAT = -11,     /* a message has a format that C cannot read; it stays queued */
    SPCOMM_ERANK = -12,       /* no such node */
    SPCOMM_ETAG = -13,        /* no such tag */
    SPCOMM_EBUSY = -14,       /* another thread of this node is inside a collective call */
    SPCOMM_ECLOSED = -15,     /* this node has shut down */
    SPCOMM_EFORKED = -16,     /* this process was forked by a node, and is none */
    SPCOMM_EVERSION = -17,    /* the run was started by another version of spcomm */
    SPCOMM_ELIMIT = -18,      /* too many operations are open at once */
    SPCOMM_EWIDE = -19,       /* a sum of integers does not fit into 64 bits */
    SPCOMM_ECYCLE = -20,      /* not allowed within a cycle of coordinated messages */
    SPCOMM_EDISCONNECTED =
        -21, /* the connection to nodes on other machines is lost; this node can wait for no other */
    SPCOMM_EFAILED = -22, /* another node failed in this call, and gave nothing */
    SPCOMM_EDEADLOCK = -23 /* nobody can end this wait: the program runs as one node, without spcomm run */
};

/* "SPCOMM_ELOST", and its general meaning. Never NULL, for any number. */
const char *spcomm_error_name(int status);
const char *spcomm_error_message(int status);

/* The sentence about the last failure of the calling thread: the call, the values found, the values allowed. "" before
 * the first. Valid until the next failure in this thread. SPCOMM_EAGAIN is no failure. */
const char *spcomm_last_error(void);

/* The version of the library; SPCOMM_VERSION is that of this header. */
const char *spcomm_version(void);

/* ---- numbers with a meaning ---- */

#define SPCOMM_FOREVER INT64_C(-1)                             /* as timeout_ns */
#define SPCOMM_SECONDS(seconds) ((int64_t)((seconds) * 1.0e9)) /* as timeout_ns */
#define SPCOMM_ANY (-101) /* as source or tag of a receive: any */
#define SPCOMM_PROC_NULL \
    (-104) /* as dest: nothing is sent; as source: spcomm_none(), from it, comes at once */
#define SPCOMM_TAG_MAX INT32_MAX /* tags are 0 to this */
#define SPCOMM_FUZZY_MAX 8 /* fuzzy barriers that may be open at once */

/* ---- life (SpeedesComm 2.1) ---- */

/* Joins the run that this process belongs to, and gives its communicator; a second call gives the same one.
 *
 * Under `spcomm run` give 0, 0, 0, NULL, or the numbers of nodes in this box and in the run. Alone it is a run of one
 * node, unless local_nodes is more than 1: then this process becomes node 0 and forks the others, and all of them
 * return from here (so call it early, with no other threads and nothing unwritten in stdio). Node 0's process ends
 * when all nodes have, with the exit code of the first that failed. total_nodes is 0 or the same number; group_id
 * tells jobs apart. The infile (TOML: local_nodes, total_nodes, group_id) gives what is 0. It does not wait for the
 * other nodes.
 *
 * If the infile has server = "HOST:PORT", where `spcomm serve` runs, total_nodes counts the nodes of several boxes,
 * which call it with local_nodes of their own: it waits until all are there (SPCOMM_ETIMEDOUT, SPCOMM_EDISCONNECTED).
 * SPCOMM_EINVAL: the numbers contradict each other or how the run was started; SPCOMM_ESYSTEM, SPCOMM_EVERSION. */
int spcomm_startup(int32_t local_nodes, int32_t total_nodes, int32_t group_id, const char *infile,
                   spcomm_t **comm);

/* Sends queued messages, and leaves the run. Other nodes still get all messages sent. Waits only while queued messages
 * have no room (SPCOMM_ETIMEDOUT: those are lost, and the node has left all the same). A normal end of the program does
 * it by itself, with ten seconds; an end with an exit status other than 0 does not (the launcher notifies the others
 * that this node has died). SPCOMM_ECLOSED if it was done before. Received messages stay valid until they are freed. */
int spcomm_shutdown(spcomm_t *comm, int64_t timeout_ns);

/* The communicator that spcomm_startup gave in this process; NULL before. */
spcomm_t *spcomm_current(void);

/* This node's number, how many nodes there are, the run's group, and nanoseconds since the run began (the same clock
 * for all nodes of a machine). SPCOMM_EINVAL for NULL; they work after shutdown, too. */
int32_t spcomm_rank(const spcomm_t *comm);
int32_t spcomm_size(const spcomm_t *comm);
int32_t spcomm_group(const spcomm_t *comm);
int64_t spcomm_time_ns(const spcomm_t *comm);

/* Where a node is (3.3, Table 1). local_rank: its number within its box; local_zero: the rank, in the run, of that
 * box's node 0; rank_in_run: its rank in the communicator that spcomm_startup gave. */
typedef struct spcomm_layout {
    int32_t box;
    int32_t local_rank;
    int32_t local_zero;
    int32_t rank_in_run;
} spcomm_layout_t;

/* About node `rank`. SPCOMM_ERANK; SPCOMM_EINVAL for NULL; SPCOMM_ECLOSED of a part that was shut down. */
int spcomm_layout(const spcomm_t *comm, int32_t rank, spcomm_layout_t *layout);

/* The box of this node, as spcomm_layout gives it. */
int32_t spcomm_box(const spcomm_t *comm);

/* Divides a communicator, called by all its nodes: those that give the same color (0 or more) form a new one, ordered
 * by key, then by rank; a node that gives a negative color belongs to none, and *part is NULL. Every call works on a
 * part, with ranks of its own. End it with spcomm_shutdown, which concerns that part only, with no other thread inside
 * a call on it. SPCOMM_ENOMEM: no room for its shared memory; SPCOMM_ELIMIT: too many parts, ever. */
int spcomm_split(spcomm_t *comm, int64_t color, int64_t key, int64_t timeout_ns, spcomm_t **part);

/* ---- barriers (2.2) ---- */

/* Waits until all nodes are here. */
int spcomm_barrier(spcomm_t *comm, int64_t timeout_ns);

/* Enter: announces this node, and goes on: SPCOMM_ELIMIT if SPCOMM_FUZZY_MAX are open. Done: whether all nodes are here
 * (1) or not yet (0). Wait: waits until all are. A handle ends with done = 1 or with a wait that returns SPCOMM_OK. */
typedef struct spcomm_fuzzy {
    uint64_t phase;
} spcomm_fuzzy_t;

int spcomm_fuzzy_enter(spcomm_t *comm, spcomm_fuzzy_t *fuzzy);
int spcomm_fuzzy_done(spcomm_t *comm, spcomm_fuzzy_t *fuzzy, int *done);
int spcomm_fuzzy_wait(spcomm_t *comm, spcomm_fuzzy_t *fuzzy, int64_t timeout_ns);

/* The same without a handle, as in the paper, and so one at a time: entering a second one is SPCOMM_ELIMIT. Exit gives
 * done = 1, and the barrier has ended, or 0: not yet. SPCOMM_EINVAL if none was entered. */
int spcomm_enter_fuzzy_barrier(spcomm_t *comm);
int spcomm_exit_fuzzy_barrier(spcomm_t *comm, int *done);

/* ---- reductions (2.2, 3.4) ----
 * Every node gives a value and gets the same result, bit for bit. Sums of integers: SPCOMM_EWIDE beyond 64 bits. Of
 * floating point: NaN if any is NaN. Of simulation times: the least and the greatest in lexicographic order; a sum adds
 * the times, and its priorities are 0. They match Python's global_min(int), (float) and (SimTime). */
int spcomm_global_min_int64(spcomm_t *comm, int64_t value, int64_t timeout_ns, int64_t *result);
int spcomm_global_max_int64(spcomm_t *comm, int64_t value, int64_t timeout_ns, int64_t *result);
int spcomm_global_sum_int64(spcomm_t *comm, int64_t value, int64_t timeout_ns, int64_t *result);
int spcomm_global_min_double(spcomm_t *comm, double value, int64_t timeout_ns, double *result);
int spcomm_global_max_double(spcomm_t *comm, double value, int64_t timeout_ns, double *result);
int spcomm_global_sum_double(spcomm_t *comm, double value, int64_t timeout_ns, double *result);
int spcomm_global_min_simtime(spcomm_t *comm, spcomm_simtime_t value, int64_t timeout_ns,
                              spcomm_simtime_t *result);
int spcomm_global_max_simtime(spcomm_t *comm, spcomm_simtime_t value, int64_t timeout_ns,
                              spcomm_simtime_t *result);
int spcomm_global_sum_simtime(spcomm_t *comm, spcomm_simtime_t value, int64_t timeout_ns,
                              spcomm_simtime_t *result);

/* All three in one exchange (the paper's Net_Min, Net_Max, Net_Sum); Python's global_min((int, float, SimTime)). */
typedef struct spcomm_values {
    int64_t integer;
    double real;
    spcomm_simtime_t simtime;
} spcomm_values_t;

int spcomm_global_min(spcomm_t *comm, const spcomm_values_t *values, int64_t timeout_ns,
                      spcomm_values_t *result);
int spcomm_global_max(spcomm_t *comm, const spcomm_values_t *values, int64_t timeout_ns,
                      spcomm_values_t *result);
int spcomm_global_sum(spcomm_t *comm, const spcomm_values_t *values, int64_t timeout_ns,
                      spcomm_values_t *result);

/* ---- data to send ---- */

enum {
    SPCOMM_FORMAT_RAW = 0, /* bytes; Python gets `bytes` */
    SPCOMM_FORMAT_BYTES = 1, /* Python's `bytes` */
    SPCOMM_FORMAT_NONE = 2, /* Python's None: no data */
    SPCOMM_FORMAT_BOOL = 3, /* one byte, 0 or 1 */
    SPCOMM_FORMAT_INT64 = 4, /* int64_t; Python's int */
    SPCOMM_FORMAT_FLOAT64 = 5, /* double; Python's float */
    SPCOMM_FORMAT_STRING = 6, /* UTF-8; a received one has a 0 behind it, which `bytes` does not count */
    SPCOMM_FORMAT_SIMTIME = 7, /* spcomm_simtime_t; Python's SimTime */
    SPCOMM_FORMAT_ARRAY = 8, /* the elements; `array` describes them; NumPy's array */
    SPCOMM_FORMAT_TUPLE = 9, /* from here on Python only: SPCOMM_EFORMAT, or spcomm_recv_any */
    SPCOMM_FORMAT_PICKLE = 10,
    SPCOMM_FORMAT_LIST = 11,
    SPCOMM_FORMAT_DICT = 12
};

#define SPCOMM_DIMENSIONS_MAX 64

/* An array as NumPy sees it. */
typedef struct spcomm_array {
    const int64_t *shape; /* `dimensions` lengths */
    uint32_t item_bytes;
    uint8_t dimensions;
    char kind; /* 'i' signed, 'u' unsigned, 'f' floating point, 'c' complex, 'b' bool, 'S' bytes, 'U' UCS-4
                           * text, 'V' structures, 'M' and 'm' dates (only Python knows their fields and units) */
    char byte_order; /* '<' little, '>' big; '|' does not matter */
    char fortran; /* 1: the first index runs fastest; 0: the last one does, as in C */
} spcomm_array_t;

/* Any data to send; made by one of the functions below, passed by value. */
typedef struct spcomm_data {
    const void *data; /* not used for the three formats that `value` holds */
    size_t bytes;
    union {
        int64_t int64;
        double float64;
        spcomm_simtime_t simtime;
    } value;
    spcomm_array_t array;
    int32_t format;
    int32_t element; /* SPCOMM_ELEMENT_…, of an array */
} spcomm_data_t;

/* The items of an array of kind 'V', for reductions. PAIR_…: spcomm_pair_t with values of that type. */
enum {
    SPCOMM_ELEMENT_PLAIN = 0, /* its kind determines it */
    SPCOMM_ELEMENT_SIMTIME = 1,
    SPCOMM_ELEMENT_PAIR_INT8 = 2,
    SPCOMM_ELEMENT_PAIR_INT16 = 3,
    SPCOMM_ELEMENT_PAIR_INT32 = 4,
    SPCOMM_ELEMENT_PAIR_INT64 = 5,
    SPCOMM_ELEMENT_PAIR_UINT8 = 6,
    SPCOMM_ELEMENT_PAIR_UINT16 = 7,
    SPCOMM_ELEMENT_PAIR_UINT32 = 8,
    SPCOMM_ELEMENT_PAIR_UINT64 = 9,
    SPCOMM_ELEMENT_PAIR_FLOAT32 = 10,
    SPCOMM_ELEMENT_PAIR_FLOAT64 = 11
};

/* A value and its place, for SPCOMM_MINLOC and SPCOMM_MAXLOC: an item of NumPy's aligned [('value', T), ('index',
 * 'i8')]. */
typedef struct spcomm_pair {
    union {
        int8_t int8;
        int16_t int16;
        int32_t int32;
        int64_t int64;
        uint8_t uint8;
        uint16_t uint16;
        uint32_t uint32;
        uint64_t uint64;
        float float32;
        double float64;
    } value;
    int64_t index;
} spcomm_pair_t;

static inline spcomm_data_t spcomm_raw(const void *data, size_t bytes) {
    spcomm_data_t made;
    memset(&made, 0, sizeof(made));
    made.data = data;
    made.bytes = bytes;
    made.format = SPCOMM_FORMAT_RAW;
    return made;
}

static inline spcomm_data_t spcomm_int64(int64_t value) {
    spcomm_data_t made = spcomm_raw(NULL, sizeof(value));
    made.value.int64 = value;
    made.format = SPCOMM_FORMAT_INT64;
    return made;
}

static inline spcomm_data_t spcomm_float64(double value) {
    spcomm_data_t made = spcomm_raw(NULL, sizeof(value));
    made.value.float64 = value;
    made.format = SPCOMM_FORMAT_FLOAT64;
    return made;
}

static inline spcomm_data_t spcomm_simtime(spcomm_simtime_t value) {
    spcomm_data_t made = spcomm_raw(NULL, sizeof(value));
    made.value.simtime = value;
    made.format = SPCOMM_FORMAT_SIMTIME;
    return made;
}

/* UTF-8 that ends with a 0; the 0 is not sent. NULL: the send fails with SPCOMM_EINVAL. */
static inline spcomm_data_t spcomm_string(const char *text) {
    spcomm_data_t made = spcomm_raw(text, text != NULL ? strlen(text) : 1);
    made.format = SPCOMM_FORMAT_STRING;
    return made;
}

/* An array in C's order and this machine's byte order, for example spcomm_array(x, 'f', sizeof(double), 2, shape). */
static inline spcomm_data_t spcomm_array(const void *data, char kind, size_t item_bytes, int dimensions,
                                         const int64_t *shape) {
    spcomm_data_t made = spcomm_raw(data, 0); /* the send determines the number of bytes */
    made.array.shape = shape;
    made.array.item_bytes =
        item_bytes < UINT32_MAX ? (uint32_t)item_bytes : UINT32_MAX; /* which is refused */
    made.array.dimensions = (uint8_t)(dimensions < 0 || dimensions > 255 ? 255 : dimensions);
    made.array.kind = kind;
    made.format = SPCOMM_FORMAT_ARRAY;
    return made;
}

/* No data: Python's None. */
static inline spcomm_data_t spcomm_none(void) {
    spcomm_data_t made = spcomm_raw(NULL, 0);
    made.format = SPCOMM_FORMAT_NONE;
    return made;
}

/* Arrays of simulation times, and of pairs with values of one type, SPCOMM_ELEMENT_PAIR_…; both are for reductions, and
 * may be sent as structures. */
static inline spcomm_data_t spcomm_simtimes(const spcomm_simtime_t *data, int dimensions,
                                            const int64_t *shape) {
    spcomm_data_t made = spcomm_array(data, 'V', sizeof(*data), dimensions, shape);
    made.element = SPCOMM_ELEMENT_SIMTIME;
    return made;
}

static inline spcomm_data_t spcomm_pairs(const spcomm_pair_t *data, int32_t element, int dimensions,
                                         const int64_t *shape) {
    spcomm_data_t made = spcomm_array(data, 'V', sizeof(*data), dimensions, shape);
    made.element = element;
    return made;
}

/* ---- sending (2.3) ----
 * They wait only while messages that this node has sent and no node has received reach --queue-limit. Messages of one
 * node to another arrive in the order in which they were sent. SPCOMM_ERANK, SPCOMM_ETAG, SPCOMM_EINVAL,
 * SPCOMM_ETIMEDOUT: nothing was sent. An empty set is nobody. */
int spcomm_send(spcomm_t *comm, int32_t dest, int32_t tag, spcomm_data_t data, int64_t timeout_ns);
int spcomm_send_set(spcomm_t *comm, const spcomm_destination_t *dest, int32_t tag, spcomm_data_t data,
                    int64_t timeout_ns);
int spcomm_send_all(spcomm_t *comm, int32_t tag, spcomm_data_t data, int64_t timeout_ns); /* to itself, too */

/* Sends to one node, and waits until it has received the message. SPCOMM_ELOST, SPCOMM_EFINISHED: it has ended without
 * receiving it. After SPCOMM_ETIMEDOUT the message stays sent, and may be received later. To itself: SPCOMM_ERANK,
 * unless there are other threads. */
int spcomm_ssend(spcomm_t *comm, int32_t dest, int32_t tag, spcomm_data_t data, int64_t timeout_ns);

/* ---- receiving (2.3) ---- */

/* A message; may be copied, and one of the copies freed. */
typedef struct spcomm_message {
    void *data; /* aligned for every type; never NULL */
    size_t bytes;
    int32_t source;
    int32_t tag; /* 0 in coordinated messages */
    int32_t format; /* SPCOMM_FORMAT_… */
    spcomm_array_t array; /* if it is an ARRAY; `shape` lives as long as the data */
    void *owner; /* of the data: for spcomm_message_free */
} spcomm_message_t;

/* source: a rank, SPCOMM_ANY or SPCOMM_PROC_NULL; tag: 0 to SPCOMM_TAG_MAX or SPCOMM_ANY. recv waits for a message;
 * try_recv gives one that is here, or SPCOMM_EAGAIN; take (the paper's GetPendingMessage) looks only at messages that
 * have been moved into the queues already. SPCOMM_EFORMAT: the first message that matches is one that only Python can
 * read; it stays the first, for spcomm_recv_any or another receiver. SPCOMM_ELOST, SPCOMM_EFINISHED: no node is left
 * that could send one. */
int spcomm_recv(spcomm_t *comm, int32_t source, int32_t tag, int64_t timeout_ns, spcomm_message_t *message);
int spcomm_try_recv(spcomm_t *comm, int32_t source, int32_t tag, spcomm_message_t *message);
int spcomm_take(spcomm_t *comm, int32_t source, int32_t tag, spcomm_message_t *message);

/* As recv, for a message of any format: data and bytes are as Python wrote them. */
int spcomm_recv_any(spcomm_t *comm, int32_t source, int32_t tag, int64_t timeout_ns,
                    spcomm_message_t *message);

/* Waits as recv does, and leaves the message in place. Out-parameters may be NULL. `bytes` counts the description of an
 * array, too. */
int spcomm_probe(spcomm_t *comm, int32_t source, int32_t tag, int64_t timeout_ns, int32_t *found_source,
                 int32_t *found_tag, size_t *bytes);

/* Sends to `dest`, then receives from `source`: two neighbours that do the same at that time do not block each other.
 * The time is for both. SPCOMM_EINVAL, SPCOMM_ERANK, SPCOMM_ETAG: nothing was sent. */
int spcomm_sendrecv(spcomm_t *comm, int32_t dest, int32_t tag, spcomm_data_t data, int32_t source,
                    int32_t recv_tag, int64_t timeout_ns, spcomm_message_t *message);

/* Moves arrived messages into the queues and sends queued ones (the paper's Receive without arguments). `waiting`,
 * which may be NULL, gets the number of messages in the queues. */
int spcomm_poll(spcomm_t *comm, uint64_t *waiting);

/* Ends a message: its memory must not be used any more. Any thread; after shutdown, too; NULL and freed ones are fine.
 */
void spcomm_message_free(spcomm_message_t *message);

/* ---- handlers of active messages ----
 * A handler takes all messages of its tag, those that are here already, too; receives of that tag are SPCOMM_ETAG, and
 * SPCOMM_ANY does not see them. It runs inside this node's calls: first in poll, probe and receives, of messages of the
 * same communicator, and in every call that waits. So it must be short. It may send, receive and compute, but a
 * collective call on a communicator whose collective call it runs in is SPCOMM_EBUSY. */

/* The message, of any format as from spcomm_recv_any, is the handler's, which ends it by spcomm_message_free. The
 * handler returns 0, or any other number to end the call in which it runs with SPCOMM_EINTERRUPTED; a collective one
 * stays entered. */
typedef int spcomm_handler_t(spcomm_t *comm, spcomm_message_t *message, void *argument);

/* Registers a handler from now on; another one for the same tag replaces it. Never waits. SPCOMM_ETAG, SPCOMM_EINVAL,
 * SPCOMM_ENOMEM. */
int spcomm_handler(spcomm_t *comm, int32_t tag, spcomm_handler_t *handler, void *argument);

/* ---- data from all, to all ----
 * Collective. Nodes may give data of any format and length, each its own. Received data are messages, to be freed by
 * spcomm_message_free: `source` is the node that gave it, tag is 0; data that only Python can read come as from
 * spcomm_recv_any. A node's own part is a copy, too. Where `messages` is an array, it has one of each node, by rank.
 * SPCOMM_ERANK: no such root, and nothing was entered. Data that cannot be given are SPCOMM_EINVAL here and
 * SPCOMM_EFAILED on all nodes that need them, once all have come. SPCOMM_EMISMATCH: another call, or another root. */

/* Sends the root's `data` to all. `data` of other nodes is ignored: spcomm_none(). On the root `message` may be
 * NULL. */
int spcomm_bcast(spcomm_t *comm, spcomm_data_t data, int32_t root, int64_t timeout_ns,
                 spcomm_message_t *message);

/* Sends each node its own of the `spcomm_size` data that the root gives. On other nodes `data` is ignored. */
int spcomm_scatter(spcomm_t *comm, const spcomm_data_t *data, int32_t root, int64_t timeout_ns,
                   spcomm_message_t *message);

/* Sends the data of all nodes to the root. On other nodes `messages` is ignored. */
int spcomm_gather(spcomm_t *comm, spcomm_data_t data, int32_t root, int64_t timeout_ns,
                  spcomm_message_t *messages);

/* Sends the data of all nodes to all. */
int spcomm_allgather(spcomm_t *comm, spcomm_data_t data, int64_t timeout_ns, spcomm_message_t *messages);

/* Every node gives `spcomm_size` data, one for each node. */
int spcomm_alltoall(spcomm_t *comm, const spcomm_data_t *data, int64_t timeout_ns,
                    spcomm_message_t *messages);

/* ---- reductions of arrays ----
 * Collective. They combine the arrays of all nodes element by element, along one fixed tree over the ranks: bit for bit
 * the same on all nodes, in every run, and as Python's calls of the same names, whose arrays they meet. `values` is an
 * array in C's order and this machine's byte order, of the same type and shape on all nodes (else SPCOMM_EMISMATCH):
 * integers wrap, floating point is NaN where any is. `result` has the length of `values`, and may be the same memory
 * but for reduce_scatter; both are aligned as their items have to be. SPCOMM_EINVAL, SPCOMM_ERANK: nothing was
 * entered. */

/* Integers and bools: all but MINLOC and MAXLOC; bools are not summed or multiplied: give int64. Floating point: the
 * same without BAND, BOR, BXOR. Complex: SUM, PROD. Simulation times: SUM, MIN, MAX. Pairs: MINLOC, MAXLOC; of equal
 * values the lower index. */
enum {
    SPCOMM_SUM = 0,
    SPCOMM_MIN = 1,
    SPCOMM_MAX = 2,
    SPCOMM_PROD = 3,
    SPCOMM_LAND = 4,
    SPCOMM_LOR = 5,
    SPCOMM_LXOR = 6,
    SPCOMM_BAND = 7,
    SPCOMM_BOR = 8,
    SPCOMM_BXOR = 9,
    SPCOMM_MINLOC = 10,
    SPCOMM_MAXLOC = 11
};

/* The combination of all: on every node; on the root (elsewhere `result` is ignored). With SUM, MIN and MAX `values`
 * may also be spcomm_int64, spcomm_float64 or spcomm_simtime, which meet Python's int, float and SimTime
 * (SPCOMM_EWIDE). */
int spcomm_allreduce(spcomm_t *comm, spcomm_data_t values, int32_t op, int64_t timeout_ns, void *result);
int spcomm_reduce(spcomm_t *comm, spcomm_data_t values, int32_t op, int32_t root, int64_t timeout_ns,
                  void *result);

/* The combination of nodes 0 to this one; without this one, and node 0 gets nothing. */
int spcomm_scan(spcomm_t *comm, spcomm_data_t values, int32_t op, int64_t timeout_ns, void *result);
int spcomm_exscan(spcomm_t *comm, spcomm_data_t values, int32_t op, int64_t timeout_ns, void *result);

/* The combination of all, divided along the first axis: node i gets counts[i] rows, after those of lower ranks. NULL:
 * as even as can be, lower ranks have one more. `result` has room for this node's rows. */
int spcomm_reduce_scatter(spcomm_t *comm, spcomm_data_t values, int32_t op, const int64_t *counts,
                          int64_t timeout_ns, void *result);

/* ---- coordinated messages (2.3) ----
 * All nodes send their messages, then all receive until a receive reports the end of the cycle; then the next cycle may
 * start. */

/* As the sends above. SPCOMM_ECYCLE after the first receive of a cycle. */
int spcomm_coordinated_send(spcomm_t *comm, int32_t dest, spcomm_data_t data, int64_t timeout_ns);
int spcomm_coordinated_send_set(spcomm_t *comm, const spcomm_destination_t *dest, spcomm_data_t data,
                                int64_t timeout_ns);
int spcomm_coordinated_send_all(spcomm_t *comm, spcomm_data_t data, int64_t timeout_ns);

/* The next message of this cycle, in no particular order (over = 0); waits while one is still on its way to this node.
 * over = 1: there is no message, all of this cycle have been handed over. SPCOMM_EFORMAT: one that only Python can
 * read; the next call gives the same, spcomm_coordinated_recv_any takes it. */
int spcomm_coordinated_recv(spcomm_t *comm, int64_t timeout_ns, spcomm_message_t *message, int *over);
int spcomm_coordinated_recv_any(spcomm_t *comm, int64_t timeout_ns, spcomm_message_t *message, int *over);

#ifdef __cplusplus
}
#endif

#endif
