/* SPDX-License-Identifier: MIT */
/* The report of a deadlock, each rule, form and name of a call, on waits that are written by hand. */
#include "check.h"

#include "diagnose/spc_deadlock_report.h"
#include "reduce/spc_layout.h"
#include "reduce/spc_reduce.h"
#include "segment/spc_board.h"

#define NODES 4
#define IN_C SPC_BOARD_IN_C

typedef struct told {
    spc_waits_t waits;
    bool known[NODES];
    spc_board_entry_t entry[NODES];
    bool needed[NODES * NODES];
} told_t;

static void wait_of(told_t *told, uint32_t rank, spc_board_entry_t entry) {
    entry.rank = rank;
    entry.size = NODES;
    told->entry[rank] = entry;
    told->known[rank] = true;
    told->waits.known_count++;
}

static void needs(told_t *told, uint32_t rank, uint32_t other) {
    told->needed[rank * NODES + other] = true;
}

static void message(told_t *told, uint32_t rank, spc_board_kind_t kind, uint32_t other, uint32_t flags) {
    wait_of(told, rank,
            (spc_board_entry_t){.kind = kind, .source = (int32_t)other, .tag = 7, .flags = flags});
    needs(told, rank, other);
}

static spc_signature_t reduction(uint64_t kind) {
    return (spc_signature_t){
        .operation = SPC_OPERATION_REDUCE, .operator = SPC_SUM, .length_bytes = 8, .layout = kind << 56};
}

static void phase(told_t *told, uint32_t rank, spc_signature_t call, uint32_t missing, uint32_t flags) {
    spc_board_entry_t entry = {.kind = SPC_BOARD_PHASE, .source = -1, .tag = -1, .flags = flags};
    memcpy(entry.call, &call, sizeof call);
    wait_of(told, rank, entry);
    needs(told, rank, missing);
}

static void operation(told_t *told, uint32_t rank, uint8_t number, uint32_t missing, uint32_t flags) {
    phase(told, rank, (spc_signature_t){.operation = number}, missing, flags);
}

static char *report_of(told_t *told, spc_deadlock_report_options_t options) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    CHECK(out != NULL);
    told->waits.nodes = told->waits.nodes != 0 ? told->waits.nodes : NODES;
    told->waits.known = told->known;
    told->waits.entry = told->entry;
    told->waits.needed = told->needed;
    CHECK_OK(spc_deadlock_report_write(&told->waits, &options, out));
    fclose(out);
    return text;
}

static void says(told_t *told, const char *why, const char *what) {
    char expected[400];
    char *text = report_of(told, (spc_deadlock_report_options_t){.has_launcher = false});
    snprintf(expected, sizeof expected, "\n  %s\n  Try: %s     (spcomm explain SP101)\n", why, what);
    const size_t length = strlen(expected);
    CHECK(strlen(text) > length);
    CHECK_STR(text + strlen(text) - length, expected);
    free(text);
}

/* ---- receives ---- */

TEST(receives_at_one_line) {
    told_t told = {.known = {false}}, in_c = {.known = {false}};
    for (uint32_t rank = 0; rank < 2; rank++) {
        message(&told, rank, SPC_BOARD_RECEIVE, 1 - rank, 0);
        message(&in_c, rank, SPC_BOARD_RECEIVE, 1 - rank, IN_C);
    }
    says(&told, "No matching message has been sent: each of these nodes waits to receive.",
         "let one node send before it receives, or use sendrecv().");
    says(&in_c, "No matching message has been sent: each of these nodes waits to receive.",
         "let one node send before it receives.");
    in_c.entry[1].flags = 0; /* in two languages */
    says(&in_c, "No matching message has been sent: each of these nodes waits to receive.",
         "let one node send before it receives, or use sendrecv().");
}

