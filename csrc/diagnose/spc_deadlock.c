/* SPDX-License-Identifier: MIT */
#include "diagnose/spc_deadlock.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "message/spc_receipt.h"
#include "reduce/spc_reduce.h"
#include "segment/spc_status.h"

struct spc_deadlock {
    const spc_segment_t *segment;
    const spc_status_shared_t *status;
    spc_event_shared_t *events;
    uint32_t nodes;
    uint32_t slots;
    bool finds_vain;
    uint32_t overlooked; /* doubts */
    uint32_t blocked; /* as of the last look */
    uint32_t proven;
    uint32_t *stuck;   /* of the last look */
    bool *is_blocked;  /* found by the last look */
    bool *was_blocked; /* and by the look before */
};

int spc_deadlock_create(const spc_segment_t *segment, spc_deadlock_t **deadlock) {
    spc_deadlock_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->segment = segment;
    made->status = spc_segment_part(segment, SPC_REGION_STATUS, 0);
    made->events = spc_segment_part(segment, SPC_REGION_EVENT, 0);
    made->nodes = segment->config->nodes;
    made->slots = segment->config->slots;
    made->stuck = calloc(made->nodes, sizeof(*made->stuck));
    made->is_blocked = calloc(made->nodes, sizeof(*made->is_blocked));
    made->was_blocked = calloc(made->nodes, sizeof(*made->was_blocked));
    if (made->stuck == NULL || made->is_blocked == NULL || made->was_blocked == NULL) {
        spc_deadlock_destroy(made);
        return SPC_ENOMEM;
    }
    *deadlock = made;
    return SPC_OK;
}

void spc_deadlock_destroy(spc_deadlock_t *deadlock) {
    if (deadlock != NULL) {
        free(deadlock->stuck);
        free(deadlock->is_blocked);
        free(deadlock->was_blocked);
        free(deadlock);
    }
}

void spc_deadlock_find_vain(spc_deadlock_t *deadlock) {
    deadlock->finds_vain = true;
}

void spc_deadlock_overlook(spc_deadlock_t *deadlock, uint32_t doubts) {
    deadlock->overlooked = doubts;
}

static const spc_board_shared_t *board_of(const spc_deadlock_t *deadlock, uint32_t rank) {
    return spc_segment_part(deadlock->segment, SPC_REGION_BOARD, rank);
}

static bool has_ended(const spc_deadlock_t *deadlock, uint32_t rank) {
    return spc_status_state(deadlock->status, rank) >= SPC_NODE_FINISHED;
}

/* Struck out, and not ended. An ended node does nothing, and the nodes that need it have been notified; before that,
 * its end may still end their waits. */
static bool is_able(const spc_deadlock_t *deadlock, uint32_t rank) {
    return !deadlock->is_blocked[rank] && !spc_status_is_told(deadlock->status, rank);
}

/* Whether this node has been notified since its last test of its wait. A node that makes a change for which others wait
 * raises their events before it waits itself. */
static bool is_roused(const spc_deadlock_t *deadlock, uint32_t rank, uint32_t word) {
    /* Pairs with spc_event_raise: for nodes whose boards are published, all raises are visible. */
    return atomic_load_explicit(&deadlock->events[rank].word, memory_order_seq_cst) != word;
}

/* ---- one node ---- */

/* Whether there is a slot that this node had not read when it published. */
static bool has_come(const spc_deadlock_t *deadlock, uint32_t rank, uint32_t sender, uint32_t received) {
    spc_mailbox_shared_t *mailbox = spc_segment_part(deadlock->segment, SPC_REGION_MAILBOX, rank);
    const spc_row_shared_t *row = spc_mailbox_row(mailbox, sender, deadlock->slots);
    const spc_slot_shared_t *slot = &row->slot[received % deadlock->slots];
    /* Later than the slot that was read: the next, or a whole round on if that was read meanwhile. Pairs with
     * spc_mailbox_announce. */
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire);
    return (int32_t)(sequence - received) > 0;
}

