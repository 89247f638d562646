/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_fork.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spc_atomic.h"
#include "base/spc_process.h"
#include "comm/spc_comm.h"
#include "fork/spc_fork_private.h"
#include "fork/spc_join.h"

#define FIRST_WORD_MS 500
#define GRACE_NS UINT64_C(3000000000)
#define SPC_LOOK_NS 20000000 /* between two looks at the supervisor */

uint32_t spc_fork_other_threads(void) {
    uint32_t threads = spc_process_threads();
    if (threads <= 1) {
        return 0;
    }
    /* A library that can start its threads again ends them when the process forks: see which ones stay. */
    pid_t probe = fork();
    if (probe == 0) {
        _exit(0);
    }
    while (probe > 0 && waitpid(probe, NULL, 0) < 0 && errno == EINTR) {
    }
    threads = spc_process_threads();
    return threads > 1 ? threads - 1 : 0;
}

/* The identity of this pipe or socket; 0: it is neither. */
static uint64_t pipe_inode(int descriptor) {
    struct stat found;
    return fstat(descriptor, &found) == 0 && (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode))
               ? (uint64_t)found.st_ino
               : 0;
}

/* Are the ends still those that the start has made? A signal handler may call it, too. */
static bool has_life(const spc_fork_t *fork) {
    return fork->life_inode != 0 && pipe_inode(fork->life) == fork->life_inode;
}

static bool has_report(const spc_fork_t *fork) {
    return fork->report_inode != 0 && pipe_inode(fork->report) == fork->report_inode;
}