TEST(receives_at_several_lines) {
    told_t told = {.known = {false}};
    for (uint32_t rank = 0; rank < 2; rank++) {
        message(&told, rank, SPC_BOARD_RECEIVE, 1 - rank, 0);
        strcpy(told.entry[rank].file, "hub.py");
        told.entry[rank].line = 5 + rank;
    }
    says(&told, "All of these receive, and nobody is left who could send to them.",
         "let one node send before it receives here; is an answer missing, or a last message that ends a "
         "loop?");
}

TEST(what_one_node_shows) {
    told_t itself = {.known = {false}}, near = {.known = {false}};
    message(&itself, 2, SPC_BOARD_RECEIPT, 2, 0);
    says(&itself, "Node 2 sends synchronously to itself, and nobody else can.",
         "check how the rank is computed.");
    message(&near, 0, SPC_BOARD_RECEIVE, 1, 0);
    message(&near, 1, SPC_BOARD_RECEIVE, 1, 0);
    near.entry[0].near_count = 2;
    near.entry[0].near_source = 3;
    near.entry[0].near_tag = 7;
    says(&near, "Node 0 has 2 messages, the first from node 3 with tag 7, and waits for one of node 1.",
         "receive with source=3, or send what is waited for.");
}

/* ---- MPI ---- */

enum {
    WAITALL = SPC_BOARD_MPI_Waitall << SPC_BOARD_MPI_SHIFT,
    LOCK = SPC_BOARD_MPI_Win_lock << SPC_BOARD_MPI_SHIFT
};

TEST(requests_below_their_row) {
    told_t told = {.known = {false}};
    message(&told, 0, SPC_BOARD_RECEIVE, 1, WAITALL);
    message(&told, 1, SPC_BOARD_RECEIVE, 0, WAITALL);
    strcpy(told.entry[0].more, "a receive(source=1, tag=7), begun at a.py:3\n2 more\n");
    char *text = report_of(&told, (spc_deadlock_report_options_t){.has_launcher = true});
    CHECK(strstr(text, "\n  node 0  Waitall() for a receive(source=1, tag=7)\n"
                       "          + a receive(source=1, tag=7), begun at a.py:3\n          + 2 more\n"
                       "  node 1  ")
          != NULL);
    free(text);
}

TEST(requests_of_nodes_that_share_a_row) {
    told_t told = {.known = {false}};
    for (uint32_t rank = 0; rank < NODES; rank++) {
        message(&told, rank, SPC_BOARD_RECEIVE, (rank + 1) % NODES, WAITALL);
        snprintf(told.entry[rank].more, SPC_BOARD_MORE_BYTES, "a receive(source=%u, tag=7)\n",
                 (rank + 1) % NODES);
    }
    char *text = report_of(&told, (spc_deadlock_report_options_t){.has_launcher = true});
    CHECK(strstr(text, "+ of node 0: a receive(source=1, tag=7)\n") != NULL);
    CHECK(strstr(text, "source=2") == NULL);
    free(text);
}

TEST(a_lock_that_is_kept) {
    told_t told = {.known = {false}};
    message(&told, 0, SPC_BOARD_RECEIVE, 1, LOCK);
    message(&told, 1, SPC_BOARD_RECEIVE, 0, WAITALL);
    says(&told, "Node 0 waits for a lock that another node keeps while it waits itself.",
         "unlock before waiting for anything else, and lock ranks in one order on all nodes.");
}

TEST(a_message_in_another_communicator) {
    told_t told = {.known = {false}};
    message(&told, 0, SPC_BOARD_RECEIVE, 1, SPC_BOARD_ELSEWHERE);
    message(&told, 1, SPC_BOARD_RECEIVE, 0, 0);
    told.entry[0].near_count = 1;
    told.entry[0].near_source = 1;
    told.entry[0].near_tag = 7;
    says(&told,
         "Node 0 has a message from node 1 with tag 7, sent in another communicator than the one in which it "
         "waits.",
         "send and receive in the same communicator.");
}

/* ---- sends ---- */

