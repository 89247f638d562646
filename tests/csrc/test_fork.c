/* SPDX-License-Identifier: MIT */
/*
 * Forked runs: for each case a child of the test is what a shell would start. Its stderr is a pipe that the
 * supervisor and all nodes hold, so the end of the text is the end of everybody: what is left behind hangs the test.
 */
#include <poll.h>

#include "comm/spc_comm_private.h"
#include "fork/spc_fork_private.h"
#include "fork_box.h"

TEST(all_nodes_talk) {
    for (uint32_t nodes = 1; nodes <= 8; nodes *= 2) {
        outcome_t outcome = outcome_of(nodes, talk);
        expect_code(outcome, 0, "");
        CHECK_EQ(outcome.nodes_seen, nodes);
    }
}

static int node_2_returns_7(const node_t *node) {
    if (node->rank == 2) {
        return 7;
    }
    int status = receive_nothing(node);
    CHECK(status == SPC_ELOST || status == SPC_EFINISHED);
    return 0;
}

static int node_0_returns_8(const node_t *node) {
    return node->rank == 0 ? 8 : compute();
}

TEST(exit_codes) {
    expect_code(first_part(outcome_of(3, node_2_returns_7)), 7, "spcomm: node 2 failed first (exit code 7)");
    expect_code(outcome_of(3, node_0_returns_8), 8, BRIEFLY("node 0 failed first (exit code 8)"));
}

/* ---- the command that reports the end */

static int node_1_returns_7(const node_t *node) {
    return node->rank == 1 ? 7 : compute();
}

/* The last message of node 1 is never received. */
static int send_too_much(const node_t *node) {
    const int32_t to = 0;
    const spc_payload_t payload = {
        .data = &node->rank, .data_bytes = sizeof node->rank, .format = SPC_FORMAT_RAW};
    if (node->rank == 1) {
        CHECK_OK(spc_comm_send(node->comm, &to, 1, SPC_CONTEXT_USER, 0, &payload, SPC_NO_DEADLINE));
    }
    return 0;
}

TEST(the_command_gets_the_record) {
    static const char *const show[] = {"sh", "-c", "tr -d '\\000-\\037' >&2", NULL};
    static const char *const fail[] = {"sh", "-c", "exit 1", NULL};
    static const char *const refuse[] = {"sh", "-c", "echo $0 $1 >&2; exit 3", NULL};
    conclude = show;
    outcome_t outcome = outcome_of(2, node_1_returns_7);
    CHECK(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 7);
#if SPC_HAS_SIGQUEUE
    if (outcome.text[0] != 'B' || strstr(outcome.text, "W1792F1S") == NULL) {
        CHECK_FAIL("the record is: %s", outcome.text);
    }
#endif
    conclude = fail;
    expect_code(outcome_of(2, node_1_returns_7), 7,
                "spcomm: node 1 failed first (exit code 7); the command sh, which says more, cannot be "
                "executed\n");
    conclude = refuse;
    outcome = outcome_of(2, send_too_much);
    CHECK(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 1);
    CHECK(strstr(outcome.text, " 0,1\n") != NULL);
    CHECK_EQ(WEXITSTATUS(outcome_of(2, node_1_returns_7).status), 7); /* a failure counts more */
    conclude = nothing;
    expect_code(outcome_of(2, send_too_much), 0,
                BRIEFLY("messages were never received, or barriers left open"));
}

/* ---- what the supervisor ends, and what ends it */

static int deaf_nodes(const node_t *node) {
    signal(SIGTERM, SIG_IGN);
    meet(node);
    return node->rank == 2 ? raise(SIGSEGV) : compute();
}

TEST(nodes_that_ignore_sigterm_are_killed) {
    if (CHECK_SANITIZED) {
        return; /* a sanitizer has words of its own on SIGSEGV */
    }
    double before = grace_s;
    grace_s = 0.2;
    expect_signal(outcome_of(3, deaf_nodes), SIGKILL, BRIEFLY("node 2 failed first (exit code 139)"));
    grace_s = before;
}

/* Node 1 goes on after a Ctrl-C, for longer than the grace time, and fails by itself. */
static int a_failure_long_after_ctrl_c(const node_t *node) {
    if (node->rank == 1) {
        kill(getppid(), SIGINT);
        (void)poll(NULL, 0, 500);
        return 3;
    }
    return compute();
}

