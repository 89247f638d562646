/* SPDX-License-Identifier: MIT */
/*
 * Sending: moves messages from the mailboxes of nodes elsewhere onto the link.
 *
 * The gateway reads a slot in place, and gives it back to its sender once the link has taken all of it. Long payloads
 * go in parts, as credit comes; meanwhile other rows go on. A message to several nodes goes in one frame (see below).
 * The gateway drops and counts messages for a node that has ended. Once all nodes of a box are gone, nothing is sent
 * there, not even the rest of a message that has begun.
 */
#include "net/gateway/spc_gateway_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

/* ---- frames onto the links: to the server, or to other gateways */

void spc_gateway_fail(spc_gateway_t *gateway, int outcome) {
    if (outcome != SPC_OK && gateway->outcome == SPC_EAGAIN) {
        gateway->outcome = outcome;
    }
}

static int hold(spc_gateway_peer_t *peer, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                uint32_t count) {
    size_t length_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        length_bytes += pieces[i].length_bytes;
    }
    spc_gateway_held_t *held = malloc(sizeof(*held) + length_bytes);
    if (held == NULL) {
        return SPC_ENOMEM;
    }
    held->next = NULL;
    held->frame = *frame;
    held->frame.length_bytes = (uint32_t)length_bytes;
    unsigned char *at = held->body;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].length_bytes != 0) { /* an empty piece may have no address */
            memcpy(at, pieces[i].start, pieces[i].length_bytes);
            at += pieces[i].length_bytes;
        }
    }
    *(peer->first == NULL ? &peer->first : &peer->last->next) = held;
    peer->last = held;
    return SPC_OK;
}

/* The server forwards it as it is. It would collect arrivals, and messages could overtake them. */
static int relay(const spc_gateway_peer_t *peer, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                 uint32_t count) {
    spc_frame_t part = *frame;
    part.destination = (uint16_t)peer->box;
    part.flags &= (uint16_t)~SPC_FRAME_OTHERS;
    part.flags |= frame->kind == SPC_FRAME_ARRIVE ? SPC_FRAME_FORWARD : 0;
    return spc_link_queue(peer->gateway->link, &part, pieces, count);
}

int spc_gateway_queue_to(spc_gateway_t *gateway, uint32_t box, const spc_frame_t *frame,
                         const spc_frame_piece_t *pieces, uint32_t count) {
    spc_gateway_peer_t *peer = &gateway->peers[box];
    if (box == gateway->box || peer->is_over) {
        return SPC_OK;
    }
    switch (peer->way) {
    case SPC_GATEWAY_DIRECT:
        return spc_link_queue(peer->link, frame, pieces, count);
    case SPC_GATEWAY_RELAYED:
        return relay(peer, frame, pieces, count);
    default:
        return hold(peer, frame, pieces, count);
    }
}

/* One frame for each box, with its ranks only. */
static int queue_message(spc_gateway_t *gateway, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                         uint32_t count) {
    const uint16_t *ranks = pieces[0].start;
    spc_frame_piece_t parts[4];
    uint64_t done = 0;
    int status = SPC_OK;
    for (uint32_t first = 0; first < frame->count && status == SPC_OK; first++) {
        const uint32_t box = spc_segment_box(&gateway->segment, ranks[first]);
        uint16_t list[SPC_NODES_MAX + 4] = {0};
        spc_frame_t part = *frame;
        part.count = 0;
        for (uint32_t i = first; (done >> box & 1) == 0 && i < frame->count; i++) {
            if (spc_segment_box(&gateway->segment, ranks[i]) == box) {
                list[part.count++] = ranks[i];
            }
        }
        if (part.count != 0) {
            done |= UINT64_C(1) << box;
            memcpy(parts, pieces, count * sizeof(parts[0]));
            parts[0] = (spc_frame_piece_t){list, spc_round_up(part.count * sizeof(list[0]), 8)};
            part.destination = (uint16_t)box;
            status = spc_gateway_queue_to(gateway, box, &part, parts, count);
        }
    }
    return status;
}

static int queue_to_peers(spc_gateway_t *gateway, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                          uint32_t count) {
    uint64_t boxes = UINT64_C(1) << frame->destination % 64;
    int status = SPC_OK;
    if (frame->kind == SPC_FRAME_MESSAGE) {
        return queue_message(gateway, frame, pieces, count);
    }
    if (frame->kind == SPC_FRAME_ARRIVE) {
        memcpy(&boxes, pieces[0].start, sizeof(boxes));
    } else if ((frame->flags & SPC_FRAME_OTHERS) != 0) {
        boxes = UINT64_MAX;
    }
    for (uint32_t box = 0; box < gateway->config->boxes && status == SPC_OK; box++) {
        if (boxes >> box & 1) {
            status = spc_gateway_queue_to(gateway, box, frame, pieces, count);
        }
    }
    return status;
}

