/* SPDX-License-Identifier: MIT */
/*
 * Random traffic, with an oracle: what each rank sends follows from one seed, so every receiver knows what must come
 * from whom, in which order and with which content. Buffers are as small as they can be.
 *
 *   rounds   one thread a node; every kind of receive, blocking, for messages known to be on their way
 *   threads  in each node a sender, a receiver for each tag, and one in collectives: they wait together
 *   tight    queues at their limits: sends wait or time out, inboxes refuse; receivers take whatever comes
 *
 * All of it is traced, and the traces have to agree.
 */
#include "comm_box.h"

#include "segment/spc_segment.h"
#include "segment/spc_trace.h"

enum { MESSAGES_MAX = 4000, RANKS_MAX = 6, TAGS = 3, HELD = 6, BATCH = 10 };

typedef struct stress_node stress_node_t;

typedef struct stress {
    comm_box_t box;
    uint64_t seed;
    int messages; /* of each rank */
    int collectives;
    int size;
    void (*body)(stress_node_t *node);
} stress_t;

struct stress_node {
    const struct stress *stress;
    spc_comm_t *comm;
    int rank;
    uint64_t random;                          /* of this thread */
    int tag;                                  /* that this thread receives, or SPC_ANY_TAG */
    int left;                                 /* messages to receive */
    unsigned char taken[RANKS_MAX][MESSAGES_MAX];
    int first[RANKS_MAX]; /* all before are taken or for others */
    int held;
    struct {
        spc_message_t message;
        int index;
    } hold[HELD];
};

/* ---- what message number `index` of `source` is */

typedef struct planned {
    uint32_t mask; /* of destinations */
    int32_t tag;
    uint64_t bytes;
    uint64_t seed;
} planned_t;

static uint64_t choose_bytes(uint64_t *random) {
    switch (check_below(random, 12)) {
    case 0:
        return 0;
    case 1:
        return SPC_INLINE_BYTES + check_below(random, 2);
    case 2:
    case 3:
        return SPC_INLINE_BYTES + 1 + check_below(random, 200);
    case 4:
        return check_below(random, 3000);
    case 5:
        return check_below(random, 10) == 0 ? 8193 + check_below(random, 30000)
                                            : 220 + check_below(random, 40);
    default:
        return check_below(random, 33);
    }
}

static planned_t plan(const stress_t *stress, int source, int index) {
    uint64_t random = stress->seed + (uint64_t)source * 1000003 + (uint64_t)index * 7919;
    uint32_t all = (1u << stress->size) - 1;
    planned_t made = {.mask = 1u << check_below(&random, (uint64_t)stress->size)};
    if (check_below(&random, 8) == 0) {
        made.mask |= (uint32_t)check_random(&random) & all;
    }
    made.tag = (int32_t)check_below(&random, TAGS);
    made.bytes = choose_bytes(&random);
    made.seed = check_random(&random);
    return made;
}

static bool concerns(const stress_node_t *node, const planned_t *planned, int tag) {
    return (planned->mask >> node->rank & 1) && (tag == SPC_ANY_TAG || planned->tag == tag);
}

static int count_expected(const stress_node_t *node) {
    int count = 0;
    for (int source = 0; source < node->stress->size; source++) {
        for (int i = 0; i < node->stress->messages; i++) {
            planned_t planned = plan(node->stress, source, i);
            count += concerns(node, &planned, node->tag);
        }
    }
    return count;
}

/* ---- sending */

static int send_planned(stress_node_t *node, int index, uint64_t deadline_ns) {
    planned_t planned = plan(node->stress, node->rank, index);
    int32_t to[RANKS_MAX];
    uint32_t count = 0;
    for (int rank = 0; rank < node->stress->size; rank++) {
        if (planned.mask >> rank & 1) {
            to[count++] = rank;
        }
    }
    return send_until(node->comm, to, count, planned.tag, planned.seed, planned.bytes, deadline_ns);
}

/* ---- receiving */

