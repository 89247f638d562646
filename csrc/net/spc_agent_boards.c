/* SPDX-License-Identifier: MIT */
/* One box's part in proving a deadlock: looking for nodes that wait for long, and reading their boards twice. */
#include "net/spc_agent_boards_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

#define PAUSE_MOST_NS UINT64_C(960000000) /* nothing has changed: a round a second */
#define PASSES 2 /* of moving: the first may bring a communicator, the second its phases */

int spc_agent_boards_create(spc_agent_t *agent) {
    spc_agent_boards_t *boards = calloc(1, sizeof(*boards));
    if (boards == NULL) {
        return SPC_ENOMEM;
    }
    agent->boards = boards;
    boards->wanted_of = SPC_BOXES_MAX;
    boards->claim_bytes = sizeof(spc_agent_claim_t) + (agent->nodes + 1) * sizeof(spc_board_pair_t);
    boards->first = calloc(agent->here + 1, boards->claim_bytes); /* one more: the second reading */
    boards->is_claimed = calloc(agent->here, sizeof(bool));
    boards->is_leaving = calloc(agent->here, sizeof(bool));
    boards->is_pending = calloc(agent->row_count, sizeof(bool));
    boards->judge.claims = calloc(agent->nodes, sizeof(*boards->judge.claims));
    const bool has_all = boards->first != NULL && boards->is_claimed != NULL && boards->is_leaving != NULL
                         && boards->is_pending != NULL && boards->judge.claims != NULL;
    return has_all ? spc_deadlock_create(&agent->segment, &boards->deadlock) : SPC_ENOMEM;
}

void spc_agent_boards_destroy(spc_agent_t *agent) {
    spc_agent_boards_t *boards = agent->boards;
    if (boards == NULL) {
        return;
    }
    spc_agent_judge_destroy(agent);
    spc_deadlock_destroy(boards->deadlock);
    free(boards->first);
    free(boards->is_claimed);
    free(boards->is_leaving);
    free(boards->is_pending);
    free(boards);
}

/* ---- looking ---- */

uint64_t spc_agent_boxes_left(const spc_agent_t *agent) {
    uint64_t boxes = 0;
    for (uint32_t rank = 0; rank < agent->nodes; rank++) {
        if (!spc_status_is_gone(agent->status, rank)) {
            boxes |= UINT64_C(1) << spc_segment_box(&agent->segment, rank);
        }
    }
    return boxes;
}

/* Which nodes here wait without doubts, and since when, as one number; 0: none. */
static uint64_t see(const spc_agent_t *agent) {
    uint64_t seen = 0;
    for (uint32_t i = 0; i < agent->here; i++) {
        const spc_board_shared_t *board =
            spc_segment_part(&agent->segment, SPC_REGION_BOARD, agent->ranks[i]);
        const uint32_t stuck = spc_board_stuck(board);
        spc_board_entry_t entry;
        if (spc_board_is_stuck(stuck) && spc_board_read(board, stuck, &entry) && entry.doubts == 0) {
            seen = (seen ^ (entry.since_ns + i)) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        }
    }
    return seen;
}

/* The judge is in the first box that has nodes. Who has told it says nothing more before its next round. */
static bool want(spc_agent_t *agent) {
    spc_agent_boards_t *boards = agent->boards;
    const uint64_t boxes = spc_agent_boxes_left(agent);
    const uint32_t judge_box = boxes == 0 ? agent->box : (uint32_t)__builtin_ctzll(boxes);
    if (judge_box == agent->box) {
        boards->judge.is_wanted = true;
        return spc_agent_judge_begin(agent);
    }
    if (boards->wanted_of == judge_box) {
        return false;
    }
    const spc_frame_t frame = {.kind = SPC_FRAME_BOARD,
                               .source = (uint16_t)agent->box,
                               .destination = (uint16_t)judge_box,
                               .tag = SPC_AGENT_BOARD_WANT};
    spc_agent_send(agent, &frame, NULL, 0);
    boards->wanted_of = judge_box;
    return true;
}

uint64_t spc_agent_boards_deadline_ns(const spc_agent_t *agent) {
    return agent->boards->look_ns;
}

bool spc_agent_boards_look(spc_agent_t *agent) {
    spc_agent_boards_t *boards = agent->boards;
    const uint64_t now_ns = spc_clock_now_ns();
    if (now_ns < boards->look_ns) {
        return false;
    }
    boards->look_ns = now_ns + SPC_AGENT_LOOK_NS;
    const bool begins = boards->judge.is_wanted && spc_agent_judge_begin(agent);
    const uint64_t seen = see(agent);
    if (seen != boards->seen) {
        boards->seen = seen;
        boards->want_ns = now_ns;
        boards->pause_ns = SPC_AGENT_LOOK_NS / 2;
    }
    if (seen == 0 || now_ns < boards->want_ns) {
        return begins;
    }
    boards->pause_ns = boards->pause_ns * 2 < PAUSE_MOST_NS ? boards->pause_ns * 2 : PAUSE_MOST_NS;
    boards->want_ns = now_ns + boards->pause_ns;
    return want(agent) || begins;
}

