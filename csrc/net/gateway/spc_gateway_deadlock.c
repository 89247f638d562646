/* SPDX-License-Identifier: MIT */
/*
 * Deadlocks over several boxes: gateways exchange status boards to prove them.
 *
 * A round. The judge asks all boxes. Each box reads the boards of its nodes, forwards the messages that these have left
 * behind, and then sends a mark to each other box. Once the marks of all other boxes have come, it reads the boards
 * again, and reports to the judge the nodes whose boards are the same. Frames keep their order, so a message that a
 * node had sent before the first reading of its board reaches the receiver's box before the second reading there: it
 * has changed a board there, or is reported as on its way. docs/internals/deadlock.md gives the argument.
 */
#include "net/gateway/spc_gateway_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/spc_comm.h"
#include "diagnose/spc_deadlock.h"
#include "segment/spc_board.h"

#define SPC_GATEWAY_LOOK_NS UINT64_C(60000000) /* interval between two looks at the boards here */

/* Kinds of BOARD frames, in their tags. `offset` is the number of the round, `source` the box that sends it. */
typedef enum spc_gateway_board_tag {
    SPC_GATEWAY_BOARD_WANT, /* to the judge: some node waits for long here */
    SPC_GATEWAY_BOARD_ASK, /* by the judge: a round begins; total_bytes: a bit for each box that takes part */
    SPC_GATEWAY_BOARD_MARK, /* context: the judge's box */
    SPC_GATEWAY_BOARD_WAIT, /* to the judge: a claim of node `context` */
    /* To the judge: which members have arrived at which phase; context: the communicator, total_bytes: its first
     * member, and from bit 32 on its generation. */
    SPC_GATEWAY_BOARD_TABLE,
    SPC_GATEWAY_BOARD_DONE, /* to the judge: end of report; total_bytes: 1: nothing sent since its mark */
} spc_gateway_board_tag_t;

/* A node that waits. On the wire `received` of a pair is SPC_GATEWAY_CLAIM_…, and `lines_offset` the generation of
 * the communicator at a phase of which it waits. */
typedef struct spc_gateway_claim {
    spc_board_entry_t entry;
    spc_board_pair_t pair[]; /* of each node, and of the gateway */
} spc_gateway_claim_t;

enum {
    SPC_GATEWAY_CLAIM_ABSENT = 1, /* the other node has not arrived at the phase, as known in this box */
    SPC_GATEWAY_CLAIM_COMING = 2, /* the gateway here holds something from the other node, for this one */
};

typedef struct spc_gateway_table_row {
    uint32_t rank;
    uint32_t padding;
    uint64_t last; /* last phase at which it arrived */
} spc_gateway_table_row_t;

typedef struct spc_gateway_done {
    uint64_t told[SPC_NODES_MAX / 64]; /* a bit a rank: all nodes of this box know of its end */
    uint64_t leaving[SPC_NODES_MAX / 64]; /* is_leaving */
} spc_gateway_done_t;

_Static_assert(sizeof(spc_gateway_claim_t) == 936, "it travels between machines");
_Static_assert(sizeof(spc_gateway_table_row_t) == 16, "it travels between machines");

/* Reported state of the members of a communicator in one box. */
typedef struct spc_gateway_table {
    struct spc_gateway_table *next;
    uint32_t number;
    uint32_t first;
    uint32_t generation;
    uint32_t count;
    spc_gateway_table_row_t row[];
} spc_gateway_table_t;

/* State of the judge. */
typedef struct spc_gateway_judge {
    uint64_t round; /* number of its last round */
    uint64_t boxes; /* boxes that take part */
    uint64_t done; /* those of them that have reported */
    bool is_on;
    bool is_wanted; /* another round */
    bool is_quiet; /* no box has sent anything since its mark */
    uint64_t earliest_ns; /* when the next round may begin */
    spc_gateway_claim_t **claims; /* by rank, or NULL */
    spc_gateway_table_t *tables;
    spc_gateway_done_t all; /* told: in all boxes; leaving: in some */
    spc_segment_t together; /* all boards; made when first needed */
    spc_deadlock_t *deadlock; /* the detectors of `together` */
    spc_deadlock_t *vain;
    uint64_t told_vain; /* as of `waits_in` */
    spc_gateway_proof_t proof;
} spc_gateway_judge_t;

struct spc_gateway_boards {
    spc_deadlock_t *deadlock; /* the detector of the boards here */
    uint64_t look_ns; /* time of the next look */
    uint64_t want_ns; /* not before this time, unless something has changed */
    uint64_t pause_ns; /* doubles */
    uint64_t seen; /* result of the last look, as a number */
    uint32_t wanted_of; /* the box that was asked for a round, since its last one; or SPC_BOXES_MAX */

