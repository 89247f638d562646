/* SPDX-License-Identifier: MIT */
/*
 * Forked runs: for each case a child of the test is what a shell would start. Its stderr is a pipe that the agent and
 * all nodes hold, so the end of the text is the end of everybody: what is left behind hangs the test.
 */
#include "comm_box.h"

#include <errno.h>
#include <fcntl.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <sys/mman.h>
#include <sys/resource.h>

#include "agent/spc_fork.h"
#include "base/spc_process.h"

typedef struct run { /* in memory that all processes share */
    _Atomic int nodes_seen;
    int held[2], far;  /* a pipe of the program's; its writing end has another descriptor far above */
} run_t;

typedef struct node {
    spc_comm_t *comm;
    spc_fork_t *fork;
    run_t *run;
    uint32_t rank, size;
} node_t;

typedef int (*body_t)(const node_t *node);

typedef struct outcome {
    int status;
    int nodes_seen;
    char text[8192];
} outcome_t;

static int deaf_nodes(const node_t *node);

static void (*surroundings)(void); /* what a case changes before the program starts; NULL: nothing */

/* What a C program does around spc_fork; `nodes` processes run this, and each leaves by exit(). */
static void program(uint32_t nodes, body_t body, run_t *run) {
    comm_box_t box = comm_box_open((spc_config_t){.nodes = nodes});
    const spc_fork_options_t options = {
        .descriptor = box.descriptor, .nodes = nodes, .grace_s = body == deaf_nodes ? 0.2 : 60};
    node_t node = {.run = run, .size = nodes};
    CHECK_OK(spc_fork_nodes(&options, &node.fork, &node.rank));
    alarm(100); /* which nodes do not inherit */
    const spc_comm_options_t member = {.descriptor = box.descriptor,
                                       .rank = node.rank,
                                       .check = spc_fork_check,
                                       .check_argument = node.fork};
    CHECK_OK(spc_comm_create(&member, &node.comm));
    comm_box_close(&box);
    bool by_itself = node.rank != 0 || spc_fork_wait_at_exit(node.fork) == SPC_OK;
    int code = body(&node);
    CHECK_OK(spc_comm_close(node.comm, SPC_NO_DEADLINE));
    spc_comm_destroy(node.comm);
    if (!by_itself) {
        CHECK_OK(spc_fork_wait(node.fork, code, &code));
    }
    exit(code);
}

static outcome_t outcome_of(uint32_t nodes, body_t body) {
    outcome_t outcome = {0};
    int text[2];
    run_t *run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(run != MAP_FAILED);
    CHECK_EQ(pipe(text), 0);
    fflush(NULL);
    pid_t shell_child = fork();
    CHECK(shell_child >= 0);
    if (shell_child == 0) {
        dup2(text[1], 2);
        close(text[0]);
        close(text[1]);
        CHECK_EQ(pipe(run->held), 0);
        run->far = fcntl(run->held[1], F_DUPFD, 200);
        CHECK(run->far >= 200);
        if (surroundings != NULL) {
            surroundings();
        }
        program(nodes, body, run);
    }
    close(text[1]);
    size_t length = 0;
    for (ssize_t got = 1; got > 0 && length < sizeof outcome.text - 1; length += got > 0 ? (size_t)got : 0) {
        got = read(text[0], outcome.text + length, sizeof outcome.text - 1 - length);
    }
    close(text[0]);
    outcome.status = check_wait(shell_child);
    outcome.nodes_seen = run->nodes_seen;
    munmap(run, sizeof *run);
    return outcome;
}

static void expect_code(outcome_t outcome, int code, const char *text) {
    if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != code
        || strcmp(outcome.text, text) != 0) {
        CHECK_FAIL("status 0x%x, should be code %d; it said:\n%s\nand should say:\n%s",
                   (unsigned)outcome.status, code, outcome.text, text);
    }
}

static void expect_signal(outcome_t outcome, int number, const char *text) {
    if (!WIFSIGNALED(outcome.status) || WTERMSIG(outcome.status) != number
        || strcmp(outcome.text, text) != 0) {
        CHECK_FAIL("status 0x%x, should be signal %d; it said:\n%s\nand should say:\n%s",
                   (unsigned)outcome.status, number, outcome.text, text);
    }
}

/* As far as the first semicolon: whether others were stopped, or done before, is a matter of luck. */
static outcome_t first_part(outcome_t outcome) {
    outcome.text[strcspn(outcome.text, ";\n")] = '\0';
    return outcome;
}

/* ---- what nodes do */

static void meet(const node_t *node) {
    const spc_signature_t barrier = {.operation = SPC_OPERATION_BARRIER};
    CHECK_OK(spc_comm_collective(node->comm, &barrier, NULL, NULL, 0, NULL, SPC_NO_DEADLINE));
}

static int receive_nothing(const node_t *node) {
    spc_message_t message;
    return spc_comm_recv(node->comm, SPC_CONTEXT_USER, SPC_ANY_SOURCE, 0, SPC_NO_DEADLINE, &message);
}

