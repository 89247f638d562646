/* SPDX-License-Identifier: MIT */
/*
 * Messages for handlers. A handler is asked for by its receiver, so the slot says nothing of it: what has its context
 * and tag is filed under another context, where no receive looks. Order is as ever: by arrival, and so by sender.
 */
#include <stdlib.h>

#include "base/spc_error.h"
#include "message/spc_inbox_private.h"

#define BITS_MIN 4

/* ---- the table: open addressing, linear probing */

/* The place where the search for a context and tag begins. */
static uint32_t home_of(const spc_inbox_t *inbox, uint16_t context, int32_t tag) {
    uint32_t key = (uint32_t)tag + context * UINT32_C(0x85ebca6b);
    return key * UINT32_C(0x9e3779b9) >> (32 - inbox->diversion_bits); /* neighboring tags lie far apart */
}

static uint32_t mask_of(const spc_inbox_t *inbox) {
    return (UINT32_C(1) << inbox->diversion_bits) - 1;
}

static bool is_free(const spc_diversion_t *diversion) {
    return diversion->from == diversion->to;
}

/* The diversion of this context and tag, or the free place where it would be. */
static spc_diversion_t *find(const spc_inbox_t *inbox, uint16_t context, int32_t tag) {
    uint32_t at = home_of(inbox, context, tag);
    spc_diversion_t *found = &inbox->diversions[at];
    while (!is_free(found) && (found->tag != tag || found->from != context)) {
        at = (at + 1) & mask_of(inbox);
        found = &inbox->diversions[at];
    }
    return found;
}

/* Makes room for one more. SPC_ENOMEM. */
static int grow(spc_inbox_t *inbox) {
    spc_diversion_t *before = inbox->diversions;
    const uint32_t places = before != NULL ? mask_of(inbox) + 1 : 0;
    if (inbox->diversion_count < places / 2) {
        return SPC_OK;
    }
    const uint32_t bits = before != NULL ? inbox->diversion_bits + 1 : BITS_MIN;
    spc_diversion_t *grown = calloc((size_t)1 << bits, sizeof(*grown));
    if (grown == NULL) {
        return SPC_ENOMEM;
    }
    inbox->diversions = grown;
    inbox->diversion_bits = bits;
    for (uint32_t i = 0; i < places; i++) {
        if (!is_free(&before[i])) {
            *find(inbox, before[i].from, before[i].tag) = before[i];
        }
    }
    free(before);
    return SPC_OK;
}

/* Takes one out, and moves up those behind it that the free place would hide. */
static void take_out(spc_inbox_t *inbox, uint32_t place) {
    const uint32_t mask = mask_of(inbox);
    spc_diversion_t *table = inbox->diversions;
    for (uint32_t at = (place + 1) & mask; !is_free(&table[at]); at = (at + 1) & mask) {
        const uint32_t home = home_of(inbox, table[at].from, table[at].tag);
        if (((at - home) & mask) >= ((at - place) & mask)) {
            table[place] = table[at];
            place = at;
        }
    }
    table[place] = (spc_diversion_t){.tag = 0};
    inbox->diversion_count--;
}

/* ---- what the inbox asks */

uint16_t spc_inbox_diverted_to(const spc_inbox_t *inbox, uint16_t context, int32_t tag) {
    const spc_diversion_t *found = find(inbox, context, tag);
    return is_free(found) ? context : found->to;
}

uint16_t spc_inbox_diverted_from(const spc_inbox_t *inbox, uint16_t context) {
    const bool is_diverted = context < inbox->contexts && inbox->filed[context].is_diverted;
    return is_diverted ? inbox->filed[context].diverted_from : context;
}

bool spc_inbox_diverts(const spc_inbox_t *inbox) {
    return inbox->diversion_count != 0;
}

bool spc_inbox_has_diverted(const spc_inbox_t *inbox) {
    return inbox->diverted != 0;
}

/* ---- beginning and ending */

/* What was queued before there was a handler. An entry keeps its place and its receipt; only lists by tag hang on the
 * context. */
static void divert_queued(spc_inbox_t *inbox, const spc_diversion_t *diversion) {
    spc_entry_t *next;
    for (spc_entry_t *entry = inbox->queue.arrivals.first; entry != NULL; entry = next) {
        next = entry->next;
        if (entry->message.context == diversion->from && entry->message.tag == diversion->tag) {
            if (spc_entry_is_complete(entry)) {
                spc_inbox_count_complete(inbox, diversion->from, -1);
                spc_inbox_count_complete(inbox, diversion->to, 1);
            }
            spc_inbox_queue_move(&inbox->queue, entry, diversion->to);
        }
    }
}

int spc_inbox_divert(spc_inbox_t *inbox, uint16_t context, int32_t tag, uint16_t to) {
    /* An incomplete message counts only when it is complete, and then it must not fail. */
    if (grow(inbox) != SPC_OK || spc_inbox_make_count(inbox, to) != SPC_OK) {
        return SPC_ENOMEM;
    }
    spc_diversion_t *diversion = find(inbox, context, tag);
    if (is_free(diversion)) {
        *diversion = (spc_diversion_t){.tag = tag, .from = context, .to = to};
        inbox->diversion_count++;
        inbox->filed[to].diverted_from = context;
        inbox->filed[to].is_diverted = true;
        divert_queued(inbox, diversion);
    }
    return SPC_OK;
}

void spc_inbox_forget_diversions(spc_inbox_t *inbox, uint16_t first, uint16_t count) {
    const uint32_t places = inbox->diversion_count != 0 ? mask_of(inbox) + 1 : 0;
    for (uint32_t place = 0; place < places;) {
        const spc_diversion_t *diversion = &inbox->diversions[place];
        if (!is_free(diversion) && diversion->from >= first && diversion->from - first < count) {
            take_out(inbox, place); /* another one may be there now */
        } else {
            place++;
        }
    }
}
