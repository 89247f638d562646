/* SPDX-License-Identifier: MIT */
/*
 * spc_unmatched: detects whether the nodes of a run left messages or barriers that are worth a warning.
 *
 * For whoever supervises a run, after the end of all nodes; reads only. It returns true a little too often (a message
 * may be spcomm's own), so that a run that leaves nothing pays two cache lines a node. The caller reads the details
 * from the notes (segment/spc_note.h) and from the unread messages in mailboxes (spc_mailbox_unread).
 */
#ifndef SPC_UNMATCHED_H
#define SPC_UNMATCHED_H

#include <stdbool.h>

#include "segment/spc_segment.h"

bool spc_unmatched_any(const spc_segment_t *segment);

#endif