/* ---- a round ---- */

void spc_agent_boards_asked(spc_agent_t *agent, uint32_t judge_box, uint64_t round, uint64_t boxes) {
    spc_agent_boards_t *boards = agent->boards;
    boards->judge_box = judge_box;
    boards->round = round;
    boards->boxes = boxes;
    boards->stage = SPC_AGENT_ROUND_ASKED;
    boards->wanted_of = SPC_BOXES_MAX;
    boards->want_ns = spc_clock_now_ns() + boards->pause_ns; /* it is for this box, too */
}

static spc_agent_claim_t *first_claim(const spc_agent_boards_t *boards, uint32_t i) {
    return (spc_agent_claim_t *)(void *)(boards->first + i * boards->claim_bytes);
}

/* Boards first: what these nodes have done before is seen then, and goes out before the mark. */
static void read_first(spc_agent_t *agent) {
    spc_agent_boards_t *boards = agent->boards;
    for (uint32_t i = 0; i < agent->here; i++) {
        spc_agent_claim_t *claim = first_claim(boards, i);
        boards->is_claimed[i] =
            spc_deadlock_read(boards->deadlock, agent->ranks[i], &claim->entry, claim->pair);
    }
    for (int i = 0; i < PASSES; i++) {
        (void)spc_agent_move(agent);
    }
    spc_agent_rows_note(agent, boards->is_pending);
    for (uint32_t i = 0; i < agent->here; i++) {
        boards->is_leaving[i] = spc_agent_is_leaving(agent, agent->ranks[i]);
    }
    const spc_frame_t frame = {.kind = SPC_FRAME_BOARD,
                               .flags = SPC_FRAME_OTHERS,
                               .source = (uint16_t)agent->box,
                               .tag = SPC_AGENT_BOARD_MARK,
                               .context = (uint16_t)boards->judge_box,
                               .offset = boards->round};
    spc_agent_send(agent, &frame, NULL, 0);
    boards->sent_frames = agent->sent_frames;
    boards->stage = SPC_AGENT_ROUND_MARKED;
}

static bool has_all_marks(const spc_agent_t *agent) {
    const spc_agent_boards_t *boards = agent->boards;
    for (uint32_t box = 0; box < agent->config->boxes; box++) {
        const bool waits = box != agent->box && (boards->boxes >> box & 1) != 0;
        if (waits
            && (boards->mark[box].round != boards->round
                || boards->mark[box].judge_box != boards->judge_box)) {
            return false;
        }
    }
    return true;
}

static void give(spc_agent_t *agent, spc_frame_t frame, const void *body, uint32_t length_bytes) {
    const spc_agent_boards_t *boards = agent->boards;
    frame.kind = SPC_FRAME_BOARD;
    frame.source = (uint16_t)agent->box;
    frame.destination = (uint16_t)boards->judge_box;
    frame.offset = boards->round;
    if (boards->judge_box == agent->box) {
        frame.length_bytes = length_bytes;
        spc_agent_fail(agent, spc_agent_judge_take(agent, &frame, body));
    } else {
        spc_agent_send(agent, &frame, body, length_bytes);
    }
}

/* What this box alone knows of its nodes' waits. */
static void add_what_is_known_here(const spc_agent_t *agent, uint32_t i, spc_agent_claim_t *claim) {
    const spc_reduce_line_shared_t *lines = spc_segment_address(&agent->segment, claim->entry.lines_offset);
    const bool is_phase = spc_board_is_phase(&claim->entry);
    for (uint32_t other = 0; other <= agent->nodes; other++) {
        spc_board_pair_t *pair = &claim->pair[other];
        const bool absent = is_phase && pair->needed != 0
                            && !spc_reduce_line_arrived(&lines[pair->needed - 1], claim->entry.phase);
        const bool coming =
            spc_agent_is_elsewhere(agent, other) && spc_agent_source_holds(agent, other, agent->ranks[i]);
        pair->received = (absent ? SPC_AGENT_CLAIM_ABSENT : 0) | (coming ? SPC_AGENT_CLAIM_COMING : 0);
    }
    for (uint32_t row = i; row < agent->row_count; row += agent->here) { /* those of this sender */
        const uint32_t destination = agent->rows[row].destination;
        claim->pair[destination].queued += destination < agent->nodes && agent->boards->is_pending[row];
    }
}