/* The message that must come next from this source with this tag. */
static int next_index(stress_node_t *node, int source, int tag) {
    int *first = &node->first[source];
    planned_t planned;
    for (; *first < node->stress->messages; (*first)++) {
        planned = plan(node->stress, source, *first);
        if (concerns(node, &planned, node->tag) && !node->taken[source][*first]) {
            break;
        }
    }
    for (int i = *first; i < node->stress->messages; i++) {
        planned = plan(node->stress, source, i);
        if (concerns(node, &planned, tag) && !node->taken[source][i]) {
            return i;
        }
    }
    CHECK_FAIL("rank %d got one message too many from rank %d, tag %d", node->rank, source, tag);
}

static void check_planned(const stress_node_t *node, const spc_message_t *message, int index) {
    planned_t planned = plan(node->stress, message->source, index);
    message_check(message, message->source, planned.tag, planned.seed, planned.bytes);
}

static void let_go(stress_node_t *node) {
    if (node->held != 0) {
        int i = (int)check_below(&node->random, (uint64_t)node->held);
        check_planned(node, &node->hold[i].message, node->hold[i].index); /* still what it was */
        spc_message_release(node->comm, &node->hold[i].message);
        node->held--;
        if (i != node->held) {
            spc_message_move(&node->hold[i].message, &node->hold[node->held].message);
            node->hold[i].index = node->hold[node->held].index;
        }
    }
}

/* Compares with what must come; keeps it a while, gives it back, or releases it. */
static void accept_message(stress_node_t *node, spc_message_t *message, int source, int tag) {
    CHECK(source == SPC_ANY_SOURCE || message->source == source);
    CHECK(tag == SPC_ANY_TAG || message->tag == tag);
    int index = next_index(node, message->source, tag);
    check_planned(node, message, index);
    if (check_below(&node->random, 12) == 0) {
        CHECK_OK(spc_comm_put_back(node->comm, message));
        return;
    }
    node->taken[message->source][index] = 1;
    node->left--;
    if (message->storage == SPC_STORED_RING || check_below(&node->random, 2) == 0) {
        spc_message_release(node->comm, message); /* what lies in the ring holds up its sender */
        spc_message_release(node->comm, message);
        return;
    }
    if (node->held == HELD) {
        let_go(node);
    }
    spc_message_move(&node->hold[node->held].message, message);
    node->hold[node->held++].index = index;
}

static void receive_blocking(stress_node_t *node, int source, int tag) {
    spc_message_t message;
    CHECK_OK(recv_until(node->comm, source, tag, SPC_NO_DEADLINE, &message));
    accept_message(node, &message, source, tag);
}

static void receive_probed(stress_node_t *node, int source, int tag) {
    int32_t found_source, found_tag;
    uint64_t bytes;
    CHECK_OK(spc_comm_probe(node->comm, SPC_CONTEXT_USER, source, tag, SPC_NO_DEADLINE, &found_source,
                            &found_tag, &bytes));
    planned_t planned = plan(node->stress, found_source, next_index(node, found_source, tag));
    CHECK_EQ(found_tag, planned.tag);
    CHECK_EQ_U(bytes, planned.bytes - (planned.bytes > 60 ? 45 : planned.bytes / 2));
    receive_blocking(node, found_source, found_tag);
}

static void receive_if_there(stress_node_t *node, int source, int tag, int how) {
    spc_message_t message;
    spc_recv_call_t call;
    uint64_t waiting;
    int status;
    switch (how) {
    case 0:
        status = spc_comm_try_recv(node->comm, SPC_CONTEXT_USER, source, tag, &message);
        break;
    case 1:
        status = spc_comm_take(node->comm, SPC_CONTEXT_USER, source, tag, &message);
        break;
    case 2:
        CHECK_OK(spc_comm_poll(node->comm, SPC_CONTEXT_USER, &waiting));
        status = waiting != 0 ? spc_comm_poll_recv(node->comm, SPC_CONTEXT_USER, source, tag, &message, &call)
                              : SPC_EAGAIN;
        break;
    default:
        status = spc_comm_poll_recv(node->comm, SPC_CONTEXT_USER, source, tag, &message, &call);
        if (status == SPC_EAGAIN) {
            status = spc_comm_finish_recv(node->comm, &call,
                                          spc_clock_deadline_ns((int64_t)check_below(&node->random, 20000)));
        }
        status = status == SPC_ETIMEDOUT ? SPC_EAGAIN : status;
    }
    if (status != SPC_EAGAIN) {
        CHECK_OK(status);
        accept_message(node, &message, source, tag);
    }
}

