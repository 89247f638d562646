/* SPDX-License-Identifier: MIT */
/*
 * The boards of all boxes together, and what the detector of one box finds in them.
 *
 * They are put into a segment of their own, which no node has: of a run of one box, with the boards of those nodes that
 * no box has reason to strike out, lines that say who has arrived, and nothing in the mailboxes. What is on its way
 * between boxes stands on the boards, as queued at its sender.
 */
#include "net/spc_agent_boards_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/spc_error.h"
#include "spc_comm.h"

#define BOX_NS UINT64_C(4000000) /* a round costs as many frames as there are pairs of boxes */

static void forget_round(spc_agent_t *agent) {
    spc_agent_judge_t *judge = &agent->boards->judge;
    for (uint32_t rank = 0; judge->claims != NULL && rank < agent->nodes; rank++) {
        free(judge->claims[rank]);
        judge->claims[rank] = NULL;
    }
    while (judge->tables != NULL) {
        spc_agent_table_t *table = judge->tables;
        judge->tables = table->next;
        free(table);
    }
}

void spc_agent_judge_destroy(spc_agent_t *agent) {
    spc_agent_judge_t *judge = &agent->boards->judge;
    forget_round(agent);
    free(judge->claims);
    spc_deadlock_destroy(judge->deadlock);
    spc_segment_detach(&judge->together);
}

/* ---- a round ---- */

static void begin(spc_agent_t *agent, uint64_t boxes) {
    spc_agent_judge_t *judge = &agent->boards->judge;
    forget_round(agent);
    judge->is_wanted = false;
    judge->is_on = judge->is_quiet = true;
    judge->boxes = boxes;
    judge->done = 0;
    memset(&judge->all, 0, sizeof(judge->all));
    memset(judge->all.told, 0xff, sizeof(judge->all.told));
    judge->earliest_ns = spc_clock_now_ns() + SPC_AGENT_LOOK_NS / 2 + BOX_NS * agent->config->boxes;
    const spc_frame_t frame = {.kind = SPC_FRAME_BOARD,
                               .flags = SPC_FRAME_OTHERS,
                               .source = (uint16_t)agent->box,
                               .tag = SPC_AGENT_BOARD_ASK,
                               .total_bytes = boxes,
                               .offset = ++judge->round};
    spc_agent_send(agent, &frame, NULL, 0);
    spc_agent_boards_asked(agent, agent->box, judge->round, boxes);
}

bool spc_agent_judge_begin(spc_agent_t *agent) {
    spc_agent_judge_t *judge = &agent->boards->judge;
    const uint64_t boxes = spc_agent_boxes_left(agent);
    const bool has_lost = (judge->boxes & ~boxes) != 0; /* its agent may have ended, and never answers */
    if (judge->has_proven || (judge->is_on && !has_lost) || (boxes >> agent->box & 1) == 0
        || spc_clock_now_ns() < judge->earliest_ns) {
        return false;
    }
    begin(agent, boxes);
    return true;
}

/* ---- the segment ---- */

