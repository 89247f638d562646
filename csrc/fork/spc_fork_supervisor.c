/* SPDX-License-Identifier: MIT */
/*
 * The supervisor. It reads signals from a pipe that lies where other programs have standard input and output:
 * descriptor 0 to read, 1 to write, so that the handler knows it without a variable.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_fork_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spc_clock.h"
#include "base/spc_error.h"
#include "base/spc_process.h"
#include "comm/spc_comm.h"
#include "diagnose/spc_deadlock.h"
#include "diagnose/spc_deadlock_report.h"

/* Its streams lie where other programs have theirs. */
enum {
    SPC_WAKE_READ = 0,
    SPC_WAKE_WRITE = 1,
    SPC_SPEAK = 2,
    SPC_CODE_DEADLOCK = 99,
};

typedef struct spc_fork_supervisor {
    spc_fork_t *fork;
    pid_t *processes; /* by rank; 0 once reaped, and of nodes in other boxes */
    uint32_t zero; /* node 0's rank, which is not 0 in a box of several */
    bool zero_is_over; /* node 0 is gone, or waits for the supervisor */
    int watch; /* node 0's pidfd, or -1 */
    spc_failures_t failures;
    unsigned char reports[2 * SPC_REPORT_BYTES]; /* read, but not yet parsed */
    uint32_t report_bytes;
    int heard; /* the last signal; the nodes may have got it, too */
    uint64_t heard_ns;
    bool is_ending; /* nodes have been told to */
    int signal; /* the run ends because of it */
    uint64_t due_ns; /* until then no victim is blamed if a failure to blame may still come */
    uint64_t settle_ns, told_ns, kill_ns, look_ns; /* deadlines; SPC_NO_DEADLINE: none */
    spc_deadlock_t *deadlock; /* NULL: there was no memory for it */
    spc_deadlock_t
        *stall; /* the same, whatever threads and timers of the program may do; NULL: warned already */
    char *deadlock_text; /* the report of the deadlock that ends the run; else NULL */
    size_t deadlock_text_bytes;
    bool has_told; /* the box process: that all nodes here have ended well */
    bool has_answer; /* the box process's: how the run ends */
    int32_t answer_code;
    unsigned char answer[sizeof(spc_meet_header_t) + SPC_MEET_TEXT_BYTES]; /* as far as it was read */
    uint32_t answer_bytes;
} spc_fork_supervisor_t;

#define SPC_PARENT_NS 50000000 /* between two looks at node 0, without a pidfd */
#define SPC_REST_MS 50         /* when poll cannot wait */
#define SPC_SPEAK_MS 10000     /* for a reader of stderr that is slow */
#define SPC_TRACKER "resource_tracker import main" /* in its arguments: multiprocessing's, or joblib's */
#define SPC_TRACKER_NS 2000000000 /* for them to clean up */
#define SPC_TRACKER_LOOK_MS 2

/* ---- start */

static void undo(const spc_fork_t *fork_, const pid_t *processes, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        kill(processes[fork_->ranks[i]], SIGKILL);
        (void)waitpid(processes[fork_->ranks[i]], NULL, 0);
    }
}