/* Reads one word of the supervisor; false when the supervisor is gone. */
static bool read_word(int descriptor, int32_t *word) {
    ssize_t got;
    do {
        got = read(descriptor, word, sizeof *word);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof *word;
}

/* ---- SIGTERM in a caller */

static void send_frame(const spc_fork_t *fork, spc_report_kind_t kind, int code) {
    char frame[SPC_REPORT_HEADER + 12] = {(char)(fork->rank & 0xff), (char)(fork->rank >> 8)};
    uint32_t digits = 0;
    frame[4] = (char)kind;
    for (int power = 100; power > 0; power /= 10) { /* no printf: a signal handler comes here */
        frame[SPC_REPORT_HEADER + digits++] = (char)('0' + (code & 0xff) / power % 10);
    }
    frame[5] = (char)digits;
    spc_process_write_report(fork->report, frame, SPC_REPORT_HEADER + digits);
}

#if SPC_HAS_SIGQUEUE
/* Has the supervisor of this process sent it? It is the only child that sends SIGTERM with a value; one that is no
 * child shows by the value that it knows this process. Another sender's value may be the address of nothing. */
static bool is_supervisors(const siginfo_t *info) {
    siginfo_t child;
    if (info->si_code != SI_QUEUE || info->si_value.sival_ptr == NULL) {
        return false;
    }
    if (waitid(P_PID, (id_t)info->si_pid, &child, WEXITED | WNOHANG | WNOWAIT) == 0) {
        return true;
    }
    const spc_fork_t *fork = info->si_value.sival_ptr;
    const long page = sysconf(_SC_PAGESIZE);
    unsigned char is_there;
    uintptr_t from = (uintptr_t)fork / (uintptr_t)page * (uintptr_t)page;
    uintptr_t last = ((uintptr_t)fork + sizeof *fork - 1) / (uintptr_t)page * (uintptr_t)page;
    return mincore((void *)from, 1, &is_there) == 0 && mincore((void *)last, 1, &is_there) == 0
           && fork->process == getpid() && fork->place != NULL
           && (fork->supervisor == info->si_pid || fork->life_inode == 0);
}

static _Noreturn void stop(const spc_fork_t *fork) {
    int32_t code = 0;
    if (!has_report(fork) || !has_life(fork)) {
        _exit(128 + SIGTERM); /* the program has closed the pipe to the supervisor */
    }
    send_frame(fork, SPC_REPORT_STOPPED, 0);
    _exit(read_word(fork->life, &code) ? code : SPC_CODE_SPCOMM);
}

/* The supervisor ends a caller because of another node's failure; the caller exits with the exit code of that failure.
 * False: some other process has sent it. */
static bool obey_supervisor(const siginfo_t *info) {
    if (!is_supervisors(info)) {
        return false;
    }
    spc_fork_t *fork = info->si_value.sival_ptr;
    if (fork->place != NULL && fork->life_inode == 0) {
        fork->is_told = 1; /* it is about to join */
    } else if (!fork->is_waiting) {
        stop(fork);
    }
    return true;
}

static void on_sigterm(int number, siginfo_t *info, void *context) {
    int error = errno;
    (void)context;
    if (!obey_supervisor(info)) {
        signal(number, SIG_DFL);
        raise(number); /* acts when this handler returns; the signal is blocked until then */
    }
    errno = error;
}

/* Where SIGTERM was ignored. */
static void on_supervisors_sigterm(int number, siginfo_t *info, void *context) {
    int error = errno;
    (void)number;
    (void)context;
    (void)obey_supervisor(info);
    errno = error;
}
#endif

/* Runs while signals are blocked, since a node may fail before node 0 gets here. True: there is something to undo. The
 * parent of the program may have it ignore SIGTERM; the run has to end in the same way. */
static bool handle_sigterm(struct sigaction *before) {
#if SPC_HAS_SIGQUEUE
    struct sigaction mine = {.sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&mine.sa_mask);
    if (sigaction(SIGTERM, NULL, before) != 0 || (before->sa_flags & SA_SIGINFO) != 0
        || (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)) {
        return false;
    }
    mine.sa_sigaction = before->sa_handler == SIG_DFL ? on_sigterm : on_supervisors_sigterm;
    return sigaction(SIGTERM, &mine, NULL) == 0;
#else
    (void)before;
    return false;
#endif
}

/* ---- the start */

/* Both ends of each; spc_fork_private.h describes them. */
typedef struct pipes {
    int life[2], start[2], report[2];
} pipes_t;

static int make_pipe(int ends[2]) {
    if (pipe(ends) != 0) {
        ends[0] = ends[1] = -1;
        return SPC_ESYSTEM;
    }
    for (int i = 0; i < 2; i++) {
        /* 0 to 2 are for the streams, even if the program has closed them. */
        int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
        if (moved < 0) {
            return SPC_ESYSTEM;
        }
        close(ends[i]);
        ends[i] = moved;
    }
    return SPC_OK;
}

static void close_end(int *end) {
    int error = errno;
    if (*end >= 0) {
        close(*end);
    }
    *end = -1;
    errno = error;
}

static void close_pipes(pipes_t *pipes) {
    for (int i = 0; i < 2; i++) {
        close_end(&pipes->life[i]);
        close_end(&pipes->start[i]);
        close_end(&pipes->report[i]);
    }
}

/* Node 0: all or none exist. */
static int settle_as_zero(spc_fork_t *fork, pipes_t *pipes) {
    int32_t error = ECHILD;
    fork->life = pipes->life[0];
    fork->report = pipes->report[1];
    fork->life_inode = pipe_inode(fork->life);
    fork->report_inode = pipe_inode(fork->report);
    pipes->life[0] = pipes->report[1] = -1;
    close_pipes(pipes);
    close_end(&fork->box_socket);
    if (read_word(fork->life, &error) && error == 0) {
        return SPC_OK;
    }
    while (waitpid(fork->supervisor, NULL, 0) < 0 && errno == EINTR) {
    }
    close_end(&fork->life);
    close_end(&fork->report);
    errno = error;
    return SPC_ESYSTEM;
}

/* Any other node: its end is tied to the supervisor's, and its standard input is empty. */
static int settle(spc_fork_t *fork, pipes_t *pipes) {
    int32_t error = 0;
    fork->process = getpid();
    (void)spc_process_die_with_parent(SIGKILL);
    if (getppid() != fork->supervisor) {
        _exit(SPC_CODE_SPCOMM);
    }
    fork->life = -1;
    fork->report = pipes->report[1];
    pipes->report[1] = -1;
    spc_segment_detach(&fork->segment);
    close_end(&fork->box_socket);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing > 0) {
        dup2(nothing, 0);
        close(nothing);
    }
    close_end(&pipes->start[1]);
    if (!read_word(pipes->start[0], &error)) {
        _exit(SPC_CODE_SPCOMM); /* not all could be started, so there is no run */
    }
    close_pipes(pipes);
    return SPC_OK;
}

static void kill_others(const spc_fork_t *fork_, const spc_fork_node_t *nodes, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        kill(nodes[fork_->ranks[i]].process, SIGKILL);
        (void)waitpid(nodes[fork_->ranks[i]].process, NULL, 0);
    }
}

