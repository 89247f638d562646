/* SPDX-License-Identifier: MIT */
/* What the agent hears, and what it makes of it: signals, reports, ends; when the run is to end, and how. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/spc_fork_private.h"
#include "spc_comm.h"

#define SPC_SETTLE_NS \
    500000000 /* in which a lost node may turn out to be the consequence of another failure */
#define SPC_DUE_NS UINT64_C(10000000000) /* the same where it can be seen that one may come */

/* ---- ending the run */

static void signal_node(const spc_fork_agent_t *agent, uint32_t rank, int number) {
    pid_t process = agent->processes[rank];
    if (process == 0 || (rank == 0 && (agent->zero_is_over || getppid() != process))) {
        return;
    }
#if SPC_HAS_SIGQUEUE
    if (rank == 0 && number == SIGTERM) {
        union sigval value = {.sival_ptr = agent->fork}; /* which lies there in node 0, too */
        sigqueue(process, number, value);
        return;
    }
#endif
    kill(process, number);
}

static void signal_nodes(const spc_fork_agent_t *agent, int number, int32_t spared) {
    for (uint32_t rank = 0; rank < agent->fork->nodes; rank++) {
        if ((int32_t)rank != spared) {
            signal_node(agent, rank, number);
        }
    }
}

void spc_fork_end_run(spc_fork_agent_t *agent, int number, int32_t spared) {
    agent->is_ending = true;
    agent->failures.closed = true;
    agent->settle_ns = agent->told_ns = agent->look_ns = SPC_NO_DEADLINE;
    agent->kill_ns = spc_clock_now_ns() + agent->fork->grace_ns;
    if (number != 0) {
        signal_nodes(agent, number, spared);
    }
}

/* Was the first failure the answer to a signal that everybody got? Then nobody is told once more. */
static bool is_answer(const spc_fork_agent_t *agent) {
    const spc_failure_t *first = &agent->failures.node[agent->failures.first];
    bool by_signal = first->ended && WIFSIGNALED(first->status) && WTERMSIG(first->status) == agent->heard;
    return agent->heard != 0
           && (by_signal || (agent->heard == SIGINT && first->kind == SPC_REPORT_INTERRUPTED));
}

static void consider(spc_fork_agent_t *agent) {
    if (agent->is_ending) {
        return;
    }
    if (agent->failures.first >= 0) {
        bool answer = is_answer(agent);
        agent->signal = answer ? agent->heard : 0;
        spc_fork_end_run(agent, answer ? 0 : SIGTERM, agent->failures.first);
    } else if (agent->failures.first_lost >= 0 && agent->settle_ns == SPC_NO_DEADLINE) {
        agent->settle_ns = spc_clock_now_ns() + SPC_SETTLE_NS;
        agent->due_ns = spc_clock_now_ns() + SPC_DUE_NS;
    }
}

/* May a node yet be to blame for what others have reported? It has told them that it is finished, and its process has
 * not ended; or it has told them of an error, which is still alive and not reported. */
static bool is_failure_due(const spc_fork_agent_t *agent) {
    const spc_status_shared_t *status = spc_segment_part(&agent->fork->segment, SPC_REGION_STATUS, 0);
    for (uint32_t rank = 0; rank < agent->fork->nodes; rank++) {
        bool is_over = agent->processes[rank] == 0 || (rank == 0 && agent->zero_is_over);
        if (!is_over && !agent->failures.node[rank].known
            && (spc_status_state(status, rank) == SPC_NODE_FINISHED || spc_status_has_raised(status, rank))) {
            return true;
        }
    }
    return false;
}

static void settle(spc_fork_agent_t *agent, uint64_t now_ns) {
    if (now_ns < agent->due_ns && is_failure_due(agent)) {
        agent->settle_ns = now_ns + SPC_SETTLE_NS;
        return;
    }
    agent->settle_ns = SPC_NO_DEADLINE;
    spc_fork_hear_reports(agent); /* one may have come just before its error was dead */
    if (!agent->is_ending) {
        spc_failures_settle(&agent->failures);
        consider(agent);
    }
}

void spc_fork_obey_deadlines(spc_fork_agent_t *agent) {
    uint64_t now_ns = spc_clock_now_ns();
    if (now_ns >= agent->settle_ns) {
        settle(agent, now_ns);
    }
    if (now_ns >= agent->told_ns) {
        agent->signal = SIGTERM;
        spc_fork_end_run(agent, SIGTERM, -1);
    }
    if (now_ns >= agent->kill_ns) {
        agent->kill_ns = SPC_NO_DEADLINE;
        signal_nodes(agent, SIGKILL, -1);
    }
}

/* ---- what is heard */

/* `is_gone`: node 0 may have said how it will end while its process, which waits for the agent, still runs. */
static void mark(const spc_fork_agent_t *agent, uint32_t rank, int status, bool is_gone) {
    int32_t reason = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    bool well = status == 0 && !agent->failures.node[rank].known;
    (is_gone ? spc_comm_mark_ended : spc_comm_mark_ending)(&agent->fork->segment, rank,
                                                           well ? SPC_NODE_FINISHED : SPC_NODE_DIED, reason);
}