/* Node 0 ends when node 1 has, so this case does not wait for the end of the grace time. */
static int a_failure_after_ctrl_c(const node_t *node) {
    if (node->rank == 1) {
        kill(getppid(), SIGINT);
        return 3;
    }
    CHECK_EQ(receive_nothing(node), SPC_EFINISHED);
    return 0;
}

TEST(an_answer_to_ctrl_c_comes_soon) {
    double before = grace_s;
    grace_s = 0.2;
    expect_code(outcome_of(2, a_failure_long_after_ctrl_c), 3, BRIEFLY("node 1 failed first (exit code 3)"));
    grace_s = before;
    expect_code(outcome_of(2, a_failure_after_ctrl_c), 130, BRIEFLY("the run was ended (exit code 130)"));
}

static int the_supervisor_is_killed(const node_t *node) {
    if (node->rank == 1) {
        kill(getppid(), SIGKILL);
    }
    if (node->rank != 0) {
        return ORPHANS_ARE_KILLED ? compute() : receive_nothing(node);
    }
    CHECK_EQ(receive_nothing(node), SPC_ELOST);
    atomic_fetch_add(&node->run->nodes_seen, 1);
    return 0;
}

TEST(a_killed_supervisor_is_noticed) {
    if (!WAITS_LOOK_AROUND) {
        return;
    }
    outcome_t outcome = outcome_of(3, the_supervisor_is_killed);
    expect_code(
        outcome, 125,
        "spcomm: the process that watches over the nodes was killed by SIGKILL; the nodes were stopped\n");
    CHECK_EQ(outcome.nodes_seen, 1);
}

/* ---- what the supervisor holds */

static int wait_for_the_end_of_a_pipe(const node_t *node) {
    char byte;
    close(node->run->held[1]);
    close(node->run->far);
    if (node->rank == 0) {
        CHECK_EQ(read(node->run->held[0], &byte, 1), 0);
    }
    return 0;
}

static int read_stdin(const node_t *node) {
    char byte;
    return node->rank == 0 ? 0 : (int)read(0, &byte, 1);
}

TEST(the_supervisor_holds_nothing_of_the_program) {
    expect_code(outcome_of(3, wait_for_the_end_of_a_pipe), 0, "");
    int never[2]; /* nobody writes, so that reading it would not end */
    int before = dup(0);
    CHECK_EQ(pipe(never), 0);
    dup2(never[0], 0);
    expect_code(outcome_of(3, read_stdin), 0, "");
    dup2(before, 0);
    close(before);
    close(never[0]);
    close(never[1]);
}

TEST(no_process_stays) {
    if (ORPHANS_ARE_KILLED) {
        expect_code(outcome_of(3, leave_a_process), 0, "");
    }
}

/* It waits for somebody who never goes: itself. */
static int leave_a_stuck_tracker(const node_t *node) {
    int served;
    if (node->rank == 1) {
        start_tracker(TRACKER("exec 3<>/dev/fd/0; read unused"), &served);
    }
    return 0;
}

TEST(trackers_come_last) {
    if (ORPHANS_ARE_KILLED) {
        expect_code(outcome_of(2, leave_a_tracker), 0, "removed\n");
        expect_code(outcome_of(2, leave_a_stuck_tracker), 0, "");
    }
}

static int wait_twice(const node_t *node) {
    int code = 0;
    signal(SIGTERM, SIG_IGN); /* node 0 is to come to its wait, whenever node 1 ends */
    meet(node);
    if (node->rank == 0) {
        CHECK_OK(spc_fork_wait(node->fork, 0, &code));
        CHECK_EQ(code, 5);
        CHECK_OK(spc_fork_wait(node->fork, 9, &code));
        CHECK_EQ(code, 9);
        return 5;
    }
    return node->rank == 1 ? 5 : 0;
}

static int ignored_children(const node_t *node) {
    if (node->rank == 0) {
        signal(SIGCHLD, SIG_IGN);
    }
    return node->rank == 1 ? 6 : 0;
}

TEST(waiting_is_the_last_thing) {
    expect_code(first_part(outcome_of(2, wait_twice)), 5, "spcomm: node 1 failed first (exit code 5)");
    expect_code(first_part(outcome_of(2, ignored_children)), 6, "spcomm: node 1 failed first (exit code 6)");
}

/* ---- node 0 waits for the supervisor, so it lives: a thread of it may still read what was received */

static void note_that_node_0_lives(const node_t *node) {
    atomic_fetch_add(&node->run->nodes_seen, !spc_status_is_gone(node->comm->node->status, 0));
}

