/* SPDX-License-Identifier: MIT */
/*
 * spc_trace: a node's timeline: a ring of events in shared memory.
 *
 * Each node has one ring and alone writes it; all of its threads may. A full ring continues at its beginning: the
 * oldest events are overwritten, and a reader knows how many. Events have one size, a cache line, so that writing one
 * takes a look at the clock and eight stores. A run without a trace has no ring, and makes no call here: every caller
 * first checks spc_trace_t * for NULL. A process that a node has forked must not call these functions, either.
 *
 * An event may be read while others are written (a display of the run that goes on), and after its node has been
 * killed: an unfinished event is absent. A reader trusts no contents: whatever a program has written over its ring, all
 * reads stay within it, texts end, and events have kinds. Only the contents of events may be wrong.
 */
#ifndef SPC_TRACE_H
#define SPC_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/spc_atomic.h"
#include "base/spc_ticks.h"

/* X(name, number, meaning; contents of its fields). Numbers are in files: none is ever used again. */
#define SPC_TRACE_KINDS(X)                                                                         \
    X(CALL, 1, "an operation begins: `what` is its name, `place` the line; spc_comm_trace_call")   \
    X(RETURN, 2, "the thread's last operation that began has ended; `tag` says how (regions.pyx)") \
    X(SEND, 3, "a message was handed over: peer, tag, context, bytes; its number on this way")     \
    X(RECEIVE, 4, "a message was taken: the same, and the number that its sender has given it")    \
    X(WAIT, 5, "the thread waits")                                                                 \
    X(GO_ON, 6, "and no longer")                                                                   \
    X(ENTER, 7, "the program enters a region: `what` is its name")                                 \
    X(LEAVE, 8, "and leaves it")                                                                   \
    X(WORK, 9, "the operation declares computing: the bits of a double, its units, in `bytes`")    \
    X(HANDLE, 10, "within a call the program handles a message: peer, tag")                        \
    X(HANDLED, 11, "and has done so")                                                              \
    X(START, 12, "the node is live: what came before is starting, not computing")                  \
    X(CORE, 13, "the thread has waited for a core: nanoseconds, until now, in `bytes`")

typedef enum spc_trace_kind {
#define SPC_TRACE_ENUM(name, number, purpose) SPC_TRACE_##name = (number),
    SPC_TRACE_KINDS(SPC_TRACE_ENUM)
#undef SPC_TRACE_ENUM
} spc_trace_kind_t;

typedef struct spc_trace_event {
    uint64_t ticks;   /* spc_trace_now; 0, as an argument: now */
    uint8_t kind;     /* spc_trace_kind_t */
    uint16_t context; /* of a message; of a CALL, as peer, tag, bytes and number, see spc_comm_trace_call */
    int32_t peer;     /* rank in the run, of a message */
    int32_t tag;
    uint32_t what;   /* a number of spc_trace_name, or 0 */
    uint32_t place;  /* the same: "file:line"; 0: not known */
    uint32_t number; /* of a message: the first from one node to another is 1; modulo 2³² */
    uint64_t thread; /* a name: no two threads of a node have the same at one time; set by spc_trace_record */
    uint64_t bytes;
} spc_trace_event_t;

enum {
    SPC_TRACE_NAMES_MAX = 2048, /* the last one stands for all names without room */
    SPC_TRACE_NAME_BYTES = 192, /* with a zero at its end */
    SPC_TRACE_EVENT_WORDS = 6, /* ticks; kind, context, peer; tag, what; place, number; thread; bytes */
};

#define SPC_TRACE_NO_ROOM "(too many names)" /* the text of number SPC_TRACE_NAMES_MAX */

typedef struct spc_trace_slot_shared {
    /* Number of the event it holds, counted from 1. 0: it is being written. Release by the writer after the words,
     * acquire by readers before and after theirs. */
    _Atomic uint64_t stamp;
    /* Release and acquire: the stamp shows whether they belong together, and must not be older than they are. */
    _Atomic uint64_t word[SPC_TRACE_EVENT_WORDS];
    uint64_t padding;
} spc_trace_slot_shared_t;

