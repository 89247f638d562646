/* SPDX-License-Identifier: MIT */
#include "diagnose/spc_advice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "diagnose/spc_call_words.h"

#define ANY (-1) /* source or tag */
#define NOBODY UINT32_MAX

typedef struct advice {
    const spc_waits_t *waits;
    uint32_t nodes;
    uint32_t kinds; /* of the waits: a bit each */
    bool in_c;      /* all of them */
    bool *these;    /* nodes of which something is said, */
    bool *those;    /* and those whom they need */
    bool *done;     /* of which all has been said */
    FILE *out;
} advice_t;

/* ---- which nodes ---- */

static const spc_board_entry_t *entry_of(const advice_t *a, uint32_t rank) {
    return &a->waits->entry[rank];
}

static bool is_of(const advice_t *a, uint32_t rank, spc_board_kind_t kind) {
    return a->waits->known[rank] && entry_of(a, rank)->kind == kind;
}

static bool is_in_phase(const advice_t *a, uint32_t rank) {
    return a->waits->known[rank] && spc_board_is_phase(entry_of(a, rank));
}

static bool has_kind(const advice_t *a, spc_board_kind_t kind) {
    return (a->kinds & UINT32_C(1) << kind) != 0;
}

static uint32_t count(const advice_t *a, const bool *chosen) {
    uint32_t found = 0;
    for (uint32_t rank = 0; rank < a->nodes; rank++) {
        found += chosen[rank];
    }
    return found;
}

static void choose_kind(advice_t *a, spc_board_kind_t kind) {
    for (uint32_t rank = 0; rank < a->nodes; rank++) {
        a->these[rank] = is_of(a, rank, kind);
    }
}

/* a->those: whom a->these wait for. */
static void choose_needed(advice_t *a) {
    memset(a->those, 0, a->nodes * sizeof *a->those);
    for (uint32_t rank = 0; rank < a->nodes; rank++) {
        for (uint32_t other = 0; a->these[rank] && other < a->nodes; other++) {
            a->those[other] = a->those[other] || spc_waits_needs(a->waits, rank, other);
        }
    }
}

/* ---- words ---- */

static void say(const advice_t *a, const char *text) {
    fputs(text, a->out);
}

/* "recv()", or "spcomm_recv()". */
static void say_function(const advice_t *a, const char *name) {
    fprintf(a->out, "%s%s()", a->in_c ? "spcomm_" : "", name);
}

static void say_nodes(const advice_t *a, const char *word, const bool *chosen) {
    spc_call_words_write_ranks(word, chosen, a->nodes, a->out);
}

static void say_verb(const advice_t *a, const bool *chosen, const char *verb) {
    fprintf(a->out, count(a, chosen) == 1 ? " %ss" : " %s", verb);
}

/* ---- what one node shows ---- */

static void say_near(const advice_t *a, uint32_t rank) {
    const spc_board_entry_t *entry = entry_of(a, rank);
    bool by_tag = entry->near_source == entry->source || entry->source == ANY;
    fprintf(a->out, "  Node %u has ", rank);
    if (entry->near_count == 1) {
        say(a, "a message");
    } else {
        fprintf(a->out, "%u messages, the first", entry->near_count);
    }
    fprintf(a->out, " from node %d with tag %d, and waits for one of %s ", entry->near_source,
            entry->near_tag, by_tag ? "tag" : "node");
    spc_call_words_write_number(by_tag ? entry->tag : entry->source, a->out);
    fprintf(a->out, ".\n  Try: receive with %s=%d, or send what is waited for.", by_tag ? "tag" : "source",
            by_tag ? entry->near_tag : entry->near_source);
}

static bool say_what_one_node_shows(const advice_t *a) {
    for (uint32_t rank = 0; rank < a->nodes; rank++) {
        if (a->waits->known[rank] && entry_of(a, rank)->near_count != 0) {
            say_near(a, rank);
            return true;
        }
    }
    for (uint32_t rank = 0; rank < a->nodes; rank++) {
        bool receives = is_of(a, rank, SPC_BOARD_RECEIVE);
        if ((receives || is_of(a, rank, SPC_BOARD_RECEIPT))
            && entry_of(a, rank)->source == (int32_t)entry_of(a, rank)->rank) {
            fprintf(a->out,
                    "  Node %u %s itself, and nobody else can.\n  Try: check how the rank is computed.", rank,
                    receives ? "receives from" : "sends synchronously to");
            return true;
        }
    }
    return false;
}

