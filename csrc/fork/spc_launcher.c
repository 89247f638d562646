/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "fork/spc_launcher.h"

#define LAUNCHERS 4

/* In the order in which they are believed: a launcher that starts its processes through Slurm's is the one that counts.
 * SLURM_NTASKS would not do: it is also set in a batch script, which runs once. */
static const struct {
    const char *rank;
    const char *size; /* NULL: the launcher does not set it */
} launchers[LAUNCHERS] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"PMIX_RANK", NULL},
};

/* The number that a variable holds; -1 if it is not set, or holds anything else. */
static long number(const char *variable) {
    const char *text = variable != NULL ? getenv(variable) : NULL;
    char *end;
    if (text == NULL || *text < '0' || *text > '9') {
        return -1;
    }
    long found = strtol(text, &end, 10);
    return *end == '\0' ? found : -1;
}

bool spc_launcher_note(const char *program, char *note, uint64_t note_bytes) {
    int at = 0;
    while (at < LAUNCHERS
           && (number(launchers[at].rank) < 0
               || (launchers[at].size != NULL && number(launchers[at].size) < 0))) {
        at++;
    }
    note[0] = '\0';
    if (at == LAUNCHERS) {
        return false;
    }
    long rank = number(launchers[at].rank), size = number(launchers[at].size);
    if (launchers[at].size == NULL) {
        (void)snprintf(
            note, note_bytes,
            "several processes of another launcher (%s=%ld) are runs of one node each; one run of N "
            "nodes: spcomm run -n N %s",
            launchers[at].rank, rank, program);
        return rank == 1;
    }
    (void)snprintf(note, note_bytes,
                   "%ld processes of another launcher (%s=%ld) are %ld runs of one node each; one run of %ld "
                   "nodes: spcomm run -n %ld %s",
                   size, launchers[at].size, size, size, size, size, program);
    return rank == 0 && size > 1;
}
