/* SPDX-License-Identifier: MIT */
/* Other launchers: which process of theirs says that each is a run of one node, and what. */
#include "check.h"

#include <stdlib.h>

#include "fork/spc_launcher.h"

static const char *const variables[] = {
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",  "PMI_SIZE",
    "SLURM_PROCID",         "SLURM_STEP_NUM_TASKS", "PMIX_RANK", "SLURM_NTASKS",
};

static void forget(void) {
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        CHECK_EQ(unsetenv(variables[i]), 0);
    }
}

static bool said(char *note, const char *rank_variable, const char *rank, const char *size_variable,
                 const char *size) {
    forget();
    CHECK_EQ(setenv(rank_variable, rank, 1), 0);
    if (size_variable != NULL) {
        CHECK_EQ(setenv(size_variable, size, 1), 0);
    }
    return spc_launcher_note("./x 1", note, SPC_LAUNCHER_NOTE_BYTES);
}

TEST(rank_0_says_it) {
    char note[SPC_LAUNCHER_NOTE_BYTES];
    for (int i = 0; i < 6; i += 2) {
        char expected[SPC_LAUNCHER_NOTE_BYTES];
        snprintf(expected, sizeof expected,
                 "4 processes of another launcher (%s=4) are 4 runs of one node each; one run of 4 nodes: "
                 "spcomm run -n 4 ./x 1",
                 variables[i + 1]);
        CHECK(said(note, variables[i], "0", variables[i + 1], "4"));
        CHECK_STR(note, expected);
        CHECK(!said(note, variables[i], "3", variables[i + 1], "4"));
        CHECK(!said(note, variables[i], "0", variables[i + 1], "1"));
    }
}

/* Rank 0 cannot know whether there is another. */
TEST(without_a_number_rank_1_says_it) {
    char note[SPC_LAUNCHER_NOTE_BYTES];
    CHECK(said(note, "PMIX_RANK", "1", NULL, NULL));
    CHECK(strstr(note, "several processes of another launcher (PMIX_RANK=1)") != NULL
          && strstr(note, "spcomm run -n N ./x 1") != NULL);
    CHECK(!said(note, "PMIX_RANK", "0", NULL, NULL));
}

TEST(others_say_nothing) {
    char note[SPC_LAUNCHER_NOTE_BYTES];
    forget();
    CHECK(!spc_launcher_note("./x", note, sizeof note));
    CHECK(!said(note, "SLURM_PROCID", "0", "SLURM_NTASKS", "4")); /* a batch script */
    CHECK(!said(note, "PMI_RANK", "zero", "PMI_SIZE", "4"));
    CHECK(!said(note, "PMI_RANK", "0", "PMI_SIZE", "4x"));
    CHECK(!said(note, "PMI_RANK", "", "PMI_SIZE", "4"));
}

TEST_MAIN()