static void zero_ended(spc_fork_agent_t *agent, int status) {
    agent->zero_is_over = true;
    mark(agent, 0, status, false);
    spc_failures_ended(&agent->failures, 0, status);
    consider(agent);
}

static void obey_report(spc_fork_agent_t *agent, uint32_t rank, spc_report_kind_t kind, const char *payload,
                        uint32_t bytes) {
    char number[8] = {0};
    memcpy(number, payload, bytes < 7 ? bytes : 7);
    if (kind == SPC_REPORT_OVER) {
        zero_ended(agent, (atoi(number) & 0xff) << 8);
        return;
    }
    if (kind == SPC_REPORT_STOPPED) {
        agent->zero_is_over = true;
        spc_comm_mark_ending(&agent->fork->segment, 0, SPC_NODE_DIED, -SIGTERM);
        if (agent->failures.node[0].known) {
            return; /* it had failed before, and that counts more */
        }
    }
    spc_failures_reported(&agent->failures, rank, kind, payload, bytes);
    if (kind != SPC_REPORT_TEXT) {
        int32_t reason = kind == SPC_REPORT_EXITING ? atoi(number) : 1;
        spc_comm_mark_ending(&agent->fork->segment, rank, SPC_NODE_DIED, reason);
        consider(agent);
    }
}

static void understand_reports(spc_fork_agent_t *agent) {
    uint32_t at = 0;
    while (agent->report_bytes - at >= SPC_REPORT_HEADER) {
        const unsigned char *frame = agent->reports + at;
        uint32_t rank =
            frame[0] | (uint32_t)frame[1] << 8 | (uint32_t)frame[2] << 16 | (uint32_t)frame[3] << 24;
        uint32_t bytes = frame[5] | (uint32_t)frame[6] << 8;
        if (bytes > SPC_REPORT_BYTES - SPC_REPORT_HEADER || rank >= agent->fork->nodes) {
            agent->report_bytes = at = 0; /* somebody wrote into a descriptor that is not its own */
            return;
        }
        if (agent->report_bytes - at < SPC_REPORT_HEADER + bytes) {
            break;
        }
        obey_report(agent, rank, (spc_report_kind_t)frame[4], (const char *)frame + SPC_REPORT_HEADER, bytes);
        at += SPC_REPORT_HEADER + bytes;
    }
    agent->report_bytes -= at;
    memmove(agent->reports, agent->reports + at, agent->report_bytes);
}

void spc_fork_hear_reports(spc_fork_agent_t *agent) {
    while (agent->fork->report >= 0) {
        uint32_t room = (uint32_t)sizeof agent->reports - agent->report_bytes;
        ssize_t got = read(agent->fork->report, agent->reports + agent->report_bytes, room);
        if (got == 0) {
            close(agent->fork->report);
            agent->fork->report = -1;
        }
        if (got <= 0) {
            return;
        }
        agent->report_bytes += (uint32_t)got;
        understand_reports(agent);
    }
}

static void hear_signal(spc_fork_agent_t *agent, int number) {
    if (number == SIGCHLD) {
        return;
    }
    if (agent->is_ending) { /* the second time: do not wait any longer */
        agent->kill_ns = 0;
    } else if (number == SIGTERM && agent->told_ns == SPC_NO_DEADLINE) {
        /* Sent to the whole group, it has reached the nodes. If none ends of it, it was meant for the agent alone. */
        agent->told_ns = spc_clock_now_ns() + SPC_SETTLE_NS;
    }
    agent->heard = number;
}

void spc_fork_hear_signals(spc_fork_agent_t *agent) {
    char numbers[64];
    ssize_t got;
    while ((got = read(SPC_WAKE_READ, numbers, sizeof numbers)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            hear_signal(agent, numbers[i]);
        }
    }
}

void spc_fork_reap(spc_fork_agent_t *agent) {
    int status;
    pid_t process;
    while ((process = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t rank = 1; rank < agent->fork->nodes; rank++) {
            if (agent->processes[rank] == process) {
                agent->processes[rank] = 0;
                spc_fork_hear_reports(agent); /* what it had to say comes before its end */
                mark(agent, rank, status, true);
                spc_failures_ended(&agent->failures, rank, status);
                consider(agent);
            }
        }
    }
}

static void zero_is_gone(spc_fork_agent_t *agent) {
    const spc_status_shared_t *status = spc_segment_part(&agent->fork->segment, SPC_REGION_STATUS, 0);
    spc_fork_hear_reports(agent);
    agent->processes[0] = 0;
    bool finished = spc_status_state(status, 0) == SPC_NODE_FINISHED && !agent->zero_is_over;
    agent->zero_is_over = true;
    spc_comm_mark_ended(&agent->fork->segment, 0, SPC_NODE_DIED, 0);
    if (!finished) {
        spc_failures_vanished(&agent->failures, 0);
        consider(agent);
    }
}

void spc_fork_look_for_zero(spc_fork_agent_t *agent) {
    if (agent->processes[0] != 0 && getppid() != agent->processes[0]) {
        zero_is_gone(agent);
    }
}
