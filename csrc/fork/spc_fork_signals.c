/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_fork_signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

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

void spc_fork_signals_handle(void) {
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

bool spc_fork_signals_hears(int number) {
    struct sigaction found;
    return sigaction(number, NULL, &found) == 0 && found.sa_handler == on_signal;
}
