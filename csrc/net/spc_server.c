/* SPDX-License-Identifier: MIT */
/* Jobs and connections: what any thread may ask of the server. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net/spc_server_private.h"

#include <stdlib.h>

#include "base/spc_error.h"
#include "net/spc_credit.h"

_Static_assert((int)SPC_SERVER_BOXES_MAX == (int)SPC_SERVER_JOB_BOXES_MAX,
               "a job's boxes fit into its masks");

enum { KEPT_MAX = 1 << 24, LINK_TIMEOUT_S = 30 };

void spc_server_enter(spc_server_t *server) {
    pthread_mutex_lock(&server->gate);
    pthread_mutex_lock(&server->lock);
    pthread_mutex_unlock(&server->gate);
}

void spc_server_leave(spc_server_t *server) {
    pthread_mutex_unlock(&server->lock);
}

static void set_defaults(spc_server_options_t *options) {
    options->now_ns = options->now_ns != NULL ? options->now_ns : spc_clock_now_ns;
    options->collected_max = options->collected_max != 0 ? options->collected_max : KEPT_MAX;
    if (options->link_timeout_ns == 0) {
        options->link_timeout_ns = LINK_TIMEOUT_S * UINT64_C(1000000000);
    }
}

int spc_server_create(const spc_server_options_t *options, spc_server_t **server) {
    spc_server_t *made = calloc(1, sizeof *made);
    unsigned char *buffer = aligned_alloc(SPC_CACHE_LINE, SPC_SERVER_BUFFER_BYTES);
    if (made == NULL || buffer == NULL) {
        free(made);
        free(buffer);
        return SPC_ENOMEM;
    }
    made->options = *options;
    set_defaults(&made->options);
    made->buffer = buffer;
    made->next_tick_ns = SPC_NO_DEADLINE;
    int status = spc_server_poller_create(&made->poller);
    if (status != SPC_OK) {
        free(buffer);
        free(made);
        return status;
    }
    pthread_mutex_init(&made->gate, NULL);
    pthread_mutex_init(&made->lock, NULL);
    *server = made;
    return SPC_OK;
}

void spc_server_free_group(spc_server_group_t *group) {
    for (uint16_t box = 0; box < group->boxes; box++) {
        spc_server_port_fini(&group->ports[box]);
    }
    spc_server_job_destroy(group->job);
    free(group);
}

static void free_groups(spc_server_group_t *group) {
    while (group != NULL) {
        spc_server_group_t *next = group->next;
        spc_server_free_group(group);
        group = next;
    }
}

void spc_server_destroy(spc_server_t *server) {
    if (server != NULL) {
        free_groups(server->groups);
        free_groups(server->removed);
        spc_server_poller_destroy(server->poller);
        pthread_mutex_destroy(&server->lock);
        pthread_mutex_destroy(&server->gate);
        spc_pool_fini(&server->pool);
        free(server->buffer);
        free(server);
    }
}

/* ---- jobs */

static spc_server_group_t **place_of(spc_server_t *server, uint32_t job) {
    spc_server_group_t **place = &server->groups;
    while (*place != NULL && (*place)->number != job) {
        place = &(*place)->next;
    }
    return place;
}

/* NULL: no such job, or box. */
static spc_server_port_t *find_port(spc_server_t *server, uint32_t job, uint16_t box) {
    spc_server_group_t *group = *place_of(server, job);
    return group != NULL && box < group->boxes ? &group->ports[box] : NULL;
}

/* As much as agents may send to one box (spc_credit.h). The map is valid. */
static uint64_t retained_max(const spc_server_t *server, const spc_server_job_options_t *options) {
    if (server->options.retained_max != 0 || options->boxes < 2 || options->ranks == 0) {
        return server->options.retained_max != 0 ? server->options.retained_max : KEPT_MAX;
    }
    return spc_credit_of_map(options->box_of_rank, options->ranks, options->boxes).kept;
}

static int make_group(spc_server_t *server, uint32_t job, const spc_server_job_options_t *options,
                      spc_server_group_t **group) {
    spc_server_group_t *made = calloc(1, sizeof *made + options->boxes * sizeof made->ports[0]);
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    spc_server_job_options_t routes = *options;
    routes.argument = made;
    routes.pool = &server->pool;
    made->number = job;
    int status = spc_server_job_create(&routes, &made->job);
    made->retained_max = status == SPC_OK ? retained_max(server, options) : 0;
    for (uint16_t box = 0; box < options->boxes && status == SPC_OK; box++) {
        made->ports[box].server = server;
        made->boxes = (uint16_t)(box + 1);
        status = spc_server_port_init(&made->ports[box], made, box);
    }
    if (status != SPC_OK) {
        spc_server_free_group(made);
        return status;
    }
    *group = made;
    return SPC_OK;
}

