/* SPDX-License-Identifier: MIT */
/*
 * The agent. It reads signals from a pipe that lies where other programs have standard input and output: descriptor 0
 * to read, 1 to write, so that the handler knows it without a variable.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/spc_fork_private.h"
#include "base/spc_clock.h"
#include "base/spc_error.h"
#include "base/spc_process.h"

#define SPC_PARENT_NS 50000000 /* between two looks at node 0, without a pidfd */
#define SPC_REST_MS 50         /* when poll cannot wait */
#define SPC_SPEAK_MS 10000     /* for a reader of stderr that is slow */
#define SPC_TRACKER "resource_tracker import main" /* in its arguments: multiprocessing's, or joblib's */
#define SPC_TRACKER_NS 2000000000 /* for them to remove what is left */
#define SPC_TRACKER_LOOK_MS 2

/* ---- start */

static void undo(const pid_t *processes, uint32_t count) {
    for (uint32_t rank = 1; rank < count; rank++) {
        kill(processes[rank], SIGKILL);
        (void)waitpid(processes[rank], NULL, 0);
    }
}

int spc_fork_agent_start(spc_fork_t *fork_, pid_t *processes) {
    struct sigaction child = {.sa_handler = SIG_DFL}, before;
    sigaction(SIGCHLD, &child, &before); /* ignored, it would have children vanish unreaped */
    spc_process_adopt_orphans(); /* of nodes that end at once, too */
    processes[0] = fork_->caller;
    for (uint32_t rank = 1; rank < fork_->nodes; rank++) {
        pid_t made = fork();
        if (made < 0) {
            int error = errno;
            undo(processes, rank);
            errno = error;
            return SPC_ESYSTEM;
        }
        if (made == 0) {
            fork_->rank = rank;
            sigaction(SIGCHLD, &before, NULL);
            return SPC_OK;
        }
        processes[rank] = made;
    }
    return SPC_OK;
}

static void on_signal(int number) {
    int error = errno;
    char byte = (char)number;
    if (write(SPC_WAKE_WRITE, &byte, 1) < 0) {
        /* the pipe is full of signals: one of them wakes as well */
    }
    errno = error;
}

/* An error of the agent itself. A handler of the program's would return to it, for ever. */
static bool is_fault(int number) {
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGABRT;
}