int spc_fork_supervisor_start(spc_fork_t *fork_, pid_t *processes) {
    struct sigaction child = {.sa_handler = SIG_DFL}, before;
    sigaction(SIGCHLD, &child, &before); /* if it were ignored, children would vanish unreaped */
    spc_process_adopt_orphans(); /* of nodes that end at once, too */
    processes[fork_->ranks[0]] = fork_->caller;
    for (uint32_t i = 1; i < fork_->local_nodes; i++) {
        pid_t made = fork();
        if (made < 0) {
            int error = errno;
            undo(fork_, processes, i);
            errno = error;
            return SPC_ESYSTEM;
        }
        if (made == 0) {
            fork_->rank = fork_->ranks[i];
            sigaction(SIGCHLD, &before, NULL);
            return SPC_OK;
        }
        processes[fork_->ranks[i]] = made;
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

/* An error of the supervisor itself. A handler of the program would return to it for ever. */
static bool is_fault(int number) {
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGABRT;
}

/* Signals that the caller ignores (nohup) stay ignored. Signals that would stop or end the supervisor outside its
 * duties are ignored, too. */
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

static void furnish(spc_fork_supervisor_t *supervisor) {
    int wake[2];
    spc_process_rename("spcomm superv");
    supervisor->watch = watch_zero(supervisor->fork->caller);
    /* Makes room for the pipe even if the program has used up its descriptors. Our own ends are all above 2. */
    close(0);
    close(1);
    if (pipe(wake) != 0 || wake[0] != SPC_WAKE_READ || wake[1] != SPC_WAKE_WRITE) {
        _exit(SPC_CODE_SPCOMM);
    }
    int kept[] = {supervisor->fork->life, supervisor->fork->report, supervisor->watch,
                  supervisor->fork->box_socket};
    close_all_but(kept, 4);
    fcntl(SPC_WAKE_READ, F_SETFL, O_NONBLOCK);
    fcntl(SPC_WAKE_WRITE, F_SETFL, O_NONBLOCK);
    fcntl(supervisor->fork->report, F_SETFL, O_NONBLOCK);
    fcntl(supervisor->fork->box_socket, F_SETFL, O_NONBLOCK);
    handle_signals();
}

#define SPC_SETTLE_NS \
    500000000 /* in which a lost node may turn out to be the consequence of another failure */
#define SPC_SETTLE_BOXES_NS UINT64_C(3000000000) /* the same if the other failure is another box's */
#define SPC_DUE_NS UINT64_C(10000000000) /* the same if the state shows that one may come */

/* ---- ending the run */

static void signal_node(const spc_fork_supervisor_t *supervisor, uint32_t rank, int number) {
    pid_t process = supervisor->processes[rank];
    if (process == 0 || (rank == supervisor->zero && (supervisor->zero_is_over || getppid() != process))) {
        return;
    }
#if SPC_HAS_SIGQUEUE
    if (rank == supervisor->zero && number == SIGTERM) {
        union sigval value = {.sival_ptr = supervisor->fork}; /* node 0 has it at the same address */
        sigqueue(process, number, value);
        return;
    }
#endif
    kill(process, number);
}

static void signal_nodes(const spc_fork_supervisor_t *supervisor, int number, int32_t spared) {
    for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
        if ((int32_t)rank != spared) {
            signal_node(supervisor, rank, number);
        }
    }
}

/* ---- messages to the box process */

/* Why this box ends the run: a sentence. */
static void write_reason(const spc_fork_supervisor_t *supervisor, FILE *out) {
    char name[24];
    if (supervisor->signal == SIGINT) {
        fprintf(out, "interrupted by Ctrl-C (exit code 130)");
    } else if (supervisor->signal != 0) {
        fprintf(out, "told to end by %s (exit code %d)",
                spc_signal_name(supervisor->signal, name, sizeof name), 128 + supervisor->signal);
    } else {
        spc_failures_write_sentence(&supervisor->failures, out);
    }
}

static bool has_box(const spc_fork_supervisor_t *supervisor) {
    return supervisor->fork->box_socket >= 0;
}

static void tell_box(spc_fork_supervisor_t *supervisor, int32_t code) {
    char *text = NULL;
    size_t bytes = 0;
    spc_meet_header_t header = {.code = code};
    FILE *out = code != 0 ? open_memstream(&text, &bytes) : NULL;
    if (out != NULL) {
        write_reason(supervisor, out);
        fclose(out);
    }
    header.bytes = bytes < SPC_MEET_TEXT_BYTES ? (uint32_t)bytes : SPC_MEET_TEXT_BYTES;
    /* A socket has room for this: nothing else is written to it. */
    if (write(supervisor->fork->box_socket, &header, sizeof header) == (ssize_t)sizeof header && text != NULL
        && write(supervisor->fork->box_socket, text, header.bytes) < 0) {
        /* it is gone, as a later read shows */
    }
    free(text);
}

/* The exit code of the run as this box sees it. */
static int own_code(const spc_fork_supervisor_t *supervisor) {
    return supervisor->deadlock_text != NULL ? SPC_CODE_DEADLOCK
           : supervisor->signal != 0         ? 128 + supervisor->signal
                                             : spc_failures_code(&supervisor->failures);
}

/* Sends the nodes the signal `number` (0: they know already), except one (-1: all), and kills them after the grace
 * time. No later failure counts. */
static void spc_fork_end_run(spc_fork_supervisor_t *supervisor, int number, int32_t spared) {
    supervisor->is_ending = true;
    supervisor->failures.closed = true;
    supervisor->settle_ns = supervisor->told_ns = supervisor->look_ns = SPC_NO_DEADLINE;
    supervisor->kill_ns = spc_clock_now_ns() + supervisor->fork->grace_ns;
    if (has_box(supervisor) && !supervisor->has_answer) {
        tell_box(supervisor, own_code(supervisor));
    }
    if (number != 0) {
        signal_nodes(supervisor, number, spared);
    }
}

/* Was the first failure the answer to a signal that all nodes got? Then no node gets another one: it may be saving what
 * it has. Any failure within the grace time is one. A program may also have handled the signal and gone on: after that
 * time the failure has to show its cause. */
static bool is_answer(const spc_fork_supervisor_t *supervisor) {
    const spc_failures_t *failures = &supervisor->failures;
    const spc_failure_t *first = &failures->node[failures->first];
    return supervisor->heard != 0
           && (spc_clock_now_ns() < supervisor->heard_ns + supervisor->fork->grace_ns
               || spc_failures_code(failures) == 128 + supervisor->heard
               || (supervisor->heard == SIGINT && first->kind == SPC_REPORT_INTERRUPTED));
}

/* The signal to which the end of node 0 is the answer although it reached no other process, as `kill -INT` sends it; 0:
 * none. The code of a failure shows it. Where the parent has it ignored, the other nodes would not end of it. */
static int signal_of_zero(const spc_fork_supervisor_t *supervisor) {
    static const int asking[] = {SIGINT, SIGHUP, SIGQUIT};
    for (uint32_t i = 0; i < sizeof asking / sizeof *asking; i++) {
        struct sigaction found;
        if (supervisor->failures.first == (int32_t)supervisor->zero
            && spc_failures_code(&supervisor->failures) == 128 + asking[i]
            && sigaction(asking[i], NULL, &found) == 0 && found.sa_handler == on_signal) {
            return asking[i];
        }
    }
    return 0;
}

static void consider(spc_fork_supervisor_t *supervisor) {
    if (supervisor->is_ending) {
        return;
    }
    if (supervisor->failures.first >= 0) {
        bool answer = is_answer(supervisor);
        supervisor->signal = answer ? supervisor->heard : signal_of_zero(supervisor);
        int handed_on = supervisor->signal != 0 ? supervisor->signal : SIGTERM;
        spc_fork_end_run(supervisor, answer ? 0 : handed_on, supervisor->failures.first);
    } else if (supervisor->failures.first_lost >= 0 && supervisor->settle_ns == SPC_NO_DEADLINE) {
        supervisor->settle_ns =
            spc_clock_now_ns() + (has_box(supervisor) ? SPC_SETTLE_BOXES_NS : (uint64_t)SPC_SETTLE_NS);
        supervisor->due_ns = spc_clock_now_ns() + SPC_DUE_NS;
    }
}

/* Writes to stderr, even if a node has made it non-blocking; not for ever. */
static void speak(const char *text, size_t bytes) {
    struct pollfd room = {.fd = SPC_SPEAK, .events = POLLOUT};
    while (bytes > 0) {
        ssize_t done = write(SPC_SPEAK, text, bytes);
        if (done < 0 && errno == EAGAIN && poll(&room, 1, SPC_SPEAK_MS) <= 0) {
            return;
        }
        if (done == 0 || (done < 0 && errno != EINTR && errno != EAGAIN)) {
            return; /* there is no reader */
        }
        text += done > 0 ? done : 0;
        bytes -= done > 0 ? (size_t)done : 0;
    }
}

/* ---- looking for deadlocks: ends the run when nodes are proven to wait for ever */

#define LOOK_NS 60000000 /* between two looks; two of them make a proof */
#define STALL_S 5        /* as the launcher's --stall */

/* Examines the waits of the nodes now and then, until the run is to end. */
static void spc_fork_start_looking(spc_fork_supervisor_t *supervisor) {
    if (has_box(supervisor)
        || spc_deadlock_create(&supervisor->fork->segment, &supervisor->deadlock) != SPC_OK) {
        return;
    }
    supervisor->look_ns = spc_clock_now_ns() + LOOK_NS;
    if (spc_deadlock_create(&supervisor->fork->segment, &supervisor->stall) == SPC_OK) {
        spc_deadlock_overlook(supervisor->stall, SPC_BOARD_OWN_DOUBTS);
    }
}

/* The time for which the last one of these nodes has been waiting. */
static uint64_t waited_s(const spc_waits_t *waits) {
    uint64_t now_ns = spc_clock_now_ns(), since_ns = 0;
    for (uint32_t rank = 0; rank < waits->nodes; rank++) {
        since_ns = waits->known[rank] && waits->entry[rank].since_ns > since_ns ? waits->entry[rank].since_ns
                                                                                : since_ns;
    }
    return now_ns > since_ns ? (now_ns - since_ns) / UINT64_C(1000000000) : 0;
}

/* Writes the report of nodes that a look of `found` has found; `least_s`: only if all have waited for so long, as a
 * warning. The caller frees the text. NULL: not now. */
static char *report_of(const spc_fork_supervisor_t *supervisor, const spc_deadlock_t *found, uint64_t least_s,
                       size_t *bytes) {
    spc_deadlock_report_options_t options = {0};
    spc_waits_t waits;
    char *text = NULL;
    if (spc_waits_read(&supervisor->fork->segment, found, &waits) != SPC_OK) {
        return NULL; /* the nodes wait on: the next look finds them again */
    }
    options.waited_s = least_s != 0 ? waited_s(&waits) : 0;
    FILE *out = options.waited_s >= least_s ? open_memstream(&text, bytes) : NULL;
    bool failed = out == NULL || spc_deadlock_report_write(&waits, &options, out) != SPC_OK;
    failed = (out != NULL && fclose(out) != 0) || failed;
    spc_waits_free(&waits);
    if (failed) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Warns once of what is no proof: a thread of the program, say, might end the waits. */
static void warn_of_stall(spc_fork_supervisor_t *supervisor) {
    size_t bytes = 0;
    char *text = NULL;
    if (supervisor->stall != NULL && spc_deadlock_look(supervisor->stall) != 0) {
        text = report_of(supervisor, supervisor->stall, STALL_S, &bytes);
    }
    if (text != NULL) {
        speak(text, bytes);
        free(text);
        spc_deadlock_destroy(supervisor->stall);
        supervisor->stall = NULL;
    }
}

static void spc_fork_look_for_deadlock(spc_fork_supervisor_t *supervisor) {
    uint64_t now_ns = spc_clock_now_ns();
    if (now_ns < supervisor->look_ns) { /* also when the run ends already */
        return;
    }
    supervisor->look_ns = now_ns + LOOK_NS;
    if (spc_deadlock_look(supervisor->deadlock) == 0) {
        warn_of_stall(supervisor);
        return;
    }
    /* Written before any node is told to end: the boards show the deadlock only until then. */
    supervisor->deadlock_text =
        report_of(supervisor, supervisor->deadlock, 0, &supervisor->deadlock_text_bytes);
    if (supervisor->deadlock_text != NULL) {
        spc_fork_end_run(supervisor, SIGTERM, -1);
    }
}

/* ---- reports */

/* `is_gone`: node 0 may have said how it will end while its process, which waits for the supervisor, still runs. */
static void mark(const spc_fork_supervisor_t *supervisor, uint32_t rank, int status, bool is_gone) {
    int32_t reason = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    bool well = status == 0 && !supervisor->failures.node[rank].known;
    (is_gone ? spc_comm_mark_ended : spc_comm_mark_ending)(&supervisor->fork->segment, rank,
                                                           well ? SPC_NODE_FINISHED : SPC_NODE_DIED, reason);
}

static void zero_ended(spc_fork_supervisor_t *supervisor, int status) {
    supervisor->zero_is_over = true;
    spc_failures_ended(&supervisor->failures, supervisor->zero, status);
    consider(supervisor); /* first: nodes that wait for node 0 see the signal, and then that it is lost */
    mark(supervisor, supervisor->zero, status, false);
}

static void obey_report(spc_fork_supervisor_t *supervisor, uint32_t rank, spc_report_kind_t kind,
                        const char *payload, uint32_t bytes) {
    char number[8] = {0};
    memcpy(number, payload, bytes < 7 ? bytes : 7);
    if (kind == SPC_REPORT_OVER) {
        zero_ended(supervisor, (atoi(number) & 0xff) << 8);
        return;
    }
    if (kind == SPC_REPORT_STOPPED) {
        supervisor->zero_is_over = true;
        spc_comm_mark_ending(&supervisor->fork->segment, supervisor->zero, SPC_NODE_DIED, -SIGTERM);
        if (supervisor->failures.node[supervisor->zero].known) {
            return; /* it has failed before, and that failure counts more */
        }
    }
    spc_failures_reported(&supervisor->failures, rank, kind, payload, bytes);
    if (kind != SPC_REPORT_TEXT) {
        int32_t reason = kind == SPC_REPORT_EXITING ? atoi(number) : 1;
        consider(supervisor); /* first, as above */
        spc_comm_mark_ending(&supervisor->fork->segment, rank, SPC_NODE_DIED, reason);
    }
}

static void understand_reports(spc_fork_supervisor_t *supervisor) {
    uint32_t at = 0;
    while (supervisor->report_bytes - at >= SPC_REPORT_HEADER) {
        const unsigned char *frame = supervisor->reports + at;
        uint32_t rank =
            frame[0] | (uint32_t)frame[1] << 8 | (uint32_t)frame[2] << 16 | (uint32_t)frame[3] << 24;
        uint32_t bytes = frame[5] | (uint32_t)frame[6] << 8;
        if (bytes > SPC_REPORT_BYTES - SPC_REPORT_HEADER || rank >= supervisor->fork->nodes
            || supervisor->failures.node[rank].elsewhere) {
            supervisor->report_bytes = at = 0; /* a program wrote into a descriptor that is not its own */
            return;
        }
        if (supervisor->report_bytes - at < SPC_REPORT_HEADER + bytes) {
            break;
        }
        obey_report(supervisor, rank, (spc_report_kind_t)frame[4], (const char *)frame + SPC_REPORT_HEADER,
                    bytes);
        at += SPC_REPORT_HEADER + bytes;
    }
    supervisor->report_bytes -= at;
    memmove(supervisor->reports, supervisor->reports + at, supervisor->report_bytes);
}

static void spc_fork_hear_reports(spc_fork_supervisor_t *supervisor) {
    while (supervisor->fork->report >= 0) {
        uint32_t room = (uint32_t)sizeof supervisor->reports - supervisor->report_bytes;
        ssize_t got = read(supervisor->fork->report, supervisor->reports + supervisor->report_bytes, room);
        if (got == 0) {
            close(supervisor->fork->report);
            supervisor->fork->report = -1;
        }
        if (got <= 0) {
            return;
        }
        supervisor->report_bytes += (uint32_t)got;
        understand_reports(supervisor);
    }
}

static void hear_signal(spc_fork_supervisor_t *supervisor, int number) {
    if (number == SIGCHLD) {
        return;
    }
    if (supervisor->is_ending) { /* the second time: do not wait any longer */
        supervisor->kill_ns = 0;
    } else if (number == SIGTERM && supervisor->told_ns == SPC_NO_DEADLINE) {
        /* If it was sent to the whole group, the nodes have got it, and may be saving what they have. If it ends none
         * of them in the grace time, it was meant for the supervisor alone. */
        supervisor->told_ns = spc_clock_now_ns() + supervisor->fork->grace_ns;
    }
    supervisor->heard = number;
    supervisor->heard_ns = spc_clock_now_ns();
}

/* The supervisor's senses. None waits; each acts on its findings. */
static void spc_fork_hear_signals(spc_fork_supervisor_t *supervisor) {
    char numbers[64];
    ssize_t got;
    while ((got = read(SPC_WAKE_READ, numbers, sizeof numbers)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            hear_signal(supervisor, numbers[i]);
        }
    }
}

static void spc_fork_reap(spc_fork_supervisor_t *supervisor) {
    int status;
    pid_t process;
    while ((process = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
            if (rank != supervisor->zero && supervisor->processes[rank] == process) {
                supervisor->processes[rank] = 0;
                spc_fork_hear_reports(supervisor); /* its reports come before its end */
                mark(supervisor, rank, status, true);
                spc_failures_ended(&supervisor->failures, rank, status);
                consider(supervisor);
            }
        }
    }
}

static void zero_is_gone(spc_fork_supervisor_t *supervisor) {
    const spc_status_shared_t *status = spc_segment_part(&supervisor->fork->segment, SPC_REGION_STATUS, 0);
    spc_fork_hear_reports(supervisor);
    supervisor->processes[supervisor->zero] = 0;
    bool finished =
        spc_status_state(status, supervisor->zero) == SPC_NODE_FINISHED && !supervisor->zero_is_over;
    supervisor->zero_is_over = true;
    spc_comm_mark_ended(&supervisor->fork->segment, supervisor->zero, SPC_NODE_DIED, 0);
    if (!finished) {
        spc_failures_vanished(&supervisor->failures, supervisor->zero);
        consider(supervisor);
    }
}

static void spc_fork_look_for_zero(spc_fork_supervisor_t *supervisor) {
    if (supervisor->processes[supervisor->zero] != 0
        && getppid() != supervisor->processes[supervisor->zero]) {
        zero_is_gone(supervisor);
    }
}

/* ---- deadlines */

/* Can a node still be to blame for the failures that others have reported? It has told them that it is finished, and
 * its process has not ended; or it has told them of an error, which is still alive and not reported. */
static bool is_failure_due(const spc_fork_supervisor_t *supervisor) {
    const spc_status_shared_t *status = spc_segment_part(&supervisor->fork->segment, SPC_REGION_STATUS, 0);
    for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
        bool is_over =
            supervisor->processes[rank] == 0 || (rank == supervisor->zero && supervisor->zero_is_over);
        if (!is_over && !supervisor->failures.node[rank].known
            && (spc_status_state(status, rank) == SPC_NODE_FINISHED || spc_status_has_raised(status, rank))) {
            return true;
        }
    }
    return false;
}

static void settle(spc_fork_supervisor_t *supervisor, uint64_t now_ns) {
    if (now_ns < supervisor->due_ns && is_failure_due(supervisor)) {
        supervisor->settle_ns = now_ns + SPC_SETTLE_NS;
        return;
    }
    supervisor->settle_ns = SPC_NO_DEADLINE;
    spc_fork_hear_reports(supervisor); /* one may have come just before its error was dead */
    if (!supervisor->is_ending) {
        spc_failures_settle(&supervisor->failures);
        consider(supervisor);
    }
}

static void spc_fork_obey_deadlines(spc_fork_supervisor_t *supervisor) {
    uint64_t now_ns = spc_clock_now_ns();
    if (now_ns >= supervisor->settle_ns) {
        settle(supervisor, now_ns);
    }
    if (now_ns >= supervisor->told_ns) {
        supervisor->signal = SIGTERM;
        spc_fork_end_run(supervisor, SIGTERM, -1);
    }
    if (now_ns >= supervisor->kill_ns) {
        supervisor->kill_ns = SPC_NO_DEADLINE;
        signal_nodes(supervisor, SIGKILL, -1);
    }
}

/* ---- several boxes */

static bool nodes_are_over(const spc_fork_supervisor_t *supervisor) {
    for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
        if (rank != supervisor->zero && supervisor->processes[rank] != 0) {
            return false;
        }
    }
    return supervisor->zero_is_over;
}