/* Forks the other nodes of this box. Returns in each of them, with its rank set, and in the supervisor with node 0's
 * rank, SPC_OK or SPC_ESYSTEM (the nodes made so far are gone then). */
static int fork_others(spc_fork_t *fork_, spc_fork_node_t *nodes) {
    struct sigaction child = {.sa_handler = SIG_DFL}, before;
    sigaction(SIGCHLD, &child, &before); /* if it were ignored, children would vanish unreaped */
    spc_process_adopt_orphans(); /* of nodes that end at once, too */
    nodes[fork_->ranks[0]] = (spc_fork_node_t){.process = fork_->caller, .is_caller = true};
    for (uint32_t i = 1; i < fork_->local_nodes; i++) {
        pid_t made = fork();
        if (made < 0) {
            int error = errno;
            kill_others(fork_, nodes, i);
            errno = error;
            return SPC_ESYSTEM;
        }
        if (made == 0) {
            fork_->rank = fork_->ranks[i];
            sigaction(SIGCHLD, &before, NULL);
            return SPC_OK;
        }
        nodes[fork_->ranks[i]] = (spc_fork_node_t){.process = made};
    }
    return SPC_OK;
}

/* Returns in nodes 1 to n-1 only. */
static int become_supervisor(spc_fork_t *fork, spc_fork_node_t *nodes, pipes_t *pipes) {
    fork->supervisor = getpid();
    int status = fork_others(fork, nodes);
    if (!spc_fork_is_caller(fork)) {
        return settle(fork, pipes);
    }
    int32_t error = status == SPC_OK ? 0 : errno;
    fork->life = pipes->life[1];
    fork->report = pipes->report[0];
    if (write(pipes->life[1], &error, sizeof error) < 0 || status != SPC_OK) {
        _exit(SPC_CODE_SPCOMM); /* the nodes see the end of `start` */
    }
    for (uint32_t i = 1; i < fork->local_nodes; i++) {
        if (write(pipes->start[1], &error, sizeof error) < 0) { /* a pipe has room for 1024 words */
            _exit(SPC_CODE_SPCOMM);
        }
    }
    spc_fork_supervisor_run(fork, nodes);
}

