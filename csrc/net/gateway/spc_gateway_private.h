/* SPDX-License-Identifier: MIT */
/*
 * spc_gateway_private: shared parts of the gateway's files. No other file includes it.
 *
 * The caller of each function holds the gateway's lock. Ranks are ranks of the run; ranks of a communicator are called
 * members.
 */
#ifndef SPC_GATEWAY_PRIVATE_H
#define SPC_GATEWAY_PRIVATE_H

#include <pthread.h>

#include "base/spc_error.h"
#include "base/spc_wait.h"
#include "comm/spc_comm_area.h"
#include "message/spc_coordinated.h"
#include "message/spc_mailbox.h"
#include "message/spc_outbox.h"
#include "message/spc_receipt.h"
#include "net/gateway/spc_gateway.h"
#include "net/wire/spc_credit.h"
#include "reduce/spc_reduce.h"
#include "segment/spc_note.h"
#include "segment/spc_segment.h"
#include "segment/spc_status.h"

/* The time for which the reading thread looks again before it sleeps, if yields are short; see base/spc_wait.h. */
#define SPC_GATEWAY_YIELDS 50
#define SPC_GATEWAY_LONG_YIELD_NS UINT64_C(100000)

/* A row of a mailbox that this gateway reads: from a node here to one elsewhere, or to the gateway itself. */
typedef struct spc_gateway_row {
    spc_mailbox_reader_t reader;
    uint32_t source;
    uint32_t destination;
    bool ready;           /* the doorbell has rung since the row was found empty */
    uint64_t done;        /* bytes of the slot that have been sent */
    struct spc_gateway_row *leader; /* its slot is sent along with that row's slot; or NULL */
    bool is_leader; /* other rows' slots are sent along with this one's */
    uint64_t deferred_ns; /* start of its wait for the rest of a multicast to be announced; 0: no wait */
} spc_gateway_row_t;

/* A message in parts that is on its way in. */
typedef struct spc_gateway_assembly {
    struct spc_gateway_assembly *next;
    spc_frame_t frame; /* the first part's */
    uint64_t received;
    spc_block_shared_t *block; /* in the arena of its sender here, or NULL: in the gateway's memory */
    unsigned char *bytes;
    uint32_t count;
    int32_t destinations[];
} spc_gateway_assembly_t;

/* A receipt that a node here has not given yet. */
typedef struct spc_gateway_watch {
    struct spc_gateway_watch *next;
    uint32_t source;
    uint32_t destination;
    uint32_t number;
} spc_gateway_watch_t;

/* A node elsewhere: this gateway is its sender here. */
typedef struct spc_gateway_source {
    spc_outbox_t *outbox;
    spc_gateway_assembly_t *assemblies;
    uint32_t *asked;       /* by destination: number of messages so far that ask for a receipt */
    uint64_t *lent;        /* by destination: lent_bytes as last sent to the source's box */
    uint32_t lenders;      /* how many of these are not 0 */
    uint32_t state;        /* the last spc_node_state_t reported of it, */
    int32_t reason;
    bool is_gone;          /* and whether it was reported gone; */
    bool is_known;         /* made known here */
} spc_gateway_source_t;

/* Arrivals at a phase whose bank is still in use here. */
typedef struct spc_gateway_ahead {
    struct spc_gateway_ahead *next;
    spc_frame_t frame;
    _Alignas(8) unsigned char body[];
} spc_gateway_ahead_t;

/* A communicator that has members here and elsewhere. */
typedef struct spc_gateway_area {
    struct spc_gateway_area *next;
    uint32_t number;
    uint32_t generation;
    uint32_t size;
    uint32_t here; /* how many members are in this box */
    uint64_t boxes; /* a bit for each box with members */
    uint32_t *members; /* ranks, by member */
    spc_comm_area_t area;
    spc_block_shared_t *block; /* holds it; NULL: the run's */
    spc_reduce_t **reduce; /* by member: its half */
    uint64_t noted; /* last phase at which all members here have arrived */
    uint64_t sent; /* last such phase that was sent */
    uint64_t *phase; /* by member: the last phase that was sent, or started here */
    bool *has_left; /* by member: has closed it; here: announced; elsewhere: known here */
    bool *leaves; /* by member elsewhere: has closed it, but earlier messages may still be queued here */
    spc_gateway_ahead_t *ahead; /* in order of arrival */
    uint64_t ahead_bytes;
} spc_gateway_area_t;

/* The route to another gateway; see spc_gateway.c. */
typedef enum spc_gateway_way {
    SPC_GATEWAY_UNDECIDED,
    SPC_GATEWAY_DIRECT,
    SPC_GATEWAY_RELAYED
} spc_gateway_way_t;

typedef struct spc_gateway_held {
    struct spc_gateway_held *next;
    spc_frame_t frame;
    unsigned char body[];
} spc_gateway_held_t;

typedef struct spc_gateway_peer {
    spc_gateway_t *gateway;
    uint32_t box;
    spc_gateway_way_t way;
    spc_gateway_held_t *first, *last; /* frames that wait for the choice */
    spc_link_t *link;     /* SPC_GATEWAY_DIRECT; else NULL */
    bool is_wanted; /* leader: a connection is to be made, and its maker has not been asked for it yet */
    bool is_awaited; /* its maker has been asked */
    bool is_over; /* LEAVES has come */
    uint32_t connection; /* leader: the last one asked for; follower: the last one handed in */
    char address[SPC_GATEWAY_ADDRESS_BYTES]; /* its address; empty: not known, or nowhere */
} spc_gateway_peer_t;

typedef struct spc_gateway_boards spc_gateway_deadlock_t; /* spc_gateway_deadlock.c */

