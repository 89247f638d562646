/* SPDX-License-Identifier: MIT */
/*
 * Traffic between the nodes of this box and those of other boxes: frames onto the links, messages out and in,
 * communicators and the arrivals at their phases, lives of nodes. All keep one order, so each asks for the others.
 */
#include "net/gateway/spc_gateway_private.h"

#include <stdlib.h>
#include <string.h>

#include "net/wire/spc_arrival.h"

/* ---- communicators with members in several boxes, and how this gateway learns of them
 *
 * No communicator is unknown here because it is new: spc_comm_split returns only after every box has reported that it
 * has its memory, and a box reports so after its gateway has received that memory. So frames for an unknown
 * communicator concern one that all members here have left, or that has none here. The gateway drops them.
 *
 * A number is used again as soon as no node can get a message of its former communicator (spc_numbers.h). Frames about
 * that one, and its area, may still be there: its members leave one by one, and their gateways announce it when they
 * can. So the generation, too, names a communicator here. */

/* ---- communicators: life */

/* Frees a communicator that is in no list any more. */
static void destroy_area(spc_gateway_t *gateway, spc_gateway_area_t *area) {
    for (uint32_t i = 0; area->reduce != NULL && i < area->size; i++) {
        spc_reduce_destroy(area->reduce[i]);
    }
    if (area->block != NULL) {
        const uint32_t owner = area->block->owner;
        spc_block_unpin(area->block, gateway->nodes);
        spc_event_notify(&gateway->events[owner], gateway->config->features);
    }
    while (area->ahead != NULL) {
        spc_gateway_ahead_t *ahead = area->ahead;
        area->ahead = ahead->next;
        free(ahead);
    }
    free(area->members);
    free(area->reduce);
    free(area->phase);
    free(area->has_left);
    free(area->leaves);
    free(area);
}

static int create_halves(spc_gateway_t *gateway, spc_gateway_area_t *area) {
    for (uint32_t i = 0; i < area->size; i++) {
        const spc_reduce_options_t options = {
            .shared = area->area.reduce,
            .base = gateway->segment.base,
            .scratch = area->area.scratch + i * area->area.scratch_stride,
            .scratch_bytes = area->area.scratch_bytes,
            .rank = i,
            .nodes = area->size,
            .fanin = gateway->config->fanin,
            .events = gateway->events,
            .members = area->members,
            .features = gateway->config->features,
            .here = area->here,
        };
        int status = spc_reduce_create(&options, &area->reduce[i]);
        if (status != SPC_OK) {
            return status;
        }
        area->boxes |= UINT64_C(1) << spc_segment_box(&gateway->segment, area->members[i]);
    }
    return SPC_OK;
}

/* `member`: NULL, or its members; the run's communicator has all nodes. */
static int create_area(spc_gateway_t *gateway, uint32_t number, uint32_t size, const uint16_t *member,
                       const spc_comm_area_t *memory, spc_gateway_area_t **result) {
    spc_gateway_area_t *area = calloc(1, sizeof(*area));
    if (area == NULL) {
        return SPC_ENOMEM;
    }
    area->number = number;
    area->size = size;
    area->area = *memory;
    area->members = calloc(size, sizeof(*area->members));
    area->reduce = calloc(size, sizeof(*area->reduce));
    area->phase = calloc(size, sizeof(*area->phase));
    area->has_left = calloc(size, sizeof(*area->has_left));
    area->leaves = calloc(size, sizeof(*area->leaves));
    int status = SPC_ENOMEM;
    if (area->members != NULL && area->reduce != NULL && area->phase != NULL && area->has_left != NULL
        && area->leaves != NULL) {
        for (uint32_t i = 0; i < size; i++) {
            area->members[i] = member == NULL ? i : member[i];
            area->here += spc_gateway_is_here(gateway, area->members[i]);
        }
        status = create_halves(gateway, area);
    }
    if (status != SPC_OK) {
        destroy_area(gateway, area);
        return status;
    }
    *result = area;
    return SPC_OK;
}

static int create_areas(spc_gateway_t *gateway) {
    const spc_comm_area_t memory = spc_comm_area_of_run(&gateway->segment);
    return create_area(gateway, 0, gateway->nodes, NULL, &memory, &gateway->areas);
}

static void destroy_areas(spc_gateway_t *gateway) {
    while (gateway->areas != NULL) {
        spc_gateway_area_t *area = gateway->areas;
        gateway->areas = area->next;
        destroy_area(gateway, area);
    }
}

/* Finds the one that an ARRIVE or LEFT is about, by number, first member and generation: parts of a split communicator
 * have the same number, and so have communicators one after the other. NULL: no node here has it. */
static spc_gateway_area_t *find_area(const spc_gateway_t *gateway, const spc_frame_t *frame) {
    spc_gateway_area_t *area = gateway->areas;
    while (area != NULL
           && (area->number != frame->context || area->members[0] != (uint32_t)frame->tag
               || area->generation != frame->total_bytes)) {
        area = area->next;
    }
    return area;
}

/* The first member here has sent the gateway a communicator's memory. SPC_ENOMEM. */
static int add_area(spc_gateway_t *gateway, uint32_t number, spc_block_shared_t *block) {
    const spc_comm_table_t *table = spc_block_payload(block);
    unsigned char *memory = (unsigned char *)spc_block_payload(block) + spc_comm_table_bytes(table->size);
    const spc_comm_area_t area = spc_comm_area_in(gateway->config, table->size, memory);
    spc_gateway_area_t *made;
    int status = create_area(gateway, number, table->size, table->member, &area, &made);
    if (status != SPC_OK) {
        return status;
    }
    made->block = block;
    made->generation = table->generation;
    made->next = gateway->areas->next;
    gateway->areas->next = made;
    return SPC_OK;
}

/* True: all arrivals that have come are in the lines of their nodes: none is ahead. */
static bool are_arrivals_taken(const spc_gateway_t *gateway) {
    const spc_gateway_area_t *area = gateway->areas;
    while (area != NULL && area->ahead == NULL) {
        area = area->next;
    }
    return area == NULL;
}

/* ---- frames onto the links: to the server, or to other gateways */

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

static void queue_frame(spc_gateway_t *gateway, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                        uint32_t count) {
    gateway->sent_frames += frame->kind != SPC_FRAME_BOARD;
    const int status = gateway->peers != NULL ? queue_to_peers(gateway, frame, pieces, count)
                                              : spc_link_queue(gateway->link, frame, pieces, count);
    /* Frames that arrive when all nodes here are gone cause none that any node needs. */
    spc_gateway_fail(gateway, status == SPC_ECLOSED && gateway->is_finishing ? SPC_OK : status);
}

void spc_gateway_send(spc_gateway_t *gateway, const spc_frame_t *frame, const void *body,
                      uint32_t length_bytes) {
    const spc_frame_piece_t piece = {body, length_bytes};
    queue_frame(gateway, frame, &piece, length_bytes != 0 ? 1 : 0);
}

/* ---- sending: moves messages from the mailboxes of nodes elsewhere onto the link
 *
 * The gateway reads a slot in place, and gives it back to its sender once the link has taken all of it. Long payloads
 * go in parts, as credit comes; meanwhile other rows go on. A message to several nodes goes in one frame (see below).
 * The gateway drops and counts messages for a node that has ended. Once all nodes of a box are gone, nothing is sent
 * there, not even the rest of a message that has begun. */