static void spc_gateway_queue(spc_gateway_t *gateway, const spc_frame_t *frame,
                              const spc_frame_piece_t *pieces, uint32_t count) {
    gateway->sent_frames += frame->kind != SPC_FRAME_BOARD;
    const int status = gateway->peers != NULL ? queue_to_peers(gateway, frame, pieces, count)
                                              : spc_link_queue(gateway->link, frame, pieces, count);
    /* Frames that arrive when all nodes here are gone cause none that any node needs. */
    spc_gateway_fail(gateway, status == SPC_ECLOSED && gateway->is_finishing ? SPC_OK : status);
}

void spc_gateway_send(spc_gateway_t *gateway, const spc_frame_t *frame, const void *body,
                      uint32_t length_bytes) {
    const spc_frame_piece_t piece = {body, length_bytes};
    spc_gateway_queue(gateway, frame, &piece, length_bytes != 0 ? 1 : 0);
}

/* ---- rows */

int spc_gateway_send_create(spc_gateway_t *gateway) {
    const uint32_t elsewhere = gateway->nodes - gateway->here;
    gateway->row_count = (elsewhere + 1) * gateway->here;
    gateway->rows = calloc(gateway->row_count, sizeof(*gateway->rows));
    if (gateway->rows == NULL) {
        return SPC_ENOMEM;
    }
    spc_gateway_row_t *row = gateway->rows;
    for (uint32_t to = 0; to <= elsewhere; to++) {
        const uint32_t destination = to < elsewhere ? gateway->ranks[gateway->here + to] : gateway->nodes;
        for (uint32_t from = 0; from < gateway->here; from++, row++) {
            row->source = gateway->ranks[from];
            row->destination = destination;
            spc_mailbox_reader_init(&row->reader,
                                    spc_segment_part(&gateway->segment, SPC_REGION_MAILBOX, destination),
                                    row->source, gateway->config->slots);
        }
    }
    return SPC_OK;
}

/* ---- contents of a slot */

/* Contents of a slot. */
typedef struct spc_gateway_piece {
    const unsigned char *bytes;
    uint64_t length_bytes;
    uint64_t offset; /* in the message */
    spc_ring_header_shared_t *header; /* of the data in a ring */
    spc_block_shared_t *block; /* in an arena */
} spc_gateway_piece_t;

static spc_gateway_piece_t spc_gateway_find_piece(const spc_gateway_t *gateway, const spc_gateway_row_t *row,
                                                  const spc_slot_shared_t *slot) {
    spc_gateway_piece_t piece = {.bytes = slot->payload.inlined, .length_bytes = slot->length_bytes};
    if ((slot->flags & SPC_SLOT_PLACE) == SPC_SLOT_RING) {
        piece.header = spc_segment_address(&gateway->segment, slot->payload.offset);
        piece.bytes = spc_ring_payload(piece.header);
        piece.length_bytes = piece.header->payload_bytes;
        piece.offset = row->part_offset;
    } else if ((slot->flags & SPC_SLOT_PLACE) == SPC_SLOT_ARENA) {
        piece.block = spc_segment_address(&gateway->segment, slot->payload.offset);
        piece.bytes = spc_block_payload(piece.block);
    }
    return piece;
}

/* Returns the head of the row and its contents to their owners. */
static void give_back(spc_gateway_t *gateway, spc_gateway_row_t *row) {
    const spc_slot_shared_t *slot = spc_mailbox_peek(&row->reader);
    const spc_gateway_piece_t piece = spc_gateway_find_piece(gateway, row, slot);
    const uint32_t features = gateway->config->features;
    if (spc_status_is_gone(gateway->status, row->destination)) {
        row->part_offset = 0; /* its owners have reclaimed the memory already, and may reuse it */
    } else if (piece.header != NULL) {
        row->part_offset += piece.length_bytes;
        row->part_offset = row->part_offset >= slot->length_bytes ? 0 : row->part_offset;
        spc_ring_mark_read(piece.header);
        spc_event_notify(&gateway->events[row->source], features);
    } else if (piece.block != NULL) {
        const uint32_t owner = piece.block->owner;
        spc_block_unpin(piece.block, row->destination);
        spc_event_notify(&gateway->events[owner], features);
    }
    if (piece.offset != 0 || (slot->flags & SPC_SLOT_LAST) != 0) {
        spc_mailbox_count_part(&row->reader);
    }
    if (spc_mailbox_consume(&row->reader)) {
        spc_event_notify(&gateway->events[row->source], features);
    }
    row->done = 0;
    row->leader = NULL;
    row->is_leader = false;
    row->deferred_ns = 0;
}

