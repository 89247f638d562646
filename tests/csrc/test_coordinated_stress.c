/* SPDX-License-Identifier: MIT */
/*
 * Random cycles of coordinated messages, with an oracle: what each rank sends in each cycle follows from one seed, so
 * every receiver knows what must come from whom, in which order, with which content, and when the cycle is over.
 * Buffers are as small as they can be; nodes yield and wait at random, so that fast ones run a cycle ahead.
 *
 *   nodes    one thread a node; receives that wait, poll or time out; messages are given back, kept, released
 *   threads  each node sends from two threads while a third one receives: what comes too late is refused, and sent in
 *            the next cycle
 *
 * Ordinary messages go round at the same time, with receives from anybody, and must never be mixed up with the others.
 */
#include <sched.h>

#include "cycle_box.h"

enum { RANKS_MAX = 5, CYCLE_MAX = 12, NOTHING = -1 };

typedef struct stress {
    comm_box_t box;
    uint64_t seed;
    uint64_t cycles;
} stress_t;

typedef struct planned {
    uint32_t mask; /* of destinations; 0: to nobody */
    uint64_t bytes;
    uint64_t seed;
} planned_t;

static uint64_t choose_bytes(uint64_t *random) {
    switch (check_below(random, 10)) {
    case 0:
        return 0;
    case 1:
        return SPC_INLINE_BYTES + check_below(random, 2);
    case 2:
        return check_below(random, 3000);
    case 3:
        return check_below(random, 6) == 0 ? 8193 + check_below(random, 30000) : 230;
    default:
        return check_below(random, 100);
    }
}

/* Message number `index` of a rank in a cycle, or false: it sends no more in it. */
static bool plan(const stress_t *stress, int size, int source, uint64_t cycle, int index,
                 planned_t *planned) {
    uint64_t random = stress->seed + (uint64_t)source * 1000003 + cycle * 7919;
    const int count = check_below(&random, 3) == 0 ? 0 : (int)check_below(&random, CYCLE_MAX);
    const uint32_t all = (1u << size) - 1;
    random += (uint64_t)index * 104729;
    switch (check_below(&random, 4)) {
    case 0:
        planned->mask = all;
        break;
    case 1:
        planned->mask = (uint32_t)check_random(&random) & all;
        break;
    default:
        planned->mask = 1u << check_below(&random, (uint64_t)size);
        break;
    }
    planned->bytes = choose_bytes(&random);
    planned->seed = check_random(&random);
    return index < count;
}

static void dawdle(uint64_t *random) {
    for (uint64_t i = check_below(random, 8) == 0 ? check_below(random, 20) : 0; i > 0; i--) {
        sched_yield();
    }
}

static uint32_t targets(uint32_t mask, int32_t to[]) {
    uint32_t count = 0;
    for (int rank = 0; rank < RANKS_MAX; rank++) {
        if (mask >> rank & 1) {
            to[count++] = rank;
        }
    }
    return count;
}

/* ---- nodes: one thread each */

typedef struct node {
    const stress_t *stress;
    spc_comm_t *comm;
    int rank, size;
    uint64_t random;
    uint64_t cycle;
    int next[RANKS_MAX]; /* of this cycle: the first that may come from each */
    spc_message_t kept;  /* some message of an earlier cycle */
    planned_t kept_plan;
} node_t;

static void send_cycle(node_t *node) {
    planned_t planned;
    int32_t to[RANKS_MAX];
    for (int i = 0; plan(node->stress, node->size, node->rank, node->cycle, i, &planned); i++) {
        uint32_t count = targets(planned.mask, to);
        CHECK_OK(coordinated_until(node->comm, to, count, planned.seed, planned.bytes, SPC_NO_DEADLINE));
        dawdle(&node->random);
    }
}

/* The next message from this source to this node in this cycle; NOTHING: there is none. */
static int next_from(node_t *node, int source, planned_t *planned) {
    int i = node->next[source];
    while (plan(node->stress, node->size, source, node->cycle, i, planned)) {
        if (planned->mask >> node->rank & 1) {
            return i;
        }
        i++;
    }
    return NOTHING;
}

