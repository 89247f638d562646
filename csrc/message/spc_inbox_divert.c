/* SPDX-License-Identifier: MIT */
/*
 * Messages for handlers. A handler is asked for by its receiver, so the slot says nothing of it: what has its context
 * and tag is filed under another context, where no receive looks. Order is as ever: by arrival, and so by sender.
 */
#include <stdlib.h>

#include "base/spc_error.h"
#include "message/spc_inbox_private.h"

uint16_t spc_inbox_diverted_to(const spc_inbox_t *inbox, uint16_t context, int32_t tag) {
    for (uint32_t i = 0; i < inbox->diversion_count; i++) {
        const spc_diversion_t *diversion = &inbox->diversions[i];
        if (diversion->from == context && diversion->tag == tag) {
            return diversion->to;
        }
    }
    return context;
}

uint16_t spc_inbox_diverted_from(const spc_inbox_t *inbox, uint16_t context, int32_t tag) {
    for (uint32_t i = 0; i < inbox->diversion_count; i++) {
        const spc_diversion_t *diversion = &inbox->diversions[i];
        if (diversion->to == context && diversion->tag == tag) {
            return diversion->from;
        }
    }
    return context;
}

bool spc_inbox_diverts(const spc_inbox_t *inbox) {
    return inbox->diversion_count != 0;
}

bool spc_inbox_has_diverted(const spc_inbox_t *inbox) {
    for (uint32_t i = 0; i < inbox->diversion_count; i++) {
        if (spc_inbox_count(inbox, inbox->diversions[i].to) != 0) {
            return true;
        }
    }
    return false;
}

/* What was queued before there was a handler. An entry keeps its place and its receipt; only lists by tag hang on the
 * context. */
static void divert_queued(spc_inbox_t *inbox, const spc_diversion_t *diversion) {
    spc_entry_t *next;
    for (spc_entry_t *entry = inbox->queue.arrivals.first; entry != NULL; entry = next) {
        next = entry->next;
        if (entry->message.context == diversion->from && entry->message.tag == diversion->tag) {
            const bool complete = spc_entry_is_complete(entry);
            inbox->counts[diversion->from] -= complete;
            inbox->counts[diversion->to] += complete;
            spc_inbox_queue_move(&inbox->queue, entry, diversion->to);
        }
    }
}

int spc_inbox_divert(spc_inbox_t *inbox, uint16_t context, int32_t tag, uint16_t to) {
    if (spc_inbox_diverted_to(inbox, context, tag) == to) {
        return SPC_OK;
    }
    spc_diversion_t *grown =
        realloc(inbox->diversions, (inbox->diversion_count + 1u) * sizeof(*inbox->diversions));
    if (grown == NULL) {
        return SPC_ENOMEM;
    }
    inbox->diversions = grown;
    /* An incomplete message counts only when it is complete, and then it must not fail. */
    if (spc_inbox_make_count(inbox, to) != SPC_OK) {
        return SPC_ENOMEM;
    }
    grown[inbox->diversion_count] = (spc_diversion_t){.tag = tag, .from = context, .to = to};
    divert_queued(inbox, &grown[inbox->diversion_count]);
    inbox->diversion_count++;
    return SPC_OK;
}

void spc_inbox_forget_diversions(spc_inbox_t *inbox, uint16_t first, uint16_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < inbox->diversion_count; i++) {
        const spc_diversion_t diversion = inbox->diversions[i];
        if (diversion.from < first || diversion.from - first >= count) {
            inbox->diversions[kept++] = diversion;
        }
    }
    inbox->diversion_count = kept;
}
