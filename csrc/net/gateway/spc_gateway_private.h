/* SPDX-License-Identifier: MIT */
/*
 * spc_gateway_private: shared parts of the gateway's files. No other file includes it.
 *
 * All of it with the gateway's lock. Ranks are the run's; of a communicator's they are called members.
 */
#ifndef SPC_GATEWAY_PRIVATE_H
#define SPC_GATEWAY_PRIVATE_H

#include <pthread.h>

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

/* How long the reading thread looks again before it sleeps: while yields are short, see base/spc_wait.h. */
#define SPC_GATEWAY_YIELDS 50
#define SPC_GATEWAY_LONG_YIELD_NS UINT64_C(100000)

/* A row of a mailbox that this gateway reads: from a node here to one elsewhere, or to the gateway itself. */
typedef struct spc_gateway_row {
    spc_mailbox_reader_t reader;
    uint32_t source;
    uint32_t destination;
    bool ready;           /* the bell has rung since it was found empty */
    uint64_t part_offset; /* of the slot, in a message that comes in parts */
    uint64_t done;        /* bytes of the slot that have been sent */
    struct spc_gateway_row *leader; /* its slot is sent along with that row's; or NULL */
    bool is_leader; /* and others are sent along with this one's */
    uint64_t
        deferred_ns; /* since when it waits for the rest of a multicast to be announced; 0: it does not */
} spc_gateway_row_t;

/* A message in parts that is on its way in. */
typedef struct spc_gateway_assembly {
    struct spc_gateway_assembly *next;
    spc_frame_t frame; /* the first part's */
    uint64_t received;
    spc_block_shared_t *block; /* in the arena of its sender here, or NULL: in memory of the gateway's */
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
    uint32_t *asked;       /* by destination: messages that ask for a receipt, so far */
    uint64_t *lent;        /* by destination: lent_bytes as sent to the source's box */
    uint32_t lenders;      /* of these, how many are not 0 */
    uint32_t state;        /* spc_node_state_t that was told of it, */
    int32_t reason;
    bool is_gone;          /* and this; */
    bool is_known;         /* it has been made known here */
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
    uint32_t size;
    uint32_t here; /* how many members are in this box */
    uint64_t boxes; /* a bit a box that has members */
    uint32_t *members; /* ranks, by member */
    spc_comm_area_t area;
    spc_block_shared_t *block; /* holds it; NULL: the run's */
    spc_reduce_t **reduce; /* by member: its half */
    uint64_t noted; /* all members here have arrived at it */
    uint64_t sent; /* and that has been sent */
    uint64_t *phase; /* by member: the last phase that was sent, or started here */
    bool *
        has_left; /* by member: has closed it; of those here: and that has been told; elsewhere: is known here */
    bool *leaves; /* by member elsewhere: has closed it, and what came before may be queued here still */
    spc_gateway_ahead_t *ahead; /* in the order in which they came */
    uint64_t ahead_bytes;
} spc_gateway_area_t;

typedef struct spc_gateway_peer spc_gateway_peer_t;
typedef struct spc_gateway_boards spc_gateway_deadlock_t; /* spc_gateway_deadlock.c */

struct spc_gateway {
    spc_gateway_options_t options;
    spc_link_deliver_t *deliver; /* what has come, over any link */
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
    int wake[2]; /* a pipe: the reading thread looks around */
    bool is_finishing;
    bool is_stopped;
    int outcome; /* SPC_EAGAIN: goes on */
    bool has_called; /* `broken`, since the last connection */
    uint32_t culprit; /* of a failure: a box */
    char sentence[SPC_GATEWAY_SENTENCE_BYTES];

    uint32_t *ranks; /* those here, then those elsewhere */
    uint32_t here;
    spc_gateway_row_t *rows;
    uint32_t row_count;
    uint64_t look_again_ns; /* rows are deferred until then; SPC_NO_DEADLINE: none is */
    uint64_t window; /* credit at first, for each node elsewhere */
    uint64_t part_bytes; /* at most so much of a message in a frame */
    uint64_t *credit; /* by rank: what may be sent to it now */
    uint64_t
        *owed; /* by box * nodes + rank: what came from that box for a node here, and was not given back */

    spc_gateway_peer_t *peers; /* by box; NULL: everything goes over `link` */
    unsigned char *peers_buffer; /* what their links read into */
    bool has_left; /* spc_gateway_route_leave */

    spc_gateway_source_t *sources; /* by rank */
    spc_gateway_watch_t *watched;
    spc_gateway_area_t *areas; /* the run's is the first */

    uint32_t *told; /* by rank here: spc_node_state_t that was told */
    uint32_t *told_notes; /* by rank and kind: the version that was */
    bool *told_gone;

    uint64_t sent_frames; /* but for those about boards */
    spc_gateway_deadlock_t *boards;
};

static inline bool spc_gateway_is_here(const spc_gateway_t *gateway, uint32_t rank) {
    return rank < gateway->nodes && spc_segment_box(&gateway->segment, rank) == gateway->box;
}

static inline bool spc_gateway_is_elsewhere(const spc_gateway_t *gateway, uint32_t rank) {
    return rank < gateway->nodes && spc_segment_box(&gateway->segment, rank) != gateway->box;
}

/* The run of this gateway ends with that outcome, if it has none yet; SPC_OK: it goes on. */
void spc_gateway_fail(spc_gateway_t *gateway, int outcome);

