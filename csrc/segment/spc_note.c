/* SPDX-License-Identifier: MIT */
#include "segment/spc_note.h"

#include <string.h>

void spc_note_write(spc_note_shared_t *notes, spc_note_kind_t kind, const spc_note_t *note) {
    spc_note_slot_shared_t *slot = &notes->slot[kind];
    const unsigned char *bytes = (const unsigned char *)note;
    uint32_t version = atomic_load_explicit(&slot->version, memory_order_relaxed);
    atomic_store_explicit(&slot->version, version + 1, memory_order_relaxed);
    for (uint64_t i = 0; i < SPC_NOTE_WORDS; i++) {
        uint32_t word;
        memcpy(&word, bytes + 4 * i, 4);
        /* Release: a reader of the word sees the odd version, too. Pairs with spc_note_read. */
        atomic_store_explicit(&slot->word[i], word, memory_order_release);
    }
    /* Release: the words. Pairs with spc_note_read. */
    atomic_store_explicit(&slot->version, version + 2, memory_order_release);
}

bool spc_note_read(const spc_note_shared_t *notes, spc_note_kind_t kind, spc_note_t *note) {
    const spc_note_slot_shared_t *slot = &notes->slot[kind];
    unsigned char *bytes = (unsigned char *)note;
    /* Acquire: pairs with the last store of spc_note_write. */
    uint32_t version = atomic_load_explicit(&slot->version, memory_order_acquire);
    for (uint64_t i = 0; i < SPC_NOTE_WORDS; i++) {
        /* Acquire: the version is read again after it. Pairs with spc_note_write. */
        uint32_t word = atomic_load_explicit(&slot->word[i], memory_order_acquire);
        memcpy(bytes + 4 * i, &word, 4);
    }
    note->words[SPC_NOTE_WORDS_BYTES - 1] = '\0';
    note->function[SPC_NOTE_FUNCTION_BYTES - 1] = '\0';
    note->file[SPC_NOTE_FILE_BYTES - 1] = '\0';
    return version != 0 && version % 2 == 0
           && atomic_load_explicit(&slot->version, memory_order_relaxed) == version;
}

void spc_note_add_left(spc_note_shared_t *notes, uint32_t source, uint32_t destination, int32_t tag,
                       uint32_t context) {
    if (notes == NULL) {
        return;
    }
    uint32_t count = atomic_load_explicit(&notes->left_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        spc_note_left_t *row = &notes->left[i];
        if (row->source == source && row->destination == destination && row->tag == tag
            && row->context == context) {
            row->count++;
            return;
        }
    }
    if (count == SPC_NOTE_LEFT_MAX) {
        notes->left_more++;
        return;
    }
    notes->left[count] = (spc_note_left_t){source, destination, tag, context, 1};
    /* Release: the row. Its reader comes after the process has ended, and needs no stronger order. */
    atomic_store_explicit(&notes->left_count, count + 1, memory_order_release);
}

void spc_note_add_sent(spc_note_shared_t *notes, const spc_note_sent_t *sent) {
    uint32_t count = atomic_load_explicit(&notes->sent_count, memory_order_relaxed);
    if (count < SPC_NOTE_LEFT_MAX) {
        notes->sent[count] = *sent;
        /* Release: the row. Pairs with spc_note_find_sent. */
        atomic_store_explicit(&notes->sent_count, count + 1, memory_order_release);
    }
}

bool spc_note_find_sent(const spc_note_shared_t *notes, uint32_t destination, int32_t tag, uint32_t format,
                        spc_note_sent_t *sent) {
    /* Acquire: the rows, which are not changed any more. Pairs with spc_note_add_sent. */
    for (uint32_t i = atomic_load_explicit(&notes->sent_count, memory_order_acquire); i > 0; i--) {
        const spc_note_sent_t *row = &notes->sent[i - 1];
        if (row->destination == destination && row->tag == tag && row->format == format) {
            *sent = *row;
            return true;
        }
    }
    return false;
}

void spc_note_forget_sent(spc_note_shared_t *notes) {
    atomic_store_explicit(&notes->sent_count, 0, memory_order_relaxed); /* the rows stay as they are */
}

void spc_note_add_handled(spc_note_shared_t *notes, uint32_t context, int32_t tag) {
    uint32_t count = atomic_load_explicit(&notes->handled_count, memory_order_relaxed);
    if (count < SPC_NOTE_HANDLED_MAX) {
        notes->handled[count] = (spc_note_handled_t){context, tag};
        /* Release: the row. Its reader comes after the process has ended. */
        atomic_store_explicit(&notes->handled_count, count + 1, memory_order_release);
    }
}

bool spc_note_is_handled(const spc_note_shared_t *notes, uint32_t context, int32_t tag) {
    uint32_t count = atomic_load_explicit(&notes->handled_count, memory_order_acquire);
    bool found = false;
    for (uint32_t i = 0; i < count && !found; i++) {
        found = notes->handled[i].context == context && notes->handled[i].tag == tag;
    }
    return found;
}