/* For ever: what nobody but a signal ends. */
_Noreturn static int compute(void) {
    for (;;) {
        pause();
    }
}

static int talk(const node_t *node) {
    int32_t next = (int32_t)((node->rank + 1) % node->size);
    spc_payload_t payload = {.data = &node->rank, .data_bytes = sizeof node->rank, .format = SPC_FORMAT_RAW};
    spc_message_t message;
    CHECK_OK(spc_comm_send(node->comm, &next, 1, SPC_CONTEXT_USER, 0, &payload, SPC_NO_DEADLINE));
    CHECK_OK(spc_comm_recv(node->comm, SPC_CONTEXT_USER, SPC_ANY_SOURCE, 0, SPC_NO_DEADLINE, &message));
    CHECK_EQ(message.source, (node->rank + node->size - 1) % node->size);
    spc_message_release(node->comm, &message);
    atomic_fetch_add(&node->run->nodes_seen, 1);
    return 0;
}

static void all_nodes_talk(void) {
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

static void exit_codes(void) {
    expect_code(first_part(outcome_of(3, node_2_returns_7)), 7, "spcomm: node 2 ended with exit code 7");
    expect_code(outcome_of(3, node_0_returns_8), 8,
                "spcomm: node 0 ended with exit code 8; the other nodes were stopped\n");
}

/* ---- who is killed */

static int node_1_is_killed(const node_t *node) {
    return node->rank == 1 ? raise(SIGKILL) : compute();
}

static int node_0_is_killed(const node_t *node) {
    return node->rank == 0 ? raise(SIGKILL) : compute();
}

static int node_0_gets_sigterm(const node_t *node) {
    return node->rank == 0 ? raise(SIGTERM) : compute();
}

/* Deaf to SIGTERM, so that it is the end of node 1 that ends their wait. */
static int others_wait_for_node_1(const node_t *node) {
    signal(SIGTERM, SIG_IGN);
    meet(node);
    if (node->rank == 1) {
        raise(SIGKILL);
    }
    spc_message_t message;
    CHECK_EQ(spc_comm_recv(node->comm, SPC_CONTEXT_USER, 1, 0, SPC_NO_DEADLINE, &message), SPC_ELOST);
    atomic_fetch_add(&node->run->nodes_seen, 1);
    return 0;
}

static int deaf_nodes(const node_t *node) {
    signal(SIGTERM, SIG_IGN);
    meet(node);
    return node->rank == 2 ? raise(SIGSEGV) : compute();
}

static void a_killed_node_ends_the_run(void) {
    expect_code(outcome_of(2, node_1_is_killed), 128 + SIGKILL,
                "spcomm: node 1 was killed by SIGKILL (128+9); the other node was stopped\n");
    expect_code(outcome_of(4, node_1_is_killed), 128 + SIGKILL,
                "spcomm: node 1 was killed by SIGKILL (128+9); the other nodes were stopped\n");
    expect_signal(outcome_of(4, node_0_is_killed), SIGKILL,
                  "spcomm: node 0 died; the other nodes were stopped\n");
    expect_signal(outcome_of(2, node_0_gets_sigterm), SIGTERM,
                  "spcomm: node 0 died; the other node was stopped\n");
}

static void waits_for_a_killed_node_fail(void) {
    outcome_t outcome = outcome_of(4, others_wait_for_node_1);
    CHECK_EQ(outcome.nodes_seen, 3);
    expect_code(outcome, 137, "spcomm: node 1 was killed by SIGKILL (128+9)\n");
}

static void nodes_that_ignore_sigterm_are_killed(void) {
    if (CHECK_SANITIZED) {
        return; /* a sanitizer has words of its own on SIGSEGV */
    }
    expect_signal(outcome_of(3, deaf_nodes), SIGKILL,
                  "spcomm: node 2 was killed by SIGSEGV (128+11); the other nodes were stopped\n");
}

/* Elsewhere a node looks for its parent while it waits. */
#ifdef __linux__
#define ORPHANS_ARE_KILLED 1
#else
#define ORPHANS_ARE_KILLED 0
#endif

static int the_agent_is_killed(const node_t *node) {
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

#ifdef SPC_WAIT_ENDLESS_SLICES
#define WAITS_LOOK_AROUND 0 /* node 0 sees it between two slices of its sleep */
#else
#define WAITS_LOOK_AROUND 1
#endif

static void a_killed_agent_is_noticed(void) {
    if (!WAITS_LOOK_AROUND) {
        return;
    }
    outcome_t outcome = outcome_of(3, the_agent_is_killed);
    expect_code(
        outcome, 125,
        "spcomm: the process that watches over the nodes was killed by SIGKILL; the nodes were stopped\n");
    CHECK_EQ(outcome.nodes_seen, 1);
}

/* ---- what the agent holds */

static int wait_for_the_end_of_a_pipe(const node_t *node) {
    char byte;
    close(node->run->held[1]);
    close(node->run->far);
    if (node->rank == 0) {
        CHECK_EQ(read(node->run->held[0], &byte, 1), 0);
    }
    return 0;
}

static int leave_a_process(const node_t *node) {
    if (node->rank == 1 && fork() == 0) {
        signal(SIGTERM, SIG_IGN);
        compute();
    }
    return 0;
}

static int read_stdin(const node_t *node) {
    char byte;
    return node->rank == 0 ? 0 : (int)read(0, &byte, 1);
}

static void the_agent_holds_nothing_of_the_program(void) {
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

static void no_process_stays(void) {
    if (ORPHANS_ARE_KILLED) {
        expect_code(outcome_of(3, leave_a_process), 0, "");
    }
}

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
static void no_process_stays_in_a_namespace(void) {
    surroundings = another_namespace;
    expect_code(outcome_of(3, leave_a_process), 0, "");
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

/* What the agent opens first gets their numbers, and must keep away from them. */
static void streams_may_be_closed(void) {
    void (*const closed[])(void) = {no_input, no_output, no_input_no_output};
    for (uint32_t i = 0; i < 3; i++) {
        surroundings = closed[i];
        outcome_t outcome = outcome_of(3, talk);
        expect_code(outcome, 0, "");
        CHECK_EQ(outcome.nodes_seen, 3);
        expect_signal(outcome_of(3, node_0_is_killed), SIGKILL,
                      "spcomm: node 0 died; the other nodes were stopped\n");
    }
    surroundings = NULL;
}

/* ---- when the agent itself is in trouble */

static void on_fault(int number) {
    (void)number; /* comes back at once: the handler of a language that looks at signals later */
}

static int a_fault_of_the_agent(const node_t *node) {
    if (node->rank == 1) {
        kill(getppid(), SIGBUS);
    }
    return ORPHANS_ARE_KILLED && node->rank != 0 ? compute() : (receive_nothing(node), 0);
}

static void fault_handler(void) {
    signal(SIGBUS, on_fault);
}

static void handlers_of_faults_do_not_stay_in_the_agent(void) {
    if (!WAITS_LOOK_AROUND || CHECK_SANITIZED) {
        return;
    }
    surroundings = fault_handler;
    expect_code(
        outcome_of(3, a_fault_of_the_agent), 125,
        "spcomm: the process that watches over the nodes was killed by SIGBUS; the nodes were stopped\n");
    surroundings = NULL;
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

static void waiting_is_the_last_thing(void) {
    expect_code(first_part(outcome_of(2, wait_twice)), 5, "spcomm: node 1 ended with exit code 5");
    expect_code(first_part(outcome_of(2, ignored_children)), 6, "spcomm: node 1 ended with exit code 6");
}

/* ---- what is refused */

static void refused(spc_fork_options_t options, int expected) {
    spc_fork_t *fork = (spc_fork_t *)&options;
    uint32_t rank = 99;
    CHECK_EQ(spc_fork_nodes(&options, &fork, &rank), expected);
    CHECK(fork == NULL);
    CHECK_EQ(rank, 0);
}

static void wrong_options(void) {
    int code = 0;
    comm_box_t box = comm_box_open((spc_config_t){.nodes = 3});
    refused((spc_fork_options_t){box.descriptor, 0, 0}, SPC_EINVAL);
    refused((spc_fork_options_t){box.descriptor, SPC_NODES_MAX + 1, 0}, SPC_EINVAL);
    refused((spc_fork_options_t){box.descriptor, 2, 0}, SPC_EINVAL);
    refused((spc_fork_options_t){box.descriptor, 3, -1}, SPC_EINVAL);
    refused((spc_fork_options_t){box.descriptor, 3, 0.0 / 0.0}, SPC_EINVAL);
    refused((spc_fork_options_t){-1, 3, 0}, SPC_ESYSTEM);
    refused((spc_fork_options_t){-1, 1, 0}, SPC_OK);
    CHECK_OK(spc_fork_wait(NULL, 4, &code));
    CHECK_EQ(code, 4);
    CHECK_OK(spc_fork_check(NULL));
    CHECK_OK(spc_fork_wait_at_exit(NULL));
    CHECK_EQ(spc_fork_report_descriptor(NULL), -1);
    comm_box_close(&box);
}

static void no_descriptors_left(void) {
    struct rlimit before, few;
    comm_box_t box = comm_box_open((spc_config_t){.nodes = 3});
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)box.descriptor + 2;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    refused((spc_fork_options_t){box.descriptor, 3, 0}, SPC_ESYSTEM);
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

static void threads_are_counted(void) {
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
    RUN(all_nodes_talk);
    RUN(exit_codes);
    RUN(a_killed_node_ends_the_run);
    RUN(waits_for_a_killed_node_fail);
    RUN(nodes_that_ignore_sigterm_are_killed);
    RUN(a_killed_agent_is_noticed);
    RUN(the_agent_holds_nothing_of_the_program);
    RUN(no_process_stays);
#ifdef __linux__
    RUN(no_process_stays_in_a_namespace);
#endif
    RUN(streams_may_be_closed);
    RUN(handlers_of_faults_do_not_stay_in_the_agent);
    RUN(waiting_is_the_last_thing);
    RUN(wrong_options);
    RUN(no_descriptors_left);
    RUN(threads_are_counted);
    return check_done();
}
