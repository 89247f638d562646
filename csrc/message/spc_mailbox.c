/* SPDX-License-Identifier: MIT */
#include "message/spc_mailbox.h"

static uint64_t row_bytes(uint32_t slots) {
    return sizeof(spc_row_shared_t) + (uint64_t)slots * sizeof(spc_slot_shared_t);
}

uint64_t spc_mailbox_bytes(uint32_t senders, uint32_t slots) {
    return sizeof(spc_mailbox_shared_t) + senders * row_bytes(slots);
}

spc_row_shared_t *spc_mailbox_row(spc_mailbox_shared_t *mailbox, uint32_t sender, uint32_t slots) {
    unsigned char *rows = (unsigned char *)mailbox + sizeof(spc_mailbox_shared_t);
    return (spc_row_shared_t *)(rows + sender * row_bytes(slots));
}

void spc_mailbox_writer_init(spc_mailbox_writer_t *writer, spc_mailbox_shared_t *mailbox, uint32_t sender,
                             uint32_t slots) {
    *writer = (spc_mailbox_writer_t){
        .row = spc_mailbox_row(mailbox, sender, slots),
        .doorbell = &mailbox->doorbell,
        .doorbell_bit = UINT64_C(1) << (sender % 64),
        .slots = slots,
    };
}

void spc_mailbox_reader_init(spc_mailbox_reader_t *reader, spc_mailbox_shared_t *mailbox, uint32_t sender,
                             uint32_t slots) {
    *reader = (spc_mailbox_reader_t){
        .row = spc_mailbox_row(mailbox, sender, slots),
        .slots = slots,
        /* A divisor of the row, so that a full row that has been read is always published. */
        .publish_every = slots % 4 == 0 ? slots / 4 : 1,
    };
}

bool spc_mailbox_refresh(spc_mailbox_writer_t *writer) {
    /* seq_cst: may be the second test of a sender that is about to sleep. Pairs with spc_mailbox_consume. */
    writer->consumed = atomic_load_explicit(&writer->row->consumed, memory_order_seq_cst);
    return writer->announced - writer->consumed < writer->slots;
}

spc_mailbox_count_t spc_mailbox_count(spc_mailbox_shared_t *mailbox, uint32_t sender, uint32_t slots) {
    spc_row_shared_t *row = spc_mailbox_row(mailbox, sender, slots);
    /* Relaxed, all: the caller has seen the end of the nodes, or takes the values that are there. */
    uint32_t written = atomic_load_explicit(&row->slot[0].sequence, memory_order_relaxed);
    for (uint32_t i = 1; i < slots; i++) {
        uint32_t sequence = atomic_load_explicit(&row->slot[i].sequence, memory_order_relaxed);
        written = (int32_t)(sequence - written) > 0 ? sequence : written;
    }
    return (spc_mailbox_count_t){
        .messages = written - atomic_load_explicit(&row->continued, memory_order_relaxed),
        .long_bytes = atomic_load_explicit(&row->long_bytes, memory_order_relaxed),
    };
}

bool spc_mailbox_unread(spc_mailbox_shared_t *mailbox, uint32_t sender, uint32_t slots, uint32_t *at,
                        spc_unread_t *unread) {
    /* Pairs with spc_mailbox_announce, as spc_mailbox_collect does. */
    uint64_t rung = atomic_load_explicit(&mailbox->doorbell, memory_order_seq_cst);
    if ((rung >> sender % 64 & 1) == 0) {
        return false;
    }
    const spc_row_shared_t *row = spc_mailbox_row(mailbox, sender, slots);
    uint32_t consumed = atomic_load_explicit(&row->consumed, memory_order_seq_cst); /* pairs with publish */
    while (*at < slots) {
        uint32_t index = consumed + (*at)++;
        const spc_slot_shared_t *slot = &row->slot[index % slots];
        /* Pairs with the release in spc_mailbox_announce. */
        if (atomic_load_explicit(&slot->sequence, memory_order_acquire) != index + 1) {
            return false;
        }
        if ((slot->flags & (SPC_SLOT_PART | SPC_SLOT_FIRST)) != SPC_SLOT_PART
            && (slot->flags & SPC_SLOT_LAST) == 0) {
            *unread = (spc_unread_t){slot->source, slot->context, slot->tag};
            return true;
        }
    }
    return false;
}