static int create_rows(spc_gateway_t *gateway) {
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

static uint64_t cost_of(uint64_t length_bytes) {
    return length_bytes + SPC_CREDIT_FRAME_COST;
}

/* ---- sending: contents of a slot */

/* Contents of a slot. */
typedef struct spc_gateway_piece {
    const unsigned char *bytes;
    uint64_t length_bytes;
    uint64_t offset; /* in the message */
    spc_ring_header_shared_t *header; /* of the data in a ring */
    spc_block_shared_t *block; /* in an arena */
} spc_gateway_piece_t;

static spc_gateway_piece_t find_piece(const spc_gateway_t *gateway, const spc_slot_shared_t *slot) {
    spc_gateway_piece_t piece = {.bytes = slot->payload.inlined, .length_bytes = slot->length_bytes};
    if ((slot->flags & SPC_SLOT_PLACE) == SPC_SLOT_RING) {
        piece.header = spc_segment_address(&gateway->segment, slot->payload.offset);
        piece.bytes = spc_ring_payload(piece.header);
        piece.length_bytes = piece.header->payload_bytes;
        piece.offset = slot->payload.part.end - piece.length_bytes;
    } else if ((slot->flags & SPC_SLOT_PLACE) == SPC_SLOT_ARENA) {
        piece.block = spc_segment_address(&gateway->segment, slot->payload.offset);
        piece.bytes = spc_block_payload(piece.block);
    }
    return piece;
}

static bool is_later_part(const spc_slot_shared_t *slot) {
    return (slot->flags & (SPC_SLOT_PART | SPC_SLOT_FIRST)) == SPC_SLOT_PART;
}

/* Returns the head of the row and its contents to their owners. */
static void give_back(spc_gateway_t *gateway, spc_gateway_row_t *row) {
    const spc_slot_shared_t *slot = spc_mailbox_peek(&row->reader);
    const spc_gateway_piece_t piece = find_piece(gateway, slot);
    const uint32_t features = gateway->config->features;
    /* Else its owners have reclaimed the memory already, and may reuse it. */
    const bool is_kept = !spc_status_is_gone(gateway->status, row->destination);
    if (is_kept && piece.header != NULL) {
        spc_ring_mark_read(piece.header);
        spc_event_notify(&gateway->events[row->source], features);
    } else if (is_kept && piece.block != NULL) {
        const uint32_t owner = piece.block->owner;
        spc_block_unpin(piece.block, row->destination);
        spc_event_notify(&gateway->events[owner], features);
    }
    if (is_later_part(slot) || (slot->flags & SPC_SLOT_LAST) != 0) {
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

/* ---- sending: messages to several nodes */

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
    if (slot == NULL || row->leader != NULL || is_later_part(slot) || row->done != 0) {
        return false;
    }
    const spc_gateway_piece_t head = find_piece(gateway, slot);
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
static uint32_t group_rows(spc_gateway_t *gateway, spc_gateway_row_t *row, const spc_slot_shared_t *slot,
                           const spc_gateway_piece_t *piece, spc_gateway_row_t *rows[]) {
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
        } else if (gateway->credit[other->destination] >= cost_of(whole)) {
            rows[count++] = other;
        }
    }
    if (misses && !defer(gateway, row)) {
        return 0;
    }
    if (gateway->credit[row->destination] < cost_of(whole)) {
        return 1; /* alone, part by part */
    }
    row->is_leader = count > 1;
    for (uint32_t i = 1; i < count; i++) {
        rows[i]->leader = row;
        rows[i]->ready = true;
    }
    return count;
}

/* ---- sending: what there is */

/* Counts the head of a row that is dropped as a message that no node receives, if it is one. Messages in parts count
 * with their last part: until it is in the row, their sender has the rest, and counts them when it drops that. */
static void count_dropped(const spc_gateway_t *gateway, const spc_gateway_row_t *row,
                          const spc_slot_shared_t *slot) {
    const bool is_whole = (slot->flags & SPC_SLOT_PART) == 0 || slot->payload.part.end == slot->length_bytes;
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
        has = is_gone(gateway, rows[i]) || gateway->credit[rows[i]->destination] >= cost_of(bytes);
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
            gateway->credit[rows[i]->destination] -= cost_of(length);
        }
        rows[i]->done += length;
    }
    pieces[0].length_bytes = spc_round_up(frame.count * sizeof(list[0]), 8);
    if (frame.count != 0) {
        queue_frame(gateway, &frame, pieces, 2);
    }
    return true;
}

/* Sends all of the head of this row, or as much as may be, with the rows that follow it. True: the head is finished. */
static bool send_head(spc_gateway_t *gateway, spc_gateway_row_t *row, const spc_slot_shared_t *slot) {
    const spc_gateway_piece_t piece = find_piece(gateway, slot);
    spc_gateway_row_t *rows[SPC_NODES_MAX];
    if (!row->is_leader && gateway->sources[row->destination].state >= SPC_NODE_FINISHED) {
        count_dropped(gateway, row, slot);
        give_back(gateway, row);
        return true;
    }
    const uint32_t count = group_rows(gateway, row, slot, &piece, rows);
    do {
        if (count == 0 || !send_part(gateway, rows, count, slot, &piece)) {
            return false;
        }
    } while (row->done != piece.length_bytes);
    for (uint32_t i = 0; i < count; i++) {
        if (is_gone(gateway, rows[i])) {
            count_dropped(gateway, rows[i], slot);
        }
        give_back(gateway, rows[i]);
    }
    return true;
}

/* A communicator's memory, from its first member here: the block stays pinned for this gateway. */
static void take_own(spc_gateway_t *gateway, spc_gateway_row_t *row, const spc_slot_shared_t *slot) {
    const spc_gateway_piece_t piece = find_piece(gateway, slot);
    spc_gateway_fail(gateway,
                     piece.block == NULL ? SPC_EINVAL : add_area(gateway, (uint32_t)slot->tag, piece.block));
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

static int on_credit(spc_gateway_t *gateway, const spc_frame_t *frame) {
    const uint32_t rank = (uint32_t)frame->tag;
    if (!spc_gateway_is_elsewhere(gateway, rank)
        || frame->total_bytes > gateway->window - gateway->credit[rank]) {
        return SPC_EINVAL;
    }
    gateway->credit[rank] += frame->total_bytes;
    return SPC_OK;
}

/* ---- receiving: writes messages from the link into the mailboxes of the nodes here, in place of their senders
 *
 * Each node elsewhere has an outbox here: its rows, ring and arena in this segment. A message goes through it as if the
 * node had sent it in this box: inline, in the ring or in a block of the arena, one block for all of its receivers
 * here, queued if there is no room. Credit goes back once no part of the message is queued. The bytes that receivers
 * here keep of its messages beyond their shares (spc_inbox.h) are sent to its box with the credit that is given back,
 * and then whenever they change: there the bytes count against the sender's limit. */

static int create_sources(spc_gateway_t *gateway) {
    gateway->sources = calloc(gateway->nodes, sizeof(*gateway->sources));
    gateway->owed = calloc((size_t)gateway->config->boxes * gateway->nodes, sizeof(*gateway->owed));
    if (gateway->sources == NULL || gateway->owed == NULL) {
        return SPC_ENOMEM;
    }
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        const uint32_t rank = gateway->ranks[i];
        spc_outbox_options_t options = {.segment = &gateway->segment,
                                        .status = gateway->status,
                                        .events = gateway->events,
                                        .notes = spc_gateway_notes(gateway, rank),
                                        .rank = rank,
                                        .is_unlimited = true};
        gateway->sources[rank].asked = calloc(gateway->nodes, sizeof(*gateway->sources[rank].asked));
        gateway->sources[rank].lent = calloc(gateway->nodes, sizeof(*gateway->sources[rank].lent));
        if (gateway->sources[rank].asked == NULL || gateway->sources[rank].lent == NULL
            || spc_outbox_create(&options, &gateway->sources[rank].outbox) != SPC_OK) {
            return SPC_ENOMEM;
        }
    }
    return SPC_OK;
}