struct spc_gateway {
    spc_gateway_options_t options;
    spc_link_deliver_t *deliver; /* takes the frames of every link */
    spc_segment_t segment;
    const spc_config_t *config;
    uint32_t nodes;
    uint32_t box;
    spc_status_shared_t *status;
    spc_event_shared_t *events;
    spc_event_shared_t *event; /* the gateway's */
    spc_waiter_t waiter;

    pthread_mutex_t lock;
    spc_link_t *link;
    pthread_t reader;
    int wake[2]; /* a pipe: wakes the reading thread */
    bool is_napping; /* the reading thread is between two looks at links without a descriptor */
    bool is_finishing;
    bool is_stopped;
    int outcome; /* SPC_EAGAIN: goes on */
    bool has_called; /* whether `broken` was called since the last connection */
    int32_t culprit; /* after a failure: the box at fault, or SPC_STATUS_SERVER */
    char sentence[SPC_GATEWAY_SENTENCE_BYTES];

    uint32_t *ranks; /* the nodes here, then those elsewhere */
    uint32_t here;
    spc_gateway_row_t *rows;
    uint32_t row_count;
    uint64_t look_again_ns; /* deferred rows wait until then; SPC_NO_DEADLINE: no row is deferred */
    uint64_t window; /* initial credit for each node elsewhere */
    uint64_t part_bytes; /* the longest part of a message in one frame */
    uint64_t *credit; /* by rank: bytes that may be sent to it now */
    uint64_t *owed; /* by box * nodes + rank: bytes from that box for a node here, not given back yet */

    spc_gateway_peer_t *peers; /* by box; NULL: everything goes over `link` */
    unsigned char *peers_buffer; /* buffer that their links read into */
    bool has_left; /* the others have been told that this gateway leaves */

    spc_gateway_source_t *sources; /* by rank */
    spc_gateway_watch_t *watched;
    spc_gateway_area_t *areas; /* the run's is the first */

    uint64_t gone; /* boxes all of whose nodes are gone, as they have announced; a mask, like the next two */
    uint64_t told_shutdown; /* boxes that get no more messages from here */
    uint64_t shutdown; /* boxes from which no more messages come */
    uint32_t *told; /* by rank here: the last spc_node_state_t announced */
    uint32_t *told_notes; /* by rank and kind: the last version announced */
    bool *told_gone;

    uint64_t sent_frames; /* except frames about boards */
    spc_gateway_deadlock_t *boards;
};

static inline bool spc_gateway_is_here(const spc_gateway_t *gateway, uint32_t rank) {
    return rank < gateway->nodes && spc_segment_box(&gateway->segment, rank) == gateway->box;
}

/* Written here for ranks elsewhere: what this gateway drops of their messages, and of messages for them. */
static inline spc_note_shared_t *spc_gateway_notes(const spc_gateway_t *gateway, uint32_t rank) {
    return spc_segment_part(&gateway->segment, SPC_REGION_NOTE, rank);
}

static inline bool spc_gateway_is_elsewhere(const spc_gateway_t *gateway, uint32_t rank) {
    return rank < gateway->nodes && spc_segment_box(&gateway->segment, rank) != gateway->box;
}

/* Ends the run of this gateway with that outcome, if it has none yet; SPC_OK: it goes on. */
static inline void spc_gateway_fail(spc_gateway_t *gateway, int outcome) {
    if (outcome != SPC_OK && gateway->outcome == SPC_EAGAIN) {
        gateway->outcome = outcome;
    }
}

/* ---- traffic */

int spc_gateway_traffic_create(spc_gateway_t *gateway);
void spc_gateway_traffic_destroy(spc_gateway_t *gateway);

/* Does all that can be done now, except for boards, in the required order: ends last. True: something was done. */
bool spc_gateway_traffic_progress(spc_gateway_t *gateway);

/* Takes a frame of another gateway, except ROUTE, BOARD and FAIL. SPC_EINVAL: it makes no sense. */
int spc_gateway_traffic_take(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body);

/* Announces to these boxes, a bit each, that no more messages come. */
void spc_gateway_shut_down(spc_gateway_t *gateway, uint64_t boxes);

/* Queues a frame with a body in one piece, or fails the gateway: the queue is bounded by credit, and by the few phases
 * that can be open at once. */
void spc_gateway_send(spc_gateway_t *gateway, const spc_frame_t *frame, const void *body,
                      uint32_t length_bytes);

/* Queues a frame for that box: by its route, or until that is chosen. */
int spc_gateway_queue_to(spc_gateway_t *gateway, uint32_t box, const spc_frame_t *frame,
                         const spc_frame_piece_t *pieces, uint32_t count);

/* Parts of these, for tests. Sends messages that are there and may be sent. True: something was sent. */
bool spc_gateway_send_progress(spc_gateway_t *gateway);
/* True: no message of this node waits to be forwarded. */
bool spc_gateway_send_are_empty(const spc_gateway_t *gateway, uint32_t source);
int spc_gateway_on_message(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body);

/* ---- boards */

int spc_gateway_deadlock_create(spc_gateway_t *gateway);
void spc_gateway_deadlock_destroy(spc_gateway_t *gateway);
/* Called now and then by the thread at the event: do nodes here wait for long? True: something is to be written.
 * `next_ns`: time of the next look. */
bool spc_gateway_deadlock_look(spc_gateway_t *gateway, uint64_t *next_ns);
int spc_gateway_on_board(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body);
/* Does the steps that a round requires. True: something was done. */
bool spc_gateway_deadlock_progress(spc_gateway_t *gateway);

#endif
