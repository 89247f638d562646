/* SPDX-License-Identifier: MIT */
/* Other launchers: the place that they give to a process, and why there is none. */
#include "check.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/spc_error.h"
#include "fork/spc_launcher.h"

static const char *const variables[] = {
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMIX_NAMESPACE",
    "PMIX_RANK",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_LOCALID",
    "SLURM_GTIDS",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_NTASKS",
    "SPCOMM_ALONE",
    "SPCOMM_PLACE",
};

static spc_launcher_place_t place;
static char note[SPC_LAUNCHER_NOTE_BYTES];

/* The place of a process with these variables: "NAME=VALUE NAME=VALUE". */
static int find(const char *settings) {
    char text[512], *rest = text;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        CHECK_EQ(unsetenv(variables[i]), 0);
    }
    (void)snprintf(text, sizeof text, "%s", settings);
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        char *value = strchr(word, '=');
        CHECK(value != NULL);
        *value = '\0';
        CHECK_EQ(setenv(word, value + 1, 1), 0);
    }
    return spc_launcher_find(&place, "./x 1", note, sizeof note);
}

static void expect(uint32_t rank, uint32_t size, uint32_t local_rank, uint32_t local_size,
                   const char *launcher, const char *job) {
    CHECK_EQ(place.rank, rank);
    CHECK_EQ(place.size, size);
    CHECK_EQ(place.local_rank, local_rank);
    CHECK_EQ(place.local_size, local_size);
    CHECK_STR(place.launcher, launcher);
    CHECK(strlen(place.name) > strlen(job));
    CHECK_STR(place.name + strlen(place.name) - strlen(job), job);
}

#define OPEN_MPI                                                                                           \
    "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=2 PMIX_NAMESPACE=prterun@7 " \
    "PMIX_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE="
#define HYDRA "PMI_RANK=1 PMI_SIZE=3 MPI_LOCALRANKID=1 MPI_LOCALNRANKS="
#define SLURM \
    "SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=7 SLURM_LOCALID=0 SLURM_JOB_ID=12 SLURM_STEP_ID=3 SLURM_GTIDS=5,6"

TEST(each_launcher_gives_a_place) {
    char parent[24];
    (void)snprintf(parent, sizeof parent, "-%ld", (long)getppid());
    CHECK_OK(find(OPEN_MPI "4"));
    expect(2, 4, 2, 4, "mpiexec", "-prterun@7");
    CHECK_OK(find(HYDRA "3"));
    expect(1, 3, 1, 3, "mpiexec", parent);
    CHECK_OK(find(SLURM));
    expect(5, 7, 0, 2, "srun", "-12.3");
    CHECK(place.is_slurm);
    CHECK_OK(find("PMI_RANK=0 PMI_SIZE=1 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1"));
    expect(0, 1, 0, 1, "mpiexec", parent);
}

/* From inside nobody sees which one starts the processes of the other; those of MPI are the nearer ones. */
TEST(a_launcher_that_uses_slurm_counts) {
    CHECK_OK(find(SLURM " " HYDRA "3"));
    expect(1, 3, 1, 3, "mpiexec", "");
    CHECK_OK(find(SLURM " " OPEN_MPI "4"));
    expect(2, 4, 2, 4, "mpiexec", "-prterun@7");
    CHECK_OK(find(SLURM " PMI_RANK=5 PMI_SIZE=7")); /* that of Slurm itself */
    expect(5, 7, 0, 2, "srun", "-12.3");
}

static void refused(const char *settings, const char *why) {
    CHECK_EQ(find(settings), SPC_EINVAL);
    CHECK(strstr(note, why) != NULL);
    CHECK(strstr(note, " cannot be one run: ") != NULL && strstr(note, "SPCOMM_ALONE=1") != NULL);
}

TEST(what_cannot_be_one_run_says_why) {
    refused(OPEN_MPI "3", "the 4 processes of mpiexec");
    refused(OPEN_MPI "3", "several machines, where that takes `srun` of Slurm; `spcomm run -n 4 ./x 1`");
    refused(HYDRA "1", "does not set the number of processes on this machine"); /* fewer than its number */
    refused("PMI_RANK=0 PMI_SIZE=2", "does not set the number of processes on this machine");
    refused(SLURM ",x", "does not set SLURM_LOCALID and SLURM_GTIDS");
    refused("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_GTIDS=0,1", "does not set SLURM_LOCALID");
    refused("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1025 SLURM_LOCALID=0 SLURM_GTIDS=0", "at most 1024 nodes");
}

static void alone(const char *settings, const char *expected, uint32_t size) {
    CHECK_EQ(find(settings), SPC_EAGAIN);
    CHECK_STR(note, expected);
    CHECK_EQ(place.size, size);
}

TEST(others_are_alone) {
    alone("SLURM_NTASKS=4 SLURM_PROCID=0", "", 0); /* a batch script */
    alone("PMI_RANK=zero PMI_SIZE=4", "", 0);
    alone("PMI_RANK=0 PMI_SIZE=4x", "", 0);
    alone("PMI_RANK=0 PMI_SIZE=", "", 0);
    alone("PMI_RANK=0 PMI_SIZE=1", "", 1);
    alone("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0 SLURM_GTIDS=0", "", 1); /* perhaps a shell */
    alone(HYDRA "3 SPCOMM_ALONE=1", "", 1);
    CHECK_OK(find(HYDRA "3 SPCOMM_ALONE=0"));
}

/* Rank 0 cannot know whether there is another. */
TEST(without_a_number_rank_1_says_it) {
    alone("PMIX_RANK=0", "", 0);
    alone(
        "PMIX_RANK=1",
        "several processes of another launcher (PMIX_RANK=1) are runs of one node each; one run of N nodes: "
        "spcomm run -n N ./x 1",
        0);
}

TEST(what_a_process_starts_has_no_place) {
    CHECK_OK(find(HYDRA "3"));
    spc_launcher_record();
    CHECK_EQ(spc_launcher_find(&place, "./x", note, sizeof note), SPC_EAGAIN);
    CHECK_EQ(place.size, 0);
    CHECK_EQ(setenv("PMI_RANK", "2", 1), 0); /* another launcher has started it */
    CHECK_EQ(setenv("MPI_LOCALRANKID", "2", 1), 0);
    CHECK_OK(spc_launcher_find(&place, "./x", note, sizeof note));
}

TEST_MAIN()