/* ---- messages to several nodes */

/*
 * Messages to several nodes elsewhere cross the link once.
 *
 * Their sender has written the payload once, and announced it in the row of each receiver. Row heads that name the same
 * place are sent as one frame with several ranks; until the frame has gone, their rows stay together.
 *
 * The sender may still be announcing when the first row is looked at. Its headers in the ring, or the pins of the
 * block, show which other nodes will get it: the gateway waits for an empty row, for a moment. A row with other
 * messages at its head gets its copy later, and so does a row without credit: a slow receiver holds up only its own
 * traffic.
 */

/* The longest wait for a sender that was interrupted while it announced, or that has something queued. */
#define DEFER_NS UINT64_C(200000)

static bool is_same(const spc_gateway_t *gateway, const spc_gateway_row_t *row,
                    const spc_gateway_piece_t *piece) {
    const spc_slot_shared_t *slot = spc_mailbox_peek(&row->reader);
    if (slot == NULL || row->leader != NULL || row->part_offset != 0 || row->done != 0) {
        return false;
    }
    const spc_gateway_piece_t head = spc_gateway_find_piece(gateway, row, slot);
    return piece->block != NULL ? head.block == piece->block
                                : head.header != NULL && head.bytes == piece->bytes;
}

/* Will the message come into this row, too? Rows after this header in the ring get it, and rows with pins on the
 * block. */
static bool is_expected(const spc_gateway_piece_t *piece, uint32_t rank) {
    if (piece->block != NULL) {
        /* Relaxed: set before the announcement that was seen. */
        return atomic_load_explicit(&piece->block->pin[rank], memory_order_relaxed) != 0;
    }
    const uint32_t later = piece->header->payload_offset / (uint32_t)sizeof(*piece->header) - 1;
    for (uint32_t i = 1; i <= later; i++) {
        /* Relaxed: this gateway alone marks it. */
        if (piece->header[i].destination == rank
            && atomic_load_explicit(&piece->header[i].read, memory_order_relaxed) == 0) {
            return true;
        }
    }
    return false;
}

/* An empty row that the message will enter is a reason to wait, unless its sender has ended. */
static bool is_missing(const spc_gateway_t *gateway, const spc_gateway_row_t *row,
                       const spc_gateway_piece_t *piece) {
    return spc_mailbox_peek(&row->reader) == NULL && is_expected(piece, row->destination)
           && spc_status_state(gateway->status, row->source) < SPC_NODE_FINISHED;
}

static bool is_cast(const spc_slot_shared_t *slot, const spc_gateway_piece_t *piece) {
    return (slot->flags & (SPC_SLOT_SOLE | SPC_SLOT_PART)) == 0
           && (piece->header != NULL || piece->block != NULL);
}

/* True: the wait has been too long. */
static bool defer(spc_gateway_t *gateway, spc_gateway_row_t *row) {
    const uint64_t now_ns = spc_clock_now_ns();
    row->deferred_ns = row->deferred_ns == 0 ? now_ns : row->deferred_ns;
    if (now_ns - row->deferred_ns >= DEFER_NS) {
        return true;
    }
    const uint64_t until_ns = row->deferred_ns + DEFER_NS;
    gateway->look_again_ns = until_ns < gateway->look_again_ns ? until_ns : gateway->look_again_ns;
    return false;
}

/* A message goes on the way it began. */
static uint32_t find_followers(spc_gateway_t *gateway, spc_gateway_row_t *row, spc_gateway_row_t *rows[]) {
    uint32_t count = 0;
    rows[count++] = row;
    for (uint32_t i = 0; i < gateway->row_count && row->is_leader; i++) {
        if (gateway->rows[i].leader == row) {
            rows[count++] = &gateway->rows[i];
        }
    }
    return count;
}

/* For a row whose head is one message to several nodes: groups the rows of the same sender with the same message at
 * their heads, this one first, which lead or follow from now on. Returns how many; 0: part of it has not been announced
 * yet, look again soon. */