static int fork_with_pipes(spc_fork_t *made) {
    pipes_t pipes = {{-1, -1}, {-1, -1}, {-1, -1}};
    sigset_t all, before;
    struct sigaction sigterm;
    spc_fork_node_t *nodes = calloc(made->nodes, sizeof(*nodes));
    int status = nodes != NULL ? make_pipe(pipes.life) : SPC_ENOMEM;
    status = status == SPC_OK ? make_pipe(pipes.start) : status;
    status = status == SPC_OK ? make_pipe(pipes.report) : status;
    if (status == SPC_OK) {
        /* No handler of the program's runs in the supervisor, nor in a node before it is one. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        sigdelset(&before, SIGTERM); /* the parent may have blocked it, and it ends the run */
        bool handles = handle_sigterm(&sigterm);
        made->caller = made->process = getpid();
        made->supervisor = fork();
        status = made->supervisor < 0    ? SPC_ESYSTEM
                 : made->supervisor == 0 ? become_supervisor(made, nodes, &pipes)
                                         : settle_as_zero(made, &pipes);
        int error = errno;
        made->own_signals = handles && spc_fork_is_caller(made) ? UINT64_C(1) << (SIGTERM - 1) : 0;
        if (handles && (status != SPC_OK || !spc_fork_is_caller(made))) {
            sigaction(SIGTERM, &sigterm, NULL);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = error;
    }
    close_pipes(&pipes);
    int error = errno;
    free(nodes);
    errno = error;
    return status;
}

/* ---- interface */

/* The nodes of this process: all of the segment's, or those that `meet` names. */
static int take_ranks(spc_fork_t *fork, const spc_meet_t *meet) {
    fork->local_nodes = meet != NULL ? meet->local_nodes : fork->nodes;
    fork->ranks = calloc(fork->local_nodes, sizeof(*fork->ranks));
    fork->box = meet != NULL ? meet->process : -1;
    fork->box_socket = fork->handed_report = fork->life = fork->report = -1;
    if (fork->ranks == NULL) {
        return SPC_ENOMEM;
    }
    for (uint32_t i = 0; i < fork->local_nodes; i++) {
        fork->ranks[i] = meet != NULL ? meet->ranks[i] : i;
        if (fork->ranks[i] >= fork->nodes) {
            return SPC_EINVAL;
        }
    }
    fork->rank = fork->ranks[0];
    fork->conclusion.ranks = fork->ranks;
    fork->conclusion.count = fork->local_nodes;
    fork->box_socket = meet != NULL ? fcntl(meet->socket, F_DUPFD_CLOEXEC, 3) : -1;
    return meet == NULL || fork->box_socket >= 0 ? SPC_OK : SPC_ESYSTEM;
}

static int fork_in_segment(spc_fork_t *fork, const spc_fork_options_t *options) {
    int status = take_ranks(fork, options->meet);
    fork->conclusion.descriptor = options->descriptor;
    fork->conclusion.command = options->conclude;
    status = status == SPC_OK ? spc_segment_attach(&fork->segment, options->descriptor) : status;
    if (status == SPC_OK) {
        status = fork->segment.config->nodes == fork->nodes ? fork_with_pipes(fork) : SPC_EINVAL;
        if (status != SPC_OK) {
            int error = errno;
            spc_segment_detach(&fork->segment);
            errno = error;
        }
    }
    if (status != SPC_OK) {
        close_end(&fork->box_socket);
        free(fork->ranks);
    }
    return status;
}

int spc_fork_nodes(const spc_fork_options_t *options, spc_fork_t **fork, uint32_t *rank) {
    *fork = NULL;
    *rank = 0;
    if (options->nodes < 1 || options->nodes > SPC_NODES_MAX || !(options->grace_s >= 0)
        || options->grace_s > 1e9) {
        return SPC_EINVAL;
    }
    if (options->nodes == 1) {
        return SPC_OK;
    }
    spc_fork_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->nodes = options->nodes;
    made->listener = -1;
    made->grace_ns = options->grace_s > 0 ? (uint64_t)(options->grace_s * 1e9) : GRACE_NS;
    int status = fork_in_segment(made, options);
    if (status != SPC_OK) {
        int error = errno;
        free(made);
        errno = error;
        return status;
    }
    *fork = made;
    *rank = made->rank;
    return SPC_OK;
}

/* ---- processes of another launcher */

/* Runs in a child of the first process of a machine. The launcher ends whole process groups, and this one has to
 * report. */
static _Noreturn void watch_over(spc_fork_t *fork, spc_fork_node_t *nodes, const pipes_t *pipes) {
    for (uint32_t i = 0; i < fork->local_nodes; i++) {
        nodes[fork->ranks[i]].is_caller = true;
    }
    (void)setsid();
    fork->report = pipes->report[0];
    fork->handed_report = pipes->report[1];
    spc_fork_supervisor_run(fork, nodes);
}

static int fork_supervisor(spc_fork_t *fork_) {
    pipes_t pipes = {{-1, -1}, {-1, -1}, {-1, -1}};
    sigset_t all, before;
    spc_fork_node_t *nodes = calloc(fork_->nodes, sizeof(*nodes));
    int status = nodes != NULL ? make_pipe(pipes.report) : SPC_ENOMEM;
    if (status == SPC_OK) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        fork_->supervisor = fork();
        if (fork_->supervisor == 0) {
            watch_over(fork_, nodes, &pipes);
        }
        status = fork_->supervisor > 0 ? SPC_OK : SPC_ESYSTEM;
        int error = errno;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = error;
    }
    close_pipes(&pipes);
    free(nodes);
    return status;
}

/* The supervisor has the segment from the first process of the machine. */
static int start_in_segment(spc_fork_t *fork, int descriptor, const spc_meet_t *meet) {
    int status = take_ranks(fork, meet);
    fork->conclusion.descriptor = status == SPC_OK ? fcntl(descriptor, F_DUPFD_CLOEXEC, 3) : -1;
    status = status == SPC_OK && fork->conclusion.descriptor < 0 ? SPC_ESYSTEM : status;
    status = status == SPC_OK ? spc_segment_attach(&fork->segment, descriptor) : status;
    if (status == SPC_OK) {
        status = fork_supervisor(fork);
        int error = errno;
        spc_segment_detach(&fork->segment);
        errno = error;
    }
    close_end(&fork->conclusion.descriptor);
    close_end(&fork->box_socket);
    return status;
}

