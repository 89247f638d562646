/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/spc_process.h"

#include <stdio.h>
#include <unistd.h>

#include "base/spc_error.h"

#ifdef __linux__
#include <dirent.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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

uint32_t spc_process_children(int32_t *processes, uint32_t room) {
    FILE *list = fopen("/proc/thread-self/children", "re");
    uint32_t count = 0;
    long found;
    while (list != NULL && count < room && fscanf(list, "%ld", &found) == 1) {
        processes[count++] = (int32_t)found;
    }
    if (list != NULL) {
        fclose(list);
    }
    return count;
}

uint32_t spc_process_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) {
        return 0;
    }
    uint32_t count = 0;
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        count += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
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

uint32_t spc_process_children(int32_t *processes, uint32_t room) {
    (void)processes;
    (void)room;
    return 0;
}

uint32_t spc_process_threads(void) {
    return 0;
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
