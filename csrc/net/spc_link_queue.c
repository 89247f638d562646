/* SPDX-License-Identifier: MIT */
/* Frames that wait to be written, or are kept until the other end has them; and bodies that several links share. */
#include "net/spc_link_private.h"

#include <string.h>

#include "base/spc_error.h"

/* ---- shared bodies */

struct spc_link_body {
    spc_pool_t *pool;
    uint32_t users;
    size_t length_bytes;
    _Alignas(16) unsigned char bytes[];
};

int spc_link_body_create(spc_pool_t *pool, size_t length_bytes, spc_link_body_t **body) {
    spc_link_body_t *made = spc_pool_take(pool, sizeof *made + length_bytes);
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->pool = pool;
    made->users = 1;
    made->length_bytes = length_bytes;
    *body = made;
    return SPC_OK;
}

unsigned char *spc_link_body_start(spc_link_body_t *body) {
    return body->bytes;
}

size_t spc_link_body_length(const spc_link_body_t *body) {
    return body->length_bytes;
}

spc_link_body_t *spc_link_body_retain(spc_link_body_t *body) {
    body->users++;
    return body;
}

void spc_link_body_release(spc_link_body_t *body) {
    if (body != NULL && --body->users == 0) {
        spc_pool_give(body->pool, body, sizeof *body + body->length_bytes);
    }
}

/* ---- the list */

static void free_entry(spc_link_t *link, spc_link_entry_t *entry) {
    link->counts.retained_bytes -= spc_link_entry_bytes(entry);
    spc_link_body_release(entry->shared);
    spc_pool_give(link->options.pool, entry, sizeof *entry + entry->own_bytes);
}

void spc_link_forget_all(spc_link_t *link) {
    while (link->first != NULL) {
        spc_link_entry_t *entry = link->first;
        link->first = entry->next;
        free_entry(link, entry);
    }
    link->last = link->unsent = NULL;
    link->unsent_at = 0;
}

bool spc_link_forget_acknowledged(spc_link_t *link, uint64_t sequence) {
    if (sequence < link->acknowledged || sequence > link->written
        || (link->unsent != NULL && sequence >= link->unsent->sequence)) {
        return false;
    }
    link->acknowledged = sequence;
    while (link->first != NULL && link->first->sequence <= sequence) {
        spc_link_entry_t *entry = link->first;
        link->first = entry->next;
        free_entry(link, entry);
    }
    if (link->first == NULL) {
        link->last = NULL;
    }
    return true;
}

static void append(spc_link_t *link, spc_link_entry_t *entry) {
    if (link->last != NULL) {
        link->last->next = entry;
    } else {
        link->first = entry;
    }
    link->last = entry;
    if (link->unsent == NULL) {
        link->unsent = entry;
    }
    link->counts.retained_bytes += spc_link_entry_bytes(entry);
    if (link->counts.retained_bytes > link->counts.retained_bytes_worst) {
        link->counts.retained_bytes_worst = link->counts.retained_bytes;
    }
}

/* Header, copies, sums: the bytes are final, and the same however often they are sent. */
static int make_entry(spc_link_t *link, const spc_frame_t *given, const spc_frame_piece_t *pieces,
                      uint32_t count, spc_link_body_t *shared, size_t copied_bytes) {
    spc_link_entry_t *entry =
        spc_pool_take(link->options.pool, sizeof *entry + SPC_FRAME_HEADER_BYTES + copied_bytes);
    if (entry == NULL) {
        return SPC_ENOMEM;
    }
    unsigned char *copies = entry->own + SPC_FRAME_HEADER_BYTES, *at = copies;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].length_bytes > 0) { /* an empty piece may have no address */
            memcpy(at, pieces[i].start, pieces[i].length_bytes);
            at += pieces[i].length_bytes;
        }
    }
    entry->next = NULL;
    entry->sequence = ++link->sequence;
    entry->shared = shared != NULL ? spc_link_body_retain(shared) : NULL;
    entry->own_bytes = (uint32_t)(SPC_FRAME_HEADER_BYTES + copied_bytes);

    spc_frame_t frame = *given;
    frame.job = link->options.job;
    frame.sequence = entry->sequence;
    spc_frame_piece_t body[2] = {{copies, copied_bytes}, {NULL, 0}};
    if (shared != NULL) {
        body[1] = (spc_frame_piece_t){spc_link_body_start(shared), spc_link_body_length(shared)};
    }
    frame.length_bytes = (uint32_t)(copied_bytes + body[1].length_bytes);
    spc_frame_write_header(&frame, body, shared != NULL ? 2 : 1, entry->own);
    append(link, entry);
    link->counts.sent[frame.kind % SPC_LINK_KINDS].frames++;
    link->counts.sent[frame.kind % SPC_LINK_KINDS].bytes += SPC_FRAME_HEADER_BYTES + frame.length_bytes;
    return SPC_OK;
}

int spc_link_queue_shared(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                          uint32_t count, spc_link_body_t *shared) {
    size_t copied_bytes = 0, shared_bytes = shared != NULL ? spc_link_body_length(shared) : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].length_bytes > SPC_FRAME_BODY_MAX - copied_bytes) {
            return SPC_EINVAL;
        }
        copied_bytes += pieces[i].length_bytes;
    }
    if (shared_bytes > SPC_FRAME_BODY_MAX - copied_bytes || frame->kind == SPC_FRAME_HELLO
        || frame->kind == SPC_FRAME_ACKNOWLEDGE) {
        return SPC_EINVAL;
    }
    if (link->is_dead) {
        return SPC_ETIMEDOUT;
    }
    if (link->is_finished) {
        return SPC_ECLOSED;
    }
    uint64_t bytes = SPC_FRAME_HEADER_BYTES + copied_bytes + shared_bytes;
    if (link->counts.retained_bytes + bytes > link->options.retained_max) {
        return SPC_EAGAIN;
    }
    return make_entry(link, frame, pieces, count, shared, copied_bytes);
}

int spc_link_queue(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                   uint32_t count) {
    return spc_link_queue_shared(link, frame, pieces, count, NULL);
}

int spc_link_send(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                  uint32_t count) {
    int status = spc_link_queue_shared(link, frame, pieces, count, NULL);
    if (status == SPC_OK) {
        spc_link_flush(link);
    }
    return status;
}

int spc_link_finish(spc_link_t *link) {
    if (link->is_dead) {
        return SPC_ETIMEDOUT;
    }
    if (link->is_finished) {
        return SPC_OK;
    }
    /* Beyond retained_max if need be: it is one header, and the last. */
    const spc_frame_t frame = {.kind = SPC_FRAME_ACKNOWLEDGE, .flags = SPC_FRAME_LAST};
    int status = make_entry(link, &frame, NULL, 0, NULL, 0);
    if (status == SPC_OK) {
        link->is_finished = true;
        spc_link_flush(link);
    }
    return status;
}

bool spc_link_is_flushed(const spc_link_t *link) {
    return link->first == NULL;
}