static uint32_t spc_gateway_cast(spc_gateway_t *gateway, spc_gateway_row_t *row,
                                 const spc_slot_shared_t *slot, const spc_gateway_piece_t *piece,
                                 spc_gateway_row_t *rows[]) {
    uint32_t count = 0;
    if (!is_cast(slot, piece) || row->done != 0) {
        return find_followers(gateway, row, rows);
    }
    const uint64_t whole =
        piece->length_bytes < gateway->window / 2 ? piece->length_bytes : gateway->window / 2;
    rows[count++] = row;
    bool misses = false;
    for (uint32_t i = 0; i < gateway->row_count; i++) {
        spc_gateway_row_t *other = &gateway->rows[i];
        if (other == row || other->source != row->source || other->destination == gateway->nodes) {
            continue;
        }
        if (!is_same(gateway, other, piece)) {
            misses = misses || is_missing(gateway, other, piece);
        } else if (gateway->credit[other->destination] >= spc_gateway_cost(whole)) {
            rows[count++] = other;
        }
    }
    if (misses && !defer(gateway, row)) {
        return 0;
    }
    if (gateway->credit[row->destination] < spc_gateway_cost(whole)) {
        return 1; /* alone, part by part */
    }
    row->is_leader = count > 1;
    for (uint32_t i = 1; i < count; i++) {
        rows[i]->leader = row;
        rows[i]->ready = true;
    }
    return count;
}

/* ---- sending */

/* Counts the head of a row that is dropped as a message that no node receives, if it is one. Messages in parts count
 * with their last part: until it is in the row, their sender has the rest, and counts them when it drops that. */
static void count_dropped(const spc_gateway_t *gateway, const spc_gateway_row_t *row,
                          const spc_slot_shared_t *slot, const spc_gateway_piece_t *piece) {
    const bool is_whole =
        (slot->flags & SPC_SLOT_PART) == 0 || piece->offset + piece->length_bytes == slot->length_bytes;
    if (is_whole && (slot->flags & SPC_SLOT_LAST) == 0) {
        spc_note_add_left(spc_gateway_notes(gateway, row->destination), slot->source, row->destination,
                          slot->tag, slot->context);
    }
}

static bool is_gone(const spc_gateway_t *gateway, const spc_gateway_row_t *row) {
    return (gateway->gone >> spc_segment_box(&gateway->segment, row->destination) & 1) != 0;
}

static bool has_credit(const spc_gateway_t *gateway, spc_gateway_row_t *const rows[], uint32_t count,
                       uint64_t bytes) {
    bool has = true;
    for (uint32_t i = 0; i < count && has; i++) {
        has = is_gone(gateway, rows[i]) || gateway->credit[rows[i]->destination] >= spc_gateway_cost(bytes);
    }
    return has;
}

/* Sends the next part of the slot at the heads of these rows. False: there is no credit. */
static bool send_part(spc_gateway_t *gateway, spc_gateway_row_t *const rows[], uint32_t count,
                      const spc_slot_shared_t *slot, const spc_gateway_piece_t *piece) {
    const spc_gateway_row_t *row = rows[0];
    const uint64_t left = piece->length_bytes - row->done;
    const uint64_t length = left < gateway->part_bytes ? left : gateway->part_bytes;
    uint16_t list[SPC_NODES_MAX + 4] = {0};
    spc_frame_piece_t pieces[2] = {{list, 0}, {piece->bytes + row->done, length}};
    spc_frame_t frame = {
        .kind = SPC_FRAME_MESSAGE,
        .format = slot->format,
        .flags = (uint16_t)((length != slot->length_bytes ? SPC_FRAME_PART : 0)
                            | ((slot->flags & SPC_SLOT_ASKS) != 0 ? SPC_FRAME_ASKS : 0)
                            | ((slot->flags & SPC_SLOT_ANSWER) != 0 ? SPC_FRAME_ANSWER : 0)
                            | ((slot->flags & SPC_SLOT_LAST) != 0 ? SPC_FRAME_LAST : 0)),
        .source = (uint16_t)row->source,
        .tag = slot->tag,
        .context = slot->context,
        .meta_bytes = slot->meta_bytes,
        .total_bytes = slot->length_bytes,
        .offset = piece->offset + row->done,
    };
    if (!has_credit(gateway, rows, count, length)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_gone(gateway, rows[i])) {
            list[frame.count++] = (uint16_t)rows[i]->destination;
            gateway->credit[rows[i]->destination] -= spc_gateway_cost(length);
        }
        rows[i]->done += length;
    }
    pieces[0].length_bytes = spc_round_up(frame.count * sizeof(list[0]), 8);
    if (frame.count != 0) {
        spc_gateway_queue(gateway, &frame, pieces, 2);
    }
    return true;
}

