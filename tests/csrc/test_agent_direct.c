/* SPDX-License-Identifier: MIT */
/* Links between agents: the route of what nodes say is opened, changed and lost, and they notice nothing. */
#include "wide_box.h"

#include <fcntl.h>
#include <limits.h>

enum { NODES = 5 };

static const uint16_t interleaved[NODES] = {0, 0, 1, 0, 1};

typedef struct ways {
    wide_box_t wide;
    pthread_mutex_t lock;
    bool refuses; /* no connection can be made */
    bool breaks; /* after each round the one there is */
    bool changes; /* another way is asked for, whenever the last one has been taken */
    bool breaks_server;
    int end; /* another descriptor of the last connection; or -1 */
    int server_end; /* of that which stands for the server */
    uint32_t made;
    bool is_to_be_direct;
    _Atomic int rounds; /* of all nodes */
} ways_t;

static void keep(int *kept, int descriptor) {
    if (*kept >= 0) {
        close(*kept);
    }
    *kept = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

static void break_it(ways_t *ways, const int *end) {
    pthread_mutex_lock(&ways->lock);
    if (*end >= 0) {
        (void)shutdown(*end, SHUT_RDWR);
    }
    pthread_mutex_unlock(&ways->lock);
}

/* By a thread of agent 0, which leads: a connection for both, now for this end first and now for that. */
static void make(void *argument) {
    ways_t *ways = argument;
    char address[SPC_AGENT_ADDRESS_BYTES];
    uint32_t box, number;
    while (!ways->refuses && spc_agent_next_wanted(ways->wide.agent[0], &box, &number, address) == SPC_OK) {
        int ends[2];
        CHECK_EQ_U(box, 1);
        CHECK(strcmp(address, "here") == 0);
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        pthread_mutex_lock(&ways->lock);
        keep(&ways->end, ends[0]);
        const uint32_t first = ways->made++ % 2;
        pthread_mutex_unlock(&ways->lock);
        for (uint32_t i = 0; i < WIDE_BOXES; i++) {
            const uint32_t at = (first + i) % 2;
            CHECK_OK(spc_agent_attach_peer(ways->wide.agent[at], 1 - at, number, ends[at]));
        }
    }
}

/* The connection that stands for the server has broken. */
static void renew(void *argument) {
    ways_t *ways = argument;
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pthread_mutex_lock(&ways->lock);
    keep(&ways->server_end, ends[0]);
    pthread_mutex_unlock(&ways->lock);
    for (int i = 0; i < WIDE_BOXES; i++) {
        CHECK_OK(spc_agent_attach(ways->wide.agent[i], ends[i]));
    }
}

/* ---- what nodes do */

/* After this round, by node 0; it also says which is the last round, before all have left this one. */
static void meddle(ways_t *ways, int round) {
    spc_agent_peer_counts_t counts;
    CHECK_OK(spc_agent_count_peer(ways->wide.agent[0], 1, &counts));
    if (ways->changes && counts.is_direct == ways->is_to_be_direct) {
        ways->is_to_be_direct = !ways->is_to_be_direct;
        const uint32_t who = (uint32_t)counts.changes % 2; /* who leads, or who follows */
        CHECK_OK(spc_agent_route(ways->wide.agent[who], 1 - who, ways->is_to_be_direct));
    }
    if (ways->breaks) {
        break_it(ways, &ways->end);
    }
    if (ways->breaks_server && round % 3 == 0) {
        break_it(ways, &ways->server_end);
    }
    const bool are_enough = !ways->changes || counts.changes >= 100;
    if (round >= 40 && are_enough && atomic_load(&ways->rounds) == INT_MAX) {
        atomic_store(&ways->rounds, round + 2); /* pairs with the load in body: seen after the next barrier */
    }
}

static void body(int rank, int size, void *argument) {
    ways_t *ways = argument;
    const int32_t others[] = {0, 1, 2, 3, 4};
    spc_comm_t *comm = wide_join(&ways->wide, rank);
    for (int i = 0; i < atomic_load(&ways->rounds); i++) {
        for (int to = 0; to < size; to++) {
            send_content(comm, to, i, (uint64_t)(i * size + rank), mixed_bytes(i + rank));
        }
        if (rank == i % size) {
            CHECK_OK(send_until(comm, others, (uint32_t)size, 1000, (uint64_t)i, 300000, SPC_NO_DEADLINE));
        }
        for (int from = 0; from < size; from++) {
            recv_content(comm, from, i, (uint64_t)(i * size + from), mixed_bytes(i + from));
        }
        recv_content(comm, i % size, 1000, (uint64_t)i, 300000);
        if (rank == 0) {
            meddle(ways, i);
        }
        if (i % 7 == 0) {
            spc_comm_t *part;
            CHECK_OK(spc_comm_split(comm, rank % 2, rank, SPC_NO_DEADLINE, &part));
            barrier(part);
            CHECK_OK(spc_comm_close(part, SPC_NO_DEADLINE));
            spc_comm_destroy(part);
        }
        send_content(comm, (rank + 1) % size, 2000, (uint64_t)i, 100);
        barrier(comm);
        spc_message_t message; /* sent before the barrier: there after it */
        const int before = (rank + size - 1) % size;
        CHECK_OK(spc_comm_try_recv(comm, SPC_CONTEXT_USER, before, 2000, &message));
        message_check(&message, before, 2000, (uint64_t)i, 100);
        spc_message_release(comm, &message);
    }
    comm_box_leave(comm);
}

static spc_agent_peer_counts_t run(ways_t *ways) {
    const spc_agent_options_t options = {.direct = true, .argument = ways};
    spc_agent_options_t given[WIDE_BOXES] = {options, options};
    spc_agent_peer_counts_t counts;
    given[0].wanted = make;
    given[1].broken = renew;
    pthread_mutex_init(&ways->lock, NULL);
    ways->end = ways->server_end = -1;
    ways->is_to_be_direct = true;
    atomic_init(&ways->rounds, INT_MAX);
    wide_open_with(&ways->wide, (spc_config_t){.nodes = NODES}, interleaved, given);
    for (int i = 0; i < WIDE_BOXES; i++) {
        CHECK_OK(spc_agent_listens(ways->wide.agent[i], "here"));
    }
    if (ways->breaks_server) {
        renew(ways);
    }
    wide_start(&ways->wide);
    check_threads(NODES, body, ways);
    wide_finish(&ways->wide);
    CHECK_OK(spc_agent_count_peer(ways->wide.agent[0], 1, &counts));
    spc_link_counts_t server;
    spc_agent_count(ways->wide.agent[0], &server);
    CHECK_EQ_U(server.sent[SPC_FRAME_MESSAGE].frames + server.sent[SPC_FRAME_ARRIVE].frames, 0);
    CHECK(counts.link.sent[SPC_FRAME_MESSAGE].frames > 0);
    wide_free(&ways->wide);
    for (int *end = &ways->end; end != NULL; end = end == &ways->end ? &ways->server_end : NULL) {
        if (*end >= 0) {
            close(*end);
        }
    }
    pthread_mutex_destroy(&ways->lock);
    return counts;
}

/* ---- */

static void direct(void) {
    ways_t ways = {0};
    const spc_agent_peer_counts_t counts = run(&ways);
    CHECK(counts.is_direct);
    CHECK_EQ_U(counts.changes, 1);
    CHECK_EQ_U(ways.made, 1);
}

static void no_connection_can_be_made(void) {
    ways_t ways = {.refuses = true};
    const spc_agent_peer_counts_t counts = run(&ways);
    CHECK(!counts.is_direct);
    CHECK_EQ_U(counts.changes, 0);
}

static void there_and_back(void) {
    ways_t ways = {.changes = true};
    CHECK(run(&ways).changes >= 100);
}

static void connections_break(void) {
    ways_t ways = {.breaks = true};
    CHECK(run(&ways).link.broken > 0);
    CHECK(ways.made > 1);
}

static void everything_breaks(void) {
    ways_t ways = {.breaks = true, .breaks_server = true, .changes = true};
    CHECK(run(&ways).changes >= 100);
}

/* Boxes whose nodes have nothing to say to each other have no connection. */
static void alone_body(int rank, int size, void *argument) {
    ways_t *ways = argument;
    (void)size;
    spc_comm_t *comm = wide_join(&ways->wide, rank);
    send_content(comm, rank, 1, 2, 300);
    recv_content(comm, rank, 1, 2, 300);
    comm_box_leave(comm);
}

static void nothing_to_say(void) {
    ways_t ways = {0};
    const spc_agent_options_t options = {.direct = true, .argument = &ways, .wanted = make};
    const spc_agent_options_t given[WIDE_BOXES] = {options, options};
    spc_agent_peer_counts_t counts;
    pthread_mutex_init(&ways.lock, NULL);
    ways.end = -1;
    wide_open_with(&ways.wide, (spc_config_t){.nodes = NODES}, interleaved, given);
    CHECK_OK(spc_agent_listens(ways.wide.agent[1], "here"));
    wide_start(&ways.wide);
    check_threads(NODES, alone_body, &ways);
    wide_finish(&ways.wide);
    CHECK_OK(spc_agent_count_peer(ways.wide.agent[0], 1, &counts));
    CHECK_EQ_U(ways.made, 0);
    CHECK_EQ_U(counts.changes, 0);
    wide_free(&ways.wide);
    pthread_mutex_destroy(&ways.lock);
}

int main(void) {
    RUN(direct);
    RUN(nothing_to_say);
    RUN(no_connection_can_be_made);
    RUN(there_and_back);
    RUN(connections_break);
    RUN(everything_breaks);
    return check_done();
}