    uint32_t judge_box; /* of the round that this box takes part in */
    uint64_t round;
    uint64_t boxes;
    enum { SPC_GATEWAY_ROUND_NONE, SPC_GATEWAY_ROUND_ASKED, SPC_GATEWAY_ROUND_MARKED } stage;
    struct {
        uint64_t round;
        uint32_t judge_box;
    } mark[SPC_BOXES_MAX]; /* the last mark received, by box */
    uint64_t sent_frames; /* by the gateway, when it sent the mark */
    size_t claim_bytes;
    unsigned char *first; /* claims of the nodes here, at the first reading, */
    bool *is_claimed; /* whether there are any */
    bool *is_leaving; /* at the first reading */
    bool *is_pending; /* by row, at the first reading */

    spc_gateway_judge_t judge;
};

static bool has_bit(const uint64_t *bits, uint32_t rank) {
    return (bits[rank / 64] >> rank % 64 & 1) != 0;
}

static void set_bit(uint64_t *bits, uint32_t rank) {
    bits[rank / 64] |= UINT64_C(1) << rank % 64;
}

/* Boxes with a node that is not gone, a bit each, as far as is known here. */
static uint64_t boxes_left(const spc_gateway_t *gateway) {
    uint64_t boxes = 0;
    for (uint32_t rank = 0; rank < gateway->nodes; rank++) {
        if (!spc_status_is_gone(gateway->status, rank)) {
            boxes |= UINT64_C(1) << spc_segment_box(&gateway->segment, rank);
        }
    }
    return boxes;
}

/* Makes this box take part in a round from now on. */
static void join_round(spc_gateway_t *gateway, uint32_t judge_box, uint64_t round, uint64_t boxes) {
    spc_gateway_deadlock_t *boards = gateway->boards;
    boards->judge_box = judge_box;
    boards->round = round;
    boards->boxes = boxes;
    boards->stage = SPC_GATEWAY_ROUND_ASKED;
    boards->wanted_of = SPC_BOXES_MAX;
    boards->want_ns = spc_clock_now_ns() + boards->pause_ns; /* the round serves this box, too */
}

/* One number for several; never 0. */
static uint64_t mix(uint64_t numbers, uint64_t number) {
    return (numbers ^ number) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

/* ---- the judge: the boards of all boxes together */

#define BOX_NS UINT64_C(4000000) /* a round costs as many frames as there are pairs of boxes */

/*
 * The boards of all boxes together, as input for the detector of one box.
 *
 * They are copied into a separate segment that no node attaches. It looks like that of a run of one box, with the
 * boards of the nodes that no box has reason to strike out, lines that show which members have arrived, and empty
 * mailboxes. Messages on their way between boxes appear on the boards as queued at their senders.
 */

static void forget_round(spc_gateway_t *gateway) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    for (uint32_t rank = 0; judge->claims != NULL && rank < gateway->nodes; rank++) {
        free(judge->claims[rank]);
        judge->claims[rank] = NULL;
    }
    while (judge->tables != NULL) {
        spc_gateway_table_t *table = judge->tables;
        judge->tables = table->next;
        free(table);
    }
}

static void destroy_judge(spc_gateway_t *gateway) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    forget_round(gateway);
    free(judge->claims);
    spc_deadlock_destroy(judge->deadlock);
    spc_deadlock_destroy(judge->vain);
    spc_segment_detach(&judge->together);
}

/* ---- rounds of the judge */

static void begin(spc_gateway_t *gateway, uint64_t boxes) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    forget_round(gateway);
    judge->is_wanted = false;
    judge->is_on = judge->is_quiet = true;
    judge->boxes = boxes;
    judge->done = 0;
    memset(&judge->all, 0, sizeof(judge->all));
    memset(judge->all.told, 0xff, sizeof(judge->all.told));
    judge->earliest_ns = spc_clock_now_ns() + SPC_GATEWAY_LOOK_NS / 2 + BOX_NS * gateway->config->boxes;
    const spc_frame_t frame = {.kind = SPC_FRAME_BOARD,
                               .flags = SPC_FRAME_OTHERS,
                               .source = (uint16_t)gateway->box,
                               .tag = SPC_GATEWAY_BOARD_ASK,
                               .total_bytes = boxes,
                               .offset = ++judge->round};
    spc_gateway_send(gateway, &frame, NULL, 0);
    join_round(gateway, gateway->box, judge->round, boxes);
}

/* Begins a round if it may; gives up a round that waits for a box which has ended. True: something is to be sent. */
static bool try_to_begin(spc_gateway_t *gateway) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    const uint64_t boxes = boxes_left(gateway);
    const bool has_lost = (judge->boxes & ~boxes) != 0; /* its gateway may have ended, and never answers */
    if (judge->proof != SPC_GATEWAY_PROVEN_NOTHING || (judge->is_on && !has_lost)
        || (boxes >> gateway->box & 1) == 0 || spc_clock_now_ns() < judge->earliest_ns) {
        return false;
    }
    begin(gateway, boxes);
    return true;
}

