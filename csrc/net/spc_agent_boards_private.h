/* SPDX-License-Identifier: MIT */
/*
 * spc_agent_boards: what the agents tell each other of status boards, to prove deadlocks over several boxes.
 *
 * A round. Who judges asks all; each box reads the boards of its nodes, sends on what these have left behind, and then
 * a mark to each other box. Once the marks of all others have come it reads the boards again, and tells the judge of
 * those nodes whose boards are the same. Frames keep their order, so whatever a node had sent before it was read for
 * the first time has come to its receiver's box before that is read for the second time: there it has changed a board,
 * or is told as something on its way. docs/internals/deadlock.md argues it.
 *
 * With the agent's lock, all of it.
 */
#ifndef SPC_AGENT_BOARDS_PRIVATE_H
#define SPC_AGENT_BOARDS_PRIVATE_H

#include "diagnose/spc_deadlock.h"
#include "net/spc_agent_private.h"
#include "segment/spc_board.h"

#define SPC_AGENT_LOOK_NS UINT64_C(60000000) /* between two looks at the boards here */

/* What a BOARD frame is, in its tag. `offset` is the number of the round, `source` the box that sends it. */
typedef enum spc_agent_board_tag {
    SPC_AGENT_BOARD_WANT, /* to the judge: some wait for long here */
    SPC_AGENT_BOARD_ASK, /* by the judge: a round begins; total_bytes: a bit for each box that takes part */
    SPC_AGENT_BOARD_MARK, /* context: the judge's box */
    SPC_AGENT_BOARD_WAIT, /* to the judge: a claim of node `context` */
    /* To the judge: who has arrived at what; context: the communicator, total_bytes: its first member. */
    SPC_AGENT_BOARD_TABLE,
    SPC_AGENT_BOARD_DONE, /* to the judge: that was all; total_bytes: 1 if it has sent nothing since its mark */
} spc_agent_board_tag_t;

/* A node that waits. On the wire `received` of a pair is SPC_AGENT_CLAIM_…. */
typedef struct spc_agent_claim {
    spc_board_entry_t entry;
    spc_board_pair_t pair[]; /* of each node, and of the agent */
} spc_agent_claim_t;

enum {
    SPC_AGENT_CLAIM_ABSENT = 1, /* that one has not arrived at the phase, as far as is known in this box */
    SPC_AGENT_CLAIM_COMING = 2, /* the agent here holds something of that one's, for this node */
};

typedef struct spc_agent_table_row {
    uint32_t rank;
    uint32_t padding;
    uint64_t last; /* phase that it has arrived at */
} spc_agent_table_row_t;

typedef struct spc_agent_done {
    uint64_t told[SPC_NODES_MAX / 64]; /* a bit a rank: in this box all know of its end */
    uint64_t leaving[SPC_NODES_MAX / 64]; /* spc_agent_is_leaving */
} spc_agent_done_t;

_Static_assert(sizeof(spc_agent_claim_t) == 424, "it travels between machines");
_Static_assert(sizeof(spc_agent_table_row_t) == 16, "it travels between machines");

/* What has been said of the members of a communicator in one box. */
typedef struct spc_agent_table {
    struct spc_agent_table *next;
    uint32_t number;
    uint32_t first;
    uint32_t count;
    spc_agent_table_row_t row[];
} spc_agent_table_t;

/* Of the judge. */
typedef struct spc_agent_judge {
    uint64_t round; /* its last */
    uint64_t boxes; /* that take part */
    uint64_t done; /* of them */
    bool is_on;
    bool is_wanted; /* another one */
    bool is_quiet; /* no box has sent anything */
    uint64_t earliest_ns; /* when the next may begin */
    spc_agent_claim_t **claims; /* by rank, or NULL */
    spc_agent_table_t *tables;
    spc_agent_done_t all; /* told: in all boxes; leaving: in some */
    spc_segment_t together; /* all boards; made when first needed */
    spc_deadlock_t *deadlock; /* looks at that */
    bool has_proven;
} spc_agent_judge_t;

struct spc_agent_boards {
    spc_deadlock_t *deadlock; /* reads the boards here */
    uint64_t look_ns; /* the next look */
    uint64_t want_ns; /* not before, unless something has changed */
    uint64_t pause_ns; /* doubles */
    uint64_t seen; /* what the last look has found, as a number */
    uint32_t wanted_of; /* which box was told, since its last round; or SPC_BOXES_MAX */

    uint32_t judge_box; /* of the round that this box takes part in */
    uint64_t round;
    uint64_t boxes;
    enum { SPC_AGENT_ROUND_NONE, SPC_AGENT_ROUND_ASKED, SPC_AGENT_ROUND_MARKED } stage;
    struct {
        uint64_t round;
        uint32_t judge_box;
    } mark[SPC_BOXES_MAX]; /* the last that has come, by box */
    uint64_t sent_frames; /* of the agent, when the mark was sent */
    size_t claim_bytes;
    unsigned char *first; /* claims of the nodes here, as read first, */
    bool *is_claimed; /* if they were */
    bool *is_leaving; /* then */
    bool *is_pending; /* by row, then */

    spc_agent_judge_t judge;
};

static inline bool spc_agent_bit(const uint64_t *bits, uint32_t rank) {
    return (bits[rank / 64] >> rank % 64 & 1) != 0;
}

static inline void spc_agent_set_bit(uint64_t *bits, uint32_t rank) {
    bits[rank / 64] |= UINT64_C(1) << rank % 64;
}

/* Boxes that have a node which is not gone, a bit each: as far as is known here. */
uint64_t spc_agent_boxes_left(const spc_agent_t *agent);

/* This box takes part in a round from now on. */
void spc_agent_boards_asked(spc_agent_t *agent, uint32_t judge_box, uint64_t round, uint64_t boxes);

/* ---- the judge */
/* Begins a round, if it may; one that waits for a box which has ended is given up. True: something is to be sent. */
bool spc_agent_judge_begin(spc_agent_t *agent);
/* WAIT, TABLE, DONE, also from this box. SPC_EINVAL: it makes no sense; SPC_ENOMEM. */
int spc_agent_judge_take(spc_agent_t *agent, const spc_frame_t *frame, const unsigned char *body);
void spc_agent_judge_destroy(spc_agent_t *agent);

#endif