/* The run is over: because of this box if there is no text, else because of another one. */
static void obey_answer(spc_fork_supervisor_t *supervisor, int32_t code) {
    supervisor->has_answer = true;
    supervisor->answer_code = code;
    if (!supervisor->is_ending && code != 0) {
        spc_fork_end_run(supervisor, SIGTERM, -1);
    }
}

/* Without the box process, no node in this box learns about the other boxes. */
static void lose_box(spc_fork_supervisor_t *supervisor) {
    static const char text[] =
        "spcomm: the process that connects this box was killed; the nodes were stopped (exit code 125)\n";
    close(supervisor->fork->box_socket);
    supervisor->fork->box_socket = -1;
    if (!supervisor->has_answer) {
        spc_meet_header_t header = {SPC_CODE_SPCOMM, supervisor->is_ending ? 0 : sizeof text - 1};
        memcpy(supervisor->answer, &header, sizeof header);
        memcpy(supervisor->answer + sizeof header, text, header.bytes);
        obey_answer(supervisor, supervisor->is_ending ? own_code(supervisor) : SPC_CODE_SPCOMM);
    }
}

static spc_meet_header_t answer_header(const spc_fork_supervisor_t *supervisor) {
    spc_meet_header_t header;
    memcpy(&header, supervisor->answer, sizeof header);
    return header;
}