/* ---- the segment */

static int make_segment(spc_gateway_t *gateway) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    spc_config_t config = {.nodes = gateway->nodes,
                           .features = gateway->config->features,
                           .slots = 1,
                           .ring_bytes = 1024 + gateway->nodes * sizeof(spc_reduce_line_shared_t),
                           .arena_bytes = 1,
                           .scratch_bytes = 256,
                           .queue_limit_bytes = 1024,
                           .boxes = 1};
    spc_segment_plan_t plan;
    uint64_t size_bytes;
    int descriptor;
    int status = spc_comm_plan(&config, &plan);
    status = status == SPC_OK ? spc_segment_create(&plan, &descriptor, &size_bytes) : status;
    if (status != SPC_OK) {
        return status;
    }
    status = spc_segment_attach(&judge->together, descriptor);
    close(descriptor);
    status = status == SPC_OK ? spc_deadlock_create(&judge->together, &judge->deadlock) : status;
    status = status == SPC_OK ? spc_deadlock_create(&judge->together, &judge->vain) : status;
    if (status != SPC_OK) {
        spc_deadlock_destroy(judge->deadlock);
        judge->deadlock = NULL;
        spc_segment_detach(&judge->together);
        return status;
    }
    spc_deadlock_find_vain(judge->vain);
    return SPC_OK;
}

/* A node that this box takes for absent may have arrived in its own box, which reports so once all nodes there have. */
static bool has_arrived(const spc_gateway_judge_t *judge, const spc_gateway_claim_t *claim, uint32_t first,
                        uint32_t rank) {
    for (const spc_gateway_table_t *table = judge->tables; table != NULL; table = table->next) {
        const bool is_its = table->number == claim->entry.communicator && table->first == first
                            && table->generation == claim->entry.lines_offset;
        for (uint32_t i = 0; is_its && i < table->count; i++) {
            if (table->row[i].rank == rank) {
                return table->row[i].last >= claim->entry.phase;
            }
        }
    }
    return false;
}

/* The first member of the communicator that the wait is about: `needed` names it, unless that is the node itself. */
static uint32_t first_of(const spc_gateway_t *gateway, const spc_gateway_claim_t *claim, uint32_t rank) {
    for (uint32_t other = 0; other < gateway->nodes; other++) {
        if (claim->pair[other].needed == 1) {
            return other;
        }
    }
    return rank;
}

/* Lists the members that have arrived at the phase, in lines that take the place of this node's ring. */
static void write_lines(const spc_gateway_t *gateway, uint32_t rank, const spc_gateway_claim_t *claim,
                        spc_reduce_line_shared_t *lines) {
    const uint32_t first = first_of(gateway, claim, rank);
    for (uint32_t other = 0; other < gateway->nodes; other++) {
        const spc_board_pair_t *pair = &claim->pair[other];
        if (pair->needed != 0) {
            const bool arrived = (pair->received & SPC_GATEWAY_CLAIM_ABSENT) == 0
                                 || has_arrived(&gateway->boards->judge, claim, first, other);
            /* Relaxed: this thread alone reads it. */
            atomic_store_explicit(&lines[pair->needed - 1].phase, arrived ? claim->entry.phase : 0,
                                  memory_order_relaxed);
        }
    }
}

static void publish(spc_gateway_t *gateway, uint32_t rank, spc_gateway_claim_t *claim) {
    const spc_segment_t *together = &gateway->boards->judge.together;
    const spc_event_shared_t *events = spc_segment_part(together, SPC_REGION_EVENT, 0);
    spc_reduce_line_shared_t *lines = spc_segment_part(together, SPC_REGION_RING, rank);
    spc_board_entry_t *entry = &claim->entry;
    if (spc_board_is_phase(entry)) {
        write_lines(gateway, rank, claim, lines);
    } else if (entry->kind == SPC_BOARD_RECEIPT) {
        entry->phase = 0; /* the first receipt, which is not given while all is zero */
    }
    entry->lines_offset = spc_segment_offset(together, lines);
    entry->epoch = spc_status_epoch(spc_segment_part(together, SPC_REGION_STATUS, 0));
    /* Relaxed: this thread alone raises it. */
    entry->word = atomic_load_explicit(&events[rank].word, memory_order_relaxed);
    for (uint32_t other = 0; other <= gateway->nodes; other++) {
        claim->pair[other].received = 0;
    }
    spc_board_publish(spc_segment_part(together, SPC_REGION_BOARD, rank), entry, claim->pair,
                      gateway->nodes + 1);
}

/* ---- judging */

/* A message that a gateway holds from one node for another counts as queued at its sender. */
static void move_what_is_coming(const spc_gateway_t *gateway) {
    spc_gateway_claim_t *const *claims = gateway->boards->judge.claims;
    for (uint32_t rank = 0; rank < gateway->nodes; rank++) {
        for (uint32_t from = 0; claims[rank] != NULL && from < gateway->nodes; from++) {
            if (claims[from] != NULL && (claims[rank]->pair[from].received & SPC_GATEWAY_CLAIM_COMING) != 0) {
                claims[from]->pair[rank].queued++;
            }
        }
    }
}