/* ---- messages ---- */

static bool all_at_one_place(const advice_t *a) {
    uint32_t first = NOBODY;
    for (uint32_t rank = 0; rank < a->nodes; rank++) {
        first = first == NOBODY && a->waits->known[rank] ? rank : first;
        if (a->waits->known[rank] && !spc_call_words_same_place(entry_of(a, rank), entry_of(a, first))) {
            return false;
        }
    }
    return true;
}

/* There is no sendrecv in C. */
static void say_or_sendrecv(const advice_t *a) {
    say(a, a->in_c ? "." : ", or use sendrecv().");
}

static void say_nobody_sends(const advice_t *a) {
    if (all_at_one_place(a)) {
        say(a, "  Nobody has sent: every node receives first.\n  Try: let one node send before it receives");
        say_or_sendrecv(a);
    } else {
        say(a,
            "  All of these receive, and nobody is left who could send to them.\n"
            "  Try: let one node send before it receives here; is an answer missing, or a last message that "
            "ends a loop?");
    }
}

static void say_limit_moves(const advice_t *a) {
    uint64_t enough_bytes = 0;
    for (uint32_t rank = 0; rank < a->nodes; rank++) {
        const bool needs_more = is_of(a, rank, SPC_BOARD_SEND) && entry_of(a, rank)->phase > enough_bytes;
        enough_bytes = needs_more ? entry_of(a, rank)->phase : enough_bytes;
    }
    if (enough_bytes != 0) {
        fprintf(a->out, "a limit of %" PRIu64 "K lets these sends go on, and", (enough_bytes + 1023) / 1024);
    } else {
        say(a, "a higher limit");
    }
    say(a, " only moves the point where it stops.");
}

/* Some have no room for what they send. */
static void say_full(advice_t *a) {
    choose_kind(a, SPC_BOARD_SEND);
    if (count(a, a->these) == a->waits->known_count) {
        say(a, "  The queues are full: every node sends more than anybody receives.\n"
               "  Try: receive between the sends; ");
        say_limit_moves(a);
        return;
    }
    choose_needed(a);
    say(a, "  ");
    say_nodes(a, "Node", a->these);
    say_verb(a, a->these, "send");
    say(a, " more to ");
    say_nodes(a, "node", a->those);
    say(a, " than the queues hold, and nobody receives it.\n"
           "  Try: receive before waiting for anything else; ");
    say_limit_moves(a);
}

static bool any_by_rendezvous(const advice_t *a) {
    bool any = false;
    for (uint32_t rank = 0; rank < a->nodes; rank++) {
        any = any || (a->these[rank] && (entry_of(a, rank)->flags & SPC_BOARD_RENDEZVOUS) != 0);
    }
    return any;
}

/* Some wait until what they sent is received. */
static void say_unreceived(advice_t *a) {
    choose_kind(a, SPC_BOARD_RECEIPT);
    choose_needed(a);
    bool told = any_by_rendezvous(a);
    say(a, told ? "  With --rendezvous, " : "  ");
    say_function(a, told ? "send" : "ssend");
    say(a, " returns when its message has been received");
    if (count(a, a->these) == a->waits->known_count) {
        say(a, ": every node sends first.\n  Try: let one node receive before it sends");
        say_or_sendrecv(a);
        return;
    }
    say(a, ", and ");
    say_nodes(a, "node", a->those);
    say_verb(a, a->those, "wait");
    say(a, " for something else.\n  Try: let ");
    say_nodes(a, "node", a->those);
    say(a, " receive first");
    if (!told) {
        say(a, ", or use ");
        say_function(a, "send");
        say(a, ", which does not wait");
    }
    say(a, ".");
}

/* ---- collective operations ---- */