static bool something_moves(const spc_deadlock_t *deadlock, uint32_t rank) {
    const spc_board_shared_t *board = board_of(deadlock, rank);
    for (uint32_t other = 0; other <= deadlock->nodes; other++) {
        spc_board_pair_t pair = spc_board_read_pair(board, other);
        if (pair.queued != 0 || has_come(deadlock, rank, other, pair.received)) {
            return true;
        }
    }
    return false;
}

static bool is_no_candidate(const spc_deadlock_t *deadlock, uint32_t rank) {
    spc_board_entry_t entry;
    uint32_t stuck = deadlock->stuck[rank];
    return has_ended(deadlock, rank) || !spc_board_read(board_of(deadlock, rank), stuck, &entry)
           || (entry.doubts & ~deadlock->overlooked) != 0 || entry.epoch != spc_status_epoch(deadlock->status)
           || is_roused(deadlock, rank, entry.word);
}

typedef struct spc_needs {
    uint32_t able;   /* number of nodes it needs that are able */
    uint32_t absent; /* number of nodes that have not arrived at its phase */
    uint32_t coming; /* and how many of these are able */
    uint32_t others; /* number of able nodes, needed or not */
} spc_needs_t;

static spc_needs_t count_needs(const spc_deadlock_t *deadlock, uint32_t rank,
                               const spc_board_entry_t *entry) {
    spc_needs_t needs = {0};
    const spc_reduce_line_shared_t *lines = spc_segment_address(deadlock->segment, entry->lines_offset);
    bool is_phase = spc_board_is_phase(entry);
    for (uint32_t other = 0; other < deadlock->nodes; other++) {
        spc_board_pair_t pair = spc_board_read_pair(board_of(deadlock, rank), other);
        bool able = is_able(deadlock, other);
        needs.others += able;
        if (pair.needed == 0) {
            continue;
        }
        bool absent = is_phase && !spc_reduce_line_arrived(&lines[pair.needed - 1], entry->phase);
        needs.able += able;
        needs.absent += absent;
        needs.coming += absent && able;
    }
    return needs;
}

/* An absent node may arrive, or end, which makes the wait fail; all have to arrive if it is to be completed. */
static bool may_phase_go_on(const spc_deadlock_t *deadlock, const spc_needs_t *needs) {
    const bool all_may_come = needs->coming == needs->absent;
    return needs->absent == 0 || (deadlock->finds_vain ? all_may_come : needs->coming != 0);
}

static bool may_go_on(const spc_deadlock_t *deadlock, uint32_t rank) {
    spc_board_entry_t entry;
    if (!spc_board_read(board_of(deadlock, rank), deadlock->stuck[rank], &entry)) {
        return true;
    }
    spc_needs_t needs = count_needs(deadlock, rank, &entry);
    if ((entry.flags & SPC_BOARD_HANDLES) != 0 && needs.others != 0) {
        return true;
    }
    switch ((spc_board_kind_t)entry.kind) {
    case SPC_BOARD_RECEIVE:
    case SPC_BOARD_GATHERING:
        return needs.able != 0;
    case SPC_BOARD_RECEIPT:
        return needs.able != 0
               || spc_receipt_is_given(spc_segment_address(deadlock->segment, entry.lines_offset),
                                       entry.phase);
    case SPC_BOARD_PHASE:
        return may_phase_go_on(deadlock, &needs);
    case SPC_BOARD_CYCLE:
        return needs.absent == 0 || needs.able != 0;
    case SPC_BOARD_SEND:
        return needs.others != 0;
    case SPC_BOARD_NOTHING:
        break;
    }
    return true;
}

/* ---- all nodes ---- */

static void read_stuck(spc_deadlock_t *deadlock) {
    for (uint32_t rank = 0; rank < deadlock->nodes; rank++) {
        uint32_t stuck = spc_board_stuck(board_of(deadlock, rank));
        deadlock->is_blocked[rank] = spc_board_is_stuck(stuck);
        deadlock->stuck[rank] = stuck;
    }
}