/* Whether the detector may look at the node's wait. A node that closes a communicator ends waits of others when they
 * learn of it; and room may still be on its way while there are frames. */
static bool is_to_be_judged(const spc_gateway_judge_t *judge, uint32_t rank) {
    const spc_gateway_claim_t *claim = judge->claims[rank];
    return claim != NULL && !has_bit(judge->all.leaving, rank) && !has_bit(judge->all.told, rank)
           && (claim->entry.kind != SPC_BOARD_SEND || judge->is_quiet);
}

static void put_together(spc_gateway_t *gateway) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    move_what_is_coming(gateway);
    for (uint32_t rank = 0; rank < gateway->nodes; rank++) {
        spc_board_shared_t *board = spc_segment_part(&judge->together, SPC_REGION_BOARD, rank);
        if (spc_board_is_stuck(spc_board_stuck(board))) { /* in the last round */
            spc_board_retract(board);
        }
        if (has_bit(judge->all.told, rank)) {
            spc_comm_mark_ending(&judge->together, rank, SPC_NODE_FINISHED, 0);
        }
    }
    for (uint32_t rank = 0; rank < gateway->nodes; rank++) {
        if (is_to_be_judged(judge, rank)) {
            publish(gateway, rank, judge->claims[rank]);
        }
    }
}

static bool has_claims(const spc_gateway_t *gateway) {
    bool has = false;
    for (uint32_t rank = 0; rank < gateway->nodes && !has; rank++) {
        has = gateway->boards->judge.claims[rank] != NULL;
    }
    return has;
}

/* Makes the proof available: a reader of the boards then finds only nodes whose wait is proven to last. */
static void give_proof(spc_gateway_t *gateway, const spc_deadlock_t *deadlock) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    for (uint32_t rank = 0; rank < gateway->nodes; rank++) {
        spc_board_shared_t *board = spc_segment_part(&judge->together, SPC_REGION_BOARD, rank);
        if (!spc_deadlock_has(deadlock, rank) && spc_board_is_stuck(spc_board_stuck(board))) {
            spc_board_retract(board);
        }
    }
    judge->proof = deadlock == judge->vain ? SPC_GATEWAY_PROVEN_VAIN : SPC_GATEWAY_PROVEN_DEADLOCK;
    if (gateway->options.blocked != NULL) {
        gateway->options.blocked(gateway->options.argument);
    }
}

/* Returns which nodes the detector has proven to wait, and since when, as one number. */
static uint64_t waits_in(const spc_gateway_t *gateway, const spc_deadlock_t *deadlock) {
    uint64_t waits = 0;
    for (uint32_t rank = 0; rank < gateway->nodes; rank++) {
        if (spc_deadlock_has(deadlock, rank)) {
            waits = mix(waits, gateway->boards->judge.claims[rank]->entry.since_ns + rank);
        }
    }
    return waits;
}

/* Two rounds in a row have to find the same nodes, just as two looks have to in one box. Waits in vain are given once:
 * the rounds go on after them. */
static void judge_all(spc_gateway_t *gateway) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    judge->is_on = false;
    if (judge->deadlock == NULL && (!has_claims(gateway) || make_segment(gateway) != SPC_OK)) {
        return; /* nothing to prove; or no memory to prove it, which is no reason to fail a run */
    }
    put_together(gateway);
    const bool is_deadlock = spc_deadlock_look(judge->deadlock) != 0;
    const bool is_vain = spc_deadlock_look(judge->vain) != 0;
    const uint64_t waits = waits_in(gateway, judge->vain);
    if (is_deadlock) {
        give_proof(gateway, judge->deadlock);
    } else if (is_vain && waits != judge->told_vain) {
        judge->told_vain = waits;
        give_proof(gateway, judge->vain);
    } else if (spc_deadlock_suspects(judge->deadlock) != 0
               || (spc_deadlock_suspects(judge->vain) != 0 && !is_vain)) {
        judge->is_wanted = true;
    }
    forget_round(gateway);
}

spc_gateway_proof_t spc_gateway_blocked(spc_gateway_t *gateway, const spc_segment_t **together) {
    pthread_mutex_lock(&gateway->lock);
    const spc_gateway_proof_t proof = gateway->boards->judge.proof;
    pthread_mutex_unlock(&gateway->lock);
    *together = &gateway->boards->judge.together;
    return proof;
}

void spc_gateway_go_on(spc_gateway_t *gateway) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    pthread_mutex_lock(&gateway->lock);
    if (judge->proof == SPC_GATEWAY_PROVEN_VAIN) {
        judge->proof = SPC_GATEWAY_PROVEN_NOTHING;
    }
    pthread_mutex_unlock(&gateway->lock);
}

