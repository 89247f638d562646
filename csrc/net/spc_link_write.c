/* SPDX-License-Identifier: MIT */
/* Bytes out: what one write takes, and what it has taken. */
#include "net/spc_link_private.h"

#include <errno.h>

#include "base/spc_error.h"

enum {
    ROUNDS = 16, /* of one spc_link_write: others want their turn */
    NO_PIECE = UINT32_MAX,
};

/* What one write is offered. */
typedef struct offer {
    spc_frame_piece_t pieces[SPC_CHANNEL_PIECES_MAX];
    uint32_t count;
    uint32_t control; /* which piece is link->control; or NO_PIECE */
    size_t bytes;
} offer_t;

static bool owes_along(const spc_link_t *link) {
    return link->unsent != NULL
           && (link->untold_frames >= SPC_LINK_TAKE_ALONG_FRAMES
               || link->untold_bytes >= SPC_LINK_TAKE_ALONG_BYTES);
}

/* The last frame that comes before what is written now. */
static uint64_t last_before(const spc_link_t *link) {
    return link->unsent == NULL ? link->sequence : link->unsent->sequence - (link->unsent_at == 0);
}

/* A greeting or an acknowledgement, if one is due: it says what has been received until now. */
static void make_control(spc_link_t *link) {
    bool acknowledges = link->is_greeted && (link->owes_acknowledge || owes_along(link));
    if (link->has_control || (link->has_greeted && !acknowledges)) {
        return;
    }
    const spc_frame_t frame = {
        .kind = link->has_greeted ? SPC_FRAME_ACKNOWLEDGE : SPC_FRAME_HELLO,
        .job = link->options.job,
        .total_bytes = link->received,
        .offset = link->has_greeted ? last_before(link) : 0,
    };
    spc_frame_write_header(&frame, NULL, 0, link->control);
    link->has_control = link->has_greeted = true;
    link->control_at = 0;
    link->owes_acknowledge = false;
    link->untold_frames = link->untold_bytes = 0;
    link->counts.sent[frame.kind].frames++;
    link->counts.sent[frame.kind].bytes += SPC_FRAME_HEADER_BYTES;
}

static void offer_piece(offer_t *offer, const unsigned char *start, size_t length_bytes) {
    offer->pieces[offer->count++] = (spc_frame_piece_t){start, length_bytes};
    offer->bytes += length_bytes;
}

static void offer_control(const spc_link_t *link, offer_t *offer) {
    if (link->has_control) {
        offer->control = offer->count;
        offer_piece(offer, link->control + link->control_at, SPC_FRAME_HEADER_BYTES - link->control_at);
    }
}

/* All but the first `at` bytes. */
static void offer_entry(offer_t *offer, const spc_link_entry_t *entry, size_t at) {
    if (at < entry->own_bytes) {
        offer_piece(offer, entry->own + at, entry->own_bytes - at);
        at = entry->own_bytes;
    }
    size_t all = spc_link_entry_bytes(entry);
    if (at < all) {
        offer_piece(offer, spc_link_body_start(entry->shared) + (at - entry->own_bytes), all - at);
    }
}

/* Frames are never cut by others: first what was begun, then control, then the rest. */
static void make_offer(spc_link_t *link, offer_t *offer) {
    offer->count = 0;
    offer->bytes = 0;
    offer->control = NO_PIECE;
    make_control(link);
    const spc_link_entry_t *entry = link->is_greeted ? link->unsent : NULL;
    if (entry != NULL && link->unsent_at > 0) {
        offer_entry(offer, entry, link->unsent_at);
        entry = entry->next;
    }
    offer_control(link, offer);
    for (; entry != NULL && offer->count + 2 <= SPC_CHANNEL_PIECES_MAX; entry = entry->next) {
        offer_entry(offer, entry, 0);
    }
}

static void advance_entry(spc_link_t *link, size_t bytes) {
    spc_link_entry_t *entry = link->unsent;
    link->unsent_at += bytes;
    if (link->unsent_at == spc_link_entry_bytes(entry)) {
        link->unsent = entry->next;
        link->unsent_at = 0;
        if (entry->sequence > link->written) {
            link->written = entry->sequence;
        } else {
            link->counts.resent++;
        }
    }
}

static void advance(spc_link_t *link, const offer_t *offer, size_t taken_bytes) {
    for (uint32_t i = 0; i < offer->count && taken_bytes > 0; i++) {
        size_t length = offer->pieces[i].length_bytes;
        size_t bytes = length < taken_bytes ? length : taken_bytes;
        taken_bytes -= bytes;
        if (i != offer->control) {
            advance_entry(link, bytes);
        } else {
            link->control_at += bytes;
            link->has_control = link->control_at < SPC_FRAME_HEADER_BYTES;
        }
    }
}

bool spc_link_wants_write(const spc_link_t *link) {
    return link->channel != NULL
           && (link->has_control || !link->has_greeted
               || (link->is_greeted && (link->unsent != NULL || link->owes_acknowledge)));
}

void spc_link_flush(spc_link_t *link) {
    for (int round = 0; round < ROUNDS && !link->is_full && spc_link_wants_write(link); round++) {
        offer_t offer; /* only what make_offer fills: this is on the way of every small message */
        make_offer(link, &offer);
        size_t taken_bytes = 0;
        int status = spc_channel_write(link->channel, offer.pieces, offer.count, &taken_bytes);
        if (status == SPC_EAGAIN) {
            link->is_full = true;
        } else if (status != SPC_OK) {
            spc_link_break(link, status, errno);
        } else {
            link->counts.writes++;
            link->wrote_ns = link->options.now_ns();
            link->is_full = taken_bytes < offer.bytes;
            advance(link, &offer, taken_bytes);
        }
    }
}

void spc_link_write(spc_link_t *link) {
    link->is_full = false;
    spc_link_flush(link);
}
