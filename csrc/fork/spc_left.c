/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_left.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spc_process.h"
#include "diagnose/spc_unmatched.h"

enum { WORDS = 8 }; /* of the command */

static _Noreturn void execute(const spc_left_t *self, const char *ranks) {
    static const char *const usual[] = {"spcomm", "left", NULL};
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

int spc_left_report(const spc_left_t *self, const spc_segment_t *segment, const uint32_t *ranks,
                    uint32_t count) {
    char *text = spc_unmatched_any(segment) ? ranks_text(ranks, count) : NULL;
    if (text == NULL) {
        return 0;
    }
    int status = 0;
    pid_t process = fork();
    if (process == 0) {
        execute(self, text);
    }
    while (process > 0 && waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    free(text);
    return process > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}