/* ---- reports of the boxes */

static int take_claim(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    const uint32_t rank = frame->context;
    if (rank >= gateway->nodes || spc_segment_box(&gateway->segment, rank) != frame->source
        || frame->length_bytes != gateway->boards->claim_bytes || judge->claims[rank] != NULL) {
        return SPC_EINVAL;
    }
    judge->claims[rank] = malloc(gateway->boards->claim_bytes);
    if (judge->claims[rank] == NULL) {
        return SPC_ENOMEM;
    }
    memcpy(judge->claims[rank], body, gateway->boards->claim_bytes);
    spc_board_entry_t *entry = &judge->claims[rank]->entry;
    entry->file[SPC_BOARD_FILE_BYTES - 1] = '\0';
    entry->function[SPC_BOARD_FUNCTION_BYTES - 1] = '\0';
    entry->more[SPC_BOARD_MORE_BYTES - 1] = '\0';
    bool is_sane =
        entry->kind <= SPC_BOARD_GATHERING && entry->size <= gateway->nodes && entry->rank < entry->size;
    for (uint32_t other = 0; other <= gateway->nodes; other++) {
        is_sane = is_sane && judge->claims[rank]->pair[other].needed <= gateway->nodes;
    }
    return is_sane ? SPC_OK : SPC_EINVAL;
}

static int take_table(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    const uint32_t count = frame->length_bytes / (uint32_t)sizeof(spc_gateway_table_row_t);
    if (frame->length_bytes != count * sizeof(spc_gateway_table_row_t) || count > gateway->nodes) {
        return SPC_EINVAL;
    }
    spc_gateway_table_t *table = malloc(sizeof(*table) + frame->length_bytes);
    if (table == NULL) {
        return SPC_ENOMEM;
    }
    *table = (spc_gateway_table_t){.next = judge->tables,
                                   .number = frame->context,
                                   .first = (uint32_t)frame->total_bytes,
                                   .generation = (uint32_t)(frame->total_bytes >> 32),
                                   .count = count};
    memcpy(table->row, body, frame->length_bytes);
    judge->tables = table;
    return SPC_OK;
}

static int take_done(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    spc_gateway_judge_t *judge = &gateway->boards->judge;
    spc_gateway_done_t done;
    if (frame->length_bytes != sizeof(done)) {
        return SPC_EINVAL;
    }
    memcpy(&done, body, sizeof(done));
    for (uint32_t i = 0; i < SPC_NODES_MAX / 64; i++) {
        judge->all.told[i] &= done.told[i];
        judge->all.leaving[i] |= done.leaving[i];
    }
    judge->is_quiet = judge->is_quiet && frame->total_bytes != 0;
    judge->done |= UINT64_C(1) << frame->source;
    if ((judge->boxes & ~judge->done) == 0) {
        judge_all(gateway);
    }
    return SPC_OK;
}

/* Takes WAIT, TABLE, DONE, also from this box. SPC_EINVAL: it makes no sense; SPC_ENOMEM. */
static int take_report(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    const spc_gateway_judge_t *judge = &gateway->boards->judge;
    if (!judge->is_on || frame->offset != judge->round) {
        return SPC_OK; /* from a round that was given up */
    }
    switch (frame->tag) {
    case SPC_GATEWAY_BOARD_WAIT:
        return take_claim(gateway, frame, body);
    case SPC_GATEWAY_BOARD_TABLE:
        return take_table(gateway, frame, body);
    default:
        return take_done(gateway, frame, body);
    }
}

/* ---- one box */

#define PAUSE_MOST_NS UINT64_C(960000000) /* nothing has changed: a round a second */

/* One box's part in proving a deadlock: looking for nodes that wait for long, and reading their boards twice. */

int spc_gateway_deadlock_create(spc_gateway_t *gateway) {
    spc_gateway_deadlock_t *boards = calloc(1, sizeof(*boards));
    if (boards == NULL) {
        return SPC_ENOMEM;
    }
    gateway->boards = boards;
    boards->wanted_of = SPC_BOXES_MAX;
    boards->claim_bytes = sizeof(spc_gateway_claim_t) + (gateway->nodes + 1) * sizeof(spc_board_pair_t);
    boards->first = calloc(gateway->here + 1, boards->claim_bytes); /* one more, for the second reading */
    boards->is_claimed = calloc(gateway->here, sizeof(bool));
    boards->is_leaving = calloc(gateway->here, sizeof(bool));
    boards->is_pending = calloc(gateway->row_count, sizeof(bool));
    boards->judge.claims = calloc(gateway->nodes, sizeof(*boards->judge.claims));
    const bool has_all = boards->first != NULL && boards->is_claimed != NULL && boards->is_leaving != NULL
                         && boards->is_pending != NULL && boards->judge.claims != NULL;
    return has_all ? spc_deadlock_create(&gateway->segment, &boards->deadlock) : SPC_ENOMEM;
}

