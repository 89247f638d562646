/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/spc_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spc_clock.h"
#include "base/spc_error.h"

#ifdef __linux__
#include <dirent.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PF_EXITING 0x4 /* include/linux/sched.h of the kernel; proc(5): flags */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

int spc_process_watch(int32_t process, int *descriptor) {
    int made = (int)syscall(SYS_pidfd_open, process, 0);
    if (made < 0) {
        return SPC_ESYSTEM;
    }
    *descriptor = made;
    return SPC_OK;
}

int spc_process_die_with_parent(int number) {
    return prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) == 0 ? SPC_OK : SPC_ESYSTEM;
}

void spc_process_adopt_orphans(void) {
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* In a process-id namespace without a /proc of its own, /proc has the numbers of another namespace. */
static bool proc_is_of_others(void) {
    char number[24];
    ssize_t length = readlink("/proc/self", number, sizeof number - 1);
    number[length > 0 ? length : 0] = '\0';
    return length > 0 && strtol(number, NULL, 10) != getpid();
}

/* Converts such a number: the last of its NSpid. 0: the process has ended. */
static long number_here(long number_there) {
    char path[48], line[256], *last;
    long number = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", number_there);
    FILE *status = fopen(path, "re");
    while (status != NULL && number == 0 && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "NSpid:", 6) == 0 && (last = strrchr(line, '\t')) != NULL) {
            number = strtol(last, NULL, 10);
        }
    }
    if (status != NULL) {
        fclose(status);
    }
    return number;
}

/* Whatever /proc shows: a number that is no child's belongs to an unrelated process. */
static bool is_child(long process) {
    siginfo_t unused;
    return process > 0 && waitid(P_PID, (id_t)process, &unused, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Whether an argument of the process, whose number in /proc this is, contains `text`. An ended process has no
 * arguments. */
static bool has_argument(long number_there, const char *text) {
    char path[48], *argument = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%ld/cmdline", number_there);
    FILE *file = fopen(path, "re");
    while (file != NULL && !found && getdelim(&argument, &room, '\0', file) > 0) {
        found = strstr(argument, text) != NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    free(argument);
    return found;
}

uint32_t spc_process_children(int32_t *processes, uint32_t room, const char *spared) {
    FILE *list = fopen("/proc/thread-self/children", "re");
    bool foreign = list != NULL && proc_is_of_others();
    uint32_t count = 0;
    long found;
    while (list != NULL && count < room && fscanf(list, "%ld", &found) == 1) {
        bool is_spared = spared != NULL && has_argument(found, spared);
        found = foreign ? number_here(found) : found;
        if (!is_spared && is_child(found)) {
            processes[count++] = (int32_t)found;
        }
    }
    if (list != NULL) {
        fclose(list);
    }
    return count;
}

/* Whether a thread has begun to end in the kernel: pthread_join returns then, before its entry disappears. */
static bool is_ending(const char *thread) {
    char text[512];
    unsigned flags = 0;
    snprintf(text, sizeof text, "/proc/self/task/%.16s/stat", thread);
    FILE *file = fopen(text, "re");
    if (file == NULL) {
        return errno == ENOENT || errno == ESRCH;
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *name_end = strrchr(text, ')'); /* the name may have blanks, and parentheses of its own */
    if (name_end == NULL) {
        return text[0] == '\0'; /* it disappeared meanwhile */
    }
    return sscanf(name_end, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & PF_EXITING) != 0;
}

/* Without /proc: 1, or 2 for any larger number; 0: unknown. A process of one thread shares nothing that this would end,
 * so the call changes nothing; the kernel refuses it to a process that has more (unshare(2), CLONE_THREAD). */
static uint32_t count_without_proc(void) {
    return unshare(CLONE_THREAD) == 0 ? 1 : errno == EINVAL ? 2 : 0;
}

uint32_t spc_process_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) {
        return count_without_proc();
    }
    uint32_t count = 0;
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        count += entry->d_name[0] != '.' && !is_ending(entry->d_name);
    }
    closedir(tasks);
    return count;
}

/* Whether a thread waits, without a time limit, for a futex that only this process has. Its entry shows where it is in
 * the kernel: "running", or the number of the system call and its arguments. */
static bool waits_to_be_woken(const char *thread) {
    char path[64];
    long number = -1;
    unsigned long long operation = 0, timeout = 1;
    snprintf(path, sizeof path, "/proc/self/task/%.16s/syscall", thread);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    int found = fscanf(file, "%ld %*x %llx %*x %llx", &number, &operation, &timeout);
    fclose(file);
    unsigned long long verb = operation & ~(unsigned long long)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    return found == 3 && number == SYS_futex && (operation & FUTEX_PRIVATE_FLAG) != 0 && timeout == 0
           && (verb == FUTEX_WAIT || verb == FUTEX_WAIT_BITSET);
}

/* The number of waits that a sleeping thread has begun; UINT64_MAX: that is not known, or a debugger has stopped it. */
static uint64_t count_waits(const char *thread) {
    char path[64], line[128], state = '\0';
    unsigned long long count = UINT64_MAX;
    snprintf(path, sizeof path, "/proc/self/task/%.16s/status", thread);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL
           && sscanf(line, "voluntary_ctxt_switches: %llu", &count) != 1) {
        (void)sscanf(line, "State: %c", &state);
    }
    if (file != NULL) {
        fclose(file);
    }
    return state == 'S' ? count : UINT64_MAX;
}

