/* SPDX-License-Identifier: MIT */
/* The supervisor. It reads its signals from a pipe. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_fork_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
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
#include "diagnose/spc_unmatched.h"
#include "fork/spc_join.h"

/* ---- signals, as bytes in a pipe
 *
 * The pipe lies where other programs have standard input and output: descriptor 0 to read, 1 to write, so that the
 * handler knows it without a variable. */

enum {
    SPC_WAKE_READ = 0,
    SPC_WAKE_WRITE = 1,
    SPC_SPEAK = 2,
    SPC_CODE_DEADLOCK = 99,
    SPC_POLLED = 5, /* beside the ends of callers */
    SPC_SPEAK_MS = 10000, /* for a reader that is slow */
    SPC_CONCLUDE_MS = 60000, /* for Python to start on a machine that is busy, and to write */
};

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

/* Lets SIGCHLD and the signals that end a program arrive in the pipe. Those that the caller ignores (nohup) stay
 * ignored. Signals that would stop or end the supervisor outside its duties are ignored, too. */
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

/* Does this signal arrive in the pipe? */
static bool hears_signal(int number) {
    struct sigaction found;
    return sigaction(number, NULL, &found) == 0 && found.sa_handler == on_signal;
}

/* Writes even if the other end is non-blocking; not for ever. */
static void write_patiently(int descriptor, const char *text, size_t bytes) {
    struct pollfd room = {.fd = descriptor, .events = POLLOUT};
    while (bytes > 0) {
        ssize_t done = write(descriptor, text, bytes);
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

static void speak(const char *text, size_t bytes) {
    write_patiently(SPC_SPEAK, text, bytes);
}

/* ---- the last report
 *
 * The words are those of `spcomm run`: `spcomm.launch.supervise.conclude`, executed in a process of its own, which gets
 * the record by standard input. It starts only when there is something to report: a run that goes well does not wait
 * for Python. It also lists the messages that nobody received, of which C only knows whether there are any, and decides
 * whether such a warning is an error (SPCOMM_STRICT=1). Of a run on several machines each reports for its own nodes. */

enum {
    WORDS = 8,   /* of the command */
    REFUSED = 3, /* its exit code if warnings are errors; Python's own failures end with 1 or 2 */
};

static const char *const *words_of(const spc_conclusion_t *self) {
    static const char *const usual[] = {"spcomm", "conclude", NULL};
    return self->command != NULL ? self->command : usual;
}

/* Runs in the forked process. */
static _Noreturn void execute(const spc_conclusion_t *self, const char *ranks, int record) {
    const char *const *command = words_of(self);
    const char *words[WORDS + 3];
    char descriptor[16];
    uint32_t count = 0;
    for (; count < WORDS && command[count] != NULL; count++) {
        words[count] = command[count];
    }
    snprintf(descriptor, sizeof descriptor, "%d", self->descriptor);
    words[count++] = descriptor;
    words[count++] = ranks;
    words[count] = NULL;
    spc_process_start_clean();
    if (dup2(record, 0) == 0 && fcntl(self->descriptor, F_SETFD, 0) == 0) {
        (void)execvp(words[0], (char *const *)words);
    }
    _exit(127);
}

/* As in "0,1,2"; NULL: no memory. */
static char *ranks_text(const uint32_t *ranks, uint32_t count) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    for (uint32_t i = 0; out != NULL && i < count; i++) {
        fprintf(out, i == 0 ? "%u" : ",%u", ranks[i]);
    }
    if (out != NULL) {
        fclose(out);
    }
    return text;
}

/* Its exit code; 0 also if it was killed because nobody reads what it writes. */
static int finish(pid_t process) {
    struct pollfd end = {.fd = -1, .events = POLLIN};
    int status = 0, ready = 1;
    if (spc_process_watch(process, &end.fd) == SPC_OK) {
        do {
            ready = poll(&end, 1, SPC_CONCLUDE_MS);
        } while (ready < 0 && errno == EINTR);
        close(end.fd);
    }
    if (ready == 0) {
        kill(process, SIGKILL);
    }
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    return ready == 0 ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Has Python report the end of the run. Returns the exit code of the command; -1: there is none. */
static int report_end(const spc_conclusion_t *self, const spc_failures_t *failures) {
    int record[2];
    char *ranks = ranks_text(self->ranks, self->count);
    if (ranks == NULL || pipe(record) != 0) {
        free(ranks);
        return -1;
    }
    const pid_t process = fork();
    if (process == 0) {
        close(record[1]);
        execute(self, ranks, record[0]);
    }
    free(ranks);
    close(record[0]);
    fflush(failures->record);
    if (process > 0 && fcntl(record[1], F_SETFL, O_NONBLOCK) == 0) {
        write_patiently(record[1], failures->record_text, failures->record_bytes);
        write_patiently(record[1], failures->texts_text, failures->texts_bytes);
    }
    close(record[1]);
    return process > 0 ? finish(process) : -1;
}

/* ---- the supervisor */

typedef struct spc_fork_supervisor {
    spc_fork_t *fork;
    spc_fork_node_t *node; /* by rank */
    uint32_t missing; /* processes of another launcher that have not joined */
    bool is_late; /* ends the run because of them */
    int launcher; /* a pidfd of the other launcher; -1: none, or it has ended */
    bool is_orphaned; /* ends the run because of that */
    struct pollfd *ready;
    spc_failures_t failures;
    unsigned char reports[2 * SPC_REPORT_BYTES]; /* read, but not yet parsed */
    uint32_t report_bytes;
    int heard; /* the last signal; the nodes may have got it, too */
    uint64_t heard_ns;
    bool is_ending; /* nodes have been told to */
    int signal; /* the run ends because of it */
    uint64_t due_ns; /* until then no victim is blamed if a failure to blame may still come */
    uint64_t settle_ns, told_ns, kill_ns, look_ns, join_ns, orphan_ns; /* deadlines; SPC_NO_DEADLINE: none */
    uint64_t proof_ns; /* when the first of the looks that prove it was; SPC_NO_DEADLINE: nothing is proven */
    spc_deadlock_t *deadlock; /* NULL: there was no memory for it */
    spc_deadlock_t *stall; /* the same, whatever threads and timers may do; NULL: warned already */
    char *deadlock_text; /* the report of the deadlock that ends the run; else NULL */
    size_t deadlock_text_bytes;
    bool has_told; /* the box process: that all nodes here have ended well */
    bool has_answer; /* the box process's: how the run ends */
    int32_t answer_code;
    unsigned char answer[sizeof(spc_meet_header_t) + SPC_MEET_TEXT_BYTES]; /* as far as it was read */
    uint32_t answer_bytes;
} spc_fork_supervisor_t;

#define SPC_ORPHAN_NS \
    UINT64_C(500000000) /* in which a launcher that has ended may have ended its processes */
#define SPC_PARENT_NS 50000000 /* between two looks at node 0, without a pidfd */
#define SPC_REST_MS 50 /* when poll cannot wait */

/* ---- start */

/* A pidfd above the descriptors of the streams, which may be closed; else there is none. */
static int watch(pid_t process) {
    int found = -1;
    if (spc_process_watch(process, &found) != SPC_OK || found > 2) {
        return found;
    }
    int moved = fcntl(found, F_DUPFD_CLOEXEC, 3);
    close(found);
    return moved;
}

static void furnish(spc_fork_supervisor_t *supervisor) {
    int wake[2];
    spc_fork_node_t *caller = &supervisor->node[supervisor->fork->ranks[0]];
    spc_process_rename("spcomm superv");
    caller->watch = caller->process != 0 ? watch(caller->process) : -1;
    supervisor->launcher = supervisor->fork->place != NULL ? watch(supervisor->fork->launcher) : -1;
    /* Makes room for the pipe even if the program has used up its descriptors. Our own ends are all above 2. */
    close(0);
    close(1);
    if (pipe(wake) != 0 || wake[0] != SPC_WAKE_READ || wake[1] != SPC_WAKE_WRITE) {
        _exit(SPC_CODE_SPCOMM);
    }
    const spc_fork_t *self = supervisor->fork;
    const int segment = self->conclusion.descriptor;
    int kept[] = {self->life,     self->report,        caller->watch, self->box_socket,
                  self->listener, self->handed_report, segment,       supervisor->launcher};
    spc_process_close_all_but(kept, sizeof kept / sizeof *kept);
    fcntl(SPC_WAKE_READ, F_SETFL, O_NONBLOCK);
    fcntl(SPC_WAKE_WRITE, F_SETFL, O_NONBLOCK);
    fcntl(supervisor->fork->report, F_SETFL, O_NONBLOCK);
    fcntl(supervisor->fork->box_socket, F_SETFL, O_NONBLOCK);
    fcntl(supervisor->fork->listener, F_SETFL, O_NONBLOCK);
    handle_signals();
}

#define SPC_SETTLE_NS \
    500000000 /* in which a lost node may turn out to be the consequence of another failure */
#define SPC_SETTLE_BOXES_NS UINT64_C(3000000000) /* the same if the other failure is another box's */
#define SPC_DUE_NS UINT64_C(10000000000) /* the same if the state shows that one may come */

/* ---- ending the run */

static bool is_running(const spc_fork_node_t *node) {
    return node->process != 0 || node->is_unseen;
}

/* Is the process of a caller gone? */
static bool has_left(const spc_fork_supervisor_t *supervisor, const spc_fork_node_t *node) {
    struct pollfd end = {.fd = node->watch, .events = POLLIN};
    if (node->watch >= 0) {
        return poll(&end, 1, 0) > 0;
    }
    return supervisor->fork->place != NULL ? spc_join_has_ended(node->life) : getppid() != node->process;
}

static void signal_node(const spc_fork_supervisor_t *supervisor, uint32_t rank, int number) {
    const spc_fork_node_t *node = &supervisor->node[rank];
    if (node->process == 0 || (node->is_caller && (node->is_over || has_left(supervisor, node)))) {
        return;
    }
#if SPC_HAS_SIGQUEUE
    if (node->is_caller && number == SIGTERM) {
        union sigval value = {.sival_ptr = node->self};
        sigqueue(node->process, number, value);
        return;
    }
#endif
    kill(node->process, number);
}

static void signal_nodes(const spc_fork_supervisor_t *supervisor, int number, int32_t spared) {
    for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
        if ((int32_t)rank != spared) {
            signal_node(supervisor, rank, number);
        }
    }
}

/* ---- the record, which the box process gets, too */

/* Why the run ends, for the record. */
static void note_reason(spc_fork_supervisor_t *supervisor) {
    const spc_launcher_place_t *place = supervisor->fork->place;
    spc_failures_t *failures = &supervisor->failures;
    char number[16];
    for (uint32_t rank = 0; rank < failures->nodes && supervisor->is_late; rank++) {
        if (supervisor->node[rank].is_caller && !supervisor->node[rank].has_joined) {
            spc_failures_note(failures, rank, SPC_RECORD_LATE, place->launcher);
        }
    }
    if (supervisor->is_orphaned) {
        spc_failures_note(failures, 0, SPC_RECORD_ORPHANED, place->launcher);
    }
    if (supervisor->signal != 0) {
        snprintf(number, sizeof number, "%d", supervisor->signal);
        spc_failures_note(failures, 0, SPC_RECORD_SIGNAL, number);
    }
}

static bool has_box(const spc_fork_supervisor_t *supervisor) {
    return supervisor->fork->box_socket >= 0;
}

/* The box process makes a sentence of the record so far. */
static void tell_box(spc_fork_supervisor_t *supervisor, int32_t code) {
    const spc_failures_t *failures = &supervisor->failures;
    spc_meet_header_t header = {.code = code};
    fflush(failures->record);
    if (code != 0) {
        header.bytes = failures->record_bytes < SPC_MEET_TEXT_BYTES ? (uint32_t)failures->record_bytes
                                                                    : SPC_MEET_TEXT_BYTES;
    }
    /* A socket has room for this: nothing else is written to it. */
    if (write(supervisor->fork->box_socket, &header, sizeof header) == (ssize_t)sizeof header
        && write(supervisor->fork->box_socket, failures->record_text, header.bytes) < 0) {
        /* it is gone, as a later read shows */
    }
}

/* The exit code of the run as this box sees it. */
static int own_code(const spc_fork_supervisor_t *supervisor) {
    return supervisor->deadlock_text != NULL                ? SPC_CODE_DEADLOCK
           : supervisor->is_late || supervisor->is_orphaned ? SPC_CODE_SPCOMM
           : supervisor->signal != 0                        ? 128 + supervisor->signal
                                                            : spc_failures_code(&supervisor->failures);
}

/* Sends the nodes the signal `number` (0: they know already), except one (-1: all), and kills them after the grace
 * time. No later failure counts. */
static void end_run(spc_fork_supervisor_t *supervisor, int number, int32_t spared) {
    supervisor->is_ending = true;
    spc_failures_close(&supervisor->failures);
    note_reason(supervisor);
    supervisor->settle_ns = supervisor->told_ns = supervisor->look_ns = supervisor->join_ns =
        supervisor->orphan_ns = SPC_NO_DEADLINE;
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

/* The signal to which the end of a caller is the answer although it reached no other process, as `kill -INT` sends it;
 * 0: none. The code of a failure shows it. Where the parent has it ignored, the other nodes would not end of it. */
static int signal_of_caller(const spc_fork_supervisor_t *supervisor) {
    static const int asking[] = {SIGINT, SIGHUP, SIGQUIT};
    for (uint32_t i = 0; i < sizeof asking / sizeof *asking; i++) {
        if (supervisor->node[supervisor->failures.first].is_caller
            && spc_failures_code(&supervisor->failures) == 128 + asking[i] && hears_signal(asking[i])) {
            return asking[i];
        }
    }
    return 0;
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

static void hear_signals(spc_fork_supervisor_t *supervisor) {
    char numbers[64];
    ssize_t got;
    while ((got = read(SPC_WAKE_READ, numbers, sizeof numbers)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            hear_signal(supervisor, numbers[i]);
        }
    }
}

static void consider(spc_fork_supervisor_t *supervisor) {
    if (supervisor->is_ending) {
        return;
    }
    if (supervisor->failures.first >= 0) {
        hear_signals(supervisor); /* one that has come since the poll was sent before the failure */
        bool answer = is_answer(supervisor);
        supervisor->signal = answer ? supervisor->heard : signal_of_caller(supervisor);
        bool is_interrupt = spc_failures_code(&supervisor->failures) == 128 + SIGINT && hears_signal(SIGINT);
        int handed_on = supervisor->signal != 0 ? supervisor->signal : is_interrupt ? SIGINT : SIGTERM;
        end_run(supervisor, answer ? 0 : handed_on, supervisor->failures.first);
    } else if (supervisor->failures.first_lost >= 0 && supervisor->settle_ns == SPC_NO_DEADLINE) {
        supervisor->settle_ns =
            spc_clock_now_ns() + (has_box(supervisor) ? SPC_SETTLE_BOXES_NS : (uint64_t)SPC_SETTLE_NS);
        supervisor->due_ns = spc_clock_now_ns() + SPC_DUE_NS;
    }
}

/* Can a node still be to blame for the failures that others have reported, or for their waits? It has told them that
 * it is finished, and its process has not ended; or of an error, which is still alive and not reported. */
static bool is_failure_due(const spc_fork_supervisor_t *supervisor) {
    const spc_status_shared_t *status = spc_segment_part(&supervisor->fork->segment, SPC_REGION_STATUS, 0);
    for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
        const spc_fork_node_t *node = &supervisor->node[rank];
        bool is_over = !is_running(node) || node->is_over;
        if (!is_over && !supervisor->failures.node[rank].known
            && (spc_status_state(status, rank) == SPC_NODE_FINISHED || spc_status_has_raised(status, rank))) {
            return true;
        }
    }
    return false;
}

/* ---- looking for deadlocks: ends the run when nodes are proven to wait for ever */

#define LOOK_NS 60000000 /* between two looks; two of them make a proof */
#define STALL_S 5 /* as the launcher's --stall */

/* Examines the waits of the nodes now and then, until the run is to end. */
static void start_looking(spc_fork_supervisor_t *supervisor) {
    if (has_box(supervisor)
        || spc_deadlock_create(&supervisor->fork->segment, &supervisor->deadlock) != SPC_OK) {
        return;
    }
    supervisor->look_ns = spc_clock_now_ns() + LOOK_NS;
    if (spc_deadlock_create(&supervisor->fork->segment, &supervisor->stall) == SPC_OK) {
        spc_deadlock_overlook(supervisor->stall, SPC_BOARD_OWN_DOUBTS);
    }
}

/* Warns once of what is no proof: a thread of the program, say, might end the waits. */
static void warn_of_stall(spc_fork_supervisor_t *supervisor) {
    size_t bytes = 0;
    char *text = NULL;
    if (supervisor->stall != NULL && spc_deadlock_look(supervisor->stall) != 0) {
        text = spc_deadlock_report_text(&supervisor->fork->segment, supervisor->stall, STALL_S, &bytes);
    }
    if (text != NULL) {
        speak(text, bytes);
        free(text);
        spc_deadlock_destroy(supervisor->stall);
        supervisor->stall = NULL;
    }
}

static void look_for_deadlock(spc_fork_supervisor_t *supervisor) {
    uint64_t now_ns = spc_clock_now_ns();
    if (now_ns < supervisor->look_ns) { /* also when the run ends already */
        return;
    }
    supervisor->look_ns = now_ns + LOOK_NS;
    if (spc_deadlock_look(supervisor->deadlock) == 0) {
        supervisor->proof_ns = SPC_NO_DEADLINE;
        warn_of_stall(supervisor);
        return;
    }
    supervisor->proof_ns = supervisor->proof_ns == SPC_NO_DEADLINE ? now_ns : supervisor->proof_ns;
    if (now_ns < supervisor->proof_ns + SPC_DUE_NS && is_failure_due(supervisor)) {
        return; /* the others may wait because of it */
    }
    /* Written before any node is told to end: the boards show the deadlock only until then. */
    supervisor->deadlock_text = spc_deadlock_report_text(&supervisor->fork->segment, supervisor->deadlock, 0,
                                                         &supervisor->deadlock_text_bytes);
    if (supervisor->deadlock_text != NULL) {
        end_run(supervisor, SIGTERM, -1);
    }
}

/* ---- reports */

/* `is_gone`: a caller may have said how it will end while its process, which waits for the supervisor, still runs. */
static void mark(const spc_fork_supervisor_t *supervisor, uint32_t rank, int status, bool is_gone) {
    int32_t reason = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    bool well = status == 0 && !supervisor->failures.node[rank].known;
    (is_gone ? spc_comm_mark_ended : spc_comm_mark_ending)(&supervisor->fork->segment, rank,
                                                           well ? SPC_NODE_FINISHED : SPC_NODE_DIED, reason);
}

static void caller_ended(spc_fork_supervisor_t *supervisor, uint32_t rank, int status) {
    supervisor->node[rank].is_over = true;
    spc_failures_ended(&supervisor->failures, rank, status);
    consider(supervisor); /* first: nodes that wait for this one see the signal, and then that it is lost */
    mark(supervisor, rank, status, false);
}

static void obey_report(spc_fork_supervisor_t *supervisor, uint32_t rank, spc_report_kind_t kind,
                        const char *payload, uint32_t bytes) {
    char number[8] = {0};
    memcpy(number, payload, bytes < 7 ? bytes : 7);
    if (kind == SPC_REPORT_OVER) {
        caller_ended(supervisor, rank, (atoi(number) & 0xff) << 8);
        return;
    }
    if (kind == SPC_REPORT_STOPPED) {
        supervisor->node[rank].is_over = true;
        spc_comm_mark_ending(&supervisor->fork->segment, rank, SPC_NODE_DIED, -SIGTERM);
        if (supervisor->failures.node[rank].known) {
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

static void hear_reports(spc_fork_supervisor_t *supervisor) {
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

/* The supervisor's senses. None waits; each acts on its findings. */
static void reap(spc_fork_supervisor_t *supervisor) {
    int status;
    pid_t process;
    while ((process = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
            if (!supervisor->node[rank].is_caller && supervisor->node[rank].process == process) {
                supervisor->node[rank].process = 0;
                hear_reports(supervisor); /* its reports come before its end */
                mark(supervisor, rank, status, true);
                spc_failures_ended(&supervisor->failures, rank, status);
                consider(supervisor);
            }
        }
    }
}

static void caller_is_gone(spc_fork_supervisor_t *supervisor, uint32_t rank) {
    const spc_status_shared_t *status = spc_segment_part(&supervisor->fork->segment, SPC_REGION_STATUS, 0);
    spc_fork_node_t *node = &supervisor->node[rank];
    hear_reports(supervisor);
    node->process = 0;
    node->is_unseen = false;
    bool finished = spc_status_state(status, rank) == SPC_NODE_FINISHED && !node->is_over;
    node->is_over = true;
    spc_comm_mark_ended(&supervisor->fork->segment, rank, SPC_NODE_DIED, 0);
    if (!finished) {
        spc_failures_vanished(&supervisor->failures, rank);
        consider(supervisor);
    }
}

static void look_for_callers(spc_fork_supervisor_t *supervisor) {
    for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
        const spc_fork_node_t *node = &supervisor->node[rank];
        if (node->is_caller && is_running(node) && has_left(supervisor, node)) {
            caller_is_gone(supervisor, rank);
        }
    }
}

/* ---- processes of another launcher */

static void stop_admitting(spc_fork_supervisor_t *supervisor) {
    supervisor->join_ns = SPC_NO_DEADLINE;
    close(supervisor->fork->listener); /* for the second time, that of -1 */
    close(supervisor->fork->handed_report);
    supervisor->fork->listener = supervisor->fork->handed_report = -1;
}

static bool is_expected(const spc_fork_supervisor_t *supervisor, const spc_join_hello_t *hello) {
    return hello->size == supervisor->fork->nodes && hello->rank < hello->size
           && supervisor->node[hello->rank].is_caller && !supervisor->node[hello->rank].has_joined;
}

static void admit(spc_fork_supervisor_t *supervisor, int connection, const spc_join_hello_t *hello) {
    const int handed[] = {supervisor->fork->conclusion.descriptor, supervisor->fork->handed_report};
    if (!is_expected(supervisor, hello) || spc_join_hand(connection, handed, getpid()) != SPC_OK) {
        close(connection); /* a copy of a node, or one that is gone again */
        return;
    }
    spc_fork_node_t *node = &supervisor->node[hello->rank];
    *node = (spc_fork_node_t){.process = hello->process,
                              .is_caller = true,
                              .has_joined = true,
                              .is_unseen = hello->process == 0,
                              .life = connection,
                              .watch = watch(hello->process),
                              .self = (void *)(uintptr_t)hello->self}; /* an address there */
    supervisor->missing--;
    if (supervisor->missing == 0) {
        stop_admitting(supervisor);
    }
    if (supervisor->is_ending) {
        signal_node(supervisor, hello->rank, SIGTERM);
    }
}

static void admit_callers(spc_fork_supervisor_t *supervisor) {
    spc_join_hello_t hello;
    int connection;
    while (supervisor->fork->listener >= 0
           && (connection = spc_join_accept(supervisor->fork->listener, &hello)) >= 0) {
        admit(supervisor, connection, &hello);
    }
}

static void start_admitting(spc_fork_supervisor_t *supervisor) {
    if (supervisor->fork->place != NULL) {
        supervisor->missing = supervisor->fork->local_nodes;
        supervisor->join_ns = spc_clock_now_ns() + SPC_JOIN_S * UINT64_C(1000000000);
    }
}

/* A launcher that is killed leaves its processes to whoever adopts them, and one that computes would go on for ever. */
static void look_for_launcher(spc_fork_supervisor_t *supervisor) {
    struct pollfd end = {.fd = supervisor->launcher, .events = POLLIN};
    if (supervisor->launcher >= 0 && poll(&end, 1, 0) > 0) {
        close(supervisor->launcher);
        supervisor->launcher = -1;
        supervisor->orphan_ns = supervisor->is_ending ? SPC_NO_DEADLINE : spc_clock_now_ns() + SPC_ORPHAN_NS;
    }
}

/* Those that no signal reaches see by the end of the supervisor that the run is over, or their launcher ends them. */
static void give_up_unseen(spc_fork_supervisor_t *supervisor) {
    for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
        supervisor->node[rank].is_over = supervisor->node[rank].is_over || supervisor->node[rank].is_unseen;
    }
}

/* The run ends without them. */
static void give_up_missing(spc_fork_supervisor_t *supervisor) {
    stop_admitting(supervisor);
    for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
        spc_fork_node_t *node = &supervisor->node[rank];
        node->is_over = node->is_over || (node->is_caller && !node->has_joined && supervisor->missing > 0);
    }
}

/* ---- deadlines */

static void settle(spc_fork_supervisor_t *supervisor, uint64_t now_ns) {
    if (now_ns < supervisor->due_ns && is_failure_due(supervisor)) {
        supervisor->settle_ns = now_ns + SPC_SETTLE_NS;
        return;
    }
    supervisor->settle_ns = SPC_NO_DEADLINE;
    hear_reports(supervisor); /* one may have come just before its error was dead */
    if (!supervisor->is_ending) {
        spc_failures_settle(&supervisor->failures);
        consider(supervisor);
    }
}

static void obey_deadlines(spc_fork_supervisor_t *supervisor) {
    uint64_t now_ns = spc_clock_now_ns();
    if (now_ns >= supervisor->settle_ns) {
        settle(supervisor, now_ns);
    }
    if (now_ns >= supervisor->told_ns) {
        supervisor->signal = SIGTERM;
        end_run(supervisor, SIGTERM, -1);
    }
    if (now_ns >= supervisor->join_ns) {
        supervisor->is_late = true;
        end_run(supervisor, SIGTERM, -1);
    }
    if (now_ns >= supervisor->orphan_ns) {
        supervisor->is_orphaned = true;
        end_run(supervisor, SIGKILL, -1); /* as the nodes of a killed `spcomm run` end */
    }
    if (now_ns >= supervisor->kill_ns) {
        supervisor->kill_ns = SPC_NO_DEADLINE;
        signal_nodes(supervisor, SIGKILL, -1);
        give_up_missing(supervisor);
        give_up_unseen(supervisor);
    }
}

/* ---- several boxes */

static bool nodes_are_over(const spc_fork_supervisor_t *supervisor) {
    for (uint32_t i = 0; i < supervisor->fork->local_nodes; i++) {
        const spc_fork_node_t *node = &supervisor->node[supervisor->fork->ranks[i]];
        if (node->is_caller ? !node->is_over : node->process != 0) {
            return false;
        }
    }
    return true;
}

/* The run is over: because of this box if there is no text, else because of another one. */
static void obey_answer(spc_fork_supervisor_t *supervisor, int32_t code) {
    supervisor->has_answer = true;
    supervisor->answer_code = code;
    if (!supervisor->is_ending && code != 0) {
        end_run(supervisor, SIGTERM, -1);
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

static void hear_box(spc_fork_supervisor_t *supervisor) {
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
        /* Processes of callers wait for the supervisor, but the gateway must see them as gone: no node here receives
         * any more, so memory that another thread of a caller may still read is not used again. */
        for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
            if (supervisor->node[rank].is_caller) {
                mark(supervisor, rank, 0, true);
            }
        }
        tell_box(supervisor, 0);
    } else if (supervisor->has_told && !supervisor->is_ending && supervisor->heard != 0) {
        supervisor->signal = supervisor->heard; /* no node here is left to answer it */
        end_run(supervisor, 0, -1);
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

/* Is there a caller whose end wakes no poll? */
static bool is_blind(const spc_fork_supervisor_t *supervisor) {
    const spc_fork_node_t *caller = &supervisor->node[supervisor->fork->ranks[0]];
    return supervisor->fork->place == NULL && caller->watch < 0 && caller->process != 0;
}

static int patience_ms(const spc_fork_supervisor_t *supervisor) {
    uint64_t now_ns = spc_clock_now_ns();
    const uint64_t deadlines_ns[] = {supervisor->settle_ns, supervisor->told_ns, supervisor->kill_ns,
                                     supervisor->look_ns,   supervisor->join_ns, supervisor->orphan_ns};
    uint64_t until_ns = SPC_NO_DEADLINE;
    for (uint32_t i = 0; i < sizeof deadlines_ns / sizeof *deadlines_ns; i++) {
        until_ns = deadlines_ns[i] < until_ns ? deadlines_ns[i] : until_ns;
    }
    if (is_blind(supervisor) && until_ns > now_ns + SPC_PARENT_NS) {
        until_ns = now_ns + SPC_PARENT_NS;
    }
    if (until_ns == SPC_NO_DEADLINE) {
        return -1;
    }
    uint64_t left_ms = until_ns <= now_ns ? 0 : (until_ns - now_ns) / 1000000 + 1;
    return left_ms < 60000 ? (int)left_ms : 60000;
}

/* The descriptors to wait for; returns how many. */
static nfds_t prepare_poll(const spc_fork_supervisor_t *supervisor) {
    const int own[] = {SPC_WAKE_READ, supervisor->fork->report, supervisor->fork->listener,
                       supervisor->launcher, supervisor->has_answer ? -1 : supervisor->fork->box_socket};
    nfds_t count = 0;
    for (; count < sizeof own / sizeof *own; count++) {
        supervisor->ready[count] = (struct pollfd){.fd = own[count], .events = POLLIN};
    }
    for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
        const spc_fork_node_t *node = &supervisor->node[rank];
        if (node->is_caller && is_running(node)) {
            const int end = node->watch >= 0 || supervisor->fork->place == NULL ? node->watch : node->life;
            supervisor->ready[count++] = (struct pollfd){.fd = end, .events = POLLIN};
        }
    }
    return count;
}

static void turn(spc_fork_supervisor_t *supervisor) {
    if (poll(supervisor->ready, prepare_poll(supervisor), patience_ms(supervisor)) < 0 && errno != EINTR) {
        (void)poll(NULL, 0, SPC_REST_MS); /* the senses below work without it, too */
    }
    hear_signals(supervisor); /* first: they explain what follows */
    admit_callers(supervisor);
    hear_reports(supervisor);
    reap(supervisor);
    look_for_callers(supervisor);
    look_for_launcher(supervisor);
    hear_box(supervisor);
    obey_deadlines(supervisor);
    look_for_deadlock(supervisor);
}

/* Says in one sentence how the run has ended, where Python cannot be executed to say more. */
static void say_briefly(const spc_fork_supervisor_t *supervisor, int code) {
    const int32_t first = supervisor->failures.first;
    char what[64] = "messages were never received, or barriers left open", text[256];
    if (code != 0 && first >= 0 && supervisor->signal == 0) {
        snprintf(what, sizeof what, "node %d failed first (exit code %d)", first, code);
    } else if (code != 0) {
        snprintf(what, sizeof what, "the run was ended (exit code %d)", code);
    }
    const int bytes =
        snprintf(text, sizeof text, "spcomm: %s; the command %.80s, which says more, cannot be executed\n",
                 what, words_of(&supervisor->fork->conclusion)[0]);
    speak(text, (size_t)bytes);
}

/* Prints a finished report. Before it, Python prints the tracebacks, if there are any. */
static void report_as_written(spc_fork_supervisor_t *supervisor, const char *text, size_t bytes) {
    spc_failures_note(&supervisor->failures, 0, SPC_RECORD_SAID, "");
    if (supervisor->failures.texts_bytes > 0) {
        (void)report_end(&supervisor->fork->conclusion, &supervisor->failures);
    }
    speak(text, bytes);
}

/* Reports how the run has ended, if there is anything to report. Returns its exit code. */
static int conclude(spc_fork_supervisor_t *supervisor) {
    spc_failures_settle(&supervisor->failures);
    spc_failures_close(&supervisor->failures);
    fflush(supervisor->failures.texts);
    if (supervisor->has_answer && answer_header(supervisor).bytes > 0) { /* another box has ended the run */
        const char *text = (const char *)supervisor->answer + sizeof(spc_meet_header_t);
        const bool is_said = *text == '\0'; /* by that box */
        report_as_written(supervisor, text, is_said ? 0 : answer_header(supervisor).bytes);
        return supervisor->answer_code;
    }
    const int code = own_code(supervisor);
    if (supervisor->deadlock_text != NULL) {
        report_as_written(supervisor, supervisor->deadlock_text, supervisor->deadlock_text_bytes);
    } else if (code != 0 || (supervisor->answer_code == 0 && spc_unmatched_any(&supervisor->fork->segment))) {
        const int said = report_end(&supervisor->fork->conclusion, &supervisor->failures);
        if (said == REFUSED && code == 0) {
            return 1;
        }
        if (said != 0) {
            say_briefly(supervisor, code);
        }
    }
    return code != 0 ? code : supervisor->answer_code; /* 0 also if there is no answer */
}

/* The text of an answer is long, so the supervisor does not lie on a stack that the program may have made short. */
static spc_fork_supervisor_t *make_supervisor(spc_fork_t *fork, spc_fork_node_t *nodes) {
    spc_fork_supervisor_t *supervisor = calloc(1, sizeof *supervisor);
    struct pollfd *ready = calloc(fork->local_nodes + SPC_POLLED, sizeof *ready);
    if (supervisor == NULL || ready == NULL
        || spc_failures_init(&supervisor->failures, fork->nodes) != SPC_OK) {
        _exit(SPC_CODE_SPCOMM); /* and so the nodes */
    }
    supervisor->fork = fork;
    supervisor->node = nodes;
    supervisor->ready = ready;
    supervisor->settle_ns = supervisor->told_ns = supervisor->kill_ns = supervisor->look_ns =
        supervisor->join_ns = supervisor->orphan_ns = supervisor->proof_ns = SPC_NO_DEADLINE;
    for (uint32_t rank = 0; rank < fork->nodes; rank++) {
        nodes[rank].life = nodes[rank].watch = -1;
        supervisor->failures.node[rank].elsewhere = nodes[rank].process == 0 && !nodes[rank].is_caller;
    }
    nodes[fork->ranks[0]].life = fork->life;
    nodes[fork->ranks[0]].self = fork;
    return supervisor;
}

/* The callers end with the exit code of the run. */
static void let_go(const spc_fork_supervisor_t *supervisor, int32_t code) {
    for (uint32_t rank = 0; rank < supervisor->fork->nodes; rank++) {
        const int life = supervisor->node[rank].life;
        if (life >= 0 && write(life, &code, sizeof code) < 0) {
            /* it is gone */
        }
    }
}

_Noreturn void spc_fork_supervisor_run(spc_fork_t *fork, spc_fork_node_t *nodes) {
    spc_fork_supervisor_t *supervisor = make_supervisor(fork, nodes);
    furnish(supervisor);
    start_admitting(supervisor);
    start_looking(supervisor);
    reap(supervisor); /* nodes that ended before the watch began */
    look_for_callers(supervisor);
    while (!is_over(supervisor)) {
        turn(supervisor);
    }
    hear_reports(supervisor);
    spc_process_end_children(fork->grace_ns);
    int32_t code = conclude(supervisor);
    let_go(supervisor, code);
    _exit(code);
}
