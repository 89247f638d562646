/* SPDX-License-Identifier: MIT */
#include "message/spc_receipt.h"

#include <stdlib.h>

#include "base/spc_error.h"

/* Receipts that are messages: of numbers from `first` to before `next`, a bit in `given` at its place modulo their
 * count. All before them are there. */
typedef struct answers {
    uint32_t first, next;
    uint32_t words; /* a power of two, or 0 */
    uint32_t *given;
} answers_t;

/* One node's requests to another. */
typedef struct asked {
    spc_row_shared_t *row;
    answers_t answers;
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

/* ---- answers ---- */

static uint32_t *answer_word(const answers_t *answers, uint32_t number) {
    return &answers->given[number / 32 & (answers->words - 1)];
}

static bool has_answer(const answers_t *answers, uint32_t number) {
    return number - answers->first >= answers->next - answers->first
           || (*answer_word(answers, number) & bit_of(number)) != 0;
}

/* Twice as many places. */
static int grow(answers_t *answers) {
    answers_t grown = *answers;
    grown.words = answers->words != 0 ? 2 * answers->words : 1;
    grown.given = calloc(grown.words, sizeof(*grown.given));
    if (grown.given == NULL) {
        return SPC_ENOMEM;
    }
    for (uint32_t number = answers->first; number != answers->next; number++) {
        *answer_word(&grown, number) |= has_answer(answers, number) ? bit_of(number) : 0;
    }
    free(answers->given);
    *answers = grown;
    return SPC_OK;
}

static int next_answer(answers_t *answers, uint64_t *number) {
    *number = SPC_RECEIPT_ANSWER | answers->next;
    return answers->next - answers->first == 32 * answers->words ? grow(answers) : SPC_OK;
}

static void note_answer(answers_t *answers, uint32_t number) {
    if (has_answer(answers, number)) {
        return;
    }
    *answer_word(answers, number) |= bit_of(number);
    while (answers->first != answers->next
           && (*answer_word(answers, answers->first) & bit_of(answers->first)) != 0) {
        *answer_word(answers, answers->first) &= ~bit_of(answers->first);
        answers->first++;
    }
}

/* ---- bits, or answers where there is none ---- */

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
    for (uint32_t i = 0; receipts != NULL && i < receipts->nodes; i++) {
        free(receipts->asked[i].answers.given);
    }
    free(receipts);
}

static bool is_bit_given(const spc_row_shared_t *row, uint32_t number) {
    /* seq_cst: part of the second test of a sender about to sleep. Pairs with spc_receipt_give. */
    uint32_t bits = atomic_load_explicit(&row->receipt[word_of(number)], memory_order_seq_cst);
    bool odd_lap = number / SPC_RECEIPTS_MAX % 2 != 0;
    return ((bits & bit_of(number)) != 0) != odd_lap;
}

bool spc_receipt_is_given(const spc_row_shared_t *row, uint64_t number) {
    return !spc_receipt_is_answer(number) && is_bit_given(row, (uint32_t)number);
}

const spc_row_shared_t *spc_receipts_row(const spc_receipts_t *receipts, int32_t destination) {
    return receipts->asked[destination].row;
}

bool spc_receipts_given(const spc_receipts_t *receipts, uint32_t destination, uint64_t number) {
    const asked_t *asked = &receipts->asked[destination];
    return spc_receipt_is_answer(number) ? has_answer(&asked->answers, (uint32_t)number)
                                         : is_bit_given(asked->row, (uint32_t)number);
}

int spc_receipts_next(spc_receipts_t *receipts, uint32_t destination, uint64_t *number) {
    asked_t *asked = &receipts->asked[destination];
    uint32_t word = word_of(asked->sent);
    uint32_t bit = bit_of(asked->sent);
    if ((asked->given_up[word] & bit) != 0 && is_bit_given(asked->row, asked->sent - SPC_RECEIPTS_MAX)) {
        asked->given_up[word] &= ~bit;
    }
    if (((asked->awaited[word] | asked->given_up[word]) & bit) != 0) {
        return next_answer(&asked->answers, number);
    }
    *number = asked->sent;
    return SPC_OK;
}

void spc_receipts_note_sent(spc_receipts_t *receipts, uint32_t destination, uint64_t number) {
    asked_t *asked = &receipts->asked[destination];
    if (spc_receipt_is_answer(number)) {
        asked->answers.next++;
        return;
    }
    asked->awaited[word_of(asked->sent)] |= bit_of(asked->sent);
    asked->sent++;
}

void spc_receipts_note_answer(spc_receipts_t *receipts, uint32_t destination, uint64_t number) {
    note_answer(&receipts->asked[destination].answers, (uint32_t)number);
}

void spc_receipts_settle(spc_receipts_t *receipts, uint32_t destination, uint64_t number) {
    asked_t *asked = &receipts->asked[destination];
    if (spc_receipt_is_answer(number)) {
        return;
    }
    const uint32_t word = word_of((uint32_t)number), bit = bit_of((uint32_t)number);
    asked->awaited[word] &= ~bit;
    if (!is_bit_given(asked->row, (uint32_t)number)) {
        asked->given_up[word] |= bit;
    }
}

void spc_receipt_give(spc_row_shared_t *row, uint32_t number) {
    _Atomic uint32_t *word = &row->receipt[word_of(number)];
    /* The only writer. seq_cst: between the bit and the caller's load of `sleeping`; release, so that the sender sees
     * the receiver's earlier writes. Pairs with spc_receipt_is_given. */
    uint32_t bits = atomic_load_explicit(word, memory_order_relaxed);
    atomic_store_explicit(word, bits ^ bit_of(number), memory_order_seq_cst);
}
