/* SPDX-License-Identifier: MIT */
#include "message/spc_receipt.h"

#include <stdlib.h>

#include "base/spc_error.h"

/* One node's requests to another. */
typedef struct asked {
    spc_row_shared_t *row;
    uint32_t sent;                        /* the next number */
    uint32_t awaited[SPC_RECEIPT_WORDS];  /* bits of numbers that a thread waits for */
    uint32_t given_up[SPC_RECEIPT_WORDS]; /* bits of messages not taken yet, without a waiting thread */
} asked_t;

struct spc_receipts {
    uint32_t nodes;
    asked_t asked[];
};

static uint32_t word_of(uint32_t number) {
    return number / 32 % SPC_RECEIPT_WORDS;
}

static uint32_t bit_of(uint32_t number) {
    return UINT32_C(1) << number % 32;
}

int spc_receipts_create(const spc_segment_t *segment, uint32_t rank, spc_receipts_t **receipts) {
    const spc_config_t *config = segment->config;
    spc_receipts_t *made = calloc(1, sizeof(*made) + config->nodes * sizeof(asked_t));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->nodes = config->nodes;
    for (uint32_t i = 0; i < config->nodes; i++) {
        spc_mailbox_shared_t *mailbox = spc_segment_part(segment, SPC_REGION_MAILBOX, i);
        made->asked[i].row = spc_mailbox_row(mailbox, rank, config->slots);
    }
    *receipts = made;
    return SPC_OK;
}

void spc_receipts_destroy(spc_receipts_t *receipts) {
    free(receipts);
}

bool spc_receipt_is_given(const spc_row_shared_t *row, uint32_t number) {
    /* seq_cst: part of the second test of a sender about to sleep. Pairs with spc_receipt_give. */
    uint32_t bits = atomic_load_explicit(&row->receipt[word_of(number)], memory_order_seq_cst);
    bool odd_lap = number / SPC_RECEIPTS_MAX % 2 != 0;
    return ((bits & bit_of(number)) != 0) != odd_lap;
}

const spc_row_shared_t *spc_receipts_row(const spc_receipts_t *receipts, int32_t destination) {
    return receipts->asked[destination].row;
}

bool spc_receipts_given(const spc_receipts_t *receipts, uint32_t destination, uint32_t number) {
    return spc_receipt_is_given(receipts->asked[destination].row, number);
}

int spc_receipts_next(spc_receipts_t *receipts, uint32_t destination, uint32_t *number) {
    asked_t *asked = &receipts->asked[destination];
    uint32_t word = word_of(asked->sent);
    uint32_t bit = bit_of(asked->sent);
    if ((asked->given_up[word] & bit) != 0
        && spc_receipts_given(receipts, destination, asked->sent - SPC_RECEIPTS_MAX)) {
        asked->given_up[word] &= ~bit;
    }
    if (((asked->awaited[word] | asked->given_up[word]) & bit) != 0) {
        return SPC_ELIMIT;
    }
    *number = asked->sent;
    return SPC_OK;
}

void spc_receipts_note_sent(spc_receipts_t *receipts, uint32_t destination) {
    asked_t *asked = &receipts->asked[destination];
    asked->awaited[word_of(asked->sent)] |= bit_of(asked->sent);
    asked->sent++;
}

void spc_receipts_settle(spc_receipts_t *receipts, uint32_t destination, uint32_t number) {
    asked_t *asked = &receipts->asked[destination];
    asked->awaited[word_of(number)] &= ~bit_of(number);
    if (!spc_receipts_given(receipts, destination, number)) {
        asked->given_up[word_of(number)] |= bit_of(number);
    }
}

void spc_receipt_give(spc_row_shared_t *row, uint32_t number) {
    _Atomic uint32_t *word = &row->receipt[word_of(number)];
    /* The only writer. seq_cst: between the bit and the caller's load of `sleeping`; release, so that the sender sees
     * the receiver's earlier writes. Pairs with spc_receipt_is_given. */
    uint32_t bits = atomic_load_explicit(word, memory_order_relaxed);
    atomic_store_explicit(word, bits ^ bit_of(number), memory_order_seq_cst);
}