/* The supervisor tells the others to end, marks the end of node 0, and only then sees that node 2 is gone. */
static int node_0_is_over(const node_t *node) {
    sigset_t terminate;
    int number;
    sigemptyset(&terminate);
    sigaddset(&terminate, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &terminate, NULL);
    meet(node);
    if (node->rank != 0) {
        CHECK_EQ(sigwait(&terminate, &number), 0);
    }
    if (node->rank == 1) {
        while (!spc_status_is_gone(node->comm->node->status, 2)) {
            spc_platform_yield();
        }
        note_that_node_0_lives(node);
    }
    return node->rank == 0 ? 8 : 0;
}

static int node_0_is_stopped(const node_t *node) {
    if (node->rank == 2) {
        signal(SIGTERM, SIG_IGN);
    }
    meet(node);
    if (node->rank == 2) {
        while (!spc_status_is_told(node->comm->node->status, 0)) {
            spc_platform_yield();
        }
        note_that_node_0_lives(node);
    }
    return node->rank == 0 ? compute() : node->rank == 1 ? 7 : 0;
}

TEST(who_waits_at_its_end_is_not_gone) {
    outcome_t outcome = outcome_of(3, node_0_is_over);
    expect_code(first_part(outcome), 8, "spcomm: node 0 failed first (exit code 8)");
    CHECK_EQ(outcome.nodes_seen, 1);
#if SPC_HAS_SIGQUEUE
    outcome = outcome_of(3, node_0_is_stopped);
    expect_code(first_part(outcome), 7, "spcomm: node 1 failed first (exit code 7)");
    CHECK_EQ(outcome.nodes_seen, 1);
#endif
}

/* ---- what is refused */

static void refused(spc_fork_options_t options, int expected) {
    spc_fork_t *fork = (spc_fork_t *)&options;
    uint32_t rank = 99;
    CHECK_EQ(spc_fork_nodes(&options, &fork, &rank), expected);
    CHECK(fork == NULL);
    CHECK_EQ(rank, 0);
}

TEST(wrong_options) {
    int code = 0;
    comm_box_t box = comm_box_open((spc_config_t){.nodes = 3});
    refused((spc_fork_options_t){.descriptor = box.descriptor, .nodes = 0}, SPC_EINVAL);
    refused((spc_fork_options_t){.descriptor = box.descriptor, .nodes = SPC_NODES_MAX + 1}, SPC_EINVAL);
    refused((spc_fork_options_t){.descriptor = box.descriptor, .nodes = 2}, SPC_EINVAL);
    refused((spc_fork_options_t){.descriptor = box.descriptor, .nodes = 3, .grace_s = -1}, SPC_EINVAL);
    refused((spc_fork_options_t){.descriptor = box.descriptor, .nodes = 3, .grace_s = 0.0 / 0.0}, SPC_EINVAL);
    refused((spc_fork_options_t){.descriptor = -1, .nodes = 3}, SPC_ESYSTEM);
    refused((spc_fork_options_t){.descriptor = -1, .nodes = 1}, SPC_OK);
    CHECK_OK(spc_fork_wait(NULL, 4, &code));
    CHECK_EQ(code, 4);
    CHECK_OK(spc_fork_check(NULL));
    CHECK_OK(spc_fork_wait_at_exit(NULL));
    CHECK_EQ(spc_fork_report_descriptor(NULL), -1);
    comm_box_close(&box);
}

TEST(no_descriptors_left) {
    struct rlimit before, few;
    comm_box_t box = comm_box_open((spc_config_t){.nodes = 3});
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)box.descriptor + 2;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    refused((spc_fork_options_t){.descriptor = box.descriptor, .nodes = 3}, SPC_ESYSTEM);
    CHECK_EQ(errno, EMFILE);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(wait(NULL), -1); /* and nobody is left */
    comm_box_close(&box);
}

static void *stay(void *pipe) {
    char byte;
    CHECK_EQ(read(*(int *)pipe, &byte, 1), 0);
    return NULL;
}

TEST(threads_are_counted) {
    int gate[2];
    pthread_t thread;
    CHECK_EQ(spc_fork_other_threads(), 0);
    CHECK_EQ(pipe(gate), 0);
    CHECK_EQ(pthread_create(&thread, NULL, stay, &gate[0]), 0);
    CHECK_EQ(spc_fork_other_threads(), spc_process_threads() == 0 ? 0 : 1);
    close(gate[1]);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close(gate[0]);
}

int main(void) {
    if (!WITH_PROCESSES) {
        SKIP("ThreadSanitizer keeps a thread, and forks of it that go on are not supported");
    }
    check_all();
    return check_done();
}