/* Counts the other threads that do not wait to be woken. `digest` gets a digest of these threads and of how often each
 * has begun to wait: the same one before and after its state was read. */
static uint32_t look_at_threads(DIR *tasks, uint64_t *digest) {
    const bool foreign = proc_is_of_others();
    const long self = syscall(SYS_gettid);
    uint32_t count = 0;
    rewinddir(tasks);
    *digest = 0;
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        const long thread = strtol(entry->d_name, NULL, 10);
        if (entry->d_name[0] == '.' || (!foreign && thread == self)) {
            continue;
        }
        const uint64_t waits = count_waits(entry->d_name);
        count +=
            !waits_to_be_woken(entry->d_name) || waits == UINT64_MAX || count_waits(entry->d_name) != waits;
        *digest = (*digest * 31 + (uint64_t)thread) * 31 + waits;
    }
    return foreign && count > 0 ? count - 1 : count; /* this thread runs */
}

uint32_t spc_process_busy_threads(void) {
    uint64_t first = 0, second = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) {
        return count_without_proc() - 1; /* of more than one, one may be busy */
    }
    uint32_t count = look_at_threads(tasks, &first);
    /* One thread may have woken another before it was looked at, and after that one was. If all wait twice, and none
     * has begun to wait between, all have waited at one moment. */
    if (count == 0) {
        count = look_at_threads(tasks, &second);
        count = count == 0 && first != second ? 1 : count;
    }
    closedir(tasks);
    return count;
}

/* Timers of timer_create(). The list is there only if the kernel was built with it. */
static bool has_posix_timer(void) {
    char first;
    int list = open("/proc/self/timers", O_RDONLY | O_CLOEXEC);
    if (list < 0) {
        return false;
    }
    bool found = read(list, &first, 1) == 1;
    close(list);
    return found;
}

void spc_process_rename(const char *name) {
    (void)prctl(PR_SET_NAME, name, 0, 0, 0);
}

static int close_at_once(int first, int last) {
    return (int)syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0);
}

#else

int spc_process_watch(int32_t process, int *descriptor) {
    (void)process;
    (void)descriptor;
    return SPC_ESYSTEM;
}

int spc_process_die_with_parent(int number) {
    (void)number;
    return SPC_ESYSTEM;
}

void spc_process_adopt_orphans(void) {
}

uint32_t spc_process_children(int32_t *processes, uint32_t room, const char *spared) {
    (void)processes;
    (void)room;
    (void)spared;
    return 0;
}

uint32_t spc_process_threads(void) {
    return 0;
}

uint32_t spc_process_busy_threads(void) {
    return 0;
}

static bool has_posix_timer(void) {
    return false;
}

void spc_process_rename(const char *name) {
    (void)name;
}