/* Sends the other processes of the machine why there is no run. They would wait for it, and not know. */
static void refuse_others(const spc_fork_t *fork, int status, const char *message) {
    char text[SPC_JOIN_MESSAGE_BYTES];
    (void)snprintf(text, sizeof text, "the first process of %s on this machine cannot begin the run: %.1900s",
                   fork->place->launcher, message);
    spc_join_refuse(fork->listener, fork->place->local_size - 1, status, text);
}

/* Listens first: the other processes of the machine wait, also while it meets other machines, and see if that fails. */
static int start_supervisor(spc_fork_t *fork, const spc_fork_join_options_t *options, char *message,
                            uint64_t message_bytes) {
    spc_meet_t meet;
    int status = spc_join_listen(fork->place, &fork->listener);
    if (status == SPC_OK && options->meet != NULL) {
        status = spc_meet(options->meet, &meet, message, message_bytes);
        status = status == SPC_OK ? start_in_segment(fork, meet.descriptor, &meet) : status;
        spc_meet_close(&meet);
        if (status != SPC_OK && message[0] != '\0') { /* no signal has ended it */
            refuse_others(fork, status, message);
        }
    } else if (status == SPC_OK) {
        status = start_in_segment(fork, options->descriptor, NULL);
    }
    close_end(&fork->listener);
    if (status == SPC_EAGAIN) {
        (void)snprintf(message, message_bytes, "another process of this job has begun a run on this machine");
        return SPC_EINVAL;
    }
    if (status != SPC_OK && message[0] == '\0') {
        (void)snprintf(message, message_bytes, "the run cannot be started: %s",
                       status == SPC_ESYSTEM ? strerror(errno) : spc_error_message(status));
    }
    return status;
}

static int join(spc_fork_t *made, const spc_fork_join_options_t *options, int *descriptor, char *message,
                uint64_t message_bytes) {
    struct sigaction sigterm;
    spc_join_t joined;
    int status =
        made->place->local_rank == 0 ? start_supervisor(made, options, message, message_bytes) : SPC_OK;
    if (status != SPC_OK) {
        return status;
    }
    const bool handles = handle_sigterm(&sigterm);
    status = spc_join_connect(made->place, made, options->check, options->check_argument, &joined, message,
                              message_bytes);
    if (status != SPC_OK && handles) {
        sigaction(SIGTERM, &sigterm, NULL);
    }
    made->supervisor = joined.supervisor;
    made->life = joined.connection;
    made->report = joined.report;
    made->report_inode = pipe_inode(made->report);
    made->life_inode = pipe_inode(made->life); /* last: from now on the handler can answer */
    atomic_signal_fence(memory_order_seq_cst);
    if (made->is_told) {
        stop(made);
    }
    made->own_signals = handles && status == SPC_OK ? UINT64_C(1) << (SIGTERM - 1) : 0;
    *descriptor = joined.segment;
    return status;
}

int spc_fork_join(const spc_fork_join_options_t *options, spc_fork_t **fork, int *descriptor, char *message,
                  uint64_t message_bytes) {
    *fork = NULL;
    *descriptor = -1;
    message[0] = '\0';
    spc_fork_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->kept_place = *options->place;
    made->place = &made->kept_place;
    made->conclusion.command = options->conclude;
    made->nodes = made->place->size;
    made->rank = made->place->rank;
    made->process = getpid();
    made->launcher = getppid();
    made->grace_ns = GRACE_NS;
    made->box = -1;
    int status = join(made, options, descriptor, message, message_bytes);
    if (status != SPC_OK) {
        free(made->ranks);
        free(made);
        return status;
    }
    spc_launcher_record();
    *fork = made;
    return SPC_OK;
}

/* ---- in the run */

int spc_fork_is_caller(const spc_fork_t *fork) {
    return fork != NULL && (fork->place != NULL || fork->rank == fork->ranks[0]);
}

static void say_that_supervisor_died(int status) {
    char name[24];
    if (WIFSIGNALED(status)) {
        dprintf(2,
                "spcomm: the process that watches over the nodes was killed by %s; the nodes were stopped\n",
                spc_process_signal_name(WTERMSIG(status), name, sizeof name));
    } else {
        dprintf(2, "spcomm: the process that watches over the nodes is gone; the nodes were stopped\n");
    }
}

