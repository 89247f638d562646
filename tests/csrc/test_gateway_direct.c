/* SPDX-License-Identifier: MIT */
/* Links between gateways: each pair chooses its way, connections break, and nodes notice nothing until one is lost. */
#include "wide_box.h"

#include <fcntl.h>

enum { NODES = 5, ROUNDS = 40 };

static const uint16_t interleaved[NODES] = {0, 0, 1, 0, 1};

typedef struct ways {
    wide_box_t wide;
    pthread_mutex_t lock;
    bool refuses; /* no connection can be made */
    bool listens_nowhere;
    _Atomic bool is_late; /* the way is chosen once node 0 has sent its first messages */
    bool is_polled; /* the connection has no descriptor, as MPI's has none */
    bool breaks; /* after each round the connection there is */
    bool breaks_server;
    int end; /* another descriptor of the last connection; or -1 */
    int server_end; /* of that which stands for the server */
    uint32_t made;
    uint64_t timeout_ns; /* of all links; 0: none */
} ways_t;

static void keep(int *kept, int descriptor) {
    if (*kept >= 0) {
        close(*kept);
    }
    *kept = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : -1;
}

static void break_it(ways_t *ways, const int *end) {
    pthread_mutex_lock(&ways->lock);
    if (*end >= 0) {
        (void)shutdown(*end, SHUT_RDWR);
    }
    pthread_mutex_unlock(&ways->lock);
}

/* ---- a channel without a descriptor, over one that has it */

typedef struct polled {
    spc_channel_t channel;
    spc_channel_t *below;
} polled_t;

static int polled_read(spc_channel_t *channel, void *buffer, size_t room_bytes, size_t *got_bytes) {
    return spc_channel_read(((polled_t *)channel)->below, buffer, room_bytes, got_bytes);
}

static int polled_write(spc_channel_t *channel, const spc_frame_piece_t *pieces, uint32_t count,
                        size_t *taken_bytes) {
    return spc_channel_write(((polled_t *)channel)->below, pieces, count, taken_bytes);
}

static int no_descriptor(const spc_channel_t *channel) {
    (void)channel;
    return -1;
}

static void polled_destroy(spc_channel_t *channel) {
    spc_channel_destroy(((polled_t *)channel)->below);
    free(channel);
}

static spc_channel_t *polled_channel(spc_channel_t *below) {
    static const spc_channel_methods_t methods = {
        .read = polled_read, .write = polled_write, .descriptor = no_descriptor, .destroy = polled_destroy};
    polled_t *polled = malloc(sizeof(*polled));
    *polled = (polled_t){{&methods}, below};
    return &polled->channel;
}

/* By gateway 0, which leads: a connection for both, now for this end first and now for that. */
static void make(ways_t *ways) {
    char address[SPC_GATEWAY_ADDRESS_BYTES];
    uint32_t box, number;
    while (spc_gateway_next_wanted(ways->wide.gateway[0], &box, &number, address) == SPC_OK) {
        int ends[2];
        CHECK_EQ_U(box, 1);
        CHECK(strcmp(address, "here") == 0);
        CHECK(spc_gateway_is_wanted(ways->wide.gateway[0], box, number));
        if (ways->refuses) {
            spc_gateway_relay_peer(ways->wide.gateway[0], box, number);
            continue;
        }
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        pthread_mutex_lock(&ways->lock);
        keep(&ways->end, ends[0]);
        const uint32_t first = ways->made++ % 2;
        pthread_mutex_unlock(&ways->lock);
        for (uint32_t i = 0; i < WIDE_BOXES; i++) {
            const uint32_t at = (first + i) % 2;
            spc_channel_t *channel = wide_channel(ends[at]);
            channel = ways->is_polled ? polled_channel(channel) : channel;
            CHECK_OK(spc_gateway_attach_peer(ways->wide.gateway[at], 1 - at, number, channel));
        }
    }
}

/* A thread of that gateway says that one is wanted. */
static void make_wanted(void *argument) {
    ways_t *ways = argument;
    if (!atomic_load(&ways->is_late)) {
        make(ways);
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
        CHECK_OK(spc_gateway_attach(ways->wide.gateway[i], wide_channel(ends[i])));
    }
}

/* ---- what nodes do */