/* The other gateways' links first: they may go through the server. */
void spc_gateway_write_links(spc_gateway_t *gateway);

/* The reading thread looks around. */
void spc_gateway_wake_reader(const spc_gateway_t *gateway);

/* A frame with a body in one piece. It is queued, or the gateway fails: what may be queued is bounded by credit, and by
 * the few phases that can be open at once. */
void spc_gateway_send(spc_gateway_t *gateway, const spc_frame_t *frame, const void *body,
                      uint32_t length_bytes);

void spc_gateway_queue(spc_gateway_t *gateway, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                       uint32_t count);

/* ---- rows */
int spc_gateway_send_create(spc_gateway_t *gateway);
/* Sends what is there and may be sent. True: something was. */
bool spc_gateway_send_progress(spc_gateway_t *gateway);
/* Nothing of this node waits to be sent on. */
bool spc_gateway_send_are_empty(const spc_gateway_t *gateway, uint32_t source);
int spc_gateway_on_credit(spc_gateway_t *gateway, const spc_frame_t *frame);
/* By row: it waits for credit, or for the rest of a multicast. */
void spc_gateway_send_note(const spc_gateway_t *gateway, bool *is_pending);

static inline uint64_t spc_gateway_cost(uint64_t length_bytes) {
    return length_bytes + SPC_CREDIT_FRAME_COST;
}

/* ---- stand-ins */
int spc_gateway_recv_create(spc_gateway_t *gateway);
void spc_gateway_recv_destroy(spc_gateway_t *gateway);
int spc_gateway_on_message(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body);
int spc_gateway_on_receipt(spc_gateway_t *gateway, const spc_frame_t *frame);
int spc_gateway_on_lent(spc_gateway_t *gateway, const spc_frame_t *frame);
/* Announces messages that have waited, sends receipts and what is lent, gives credit back. */
bool spc_gateway_recv_progress(spc_gateway_t *gateway);
/* All messages of this node are in the rows of their receivers, and all its arrivals in its lines. */
bool spc_gateway_source_is_empty(const spc_gateway_t *gateway, uint32_t rank);
/* Something of it waits for room in the row of that node here, or for its other parts. */
bool spc_gateway_source_holds(const spc_gateway_t *gateway, uint32_t rank, uint32_t destination);
void spc_gateway_drop_assemblies(spc_gateway_t *gateway, uint32_t rank);

/* ---- communicators */
int spc_gateway_areas_create(spc_gateway_t *gateway);
void spc_gateway_areas_destroy(spc_gateway_t *gateway);
/* The first member here has sent the gateway a communicator's memory. SPC_ENOMEM. */
int spc_gateway_add_area(spc_gateway_t *gateway, uint32_t number, spc_block_shared_t *block);
/* By number and first member: parts of a communicator that was split have the same number. NULL: nobody here has it. */
spc_gateway_area_t *spc_gateway_find_area(const spc_gateway_t *gateway, uint32_t number, uint32_t first);
/* One that is in no list any more. */
void spc_gateway_destroy_area(spc_gateway_t *gateway, spc_gateway_area_t *area);
/* All arrivals that have come are in the lines of their nodes: none is ahead. */
bool spc_gateway_arrivals_are_taken(const spc_gateway_t *gateway);

/* ---- phases */
/* Phases at which all members here have arrived are noted, then sent: in between the rows make progress. */
void spc_gateway_collective_note(spc_gateway_t *gateway);
bool spc_gateway_collective_progress(spc_gateway_t *gateway);
/* Sends what this node has contributed, though others have not arrived; the server forwards it at once. */
void spc_gateway_collective_flush(spc_gateway_t *gateway, uint32_t rank);
int spc_gateway_on_arrive(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body);
int spc_gateway_on_left(spc_gateway_t *gateway, const spc_frame_t *frame);
/* Members here that have closed their communicators are told; areas that nobody here uses any more are given up. */
bool spc_gateway_areas_progress(spc_gateway_t *gateway);
/* It has closed a communicator, and that is not told yet; of one elsewhere: not made known here. */
bool spc_gateway_is_leaving(const spc_gateway_t *gateway, uint32_t rank);

/* ---- ends */
int spc_gateway_lifecycle_create(spc_gateway_t *gateway);
int spc_gateway_on_note(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body);
int spc_gateway_on_status(spc_gateway_t *gateway, const spc_frame_t *frame);
/* All nodes here are gone, and that has been told. */
bool spc_gateway_lifecycle_are_told(const spc_gateway_t *gateway);
/* Everything that can be done now, but for boards. True: something was. */
bool spc_gateway_move(spc_gateway_t *gateway);

/* ---- boards */
int spc_gateway_deadlock_create(spc_gateway_t *gateway);
void spc_gateway_deadlock_destroy(spc_gateway_t *gateway);
/* Now and then, by the thread at the event: do nodes here wait for long? True: something is to be written. */
bool spc_gateway_deadlock_look(spc_gateway_t *gateway);
uint64_t spc_gateway_deadlock_deadline_ns(const spc_gateway_t *gateway); /* of the next look */
int spc_gateway_on_board(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body);
/* Does what rounds ask for. */
bool spc_gateway_deadlock_progress(spc_gateway_t *gateway);

#endif
