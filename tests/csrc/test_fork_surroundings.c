/* SPDX-License-Identifier: MIT */
/* Forked runs in surroundings that a shell or the program has changed. */
#include "fork_box.h"

#ifdef __linux__
#include <sched.h>
#endif

#ifdef __linux__
/* This process goes on as the first of a process-id namespace whose /proc it does not have. */
static void another_namespace(void) {
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
        return; /* not everybody may */
    }
    pid_t first = fork();
    CHECK(first >= 0);
    if (first != 0) {
        int status = check_wait(first);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
}

/* Where numbers in /proc are not those of this process, the wrong ones would be killed, and nothing would end. */
TEST(no_process_stays_in_a_namespace) {
    surroundings = another_namespace;
    expect_code(outcome_of(3, leave_a_process), 0, "");
    expect_code(outcome_of(2, leave_a_tracker), 0, "removed\n");
    surroundings = NULL;
}
#endif

static void no_input(void) {
    close(0);
}

static void no_output(void) {
    close(1);
}

static void no_input_no_output(void) {
    close(0);
    close(1);
}

/* The supervisor's first descriptors get their numbers, and must keep away from them. */
TEST(streams_may_be_closed) {
    void (*const closed[])(void) = {no_input, no_output, no_input_no_output};
    for (uint32_t i = 0; i < 3; i++) {
        surroundings = closed[i];
        outcome_t outcome = outcome_of(3, talk);
        expect_code(outcome, 0, "");
        CHECK_EQ(outcome.nodes_seen, 3);
        expect_signal(outcome_of(3, node_0_is_killed), SIGKILL, BRIEFLY("node 0 failed first (exit code 1)"));
    }
    surroundings = NULL;
}

/* ---- when the supervisor itself is in trouble */

static void on_fault(int number) {
    (void)number; /* comes back at once: the handler of a language that looks at signals later */
}

static int a_fault_of_the_supervisor(const node_t *node) {
    if (node->rank == 1) {
        kill(getppid(), SIGBUS);
    }
    return ORPHANS_ARE_KILLED && node->rank != 0 ? compute() : (receive_nothing(node), 0);
}

static void fault_handler(void) {
    signal(SIGBUS, on_fault);
}

TEST(handlers_of_faults_do_not_stay_in_the_supervisor) {
    if (!WAITS_LOOK_AROUND || CHECK_SANITIZED) {
        return;
    }
    surroundings = fault_handler;
    expect_code(
        outcome_of(3, a_fault_of_the_supervisor), 125,
        "spcomm: the process that watches over the nodes was killed by SIGBUS; the nodes were stopped\n");
    surroundings = NULL;
}

/* ---- descriptors that the program closes */

/* As daemons do; then everything that may have been ours is a pipe of the program's. */
static int close_and_open(const node_t *node) {
    int mine[2];
    char byte;
    meet(node);
    for (int number = 3; number < 100; number++) {
        close(number);
    }
    CHECK_EQ(pipe(mine), 0);
    CHECK_EQ(fcntl(mine[0], F_SETFL, O_NONBLOCK), 0);
    for (int number = mine[1] + 1; number < 100; number++) {
        CHECK_EQ(dup2(mine[1], number), number);
    }
    if (node->rank == 0) {
        int code = 99;
        for (uint64_t until_ns = spc_clock_now_ns() + SECOND / 10; spc_clock_now_ns() < until_ns;) {
            CHECK_OK(spc_fork_check(node->fork));
        }
        CHECK_OK(spc_fork_wait(node->fork, 4, &code));
        CHECK_EQ(code, 4);
        CHECK_EQ(read(mine[0], &byte, 1), -1);
        CHECK_EQ(errno, EAGAIN);
        atomic_fetch_add(&node->run->nodes_seen, 1);
    }
    return 0;
}

TEST(closed_descriptors_are_left_alone) {
    outcome_t outcome = outcome_of(3, close_and_open);
    expect_code(outcome, 0, "");
    CHECK_EQ(outcome.nodes_seen, 1);
}

int main(void) {
    if (!WITH_PROCESSES) {
        SKIP("ThreadSanitizer keeps a thread, and forks of it that go on are not supported");
    }
    check_all();
    return check_done();
}
