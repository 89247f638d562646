/* SPDX-License-Identifier: MIT */
/* Why a call has failed: each status, for each kind of call, in Python, C and MPI. */
#include "check.h"

#include "base/spc_error.h"
#include "diagnose/spc_failure_text.h"

static const char sp104[] = ".     (spcomm explain SP104)";

/* "<call>: <sentence>"; the last one stays valid. */
static const char *said(const spc_failed_call_t *failed) {
    static char text[2000];
    FILE *out = fmemopen(text, sizeof(text), "w");
    CHECK(out != NULL);
    fprintf(out, "%s: ", failed->call);
    spc_failure_text_write(failed, out);
    fclose(out);
    return text;
}

static spc_failed_call_t fails(const char *call, int status) {
    return (spc_failed_call_t){.call = call, .status = status, .rank = 0, .size = 4, .culprit = 1};
}

static const char *lost(const char *call, spc_node_state_t state, int32_t reason, const spc_note_t *end) {
    spc_failed_call_t failed = fails(call, state == SPC_NODE_DIED ? SPC_ELOST : SPC_EFINISHED);
    failed.state = state;
    failed.reason = reason;
    failed.has_end = end != NULL;
    failed.end = end != NULL ? *end : failed.end;
    return said(&failed);
}

static void check_begins(const char *text, const char *start) {
    if (strncmp(text, start, strlen(start)) != 0) {
        CHECK_FAIL("%s: does not begin with: %s", text, start);
    }
}

static void check_has(const char *text, const char *part) {
    if (strstr(text, part) == NULL) {
        CHECK_FAIL("%s: does not have: %s", text, part);
    }
}