static void receive_somehow(stress_node_t *node, int source, int tag) {
    uint64_t how = check_below(&node->random, 16);
    if (how < 4) {
        receive_if_there(node, source, tag, (int)how);
    } else if (how < 6) {
        receive_probed(node, source, tag);
    } else {
        receive_blocking(node, source, tag);
    }
    if (how == 8) {
        let_go(node);
    }
}

/* ---- rounds */

/* A message of the rounds up to now that has not been taken. */
static bool choose_outstanding(stress_node_t *node, int limit, int *source, int *index) {
    int start = (int)check_below(&node->random, (uint64_t)node->stress->size);
    for (int i = 0; i < node->stress->size; i++) {
        *source = (start + i) % node->stress->size;
        for (*index = node->first[*source]; *index < limit; (*index)++) {
            planned_t planned = plan(node->stress, *source, *index);
            if (concerns(node, &planned, SPC_ANY_TAG) && !node->taken[*source][*index]) {
                return true;
            }
        }
    }
    return false;
}

static void rounds_body(stress_node_t *node) {
    for (int sent = 0; sent < node->stress->messages;) {
        int limit = sent + BATCH < node->stress->messages ? sent + BATCH : node->stress->messages;
        for (; sent < limit; sent++) {
            CHECK_OK(send_planned(node, sent, SPC_NO_DEADLINE));
        }
        int source, index;
        while (choose_outstanding(node, limit, &source, &index)) {
            int tag = plan(node->stress, source, index).tag;
            receive_somehow(node, check_below(&node->random, 2) ? source : SPC_ANY_SOURCE,
                            check_below(&node->random, 2) ? tag : SPC_ANY_TAG);
        }
        if (check_below(&node->random, 2) == 0) {
            let_go(node);
        }
    }
    CHECK_EQ(node->left, 0);
}

/* ---- threads */

static stress_node_t *make_node(const stress_t *stress, spc_comm_t *comm, int rank, int tag) {
    stress_node_t *node = calloc(1, sizeof *node);
    CHECK(node != NULL);
    node->stress = stress;
    node->comm = comm;
    node->rank = rank;
    node->tag = tag;
    node->random = stress->seed * 31 + (uint64_t)(rank * 10 + tag + 1);
    node->left = count_expected(node);
    return node;
}

static void free_node(stress_node_t *node) {
    while (node->held != 0) {
        let_go(node);
    }
    free(node);
}

static void *collect_in_thread(void *argument) {
    stress_node_t *node = argument;
    for (int i = 0; i < node->stress->collectives; i++) {
        uint64_t phase = 0;
        bool fuzzy = i % 3 == 0;
        if (fuzzy) {
            CHECK_OK(spc_comm_fuzzy_enter(node->comm, &phase));
        }
        if (i % 3 != 1) {
            const spc_field_t field = {SPC_TYPE_INT, 1};
            int64_t value = node->rank + i;
            const spc_signature_t sum = reduction_signature(SPC_SUM, &field, 1);
            CHECK_OK(spc_comm_collective(node->comm, &sum, &field, &value, 8, &value, SPC_NO_DEADLINE));
            CHECK_EQ(value, (int64_t)node->stress->size * (node->stress->size - 1) / 2
                                + (int64_t)node->stress->size * i);
        } else {
            barrier(node->comm);
        }
        if (fuzzy) {
            CHECK_OK(spc_comm_fuzzy_wait(node->comm, phase, SPC_NO_DEADLINE));
        }
    }
    return NULL;
}