int spc_server_add_job(spc_server_t *server, uint32_t job, uint16_t boxes, const uint16_t *box_of_rank,
                       uint32_t ranks) {
    const spc_server_job_options_t options = {
        .boxes = boxes,
        .ranks = ranks,
        .box_of_rank = box_of_rank,
        .collected_max = server->options.collected_max,
        .emit = spc_server_port_emit,
    };
    spc_server_enter(server);
    spc_server_group_t **place = place_of(server, job), *group;
    int status = *place != NULL ? SPC_EBUSY : make_group(server, job, &options, &group);
    if (status == SPC_OK) {
        *place = group;
    }
    spc_server_leave(server);
    return status;
}

int spc_server_remove_job(spc_server_t *server, uint32_t job) {
    int status = SPC_OK;
    spc_server_enter(server);
    spc_server_group_t **place = place_of(server, job), *group = *place;
    if (group == NULL) {
        status = SPC_EINVAL;
    } else if (!group->has_ended) {
        status = SPC_EBUSY;
    } else {
        *place = group->next;
        group->next = server->removed;
        server->removed = group;
    }
    spc_server_leave(server);
    spc_server_poller_wake(server->poller);
    return status;
}

int spc_server_fail_job(spc_server_t *server, uint32_t job, const char *sentence) {
    spc_server_enter(server);
    spc_server_group_t *group = *place_of(server, job);
    if (group != NULL) {
        spc_server_group_fail(group, UINT16_MAX, sentence);
        spc_server_flush(server);
    }
    spc_server_leave(server);
    spc_server_poller_wake(server->poller);
    return group != NULL ? SPC_OK : SPC_EINVAL;
}

/* ---- connections */

static int attach(spc_server_port_t *port, int descriptor) {
    spc_server_t *server = port->server;
    /* The poller first: it can refuse. What the port had is forgotten, and closed with its channel. */
    if (port->descriptor >= 0) {
        spc_link_detach(port->link);
        spc_server_port_settle(port);
    }
    spc_channel_t *channel;
    int status = spc_channel_tcp_create(descriptor, &channel);
    if (status != SPC_OK) {
        return status;
    }
    status = spc_server_poller_add(server->poller, port, descriptor);
    if (status == SPC_OK) {
        port->descriptor = descriptor;
        port->polls_writable = false;
        status = spc_link_attach(port->link, channel);
    }
    if (status != SPC_OK) {
        spc_channel_destroy(channel); /* a connection that has broken at once: its box will make another */
    }
    spc_server_port_settle(port);
    return SPC_OK;
}

int spc_server_adopt(spc_server_t *server, uint32_t job, uint16_t box, int descriptor) {
    spc_server_enter(server);
    spc_server_port_t *port = find_port(server, job, box);
    int status = port == NULL ? SPC_EINVAL : port->link == NULL ? SPC_ECLOSED : attach(port, descriptor);
    spc_server_flush(server);
    spc_server_leave(server);
    spc_server_poller_wake(server->poller);
    return status;
}

void spc_server_stop(spc_server_t *server) {
    spc_server_enter(server);
    server->is_stopping = true;
    spc_server_leave(server);
    spc_server_poller_wake(server->poller);
}

/* ---- looking */

int spc_server_count(spc_server_t *server, uint32_t job, uint16_t box, spc_link_counts_t *counts) {
    spc_server_enter(server);
    spc_server_port_t *port = find_port(server, job, box);
    if (port != NULL && port->link != NULL) {
        spc_link_count(port->link, counts);
    } else if (port != NULL) {
        *counts = port->counts;
    }
    spc_server_leave(server);
    return port != NULL ? SPC_OK : SPC_EINVAL;
}

spc_link_state_t spc_server_link_state(spc_server_t *server, uint32_t job, uint16_t box) {
    spc_server_enter(server);
    spc_server_port_t *port = find_port(server, job, box);
    spc_link_state_t state = port != NULL && port->link != NULL ? spc_link_state(port->link) : SPC_LINK_DEAD;
    spc_server_leave(server);
    return state;
}