typedef struct spc_trace_shared {
    _Atomic uint64_t begun; /* number of events, ever; relaxed: the stamps show which of them are there */
    _Atomic uint64_t capacity; /* a power of two; 0: the node has not begun. Release by spc_trace_open */
    _Atomic uint32_t names; /* release by a thread that adds one, acquire by readers */
    uint32_t are_counted; /* these three by spc_trace_open, before `capacity` */
    uint64_t begin_ticks;
    uint64_t begin_ns;
    uint32_t padding[6];
    char name[SPC_TRACE_NAMES_MAX][SPC_TRACE_NAME_BYTES];
    spc_trace_slot_shared_t slot[];
} spc_trace_shared_t;

_Static_assert(offsetof(spc_trace_shared_t, name) == 64, "spc_trace_shared_t lies in shared memory");
_Static_assert(sizeof(spc_trace_slot_shared_t) == 64, "spc_trace_slot_shared_t lies in shared memory");

/* A writer's handle: private to the process. */
typedef struct spc_trace {
    spc_trace_shared_t *shared;
    uint64_t mask;
    bool are_counted;
    /* One thread writes at a time: two could meet in one slot, a whole ring apart. Acquire when it is taken, release
     * when it is given back; it is held for a few nanoseconds. */
    _Atomic uint32_t is_busy;
} spc_trace_t;

/* Room for this many events; rounded up to a power of two. */
uint64_t spc_trace_bytes(uint64_t events);

/* Called by the node, once; `bytes` is the result of spc_trace_bytes. */
void spc_trace_open(spc_trace_t *trace, spc_trace_shared_t *shared, uint64_t bytes);

/* A value for `ticks` in an event that begins before it is recorded. */
static inline uint64_t spc_trace_now(const spc_trace_t *trace) {
    return spc_ticks_now(trace->are_counted);
}

/* spc_trace_record with an event of a few registers: writing its fields to memory and reading them back as words takes
 * the processor longer than all the rest. */
void spc_trace_record_words(spc_trace_t *trace, uint64_t ticks, uint64_t kind_context_peer, uint64_t tag_what,
                            uint64_t place_number, uint64_t bytes);

static inline uint64_t spc_trace_word(uint32_t low, uint32_t high) {
    return low | (uint64_t)high << 32;
}

/* Writes an event of this thread. Any thread of the node; some 20 ns, more than half of it the counter. */
static inline void spc_trace_record(spc_trace_t *trace, const spc_trace_event_t *event) {
    spc_trace_record_words(
        trace, event->ticks != 0 ? event->ticks : spc_trace_now(trace),
        spc_trace_word(event->kind | (uint32_t)event->context << 16, (uint32_t)event->peer),
        spc_trace_word((uint32_t)event->tag, event->what), spc_trace_word(event->place, event->number),
        event->bytes);
}

/* A number for this text, which is cut if it is too long; the same text may have several. SPC_TRACE_NAMES_MAX: there
 * are too many. One thread at a time. */
uint32_t spc_trace_name(spc_trace_t *trace, const char *text);

/* ---- readers: on the machine of the node, and after spc_trace_open, or they find nothing */

/* A reader's handle. Events recorded after spc_trace_look have times, too; the farther from it, the less exact. */
typedef struct spc_trace_reader {
    const spc_trace_shared_t *shared;
    uint64_t capacity;
    uint64_t first; /* of the events begun, the first that was not overwritten; both counted from 1 */
    uint64_t count;
    spc_ticks_anchor_t begin, end;
} spc_trace_reader_t;

/* `bytes`: of the region that holds it. A ring that cannot fit there has no events. */
void spc_trace_look(spc_trace_reader_t *reader, const spc_trace_shared_t *shared, uint64_t bytes);

/* Reads the event of this number, and its time by spc_clock. False: it is no longer there, is unfinished, or was
 * overwritten. */
bool spc_trace_read(const spc_trace_reader_t *reader, uint64_t number, spc_trace_event_t *event,
                    uint64_t *time_ns);

/* Copies the text of a number; "": there is none. */
void spc_trace_text(const spc_trace_shared_t *shared, uint32_t number, char text[SPC_TRACE_NAME_BYTES]);

#endif