static int make_segment(spc_agent_t *agent) {
    spc_agent_judge_t *judge = &agent->boards->judge;
    spc_config_t config = {.nodes = agent->nodes,
                           .features = agent->config->features,
                           .slots = 1,
                           .ring_bytes = 1024 + agent->nodes * sizeof(spc_reduce_line_shared_t),
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
    if (status != SPC_OK) {
        spc_segment_detach(&judge->together);
    }
    return status;
}

/* Whom this box takes for absent may have arrived in its own box, which says so once all there have. */
static bool has_arrived(const spc_agent_judge_t *judge, const spc_agent_claim_t *claim, uint32_t first,
                        uint32_t rank) {
    for (const spc_agent_table_t *table = judge->tables; table != NULL; table = table->next) {
        for (uint32_t i = 0;
             table->number == claim->entry.communicator && table->first == first && i < table->count; i++) {
            if (table->row[i].rank == rank) {
                return table->row[i].last >= claim->entry.phase;
            }
        }
    }
    return false;
}

/* The first member of the communicator that the wait is about: `needed` says it, unless that is the node itself. */
static uint32_t first_of(const spc_agent_t *agent, const spc_agent_claim_t *claim, uint32_t rank) {
    for (uint32_t other = 0; other < agent->nodes; other++) {
        if (claim->pair[other].needed == 1) {
            return other;
        }
    }
    return rank;
}

/* Who has arrived at the phase, in lines of this node's own: where its ring would be. */
static void write_lines(const spc_agent_t *agent, uint32_t rank, const spc_agent_claim_t *claim,
                        spc_reduce_line_shared_t *lines) {
    const uint32_t first = first_of(agent, claim, rank);
    for (uint32_t other = 0; other < agent->nodes; other++) {
        const spc_board_pair_t *pair = &claim->pair[other];
        if (pair->needed != 0) {
            const bool arrived = (pair->received & SPC_AGENT_CLAIM_ABSENT) == 0
                                 || has_arrived(&agent->boards->judge, claim, first, other);
            /* Relaxed: this thread alone reads it. */
            atomic_store_explicit(&lines[pair->needed - 1].phase, arrived ? claim->entry.phase : 0,
                                  memory_order_relaxed);
        }
    }
}

static void publish(spc_agent_t *agent, uint32_t rank, spc_agent_claim_t *claim) {
    const spc_segment_t *together = &agent->boards->judge.together;
    const spc_event_shared_t *events = spc_segment_part(together, SPC_REGION_EVENT, 0);
    spc_reduce_line_shared_t *lines = spc_segment_part(together, SPC_REGION_RING, rank);
    spc_board_entry_t *entry = &claim->entry;
    if (spc_board_is_phase(entry)) {
        write_lines(agent, rank, claim, lines);
    } else if (entry->kind == SPC_BOARD_RECEIPT) {
        entry->phase = 0; /* the first receipt, which is not given where all is zero */
    }
    entry->lines_offset = spc_segment_offset(together, lines);
    entry->epoch = spc_status_epoch(spc_segment_part(together, SPC_REGION_STATUS, 0));
    /* Relaxed: this thread alone raises it. */
    entry->word = atomic_load_explicit(&events[rank].word, memory_order_relaxed);
    for (uint32_t other = 0; other <= agent->nodes; other++) {
        claim->pair[other].received = 0;
    }
    spc_board_publish(spc_segment_part(together, SPC_REGION_BOARD, rank), entry, claim->pair,
                      agent->nodes + 1);
}

/* ---- judging ---- */

/* What an agent holds of a node's, for another one, is queued at the former. */
static void move_what_is_coming(const spc_agent_t *agent) {
    spc_agent_claim_t *const *claims = agent->boards->judge.claims;
    for (uint32_t rank = 0; rank < agent->nodes; rank++) {
        for (uint32_t from = 0; claims[rank] != NULL && from < agent->nodes; from++) {
            if (claims[from] != NULL && (claims[rank]->pair[from].received & SPC_AGENT_CLAIM_COMING) != 0) {
                claims[from]->pair[rank].queued++;
            }
        }
    }
}

/* May the detector look at what it waits for? One who closes a communicator ends waits of others when that is made
 * known; and room may still be on its way while there are frames. */
static bool is_to_be_judged(const spc_agent_judge_t *judge, uint32_t rank) {
    const spc_agent_claim_t *claim = judge->claims[rank];
    return claim != NULL && !spc_agent_bit(judge->all.leaving, rank) && !spc_agent_bit(judge->all.told, rank)
           && (claim->entry.kind != SPC_BOARD_SEND || judge->is_quiet);
}

static void put_together(spc_agent_t *agent) {
    spc_agent_judge_t *judge = &agent->boards->judge;
    move_what_is_coming(agent);
    for (uint32_t rank = 0; rank < agent->nodes; rank++) {
        spc_board_shared_t *board = spc_segment_part(&judge->together, SPC_REGION_BOARD, rank);
        if (spc_board_is_stuck(spc_board_stuck(board))) { /* of the last round */
            spc_board_retract(board);
        }
        if (spc_agent_bit(judge->all.told, rank)) {
            spc_comm_mark_ending(&judge->together, rank, SPC_NODE_FINISHED, 0);
        }
    }
    for (uint32_t rank = 0; rank < agent->nodes; rank++) {
        if (is_to_be_judged(judge, rank)) {
            publish(agent, rank, judge->claims[rank]);
        }
    }
}

static bool has_claims(const spc_agent_t *agent) {
    bool has = false;
    for (uint32_t rank = 0; rank < agent->nodes && !has; rank++) {
        has = agent->boards->judge.claims[rank] != NULL;
    }
    return has;
}

/* Two rounds in a row have to find the same nodes, as two looks have to in one box. */
static void judge_all(spc_agent_t *agent) {
    spc_agent_judge_t *judge = &agent->boards->judge;
    judge->is_on = false;
    if (judge->deadlock == NULL && (!has_claims(agent) || make_segment(agent) != SPC_OK)) {
        return; /* nothing to prove; or no memory for it, and a run does not fail of that */
    }
    put_together(agent);
    judge->has_proven = spc_deadlock_look(judge->deadlock) != 0;
    judge->is_wanted = judge->is_wanted || spc_deadlock_suspects(judge->deadlock) != 0;
    /* Before anybody is told: who reads the boards then finds those only whose wait is proven to last for ever. */
    for (uint32_t rank = 0; rank < agent->nodes && judge->has_proven; rank++) {
        if (!spc_deadlock_has(judge->deadlock, rank)) {
            spc_board_shared_t *board = spc_segment_part(&judge->together, SPC_REGION_BOARD, rank);
            if (spc_board_is_stuck(spc_board_stuck(board))) {
                spc_board_retract(board);
            }
        }
    }
    forget_round(agent);
    if (judge->has_proven && agent->options.blocked != NULL) {
        agent->options.blocked(agent->options.argument);
    }
}

const spc_segment_t *spc_agent_blocked(spc_agent_t *agent) {
    const spc_agent_judge_t *judge = &agent->boards->judge;
    pthread_mutex_lock(&agent->lock);
    const bool has_proven = judge->has_proven;
    pthread_mutex_unlock(&agent->lock);
    return has_proven ? &judge->together : NULL;
}

/* ---- what the boxes say ---- */

static int take_claim(spc_agent_t *agent, const spc_frame_t *frame, const unsigned char *body) {
    spc_agent_judge_t *judge = &agent->boards->judge;
    const uint32_t rank = frame->context;
    if (rank >= agent->nodes || spc_segment_box(&agent->segment, rank) != frame->source
        || frame->length_bytes != agent->boards->claim_bytes || judge->claims[rank] != NULL) {
        return SPC_EINVAL;
    }
    judge->claims[rank] = malloc(agent->boards->claim_bytes);
    if (judge->claims[rank] == NULL) {
        return SPC_ENOMEM;
    }
    memcpy(judge->claims[rank], body, agent->boards->claim_bytes);
    spc_board_entry_t *entry = &judge->claims[rank]->entry;
    entry->file[SPC_BOARD_FILE_BYTES - 1] = '\0';
    entry->function[SPC_BOARD_FUNCTION_BYTES - 1] = '\0';
    bool is_sane =
        entry->kind <= SPC_BOARD_GATHERING && entry->size <= agent->nodes && entry->rank < entry->size;
    for (uint32_t other = 0; other <= agent->nodes; other++) {
        is_sane = is_sane && judge->claims[rank]->pair[other].needed <= agent->nodes;
    }
    return is_sane ? SPC_OK : SPC_EINVAL;
}

static int take_table(spc_agent_t *agent, const spc_frame_t *frame, const unsigned char *body) {
    spc_agent_judge_t *judge = &agent->boards->judge;
    const uint32_t count = frame->length_bytes / (uint32_t)sizeof(spc_agent_table_row_t);
    if (frame->length_bytes != count * sizeof(spc_agent_table_row_t) || count > agent->nodes) {
        return SPC_EINVAL;
    }
    spc_agent_table_t *table = malloc(sizeof(*table) + frame->length_bytes);
    if (table == NULL) {
        return SPC_ENOMEM;
    }
    *table = (spc_agent_table_t){.next = judge->tables,
                                 .number = frame->context,
                                 .first = (uint32_t)frame->total_bytes,
                                 .count = count};
    memcpy(table->row, body, frame->length_bytes);
    judge->tables = table;
    return SPC_OK;
}

static int take_done(spc_agent_t *agent, const spc_frame_t *frame, const unsigned char *body) {
    spc_agent_judge_t *judge = &agent->boards->judge;
    spc_agent_done_t done;
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
        judge_all(agent);
    }
    return SPC_OK;
}

int spc_agent_judge_take(spc_agent_t *agent, const spc_frame_t *frame, const unsigned char *body) {
    const spc_agent_judge_t *judge = &agent->boards->judge;
    if (!judge->is_on || frame->offset != judge->round) {
        return SPC_OK; /* of a round that was given up */
    }
    switch (frame->tag) {
    case SPC_AGENT_BOARD_WAIT:
        return take_claim(agent, frame, body);
    case SPC_AGENT_BOARD_TABLE:
        return take_table(agent, frame, body);
    default:
        return take_done(agent, frame, body);
    }
}