TEST(each_status_has_a_sentence) {
#define SAID(name, number, message)                                                  \
    if (number != 0) {                                                               \
        const spc_failed_call_t failed = fails("recv(source=1, tag=7)", SPC_##name); \
        const char *text = said(&failed);                                            \
        check_begins(text, "recv(source=1, tag=7): ");                               \
        CHECK(strlen(text) > strlen("recv(source=1, tag=7): ") + 10);                \
    }
    SPC_ERRORS(SAID)
#undef SAID
    const spc_failed_call_t invalid = fails("bytes_given_out()", SPC_EINVAL);
    check_has(said(&invalid), "(SPC_EINVAL)");
}

TEST(how_a_node_ended) {
    static const spc_note_t raised = {
        .line = 12, .words = "an uncaught ValueError", .function = "step", .file = "/home/ring.py"};
    static const spc_note_t at_module = {
        .line = 3, .words = "sys.exit()", .function = "<module>", .file = "ring.py"};
    static const spc_note_t nowhere = {.words = "the end of ring.py"};
    static const char call[] = "recv(source=1, tag=7)";
    check_has(lost(call, SPC_NODE_DIED, -9, NULL),
              "node 1 has died (killed by signal 9 (SIGKILL)).\nIts message");
    check_has(lost(call, SPC_NODE_DIED, -150, NULL), "(killed by signal 150 (unknown))");
    check_has(lost(call, SPC_NODE_DIED, -9, &raised),
              "(killed by signal 9 (SIGKILL), at ring.py:12 in step)");
    check_has(lost(call, SPC_NODE_DIED, 2, NULL), "(it ended with exit code 2)");
    check_has(lost(call, SPC_NODE_DIED, 0, NULL), "node 1 has died.\nIts message");
    check_has(lost(call, SPC_NODE_DIED, 1, &raised), "(an uncaught ValueError at ring.py:12 in step)");
    check_has(lost(call, SPC_NODE_FINISHED, 0, NULL), "node 1 has finished.\n");
    check_has(lost(call, SPC_NODE_FINISHED, 0, &at_module),
              "node 1 has finished (sys.exit() at ring.py:3).\n");
    check_has(lost(call, SPC_NODE_FINISHED, 0, &nowhere), "node 1 has finished (the end of ring.py).\n");
    check_has(lost(call, SPC_NODE_LIVE, 0, NULL),
              "has closed this communicator (or left its `with` block).\n");
    check_has(lost("spcomm_barrier()", SPC_NODE_LIVE, 0, NULL),
              "has closed this communicator.\nAll its nodes");
}

/* The consequence of a loss depends on the call. */
TEST(who_is_missed) {
    static const struct {
        const char *call, *finished, *died;
    } rows[] = {
        {"recv(source=1)", "It will send nothing more, and no such message is left",
         "Its message cannot come"},
        {"spcomm_recv(source=1, tag=5)", "It will send nothing more, and no such message is left",
         "Its message"},
        {"sendrecv(source=1)", "It will send nothing more, and no such message is left", "Its message"},
        {"MPI_Recv_c", "It will send nothing more, and no such message is left", "Its message"},
        {"MPI_Mprobe", "It will send nothing more, and no such message is left", "Its message"},
        {"MPI_Sendrecv_c", "It will send nothing more, and no such message is left", "Its message"},
        {"ssend(dest=1)", "It has not received the message", "It has not received the message"},
        {"spcomm_ssend()", "It has not received the message", "It has not received the message"},
        {"MPI_Ssend_c", "It has not received the message", "It has not received the message"},
        {"MPI_Send", "It has not received the message", "It has not received the message"},
        {"MPI_Waitall", "The request can't be completed any more", "The request can't be completed any more"},
        {"barrier()",
         "It will call nothing more, but all nodes must call barrier().\n  Try: let node 1 call "
         "barrier(), too",
         "This call cannot complete without it"},
        {"barrier(), as node 0 of a part of 2", "all nodes must call barrier().",
         "This call cannot complete"},
        {"spcomm_allreduce()", "all nodes must call spcomm_allreduce().",
         "This call cannot complete without it"},
        {"MPI_Bcast_c", "It will call nothing more, but all nodes must call MPI_Bcast().",
         "This call cannot"},
        {"coordinated_recv()", "It has not received in this cycle", "It has not received in this cycle"},
        {"spcomm_coordinated_send()", "It has not received in this cycle", "This cycle cannot end"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_has(lost(rows[i].call, SPC_NODE_FINISHED, 0, NULL), rows[i].finished);
        check_has(lost(rows[i].call, SPC_NODE_DIED, 1, NULL), rows[i].died);
        const char *text = lost(rows[i].call, SPC_NODE_DIED, 1, NULL);
        CHECK_STR(text + strlen(text) - strlen(sp104), sp104);
    }
}

TEST(receives_from_any_node_miss_them_all) {
    static const char *const calls[] = {"recv(source=ANY, tag=7)", "spcomm_recv(source=SPCOMM_ANY, tag=7)"};
    for (size_t i = 0; i < 2; i++) {
        const char *text = lost(calls[i], SPC_NODE_FINISHED, 0, NULL);
        check_has(text,
                  "all other nodes have ended without sending such a message.\nThe last is node 1, which has "
                  "finished.     (spcomm");
    }
}

TEST(what_did_not_come_in_time) {
    static const char *const rows[][2] = {
        {"send(dest=1)", "nothing was sent"},
        {"spcomm_send_all()", "nothing was sent"},
        {"move(dest=1)", "nothing was sent"},
        {"coordinated_send(dest=1)", "nothing was sent"},
        {"ssend(dest=1)", "it has been sent, and may still be received"},
        {"recv(source=1, timeout=1)", "no such message came to node 0 in that time"},
        {"probe(source=1)", "no such message came to node 0 in that time"},
        {"barrier(timeout=1)",
         "not all 4 nodes came in that time; node 0 stays entered: repeat the same call"},
        {"close(timeout=1)", "and it is lost"},
        {"spcomm_shutdown()", "and it is lost"},
        {"coordinated_recv(timeout=1)", "not all nodes called coordinated_recv() or one of their messages"},
        {"spcomm_coordinated_recv()", "not all nodes receive or one"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const spc_failed_call_t failed = fails(rows[i][0], SPC_ETIMEDOUT);
        check_has(said(&failed), rows[i][1]);
    }
}

TEST(cycles_name_where_they_began) {
    spc_failed_call_t failed = fails("barrier()", SPC_ECYCLE);
    failed.since = ", since coordinated_send() at ring.py:7";
    check_has(said(&failed),
              "within a cycle of coordinated messages, since coordinated_send() at ring.py:7; until");
    check_has(said(&failed), "until coordinated_recv() returns None");
    failed.call = "coordinated_send(dest=1)";
    check_has(said(&failed), "receives the coordinated messages of this cycle, since");
    failed = fails("spcomm_barrier()", SPC_ECYCLE);
    check_has(said(&failed), "within a cycle of coordinated messages; until its end");
    check_has(said(&failed), "receive until the cycle is over, then call this.");
}

TEST(whose_connection_is_lost) {
    spc_failed_call_t failed = fails("barrier()", SPC_EDISCONNECTED);
    failed.lost_box = 2;
    check_has(said(&failed), "the connection to box 2 is lost");
    failed.lost_box = SPC_STATUS_SERVER;
    check_has(said(&failed), "the server that connects the boxes is lost");
}

static const char *near(uint32_t count, bool by_tag) {
    static char text[200];
    FILE *out = fmemopen(text, sizeof(text), "w");
    CHECK(out != NULL);
    spc_failure_text_write_near(count, 3, 5, by_tag, out);
    fclose(out);
    return text;
}

TEST(messages_that_nearly_match) {
    CHECK_STR(near(1, true),
              "Here is, though, a message from node 3 with tag 5: a different tag from the one "
              "requested.     (spcomm explain SP108)");
    CHECK_STR(near(2, false),
              "Here are, though, 2 messages, the first from node 3 with tag 5: a different sender "
              "from the one requested.     (spcomm explain SP108)");
}

TEST_MAIN()
