/* SPDX-License-Identifier: MIT */
/* Each allocation of a communicator's calls fails once: the call says so, keeps what it had, and can be repeated. */
#include "shortage.h"

#include "collect_box.h"
#include "comm/spc_duplicate.h"

static const spc_config_t roomy = {.slots = 4, .ring_bytes = 4096, .arena_bytes = 1 << 18};
/* Nearly everything waits in private memory, and long messages come in parts. */
static const spc_config_t tiny = {.slots = 1, .ring_bytes = 1024, .arena_bytes = 1};

enum { NODES = 3 };

static spc_comm_t *join(const comm_box_t *box, int rank) {
    const spc_comm_options_t options = {.descriptor = box->descriptor, .rank = (uint32_t)rank};
    spc_comm_t *comm;
    TRY_AGAIN(spc_comm_create_within(ONE_MAPPING ? &box->segment : NULL, &options, &comm));
    return comm;
}

static void play(int nodes, spc_config_t config, check_body_t body) {
    config.nodes = (uint32_t)nodes;
    comm_box_t box = comm_box_open(config);
    shortage_begin();
    check_threads(nodes, body, &box);
    shortage_end();
    comm_box_close(&box);
}

/* ---- making, joining, leaving ---- */

static void creation(void) {
    spc_config_t config = {.nodes = NODES, .features = spc_platform_features(0)};
    spc_segment_plan_t plan;
    comm_box_t box;
    uint64_t size_bytes;
    shortage_begin();
    CHECK_OK(spc_comm_plan(&config, &plan));
    TRY_AGAIN(spc_segment_create(&plan, &box.descriptor, &size_bytes));
    TRY_AGAIN(spc_segment_attach(&box.segment, box.descriptor));
    for (int rank = 0; rank < NODES; rank++) {
        comm_box_leave(join(&box, rank));
    }
    shortage_end();
    comm_box_close(&box);
}

/* ---- messages, in the order in which they came and in another ---- */

static void expect(spc_comm_t *comm, int from, int tag, uint64_t bytes) {
    spc_message_t message;
    TRY_AGAIN(recv_until(comm, from, tag, SPC_NO_DEADLINE, &message));
    message_check(&message, from, tag, (uint64_t)tag, bytes);
    TRY_AGAIN(spc_comm_put_back(comm, &message));
    TRY_AGAIN(recv_until(comm, from, tag, SPC_NO_DEADLINE, &message));
    message_check(&message, from, tag, (uint64_t)tag, bytes);
    spc_message_release(comm, &message);
}

static void exchange_of(spc_comm_t *comm, uint64_t bytes) {
    const int rank = (int)spc_comm_rank(comm);
    enum { COUNT = 3 };
    for (int to = 0; to < NODES; to++) {
        const int32_t one = (rank + to) % NODES;
        for (int tag = 0; tag < COUNT; tag++) {
            TRY_AGAIN(send_until(comm, &one, 1, tag, (uint64_t)tag, bytes, SPC_NO_DEADLINE));
        }
    }
    for (int from = 0; from < NODES; from++) {
        for (int tag = COUNT - 1; tag >= 0; tag--) {
            expect(comm, (rank + from) % NODES, tag, bytes);
        }
    }
}

#define EXCHANGE(name, configuration, bytes)                 \
    static void name##_body(int rank, int size, void *box) { \
        spc_comm_t *comm = join(box, rank);                  \
        (void)size;                                          \
        exchange_of(comm, bytes);                            \
        barrier(comm);                                       \
        comm_box_leave(comm);                                \
    }                                                        \
    static void name(void) {                                 \
        play(NODES, configuration, name##_body);             \
    }

EXCHANGE(short_messages, roomy, 24)
EXCHANGE(ring_messages, roomy, 700)
EXCHANGE(arena_messages, roomy, 9000)
EXCHANGE(queued_messages, tiny, 24)
EXCHANGE(parts_of_messages, tiny, 5000)

/* ---- what all nodes make or do together: one without memory leaves, and keeps no other one waiting ---- */

static bool may_end_with(int status) {
    return status == SPC_OK || (*shortage_met && (status == SPC_ENOMEM || status == SPC_EFINISHED));
}

/* A barrier, unless somebody has left. */
static int meet(spc_comm_t *comm) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    return spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE);
}