static void check_message(const spc_message_t *message, const planned_t *planned) {
    message_check(message, message->source, message->tag, planned->seed, planned->bytes);
}

static void keep_or_release(node_t *node, spc_message_t *message, const planned_t *planned) {
    if (message->storage == SPC_STORED_RING || check_below(&node->random, 3) != 0) {
        spc_message_release(node->comm, message);
        return;
    }
    if (node->kept.handle != NULL) {
        check_message(&node->kept, &node->kept_plan); /* still what it was */
        spc_message_release(node->comm, &node->kept);
    }
    spc_message_move(&node->kept, message);
    node->kept_plan = *planned;
}

static void accept_message(node_t *node, spc_message_t *message) {
    planned_t planned;
    const int source = message->source;
    const int index = next_from(node, source, &planned);
    if (index == NOTHING) {
        CHECK_FAIL("rank %d got one too many from rank %d", node->rank, source);
    }
    check_message(message, &planned);
    if (check_below(&node->random, 10) == 0) {
        CHECK_OK(spc_comm_put_back(node->comm, message));
        return;
    }
    node->next[source] = index + 1;
    keep_or_release(node, message, &planned);
}

static int receive(node_t *node, spc_message_t *message, bool *over) {
    int status;
    switch (check_below(&node->random, 3)) {
    case 0:
        do {
            status = spc_comm_coordinated_poll(node->comm, message, over);
            sched_yield();
        } while (status == SPC_EAGAIN);
        return status;
    case 1:
        do {
            status = spc_comm_coordinated_recv(node->comm, AT_ONCE, message, over);
        } while (status == SPC_ETIMEDOUT);
        return status;
    default:
        return spc_comm_coordinated_recv(node->comm, SPC_NO_DEADLINE, message, over);
    }
}

static void receive_cycle(node_t *node) {
    bool over = false;
    while (!over) {
        spc_message_t message;
        CHECK_OK(receive(node, &message, &over));
        if (!over) {
            accept_message(node, &message);
        }
        dawdle(&node->random);
    }
    for (int source = 0; source < node->size; source++) {
        planned_t planned;
        if (next_from(node, source, &planned) != NOTHING) {
            CHECK_FAIL("rank %d was not given all from rank %d", node->rank, source);
        }
        node->next[source] = 0;
    }
}

static void nodes_body(int rank, int size, void *argument) {
    const stress_t *stress = argument;
    node_t node = {.stress = stress, .rank = rank, .size = size};
    node.random = stress->seed + 77 + (uint64_t)rank;
    node.comm = comm_box_join(&stress->box, rank);
    const int after = (rank + 1) % size, before = (rank + size - 1) % size;
    for (node.cycle = 0; node.cycle < stress->cycles; node.cycle++) {
        send_cycle(&node);
        send_content(node.comm, after, 0, node.cycle, 30);
        receive_cycle(&node);
        recv_content_from(node.comm, SPC_ANY_SOURCE, before, 0, node.cycle, 30);
        if (check_below(&(uint64_t){stress->seed + node.cycle}, 5) == 0) {
            barrier(node.comm);
        }
    }
    spc_message_release(node.comm, &node.kept);
    comm_box_leave(node.comm);
}

/* ---- threads: senders that run into the receiver's cycles */

enum { SENDERS = 2 };

typedef struct crowd {
    const stress_t *stress;
    spc_comm_t *comm;
    int rank, size;
    uint64_t next[RANKS_MAX][SENDERS]; /* expected from each sender of each rank */
} crowd_t;

typedef struct sender {
    crowd_t *crowd;
    uint64_t number;
    pthread_t thread;
} sender_t;

/* The first 8 bytes say whose message it is, and which: its seed. */
static uint64_t label(int rank, uint64_t sender, uint64_t index) {
    return (uint64_t)rank << 48 | sender << 40 | index;
}