/* Sends all of the head of this row, or as much as may be, with the rows that follow it. True: the head is finished. */
static bool send_head(spc_gateway_t *gateway, spc_gateway_row_t *row, const spc_slot_shared_t *slot) {
    const spc_gateway_piece_t piece = spc_gateway_find_piece(gateway, row, slot);
    spc_gateway_row_t *rows[SPC_NODES_MAX];
    if (!row->is_leader && gateway->sources[row->destination].state >= SPC_NODE_FINISHED) {
        count_dropped(gateway, row, slot, &piece);
        give_back(gateway, row);
        return true;
    }
    const uint32_t count = spc_gateway_cast(gateway, row, slot, &piece, rows);
    do {
        if (count == 0 || !send_part(gateway, rows, count, slot, &piece)) {
            return false;
        }
    } while (row->done != piece.length_bytes);
    for (uint32_t i = 0; i < count; i++) {
        if (is_gone(gateway, rows[i])) {
            count_dropped(gateway, rows[i], slot, &piece);
        }
        give_back(gateway, rows[i]);
    }
    return true;
}

/* A communicator's memory, from its first member here: the block stays pinned for this gateway. */
static void take_own(spc_gateway_t *gateway, spc_gateway_row_t *row, const spc_slot_shared_t *slot) {
    const spc_gateway_piece_t piece = spc_gateway_find_piece(gateway, row, slot);
    spc_gateway_fail(gateway, piece.block == NULL
                                  ? SPC_EINVAL
                                  : spc_gateway_add_area(gateway, (uint32_t)slot->tag, piece.block));
    if (spc_mailbox_consume(&row->reader)) {
        spc_event_notify(&gateway->events[row->source], gateway->config->features);
    }
}

static bool progress_row(spc_gateway_t *gateway, spc_gateway_row_t *row) {
    const spc_slot_shared_t *slot;
    bool moved = false;
    while (row->leader == NULL && (slot = spc_mailbox_peek(&row->reader)) != NULL) {
        if (row->destination == gateway->nodes) {
            take_own(gateway, row, slot);
        } else {
            const uint64_t done = row->done;
            if (!send_head(gateway, row, slot)) {
                return moved || row->done != done; /* parts of it are on their way */
            }
        }
        moved = true;
    }
    row->ready = row->leader != NULL;
    return moved;
}

/* Finds rows that may have messages: those whose senders have rung the doorbell. */
static void collect(spc_gateway_t *gateway) {
    for (uint32_t first = 0; first < gateway->row_count; first += gateway->here) {
        spc_mailbox_shared_t *mailbox =
            spc_segment_part(&gateway->segment, SPC_REGION_MAILBOX, gateway->rows[first].destination);
        const uint64_t bits = spc_mailbox_collect(mailbox);
        for (uint32_t i = first; bits != 0 && i < first + gateway->here; i++) {
            spc_gateway_row_t *row = &gateway->rows[i];
            row->ready = row->ready || (bits >> row->source % 64 & 1) != 0;
        }
    }
}

bool spc_gateway_send_progress(spc_gateway_t *gateway) {
    bool moved = false;
    gateway->look_again_ns = SPC_NO_DEADLINE;
    collect(gateway);
    for (uint32_t i = 0; i < gateway->row_count; i++) {
        if (gateway->rows[i].ready) {
            moved = progress_row(gateway, &gateway->rows[i]) || moved;
        }
    }
    return moved;
}

bool spc_gateway_send_are_empty(const spc_gateway_t *gateway, uint32_t source) {
    bool empty = true;
    for (uint32_t i = 0; i < gateway->row_count; i++) {
        spc_gateway_row_t *row = &gateway->rows[i];
        if (row->source == source && spc_mailbox_peek(&row->reader) != NULL) {
            row->ready = true; /* a node that died may not have rung */
            empty = false;
        }
    }
    return empty;
}

void spc_gateway_send_note(const spc_gateway_t *gateway, bool *is_pending) {
    for (uint32_t i = 0; i < gateway->row_count; i++) {
        is_pending[i] = spc_mailbox_peek(&gateway->rows[i].reader) != NULL;
    }
}

int spc_gateway_on_credit(spc_gateway_t *gateway, const spc_frame_t *frame) {
    const uint32_t rank = (uint32_t)frame->tag;
    if (!spc_gateway_is_elsewhere(gateway, rank)
        || frame->total_bytes > gateway->window - gateway->credit[rank]) {
        return SPC_EINVAL;
    }
    gateway->credit[rank] += frame->total_bytes;
    return SPC_OK;
}
