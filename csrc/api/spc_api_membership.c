/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/spc_api_private.h"

#define VARIABLE \
    "SPCOMM_NODE" /* "fd:rank:size:device:inode:launcher_pid:group"; the last one may be missing */
#define REPORT_VARIABLE "SPCOMM_REPORT"
/* The LD_LIBRARY_PATH from before the launcher added the folder of the MPI library. */
#define LOADER_VARIABLE "LD_LIBRARY_PATH"
#define RESTORED_VARIABLE "SPCOMM_LIBRARY_PATH"
#define JOINED_VARIABLE "SPCOMM_JOINED" /* "pid:parent_pid:rank:size" of a process that is a node */
#define JOINED_BYTES 64
#define FIELDS 7
#define FIELDS_MIN 6

enum { PID, PARENT, JOINED_RANK, JOINED_SIZE, JOINED_FIELDS };
enum { FD, RANK, SIZE, DEVICE, INODE, LAUNCHER, GROUP };

/* Parses decimal numbers with colons between them; returns how many, or 0 if the text is anything else. */
static int parse(const char *text, unsigned long long *fields) {
    int count = 0;
    for (;;) {
        char *end;
        if (count == FIELDS || *text < '0' || *text > '9') {
            return 0;
        }
        fields[count++] = strtoull(text, &end, 10);
        if (*end == '\0') {
            return count;
        }
        if (*end != ':') {
            return 0;
        }
        text = end + 1;
    }
}

/* A program between the launcher and this one may have closed the descriptor, or opened another file under its
 * number. */
static bool is_segment(const unsigned long long *fields) {
    struct stat found;
    return fields[FD] <= INT32_MAX && fstat((int)fields[FD], &found) == 0
           && (unsigned long long)found.st_dev == fields[DEVICE]
           && (unsigned long long)found.st_ino == fields[INODE];
}

static void close_on_exec(int descriptor) {
    int flags = fcntl(descriptor, F_GETFD);
    if (flags >= 0) {
        (void)fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC);
    }
}

/* The pipe where a failing node reports its reason; -1: none. It must be a pipe, as the number of a closed descriptor
 * may stand for another file by now. */
static int find_report(const char *text) {
    unsigned long long fields[FIELDS];
    struct stat found;
    if (text == NULL || parse(text, fields) != 1 || fields[0] > INT32_MAX
        || fstat((int)fields[0], &found) != 0 || !S_ISFIFO(found.st_mode)) {
        return -1;
    }
    close_on_exec((int)fields[0]);
    return (int)fields[0];
}

/* The loader has read its path; what this node starts gets the path that the user gave. */
static void restore_loader_path(void) {
    const char *before = getenv(RESTORED_VARIABLE);
    if (before == NULL) {
        return;
    }
    if (*before != '\0') {
        (void)setenv(LOADER_VARIABLE, before, 1);
    } else {
        (void)unsetenv(LOADER_VARIABLE);
    }
    (void)unsetenv(RESTORED_VARIABLE);
}

bool spc_api_membership(spc_api_membership_t *member) {
    const char *text = getenv(VARIABLE);
    unsigned long long fields[FIELDS] = {0};
    int count = text != NULL ? parse(text, fields) : 0;
    bool is_node = count >= FIELDS_MIN && fields[SIZE] <= SPC_NODES_MAX && fields[RANK] < fields[SIZE]
                   && fields[GROUP] <= INT32_MAX && is_segment(fields);
    member->report = is_node ? find_report(getenv(REPORT_VARIABLE)) : -1;
    unsetenv(VARIABLE);
    unsetenv(REPORT_VARIABLE);
    restore_loader_path();
    if (!is_node) {
        return false;
    }
    close_on_exec((int)fields[FD]);
    member->descriptor = (int)fields[FD];
    member->rank = (uint32_t)fields[RANK];
    member->size = (uint32_t)fields[SIZE];
    member->group = (int32_t)fields[GROUP];
    return true;
}

int spc_api_check_executed(void) {
    const char *text = getenv(JOINED_VARIABLE);
    unsigned long long fields[FIELDS];
    if (text == NULL || parse(text, fields) != JOINED_FIELDS || fields[PID] != (unsigned long long)getpid()
        || fields[PARENT] != (unsigned long long)getppid()) {
        return SPC_OK;
    }
    return spc_api_refuse(SPC_EINVAL,
                          "spcomm_startup(): this process was node %llu of %llu until it executed this "
                          "program in its own place, "
                          "and this program is no node; a node may execute a program before its first "
                          "startup, under spcomm run "
                          "with --start exec; later, start it beside the node (fork, then exec)",
                          fields[JOINED_RANK], fields[JOINED_SIZE]);
}

void spc_api_mark_joined(uint32_t rank, uint32_t size) {
    char text[JOINED_BYTES];
    (void)snprintf(text, sizeof(text), "%ld:%ld:%u:%u", (long)getpid(), (long)getppid(), rank, size);
    (void)setenv(JOINED_VARIABLE, text,
                 1); /* without memory for it, the executed program is a run of its own */
}
