/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "spc_comm_private.h"

static void describe(const spc_comm_t *comm, spc_board_kind_t kind, int32_t source, int32_t tag,
                     spc_board_entry_t *entry) {
    entry->kind = kind;
    entry->communicator = comm->number;
    entry->rank = comm->rank;
    entry->size = comm->size;
    entry->source = source;
    entry->tag = tag;
}

static void need(const spc_comm_t *comm, uint32_t rank, spc_board_pair_t *pairs) {
    pairs[spc_comm_member(comm, rank)].needed = rank + 1;
}

static void need_others(const spc_comm_t *comm, spc_board_pair_t *pairs) {
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (rank != comm->rank) {
            need(comm, rank, pairs);
        }
    }
}

static int32_t rank_of(const spc_comm_t *comm, int32_t member) {
    return member < 0 || comm->rank_of == NULL ? member : comm->rank_of[member];
}

void spc_comm_describe_match(const spc_comm_t *comm, const spc_match_t *match, spc_board_entry_t *entry,
                             spc_board_pair_t *pairs) {
    describe(comm, SPC_BOARD_RECEIVE, rank_of(comm, match->source), match->tag, entry);
    if (match->source == SPC_ANY_SOURCE) {
        need_others(comm, pairs);
    } else {
        need(comm, (uint32_t)entry->source, pairs);
    }
    entry->near_count = spc_inbox_near(comm->node->inbox, match, &entry->near_source, &entry->near_tag);
    entry->near_source = entry->near_count != 0 ? rank_of(comm, entry->near_source) : 0;
}

void spc_comm_describe_send(const spc_comm_t *comm, const spc_send_call_t *call, spc_board_entry_t *entry) {
    int32_t destination =
        call->destination_count == 1 ? rank_of(comm, call->destinations[0]) : SPC_ANY_SOURCE;
    describe(comm, SPC_BOARD_SEND, destination, call->tag, entry);
    entry->phase =
        spc_outbox_limit_for(comm->node->outbox, call->payload->meta_bytes + call->payload->data_bytes);
}

/* Of a collective that moves data, after all have entered it: `source` has not sent its part; SPC_ANY_SOURCE: what this
 * node gives has no room. */
void spc_comm_describe_gathering(const spc_comm_t *comm, int32_t source, int32_t tag,
                                 spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    bool receives = source != SPC_ANY_SOURCE;
    describe(comm, receives ? SPC_BOARD_GATHERING : SPC_BOARD_SEND, source, tag, entry);
    if (receives) {
        need(comm, (uint32_t)source, pairs);
    }
    memcpy(entry->call, &comm->pending.signature, sizeof(comm->pending.signature));
}

void spc_comm_describe_receipt(const spc_comm_t *comm, const spc_synchronous_call_t *call,
                               spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const spc_awaited_t *awaited = &call->awaited[call->next];
    describe(comm, SPC_BOARD_RECEIPT, (int32_t)awaited->rank, call->send->tag, entry);
    need(comm, awaited->rank, pairs);
    entry->flags |= call->content ? SPC_BOARD_RENDEZVOUS : 0;
    entry->phase = awaited->number;
    entry->lines_offset = spc_segment_offset(&comm->node->segment,
                                             spc_receipts_row(comm->node->receipts, awaited->destination));
}

void spc_comm_describe_phase(const spc_comm_t *comm, spc_board_kind_t kind, uint64_t phase,
                             spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    spc_signature_t signature;
    _Static_assert(sizeof(signature) == SPC_BOARD_CALL_BYTES, "a board has room for a signature");
    describe(comm, kind, SPC_ANY_SOURCE, SPC_ANY_TAG, entry);
    need_others(comm, pairs);
    entry->phase = phase;
    entry->lines_offset = spc_segment_offset(&comm->node->segment, spc_reduce_lines(comm->reduce, phase));
    if (spc_reduce_signature(comm->reduce, phase, comm->rank, &signature)) {
        memcpy(entry->call, &signature, sizeof(signature));
    }
}