TEST(full_queues) {
    told_t all = {.known = {false}}, some = {.known = {false}};
    message(&all, 0, SPC_BOARD_SEND, 1, 0);
    message(&all, 1, SPC_BOARD_SEND, 0, 0);
    says(&all, "The queues are full: every node sends more than anybody receives.",
         "receive between the sends; a higher limit only moves the point where it stops.");
    all.entry[0].phase = 70000; /* bytes */
    all.entry[1].phase = 100;
    says(
        &all, "The queues are full: every node sends more than anybody receives.",
        "receive between the sends; a limit of 69K lets these sends go on, and only moves the point where it "
        "stops.");
    message(&some, 0, SPC_BOARD_SEND, 1, 0);
    operation(&some, 1, SPC_OPERATION_BARRIER, 0, 0);
    says(&some, "Node 0 sends more to node 1 than the queues hold, and nobody receives it.",
         "receive before waiting for anything else; a higher limit only moves the point where it stops.");
    message(&some, 2, SPC_BOARD_SEND, 3, 0);
    says(&some, "Nodes 0, 2 send more to nodes 1, 3 than the queues hold, and nobody receives it.",
         "receive before waiting for anything else; a higher limit only moves the point where it stops.");
}

TEST(synchronous_sends) {
    told_t all = {.known = {false}}, in_c = {.known = {false}};
    for (uint32_t rank = 0; rank < 2; rank++) {
        message(&all, rank, SPC_BOARD_RECEIPT, 1 - rank, 0);
        message(&in_c, rank, SPC_BOARD_RECEIPT, 1 - rank, IN_C);
    }
    says(&all, "ssend() returns when its message has been received: every node sends first.",
         "let one node receive before it sends, or use sendrecv().");
    says(&in_c, "spcomm_ssend() returns when its message has been received: every node sends first.",
         "let one node receive before it sends.");
    in_c.entry[1].flags |= SPC_BOARD_RENDEZVOUS;
    says(&in_c,
         "With --rendezvous, spcomm_send() returns when its message has been received: every node sends "
         "first.",
         "let one node receive before it sends.");
}

TEST(synchronous_sends_and_receives) {
    told_t told = {.known = {false}};
    message(&told, 0, SPC_BOARD_RECEIPT, 1, IN_C);
    message(&told, 1, SPC_BOARD_RECEIVE, 2, IN_C);
    message(&told, 2, SPC_BOARD_RECEIVE, 1, IN_C);
    says(&told,
         "spcomm_ssend() returns when its message has been received, and node 1 waits for something else.",
         "let node 1 receive first, or use spcomm_send(), which does not wait.");
    message(&told, 3, SPC_BOARD_RECEIPT, 2, IN_C | SPC_BOARD_RENDEZVOUS);
    says(
        &told,
        "With --rendezvous, spcomm_send() returns when its message has been received, and nodes 1-2 wait for "
        "something else.",
        "let nodes 1-2 receive first.");
}

/* ---- collective operations ---- */

TEST(one_operation) {
    told_t told = {.known = {false}};
    operation(&told, 0, SPC_OPERATION_BARRIER, 1, 0);
    message(&told, 1, SPC_BOARD_RECEIPT, 0, 0);
    operation(&told, 2, SPC_OPERATION_BARRIER, 1, 0);
    says(&told, "Nodes 0, 2 wait in barrier() for node 1, which must call it, too.",
         "have every node call barrier(), also those that take another branch, before it waits for them.");
    told.entry[0].communicator = told.entry[2].communicator = 1;
    says(&told, "Nodes 0, 2 wait in barrier() of a part for node 1, which must call it, too.",
         "have every node call barrier(), also those that take another branch, before it waits for them.");
}

TEST(several_operations) {
    told_t told = {.known = {false}};
    operation(&told, 0, SPC_OPERATION_BARRIER, 1, 0);
    phase(&told, 1, reduction(SPC_KIND_INT), 0, 0);
    operation(&told, 2, SPC_OPERATION_BARRIER, 1, 0);
    operation(&told, 3, SPC_OPERATION_BARRIER, 2, 0);
    told.entry[1].communicator = told.entry[3].communicator = 1;
    says(&told,
         "Nodes 0, 2 wait in barrier() for node 1; node 1 waits in global_sum() of an int of a part for node "
         "0; "
         "node 3 waits in barrier() of a part for node 2.",
         "have all nodes call the same operations in the same order, those of parts among those of the run.");
}