/* A message that is refused is sent again, in whatever cycle comes. */
static void *sender_main(void *argument) {
    sender_t *sender = argument;
    const crowd_t *crowd = sender->crowd;
    uint64_t random = crowd->stress->seed + label(crowd->rank, sender->number, 0);
    for (uint64_t i = 0; i < crowd->stress->cycles * 4; i++) {
        unsigned char content[9000];
        const uint64_t name = label(crowd->rank, sender->number, i);
        memset(content, (int)(i % 251), sizeof content);
        memcpy(content, &name, 8);
        const spc_payload_t payload = {
            .data = content,
            .data_bytes = check_below(&random, 9) == 0 ? 8500 : 8 + check_below(&random, 90),
            .format = SPC_FORMAT_RAW,
        };
        int32_t to[RANKS_MAX];
        const uint32_t count = targets((1u << crowd->size) - 1, to);
        int status;
        do {
            status = coordinated_send_until(crowd->comm, to, count, &payload, SPC_NO_DEADLINE);
            sched_yield();
        } while (status == SPC_ECYCLE);
        CHECK_OK(status);
        dawdle(&random);
    }
    return NULL;
}

static void check_labelled(crowd_t *crowd, spc_message_t *message) {
    uint64_t name;
    memcpy(&name, message->bytes, 8);
    const uint64_t sender = name >> 40 & 0xff, index = name & UINT64_C(0xffffffffff);
    CHECK_EQ_U(name >> 48, message->source);
    CHECK(sender < SENDERS);
    CHECK_EQ_U(
        index,
        crowd->next[message->source][sender]++); /* each sender's own in order, none lost, none twice */
    for (uint64_t i = 8; i < message->length_bytes; i++) {
        CHECK_EQ(((const unsigned char *)message->bytes)[i], index % 251);
    }
    spc_message_release(crowd->comm, message);
}

/* Whole cycles, until all messages of all senders are here. */
static void crowd_body(int rank, int size, void *argument) {
    crowd_t crowd = {.stress = argument, .rank = rank, .size = size};
    sender_t senders[SENDERS];
    crowd.comm = comm_box_join(&crowd.stress->box, rank);
    for (uint64_t i = 0; i < SENDERS; i++) {
        senders[i] = (sender_t){.crowd = &crowd, .number = i};
        CHECK_EQ(pthread_create(&senders[i].thread, NULL, sender_main, &senders[i]), 0);
    }
    const uint64_t all = crowd.stress->cycles * 4 * SENDERS * (uint64_t)size;
    for (uint64_t received = 0; received < all;) {
        spc_message_t message;
        bool over;
        CHECK_OK(spc_comm_coordinated_recv(crowd.comm, SPC_NO_DEADLINE, &message, &over));
        if (!over) {
            check_labelled(&crowd, &message);
            received++;
        } else {
            sched_yield(); /* or nobody could ever send */
        }
    }
    /* All nodes got their last message in the same cycle: everything goes to all. */
    bool over = false;
    spc_message_t message;
    CHECK_OK(spc_comm_coordinated_recv(crowd.comm, SPC_NO_DEADLINE, &message, &over));
    CHECK(over);
    for (int i = 0; i < SENDERS; i++) {
        CHECK_EQ(pthread_join(senders[i].thread, NULL), 0);
    }
    comm_box_leave(crowd.comm);
}

/* ---- running */

static void run_all(check_body_t body, uint64_t cycles) {
    const spc_config_t configs[] = {
        {.slots = 1, .ring_bytes = 1024, .arena_bytes = 1, .queue_limit_bytes = 1 << 20},
        {.slots = 4, .ring_bytes = 4096, .arena_bytes = 65536, .queue_limit_bytes = 1 << 20, .fanin = 2},
        {.slots = 64, .ring_bytes = 65536, .arena_bytes = 1 << 20},
    };
    for (int size = 1; size <= RANKS_MAX; size++) {
        for (int i = 0; i < 3; i++) {
            for (int processes = 0; processes <= WITH_PROCESSES; processes++) {
                stress_t stress = {.seed = check_seed(), .cycles = cycles};
                spc_config_t config = configs[i];
                config.nodes = (uint32_t)size;
                stress.box = comm_box_open(config);
                (processes ? check_processes : check_threads)(size, body, &stress);
                comm_box_close(&stress.box);
            }
        }
    }
}

TEST(nodes) {
    run_all(nodes_body, (uint64_t)check_scale(16));
}

TEST(threads) {
    run_all(crowd_body, (uint64_t)check_scale(16));
}

TEST_MAIN()