void spc_gateway_deadlock_destroy(spc_gateway_t *gateway) {
    spc_gateway_deadlock_t *boards = gateway->boards;
    if (boards == NULL) {
        return;
    }
    destroy_judge(gateway);
    spc_deadlock_destroy(boards->deadlock);
    free(boards->first);
    free(boards->is_claimed);
    free(boards->is_leaving);
    free(boards->is_pending);
    free(boards);
}

/* ---- looking */

/* Returns which nodes here certainly wait, and since when, as one number; 0: none. */
static uint64_t see(const spc_gateway_t *gateway) {
    uint64_t seen = 0;
    for (uint32_t i = 0; i < gateway->here; i++) {
        const spc_board_shared_t *board =
            spc_segment_part(&gateway->segment, SPC_REGION_BOARD, gateway->ranks[i]);
        const uint32_t stuck = spc_board_stuck(board);
        spc_board_entry_t entry;
        if (spc_board_is_stuck(stuck) && spc_board_read(board, stuck, &entry) && entry.doubts == 0) {
            seen = mix(seen, entry.since_ns + i);
        }
    }
    return seen;
}

/* The judge is in the first box that has nodes. A box that has asked it for a round stays silent until its next
 * round. */
static bool want(spc_gateway_t *gateway) {
    spc_gateway_deadlock_t *boards = gateway->boards;
    const uint64_t boxes = boxes_left(gateway);
    const uint32_t judge_box = boxes == 0 ? gateway->box : (uint32_t)__builtin_ctzll(boxes);
    if (judge_box == gateway->box) {
        boards->judge.is_wanted = true;
        return try_to_begin(gateway);
    }
    if (boards->wanted_of == judge_box) {
        return false;
    }
    const spc_frame_t frame = {.kind = SPC_FRAME_BOARD,
                               .source = (uint16_t)gateway->box,
                               .destination = (uint16_t)judge_box,
                               .tag = SPC_GATEWAY_BOARD_WANT};
    spc_gateway_send(gateway, &frame, NULL, 0);
    boards->wanted_of = judge_box;
    return true;
}

bool spc_gateway_deadlock_look(spc_gateway_t *gateway, uint64_t *next_ns) {
    spc_gateway_deadlock_t *boards = gateway->boards;
    const uint64_t now_ns = spc_clock_now_ns();
    const bool is_early = now_ns < boards->look_ns;
    boards->look_ns = is_early ? boards->look_ns : now_ns + SPC_GATEWAY_LOOK_NS;
    *next_ns = boards->look_ns;
    if (is_early) {
        return false;
    }
    const bool begins = boards->judge.is_wanted && try_to_begin(gateway);
    const uint64_t seen = see(gateway);
    if (seen != boards->seen) {
        boards->seen = seen;
        boards->want_ns = now_ns;
        boards->pause_ns = SPC_GATEWAY_LOOK_NS / 2;
    }
    if (seen == 0 || now_ns < boards->want_ns) {
        return begins;
    }
    boards->pause_ns = boards->pause_ns * 2 < PAUSE_MOST_NS ? boards->pause_ns * 2 : PAUSE_MOST_NS;
    boards->want_ns = now_ns + boards->pause_ns;
    return want(gateway) || begins;
}

/* ---- taking part in a round */

static spc_gateway_claim_t *first_claim(const spc_gateway_deadlock_t *boards, uint32_t i) {
    return (spc_gateway_claim_t *)(void *)(boards->first + i * boards->claim_bytes);
}

/* Before frames are moved: the nodes' earlier actions are visible with their boards, and go out before the mark. */
static bool read_boards(spc_gateway_t *gateway) {
    spc_gateway_deadlock_t *boards = gateway->boards;
    if (boards->stage != SPC_GATEWAY_ROUND_ASKED) {
        return false;
    }
    for (uint32_t i = 0; i < gateway->here; i++) {
        spc_gateway_claim_t *claim = first_claim(boards, i);
        boards->is_claimed[i] =
            spc_deadlock_read(boards->deadlock, gateway->ranks[i], &claim->entry, claim->pair);
    }
    return true;
}

/* By row: whether it waits for credit, or for the rest of a multicast. */
static void note_pending(const spc_gateway_t *gateway, bool *is_pending) {
    for (uint32_t i = 0; i < gateway->row_count; i++) {
        is_pending[i] = spc_mailbox_peek(&gateway->rows[i].reader) != NULL;
    }
}

/* True: it has closed a communicator, and that is not announced yet (a node here) or not made known here (a node
 * elsewhere). */
