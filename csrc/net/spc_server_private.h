/* SPDX-License-Identifier: MIT */
/*
 * spc_server_private: the inside of the server, for its files only: spc_server.c (jobs, connections, what other threads
 * ask for), spc_server_port.c (one box's link, and its end), spc_server_run.c (the loop).
 *
 * `lock` covers all of it. The loop has it while it works, and not while it waits or reports. It works most of the
 * time, and would have taken the lock again before anybody else has woken up: so everybody takes `gate` first, and
 * gives it back once the lock is theirs (spc_server_enter): who comes next is next.
 */
#ifndef SPC_SERVER_PRIVATE_H
#define SPC_SERVER_PRIVATE_H

#include <pthread.h>

#include "net/spc_server.h"
#include "net/spc_server_job.h"
#include "net/spc_server_poller.h"

enum { SPC_SERVER_BUFFER_BYTES = 65536 };

typedef struct spc_server_group spc_server_group_t;

/* One box of one job. */
typedef struct spc_server_port {
    spc_server_t *server;
    spc_server_group_t *group;
    uint16_t box;
    spc_link_t *link; /* NULL: the box is dead */
    int descriptor;   /* that the poller knows; -1: none */
    bool polls_writable;
    bool is_over; /* has ended, or is dead */
    bool is_dirty;
    struct spc_server_port *next_dirty;
    spc_link_counts_t counts; /* of a link that is no more */
} spc_server_port_t;

/* A job, as the server sees it. */
struct spc_server_group {
    spc_server_group_t *next;
    uint32_t number;
    uint16_t boxes;
    spc_server_job_t *job;
    uint64_t retained_max; /* of each link */
    bool has_failed, has_ended;
    bool tells_failure, tells_end; /* reports that are still to be made */
    char sentence[SPC_SERVER_SENTENCE_BYTES];
    spc_server_port_t ports[];
};

struct spc_server {
    spc_server_options_t options;
    pthread_mutex_t gate, lock;
    spc_server_poller_t *poller;
    spc_server_group_t *groups;
    spc_server_group_t *removed; /* freed by the loop, once it has no events that name them */
    spc_server_port_t *dirty;    /* links on which something was queued */
    uint64_t next_tick_ns;
    bool is_stopping;
    unsigned char *buffer;
    spc_pool_t pool;
};

void spc_server_enter(spc_server_t *server);
void spc_server_leave(spc_server_t *server);
void spc_server_free_group(spc_server_group_t *group);

/* ---- spc_server_port.c; all under the lock */

int spc_server_port_init(spc_server_port_t *port, spc_server_group_t *group, uint16_t box);
void spc_server_port_fini(spc_server_port_t *port);
spc_server_emit_t spc_server_port_emit; /* the argument is the group */

/* After anything was done with its link: the poller, the clock, and whether the box is over. */
void spc_server_port_settle(spc_server_port_t *port);

/* Writes what was queued. */
void spc_server_flush(spc_server_t *server);

/* The box is dead, and its job has failed, for this reason. */
void spc_server_port_kill(spc_server_port_t *port, const char *sentence);
void spc_server_group_fail(spc_server_group_t *group, uint16_t box, const char *sentence);

#endif