static void *receive_in_thread(void *argument) {
    stress_node_t *node = argument;
    while (node->left > 0) {
        receive_somehow(node, SPC_ANY_SOURCE, node->tag);
    }
    return NULL;
}

static void threads_body(stress_node_t *node) {
    pthread_t thread[TAGS + 1];
    stress_node_t *receiver[TAGS];
    for (int tag = 0; tag < TAGS; tag++) {
        receiver[tag] = make_node(node->stress, node->comm, node->rank, tag);
        CHECK_EQ(pthread_create(&thread[tag], NULL, receive_in_thread, receiver[tag]), 0);
    }
    CHECK_EQ(pthread_create(&thread[TAGS], NULL, collect_in_thread, node), 0);
    for (int i = 0; i < node->stress->messages; i++) {
        CHECK_OK(send_planned(node, i, SPC_NO_DEADLINE));
    }
    for (int i = 0; i <= TAGS; i++) {
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    }
    for (int tag = 0; tag < TAGS; tag++) {
        free_node(receiver[tag]);
    }
    barrier(node->comm); /* a receiver cannot know that a thread of its own node is yet to send */
}

/* ---- tight */

/* A message that has timed out was sent to nobody: it is sent again, and must come once. */
static void tight_body(stress_node_t *node) {
    pthread_t thread[2];
    uint64_t random = node->random + 1;
    CHECK_EQ(pthread_create(&thread[0], NULL, receive_in_thread, node), 0);
    CHECK_EQ(pthread_create(&thread[1], NULL, collect_in_thread, node), 0);
    for (int i = 0; i < node->stress->messages;) {
        uint64_t how = check_below(&random, 4);
        uint64_t deadline_ns = how == 0   ? AT_ONCE
                               : how == 1 ? spc_clock_deadline_ns((int64_t)check_below(&random, 50000))
                                          : SPC_NO_DEADLINE;
        int status = send_planned(node, i, deadline_ns);
        CHECK(status == SPC_OK || (status == SPC_ETIMEDOUT && how < 2));
        i += status == SPC_OK;
    }
    CHECK_EQ(pthread_join(thread[0], NULL), 0);
    CHECK_EQ(pthread_join(thread[1], NULL), 0);
    barrier(node->comm);
}

/* ---- runs */

static void run_rank(int rank, int size, void *argument) {
    const stress_t *stress = argument;
    CHECK_EQ(size, stress->size);
    spc_comm_t *comm = comm_box_join(&stress->box, rank);
    stress_node_t *node = make_node(stress, comm, rank, SPC_ANY_TAG);
    stress->body(node);
    free_node(node);
    comm_box_leave(comm); /* others may still wait for what is queued here */
}

/* ---- traces
 * Each message that was taken was sent, once, with the same tag, context and length, by the sender that the receiver
 * names, and before; and of each pair of nodes the numbers follow each other. */

#define TRACE_SLACK_NS UINT64_C(20000) /* two threads' anchors, taken while others had their cores */

static spc_trace_reader_t trace_of(const spc_segment_t *segment, uint32_t rank) {
    const spc_trace_shared_t *shared = spc_segment_part(segment, SPC_REGION_TRACE, rank);
    spc_trace_reader_t reader;
    CHECK(shared != NULL);
    spc_trace_look(&reader, shared, spc_segment_stride(segment, SPC_REGION_TRACE));
    CHECK_EQ_U(reader.first, 1); /* else the test is too long for its ring */
    return reader;
}

typedef struct trace_send {
    spc_trace_event_t event;
    uint64_t time_ns;
} trace_send_t;