static void spc_fork_hear_box(spc_fork_supervisor_t *supervisor) {
    while (has_box(supervisor) && !supervisor->has_answer) {
        uint32_t wanted = (uint32_t)sizeof(spc_meet_header_t);
        wanted += supervisor->answer_bytes < wanted ? 0 : answer_header(supervisor).bytes;
        if (wanted > sizeof supervisor->answer) {
            lose_box(supervisor);
            return;
        }
        if (supervisor->answer_bytes == wanted) {
            obey_answer(supervisor, answer_header(supervisor).code);
            return;
        }
        ssize_t got = read(supervisor->fork->box_socket, supervisor->answer + supervisor->answer_bytes,
                           wanted - supervisor->answer_bytes);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            lose_box(supervisor);
        }
        if (got <= 0) {
            return;
        }
        supervisor->answer_bytes += (uint32_t)got;
        if (supervisor->answer_bytes == sizeof(spc_meet_header_t) && answer_header(supervisor).bytes == 0) {
            obey_answer(supervisor, answer_header(supervisor).code);
        }
    }
}

/* The nodes here have ended well, or the box process knows already. */
static void end_box(spc_fork_supervisor_t *supervisor) {
    if (!supervisor->has_told && !supervisor->is_ending) {
        supervisor->has_told = true;
        supervisor->heard = 0; /* the nodes have ended well all the same */
        /* Node 0's process waits for the supervisor, but the gateway must see it as gone: no node here receives any
         * more, so memory that another thread of node 0 may still read is not used again. */
        mark(supervisor, supervisor->zero, 0, true);
        tell_box(supervisor, 0);
    } else if (supervisor->has_told && !supervisor->is_ending && supervisor->heard != 0) {
        supervisor->signal = supervisor->heard; /* no node here is left to answer it */
        spc_fork_end_run(supervisor, 0, -1);
    }
}

