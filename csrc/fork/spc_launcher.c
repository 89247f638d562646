/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/spc_error.h"
#include "segment/spc_config.h"

#define ALONE_VARIABLE "SPCOMM_ALONE"
#define PLACE_VARIABLE "SPCOMM_PLACE" /* "rank:name" that this process, or one before it, has */
#define JOB_BYTES 64
#define ANCESTORS 64

/* The variables of a launcher. `local_ranks` lists the ranks of the processes on this machine. */
typedef struct launcher {
    const char *command, *rank, *size, *local_rank, *local_size, *local_ranks;
} launcher_t;

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

static const char *text_of(const char *variable) {
    const char *text = getenv(variable);
    return text != NULL ? text : "";
}

/* In the order in which they are believed: a launcher that starts its processes through Slurm's is the one that counts.
 * Slurm's own PMI is no launcher. SLURM_NTASKS would not do: it is also set in a batch script, which runs once. */
static const launcher_t *find_launcher(void) {
    static const launcher_t launchers[] = {
        {"mpiexec", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
         "OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
        {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL},
        {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, "SLURM_GTIDS"},
    };
    const launcher_t *found = NULL;
    for (uint32_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        bool is_there = number(launchers[i].rank) >= 0 && number(launchers[i].size) >= 0;
        bool is_same = found != NULL && number(found->local_rank) < 0
                       && number(found->rank) == number(launchers[i].rank)
                       && number(found->size) == number(launchers[i].size);
        found = is_there && (found == NULL || is_same) ? &launchers[i] : found;
    }
    return found;
}

/* The number of whole numbers with commas between them; -1: something else. */
static long count_listed(const char *text) {
    long count = *text >= '0' && *text <= '9' ? 1 : -1;
    for (; *text != '\0' && count > 0; text++) {
        count = *text == ',' ? count + 1 : *text >= '0' && *text <= '9' ? count : -1;
    }
    return count;
}

/* The parent of a process, and its name; 0: unknown. */
static long parent_of(long process, char *name, size_t bytes) {
    char path[40], text[256];
    long parent = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = fopen(path, "re");
    const char *begin = file != NULL && fgets(text, sizeof text, file) != NULL ? strchr(text, '(') : NULL;
    const char *end = begin != NULL ? strrchr(text, ')') : NULL; /* names may have any character */
    name[0] = '\0';
    if (end != NULL && sscanf(end, ") %*c %ld", &parent) == 1) {
        (void)snprintf(name, bytes, "%.*s", (int)(end - begin - 1), begin + 1);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return parent;
}

/* The process of Hydra that has started those of this machine, which has no variable for its job. Shells may lie
 * between. */
static long hydra(void) {
    char name[32];
    long process = (long)getppid();
    for (int level = 0; level < ANCESTORS && process > 1; level++) {
        const long parent = parent_of(process, name, sizeof name);
        if (strcmp(name, "hydra_pmi_proxy") == 0) {
            return process;
        }
        process = parent;
    }
    return (long)getppid();
}

static void write_job(const launcher_t *launcher, bool is_slurm, char *job) {
    if (is_slurm) {
        (void)snprintf(job, JOB_BYTES, "%.20s.%.20s", text_of("SLURM_JOB_ID"), text_of("SLURM_STEP_ID"));
    } else if (launcher->rank[0] == 'O') {
        (void)snprintf(job, JOB_BYTES, "%.*s", JOB_BYTES - 1, text_of("PMIX_NAMESPACE"));
    } else {
        (void)snprintf(job, JOB_BYTES, "%ld", hydra());
    }
}

static int refuse(const launcher_t *launcher, char *note, uint64_t note_bytes, const char *program,
                  const char *why) {
    const long size = number(launcher->size);
    (void)snprintf(note, note_bytes,
                   "the %ld processes of %s cannot be one run: %s; `spcomm run -n %ld %s` starts one, and "
                   "SPCOMM_ALONE=1 makes each process a run of its own",
                   size, launcher->command, why, size, program);
    return SPC_EINVAL;
}

/* True if there is nothing to join; a launcher that does not set a number of processes is recognized by its rank 1. */
static bool is_alone(const launcher_t *launcher, const char *program, char *note, uint64_t note_bytes) {
    const char *alone = text_of(ALONE_VARIABLE);
    note[0] = '\0';
    if (*alone != '\0' && strcmp(alone, "0") != 0) {
        return true;
    }
    if (launcher == NULL && number("PMIX_RANK") == 1) {
        (void)snprintf(
            note, note_bytes,
            "several processes of another launcher (PMIX_RANK=1) are runs of one node each; one run of "
            "N nodes: spcomm run -n N %s",
            program);
    }
    /* One process of `srun` may be a shell (`--pty`), which starts one program after the other. */
    const bool is_one_of_mpiexec = launcher != NULL && number(launcher->local_size) == 1;
    return launcher == NULL || number(launcher->size) < (is_one_of_mpiexec ? 1 : 2);
}

static void write_place(const spc_launcher_place_t *place, char *text, uint64_t bytes) {
    (void)snprintf(text, bytes, "%u:%s", place->rank, place->name);
}

static bool is_recorded(const spc_launcher_place_t *place) {
    char text[SPC_LAUNCHER_NAME_BYTES + 16];
    write_place(place, text, sizeof text);
    return strcmp(text, text_of(PLACE_VARIABLE)) == 0;
}

static void fill(spc_launcher_place_t *place, const launcher_t *launcher) {
    char job[JOB_BYTES];
    struct utsname machine;
    const long local_size = launcher->local_size != NULL ? number(launcher->local_size)
                                                         : count_listed(text_of(launcher->local_ranks));
    const long local_rank = number(launcher->local_rank);
    *place =
        (spc_launcher_place_t){.rank = (uint32_t)number(launcher->rank),
                               .size = (uint32_t)number(launcher->size),
                               .local_rank = local_rank >= 0 ? (uint32_t)local_rank : 0,
                               .local_size = local_rank >= 0 && local_size > 0 ? (uint32_t)local_size : 0,
                               .is_slurm = launcher->local_ranks != NULL,
                               .launcher = launcher->command};
    write_job(launcher, place->is_slurm, job);
    (void)uname(&machine);
    (void)snprintf(place->name, sizeof place->name, "spcomm-%ld-%.16s-%.48s", (long)geteuid(),
                   machine.nodename, job);
}

int spc_launcher_find(spc_launcher_place_t *place, const char *program, char *note, uint64_t note_bytes) {
    const launcher_t *launcher = find_launcher();
    *place = (spc_launcher_place_t){.size = launcher != NULL};
    if (is_alone(launcher, program, note, note_bytes)) {
        return SPC_EAGAIN;
    }
    fill(place, launcher);
    if (is_recorded(place)) {
        place->size = 0;
        return SPC_EAGAIN;
    }
    if (place->size > SPC_NODES_MAX) {
        return refuse(launcher, note, note_bytes, program, "a run has at most 1024 nodes");
    }
    if (place->rank >= place->size || place->local_size == 0 || place->local_rank >= place->local_size) {
        return refuse(launcher, note, note_bytes, program,
                      place->is_slurm
                          ? "it does not set SLURM_LOCALID and SLURM_GTIDS"
                          : "it does not set the number of processes on this machine, as mpiexec of "
                            "Open MPI and of MPICH (Hydra) do");
    }
    if (place->local_size < place->size && !place->is_slurm) {
        return refuse(launcher, note, note_bytes, program,
                      "they are on several machines, where that takes `srun` of Slurm");
    }
    return SPC_OK;
}

void spc_launcher_record(void) {
    const launcher_t *launcher = find_launcher();
    if (launcher != NULL) {
        spc_launcher_place_t place;
        char text[SPC_LAUNCHER_NAME_BYTES + 16];
        fill(&place, launcher);
        write_place(&place, text, sizeof text);
        (void)setenv(PLACE_VARIABLE, text, 1); /* without memory for it, what this starts waits in vain */
    }
}