static void free_assembly(uint32_t rank, spc_gateway_assembly_t *assembly) {
    if (assembly->block != NULL) {
        spc_block_unpin(assembly->block, rank);
    } else {
        free(assembly->bytes);
    }
    free(assembly);
}

static void drop_assemblies(spc_gateway_t *gateway, uint32_t rank) {
    spc_gateway_source_t *source = &gateway->sources[rank];
    while (source->assemblies != NULL) {
        spc_gateway_assembly_t *assembly = source->assemblies;
        source->assemblies = assembly->next;
        free_assembly(rank, assembly);
    }
}

static void destroy_sources(spc_gateway_t *gateway) {
    for (uint32_t rank = 0; gateway->sources != NULL && rank < gateway->nodes; rank++) {
        drop_assemblies(gateway, rank);
        spc_outbox_destroy(gateway->sources[rank].outbox);
        free(gateway->sources[rank].asked);
        free(gateway->sources[rank].lent);
    }
    while (gateway->watched != NULL) {
        spc_gateway_watch_t *watch = gateway->watched;
        gateway->watched = watch->next;
        free(watch);
    }
    free(gateway->sources);
    free(gateway->owed);
}

/* ---- receiving: receipts */

/* Messages that ask for a receipt are counted here just as their sender counts them, so both ends know their numbers.
 * Receipts that are messages come by themselves. */
static int watch(spc_gateway_t *gateway, uint32_t source, uint32_t destination) {
    spc_gateway_watch_t *made = malloc(sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    *made = (spc_gateway_watch_t){gateway->watched, source, destination,
                                  gateway->sources[source].asked[destination]++};
    gateway->watched = made;
    return SPC_OK;
}

static spc_row_shared_t *row_of(const spc_gateway_t *gateway, uint32_t source, uint32_t destination) {
    return spc_mailbox_row(spc_segment_part(&gateway->segment, SPC_REGION_MAILBOX, destination), source,
                           gateway->config->slots);
}

static void tell_receipt(spc_gateway_t *gateway, const spc_gateway_watch_t *watch) {
    const spc_frame_t frame = {
        .kind = SPC_FRAME_RECEIPT,
        .source = (uint16_t)watch->source,
        .destination = (uint16_t)spc_segment_box(&gateway->segment, watch->source),
        .tag = (int32_t)watch->destination,
        .offset = watch->number,
    };
    spc_gateway_send(gateway, &frame, NULL, 0);
}

static bool progress_receipts(spc_gateway_t *gateway) {
    bool moved = false;
    spc_gateway_watch_t **at = &gateway->watched;
    while (*at != NULL) {
        spc_gateway_watch_t *watch = *at;
        /* Before the receipt, which the node may have given just before it died. */
        const bool is_gone = spc_status_is_gone(gateway->status, watch->destination);
        const bool given =
            spc_receipt_is_given(row_of(gateway, watch->source, watch->destination), watch->number);
        if (given || is_gone) {
            if (given) {
                tell_receipt(gateway, watch);
            }
            *at = watch->next;
            free(watch);
            moved = true;
        } else {
            at = &watch->next;
        }
    }
    return moved;
}

static int on_receipt(spc_gateway_t *gateway, const spc_frame_t *frame) {
    const uint32_t destination = (uint32_t)frame->tag;
    if (!spc_gateway_is_here(gateway, frame->source) || !spc_gateway_is_elsewhere(gateway, destination)) {
        return SPC_EINVAL;
    }
    spc_receipt_give(row_of(gateway, frame->source, destination), (uint32_t)frame->offset);
    spc_event_notify(&gateway->events[frame->source], gateway->config->features);
    return SPC_OK;
}

/* ---- receiving: bytes that receivers keep */

static bool tell_lent(spc_gateway_t *gateway, uint32_t rank, uint32_t destination) {
    spc_gateway_source_t *source = &gateway->sources[rank];
    const bool has_ended = spc_status_state(gateway->status, destination) >= SPC_NODE_FINISHED;
    const uint64_t lent = has_ended ? 0 : spc_mailbox_lent(row_of(gateway, rank, destination));
    if (lent == source->lent[destination]) {
        return false;
    }
    source->lenders += (lent != 0) - (source->lent[destination] != 0);
    source->lent[destination] = lent;
    const spc_frame_t frame = {
        .kind = SPC_FRAME_LENT,
        .source = (uint16_t)rank,
        .destination = (uint16_t)spc_segment_box(&gateway->segment, rank),
        .tag = (int32_t)destination,
        .total_bytes = lent,
    };
    spc_gateway_send(gateway, &frame, NULL, 0);
    return true;
}

static bool progress_lent(spc_gateway_t *gateway) {
    bool moved = false;
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        const spc_gateway_source_t *source = &gateway->sources[gateway->ranks[i]];
        for (uint32_t to = 0; to < gateway->here && source->lenders != 0; to++) {
            if (source->lent[gateway->ranks[to]] != 0) {
                moved = tell_lent(gateway, gateway->ranks[i], gateway->ranks[to]) || moved;
            }
        }
    }
    return moved;
}

static int on_lent(spc_gateway_t *gateway, const spc_frame_t *frame) {
    const uint32_t destination = (uint32_t)frame->tag;
    if (!spc_gateway_is_here(gateway, frame->source) || !spc_gateway_is_elsewhere(gateway, destination)) {
        return SPC_EINVAL;
    }
    spc_mailbox_lend(row_of(gateway, frame->source, destination), frame->total_bytes);
    spc_event_notify(&gateway->events[frame->source], gateway->config->features);
    return SPC_OK;
}

/* ---- receiving: messages */

static spc_payload_t payload_of(const spc_frame_t *frame, const unsigned char *bytes) {
    return (spc_payload_t){
        .meta = bytes,
        .data = bytes + frame->meta_bytes,
        .data_bytes = frame->total_bytes - frame->meta_bytes,
        .meta_bytes = frame->meta_bytes,
        .format = frame->format,
    };
}

