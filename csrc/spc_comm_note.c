/* SPDX-License-Identifier: MIT */
/*
 * What a node leaves for others to read (segment/spc_note.h): where it ended, its line in a mismatch, what it left
 * open.
 */
#include <string.h>

#include "base/spc_clock.h"
#include "spc_comm_private.h"

#define LOOK_NS UINT64_C(200000) /* between two looks for another node's note */

static const spc_note_shared_t *notes_of(const spc_comm_t *comm, uint32_t rank) {
    return spc_segment_part(&comm->node->segment, SPC_REGION_NOTE, spc_comm_member(comm, rank));
}

void spc_comm_note(spc_comm_t *comm, spc_note_kind_t kind, const spc_note_t *note) {
    if (spc_comm_usable(comm) != SPC_OK) {
        return;
    }
    pthread_mutex_lock(&comm->node->lock);
    spc_note_write(comm->node->notes, kind, note);
    pthread_mutex_unlock(&comm->node->lock);
    if (comm->config->boxes > 1) {
        spc_event_raise(&comm->node->events[comm->node->size],
                        comm->config->features); /* the agent tells others */
    }
}

bool spc_comm_has_note(const spc_comm_t *comm, spc_note_kind_t kind) {
    spc_note_t note;
    return spc_note_read(comm->node->notes, kind, &note);
}

void spc_comm_note_failure(spc_comm_t *comm, int32_t exit_code) {
    atomic_store_explicit(&comm->node->failure, exit_code, memory_order_relaxed); /* read in spc_node_close */
}

void spc_comm_note_raised(spc_comm_t *comm, int32_t change) {
    if (spc_comm_usable(comm) == SPC_OK) {
        spc_status_count_raised(comm->node->status, comm->node->rank, change);
    }
}

void spc_comm_note_sent(spc_comm_t *comm, const spc_note_sent_t *sent) {
    pthread_mutex_lock(&comm->node->lock);
    spc_note_add_sent(comm->node->notes, sent);
    pthread_mutex_unlock(&comm->node->lock);
}

/* ---- ends ---- */

/* Killed in a wait: the board is published still. */
static bool find_wait(const spc_comm_t *comm, uint32_t rank, spc_note_t *note) {
    const spc_board_shared_t *board =
        spc_segment_part(&comm->node->segment, SPC_REGION_BOARD, spc_comm_member(comm, rank));
    uint32_t stuck = spc_board_stuck(board);
    spc_board_entry_t entry;
    if (!spc_board_is_stuck(stuck) || !spc_board_read(board, stuck, &entry) || entry.line == 0) {
        return false;
    }
    _Static_assert(sizeof(entry.file) == sizeof(note->file), "places are of one size");
    _Static_assert(sizeof(entry.function) == sizeof(note->function), "places are of one size");
    *note = (spc_note_t){.line = entry.line, .words = "in a call that waited"};
    memcpy(note->function, entry.function, sizeof(note->function));
    memcpy(note->file, entry.file, sizeof(note->file));
    return true;
}

bool spc_comm_end_of(const spc_comm_t *comm, uint32_t rank, spc_note_t *note) {
    return spc_note_read(notes_of(comm, rank), SPC_NOTE_END, note) || find_wait(comm, rank, note);
}

/* ---- mismatches ---- */

/* Phases of different communicators are different operations. Not 0. */
static uint64_t key_of(const spc_comm_t *comm, uint64_t phase) {
    return phase * SPC_COMMUNICATORS_MAX + comm->number;
}

void spc_comm_note_call(spc_comm_t *comm, uint64_t phase, spc_note_t *note) {
    note->key = key_of(comm, phase);
    spc_comm_note(comm, SPC_NOTE_CALL, note);
}

bool spc_comm_call_of(const spc_comm_t *comm, uint32_t rank, uint64_t phase, uint64_t deadline_ns,
                      spc_note_t *note) {
    uint64_t key = key_of(comm, phase);
    for (;;) {
        if (spc_note_read(notes_of(comm, rank), SPC_NOTE_CALL, note) && note->key == key) {
            return true;
        }
        if (spc_comm_has_left(comm, rank) || spc_clock_now_ns() >= deadline_ns) {
            return false;
        }
        spc_clock_sleep_ns(LOOK_NS);
    }
}

/* ---- near misses ---- */

uint32_t spc_comm_near(const spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                       int32_t *near_source, int32_t *near_tag) {
    spc_match_t match = {.source = source, .tag = tag, .context = spc_comm_context(comm, context)};
    if (spc_comm_usable(comm) != SPC_OK || source >= (int32_t)comm->size) {
        return 0;
    }
    if (comm->members != NULL && source >= 0) {
        match.source = (int32_t)comm->members[source];
    }
    pthread_mutex_lock(&comm->node->lock);
    uint32_t count = spc_inbox_near(comm->node->inbox, &match, near_source, near_tag);
    pthread_mutex_unlock(&comm->node->lock);
    if (count != 0 && comm->rank_of != NULL) {
        *near_source = comm->rank_of[*near_source];
    }
    return count;
}

/* ---- what is left open ---- */

static void note_open(const spc_comm_t *comm, spc_note_kind_t kind, uint32_t count) {
    spc_note_t note;
    if (count == 0) {
        return;
    }
    if (!spc_note_read(comm->node->notes, kind, &note)) {
        memset(&note, 0, sizeof(note));
    }
    note.count += count;
    spc_note_write(comm->node->notes, kind, &note);
}

void spc_comm_note_left_open(const spc_comm_t *comm) {
    bool in_cycle = spc_coordinated_is_open(comm->cycle.account);
    pthread_mutex_lock(&comm->node->lock);
    /* Acquire pairs with the release in fuzzy_leave. */
    note_open(comm, SPC_NOTE_FUZZY, atomic_load_explicit(&comm->fuzzy_open, memory_order_acquire));
    note_open(comm, SPC_NOTE_CYCLE, in_cycle);
    pthread_mutex_unlock(&comm->node->lock);
}
