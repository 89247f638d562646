/* SPDX-License-Identifier: MIT */
/*
 * Forked runs: for each case a child of the test is what a shell would start. Its stderr is a pipe that the
 * supervisor and all nodes hold, so the end of the text is the end of everybody: what is left behind hangs the test.
 */
#ifndef FORK_BOX_H
#define FORK_BOX_H

#include "comm_box.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/spc_process.h"
#include "fork/spc_fork.h"

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

static void (*surroundings)(void); /* what a case changes before the program starts; NULL: nothing */
static double grace_s = 60;

/* In place of Python. As a rule it cannot be executed, and the supervisor says one sentence itself. */
static const char *const nothing[] = {"./no-python", NULL};
static const char *const *conclude = nothing;
#define BRIEFLY(what) "spcomm: " what "; the command ./no-python, which says more, cannot be executed\n"

/* A C program around spc_fork; `nodes` processes run this, and each leaves by exit(). */
static inline void program(uint32_t nodes, body_t body, run_t *run) {
    comm_box_t box = comm_box_open((spc_config_t){.nodes = nodes});
    const spc_fork_options_t options = {
        .descriptor = box.descriptor, .nodes = nodes, .grace_s = grace_s, .conclude = conclude};
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

static inline outcome_t outcome_of(uint32_t nodes, body_t body) {
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

static inline void expect_code(outcome_t outcome, int code, const char *text) {
    if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != code
        || strcmp(outcome.text, text) != 0) {
        CHECK_FAIL("status 0x%x, should be code %d; it said:\n%s\nand should say:\n%s",
                   (unsigned)outcome.status, code, outcome.text, text);
    }
}

static inline void expect_signal(outcome_t outcome, int number, const char *text) {
    if (!WIFSIGNALED(outcome.status) || WTERMSIG(outcome.status) != number
        || strcmp(outcome.text, text) != 0) {
        CHECK_FAIL("status 0x%x, should be signal %d; it said:\n%s\nand should say:\n%s",
                   (unsigned)outcome.status, number, outcome.text, text);
    }
}

/* As far as the first semicolon: whether others were stopped, or done before, is a matter of luck. */
static inline outcome_t first_part(outcome_t outcome) {
    outcome.text[strcspn(outcome.text, ";\n")] = '\0';
    return outcome;
}

/* ---- what nodes do */

static inline void meet(const node_t *node) {
    const spc_signature_t barrier = {.operation = SPC_OPERATION_BARRIER};
    CHECK_OK(spc_comm_collective(node->comm, &barrier, NULL, NULL, 0, NULL, SPC_NO_DEADLINE));
}

static inline int receive_nothing(const node_t *node) {
    spc_message_t message;
    return spc_comm_recv(node->comm, SPC_CONTEXT_USER, SPC_ANY_SOURCE, 0, SPC_NO_DEADLINE, &message);
}

/* For ever: what nobody but a signal ends. */
_Noreturn static inline int compute(void) {
    for (;;) {
        pause();
    }
}

static inline int talk(const node_t *node) {
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

static inline int node_0_is_killed(const node_t *node) {
    return node->rank == 0 ? raise(SIGKILL) : compute();
}

static inline int leave_a_process(const node_t *node) {
    if (node->rank == 1 && fork() == 0) {
        signal(SIGTERM, SIG_IGN);
        compute();
    }
    return 0;
}

/* In place of the resource tracker of multiprocessing: it runs once the last process that it serves is gone. */
#define TRACKER(script) "# from multiprocessing.resource_tracker import main\nexec 9>&-\n" script

/* Its input ends with `*served`. Returns when the shell runs: close-on-exec would be too early, for the kernel closes
 * such descriptors before it shows the new program's arguments, by which the supervisor knows a tracker. */
static inline void start_tracker(const char *script, int *served) {
    int input[2], executed[2];
    char byte;
    CHECK_EQ(pipe(input), 0);
    CHECK_EQ(pipe(executed), 0);
    if (fork() == 0) {
        dup2(input[0], 0);
        close(input[1]);
        dup2(executed[1], 9);
        if (executed[1] != 9) {
            close(executed[1]);
        }
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    close(executed[1]);
    CHECK_EQ(read(executed[0], &byte, 1), 0);
    close(executed[0]);
    close(input[0]);
    *served = input[1];
}

/* The tracker of node 1 serves a process, too, that outlives the node and is listed behind it. */
static inline int leave_a_tracker(const node_t *node) {
    if (node->rank == 1) {
        int served;
        start_tracker(TRACKER("read unused; echo removed >&2"), &served);
        return leave_a_process(node);
    }
    return 0;
}

/* Elsewhere a node looks for its parent while it waits. */
#ifdef __linux__
#define ORPHANS_ARE_KILLED 1
#else
#define ORPHANS_ARE_KILLED 0
#endif

#ifdef SPC_WAIT_ENDLESS_SLICES
#define WAITS_LOOK_AROUND 0 /* node 0 sees it between two slices of its sleep */
#else
#define WAITS_LOOK_AROUND 1
#endif

#endif
