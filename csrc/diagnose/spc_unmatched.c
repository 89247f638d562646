/* SPDX-License-Identifier: MIT */
#include "diagnose/spc_unmatched.h"

#include "message/spc_mailbox.h"
#include "segment/spc_note.h"

bool spc_unmatched_any(const spc_segment_t *segment) {
    for (uint32_t rank = 0; rank < segment->config->nodes; rank++) {
        const spc_note_shared_t *notes = spc_segment_part(segment, SPC_REGION_NOTE, rank);
        if (spc_note_has_any(notes)
            || spc_mailbox_has_rung(spc_segment_part(segment, SPC_REGION_MAILBOX, rank))) {
            return true;
        }
    }
    return false;
}
