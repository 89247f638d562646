/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "diagnose/spc_verdict.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_clock.h"
#include "base/spc_error.h"
#include "diagnose/spc_call_words.h"
#include "reduce/spc_reduce.h"

#define ANY (-1) /* source or tag */
#define CIRCLE_SHOWN 12
#define NOBODY UINT32_MAX

enum {
    TRIES = 100, /* at reading a board whose node is just waking, */
    REST_NS = 100000,
    COLUMNS = 3,
    GROUP_ROOM = 24,
    PEERS_SHOWN = 4, /* more rows than these would hide what they have in common */
};

typedef struct verdict {
    const spc_segment_t *segment;
    const spc_deadlock_t *deadlock;
    uint32_t nodes;
    uint32_t known_count;
    spc_board_entry_t *entry; /* by rank in the run, as all that follows */
    uint32_t *next;           /* which of the others it needs; NOBODY: no certain one */
    bool *known;
    bool *missing; /* in a collective operation somebody waits for it */
    bool *chosen;  /* of what is just being written */
} verdict_t;

/* ---- reading ---- */

/* v->chosen: whom the wait is for. False: the board was not published all the time. */
static bool read_once(verdict_t *v, uint32_t rank) {
    const spc_board_shared_t *board = spc_segment_part(v->segment, SPC_REGION_BOARD, rank);
    spc_board_entry_t *entry = &v->entry[rank];
    uint32_t stuck = spc_board_stuck(board);
    if (!spc_board_is_stuck(stuck) || !spc_board_read(board, stuck, entry)) {
        return false;
    }
    bool is_phase = entry->kind == SPC_BOARD_PHASE || entry->kind == SPC_BOARD_CYCLE;
    const spc_reduce_line_shared_t *lines = spc_segment_address(v->segment, entry->lines_offset);
    for (uint32_t other = 0; other < v->nodes; other++) {
        spc_board_pair_t pair = spc_board_read_pair(board, other);
        v->chosen[other] = entry->kind == SPC_BOARD_SEND ? pair.queued != 0 : pair.needed != 0;
        if (is_phase && pair.needed != 0 && pair.needed <= v->nodes) {
            v->chosen[other] = !spc_reduce_line_arrived(&lines[pair.needed - 1], entry->phase);
        }
    }
    return spc_board_stuck(board) == stuck;
}

static bool read_board(verdict_t *v, uint32_t rank) {
    for (int i = 0; i < TRIES; i++) {
        if (read_once(v, rank)) {
            return true;
        }
        spc_clock_sleep_ns(REST_NS);
    }
    return false;
}

static void note_needs(verdict_t *v, uint32_t rank) {
    const spc_board_entry_t *entry = &v->entry[rank];
    bool is_phase = entry->kind == SPC_BOARD_PHASE || entry->kind == SPC_BOARD_CYCLE;
    v->next[rank] = NOBODY;
    for (uint32_t other = v->nodes; other-- > 0;) {
        v->missing[other] = v->missing[other] || (is_phase && v->chosen[other]);
        if (v->chosen[other] && spc_deadlock_has(v->deadlock, other)) {
            v->next[rank] = other;
        }
    }
    if (entry->kind == SPC_BOARD_RECEIVE && entry->source == ANY) {
        v->next[rank] = NOBODY;
    }
}

static void read_boards(verdict_t *v) {
    for (uint32_t rank = 0; rank < v->nodes; rank++) {
        if (spc_deadlock_has(v->deadlock, rank) && read_board(v, rank)) {
            v->known[rank] = true;
            v->known_count++;
            note_needs(v, rank);
        }
    }
}

/* ---- the heading ---- */

static void write_headline(const verdict_t *v, FILE *out) {
    fputs("spcomm: DEADLOCK — ", out);
    if (v->known_count == v->nodes && v->nodes > 2) {
        fprintf(out, "all %u nodes wait, and no message is on its way\n", v->nodes);
    } else if (v->known_count == v->nodes) {
        fprintf(out, "%s, and no message is on its way\n",
                v->nodes == 2 ? "both nodes wait" : "the node waits");
    } else {
        spc_call_words_write_ranks(v->known, v->nodes, out);
        fprintf(out,
                v->known_count == 1 ? " of %u waits for what can never come\n"
                                    : " of %u wait for each other only, and no message is on its way\n",
                v->nodes);
    }
}

/* ---- rows: nodes that do the same share one ---- */

static bool same_place(const spc_board_entry_t *one, const spc_board_entry_t *other) {
    bool same_file = strcmp(one->file, other->file) == 0;
    return same_file
           && (one->file[0] == '\0'
               || (one->line == other->line && strcmp(one->function, other->function) == 0));
}