/* ---- the loop */

static bool is_over(spc_fork_supervisor_t *supervisor) {
    if (!nodes_are_over(supervisor)) {
        return false;
    }
    if (has_box(supervisor) && !supervisor->has_answer) {
        end_box(supervisor);
        return false;
    }
    return true;
}

static int patience_ms(const spc_fork_supervisor_t *supervisor) {
    uint64_t now_ns = spc_clock_now_ns();
    uint64_t until_ns =
        supervisor->settle_ns < supervisor->told_ns ? supervisor->settle_ns : supervisor->told_ns;
    until_ns = supervisor->kill_ns < until_ns ? supervisor->kill_ns : until_ns;
    until_ns = supervisor->look_ns < until_ns ? supervisor->look_ns : until_ns;
    if (supervisor->watch < 0 && supervisor->processes[supervisor->zero] != 0
        && until_ns > now_ns + SPC_PARENT_NS) {
        until_ns = now_ns + SPC_PARENT_NS;
    }
    if (until_ns == SPC_NO_DEADLINE) {
        return -1;
    }
    uint64_t left_ms = until_ns <= now_ns ? 0 : (until_ns - now_ns) / 1000000 + 1;
    return left_ms < 60000 ? (int)left_ms : 60000;
}

static void turn(spc_fork_supervisor_t *supervisor) {
    struct pollfd ready[] = {
        {.fd = SPC_WAKE_READ, .events = POLLIN},
        {.fd = supervisor->fork->report, .events = POLLIN},
        {.fd = supervisor->processes[supervisor->zero] != 0 ? supervisor->watch : -1, .events = POLLIN},
        {.fd = supervisor->has_answer ? -1 : supervisor->fork->box_socket, .events = POLLIN},
    };
    if (poll(ready, 4, patience_ms(supervisor)) < 0 && errno != EINTR) {
        (void)poll(NULL, 0, SPC_REST_MS); /* the senses below work without it, too */
    }
    spc_fork_hear_signals(supervisor); /* first: they explain what follows */
    spc_fork_hear_reports(supervisor);
    spc_fork_reap(supervisor);
    spc_fork_look_for_zero(supervisor);
    spc_fork_hear_box(supervisor);
    if (ready[2].revents != 0 && supervisor->processes[supervisor->zero] != 0) {
        close(supervisor->watch); /* it shows an end that is not visible yet: look now and then */
        supervisor->watch = -1;
    }
    spc_fork_obey_deadlines(supervisor);
    spc_fork_look_for_deadlock(supervisor);
}