/* A node that has woken meanwhile, and sleeps again with the same board, has done nothing: the board says when its wait
 * began, how far it has read and what it was told. */
static void tell_waits(spc_agent_t *agent) {
    spc_agent_boards_t *boards = agent->boards;
    spc_agent_claim_t *claim = first_claim(boards, agent->here);
    for (uint32_t i = 0; i < agent->here; i++) {
        if (boards->is_claimed[i]
            && spc_deadlock_read(boards->deadlock, agent->ranks[i], &claim->entry, claim->pair)
            && memcmp(claim, first_claim(boards, i), boards->claim_bytes) == 0) {
            add_what_is_known_here(agent, i, claim);
            const spc_frame_t frame = {.tag = SPC_AGENT_BOARD_WAIT, .context = (uint16_t)agent->ranks[i]};
            give(agent, frame, claim, (uint32_t)boards->claim_bytes);
        }
    }
}

/* In other boxes they learn of an arrival here only when all members have arrived. */
static void tell_tables(spc_agent_t *agent) {
    for (const spc_agent_area_t *area = agent->areas; area != NULL; area = area->next) {
        spc_agent_table_row_t rows[SPC_NODES_MAX] = {{0}};
        uint32_t count = 0;
        for (uint32_t i = 0; i < area->size; i++) {
            if (spc_agent_is_here(agent, area->members[i])) {
                rows[count++] = (spc_agent_table_row_t){.rank = area->members[i],
                                                        .last = spc_reduce_last(area->reduce[i], i)};
            }
        }
        const spc_frame_t frame = {
            .tag = SPC_AGENT_BOARD_TABLE, .context = (uint16_t)area->number, .total_bytes = area->members[0]};
        give(agent, frame, rows, count * (uint32_t)sizeof(rows[0]));
    }
}

static void tell_done(spc_agent_t *agent) {
    const spc_agent_boards_t *boards = agent->boards;
    spc_agent_done_t done = {{0}, {0}};
    for (uint32_t i = 0; i < agent->nodes; i++) {
        const uint32_t rank = agent->ranks[i];
        if (spc_status_is_told(agent->status, rank)) {
            spc_agent_set_bit(done.told, rank);
        }
        if (i < agent->here ? boards->is_leaving[i] : spc_agent_is_leaving(agent, rank)) {
            spc_agent_set_bit(done.leaving, rank);
        }
    }
    const bool is_quiet =
        agent->sent_frames == boards->sent_frames && agent->look_again_ns == SPC_NO_DEADLINE;
    give(agent, (spc_frame_t){.tag = SPC_AGENT_BOARD_DONE, .total_bytes = is_quiet}, &done, sizeof(done));
}

bool spc_agent_boards_pump(spc_agent_t *agent) {
    spc_agent_boards_t *boards = agent->boards;
    if (boards->stage == SPC_AGENT_ROUND_NONE) {
        return false;
    }
    const bool is_asked = boards->stage == SPC_AGENT_ROUND_ASKED;
    if (is_asked) {
        read_first(agent);
    }
    if (!has_all_marks(agent)) {
        return is_asked;
    }
    for (int i = 0; i < PASSES; i++) { /* what came before the marks is where it belongs */
        (void)spc_agent_move(agent);
    }
    boards->stage = SPC_AGENT_ROUND_NONE;
    tell_waits(agent);
    tell_tables(agent);
    tell_done(agent);
    return true;
}

int spc_agent_take_board(spc_agent_t *agent, const spc_frame_t *frame, const unsigned char *body) {
    spc_agent_boards_t *boards = agent->boards;
    if (frame->source >= agent->config->boxes || frame->source == agent->box) {
        return SPC_EINVAL;
    }
    switch ((spc_agent_board_tag_t)frame->tag) {
    case SPC_AGENT_BOARD_WANT:
        boards->judge.is_wanted = true;
        (void)spc_agent_judge_begin(agent);
        return SPC_OK;
    case SPC_AGENT_BOARD_ASK:
        if ((frame->total_bytes >> agent->box & 1) != 0) {
            spc_agent_boards_asked(agent, frame->source, frame->offset, frame->total_bytes);
        }
        return SPC_OK;
    case SPC_AGENT_BOARD_MARK:
        boards->mark[frame->source].round = frame->offset;
        boards->mark[frame->source].judge_box = frame->context;
        return SPC_OK;
    case SPC_AGENT_BOARD_WAIT:
    case SPC_AGENT_BOARD_TABLE:
    case SPC_AGENT_BOARD_DONE:
        return spc_agent_judge_take(agent, frame, body);
    }
    return SPC_EINVAL;
}