static int use_part(spc_comm_t *part) {
    const int status = part != NULL ? meet(part) : SPC_OK;
    if (part != NULL) {
        CHECK_OK(spc_comm_close(part, SPC_NO_DEADLINE));
        spc_comm_destroy(part);
    }
    return status;
}

static int split_of(spc_comm_t *comm) {
    spc_comm_t *part = NULL;
    int status = SPC_OK;
    for (int i = 0; i < 2 && status == SPC_OK; i++) {
        status = spc_comm_split(comm, spc_comm_rank(comm) == 2 ? -1 : 0, 0, SPC_NO_DEADLINE, &part);
        status = status == SPC_OK ? use_part(part) : status;
    }
    return status;
}

static int group_of(spc_comm_t *comm) {
    const uint32_t members[2] = {2, 0};
    spc_comm_t *part = NULL;
    const int status = spc_comm_rank(comm) == 1
                           ? SPC_OK
                           : spc_comm_create_group(comm, members, 2, 5, SPC_NO_DEADLINE, &part);
    return status == SPC_OK ? use_part(part) : status;
}

static int duplicate_of(spc_comm_t *comm) {
    spc_duplicate_t *begun = NULL;
    spc_comm_t *made = NULL;
    spc_request_t all = {.name = "a duplicate"};
    TRY_AGAIN(spc_duplicate_begin(comm, &begun));
    spc_request_all(comm, spc_duplicate_request(begun), &all);
    int status = spc_request_wait(&all, SPC_NO_DEADLINE);
    status = status == SPC_OK ? spc_duplicate_finish(begun, &made) : status;
    spc_duplicate_end(begun);
    return status == SPC_OK ? use_part(made) : status;
}

static int gathering_of(spc_comm_t *comm) {
    static const uint32_t operations[] = {SPC_OPERATION_DATA_BCAST, SPC_OPERATION_DATA_GATHER,
                                          SPC_OPERATION_DATA_ALLGATHER, SPC_OPERATION_DATA_SCATTER,
                                          SPC_OPERATION_DATA_ALLTOALL};
    static const uint64_t lengths[] = {8, 3000, 30000};
    const uint32_t size = spc_comm_size(comm), rank = spc_comm_rank(comm);
    int status = SPC_OK;
    for (uint32_t i = 0; i < 15 && status == SPC_OK; i++) {
        unsigned char *content = content_make(i, lengths[i % 3]);
        spc_payload_t payloads[CHECK_MAX_RANKS];
        spc_gathering_t call = {.operation = operations[i / 3], .payloads = payloads};
        const bool for_each = i / 3 >= 3;
        const bool gives = (i / 3 != 0 && i / 3 != 3) || rank == 0;
        call.payload_count = !gives ? 0 : for_each ? size : 1;
        for (uint32_t to = 0; to < size; to++) {
            payloads[to] = content_payload(content, lengths[i % 3]);
        }
        status = spc_comm_gathering(comm, &call, SPC_NO_DEADLINE);
        spc_comm_gathering_end(comm, &call);
        free(content);
    }
    return status;
}