static void is_called(spc_signature_t call, const char *words, const char *function) {
    told_t told = {.known = {false}};
    char why[100], what[200];
    phase(&told, 0, call, 1, IN_C);
    snprintf(why, sizeof why, "Node 0 waits in %s for node 1, which must call it, too.", words);
    snprintf(what, sizeof what,
             "have every node call %s, also those that take another branch, before it waits for them.",
             function);
    says(&told, why, what);
}

TEST(functions_of_c) {
    is_called((spc_signature_t){.operation = SPC_OPERATION_BARRIER}, "barrier()", "spcomm_barrier()");
    is_called((spc_signature_t){.operation = SPC_OPERATION_FUZZY}, "fuzzy_barrier()", "spcomm_fuzzy_enter()");
    is_called((spc_signature_t){.operation = SPC_OPERATION_SPLIT}, "split()", "spcomm_split()");
    is_called(reduction(SPC_KIND_INT), "global_sum() of an int", "spcomm_global_sum_int64()");
    is_called(reduction(SPC_KIND_FLOAT), "global_sum() of a float", "spcomm_global_sum_double()");
    is_called(reduction(SPC_KIND_SIMTIME), "global_sum() of a SimTime", "spcomm_global_sum_simtime()");
    is_called(reduction(SPC_KIND_TUPLE), "global_sum() of a tuple, 8 bytes", "spcomm_global_sum()");
    told_t told = {.known = {false}};
    wait_of(&told, 0, (spc_board_entry_t){.kind = SPC_BOARD_CYCLE, .flags = IN_C});
    needs(&told, 0, 3);
    says(&told, "Node 0 waits in coordinated_recv() for node 3, which must call it, too.",
         "have every node call spcomm_coordinated_recv(), also those that take another branch, before it "
         "waits "
         "for them.");
}

TEST(groups_without_a_member) {
    told_t told = {.known = {false}};
    spc_board_entry_t entry = {.kind = SPC_BOARD_GATHERING, .source = 2};
    const spc_signature_t call = {.operation = SPC_OPERATION_CREATE_GROUP};
    memcpy(entry.call, &call, sizeof call);
    wait_of(&told, 0, entry);
    needs(&told, 0, 2);
    says(&told, "Node 0 waits in create_group() for the part of node 2, which must call it, too.",
         "have every member call it, with the same list and tag, before it waits for others.");
}

/* ---- forms ---- */