/* What the caller ignores (nohup) stays ignored; what would stop or end the agent beside its duties is. */
static void handle_signals(void) {
    static const int heard[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t none;
    for (int number = 1; number < NSIG; number++) {
        struct sigaction found, action = {.sa_handler = SIG_IGN, .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        if (sigaction(number, NULL, &found) != 0) {
            continue;
        }
        action.sa_handler = is_fault(number) ? SIG_DFL : SIG_IGN;
        for (uint32_t i = 0; i < sizeof heard / sizeof *heard; i++) {
            bool wanted = number == heard[i] && (number == SIGCHLD || found.sa_handler != SIG_IGN);
            action.sa_handler = wanted ? on_signal : action.sa_handler;
        }
        (void)sigaction(number, &action, NULL); /* refused for SIGKILL, SIGSTOP */
    }
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void close_all_but(int *kept, uint32_t count) {
    int from = 3;
    for (uint32_t i = 0; i < count; i++) { /* smallest first */
        for (uint32_t j = i + 1; j < count; j++) {
            if (kept[j] < kept[i]) {
                int other = kept[i];
                kept[i] = kept[j];
                kept[j] = other;
            }
        }
        if (kept[i] >= from) {
            spc_process_close_range(from, kept[i] - 1);
            from = kept[i] + 1;
        }
    }
    spc_process_close_range(from, INT32_MAX);
}

/* A descriptor above those of the streams, which may be closed; else there is none. */
static int watch_zero(pid_t zero) {
    int found = -1;
    if (spc_process_watch(zero, &found) != SPC_OK || found > 2) {
        return found;
    }
    int moved = fcntl(found, F_DUPFD_CLOEXEC, 3);
    close(found);
    return moved;
}

static void furnish(spc_fork_agent_t *agent) {
    int wake[2];
    spc_process_rename("spcomm-agent");
    agent->watch = watch_zero(agent->fork->caller);
    /* Room for the pipe even where the program has used up its descriptors. Our own ends are all above 2. */
    close(0);
    close(1);
    if (pipe(wake) != 0 || wake[0] != SPC_WAKE_READ || wake[1] != SPC_WAKE_WRITE) {
        _exit(SPC_CODE_SPCOMM);
    }
    int kept[] = {agent->fork->life, agent->fork->report, agent->watch};
    close_all_but(kept, 3);
    fcntl(SPC_WAKE_READ, F_SETFL, O_NONBLOCK);
    fcntl(SPC_WAKE_WRITE, F_SETFL, O_NONBLOCK);
    fcntl(agent->fork->report, F_SETFL, O_NONBLOCK);
    handle_signals();
}

/* ---- the loop */

static bool is_over(const spc_fork_agent_t *agent) {
    for (uint32_t rank = 1; rank < agent->fork->nodes; rank++) {
        if (agent->processes[rank] != 0) {
            return false;
        }
    }
    return agent->zero_is_over;
}

static int patience_ms(const spc_fork_agent_t *agent) {
    uint64_t now_ns = spc_clock_now_ns();
    uint64_t until_ns = agent->settle_ns < agent->told_ns ? agent->settle_ns : agent->told_ns;
    until_ns = agent->kill_ns < until_ns ? agent->kill_ns : until_ns;
    until_ns = agent->look_ns < until_ns ? agent->look_ns : until_ns;
    if (agent->watch < 0 && agent->processes[0] != 0 && until_ns > now_ns + SPC_PARENT_NS) {
        until_ns = now_ns + SPC_PARENT_NS;
    }
    if (until_ns == SPC_NO_DEADLINE) {
        return -1;
    }
    uint64_t left_ms = until_ns <= now_ns ? 0 : (until_ns - now_ns) / 1000000 + 1;
    return left_ms < 60000 ? (int)left_ms : 60000;
}

static void turn(spc_fork_agent_t *agent) {
    struct pollfd ready[] = {
        {.fd = SPC_WAKE_READ, .events = POLLIN},
        {.fd = agent->fork->report, .events = POLLIN},
        {.fd = agent->processes[0] != 0 ? agent->watch : -1, .events = POLLIN},
    };
    if (poll(ready, 3, patience_ms(agent)) < 0 && errno != EINTR) {
        (void)poll(NULL, 0, SPC_REST_MS); /* which sense has something to say is found out without it, too */
    }
    spc_fork_hear_signals(agent); /* first: they explain what follows */
    spc_fork_hear_reports(agent);
    spc_fork_reap(agent);
    spc_fork_look_for_zero(agent);
    if (ready[2].revents != 0 && agent->processes[0] != 0) {
        close(agent->watch); /* it tells an end that is not to be seen yet: look now and then */
        agent->watch = -1;
    }
    spc_fork_obey_deadlines(agent);
    spc_fork_look_for_deadlock(agent);
}

/* What nodes have started and left running. Not for ever: some cannot be killed (of another user), and a process that
 * goes on by forking may always be one step ahead. */
static void kill_orphans(uint64_t patience_ns, const char *spared) {
    uint64_t until_ns = spc_clock_now_ns() + patience_ns;
    bool again = true;
    while (again && spc_clock_now_ns() < until_ns) {
        int32_t processes[64];
        uint32_t found = spc_process_children(processes, 64, spared);
        again = false;
        for (uint32_t i = 0; i < found; i++) {
            if (kill(processes[i], SIGKILL) == 0) {
                again = waitpid(processes[i], NULL, 0) == processes[i] || again;
            }
        }
    }
}

/* Resource trackers come last: each ends by itself once the processes that it serves are gone, and removes the
 * semaphores and shared memory that these have left. */
static void end_orphans(uint64_t patience_ns) {
    int32_t processes[64];
    kill_orphans(patience_ns, SPC_TRACKER);
    uint64_t until_ns = spc_clock_now_ns() + SPC_TRACKER_NS;
    while (spc_process_children(processes, 64, NULL) > spc_process_children(processes, 64, SPC_TRACKER)
           && spc_clock_now_ns() < until_ns) {
        (void)poll(NULL, 0, SPC_TRACKER_LOOK_MS);
    }
    kill_orphans(patience_ns, NULL);
}

/* On stderr, also where a node has made it non-blocking; not for ever. */
static void speak(const char *text, size_t bytes) {
    struct pollfd room = {.fd = SPC_SPEAK, .events = POLLOUT};
    while (bytes > 0) {
        ssize_t done = write(SPC_SPEAK, text, bytes);
        if (done < 0 && errno == EAGAIN && poll(&room, 1, SPC_SPEAK_MS) <= 0) {
            return;
        }
        if (done == 0 || (done < 0 && errno != EINTR && errno != EAGAIN)) {
            return; /* nobody listens */
        }
        text += done > 0 ? done : 0;
        bytes -= done > 0 ? (size_t)done : 0;
    }
}

static int conclude(spc_fork_agent_t *agent) {
    char *text = NULL, name[24];
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    spc_failures_settle(&agent->failures);
    int code = agent->verdict != NULL ? SPC_CODE_DEADLOCK
               : agent->signal != 0   ? 128 + agent->signal
                                      : spc_failures_code(&agent->failures);
    if (out == NULL || code == 0) {
        return code;
    }
    spc_failures_write_texts(&agent->failures, isatty(SPC_SPEAK), agent->signal == SIGINT, out);
    if (agent->verdict != NULL) {
        fwrite(agent->verdict, 1, agent->verdict_bytes, out);
    } else if (agent->signal == SIGINT) {
        spc_failures_write_places(&agent->failures, out);
        fprintf(out, "spcomm: interrupted by Ctrl-C (exit code 130); the nodes were stopped\n");
    } else if (agent->signal != 0) {
        fprintf(out, "spcomm: told to end by %s (128+%d); the nodes were stopped\n",
                spc_signal_name(agent->signal, name, sizeof name), agent->signal);
    } else {
        fprintf(out, "spcomm: ");
        spc_failures_write_sentence(&agent->failures, out);
        fputc('\n', out);
    }
    fclose(out);
    speak(text, bytes);
    return code;
}

_Noreturn void spc_fork_agent_run(spc_fork_t *fork, pid_t *processes) {
    spc_fork_agent_t agent = {
        .fork = fork,
        .processes = processes,
        .settle_ns = SPC_NO_DEADLINE,
        .told_ns = SPC_NO_DEADLINE,
        .kill_ns = SPC_NO_DEADLINE,
        .look_ns = SPC_NO_DEADLINE,
    };
    if (spc_failures_init(&agent.failures, fork->nodes) != SPC_OK) {
        _exit(SPC_CODE_SPCOMM); /* and so the nodes */
    }
    furnish(&agent);
    spc_fork_start_looking(&agent);
    spc_fork_reap(&agent); /* who ended before anything was watched */
    spc_fork_look_for_zero(&agent);
    while (!is_over(&agent)) {
        turn(&agent);
    }
    spc_fork_hear_reports(&agent);
    end_orphans(fork->grace_ns);
    int32_t code = conclude(&agent);
    if (write(fork->life, &code, sizeof code) < 0) {
        /* node 0 is gone */
    }
    _exit(code);
}