/* `block` holds the message, or `bytes` do. */
static int announce(spc_gateway_t *gateway, const spc_frame_t *frame, const int32_t *destinations,
                    uint32_t count, const unsigned char *bytes, spc_block_shared_t *block) {
    spc_outbox_t *outbox = gateway->sources[frame->source].outbox;
    const spc_payload_t payload = payload_of(frame, bytes);
    const bool asks = (frame->flags & SPC_FRAME_ASKS) != 0, answers = (frame->flags & SPC_FRAME_ANSWER) != 0;
    int status = SPC_OK;
    for (uint32_t i = 0; asks && !answers && i < count && status == SPC_OK; i++) {
        status = watch(gateway, frame->source, (uint32_t)destinations[i]);
    }
    if (status != SPC_OK) {
        return status;
    }
    spc_outbox_ask(outbox, (uint8_t)((asks ? SPC_SLOT_ASKS : 0) | (answers ? SPC_SLOT_ANSWER : 0)));
    status =
        block != NULL
            ? spc_outbox_send_block(outbox, destinations, count, frame->context, frame->tag, &payload, block)
            : spc_outbox_send(outbox, destinations, count, frame->context, frame->tag, &payload);
    spc_outbox_ask(outbox, 0);
    return status;
}

/* Behind all messages of its sender, as in one box. */
static void announce_last(spc_gateway_t *gateway, const spc_frame_t *frame, const int32_t *destinations) {
    for (uint32_t i = 0; i < frame->count; i++) {
        const uint32_t rank = (uint32_t)destinations[i];
        spc_outbox_send_last(gateway->sources[frame->source].outbox, &rank, 1, frame->context);
    }
}

static int take_whole(spc_gateway_t *gateway, const spc_frame_t *frame, const int32_t *destinations,
                      const unsigned char *bytes) {
    spc_block_shared_t *block = NULL;
    if (frame->total_bytes > SPC_EAGER_BYTES
        && spc_outbox_take_block(gateway->sources[frame->source].outbox, frame->total_bytes, &block)
               == SPC_OK) {
        memcpy(spc_block_payload(block), bytes, frame->total_bytes);
    }
    return announce(gateway, frame, destinations, frame->count, bytes, block);
}

/* Parts of one message to one receiver arrive one after the other; parts of messages to others may arrive in
 * between. */
static spc_gateway_assembly_t **find_assembly(spc_gateway_t *gateway, const spc_frame_t *frame,
                                              int32_t destination) {
    spc_gateway_assembly_t **at = &gateway->sources[frame->source].assemblies;
    while (*at != NULL && (*at)->destinations[0] != destination) {
        at = &(*at)->next;
    }
    return at;
}

/* The first part holds the length of the message, which nothing bounds: a message longer than the queue limit may be
 * queued alone, and credit, which bounds what is under way, comes back part by part. So the allocation succeeds or
 * fails; most systems back only pages that have been written. Each source has one assembly for each receiver here. */
static spc_gateway_assembly_t *begin(spc_gateway_t *gateway, const spc_frame_t *frame,
                                     const int32_t *destinations) {
    spc_gateway_source_t *source = &gateway->sources[frame->source];
    spc_gateway_assembly_t *made = calloc(1, sizeof(*made) + frame->count * sizeof(*destinations));
    if (made == NULL) {
        return NULL;
    }
    made->frame = *frame;
    made->count = frame->count;
    memcpy(made->destinations, destinations, frame->count * sizeof(*destinations));
    if (spc_outbox_take_block(source->outbox, frame->total_bytes, &made->block) == SPC_OK) {
        made->bytes = spc_block_payload(made->block);
    } else {
        made->block = NULL;
        made->bytes = malloc(frame->total_bytes);
    }
    if (made->bytes == NULL) {
        free(made);
        return NULL;
    }
    made->next = source->assemblies;
    source->assemblies = made;
    return made;
}

static int take_part(spc_gateway_t *gateway, const spc_frame_t *frame, const int32_t *destinations,
                     const unsigned char *bytes, uint64_t length_bytes) {
    spc_gateway_assembly_t **at = find_assembly(gateway, frame, destinations[0]);
    spc_gateway_assembly_t *assembly = *at;
    if (assembly == NULL) {
        if (frame->offset != 0) {
            return SPC_EINVAL;
        }
        assembly = begin(gateway, frame, destinations);
        if (assembly == NULL) {
            return SPC_ENOMEM;
        }
        at = find_assembly(gateway, frame, destinations[0]);
    }
    if (frame->offset != assembly->received || frame->total_bytes != assembly->frame.total_bytes
        || length_bytes > frame->total_bytes - frame->offset) {
        return SPC_EINVAL;
    }
    memcpy(assembly->bytes + frame->offset, bytes, length_bytes);
    assembly->received += length_bytes;
    if (assembly->received != frame->total_bytes) {
        return SPC_OK;
    }
    *at = assembly->next;
    int status = announce(gateway, &assembly->frame, assembly->destinations, assembly->count, assembly->bytes,
                          assembly->block);
    if (assembly->block == NULL) {
        free(assembly->bytes);
    }
    free(assembly);
    return status;
}

/* Reads the ranks at the start of the body; all must be here, each once: a block is pinned once for each receiver.
 * Returns how many bytes they take; 0: they make no sense. */
static uint32_t read_destinations(const spc_gateway_t *gateway, const spc_frame_t *frame,
                                  const unsigned char *body, int32_t *destinations) {
    const uint32_t bytes = (uint32_t)spc_round_up(frame->count * sizeof(uint16_t), 8);
    if (frame->count == 0 || frame->count > gateway->here || bytes > frame->length_bytes) {
        return 0;
    }
    uint64_t seen[SPC_NODES_MAX / 64] = {0};
    for (uint32_t i = 0; i < frame->count; i++) {
        uint16_t rank;
        memcpy(&rank, body + i * sizeof(rank), sizeof(rank));
        if (!spc_gateway_is_here(gateway, rank) || (seen[rank / 64] >> rank % 64 & 1) != 0) {
            return 0;
        }
        seen[rank / 64] |= UINT64_C(1) << rank % 64;
        destinations[i] = rank;
    }
    return bytes;
}

int spc_gateway_on_message(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    int32_t destinations[SPC_NODES_MAX];
    if (!spc_gateway_is_elsewhere(gateway, frame->source) || frame->meta_bytes > frame->total_bytes) {
        return SPC_EINVAL;
    }
    const uint32_t list_bytes = read_destinations(gateway, frame, body, destinations);
    if (list_bytes == 0) {
        return SPC_EINVAL;
    }
    const uint64_t length = frame->length_bytes - list_bytes;
    const uint32_t box = spc_segment_box(&gateway->segment, frame->source);
    for (uint32_t i = 0; i < frame->count; i++) {
        uint64_t *owed = &gateway->owed[box * gateway->nodes + (uint32_t)destinations[i]];
        *owed += length + SPC_CREDIT_FRAME_COST;
        if (*owed > gateway->window) { /* more than its credit; memory here is bounded by that */
            return SPC_EINVAL;
        }
    }
    if ((frame->flags & SPC_FRAME_LAST) != 0) {
        announce_last(gateway, frame, destinations);
        return SPC_OK;
    }
    if ((frame->flags & SPC_FRAME_PART) != 0) {
        return take_part(gateway, frame, destinations, body + list_bytes, length);
    }
    return length != frame->total_bytes ? SPC_EINVAL
                                        : take_whole(gateway, frame, destinations, body + list_bytes);
}

/* ---- receiving: credit */

static bool is_queued(const spc_gateway_t *gateway, uint32_t box, uint32_t rank) {
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        const uint32_t source = gateway->ranks[i];
        if (spc_segment_box(&gateway->segment, source) == box
            && spc_outbox_waiting(gateway->sources[source].outbox, rank) != 0) {
            return true;
        }
    }
    return false;
}