/* Kills processes that nodes have started and left running. It gives up after a time: some cannot be killed (of another
 * user), and a process that keeps forking may always be one step ahead. */
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

/* Another box has ended the run: prints its sentence, after the output of the nodes here. */
static int conclude_as_told(const spc_fork_supervisor_t *supervisor, FILE *out) {
    spc_failures_write_texts(&supervisor->failures, isatty(SPC_SPEAK), false, out);
    fwrite(supervisor->answer + sizeof(spc_meet_header_t), 1, answer_header(supervisor).bytes, out);
    return supervisor->answer_code;
}

static int conclude_here(spc_fork_supervisor_t *supervisor, FILE *out) {
    spc_failures_settle(&supervisor->failures);
    int code = own_code(supervisor);
    if (code == 0) {
        return supervisor->has_answer ? supervisor->answer_code : 0;
    }
    spc_failures_write_texts(&supervisor->failures, isatty(SPC_SPEAK), supervisor->signal == SIGINT, out);
    if (supervisor->deadlock_text != NULL) {
        fwrite(supervisor->deadlock_text, 1, supervisor->deadlock_text_bytes, out);
        return code;
    }
    if (supervisor->signal == SIGINT) {
        spc_failures_write_places(&supervisor->failures, out);
    }
    fprintf(out, "spcomm: ");
    write_reason(supervisor, out);
    fprintf(out, supervisor->signal != 0 ? "; the nodes were stopped\n" : "\n");
    return code;
}