TEST(names_of_nodes) {
    static const struct {
        bool chosen[8];
        const char *text;
    } CASES[] = {
        {{false, true}, "node 1"},
        {{true, true}, "nodes 0-1"},
        {{true, true, true, false, false, true, false, true}, "nodes 0-2, 5, 7"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[32] = "";
        FILE *out = fmemopen(text, sizeof text, "w");
        CHECK(out != NULL);
        spc_call_text_write_ranks("node", CASES[i].chosen, 8, out);
        fclose(out);
        CHECK_STR(text, CASES[i].text);
    }
}

TEST(headlines) {
    static const struct {
        spc_deadlock_report_options_t options;
        uint32_t waiting;
        const char *begin;
    } CASES[] = {
        {{0}, 1, "spcomm: DEADLOCK — node 0 of 4 waits for what can never come\n"},
        {{0},
         2,
         "spcomm: DEADLOCK — nodes 0-1 of 4 wait for each other only, and no message is on its way\n"},
        {{.group = " of group 2"},
         3,
         "spcomm: DEADLOCK — nodes 0-2 of the 4 nodes of group 2 wait for each other only, and no message is "
         "on its "
         "way\n"},
        {{.group = " of group 2"},
         4,
         "spcomm: DEADLOCK — all 4 nodes of group 2 wait, and no message is on its way\n"},
        {{.in_vain = true},
         2,
         "spcomm: warning: DEADLOCK — nodes 0-1 of 4 wait for each other, whatever the others still do\n"},
        {{.in_vain = true},
         3,
         "spcomm: warning: DEADLOCK — nodes 0-2 of 4 wait for each other, whatever the other node still "
         "does\n"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        told_t told = {.known = {false}};
        for (uint32_t rank = 0; rank < CASES[i].waiting; rank++) {
            message(&told, rank, SPC_BOARD_RECEIVE, (rank + 1) % CASES[i].waiting, 0);
        }
        char *text = report_of(&told, CASES[i].options);
        CHECK(strncmp(text, CASES[i].begin, strlen(CASES[i].begin)) == 0);
        CHECK((strstr(text, "The run goes on until the other") != NULL) == CASES[i].options.in_vain);
        free(text);
    }
}

TEST(nodes_that_a_thread_may_help) {
    told_t told = {.waits = {.nodes = 3}};
    message(&told, 0, SPC_BOARD_RECEIVE, 1, 0);
    message(&told, 1, SPC_BOARD_RECEIVE, 0, 0);
    told.entry[1].doubts = SPC_BOARD_THREADS;
    char *text = report_of(&told, (spc_deadlock_report_options_t){.waited_s = 6});
    CHECK_STR(strtok(text, "\n"),
              "spcomm: warning: nodes 0-1 of 3 have been waiting for 6 s, and only another thread "
              "of this program can end that");
    free(text);
    told.entry[1].doubts |= SPC_BOARD_AT_END;
    text = report_of(&told, (spc_deadlock_report_options_t){.waited_s = 6});
    CHECK(strstr(text, "The main program has ended, and threads of it still wait") != NULL);
    CHECK(strstr(text, "daemon=True") != NULL);
    free(text);
}

TEST(a_node_alone) {
    static const struct {
        spc_board_kind_t kind;
        uint32_t doubts;
        spc_deadlock_report_options_t options;
        const char *begin;
        const char *end;
    } CASES[] = {
        {SPC_BOARD_RECEIVE,
         0,
         {.advice = "Start it."},
         "DEADLOCK — the node waits, and no message is on its way\n",
         "\n  Start it."},
        {SPC_BOARD_SEND,
         0,
         {.advice = "Start it."},
         "DEADLOCK — the node waits, and no message is on its way\n",
         "\n  The queue is full: the node sends more to itself than it receives.\n  Try: receive between the "
         "sends; a higher limit only moves the point where it stops."},
        {SPC_BOARD_RECEIVE,
         SPC_BOARD_THREADS,
         {.advice = "Start it.", .waited_s = 7},
         "warning: the node has been waiting for 7 s, and only another thread of this program can end that\n",
         "\n  Start it."},
        {SPC_BOARD_RECEIVE,
         SPC_BOARD_TIMER | SPC_BOARD_HANDLER,
         {.advice = "Start it.", .waited_s = 7},
         "warning: the node has been waiting for 7 s, and only a timer or a signal handler of this program "
         "can end "
         "that\n",
         "\n  Start it."},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        told_t told = {.waits = {.nodes = 1}};
        char end[300];
        message(&told, 0, CASES[i].kind, 0, 0);
        told.entry[0].doubts = CASES[i].doubts;
        char *text = report_of(&told, CASES[i].options);
        CHECK(strncmp(text, "spcomm: ", 8) == 0);
        CHECK(strncmp(text + 8, CASES[i].begin, strlen(CASES[i].begin)) == 0);
        CHECK(strstr(text, "circle") == NULL);
        snprintf(end, sizeof end, "%s     (spcomm explain SP101)\n", CASES[i].end);
        CHECK_STR(text + strlen(text) - strlen(end), end);
        free(text);
    }
}

/* The report mentions nodes that wait in vain only for each other's part in it. */
TEST(others_that_still_run) {
    for (int in_vain = 0; in_vain < 2; in_vain++) {
        told_t told = {.known = {false}};
        operation(&told, 0, SPC_OPERATION_BARRIER, 1, 0);
        operation(&told, 1, SPC_OPERATION_BARRIER, 0, 0);
        needs(&told, 0, 3);
        char *text = report_of(&told, (spc_deadlock_report_options_t){.in_vain = in_vain != 0});
        CHECK_EQ(strstr(text, "3") == NULL, in_vain != 0);
        free(text);
    }
}

TEST(the_launchers_option_is_named) {
    for (uint64_t enough = 0; enough <= 100000; enough += 100000) {
        told_t told = {.known = {false}};
        for (uint32_t rank = 0; rank < 2; rank++) {
            message(&told, rank, SPC_BOARD_SEND, 1 - rank, 0);
            told.entry[rank].phase = enough;
        }
        char *text = report_of(&told, (spc_deadlock_report_options_t){.has_launcher = true});
        CHECK(
            strstr(text,
                   enough != 0
                       ? "receive between the sends; --queue-limit 98K lets these sends go on, and only moves"
                       : "receive between the sends; --queue-limit only moves the point")
            != NULL);
        free(text);
    }
}

/* Escape, CSI as one byte and as two of UTF-8 are replaced; letters of several bytes and bytes of Latin-1 stay. */
TEST(names_of_files) {
    told_t told = {.known = {false}};
    message(&told, 0, SPC_BOARD_RECEIVE, 1, 0);
    snprintf(told.entry[0].file, sizeof told.entry[0].file,
             "/a/b\x1b[2J\x9b\xc2\x9b\xc3\x9f\xe2\x80\x9c\xff.py");
    snprintf(told.entry[0].function, sizeof told.entry[0].function, "f\n");
    told.entry[0].line = 3;
    char *text = report_of(&told, (spc_deadlock_report_options_t){.has_launcher = true});
    CHECK(strstr(text, "  b?[2J??\xc3\x9f\xe2\x80\x9c\xff.py:3 in f?\n") != NULL);
    free(text);
}

/* A box on another machine may have sent anything: nothing is read beyond the entry. */
TEST(any_entry) {
    uint64_t state = check_seed();
    for (int i = 0; i < 20000; i++) {
        told_t told = {.known = {false}};
        for (uint32_t rank = 0; rank < NODES; rank++) {
            unsigned char *bytes = (unsigned char *)&told.entry[rank];
            for (size_t at = 0; at < sizeof told.entry[rank]; at++) {
                bytes[at] = (unsigned char)(check_random(&state) % 4 != 0 ? check_random(&state) % 9
                                                                          : check_random(&state));
            }
            told.entry[rank].file[SPC_BOARD_FILE_BYTES - 1] = '\0';
            told.entry[rank].function[SPC_BOARD_FUNCTION_BYTES - 1] = '\0';
            told.entry[rank].more[SPC_BOARD_MORE_BYTES - 1] = '\0';
            told.entry[rank].kind %= SPC_BOARD_GATHERING + 1;
            told.known[rank] = check_random(&state) % 4 != 0;
            told.waits.known_count += told.known[rank];
            for (uint32_t other = 0; other < NODES; other++) {
                told.needed[rank * NODES + other] = check_random(&state) % 2 != 0;
            }
        }
        free(report_of(&told, (spc_deadlock_report_options_t){.in_vain = i % 2 != 0}));
    }
}

/* ---- calls and places ---- */

static void call_is(spc_board_entry_t entry, const char *expected) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    CHECK(out != NULL);
    spc_call_text_write(&entry, NULL, out);
    spc_call_text_write_place(&entry, out);
    fclose(out);
    CHECK_STR(text, expected);
    free(text);
}

static spc_board_entry_t phase_of(spc_signature_t call) {
    spc_board_entry_t entry = {.kind = SPC_BOARD_PHASE};
    memcpy(entry.call, &call, sizeof call);
    return entry;
}

static spc_signature_t reduction_of(spc_operator_t operator, uint64_t kind, spc_type_t type,
                                    uint32_t letter) {
    return (spc_signature_t){.operation = SPC_OPERATION_REDUCE,
                             .operator = (uint8_t)operator,
                             .type = (uint8_t)type,
                             .root = letter,
                             .length_bytes = 40,
                             .layout = kind << 56};
}

TEST(calls_by_name) {
    call_is((spc_board_entry_t){.kind = SPC_BOARD_CYCLE}, "coordinated_recv()");
    call_is((spc_board_entry_t){.kind = SPC_BOARD_RECEIPT, .source = 3, .tag = 5}, "ssend(dest=3, tag=5)");
    call_is((spc_board_entry_t){.kind = SPC_BOARD_SEND, .source = -1, .tag = 5, .size = 2},
            "send(dest=several nodes, tag=5)");
    call_is((spc_board_entry_t){.kind = SPC_BOARD_SEND, .source = -1, .tag = -1, .size = 2},
            "the end of the program, with messages still queued");
    call_is(phase_of((spc_signature_t){.operation = SPC_OPERATION_FUZZY}), "fuzzy_barrier()");
    call_is(phase_of((spc_signature_t){.operation = SPC_OPERATION_COORDINATED}), "coordinated_recv()");
    call_is(phase_of((spc_signature_t){.operation = SPC_OPERATION_SPLIT}), "split()");
    call_is(phase_of(reduction_of(SPC_SUM, SPC_KIND_INT, SPC_TYPE_INT, 0)), "global_sum() of an int");
    call_is(phase_of(reduction_of(SPC_MIN, SPC_KIND_ARRAY, SPC_TYPE_FLOAT64, 0)),
            "global_min() of an array of float64, 40 bytes");
    call_is(phase_of(reduction_of(SPC_MAX, SPC_KIND_SCALAR, SPC_TYPE_NONE, 'G')),
            "global_max() of a NumPy scalar of clongdouble");
    call_is(phase_of(reduction_of(SPC_MAX, SPC_KIND_TUPLE, SPC_TYPE_INT, 0)),
            "global_max() of a tuple, 40 bytes");
    spc_signature_t array = reduction_of(SPC_BITWISE_XOR, SPC_KIND_ARRAY, SPC_TYPE_BOOL, 0);
    array.operation = SPC_OPERATION_ARRAY_EXSCAN;
    call_is(phase_of(array), "exscan(op=BXOR) of an array of bool, 40 bytes");
    array = reduction_of(SPC_PROD, SPC_KIND_ARRAY, SPC_TYPE_COMPLEX64, 2);
    array.operation = SPC_OPERATION_ARRAY_REDUCE;
    call_is(phase_of(array), "reduce(op=PROD, root=2) of an array of complex64, 40 bytes");
}

TEST(collectives_that_move_data) {
    static const char *const rooted[] = {"bcast(root=3)", "gather(root=3)", "allgather()", "scatter(root=3)",
                                         "alltoall()"};
    for (int i = 0; i < 5; i++) {
        spc_board_entry_t entry =
            phase_of((spc_signature_t){.operation = (uint8_t)(SPC_OPERATION_DATA_BCAST + i), .root = 3});
        call_is(entry, rooted[i]);
        entry.kind = SPC_BOARD_SEND;
        entry.source = -1;
        call_is(entry, rooted[i]);
    }
    spc_board_entry_t entry = phase_of((spc_signature_t){.operation = SPC_OPERATION_DATA_GATHER});
    entry.kind = SPC_BOARD_GATHERING;
    entry.source = 2;
    call_is(entry, "gather(root=0) for the part of node 2");
}

TEST(places) {
    call_is((spc_board_entry_t){.kind = SPC_BOARD_CYCLE, .file = "/a/b.py", .line = 3, .function = "step"},
            "coordinated_recv()b.py:3 in step");
    call_is((spc_board_entry_t){.kind = SPC_BOARD_CYCLE, .file = "b.py", .line = 3, .function = "<module>"},
            "coordinated_recv()b.py:3");
}

TEST_MAIN()