static bool is_leaving(const spc_gateway_t *gateway, uint32_t rank) {
    for (const spc_gateway_area_t *area = gateway->areas->next; area != NULL; area = area->next) {
        for (uint32_t i = 0; i < area->size; i++) {
            if (area->members[i] != rank || area->has_left[i]) {
                continue;
            }
            /* Acquire: as in the gateway's progress_left. Pairs with spc_comm_close. */
            if (area->leaves[i] || atomic_load_explicit(&area->area.left[i], memory_order_acquire) != 0) {
                return true;
            }
        }
    }
    return false;
}

static void send_mark(spc_gateway_t *gateway) {
    spc_gateway_deadlock_t *boards = gateway->boards;
    note_pending(gateway, boards->is_pending);
    for (uint32_t i = 0; i < gateway->here; i++) {
        boards->is_leaving[i] = is_leaving(gateway, gateway->ranks[i]);
    }
    const spc_frame_t frame = {.kind = SPC_FRAME_BOARD,
                               .flags = SPC_FRAME_OTHERS,
                               .source = (uint16_t)gateway->box,
                               .tag = SPC_GATEWAY_BOARD_MARK,
                               .context = (uint16_t)boards->judge_box,
                               .offset = boards->round};
    spc_gateway_send(gateway, &frame, NULL, 0);
    boards->sent_frames = gateway->sent_frames;
    boards->stage = SPC_GATEWAY_ROUND_MARKED;
}

/* True: the marks of all other boxes have come, and this one's report is due. */
static bool has_all_marks(const spc_gateway_t *gateway) {
    const spc_gateway_deadlock_t *boards = gateway->boards;
    if (boards->stage != SPC_GATEWAY_ROUND_MARKED) {
        return false;
    }
    for (uint32_t box = 0; box < gateway->config->boxes; box++) {
        const bool waits = box != gateway->box && (boards->boxes >> box & 1) != 0;
        if (waits
            && (boards->mark[box].round != boards->round
                || boards->mark[box].judge_box != boards->judge_box)) {
            return false;
        }
    }
    return true;
}

static void give(spc_gateway_t *gateway, spc_frame_t frame, const void *body, uint32_t length_bytes) {
    const spc_gateway_deadlock_t *boards = gateway->boards;
    frame.kind = SPC_FRAME_BOARD;
    frame.source = (uint16_t)gateway->box;
    frame.destination = (uint16_t)boards->judge_box;
    frame.offset = boards->round;
    if (boards->judge_box == gateway->box) {
        frame.length_bytes = length_bytes;
        spc_gateway_fail(gateway, take_report(gateway, &frame, body));
    } else {
        spc_gateway_send(gateway, &frame, body, length_bytes);
    }
}

/* The communicator whose lines these are; one with members here only has none. */
static uint32_t generation_of(const spc_gateway_t *gateway, uint64_t phase,
                              const spc_reduce_line_shared_t *lines) {
    const spc_gateway_area_t *area = gateway->areas;
    while (area != NULL && spc_reduce_lines(area->reduce[0], phase) != lines) {
        area = area->next;
    }
    return area != NULL ? area->generation : 0;
}

/* True: some message of it waits for room in the row of that node here, or for its other parts. */
static bool holds_for(const spc_gateway_t *gateway, uint32_t rank, uint32_t destination) {
    const spc_gateway_source_t *source = &gateway->sources[rank];
    for (const spc_gateway_assembly_t *parts = source->assemblies; parts != NULL; parts = parts->next) {
        for (uint32_t i = 0; i < parts->count; i++) {
            if (parts->destinations[i] == (int32_t)destination) {
                return true;
            }
        }
    }
    return spc_outbox_waiting(source->outbox, destination) != 0;
}

/* Facts about its nodes' waits that only this box knows. */
static void add_what_is_known_here(const spc_gateway_t *gateway, uint32_t i, spc_gateway_claim_t *claim) {
    const spc_reduce_line_shared_t *lines = spc_segment_address(&gateway->segment, claim->entry.lines_offset);
    const bool is_phase = spc_board_is_phase(&claim->entry);
    for (uint32_t other = 0; other <= gateway->nodes; other++) {
        spc_board_pair_t *pair = &claim->pair[other];
        const bool absent = is_phase && pair->needed != 0
                            && !spc_reduce_line_arrived(&lines[pair->needed - 1], claim->entry.phase);
        const bool coming =
            spc_gateway_is_elsewhere(gateway, other) && holds_for(gateway, other, gateway->ranks[i]);
        pair->received = (absent ? SPC_GATEWAY_CLAIM_ABSENT : 0) | (coming ? SPC_GATEWAY_CLAIM_COMING : 0);
    }
    for (uint32_t row = i; row < gateway->row_count; row += gateway->here) { /* rows of this sender */
        const uint32_t destination = gateway->rows[row].destination;
        claim->pair[destination].queued += destination < gateway->nodes && gateway->boards->is_pending[row];
    }
    claim->entry.lines_offset = is_phase ? generation_of(gateway, claim->entry.phase, lines) : 0;
}