static int array_of(spc_comm_t *comm) {
    const spc_operation_t operations[] = {SPC_OPERATION_ARRAY_ALLREDUCE, SPC_OPERATION_ARRAY_REDUCE,
                                          SPC_OPERATION_ARRAY_REDUCE_SCATTER, SPC_OPERATION_ARRAY_SCAN};
    int status = SPC_OK;
    for (int i = 0; i < 8 && status == SPC_OK; i++) {
        collect_case_t it = {.seed = 3, .call = {.operation = operations[i % 4], .type = SPC_TYPE_FLOAT64}};
        spc_block_shared_t *block = NULL;
        it.call.count = i < 4 ? 60 : 5000;
        it.call.kind = SPC_KIND_ARRAY;
        divide(&it, spc_comm_size(comm));
        unsigned char *input = malloc(it.call.count * 8);
        fill_input(&it, spc_comm_rank(comm), input);
        it.call.input = input;
        it.call.memory = malloc(spc_collect_memory_bytes(comm, &it.call) + 1);
        spc_collect_t *collect = NULL;
        TRY_AGAIN(spc_collect_create(comm, &it.call, &collect));
        status = spc_collect_run(collect, SPC_NO_DEADLINE);
        if (status == SPC_OK) {
            const void *result = spc_collect_take_result(collect, &block);
            check_result(&it, spc_comm_rank(comm), spc_comm_size(comm), result);
        }
        if (block != NULL) {
            spc_comm_release_block(comm, block);
        }
        spc_collect_destroy(collect);
        free(it.call.memory);
        free(input);
    }
    return status;
}

