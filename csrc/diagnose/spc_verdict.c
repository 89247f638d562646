/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "diagnose/spc_verdict.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "diagnose/spc_advice.h"
#include "diagnose/spc_call_words.h"
#include "diagnose/spc_waits.h"

#define ANY (-1) /* source or tag */
#define CIRCLE_SHOWN 12
#define NOBODY UINT32_MAX

enum {
    COLUMNS = 3,
    GROUP_ROOM = 24,
    PEERS_SHOWN = 4, /* more rows than these would hide what they have in common */
};

typedef struct verdict {
    const spc_waits_t *waits;
    uint32_t nodes;
    const bool *known; /* of waits, as is `entry` */
    const spc_board_entry_t *entry;
    bool *chosen; /* of what is just being written */
} verdict_t;

/* ---- the heading ---- */

static void write_headline(const verdict_t *v, FILE *out) {
    fputs("spcomm: DEADLOCK — ", out);
    if (v->waits->known_count == v->nodes && v->nodes > 2) {
        fprintf(out, "all %u nodes wait, and no message is on its way\n", v->nodes);
    } else if (v->waits->known_count == v->nodes) {
        fprintf(out, "%s, and no message is on its way\n",
                v->nodes == 2 ? "both nodes wait" : "the node waits");
    } else {
        spc_call_words_write_ranks("node", v->known, v->nodes, out);
        fprintf(out,
                v->waits->known_count == 1
                    ? " of %u waits for what can never come\n"
                    : " of %u wait for each other only, and no message is on its way\n",
                v->nodes);
    }
}

/* ---- rows: nodes that do the same share one ---- */

static bool share_a_row(const spc_board_entry_t *one, const spc_board_entry_t *other) {
    return one->kind == other->kind && one->flags == other->flags && one->tag == other->tag
           && one->communicator == other->communicator && (one->source == ANY) == (other->source == ANY)
           && (one->kind != SPC_BOARD_PHASE || memcmp(one->call, other->call, sizeof one->call) == 0)
           && spc_call_words_same_place(one, other);
}

static uint32_t offset_of(const spc_board_entry_t *entry) {
    int64_t size = entry->size != 0 ? entry->size : 1;
    return (uint32_t)((entry->source - (int64_t)entry->rank + size) % size);
}

/* v->chosen do the same. Do they need a row for each peer? That says more than "rank+1" of two, and than "…" of few. */
static bool is_row_for_each_peer(const verdict_t *v, uint32_t first) {
    uint32_t count = 0, peers = 0;
    bool same_offset = true;
    for (uint32_t rank = first; rank < v->nodes; rank++) {
        uint32_t former = first;
        while (former < rank && (!v->chosen[former] || v->entry[former].source != v->entry[rank].source)) {
            former++;
        }
        count += v->chosen[rank];
        peers += v->chosen[rank] && former == rank;
        same_offset =
            same_offset && (!v->chosen[rank] || offset_of(&v->entry[rank]) == offset_of(&v->entry[first]));
    }
    return peers > 1 && peers <= PEERS_SHOWN && (count == 2 || !same_offset);
}

/* v->chosen: those who share the row of this node. How many; 0 if it is a former one's. */
static uint32_t choose_row(verdict_t *v, uint32_t first) {
    uint32_t count = 0, begin = 0;
    for (uint32_t rank = 0; rank < v->nodes; rank++) {
        v->chosen[rank] = v->known[rank] && share_a_row(&v->entry[rank], &v->entry[first]);
    }
    while (begin < v->nodes && !v->chosen[begin]) {
        begin++;
    }
    bool apart = is_row_for_each_peer(v, begin);
    for (uint32_t rank = 0; rank < v->nodes; rank++) {
        v->chosen[rank] = v->chosen[rank] && (!apart || v->entry[rank].source == v->entry[first].source);
        count += v->chosen[rank];
        if (v->chosen[rank] && rank < first) {
            return 0;
        }
    }
    return v->known[first] ? count : 0;
}

/* How the peers of those who share a row follow from their ranks: "rank+1". NULL: all have the same one. */
static const char *relation(const verdict_t *v, uint32_t first, char *room) {
    const spc_board_entry_t *one = &v->entry[first];
    uint32_t offset = offset_of(one);
    bool same_peer = true, same_offset = true;
    for (uint32_t rank = first; rank < v->nodes; rank++) {
        if (v->chosen[rank]) {
            same_peer = same_peer && v->entry[rank].source == one->source;
            same_offset = same_offset && offset_of(&v->entry[rank]) == offset;
        }
    }
    if (same_peer) {
        return NULL;
    }
    if (!same_offset) {
        return "…";
    }
    if (offset == 0) {
        snprintf(room, GROUP_ROOM, "rank");
    } else if (offset <= one->size / 2) {
        snprintf(room, GROUP_ROOM, "rank+%u", offset);
    } else {
        snprintf(room, GROUP_ROOM, "rank-%u", one->size - offset);
    }
    return room;
}

