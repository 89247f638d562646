/* SPDX-License-Identifier: MIT */
/*
 * spc_fork_signals: the supervisor's signals, as bytes in a pipe.
 *
 * The pipe lies where other programs have standard input and output: descriptor 0 to read, 1 to write, so that the
 * handler knows it without a variable. The supervisor makes it, before it calls anything here.
 */
#ifndef SPC_FORK_SIGNALS_H
#define SPC_FORK_SIGNALS_H

#include <stdbool.h>

enum { SPC_WAKE_READ = 0, SPC_WAKE_WRITE = 1 };

/* Lets SIGCHLD and the signals that end a program arrive in the pipe. Those that the caller ignores (nohup) stay
 * ignored. Signals that would stop or end the supervisor outside its duties are ignored, too. */
void spc_fork_signals_handle(void);

/* Does this signal arrive in the pipe? */
bool spc_fork_signals_hears(int number);

#endif