#define TOGETHER(name, configuration, nodes)                 \
    static void name##_body(int rank, int size, void *box) { \
        spc_comm_t *comm = join(box, rank);                  \
        int status = name##_of(comm);                        \
        (void)size;                                          \
        status = status == SPC_OK ? meet(comm) : status;     \
        CHECK(may_end_with(status));                         \
        comm_box_leave(comm);                                \
    }                                                        \
    static void name(void) {                                 \
        play(nodes, configuration, name##_body);             \
    }

TOGETHER(split, roomy, NODES)
TOGETHER(group, roomy, NODES)
TOGETHER(duplicate, roomy, NODES)
TOGETHER(array, roomy, NODES)
TOGETHER(gathering, roomy, NODES)
#define gathering_tiny_of gathering_of
TOGETHER(gathering_tiny, tiny, NODES)
#define gathering_many_of gathering_of
TOGETHER(gathering_many, roomy, 9)

TEST(no_node_waits_for_one_without_memory) {
    SWEEP(split);
    SWEEP(group);
    SWEEP(duplicate);
    SWEEP(array);
    SWEEP(gathering);
    SWEEP(gathering_tiny);
    SWEEP(gathering_many);
}

/* Synchronous, into memory of the receiver, and for a handler. */
static int other_messages_of(spc_comm_t *comm) {
    const int32_t rank = (int32_t)spc_comm_rank(comm), next = (rank + 1) % NODES;
    const int32_t before = (rank + NODES - 1) % NODES;
    unsigned char *content = content_make(5, 3000), *memory = malloc(3000);
    const spc_payload_t payload = content_payload(content, 3000);
    spc_sink_t sink = {memory, 3000 - 45, content, 45, SPC_FORMAT_ARRAY, false};
    spc_message_t message;
    TRY_AGAIN(spc_comm_handle(comm, 9));
    TRY_AGAIN(spc_comm_handle(comm, 10));
    barrier(comm);
    TRY_AGAIN(send_until(comm, &next, 1, 9, 4, 100, SPC_NO_DEADLINE));
    if (rank == 0) {
        TRY_AGAIN(spc_comm_ssend(comm, next, SPC_CONTEXT_USER, 1, &payload, SPC_NO_DEADLINE));
    }
    TRY_AGAIN(spc_comm_recv_into(comm, SPC_CONTEXT_USER, before, 1, SPC_NO_DEADLINE, &sink, &message));
    content_check(message.bytes, 5, sink.filled ? 45 : 3000);
    spc_message_release(comm, &message);
    if (rank != 0) {
        TRY_AGAIN(spc_comm_ssend(comm, next, SPC_CONTEXT_USER, 1, &payload, SPC_NO_DEADLINE));
    }
    int status = SPC_EAGAIN;
    while (status != SPC_OK) {
        status = spc_comm_take_handled(comm, &message);
        CHECK(status == SPC_EAGAIN || shortage_explains(status));
    }
    message_check(&message, before, 9, 4, 100);
    spc_message_release(comm, &message);
    free(content);
    free(memory);
    return SPC_OK;
}

/* A cycle goes on after a call that found no memory. */
static int coordinated_of(spc_comm_t *comm) {
    const int32_t rank = (int32_t)spc_comm_rank(comm), next = (rank + 1) % NODES;
    for (int cycle = 0; cycle < 2; cycle++) {
        unsigned char *content = content_make(5, 700);
        const spc_payload_t payload = content_payload(content, 700);
        bool over = false;
        int count = 0;
        for (int i = 0; i < 4; i++) {
            TRY_AGAIN(coordinated_send_until(comm, &next, 1, &payload, SPC_NO_DEADLINE));
        }
        while (!over) {
            spc_message_t message;
            TRY_AGAIN(spc_comm_coordinated_recv(comm, SPC_NO_DEADLINE, &message, &over));
            if (!over) {
                content_check(message.bytes, 5, 700);
                spc_message_release(comm, &message);
                count++;
            }
        }
        CHECK_EQ(count, 4);
        free(content);
    }
    return SPC_OK;
}

TOGETHER(other_messages, roomy, NODES)
#define other_messages_tiny_of other_messages_of
TOGETHER(other_messages_tiny, tiny, NODES)
TOGETHER(coordinated, roomy, NODES)
#define coordinated_tiny_of coordinated_of
TOGETHER(coordinated_tiny, tiny, NODES)

/* ---- what explains a failure ---- */

static int stay(void *argument) {
    (void)argument;
    return SPC_OK;
}

/* A node alone finds out that it waits for itself. A text that finds no memory is missing; the status is not. */
static void texts(void) {
    comm_box_t box = comm_box_open((spc_config_t){.nodes = 1});
    FILE *nowhere = fopen("/dev/null", "w");
    check_watchdog(0); /* an alarm or its handler might end the wait: the watchdog of the sweep is enough */
    signal(SIGALRM, SIG_DFL);
    const int32_t own = 0;
    spc_message_t message;
    shortage_begin();
    spc_comm_t *comm = join(&box, 0);
    TRY_AGAIN(spc_comm_watch_itself(comm, stay));
    TRY_AGAIN(send_until(comm, &own, 1, 5, 5, 100, SPC_NO_DEADLINE));
    int status = recv_until(comm, 0, 6, SPC_NO_DEADLINE, &message);
    CHECK(status == SPC_EDEADLOCK || (status != SPC_OK && shortage_explains(status)));
    status = status == SPC_EDEADLOCK ? status : recv_until(comm, 0, 6, SPC_NO_DEADLINE, &message);
    CHECK_EQ(status, SPC_EDEADLOCK);
    TRY_AGAIN(spc_comm_report_wait(comm, "none", nowhere));
    char *const found[] = {spc_comm_explain(comm, SPC_ELIMIT, "recv()", NULL),
                           spc_comm_explain_near(comm, SPC_CONTEXT_USER, 0, 6)};
    CHECK(*shortage_met || (found[0] != NULL && found[1] != NULL));
    free(found[0]);
    free(found[1]);
    expect(comm, 0, 5, 100);
    comm_box_leave(comm);
    shortage_end();
    fclose(nowhere);
    comm_box_close(&box);
}

/* Elsewhere there is no proof that no other thread will end the wait. */
TEST(a_text_may_be_missing) {
#if defined(__linux__) && !defined(__SANITIZE_THREAD__)
    SWEEP(texts);
#else
    (void)texts;
#endif
}

TEST(calls_can_be_repeated) {
    SWEEP(other_messages);
    SWEEP(other_messages_tiny);
    SWEEP(coordinated);
    SWEEP(coordinated_tiny);
    SWEEP(creation);
    SWEEP(short_messages);
    SWEEP(ring_messages);
    SWEEP(arena_messages);
    SWEEP(queued_messages);
    SWEEP(parts_of_messages);
}

TEST_MAIN()