/* One process says it. The launcher ends all after the first one that fails, so the others leave the word to it. */
static void tell_of_supervisor(const spc_fork_t *fork, int status) {
    if (fork->place == NULL || fork->place->local_rank == 0) {
        say_that_supervisor_died(status);
    } else {
        (void)poll(NULL, 0, FIRST_WORD_MS);
    }
}

/* A process of another launcher, whose fellows find out by themselves. */
static void look_for_connection(const spc_fork_t *fork) {
    if (!fork->is_waiting && has_life(fork) && spc_join_has_ended(fork->life)) {
        tell_of_supervisor(fork, 0);
        _exit(SPC_CODE_SPCOMM);
    }
}

/* The end of the pipe shows it to node 0. Node 0 need not look for the other nodes: the kernel has killed them. */
static void look_for_supervisor(spc_fork_t *fork) {
    struct pollfd life = {.fd = fork->life, .events = POLLIN};
    if (fork->is_waiting || !has_life(fork) || poll(&life, 1, 0) <= 0 || !(life.revents & POLLHUP)) {
        return;
    }
    for (uint32_t i = 1; i < fork->local_nodes; i++) {
        spc_comm_mark_ending(&fork->segment, fork->ranks[i], SPC_NODE_DIED, -SIGKILL);
    }
}

int spc_fork_check(void *argument) {
    spc_fork_t *fork = argument;
    uint64_t now_ns = spc_clock_now_ns();
    if (fork == NULL || now_ns - atomic_load_explicit(&fork->looked_ns, memory_order_relaxed) < SPC_LOOK_NS) {
        return SPC_OK;
    }
    atomic_store_explicit(&fork->looked_ns, now_ns, memory_order_relaxed);
    if (fork->process != getpid()) {
        return SPC_OK;
    }
    if (fork->place != NULL) {
        look_for_connection(fork);
    } else if (spc_fork_is_caller(fork)) {
        look_for_supervisor(fork);
    } else if (getppid() != fork->supervisor) {
        raise(SIGKILL); /* as the kernel does where it can */
    }
    return SPC_OK;
}

int spc_fork_wait(spc_fork_t *fork, int own_code, int *exit_code) {
    int32_t code = 0;
    int status = 0;
    *exit_code = own_code;
    if (fork == NULL || !spc_fork_is_caller(fork) || fork->is_waiting || fork->process != getpid()) {
        return SPC_OK;
    }
    fork->is_waiting = 1;
    if (fork->place != NULL && fork->own_signals != 0) {
        /* When the run is over its nodes end one after the other, and the launcher ends the rest after the first
         * failure: each is to end with the code of the run. */
        (void)signal(SIGTERM, SIG_IGN);
    }
    if (!has_report(fork)) {
        return SPC_OK; /* this node cannot tell the supervisor, and each would wait for the other */
    }
    send_frame(fork, SPC_REPORT_OVER, own_code);
    bool listens = has_life(fork);
    bool told = listens && read_word(fork->life, &code);
    pid_t reaped;
    do {
        reaped = waitpid(fork->supervisor, &status, 0); /* other code may have reaped it */
    } while (reaped < 0 && errno == EINTR);
    while (fork->box > 0 && waitpid(fork->box, NULL, 0) < 0 && errno == EINTR) {
    }
    if (!told && !listens && reaped == fork->supervisor && WIFEXITED(status)) {
        code = WEXITSTATUS(status);
    } else if (!told) {
        tell_of_supervisor(fork, reaped == fork->supervisor ? status : 0);
        code = SPC_CODE_SPCOMM;
    }
    *exit_code = code;
    return SPC_OK;
}

#ifdef __GLIBC__
static void on_end(int status, void *argument) {
    int code;
    spc_fork_wait(argument, status & 0xff, &code);
    if (code != (status & 0xff)) {
        fflush(NULL);
        _exit(code);
    }
}

int spc_fork_wait_at_exit(spc_fork_t *fork) {
    return fork == NULL || on_exit(on_end, fork) == 0 ? SPC_OK : SPC_ESYSTEM;
}
#else
int spc_fork_wait_at_exit(spc_fork_t *fork) {
    return fork == NULL ? SPC_OK : SPC_ESYSTEM;
}
#endif

int spc_fork_report_descriptor(const spc_fork_t *fork) {
    return fork == NULL ? -1 : fork->report;
}

uint64_t spc_fork_own_signals(const spc_fork_t *fork) {
    return fork->own_signals;
}
