/* SPDX-License-Identifier: MIT */
/*
 * spc_process: queries to the operating system about processes, beyond POSIX.
 *
 * Linux has all of it; elsewhere each function does nothing, or reports that it does not know, and its caller has
 * another way. All calls concern the calling process, and take effect at once; any thread may call, and only
 * spc_process.c includes the headers.
 */
#ifndef SPC_PROCESS_H
#define SPC_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* A descriptor (close-on-exec) that becomes readable when the process ends: a pidfd. SPC_ESYSTEM if there are none, or
 * no such process; while a process is another's unreaped child or its parent, its id is its own. */
int spc_process_watch(int32_t process, int *descriptor);

/* The kernel sends `number` when the thread that made this process ends. The parent may have ended before: compare its
 * id afterwards. SPC_ESYSTEM if that is unavailable. */
int spc_process_die_with_parent(int number);

/* This process becomes the parent of every descendant whose own parent ends. */
void spc_process_adopt_orphans(void);

/* Children of the calling thread, ended or not; at most `room`. 0 also if unknown. Each one was its child when it was
 * checked, even if /proc belongs to another process-id namespace. Running ones with an argument that contains `spared`
 * (NULL: none) are left out. */
uint32_t spc_process_children(int32_t *processes, uint32_t room, const char *spared);

/* Threads of this process, including the caller, but no joined thread; 0 if unknown. Linux without /proc tells one from
 * several only: these count as two. */
uint32_t spc_process_threads(void);

/* Other threads of this process that may continue by themselves: all except threads that wait without a time limit
 * until another thread of this process wakes them, as idle ones of a pool do. On Linux without /proc all other threads
 * count as one, and UINT32_MAX means unknown; 0 elsewhere. */
uint32_t spc_process_busy_threads(void);

/* Whether a timer of this process is armed, as far as can be known. */
bool spc_process_has_timer(void);

/* 1 << (number - 1) for each signal that runs a handler, other than those of a crash. */
uint64_t spc_process_handled_signals(void);

/* For a process that is about to execute another program: undoes what the caller has blocked or ignored, but for what
 * is ignored on purpose for all children (SIGHUP by nohup, SIGINT and SIGQUIT by a shell in the background). */
void spc_process_start_clean(void);

/* The name that ps and top show for the process. */
void spc_process_rename(const char *name);

/* Closes all descriptors from first to last (INT32_MAX: all above). Works everywhere. */
void spc_process_close_range(int first, int last);

/* The same for all above 2, except these, which it sorts; negative ones count for nothing. */
void spc_process_close_all_but(int *kept, uint32_t count);

/* Kills all children, with those that they leave if this process adopts orphans, and reaps them. Resource trackers of
 * Python come last: each ends by itself once the processes that it serves are gone, and removes the semaphores and
 * shared memory that these have left. It gives up after a time: some cannot be killed (of another user), and a process
 * that keeps forking may always be one step ahead. */
void spc_process_end_children(uint64_t patience_ns);

/* Writes to a pipe. Without a reader nothing happens, and no SIGPIPE comes. A signal handler may call it. */
void spc_process_write_report(int descriptor, const void *frame, uint64_t bytes);

/* "SIGKILL", "signal 40": static text, or put into the buffer. */
const char *spc_process_signal_name(int number, char *buffer, uint64_t bytes);

#endif