static bool share_a_row(const spc_board_entry_t *one, const spc_board_entry_t *other) {
    return one->kind == other->kind && one->by_rendezvous == other->by_rendezvous && one->tag == other->tag
           && one->communicator == other->communicator && (one->source == ANY) == (other->source == ANY)
           && memcmp(one->call, other->call, sizeof one->call) == 0 && same_place(one, other);
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
        spc_call_words_write_ranks(v->chosen, v->nodes, out);
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

static uint32_t next_of(const verdict_t *v, uint32_t rank) {
    return v->known[rank] ? v->next[rank] : NOBODY;
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

/* ---- why, and what to try ---- */

static void write_near(uint32_t rank, const spc_board_entry_t *entry, FILE *out) {
    bool by_tag = entry->near_source == entry->source || entry->source == ANY;
    fprintf(out, "  Node %u has ", rank);
    if (entry->near_count == 1) {
        fputs("a message", out);
    } else {
        fprintf(out, "%u messages, the first", entry->near_count);
    }
    fprintf(out, " from node %d with tag %d, and waits for one of %s ", entry->near_source, entry->near_tag,
            by_tag ? "tag" : "node");
    spc_call_words_write_number(by_tag ? entry->tag : entry->source, out);
    fprintf(out, ".\n  Try: receive with %s=%d, or send what is waited for.", by_tag ? "tag" : "source",
            by_tag ? entry->near_tag : entry->near_source);
}

static bool write_what_one_node_shows(const verdict_t *v, FILE *out) {
    for (uint32_t rank = 0; rank < v->nodes; rank++) {
        if (v->known[rank] && v->entry[rank].near_count != 0) {
            write_near(rank, &v->entry[rank], out);
            return true;
        }
    }
    for (uint32_t rank = 0; rank < v->nodes; rank++) {
        const spc_board_entry_t *entry = &v->entry[rank];
        bool receives = entry->kind == SPC_BOARD_RECEIVE;
        if (v->known[rank] && (receives || entry->kind == SPC_BOARD_RECEIPT)
            && entry->source == (int32_t)entry->rank) {
            fprintf(out, "  Node %u %s itself, and nobody else can.\n  Try: check how the rank is computed.",
                    rank, receives ? "receives from" : "sends synchronously to");
            return true;
        }
    }
    return false;
}

/* A collective that all have entered: who does not give its part must have left it. */
static void write_left(const verdict_t *v, FILE *out) {
    uint32_t i = 0;
    for (; !v->known[i] || v->entry[i].kind != SPC_BOARD_GATHERING; i++) {
    }
    fprintf(out, "  Node %u waits in ", i);
    spc_call_words_write(&v->entry[i], NULL, out);
    fputs(", which has left that call before its end.\n"
          "  Try: after an interruption, end it by the same call again.",
          out);
}

/* Some are in a collective operation that others never reach. */
static void write_missing(verdict_t *v, FILE *out) {
    uint32_t first = NOBODY, inside = 0;
    for (uint32_t rank = 0; rank < v->nodes; rank++) {
        uint32_t kind = v->entry[rank].kind;
        v->chosen[rank] = v->known[rank] && (kind == SPC_BOARD_PHASE || kind == SPC_BOARD_CYCLE);
        first = v->chosen[rank] && first == NOBODY ? rank : first;
        inside += v->chosen[rank];
    }
    char *ranks = cell(v, first, inside, 0);
    char *call = NULL;
    size_t bytes = 0;
    FILE *words = open_memstream(&call, &bytes);
    if (words != NULL) {
        spc_call_words_write(&v->entry[first], NULL, words);
        fclose(words);
    }
    const char *name = call != NULL ? call : "";
    fprintf(out, "  N%s %s in %s for ", ranks != NULL ? ranks + 1 : "odes", inside == 1 ? "waits" : "wait",
            name);
    spc_call_words_write_ranks(v->missing, v->nodes, out);
    fprintf(out,
            ", which must call it, too.\n  Try: have every node call %.*s(), also those that take another "
            "branch, before it waits for them.",
            (int)strcspn(name, "("), name);
    free(ranks);
    free(call);
}

static const char *words_for(uint32_t kinds) {
    switch (kinds) {
    case 1u << SPC_BOARD_RECEIVE:
        return "  Nobody has sent: every node receives first.\n"
               "  Try: let one node send before it receives, or use sendrecv().";
    case 1u << SPC_BOARD_RECEIPT:
        return "  ssend() returns when its message has been received: every node sends first.\n"
               "  Try: let one node receive before it sends, or use sendrecv().";
    case 1u << SPC_BOARD_SEND:
        return "  The queues are full: every node sends more than anybody receives.\n"
               "  Try: receive between the sends; a higher limit only moves the point where it stops.";
    default:
        return "  Each of these waits for another one of them.\n"
               "  Try: look at the lines above: one of them must do its part before it waits.";
    }
}

static void write_advice(verdict_t *v, FILE *out) {
    uint32_t kinds = 0;
    for (uint32_t rank = 0; rank < v->nodes; rank++) {
        kinds |= v->known[rank] ? 1u << v->entry[rank].kind % 32 : 0;
    }
    if (write_what_one_node_shows(v, out)) {
        /* that is the cause */
    } else if (kinds & (1u << SPC_BOARD_PHASE | 1u << SPC_BOARD_CYCLE)) {
        write_missing(v, out);
    } else if (kinds & 1u << SPC_BOARD_GATHERING) {
        write_left(v, out);
    } else {
        fputs(words_for(kinds), out);
    }
    fputs("     (spcomm explain SP101)\n", out);
}

/* ---- all of it ---- */

int spc_verdict_write(const spc_segment_t *segment, const spc_deadlock_t *deadlock, FILE *out) {
    uint32_t nodes = segment->config->nodes;
    verdict_t v = {.segment = segment,
                   .deadlock = deadlock,
                   .nodes = nodes,
                   .entry = calloc(nodes, sizeof *v.entry),
                   .next = calloc(nodes, sizeof *v.next),
                   .known = calloc(nodes, sizeof *v.known),
                   .missing = calloc(nodes, sizeof *v.missing),
                   .chosen = calloc(nodes, sizeof *v.chosen)};
    int status = SPC_ENOMEM;
    if (v.entry != NULL && v.next != NULL && v.known != NULL && v.missing != NULL && v.chosen != NULL) {
        read_boards(&v);
        status = v.known_count != 0 ? SPC_OK : SPC_EAGAIN;
    }
    if (status == SPC_OK) {
        write_headline(&v, out);
        write_table(&v, out);
        write_circle(&v, out);
        write_advice(&v, out);
    }
    free(v.entry);
    free(v.next);
    free(v.known);
    free(v.missing);
    free(v.chosen);
    return status;
}
