/* SPDX-License-Identifier: MIT */
/* Looks at what nodes wait for, and ends the run when some are proven to wait for ever. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <stdlib.h>

#include "agent/spc_fork_private.h"
#include "base/spc_clock.h"
#include "base/spc_error.h"
#include "diagnose/spc_verdict.h"

#define LOOK_NS 60000000 /* between two looks; two of them make a proof */

void spc_fork_start_looking(spc_fork_agent_t *agent) {
    if (spc_deadlock_create(&agent->fork->segment, &agent->deadlock) == SPC_OK) {
        agent->look_ns = spc_clock_now_ns() + LOOK_NS;
    }
}

/* Before anybody is told to end: the boards say it now, and no longer then. */
static bool write_verdict(spc_fork_agent_t *agent) {
    FILE *out = open_memstream(&agent->verdict, &agent->verdict_bytes);
    int status = out != NULL ? spc_verdict_write(&agent->fork->segment, agent->deadlock, out) : SPC_ENOMEM;
    bool failed = out == NULL || fclose(out) != 0 || status != SPC_OK;
    if (failed) { /* the nodes wait on: the next look finds them again */
        free(agent->verdict);
        agent->verdict = NULL;
    }
    return !failed;
}

void spc_fork_look_for_deadlock(spc_fork_agent_t *agent) {
    uint64_t now_ns = spc_clock_now_ns();
    if (now_ns < agent->look_ns) { /* also when the run ends already */
        return;
    }
    agent->look_ns = now_ns + LOOK_NS;
    if (spc_deadlock_look(agent->deadlock) != 0 && write_verdict(agent)) {
        spc_fork_end_run(agent, SIGTERM, -1);
    }
}