static int close_at_once(int first, int last) {
    (void)first;
    (void)last;
    return -1;
}

#endif

bool spc_process_has_timer(void) {
    static const int kinds[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct itimerval timer;
        if (getitimer(kinds[i], &timer) == 0 && (timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0)) {
            return true;
        }
    }
    return has_posix_timer();
}

static bool is_of_a_crash(int number) {
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGABRT;
}

uint64_t spc_process_handled_signals(void) {
    uint64_t handled = 0;
    for (int number = 1; number <= 64 && number < NSIG; number++) {
        struct sigaction action;
        if (is_of_a_crash(number) || sigaction(number, NULL, &action) != 0) {
            continue;
        }
        bool is_default = action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN;
        handled |= (action.sa_flags & SA_SIGINFO) != 0 || !is_default ? UINT64_C(1) << (number - 1) : 0;
    }
    return handled;
}

void spc_process_start_clean(void) {
    sigset_t none;
    for (int number = 1; number < NSIG; number++) {
        struct sigaction found, action = {.sa_handler = SIG_DFL};
        bool is_meant = number == SIGHUP || number == SIGINT || number == SIGQUIT;
        if (!is_meant && sigaction(number, NULL, &found) == 0 && found.sa_handler == SIG_IGN) {
            (void)sigaction(number, &action, NULL);
        }
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void spc_process_close_range(int first, int last) {
    if (first > last || close_at_once(first, last) == 0) {
        return;
    }
    long limit = sysconf(_SC_OPEN_MAX);
    limit = limit > 0 && limit < 65536 ? limit : 65536; /* an unlimited number would take minutes */
    for (int number = first; number <= last && number < limit; number++) {
        (void)close(number);
    }
}

void spc_process_close_all_but(int *kept, uint32_t count) {
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

/* ---- the end of children */

#define TRACKER "resource_tracker import main" /* in its arguments: multiprocessing's, or joblib's */
#define TRACKER_NS UINT64_C(2000000000) /* for them to clean up */
#define TRACKER_LOOK_MS 2

static void kill_children(uint64_t patience_ns, const char *spared) {
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

void spc_process_end_children(uint64_t patience_ns) {
    int32_t processes[64];
    kill_children(patience_ns, TRACKER);
    uint64_t until_ns = spc_clock_now_ns() + TRACKER_NS;
    while (spc_process_children(processes, 64, NULL) > spc_process_children(processes, 64, TRACKER)
           && spc_clock_now_ns() < until_ns) {
        (void)poll(NULL, 0, TRACKER_LOOK_MS);
    }
    kill_children(patience_ns, NULL);
}

/* ---- names of signals ---- */

#define SPC_SIGNALS(X) \
    X(HUP)             \
    X(INT)             \
    X(QUIT)            \
    X(ILL)             \
    X(TRAP)            \
    X(ABRT)            \
    X(BUS)             \
    X(FPE)             \
    X(KILL)            \
    X(USR1)            \
    X(SEGV)            \
    X(USR2)            \
    X(PIPE)            \
    X(ALRM)            \
    X(TERM)            \
    X(CHLD)            \
    X(CONT)            \
    X(STOP)            \
    X(TSTP)            \
    X(TTIN)            \
    X(TTOU)            \
    X(XCPU)            \
    X(XFSZ)            \
    X(VTALRM)          \
    X(PROF)            \
    X(SYS)

void spc_process_write_report(int descriptor, const void *frame, uint64_t bytes) {
    sigset_t pipe_signal, before, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    if (write(descriptor, frame, bytes) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE)) {
        int number;
        sigpending(&pending);
        if (sigismember(&pending, SIGPIPE)) {
            (void)sigwait(&pipe_signal, &number);
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

const char *spc_process_signal_name(int number, char *buffer, uint64_t bytes) {
    switch (number) {
#define SPC_SIGNAL_CASE(name) \
    case SIG##name:           \
        return "SIG" #name;
        SPC_SIGNALS(SPC_SIGNAL_CASE)
#undef SPC_SIGNAL_CASE
    default:
        snprintf(buffer, bytes, "signal %d", number);
        return buffer;
    }
}