/* Strikes out the nodes that `is_out` selects; returns how many are left. */
static uint32_t strike_out(spc_deadlock_t *deadlock, bool (*is_out)(const spc_deadlock_t *, uint32_t)) {
    uint32_t left = 0;
    for (uint32_t rank = 0; rank < deadlock->nodes; rank++) {
        deadlock->is_blocked[rank] = deadlock->is_blocked[rank] && !is_out(deadlock, rank);
        left += deadlock->is_blocked[rank];
    }
    return left;
}

static uint32_t strike_out_all_who_may_go_on(spc_deadlock_t *deadlock, uint32_t left) {
    uint32_t before = left + 1;
    while (left != 0 && left != before) {
        before = left;
        left = strike_out(deadlock, may_go_on);
    }
    return left;
}

/* Messages between two nodes are checked last: that takes a cache line for each pair of the nodes that are left. */
static uint32_t strike_out_all(spc_deadlock_t *deadlock) {
    uint32_t left = strike_out_all_who_may_go_on(deadlock, strike_out(deadlock, is_no_candidate));
    uint32_t unmoved = left != 0 ? strike_out(deadlock, something_moves) : 0;
    return unmoved == left ? left : strike_out_all_who_may_go_on(deadlock, unmoved);
}

/* All reads are of one moment if no node has woken up, and none has ended. */
static bool is_still_so(const spc_deadlock_t *deadlock) {
    for (uint32_t rank = 0; rank < deadlock->nodes; rank++) {
        if (deadlock->is_blocked[rank]
            && spc_board_stuck(board_of(deadlock, rank)) != deadlock->stuck[rank]) {
            return false;
        }
    }
    return true;
}

uint32_t spc_deadlock_look(spc_deadlock_t *deadlock) {
    bool *spare = deadlock->was_blocked;
    uint32_t before = deadlock->blocked;
    deadlock->was_blocked = deadlock->is_blocked;
    deadlock->is_blocked = spare;
    uint32_t epoch = spc_status_epoch(deadlock->status);
    read_stuck(deadlock);
    deadlock->blocked = strike_out_all(deadlock);
    if (deadlock->blocked != 0 && (!is_still_so(deadlock) || spc_status_epoch(deadlock->status) != epoch)) {
        deadlock->blocked = 0;
    }
    bool same = before == deadlock->blocked
                && memcmp(deadlock->is_blocked, deadlock->was_blocked, deadlock->nodes) == 0;
    deadlock->proven = same ? deadlock->blocked : 0;
    return deadlock->proven;
}

uint32_t spc_deadlock_suspects(const spc_deadlock_t *deadlock) {
    return deadlock->blocked;
}

bool spc_deadlock_read(spc_deadlock_t *deadlock, uint32_t rank, spc_board_entry_t *entry,
                       spc_board_pair_t *pair) {
    const spc_board_shared_t *board = board_of(deadlock, rank);
    const uint32_t stuck = deadlock->stuck[rank] = spc_board_stuck(board);
    if (!spc_board_is_stuck(stuck) || is_no_candidate(deadlock, rank)
        || !spc_board_read(board, stuck, entry)) {
        return false;
    }
    for (uint32_t other = 0; other <= deadlock->nodes; other++) {
        pair[other] = spc_board_read_pair(board, other);
        if (has_come(deadlock, rank, other, pair[other].received)) {
            return false;
        }
    }
    const bool given =
        entry->kind == SPC_BOARD_RECEIPT
        && spc_receipt_is_given(spc_segment_address(deadlock->segment, entry->lines_offset), entry->phase);
    return !given && spc_board_stuck(board) == stuck;
}

bool spc_deadlock_has(const spc_deadlock_t *deadlock, uint32_t rank) {
    return deadlock->proven != 0 && deadlock->is_blocked[rank];
}