/* Receivers may now keep bytes that came from this box: only then are there more than were reported. */
static void tell_all_lent(spc_gateway_t *gateway, uint32_t box, uint32_t destination) {
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        if (spc_segment_box(&gateway->segment, gateway->ranks[i]) == box) {
            (void)tell_lent(gateway, gateway->ranks[i], destination);
        }
    }
}

/* In pieces of a quarter of the window: the sender still has half of the window, which is two parts, when the next
 * piece comes. */
static bool progress_credit(spc_gateway_t *gateway) {
    bool moved = false;
    for (uint32_t box = 0; box < gateway->config->boxes; box++) {
        for (uint32_t i = 0; i < gateway->here; i++) {
            const uint32_t rank = gateway->ranks[i];
            uint64_t *owed = &gateway->owed[box * gateway->nodes + rank];
            if (*owed < gateway->window / 4 || is_queued(gateway, box, rank)) {
                continue;
            }
            tell_all_lent(gateway, box, rank);
            const spc_frame_t frame = {.kind = SPC_FRAME_CREDIT,
                                       .source = (uint16_t)gateway->box,
                                       .destination = (uint16_t)box,
                                       .tag = (int32_t)rank,
                                       .total_bytes = *owed};
            spc_gateway_send(gateway, &frame, NULL, 0);
            *owed = 0;
            moved = true;
        }
    }
    return moved;
}

/* True: all messages of this node are in the rows of their receivers, and all its arrivals in its lines. */
static bool is_source_empty(const spc_gateway_t *gateway, uint32_t rank) {
    return spc_outbox_is_empty(gateway->sources[rank].outbox) && are_arrivals_taken(gateway);
}

/* Announces messages that have waited, sends receipts and what is lent, gives credit back. */
static bool progress_sources(spc_gateway_t *gateway) {
    bool moved = false;
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        moved = spc_outbox_flush(gateway->sources[gateway->ranks[i]].outbox) || moved;
    }
    moved = progress_receipts(gateway) || moved;
    moved = progress_lent(gateway) || moved;
    return progress_credit(gateway) || moved;
}

/* ---- arrivals at the phases of communicators with members in several boxes, and members that leave these
 *
 * When all members here have arrived at a phase, the gateway sends their contributions, all in one frame if they fit.
 * When the contributions of the other boxes have come, it arrives for their members: so it is the last, combines, and
 * releases the phase, with the same values along the same tree as the gateways of the other boxes. Where the server has
 * combined, one arrival stands for all members, with the total: then the gateway arrives with that total for the
 * members elsewhere.
 *
 * A node that ends, or closes the communicator, may have arrived where others have not. Then the gateway sends its
 * contribution alone, and the server forwards it at once (SPC_FRAME_URGENT), so that other boxes know of its arrival
 * when they learn of its end (area_flush).
 *
 * Wire format: net/wire/spc_arrival.h. */

/* ---- arrivals: sending */

typedef struct arrivals {
    unsigned char *body;
    uint32_t length_bytes;
    uint32_t room_bytes;
} arrivals_t;

static bool add(arrivals_t *arrivals, const void *bytes, uint64_t length_bytes) {
    const uint64_t padded = spc_round_up(length_bytes, 8);
    if (padded > arrivals->room_bytes - arrivals->length_bytes) {
        return false;
    }
    if (length_bytes != 0) {
        memcpy(arrivals->body + arrivals->length_bytes, bytes, length_bytes);
        memset(arrivals->body + arrivals->length_bytes + length_bytes, 0, padded - length_bytes);
    }
    arrivals->length_bytes += (uint32_t)padded;
    return true;
}

/* False if there is no room; then nothing was added. */
static bool add_contribution(const spc_gateway_area_t *area, uint32_t member, uint64_t phase,
                             arrivals_t *arrivals) {
    const uint32_t before = arrivals->length_bytes;
    spc_contribution_t contribution;
    uint64_t counts[SPC_NODES_MAX];
    if (!spc_reduce_read(area->reduce[member], phase, &contribution)) {
        return true; /* the phase has moved on already: impossible, see spc_reduce.h */
    }
    spc_arrival_head_t head = {.signature = contribution.signature,
                               .first = member,
                               .span = 1,
                               .length_bytes = (uint32_t)contribution.length_bytes};
    if (contribution.signature.operation == SPC_OPERATION_COORDINATED) {
        head.stamp = spc_coordinated_read_row(area->area.coordinated, member, area->size, counts);
    }
    const uint64_t fields_bytes =
        contribution.fields == NULL ? 0 : contribution.signature.field_count * sizeof(spc_field_t);
    if (add(arrivals, &head, sizeof(head)) && add(arrivals, contribution.fields, fields_bytes)
        && (head.stamp == 0 || add(arrivals, counts, area->size * sizeof(counts[0])))
        && add(arrivals, contribution.value, contribution.length_bytes)) {
        return true;
    }
    arrivals->length_bytes = before;
    return false;
}

static void send_arrivals(spc_gateway_t *gateway, const spc_gateway_area_t *area, uint64_t phase,
                          uint16_t flags, arrivals_t *arrivals) {
    const spc_frame_t frame = {
        .kind = SPC_FRAME_ARRIVE,
        .flags = flags,
        .source = (uint16_t)gateway->box,
        .tag = (int32_t)area->members[0],
        .context = (uint16_t)area->number,
        .total_bytes = area->generation,
        .offset = phase,
    };
    spc_gateway_send(gateway, &frame, arrivals->body, arrivals->length_bytes);
    arrivals->length_bytes = sizeof(area->boxes);
}

/* Sends contributions to the phase by members here (all, or this one) that were not sent yet. */
static void send_phase(spc_gateway_t *gateway, spc_gateway_area_t *area, uint64_t phase, uint32_t only) {
    arrivals_t arrivals = {.room_bytes = SPC_FRAME_BODY_MAX, .body = malloc(SPC_FRAME_BODY_MAX)};
    if (arrivals.body == NULL) {
        spc_gateway_fail(gateway, SPC_ENOMEM);
        return;
    }
    (void)add(&arrivals, &area->boxes, sizeof(area->boxes));
    for (uint32_t i = 0; i < area->size; i++) {
        if (!spc_gateway_is_here(gateway, area->members[i]) || area->phase[i] + 1 != phase
            || (only != area->size && only != i)) {
            continue;
        }
        if (!add_contribution(area, i, phase, &arrivals)) {
            send_arrivals(gateway, area, phase, 0, &arrivals);
            (void)add_contribution(area, i, phase, &arrivals); /* spc_config_complete ensures that one fits */
        }
        area->phase[i] = phase;
    }
    send_arrivals(gateway, area, phase, only == area->size ? SPC_FRAME_LAST : SPC_FRAME_URGENT, &arrivals);
    free(arrivals.body);
}

/* ---- arrivals: contributions of others */

static uint32_t first_here(const spc_gateway_t *gateway, const spc_gateway_area_t *area) {
    uint32_t i = 0;
    while (!spc_gateway_is_here(gateway, area->members[i])) {
        i++;
    }
    return i;
}