/* The messages that `source` has sent to `destination`, in order; returns their number. */
static uint64_t trace_sends(const spc_segment_t *segment, uint32_t source, uint32_t destination,
                            trace_send_t **sends) {
    const spc_trace_reader_t reader = trace_of(segment, source);
    uint64_t found = 0;
    *sends = malloc((reader.count + 1) * sizeof **sends);
    CHECK(*sends != NULL);
    for (uint64_t number = 1; number <= reader.count; number++) {
        spc_trace_event_t *event = &(*sends)[found].event;
        CHECK(spc_trace_read(&reader, number, event, &(*sends)[found].time_ns));
        if (event->kind == SPC_TRACE_SEND && event->peer == (int32_t)destination) {
            CHECK_EQ_U(event->number, found + 1);
            found++;
        }
    }
    return found;
}

/* Returns how many messages were taken. */
static uint64_t trace_check_pair(const spc_segment_t *segment, uint32_t source, uint32_t destination) {
    trace_send_t *sends;
    spc_trace_event_t event;
    uint64_t time_ns;
    const uint64_t sent = trace_sends(segment, source, destination, &sends);
    const spc_trace_reader_t reader = trace_of(segment, destination);
    uint64_t taken = 0;
    for (uint64_t number = 1; number <= reader.count; number++) {
        CHECK(spc_trace_read(&reader, number, &event, &time_ns));
        if (event.kind != SPC_TRACE_RECEIVE || event.peer != (int32_t)source) {
            continue;
        }
        CHECK(event.number >= 1 && event.number <= sent);
        const spc_trace_event_t *send = &sends[event.number - 1].event;
        CHECK_EQ(event.tag, send->tag);
        CHECK_EQ(event.context, send->context);
        CHECK_EQ_U(event.bytes, send->bytes);
        CHECK(time_ns + TRACE_SLACK_NS >= sends[event.number - 1].time_ns);
        taken++;
    }
    free(sends);
    return taken;
}

static uint64_t trace_check(const spc_segment_t *segment) {
    uint64_t taken = 0;
    for (uint32_t source = 0; source < segment->config->nodes; source++) {
        for (uint32_t destination = 0; destination < segment->config->nodes; destination++) {
            taken += trace_check_pair(segment, source, destination);
        }
    }
    return taken;
}

static uint64_t main_seed;

static void run(void (*body)(stress_node_t *), spc_config_t config, int size, int messages, bool processes) {
    config.nodes = (uint32_t)size;
    config.trace_events = UINT64_C(1) << 18;
    stress_t stress = {
        .box = comm_box_open(config), .seed = check_random(&main_seed), .size = size, .body = body};
    stress.messages = messages < MESSAGES_MAX ? messages : MESSAGES_MAX;
    stress.collectives = stress.messages / 4;
    (processes ? check_processes : check_threads)(size, run_rank, &stress);
    CHECK(trace_check(&stress.box.segment) >= (uint64_t)messages);
    comm_box_close(&stress.box);
}

static void run_all(void (*body)(stress_node_t *), uint64_t queue_limit_bytes, long messages) {
    int each = (int)check_scale(messages);
    for (int processes = 0; processes <= !CHECK_SANITIZED; processes++) {
        for (int size = 1; size <= RANKS_MAX; size++) {
            spc_config_t config = {
                .queue_limit_bytes = queue_limit_bytes, .ring_bytes = 1024, .scratch_bytes = 256};
            config.slots = (uint32_t)(1 + (size + processes) % 4);
            config.arena_bytes = size % 2 ? 65536 : 1;
            run(body, config, size, each, processes);
        }
        spc_config_t roomy = {
            .queue_limit_bytes = queue_limit_bytes, .ring_bytes = 65536, .arena_bytes = 1 << 20};
        run(body, roomy, 4, each, processes);
    }
}

static void rounds(void) {
    run_all(rounds_body, 0, 800);
}

static void threads(void) {
    run_all(threads_body, 0, 800);
}

static void tight(void) {
    run_all(tight_body, 1024, 800);
}

int main(void) {
    main_seed = check_seed();
    RUN(rounds);
    RUN(threads);
    RUN(tight);
    return check_done();
}