static void write_call(const verdict_t *v, uint32_t first, uint32_t count, FILE *out) {
    const spc_board_entry_t *entry = &v->entry[first];
    char room[GROUP_ROOM];
    spc_call_words_write(entry, relation(v, first, room), out);
    if (entry->communicator != 0 && count == 1) {
        fprintf(out, ", as node %u of a part of %u", entry->rank, entry->size);
    } else if (entry->communicator != 0) {
        fputs(", in a part", out);
    }
}

/* The caller frees it; NULL: no memory. */
static char *cell(const verdict_t *v, uint32_t first, uint32_t count, int column) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        return NULL;
    }
    if (column == 0) {
        spc_call_words_write_ranks("node", v->chosen, v->nodes, out);
    } else if (column == 1) {
        write_call(v, first, count, out);
    } else {
        spc_call_words_write_place(&v->entry[first], out);
    }
    fclose(out);
    return text;
}

/* Characters of UTF-8. */
static int width_of(const char *text) {
    int width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

/* One row; `out` NULL: only grows the widths to what it needs. */
static void lay_row(const verdict_t *v, uint32_t first, uint32_t count, int widths[COLUMNS], FILE *out) {
    char *cells[COLUMNS];
    int last = 0, behind = 0;
    for (int i = 0; i < COLUMNS; i++) {
        cells[i] = cell(v, first, count, i);
        int width = cells[i] != NULL ? width_of(cells[i]) : 0;
        widths[i] = width > widths[i] ? width : widths[i];
        last = width > 0 ? i : last;
    }
    for (int i = 0; i < COLUMNS; i++) {
        const char *text = cells[i] != NULL ? cells[i] : "";
        if (out != NULL && i <= last) {
            fprintf(out, "%*s%s", behind + 2, "", text);
            behind = widths[i] - width_of(text);
        }
        free(cells[i]);
    }
    if (out != NULL) {
        fputc('\n', out);
    }
}

static void write_table(verdict_t *v, FILE *out) {
    int widths[COLUMNS] = {0};
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t rank = 0; rank < v->nodes; rank++) {
            uint32_t count = choose_row(v, rank);
            if (count != 0) {
                lay_row(v, rank, count, widths, pass == 0 ? NULL : out);
            }
        }
    }
}

/* ---- the circle ---- */

/* Which of the others it needs, the first one; NOBODY: no certain one. */
static uint32_t next_of(const verdict_t *v, uint32_t rank) {
    const spc_board_entry_t *entry = &v->entry[rank];
    if (!v->known[rank] || (entry->kind == SPC_BOARD_RECEIVE && entry->source == ANY)) {
        return NOBODY;
    }
    for (uint32_t other = 0; other < v->nodes; other++) {
        if (v->known[other] && spc_waits_needs(v->waits, rank, other)) {
            return other;
        }
    }
    return NOBODY;
}

/* The first node that is met twice on the way from this one; NOBODY: the way ends. */
static uint32_t find_again(verdict_t *v, uint32_t from) {
    memset(v->chosen, 0, v->nodes * sizeof *v->chosen);
    while (from != NOBODY && !v->chosen[from]) {
        v->chosen[from] = true;
        from = next_of(v, from);
    }
    return from;
}

static void write_circle(verdict_t *v, FILE *out) {
    uint32_t start = NOBODY, length = 2;
    for (uint32_t rank = 0; rank < v->nodes && start == NOBODY; rank++) {
        start = v->known[rank] ? find_again(v, rank) : NOBODY;
    }
    if (start == NOBODY) {
        return;
    }
    for (uint32_t rank = next_of(v, start); rank != start; rank = next_of(v, rank)) {
        length++;
    }
    if (length > CIRCLE_SHOWN) {
        return;
    }
    fprintf(out, "  circle: %u", start);
    for (uint32_t rank = next_of(v, start); rank != start; rank = next_of(v, rank)) {
        fprintf(out, " → %u", rank);
    }
    fprintf(out, " → %u\n", start);
}

/* ---- all of it ---- */

int spc_verdict_write(const spc_segment_t *segment, const spc_deadlock_t *deadlock, FILE *out) {
    spc_waits_t waits;
    int status = spc_waits_read(segment, deadlock, &waits);
    if (status != SPC_OK) {
        return status;
    }
    verdict_t v = {.waits = &waits,
                   .nodes = waits.nodes,
                   .known = waits.known,
                   .entry = waits.entry,
                   .chosen = calloc(waits.nodes, sizeof *v.chosen)};
    if (v.chosen == NULL) {
        status = SPC_ENOMEM;
    } else {
        write_headline(&v, out);
        write_table(&v, out);
        write_circle(&v, out);
        status = spc_advice_write(&waits, out);
        fputs("     (spcomm explain SP101)\n", out);
    }
    free(v.chosen);
    spc_waits_free(&waits);
    return status;
}