/* A node that has woken meanwhile, and sleeps again with the same board, has done nothing: the board shows when its
 * wait began, how far it has read and which events it has seen. */
static void tell_waits(spc_gateway_t *gateway) {
    spc_gateway_deadlock_t *boards = gateway->boards;
    spc_gateway_claim_t *claim = first_claim(boards, gateway->here);
    for (uint32_t i = 0; i < gateway->here; i++) {
        if (boards->is_claimed[i]
            && spc_deadlock_read(boards->deadlock, gateway->ranks[i], &claim->entry, claim->pair)
            && memcmp(claim, first_claim(boards, i), boards->claim_bytes) == 0) {
            add_what_is_known_here(gateway, i, claim);
            const spc_frame_t frame = {.tag = SPC_GATEWAY_BOARD_WAIT, .context = (uint16_t)gateway->ranks[i]};
            give(gateway, frame, claim, (uint32_t)boards->claim_bytes);
        }
    }
}

/* Nodes in other boxes learn of an arrival here only when all members have arrived. */
static void tell_tables(spc_gateway_t *gateway) {
    for (const spc_gateway_area_t *area = gateway->areas; area != NULL; area = area->next) {
        spc_gateway_table_row_t rows[SPC_NODES_MAX] = {{0}};
        uint32_t count = 0;
        for (uint32_t i = 0; i < area->size; i++) {
            if (spc_gateway_is_here(gateway, area->members[i])) {
                rows[count++] = (spc_gateway_table_row_t){.rank = area->members[i],
                                                          .last = spc_reduce_last(area->reduce[i], i)};
            }
        }
        const spc_frame_t frame = {.tag = SPC_GATEWAY_BOARD_TABLE,
                                   .context = (uint16_t)area->number,
                                   .total_bytes = area->members[0] | (uint64_t)area->generation << 32};
        give(gateway, frame, rows, count * (uint32_t)sizeof(rows[0]));
    }
}

static void tell_done(spc_gateway_t *gateway) {
    const spc_gateway_deadlock_t *boards = gateway->boards;
    spc_gateway_done_t done = {{0}, {0}};
    for (uint32_t i = 0; i < gateway->nodes; i++) {
        const uint32_t rank = gateway->ranks[i];
        if (spc_status_is_told(gateway->status, rank)) {
            set_bit(done.told, rank);
        }
        if (i < gateway->here ? boards->is_leaving[i] : is_leaving(gateway, rank)) {
            set_bit(done.leaving, rank);
        }
    }
    const bool is_quiet =
        gateway->sent_frames == boards->sent_frames && gateway->look_again_ns == SPC_NO_DEADLINE;
    give(gateway, (spc_frame_t){.tag = SPC_GATEWAY_BOARD_DONE, .total_bytes = is_quiet}, &done, sizeof(done));
}

static void report_round(spc_gateway_t *gateway) {
    gateway->boards->stage =
        SPC_GATEWAY_ROUND_NONE; /* before the report, which may make the judge begin another */
    tell_waits(gateway);
    tell_tables(gateway);
    tell_done(gateway);
}

/* The first time may bring a communicator, the second its phases. */
static void move_twice(spc_gateway_t *gateway) {
    (void)spc_gateway_traffic_progress(gateway);
    (void)spc_gateway_traffic_progress(gateway);
}

bool spc_gateway_deadlock_progress(spc_gateway_t *gateway) {
    const bool begins = read_boards(gateway);
    if (begins) {
        move_twice(gateway); /* what the nodes have done before the reading goes out before the mark */
        send_mark(gateway);
    }
    const bool ends = has_all_marks(gateway);
    if (ends) {
        move_twice(gateway); /* frames that came before the marks are processed */
        report_round(gateway);
    }
    return begins || ends;
}

int spc_gateway_on_board(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    spc_gateway_deadlock_t *boards = gateway->boards;
    if (frame->source >= gateway->config->boxes || frame->source == gateway->box) {
        return SPC_EINVAL;
    }
    switch ((spc_gateway_board_tag_t)frame->tag) {
    case SPC_GATEWAY_BOARD_WANT:
        boards->judge.is_wanted = true;
        (void)try_to_begin(gateway);
        return SPC_OK;
    case SPC_GATEWAY_BOARD_ASK:
        if ((frame->total_bytes >> gateway->box & 1) != 0) {
            join_round(gateway, frame->source, frame->offset, frame->total_bytes);
        }
        return SPC_OK;
    case SPC_GATEWAY_BOARD_MARK:
        boards->mark[frame->source].round = frame->offset;
        boards->mark[frame->source].judge_box = frame->context;
        return SPC_OK;
    case SPC_GATEWAY_BOARD_WAIT:
    case SPC_GATEWAY_BOARD_TABLE:
    case SPC_GATEWAY_BOARD_DONE:
        return take_report(gateway, frame, body);
    }
    return SPC_EINVAL;
}