static bool may_arrive(const spc_gateway_t *gateway, const spc_gateway_area_t *area, uint64_t phase,
                       uint32_t member) {
    return spc_gateway_is_elsewhere(gateway, area->members[member]) && area->phase[member] + 1 == phase;
}

/* Takes the arrival of one member. SPC_EINVAL: it makes no sense. */
static int take_arrival(spc_gateway_t *gateway, spc_gateway_area_t *area, uint64_t phase,
                        const spc_arrival_t *arrival) {
    const spc_arrival_head_t *head = &arrival->head;
    const uint32_t member = head->first;
    if (member >= area->size || !may_arrive(gateway, area, phase, member)
        || head->length_bytes > area->area.scratch_bytes) {
        return SPC_EINVAL;
    }
    if (arrival->row != NULL) {
        spc_coordinated_write_row(area->area.coordinated, member, area->size, head->stamp, arrival->row);
    }
    uint64_t started;
    int status = spc_reduce_start(area->reduce[member], &head->signature, arrival->fields, arrival->value,
                                  head->length_bytes, &started);
    area->phase[member] = phase;
    return status;
}

/* A total meets four conditions: it comes from the server, for no box can speak for all members; all members here have
 * arrived, or else the server could not have their values; the members elsewhere have not arrived here; and it matches
 * the call in which the members here wait. */
static bool is_total(const spc_gateway_t *gateway, const spc_gateway_area_t *area, const spc_frame_t *frame,
                     const spc_arrival_t *arrival) {
    const spc_arrival_head_t *head = &arrival->head;
    const uint64_t phase = frame->offset;
    spc_contribution_t own;
    if (frame->source != SPC_FRAME_FROM_SERVER || gateway->peers != NULL || head->first != 0
        || head->span != area->size || !spc_arrival_combines(arrival) || area->sent < phase
        || !spc_reduce_read(area->reduce[first_here(gateway, area)], phase, &own)
        || memcmp(&own.signature, &head->signature, sizeof(own.signature)) != 0
        || own.length_bytes != head->length_bytes) {
        return false;
    }
    for (uint32_t i = 0; i < area->size; i++) {
        if (!spc_gateway_is_here(gateway, area->members[i]) && !may_arrive(gateway, area, phase, i)) {
            return false;
        }
    }
    return true;
}

/* Takes the arrival of all members, which the server has combined. The last member elsewhere brings the total. */
static int take_total(spc_gateway_t *gateway, spc_gateway_area_t *area, const spc_frame_t *frame,
                      const spc_arrival_t *arrival) {
    if (!is_total(gateway, area, frame, arrival)) {
        return SPC_EINVAL;
    }
    uint32_t left = area->size - area->here;
    int status = SPC_OK;
    for (uint32_t i = 0; i < area->size && status == SPC_OK; i++) {
        if (!spc_gateway_is_here(gateway, area->members[i])) {
            const void *total = --left == 0 ? arrival->value : NULL;
            status = spc_reduce_start_combined(area->reduce[i], &arrival->head.signature, arrival->fields,
                                               total, arrival->head.length_bytes);
            area->phase[i] = frame->offset;
        }
    }
    return status;
}

/* Takes the arrivals of one frame. */
static int take_arrivals(spc_gateway_t *gateway, spc_gateway_area_t *area, const spc_frame_t *frame,
                         const unsigned char *body) {
    uint32_t at = sizeof(area->boxes);
    int status = SPC_OK;
    while (status == SPC_OK && at < frame->length_bytes) {
        spc_arrival_t arrival;
        status = spc_arrival_read(body, frame->length_bytes, area->size, &at, &arrival);
        if (status == SPC_OK) {
            status = arrival.head.span == 1 ? take_arrival(gateway, area, frame->offset, &arrival)
                                            : take_total(gateway, area, frame, &arrival);
        }
    }
    return status;
}

/* The bank of the phase is free. The nodes of one box ensure that themselves (spc_reduce.h), since they have completed
 * the phase that is tested here. Where boxes have links of their own, another box may have completed it earlier. */
static bool has_bank(const spc_gateway_area_t *area, uint64_t phase) {
    return phase <= SPC_FUZZY_MAX + 1 || spc_reduce_test(area->reduce[0], phase - SPC_FUZZY_MAX - 1);
}

/* A member contributes a value to at most one of the phases that have no bank yet: its other open phases are fuzzy
 * barriers. */
static uint64_t ahead_max_bytes(const spc_gateway_area_t *area) {
    const uint64_t value_bytes =
        area->area.scratch_bytes + SPC_REDUCE_FIELDS_BYTES + area->size * sizeof(uint64_t);
    const uint64_t heads_bytes = (SPC_FUZZY_MAX + 1) * (sizeof(area->boxes) + sizeof(spc_arrival_head_t));
    return area->size * (value_bytes + heads_bytes);
}

static int keep_ahead(spc_gateway_area_t *area, const spc_frame_t *frame, const unsigned char *body) {
    if (frame->length_bytes > ahead_max_bytes(area) - area->ahead_bytes) {
        return SPC_ELIMIT;
    }
    spc_gateway_ahead_t *ahead = malloc(sizeof(*ahead) + frame->length_bytes);
    if (ahead == NULL) {
        return SPC_ENOMEM;
    }
    ahead->frame = *frame;
    memcpy(ahead->body, body, frame->length_bytes);
    area->ahead_bytes += frame->length_bytes;
    spc_gateway_ahead_t **at = &area->ahead;
    while (*at != NULL && (*at)->frame.offset <= frame->offset) {
        at = &(*at)->next;
    }
    ahead->next = *at;
    *at = ahead;
    return SPC_OK;
}

static int take_ahead(spc_gateway_t *gateway, spc_gateway_area_t *area) {
    int status = SPC_OK;
    while (status == SPC_OK && area->ahead != NULL && has_bank(area, area->ahead->frame.offset)) {
        spc_gateway_ahead_t *ahead = area->ahead;
        area->ahead = ahead->next;
        area->ahead_bytes -= ahead->frame.length_bytes;
        status = take_arrivals(gateway, area, &ahead->frame, ahead->body);
        free(ahead);
    }
    return status;
}

static int on_arrive(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    spc_gateway_area_t *area = find_area(gateway, frame);
    if (frame->length_bytes < sizeof(area->boxes)) {
        return SPC_EINVAL;
    }
    if (area == NULL || frame->length_bytes == sizeof(area->boxes)) {
        return SPC_OK;
    }
    int status = take_ahead(gateway, area);
    if (status != SPC_OK) {
        return status;
    }
    return has_bank(area, frame->offset) ? take_arrivals(gateway, area, frame, body)
                                         : keep_ahead(area, frame, body);
}

/* ---- arrivals: pending work */

/* Returns the last phase, starting with the next one, at which all members here have arrived. */
static bool have_arrived(const spc_gateway_t *gateway, const spc_gateway_area_t *area, uint64_t phase) {
    for (uint32_t i = 0; i < area->size; i++) {
        if (spc_gateway_is_here(gateway, area->members[i]) && area->phase[i] < phase
            && !spc_reduce_arrived(area->reduce[i], phase, i)) {
            return false;
        }
    }
    return true;
}

/* The same for one communicator. */
static void area_note(const spc_gateway_t *gateway, spc_gateway_area_t *area) {
    while (have_arrived(gateway, area, area->noted + 1)) {
        area->noted++;
    }
}