static int conclude(spc_fork_supervisor_t *supervisor) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        return own_code(supervisor);
    }
    bool is_told = supervisor->has_answer && answer_header(supervisor).bytes > 0;
    int code = is_told ? conclude_as_told(supervisor, out) : conclude_here(supervisor, out);
    fclose(out);
    speak(text, bytes);
    return code;
}

/* The text of an answer is long, so the supervisor does not lie on a stack that the program may have made short. */
static spc_fork_supervisor_t *make_supervisor(spc_fork_t *fork, pid_t *processes) {
    spc_fork_supervisor_t *supervisor = calloc(1, sizeof *supervisor);
    if (supervisor == NULL || spc_failures_init(&supervisor->failures, fork->nodes) != SPC_OK) {
        _exit(SPC_CODE_SPCOMM); /* and so the nodes */
    }
    supervisor->fork = fork;
    supervisor->processes = processes;
    supervisor->zero = fork->ranks[0];
    supervisor->settle_ns = supervisor->told_ns = supervisor->kill_ns = supervisor->look_ns = SPC_NO_DEADLINE;
    for (uint32_t rank = 0; rank < fork->nodes; rank++) {
        supervisor->failures.node[rank].elsewhere = processes[rank] == 0;
    }
    return supervisor;
}

_Noreturn void spc_fork_supervisor_run(spc_fork_t *fork, pid_t *processes) {
    spc_fork_supervisor_t *supervisor = make_supervisor(fork, processes);
    furnish(supervisor);
    spc_fork_start_looking(supervisor);
    spc_fork_reap(supervisor); /* nodes that ended before the watch began */
    spc_fork_look_for_zero(supervisor);
    while (!is_over(supervisor)) {
        turn(supervisor);
    }
    spc_fork_hear_reports(supervisor);
    end_orphans(fork->grace_ns);
    int32_t code = conclude(supervisor);
    if (write(fork->life, &code, sizeof code) < 0) {
        /* node 0 is gone */
    }
    _exit(code);
}