/* a->these: those who are in the same operation as this one, of the same communicator. SPC_ENOMEM. */
static int choose_operation(advice_t *a, uint32_t first) {
    char *words = spc_call_words(entry_of(a, first), NULL);
    int status = words != NULL ? SPC_OK : SPC_ENOMEM;
    memset(a->these, 0, a->nodes * sizeof *a->these);
    for (uint32_t rank = 0; rank < a->nodes && status == SPC_OK; rank++) {
        if (!is_in_phase(a, rank) || entry_of(a, rank)->communicator != entry_of(a, first)->communicator) {
            continue;
        }
        char *other = spc_call_words(entry_of(a, rank), NULL);
        status = other != NULL ? SPC_OK : SPC_ENOMEM;
        a->these[rank] = other != NULL && strcmp(other, words) == 0;
        free(other);
    }
    free(words);
    return status;
}

static void say_who_is_missing(advice_t *a, uint32_t first, const char *word) {
    choose_needed(a);
    say_nodes(a, word, a->these);
    say_verb(a, a->these, "wait");
    say(a, " in ");
    spc_call_words_write(entry_of(a, first), NULL, a->out);
    say(a, entry_of(a, first)->communicator != 0 ? " of a part for " : " for ");
    say_nodes(a, "node", a->those);
}

/* Some are in collective operations that others never reach. */
static int say_missing(advice_t *a) {
    uint32_t operations = 0, last = 0;
    for (uint32_t rank = 0; rank < a->nodes; rank++) {
        if (!is_in_phase(a, rank) || a->done[rank]) {
            continue;
        }
        int status = choose_operation(a, rank);
        if (status != SPC_OK) {
            return status;
        }
        say(a, operations == 0 ? "  " : "; ");
        say_who_is_missing(a, rank, operations == 0 ? "Node" : "node");
        for (uint32_t other = 0; other < a->nodes; other++) {
            a->done[other] = a->done[other] || a->these[other];
        }
        operations++;
        last = rank;
    }
    if (operations > 1) {
        say(a,
            ".\n  Try: have all nodes call the same operations in the same order, those of parts among those "
            "of the run.");
        return SPC_OK;
    }
    say(a, ", which must call it, too.\n  Try: have every node call ");
    spc_call_words_write_function(entry_of(a, last), a->in_c, a->out);
    say(a, ", also those that take another branch, before it waits for them.");
    return SPC_OK;
}

/* One that all have entered: who does not give its part must have left it. */
static void say_left(advice_t *a) {
    uint32_t rank = 0;
    while (!is_of(a, rank, SPC_BOARD_GATHERING)) {
        rank++;
    }
    fprintf(a->out, "  Node %u waits in ", rank);
    spc_call_words_write(entry_of(a, rank), NULL, a->out);
    say(a, ", which has left that call before its end.\n"
           "  Try: after an interruption, end it by the same call again.");
}

/* ---- all of it ---- */

static int say_all(advice_t *a) {
    if (say_what_one_node_shows(a)) {
        return SPC_OK;
    }
    if (a->kinds == UINT32_C(1) << SPC_BOARD_RECEIVE) {
        say_nobody_sends(a);
    } else if (has_kind(a, SPC_BOARD_SEND)) {
        say_full(a);
    } else if (has_kind(a, SPC_BOARD_PHASE) || has_kind(a, SPC_BOARD_CYCLE)) {
        return say_missing(a);
    } else if (has_kind(a, SPC_BOARD_GATHERING)) {
        say_left(a);
    } else if (has_kind(a, SPC_BOARD_RECEIPT)) {
        say_unreceived(a);
    } else {
        say(a, "  Each of these waits for another one of them.\n"
               "  Try: look at the lines above: one of them must do its part before it waits.");
    }
    return SPC_OK;
}

int spc_advice_write(const spc_waits_t *waits, FILE *out) {
    bool *room = calloc(waits->nodes, 3 * sizeof *room);
    if (room == NULL) {
        return SPC_ENOMEM;
    }
    advice_t a = {.waits = waits,
                  .nodes = waits->nodes,
                  .in_c = true,
                  .these = room,
                  .those = room + waits->nodes,
                  .done = room + 2 * (uint64_t)waits->nodes,
                  .out = out};
    for (uint32_t rank = 0; rank < a.nodes; rank++) {
        const spc_board_entry_t *entry = &waits->entry[rank];
        a.kinds |= waits->known[rank] ? UINT32_C(1) << entry->kind % 32 : 0;
        a.in_c = a.in_c && (!waits->known[rank] || (entry->flags & SPC_BOARD_IN_C) != 0);
    }
    int status = say_all(&a);
    free(room);
    return status;
}