/* Phases at which all members here have arrived. */
static void note_phases(spc_gateway_t *gateway) {
    for (spc_gateway_area_t *area = gateway->areas; area != NULL; area = area->next) {
        area_note(gateway, area);
    }
}

static bool area_progress(spc_gateway_t *gateway, spc_gateway_area_t *area) {
    const bool sends = area->sent < area->noted;
    while (area->sent < area->noted) {
        send_phase(gateway, area, ++area->sent, area->size);
        spc_reduce_pass(area->reduce[first_here(gateway, area)], area->sent);
    }
    spc_gateway_fail(gateway, take_ahead(gateway, area));
    return sends;
}

static bool progress_phases(spc_gateway_t *gateway) {
    bool moved = false;
    for (spc_gateway_area_t *area = gateway->areas; area != NULL; area = area->next) {
        moved = area_progress(gateway, area) || moved;
    }
    return moved;
}

static void area_flush(spc_gateway_t *gateway, spc_gateway_area_t *area, uint32_t member) {
    const uint64_t last = spc_reduce_last(area->reduce[member], member);
    if (spc_reduce_test(area->reduce[member], last)) {
        return;
    }
    const uint64_t next = area->phase[member] + 1;
    for (uint64_t phase = next < last ? next : last; phase <= last; phase++) {
        send_phase(gateway, area, phase, member);
    }
}

/* Sends this node's contributions, though other nodes have not arrived; the server forwards them at once. */
static void flush_phases(spc_gateway_t *gateway, uint32_t rank) {
    for (spc_gateway_area_t *area = gateway->areas; area != NULL; area = area->next) {
        for (uint32_t i = 0; i < area->size; i++) {
            if (area->members[i] == rank) {
                area_flush(gateway, area, i);
            }
        }
    }
}

/* ---- arrivals: nodes that close communicators */

static int on_left(spc_gateway_t *gateway, const spc_frame_t *frame) {
    spc_gateway_area_t *area = find_area(gateway, frame);
    for (uint32_t i = 0; area != NULL && area->block != NULL && i < area->size; i++) {
        area->leaves[i] = area->leaves[i] || area->members[i] == frame->source;
    }
    return SPC_OK;
}

/* Once all messages that it sent are in the rows of their receivers. */
static void make_left_known(spc_gateway_t *gateway, spc_gateway_area_t *area, uint32_t member, bool *moved) {
    if (!area->leaves[member] || area->has_left[member] || !is_source_empty(gateway, area->members[member])) {
        return;
    }
    /* Release: the messages announced here are visible with it. Pairs with spc_comm_has_left. */
    atomic_store_explicit(&area->area.left[member], 1, memory_order_release);
    spc_status_news(gateway->status, gateway->events, gateway->nodes + 1, gateway->config->features);
    area->has_left[member] = true;
    *moved = true;
}

static void tell_left(spc_gateway_t *gateway, spc_gateway_area_t *area, uint32_t member) {
    const spc_frame_t frame = {.kind = SPC_FRAME_LEFT,
                               .flags = SPC_FRAME_OTHERS,
                               .source = (uint16_t)area->members[member],
                               .tag = (int32_t)area->members[0],
                               .context = (uint16_t)area->number,
                               .total_bytes = area->generation};
    spc_gateway_send(gateway, &frame, NULL, 0);
    area->has_left[member] = true;
}

/* True: all members here have closed it, or have ended, and the other boxes know. */
static bool progress_left(spc_gateway_t *gateway, spc_gateway_area_t *area, bool *moved) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < area->size; i++) {
        const uint32_t rank = area->members[i];
        if (!spc_gateway_is_here(gateway, rank)) {
            make_left_known(gateway, area, i, moved);
            continue;
        }
        /* Acquire: the messages sent before are visible. Pairs with spc_comm_close. */
        const bool has = atomic_load_explicit(&area->area.left[i], memory_order_acquire) != 0;
        if (has && !area->has_left[i] && spc_gateway_send_are_empty(gateway, rank)) {
            area_flush(gateway, area, i);
            tell_left(gateway, area, i);
            *moved = true;
        }
        left += area->has_left[i] || gateway->told_gone[rank];
    }
    return left == area->here;
}

/* Announces members here that have closed their communicators; gives up areas that no node here uses any more. */
static bool progress_areas(spc_gateway_t *gateway) {
    bool moved = false;
    spc_gateway_area_t **at = &gateway->areas->next;
    while (*at != NULL) {
        spc_gateway_area_t *area = *at;
        if (progress_left(gateway, area, &moved)) {
            /* Sends the phases at which it arrived meanwhile; else the server would wait for them for ever. */
            area_note(gateway, area);
            (void)area_progress(gateway, area);
            *at = area->next;
            destroy_area(gateway, area);
        } else {
            at = &area->next;
        }
    }
    return moved;
}

/* ---- life of nodes (present, ended, gone)
 *
 * It is announced to the other boxes, and made known here as other boxes announce it.
 *
 * The gateway announces the end of a node after all messages of that node, and makes it known once all of them are in
 * the rows of their receivers: a node that sees the end sees the messages, as in one box. */

static int create_lives(spc_gateway_t *gateway) {
    gateway->told = calloc(gateway->nodes, sizeof(*gateway->told));
    gateway->told_gone = calloc(gateway->nodes, sizeof(*gateway->told_gone));
    gateway->told_notes = calloc((size_t)gateway->nodes * SPC_NOTE_KINDS, sizeof(*gateway->told_notes));
    return gateway->told != NULL && gateway->told_gone != NULL && gateway->told_notes != NULL ? SPC_OK
                                                                                              : SPC_ENOMEM;
}

/* ---- life of nodes: announcing */

static void tell_state(spc_gateway_t *gateway, uint32_t rank, uint32_t state, bool is_gone) {
    const int32_t reason = state == SPC_NODE_LIVE ? spc_status_process(gateway->status, rank)
                                                  : atomic_load_explicit(&gateway->status->line[rank].reason,
                                                                         memory_order_relaxed);
    const spc_frame_t frame = {.kind = SPC_FRAME_STATUS,
                               .flags = SPC_FRAME_OTHERS,
                               .source = (uint16_t)rank,
                               .tag = reason,
                               .total_bytes = state,
                               .offset = is_gone};
    spc_gateway_send(gateway, &frame, NULL, 0);
    gateway->told[rank] = state;
    gateway->told_gone[rank] = is_gone;
}

/* A note that is being written is sent later: its writer notifies when it is complete. */
static void tell_note(spc_gateway_t *gateway, uint32_t rank, spc_note_kind_t kind, bool *moved) {
    uint32_t *told = &gateway->told_notes[rank * SPC_NOTE_KINDS + kind];
    const uint32_t version = spc_note_version(spc_gateway_notes(gateway, rank), kind);
    spc_note_t note;
    if (version == *told || !spc_note_read(spc_gateway_notes(gateway, rank), kind, &note)) {
        return;
    }
    const spc_frame_t frame = {
        .kind = SPC_FRAME_NOTE, .flags = SPC_FRAME_OTHERS, .source = (uint16_t)rank, .tag = (int32_t)kind};
    spc_gateway_send(gateway, &frame, &note, sizeof(note));
    *told = version;
    *moved = true;
}

