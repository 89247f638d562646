/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_unmatched_report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spc_error.h"
#include "base/spc_process.h"
#include "diagnose/spc_unmatched.h"

enum {
    WORDS = 8,        /* of the command */
    REFUSED = 3,      /* its exit code if warnings are errors; Python's own failures end with 1 or 2 */
    WRITE_MS = 10000, /* for a reader of stderr that is slow */
};

static _Noreturn void execute(const spc_unmatched_report_t *self, const char *ranks) {
    static const char *const usual[] = {"spcomm", "unmatched", NULL};
    const char *const *command = self->command != NULL ? self->command : usual;
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
    if (fcntl(self->descriptor, F_SETFD, 0) == 0) {
        (void)execvp(words[0], (char *const *)words);
        (void)dprintf(
            STDERR_FILENO,
            "spcomm: warning: messages that nobody received, or open barriers; the command %s, which "
            "lists them, is not in PATH\n",
            words[0]);
    }
    _exit(0);
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

static int finish(pid_t process) {
    struct pollfd end = {.fd = -1, .events = POLLIN};
    int status = 0, ready = 1;
    if (spc_process_watch(process, &end.fd) == SPC_OK) {
        do {
            ready = poll(&end, 1, WRITE_MS);
        } while (ready < 0 && errno == EINTR);
        close(end.fd);
    }
    if (ready == 0) {
        kill(process, SIGKILL); /* nobody reads what it writes */
    }
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == REFUSED;
}

int spc_unmatched_report(const spc_unmatched_report_t *self) {
    char *text = spc_unmatched_any(self->segment) ? ranks_text(self->ranks, self->count) : NULL;
    if (text == NULL) {
        return 0;
    }
    pid_t process = fork();
    if (process == 0) {
        execute(self, text);
    }
    free(text);
    return process > 0 ? finish(process) : 0;
}