static void body(int rank, int size, void *argument) {
    ways_t *ways = argument;
    const int32_t others[] = {0, 1, 2, 3, 4};
    spc_comm_t *comm = wide_join(&ways->wide, rank);
    for (int i = 0; i < ROUNDS; i++) {
        for (int to = 0; to < size; to++) {
            send_content(comm, to, i, (uint64_t)(i * size + rank), mixed_bytes(i + rank));
        }
        if (rank == i % size) {
            CHECK_OK(send_until(comm, others, (uint32_t)size, 1000, (uint64_t)i, 300000, SPC_NO_DEADLINE));
        }
        if (rank == 0 && i == 0 && atomic_exchange(&ways->is_late, false)) {
            make(ways);
        }
        for (int from = 0; from < size; from++) {
            recv_content(comm, from, i, (uint64_t)(i * size + from), mixed_bytes(i + from));
        }
        recv_content(comm, i % size, 1000, (uint64_t)i, 300000);
        if (rank == 0 && ways->breaks) {
            break_it(ways, &ways->end);
        }
        if (rank == 0 && ways->breaks_server && i % 3 == 0) {
            break_it(ways, &ways->server_end);
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

static void open_ways(ways_t *ways) {
    const spc_gateway_options_t options = {
        .direct = true, .argument = ways, .limits = spc_link_limits(ways->timeout_ns)};
    spc_gateway_options_t given[WIDE_BOXES] = {options, options};
    given[0].wanted = make_wanted;
    given[1].broken = renew;
    pthread_mutex_init(&ways->lock, NULL);
    ways->end = ways->server_end = -1;
    wide_open_with(&ways->wide, (spc_config_t){.nodes = NODES}, interleaved, given);
    for (int i = 0; i < WIDE_BOXES; i++) {
        CHECK_OK(spc_gateway_listens(ways->wide.gateway[i], ways->listens_nowhere ? "" : "here"));
    }
    if (ways->breaks_server) {
        renew(ways);
    }
}

static void close_ways(ways_t *ways) {
    wide_free(&ways->wide);
    keep(&ways->end, -1);
    keep(&ways->server_end, -1);
    pthread_mutex_destroy(&ways->lock);
}

/* All that the boxes say to each other goes one way. */
static spc_gateway_peer_counts_t count(const ways_t *ways) {
    spc_gateway_peer_counts_t counts;
    spc_link_counts_t server;
    CHECK_OK(spc_gateway_count_peer(ways->wide.gateway[0], 1, &counts));
    spc_gateway_count(ways->wide.gateway[0], &server);
    const spc_link_counts_t *used = counts.is_direct ? &counts.link : &server;
    const spc_link_counts_t *unused = counts.is_direct ? &server : &counts.link;
    CHECK(used->sent[SPC_FRAME_STATUS].frames > 0);
    CHECK(!ways->breaks_server || server.broken > 0);
    CHECK_EQ_U(unused->sent[SPC_FRAME_MESSAGE].frames + unused->sent[SPC_FRAME_ARRIVE].frames
                   + unused->sent[SPC_FRAME_STATUS].frames,
               0);
    return counts;
}

static spc_gateway_peer_counts_t run(ways_t *ways) {
    open_ways(ways);
    wide_start(&ways->wide);
    check_threads(NODES, body, ways);
    wide_finish(&ways->wide);
    const spc_gateway_peer_counts_t counts = count(ways);
    close_ways(ways);
    return counts;
}

/* ---- */

TEST(ways) {
    static const struct {
        ways_t ways;
        bool is_direct;
    } CASES[] = {
        {{.timeout_ns = 0}, true},
        {{.is_polled = true}, true},
        {{.is_polled = true, .is_late = true}, true},
        {{.is_late = true}, true}, /* messages that were sent before are held, and go first */
        {{.is_late = true, .refuses = true}, false},
        {{.refuses = true}, false},
        {{.listens_nowhere = true}, false},
        {{.breaks = true}, true},
        {{.breaks = true, .breaks_server = true}, true},
        {{.refuses = true, .breaks_server = true}, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        ways_t ways = CASES[i].ways;
        const spc_gateway_peer_counts_t counts = run(&ways);
        CHECK_EQ(counts.is_direct, CASES[i].is_direct);
        CHECK(!ways.breaks || counts.link.broken > 0);
        CHECK(ways.breaks ? ways.made > 1 : ways.made == counts.is_direct);
    }
}

/* ---- ends */

static void send_and_leave(int rank, int size, void *argument) {
    ways_t *ways = argument;
    spc_comm_t *comm = wide_join(&ways->wide, rank);
    for (int to = 0; to < size; to++) {
        send_content(comm, to, 1, 2, 300);
    }
    comm_box_leave(comm);
}

/* Gateways whose nodes have ended wait for the choice, too. */
TEST(the_choice_comes_after_the_nodes) {
    for (int refuses = 0; refuses < 2; refuses++) {
        ways_t ways = {.is_late = true, .refuses = refuses != 0};
        open_ways(&ways);
        wide_start(&ways.wide);
        check_threads(NODES, send_and_leave, &ways);
        for (uint32_t rank = 0; rank < NODES; rank++) {
            wide_mark_gone(&ways.wide, rank);
        }
        atomic_store(&ways.is_late, false);
        make(&ways);
        wide_finish(&ways.wide);
        CHECK_EQ(count(&ways).is_direct, !ways.refuses);
        close_ways(&ways);
    }
}

static void *run_until_lost(void *gateway) {
    CHECK_EQ(spc_gateway_run(gateway), SPC_ETIMEDOUT);
    return NULL;
}

/* A connection that breaks, and that cannot be made anew, ends the run. */
TEST(a_connection_stays_away) {
    ways_t ways = {.timeout_ns = UINT64_C(2000000000)};
    open_ways(&ways);
    for (uint32_t i = 0; i < WIDE_BOXES; i++) {
        CHECK_EQ(pthread_create(&ways.wide.thread[i], NULL, run_until_lost, ways.wide.gateway[i]), 0);
    }
    spc_gateway_peer_counts_t counts = {0};
    while (!counts.is_direct) {
        CHECK_OK(spc_gateway_count_peer(ways.wide.gateway[1], 0, &counts));
    }
    atomic_store(&ways.is_late, true); /* no more are made */
    break_it(&ways, &ways.end);
    for (uint32_t i = 0; i < WIDE_BOXES; i++) {
        pthread_join(ways.wide.thread[i], NULL);
        CHECK_EQ_U(spc_gateway_culprit(ways.wide.gateway[i]), 1 - i);
    }
    close_ways(&ways);
}

/* ---- the connection is lost */

static void *run_and_disconnect(void *argument) {
    spc_gateway_t *gateway = argument;
    CHECK_EQ(spc_gateway_run(gateway), SPC_EINTERRUPTED);
    spc_gateway_disconnect(gateway);
    return NULL;
}

static void check_lost(const wide_box_t *wide, const spc_comm_t *comm, int rank, int status) {
    CHECK_EQ(status, SPC_EDISCONNECTED);
    CHECK_EQ(spc_comm_lost_box(comm), wide->place[rank]);
}

/* Each waits in its own way for one that is elsewhere; what needs nobody else goes on. */
static void lost_body(int rank, int size, void *argument) {
    wide_box_t *wide = argument;
    spc_comm_t *comm = wide_join(wide, rank);
    const int32_t after = (rank + 2) % size;
    const spc_payload_t payload = {.data = &after, .data_bytes = 4, .format = SPC_FORMAT_BYTES};
    spc_message_t message;
    int status = SPC_OK;
    barrier(comm);
    if (rank == 0) { /* the others may be asleep by now, or about to be */
        for (int i = 0; i < WIDE_BOXES; i++) {
            spc_gateway_stop(wide->gateway[i]);
        }
        status = recv_until(comm, after, 1, SPC_NO_DEADLINE, &message);
    } else if (rank == 1) {
        status = recv_until(comm, SPC_ANY_SOURCE, 1, SPC_NO_DEADLINE, &message);
    } else if (rank == 2) {
        const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
        status = spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE);
    } else {
        status = spc_comm_ssend(comm, 0, SPC_CONTEXT_USER, 7, &payload, SPC_NO_DEADLINE);
    }
    check_lost(wide, comm, rank, status);
    send_content(comm, rank, 2, 3, 1000);
    recv_content(comm, rank, 2, 3, 1000);
    check_lost(wide, comm, rank, recv_until(comm, after, 1, SPC_NO_DEADLINE, &message));
    comm_box_leave(comm);
}

TEST(lost) {
    wide_box_t wide;
    wide_open(&wide, (spc_config_t){.nodes = 4}, NULL);
    for (int i = 0; i < WIDE_BOXES; i++) {
        CHECK_EQ(pthread_create(&wide.thread[i], NULL, run_and_disconnect, wide.gateway[i]), 0);
    }
    check_threads(4, lost_body, &wide);
    wide_close(&wide);
}

TEST_MAIN()