static void progress_node(spc_gateway_t *gateway, uint32_t rank, bool *moved) {
    const uint32_t state = spc_status_state(gateway->status, rank);
    /* After the state, since `gone` comes first: one frame carries both. The state alone indicates news. */
    const bool is_gone = state >= SPC_NODE_FINISHED && spc_status_is_gone(gateway->status, rank);
    tell_note(gateway, rank, SPC_NOTE_CALL, moved);
    tell_note(gateway, rank, SPC_NOTE_END, moved); /* written before the node ends */
    if (state == gateway->told[rank] && is_gone == gateway->told_gone[rank]) {
        return;
    }
    if (state >= SPC_NODE_FINISHED) {
        /* A node that ends because of a lost connection is no news for others: they would name it, not the loss, if
         * they learnt of it first. The mark was set before the node's wait ended, so it is seen here. */
        const bool is_disconnected = spc_status_state(gateway->status, gateway->nodes) == SPC_NODE_DIED;
        if (is_disconnected || !spc_gateway_send_are_empty(gateway, rank)) {
            return;
        }
        flush_phases(gateway, rank);
        /* It may have given one since they were looked for, just before its end. */
        (void)progress_receipts(gateway);
    }
    tell_state(gateway, rank, state, is_gone);
    *moved = true;
}

/* ---- life of nodes: making known */

static int on_note(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    spc_note_t note;
    if (!spc_gateway_is_elsewhere(gateway, frame->source) || frame->length_bytes != sizeof(note)
        || (frame->tag != SPC_NOTE_CALL && frame->tag != SPC_NOTE_END)) {
        return SPC_EINVAL;
    }
    memcpy(&note, body, sizeof(note));
    spc_note_write(spc_gateway_notes(gateway, frame->source), (spc_note_kind_t)frame->tag, &note);
    return SPC_OK;
}

static void note_gone(spc_gateway_t *gateway, uint32_t box) {
    bool are_gone = true;
    for (uint32_t rank = 0; rank < gateway->nodes && are_gone; rank++) {
        are_gone = spc_segment_box(&gateway->segment, rank) != box || gateway->sources[rank].is_gone;
    }
    gateway->gone |= (uint64_t)are_gone << box;
}

static int on_status(spc_gateway_t *gateway, const spc_frame_t *frame) {
    if (!spc_gateway_is_elsewhere(gateway, frame->source) || frame->total_bytes > SPC_NODE_DIED) {
        return SPC_EINVAL;
    }
    spc_gateway_source_t *source = &gateway->sources[frame->source];
    if (frame->total_bytes == SPC_NODE_LIVE) {
        spc_status_set_live(gateway->status, frame->source, frame->tag);
        return SPC_OK;
    }
    source->state = (uint32_t)frame->total_bytes;
    source->reason = frame->tag;
    source->is_gone = frame->offset != 0;
    source->is_known = false;
    note_gone(gateway, spc_segment_box(&gateway->segment, frame->source));
    return SPC_OK;
}

static bool make_known(spc_gateway_t *gateway, uint32_t rank) {
    spc_gateway_source_t *source = &gateway->sources[rank];
    const uint32_t features = gateway->config->features;
    if (source->state < SPC_NODE_FINISHED) {
        return false;
    }
    drop_assemblies(gateway, rank); /* messages that it did not finish */
    if (!is_source_empty(gateway, rank)) {
        return false;
    }
    if (source->is_gone) { /* first, as in the node's own box */
        spc_status_set_gone(gateway->status, rank, gateway->events, gateway->nodes + 1, features);
    }
    spc_status_end(gateway->status, rank, (spc_node_state_t)source->state, source->reason, gateway->events,
                   gateway->nodes + 1, features);
    source->is_known = true;
    return true;
}

/* ---- the last message: a box whose nodes are gone stays until it has got, and counted, all messages for them */

void spc_gateway_shut_down(spc_gateway_t *gateway, uint64_t boxes) {
    for (uint32_t box = 0; box < gateway->config->boxes; box++) {
        if ((boxes & ~gateway->told_shutdown) >> box & 1) {
            const spc_frame_t frame = {
                .kind = SPC_FRAME_SHUTDOWN, .source = (uint16_t)gateway->box, .destination = (uint16_t)box};
            spc_gateway_send(gateway, &frame, NULL, 0);
        }
    }
    gateway->told_shutdown |= boxes;
}

static int on_shutdown(spc_gateway_t *gateway, const spc_frame_t *frame) {
    if (frame->source >= gateway->config->boxes || frame->source == gateway->box) {
        return SPC_EINVAL;
    }
    gateway->shutdown |= UINT64_C(1) << frame->source;
    return SPC_OK;
}

/* Announces ends of nodes here, and makes known those of nodes elsewhere. True: something was done. */
static bool progress_lives(spc_gateway_t *gateway) {
    bool moved = (gateway->gone & ~gateway->told_shutdown) != 0;
    spc_gateway_shut_down(gateway, gateway->gone);
    for (uint32_t i = 0; i < gateway->here; i++) {
        progress_node(gateway, gateway->ranks[i], &moved);
    }
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        const uint32_t rank = gateway->ranks[i];
        if (!gateway->sources[rank].is_known && make_known(gateway, rank)) {
            moved = true;
        }
    }
    return moved;
}

/* ---- the calls of the two threads */

int spc_gateway_traffic_take(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    switch (frame->kind) {
    case SPC_FRAME_MESSAGE:
        return spc_gateway_on_message(gateway, frame, body);
    case SPC_FRAME_CREDIT:
        return on_credit(gateway, frame);
    case SPC_FRAME_ARRIVE:
        return on_arrive(gateway, frame, body);
    case SPC_FRAME_RECEIPT:
        return on_receipt(gateway, frame);
    case SPC_FRAME_LENT:
        return on_lent(gateway, frame);
    case SPC_FRAME_STATUS:
        return on_status(gateway, frame);
    case SPC_FRAME_LEFT:
        return on_left(gateway, frame);
    case SPC_FRAME_SHUTDOWN:
        return on_shutdown(gateway, frame);
    case SPC_FRAME_NOTE:
        return on_note(gateway, frame, body);
    default:
        return SPC_EINVAL;
    }
}

/* Phases are noted first, and sent once the messages of the rows are on their way; ends go last. */
bool spc_gateway_traffic_progress(spc_gateway_t *gateway) {
    note_phases(gateway);
    bool moved = spc_gateway_send_progress(gateway);
    moved = progress_phases(gateway) || moved;
    moved = progress_sources(gateway) || moved;
    moved = progress_areas(gateway) || moved;
    return progress_lives(gateway) || moved;
}

int spc_gateway_traffic_create(spc_gateway_t *gateway) {
    int (*const steps[])(spc_gateway_t *) = {create_rows, create_sources, create_areas, create_lives};
    int status = SPC_OK;
    for (size_t i = 0; status == SPC_OK && i < sizeof(steps) / sizeof(steps[0]); i++) {
        status = steps[i](gateway);
    }
    return status;
}

void spc_gateway_traffic_destroy(spc_gateway_t *gateway) {
    destroy_areas(gateway);
    destroy_sources(gateway);
    free(gateway->rows);
    free(gateway->told_notes);
    free(gateway->told_gone);
    free(gateway->told);
}
