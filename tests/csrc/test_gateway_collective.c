/* SPDX-License-Identifier: MIT */
/* One box by itself: its gateway, its nodes, and the test in place of the server and of the other boxes. */
#include "star_box.h"

#include <poll.h>
#include <sched.h>

#include "little_endian.h"
#include "net/link/spc_channel.h"
#include "net/wire/spc_arrival.h"
#include "reduce/spc_subtree.h"

enum { SEEN_MAX = 64, OPEN = SPC_FUZZY_MAX + 1 };

typedef struct lone_box {
    comm_box_t box;
    spc_gateway_t *gateway;
    pthread_t thread;
    _Atomic int outcome; /* SPC_EAGAIN: it runs */
    spc_link_t *link;
    int descriptor;
    int count;
    spc_frame_t seen[SEEN_MAX]; /* arrivals, ends and SHUTDOWN, in order */
} lone_box_t;

static int see(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    lone_box_t *lone = argument;
    (void)body;
    if (frame->kind == SPC_FRAME_ARRIVE || frame->kind == SPC_FRAME_SHUTDOWN
        || (frame->kind == SPC_FRAME_STATUS && frame->total_bytes != SPC_NODE_LIVE)) {
        CHECK(lone->count < SEEN_MAX);
        lone->seen[lone->count++] = *frame;
    }
    return SPC_OK;
}

static void *run_lone(void *argument) {
    lone_box_t *lone = argument;
    atomic_store(&lone->outcome, spc_gateway_run(lone->gateway));
    return NULL;
}

/* One node in each box; node 0 is here. */
static void lone_open_with(lone_box_t *lone, uint32_t boxes, uint64_t timeout_ns) {
    const uint16_t place[] = {0, 1, 2};
    const spc_config_t config = {.nodes = boxes, .boxes = boxes};
    int ends[2];
    *lone = (lone_box_t){.outcome = SPC_EAGAIN};
    lone->gateway =
        wide_open_box(&lone->box, config, place, (spc_gateway_options_t){.limits.timeout_ns = timeout_ns});
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_OK(spc_gateway_attach(lone->gateway, wide_channel(ends[0])));
    CHECK_EQ(pthread_create(&lone->thread, NULL, run_lone, lone), 0);
    lone->descriptor = ends[1];
    CHECK_OK(spc_link_create(&(spc_link_options_t){.job = 7, .deliver = see, .argument = lone}, &lone->link));
    CHECK_OK(spc_link_attach(lone->link, wide_channel(ends[1])));
}

static void lone_open(lone_box_t *lone, uint32_t boxes) {
    lone_open_with(lone, boxes, 0);
}

static void exchange(lone_box_t *lone) {
    struct pollfd polled = {.fd = lone->descriptor, .events = POLLIN};
    (void)poll(&polled, 1, 10);
    CHECK_OK(spc_link_read(lone->link));
    spc_link_write(lone->link);
}

static void see_until(lone_box_t *lone, int count) {
    while (lone->count < count) {
        exchange(lone);
    }
}

static void lone_finish(lone_box_t *lone, int outcome) {
    if (outcome == SPC_EINTERRUPTED) {
        spc_gateway_stop(lone->gateway);
    }
    for (uint16_t box = 1; box < lone->box.segment.config->boxes && outcome == SPC_OK; box++) {
        const spc_frame_t frame = {.kind = SPC_FRAME_SHUTDOWN, .source = box};
        CHECK_OK(spc_link_send(lone->link, &frame, NULL, 0));
    }
    while (atomic_load(&lone->outcome) == SPC_EAGAIN) {
        exchange(lone);
    }
    pthread_join(lone->thread, NULL);
    CHECK_EQ(lone->outcome, outcome);
}

static void lone_free(lone_box_t *lone) {
    spc_gateway_destroy(lone->gateway);
    spc_link_destroy(lone->link);
    comm_box_close(&lone->box);
}

static void lone_close(lone_box_t *lone, int outcome) {
    lone_finish(lone, outcome);
    lone_free(lone);
}

/* The frames that a box sends of its only node. */
static void arrive(lone_box_t *lone, uint16_t context, uint32_t member, uint64_t phase, uint8_t operation) {
    unsigned char body[48];
    const spc_arrival_head_t head = {.signature = {.operation = operation}, .first = member, .span = 1};
    put_u64(body, UINT64_C(7));
    memcpy(body + 8, &head, sizeof head);
    const spc_frame_t frame = {
        .kind = SPC_FRAME_ARRIVE, .source = (uint16_t)member, .context = context, .offset = phase};
    const spc_frame_piece_t piece = {body, sizeof body};
    CHECK_OK(spc_link_send(lone->link, &frame, &piece, 1));
}

/* As many fuzzy barriers as can be open, and a barrier across them. */
static void arrive_at_all(lone_box_t *lone, uint32_t member, uint64_t first) {
    for (uint64_t phase = first; phase < first + OPEN; phase++) {
        arrive(lone, 0, member, phase,
               phase < first + OPEN - 1 ? SPC_OPERATION_FUZZY : SPC_OPERATION_BARRIER);
    }
}

/* Node 1 is told of at phases whose banks node 0 still uses, because node 2 has not come to them here. */
TEST(arrivals_that_are_ahead_wait) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    lone_box_t lone;
    uint64_t fuzzy[SPC_FUZZY_MAX];
    lone_open(&lone, 3);
    spc_comm_t *comm = comm_box_join(&lone.box, 0);
    arrive(&lone, 77, 1, 1, SPC_OPERATION_FUZZY); /* of a communicator that nobody here has */
    arrive_at_all(&lone, 1, 1);
    arrive_at_all(&lone, 1, 1 + OPEN);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < SPC_FUZZY_MAX; i++) {
            CHECK_OK(spc_comm_fuzzy_enter(comm, &fuzzy[i]));
        }
        CHECK_EQ(spc_comm_collective_poll(comm, &signature, NULL, NULL, 0, NULL), SPC_EAGAIN);
        see_until(&lone, OPEN * (round + 1));
        for (int i = 0; i < SPC_FUZZY_MAX; i++) {
            CHECK_EQ(spc_comm_fuzzy_done(comm, fuzzy[i]), SPC_EAGAIN);
        }
        arrive_at_all(&lone, 2, 1 + (uint64_t)round * OPEN);
        CHECK_OK(spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, in_seconds(60)));
        for (int i = 0; i < SPC_FUZZY_MAX; i++) {
            CHECK_OK(spc_comm_fuzzy_done(comm, fuzzy[i]));
        }
    }
    comm_box_leave(comm);
    lone_close(&lone, SPC_EINTERRUPTED);
}

TEST(what_is_ahead_is_bounded) {
    lone_box_t lone;
    lone_open(&lone, 3);
    spc_comm_t *comm = comm_box_join(&lone.box, 0);
    unsigned char *body = calloc(1, SPC_FRAME_BODY_MAX);
    const spc_frame_t frame = {.kind = SPC_FRAME_ARRIVE, .source = 1, .offset = 1 + OPEN};
    const spc_frame_piece_t piece = {body, SPC_FRAME_BODY_MAX / 4};
    for (int i = 0; i < 16; i++) { /* 1 MiB, of three nodes that contribute 64 KiB each at most */
        CHECK_OK(spc_link_send(lone.link, &frame, &piece, 1));
    }
    const spc_frame_t over = {.kind = SPC_FRAME_FAIL, .flags = SPC_FRAME_OTHERS};
    CHECK_OK(spc_link_send(lone.link, &over, NULL, 0)); /* that is not what ends it */
    free(body);
    comm_box_leave(comm);
    lone_close(&lone, SPC_ELIMIT);
}

/* All here have arrived, so the server has it all, and keeps it until all others have, too. */
TEST(an_end_is_told_after_a_reminder) {
    lone_box_t lone;
    uint64_t fuzzy[2];
    lone_open(&lone, 2);
    spc_comm_t *comm = comm_box_join(&lone.box, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(spc_comm_fuzzy_enter(comm, &fuzzy[i]));
    }
    see_until(&lone, 2);
    comm_box_leave(comm);
    spc_comm_mark_ended(&lone.box.segment, 0, SPC_NODE_FINISHED, 0);
    see_until(&lone, 4); /* a fifth may follow, when its process is gone */
    CHECK_EQ(lone.seen[3].kind, SPC_FRAME_STATUS);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(lone.seen[i].kind, SPC_FRAME_ARRIVE);
        CHECK_EQ_U(lone.seen[i].offset, i < 2 ? i + 1 : 2);
        CHECK_EQ(lone.seen[i].flags, i < 2 ? SPC_FRAME_LAST : SPC_FRAME_URGENT);
        CHECK_EQ_U(lone.seen[i].length_bytes, i < 2 ? 48 : 8);
    }
    lone_close(&lone, SPC_OK);
}

/* The gateway has sent all, and sleeps: it has not ended its link, and takes what is on its way. */
TEST(a_gateway_stays_until_the_others_have_shut_down) {
    lone_box_t lone;
    lone_open(&lone, 2);
    const spc_event_shared_t *events = spc_segment_part(&lone.box.segment, SPC_REGION_EVENT, 0);
    comm_box_leave(comm_box_join(&lone.box, 0));
    spc_comm_mark_ended(&lone.box.segment, 0, SPC_NODE_FINISHED, 0);
    while (lone.count == 0 || lone.seen[lone.count - 1].kind != SPC_FRAME_SHUTDOWN) {
        exchange(&lone);
    }
    while (atomic_load(&events[2].sleeping) == 0) { /* the gateway's own */
        sched_yield();
    }
    exchange(&lone);
    CHECK(!spc_link_has_ended(lone.link));
    const uint64_t list = 0; /* rank 0, and padding */
    const spc_frame_t frame = {.kind = SPC_FRAME_MESSAGE, .source = 1, .tag = 5, .count = 1};
    const spc_frame_piece_t piece = {&list, sizeof list};
    CHECK_OK(spc_link_send(lone.link, &frame, &piece, 1));
    lone_finish(&lone, SPC_OK);
    spc_mailbox_shared_t *mailbox = spc_segment_part(&lone.box.segment, SPC_REGION_MAILBOX, 0);
    spc_unread_t unread;
    uint32_t at = 0;
    CHECK(spc_mailbox_unread(mailbox, 1, lone.box.segment.config->slots, &at, &unread));
    CHECK_EQ(unread.tag, 5);
    lone_free(&lone);
}

/* ---- whose fault it is */

/* The server ends the job and names a box, or itself; or it says nothing. */
TEST(a_run_is_over) {
    static const struct {
        uint16_t source; /* of FAIL; 0: it says nothing */
        int outcome;
        int32_t culprit;
    } CASES[] = {
        {1, SPC_ECLOSED, 1}, {SPC_FRAME_FROM_SERVER, SPC_ECLOSED, SPC_STATUS_SERVER}, {0, SPC_ETIMEDOUT, 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const bool is_told = CASES[i].source != 0;
        lone_box_t lone;
        lone_open_with(&lone, 2, is_told ? 0 : UINT64_C(20000000));
        if (is_told) {
            const spc_frame_t frame = {
                .kind = SPC_FRAME_FAIL, .flags = SPC_FRAME_OTHERS, .source = CASES[i].source};
            const spc_frame_piece_t piece = {"box 1 is lost", 13};
            CHECK_OK(spc_link_send(lone.link, &frame, &piece, 1));
        }
        lone_finish(&lone, CASES[i].outcome);
        CHECK_EQ(spc_gateway_culprit(lone.gateway), CASES[i].culprit);
        CHECK(!is_told || strcmp(spc_gateway_sentence(lone.gateway), "box 1 is lost") == 0);
        spc_gateway_disconnect(lone.gateway);
        spc_comm_t *comm = comm_box_join(&lone.box, 0);
        spc_message_t message;
        CHECK_EQ(recv_until(comm, 1, 1, SPC_NO_DEADLINE, &message), SPC_EDISCONNECTED);
        CHECK_EQ(spc_comm_lost_box(comm), CASES[i].culprit);
        comm_box_leave(comm);
        lone_free(&lone);
    }
}

/* ---- totals: the server has combined */

enum { LONG = 1000 };

/* Node 0 enters a collective, and the server has heard of it. */
static void enter(lone_box_t *lone, spc_comm_t *comm, const spc_signature_t *signature,
                  const spc_field_t *field, const int64_t *values) {
    const int seen = lone->count;
    CHECK_EQ(spc_comm_collective_poll(comm, signature, field, values, signature->length_bytes, NULL),
             SPC_EAGAIN);
    see_until(lone, seen + 1);
}

/* A barrier has neither fields nor values. */
static void send_value(lone_box_t *lone, const spc_frame_t *frame, const spc_arrival_head_t *head,
                       const spc_field_t *field, const int64_t *values) {
    unsigned char mask[8];
    put_u64(mask, 7);
    const spc_frame_piece_t pieces[] = {
        {mask, sizeof mask}, {head, sizeof *head}, {field, sizeof *field}, {values, head->length_bytes}};
    CHECK_OK(spc_link_send(lone->link, frame, pieces, head->signature.field_count != 0 ? 4 : 2));
}

/* Short and long totals, and barriers, one after the other, with values of single nodes in between: each node here gets
 * what came, and never what lay there before. */
TEST(totals_release_phases) {
    static const spc_signature_t barrier = {.operation = SPC_OPERATION_BARRIER};
    static int64_t sent[LONG], result[LONG];
    lone_box_t lone;
    lone_open(&lone, 3);
    spc_comm_t *comm = comm_box_join(&lone.box, 0);
    for (uint64_t phase = 1; phase <= 60; phase++) {
        const spc_field_t field = {SPC_TYPE_INT, phase % 2 == 0 ? LONG : 1 + (uint32_t)phase % 4};
        const bool is_barrier = phase % 3 == 0, is_total = is_barrier || phase % 5 != 0;
        for (uint32_t i = 0; i < field.count; i++) {
            sent[i] = (int64_t)(1000 * phase + i);
        }
        const spc_signature_t signature = is_barrier ? barrier : reduction_signature(SPC_SUM, &field, 1);
        enter(&lone, comm, &signature, &field, sent);
        spc_arrival_head_t head = {
            .signature = signature, .span = 3, .length_bytes = (uint32_t)signature.length_bytes};
        spc_frame_t frame = {.kind = SPC_FRAME_ARRIVE,
                             .flags = SPC_FRAME_LAST,
                             .source = SPC_FRAME_FROM_SERVER,
                             .offset = phase};
        for (uint32_t member = 1; member < 3 && !is_total; member++) {
            head.span = 1;
            head.first = member;
            frame.source = (uint16_t)member;
            send_value(&lone, &frame, &head, &field, sent);
        }
        if (is_total) {
            send_value(&lone, &frame, &head, &field, sent);
        }
        CHECK_OK(spc_comm_collective(comm, &signature, &field, sent, signature.length_bytes, result,
                                     in_seconds(60)));
        for (uint32_t i = 0; i < field.count && !is_barrier; i++) {
            CHECK_EQ(result[i], is_total ? sent[i] : 3 * sent[i]);
        }
    }
    comm_box_leave(comm);
    lone_close(&lone, SPC_EINTERRUPTED);
}

/* Whatever is wrong with a total ends the run of this box: no node gets it. */
TEST(totals_that_cannot_be) {
    enum {
        NOT_ENTERED,
        OF_A_BOX,
        TOO_FEW,
        TOO_MANY,
        FROM_THE_MIDDLE,
        TOO_SHORT,
        TOO_LONG,
        OTHER_OPERATOR,
        OF_A_BARRIER,
        AFTER_A_VALUE,
        TWICE,
        OF_A_LATER_PHASE,
        CASES
    };
    const int64_t values[8] = {5, 5, 5, 5, 5, 5, 5, 5};
    for (int i = 0; i < CASES; i++) {
        lone_box_t lone;
        lone_open(&lone, 3);
        spc_comm_t *comm = comm_box_join(&lone.box, 0);
        spc_field_t field = {SPC_TYPE_INT, 5};
        const spc_signature_t signature = reduction_signature(SPC_SUM, &field, 1);
        if (i != NOT_ENTERED) {
            enter(&lone, comm, &signature, &field, values);
        }
        spc_arrival_head_t head = {.signature = signature, .span = 3, .length_bytes = 40};
        spc_frame_t frame = {.kind = SPC_FRAME_ARRIVE, .source = SPC_FRAME_FROM_SERVER, .offset = 1};
        frame.source = i == OF_A_BOX ? 1 : frame.source;
        frame.offset = i == OF_A_LATER_PHASE ? 2 : 1;
        head.span = i == TOO_FEW ? 2 : i == TOO_MANY ? 4 : 3;
        head.first = i == FROM_THE_MIDDLE;
        field.count = i == TOO_SHORT ? 4 : i == TOO_LONG ? 6 : 5;
        head.length_bytes = 8 * field.count;
        head.signature.operator = i == OTHER_OPERATOR ? SPC_MAX : SPC_SUM;
        head.signature.operation = i == OF_A_BARRIER ? SPC_OPERATION_BARRIER : SPC_OPERATION_REDUCE;
        if (i == AFTER_A_VALUE) {
            spc_arrival_head_t one = head;
            one.first = one.span = 1;
            send_value(&lone, &frame, &one, &field, values);
        }
        send_value(&lone, &frame, &head, &field, values);
        if (i == TWICE) {
            send_value(&lone, &frame, &head, &field, values);
        }
        spc_comm_destroy(comm);
        lone_close(&lone, SPC_EINVAL);
    }
}

/* ---- boxes around a server: whatever nodes call, they get what one box would give */

enum { STAR_NODES = 7, STAR_COUNT = 600, STAR_OPEN = 3 };

/* Everybody knows what everybody gives: sums whose bits depend on the order, integers that may become too wide. */
static void star_fill(uint64_t seed, uint32_t type, uint64_t *value, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t random = check_random(&seed);
        const double number = (double)(int64_t)random / 1e9;
        value[i] = random >> 5 >> random % 50;
        if (type == SPC_TYPE_FLOAT64) {
            memcpy(&value[i], &number, sizeof number);
        }
    }
}

static void star_reduce(spc_comm_t *comm, uint32_t rank, uint64_t seed) {
    static _Thread_local uint64_t values[STAR_NODES][STAR_COUNT], result[STAR_COUNT];
    uint64_t state = seed;
    const uint32_t type = check_below(&state, 2) == 0 ? SPC_TYPE_FLOAT64 : SPC_TYPE_INT;
    const spc_operator_t operators[] = {SPC_SUM, SPC_PROD, SPC_MIN, SPC_MAX};
    spc_operator_t operator = operators[check_below(&state, 4)];
    const spc_field_t field = {type,
                               1 + (uint32_t)check_below(&state, check_below(&state, 2) ? 8 : STAR_COUNT)};
    const bool is_mismatch = check_below(&state, 8) == 0;
    const uint32_t other = (uint32_t)check_below(&state, STAR_NODES);
    spc_subtree_t subtrees[STAR_NODES];
    uint32_t count = STAR_NODES;
    for (uint32_t i = 0; i < STAR_NODES; i++) {
        star_fill(seed + i, type, values[i], field.count);
        subtrees[i] = (spc_subtree_t){i, 1, values[i]};
    }
    spc_signature_t signature = reduction_signature(operator, &field, 1);
    signature.root = is_mismatch && rank == other;
    memcpy(result, values[rank], signature.length_bytes);
    const int status = spc_comm_collective(comm, &signature, &field, result, signature.length_bytes, result,
                                           SPC_NO_DEADLINE);
    if (is_mismatch) {
        CHECK_EQ(status, SPC_EMISMATCH);
        return;
    }
    CHECK_EQ(status, spc_subtree_combine(operator, &field, 1, STAR_NODES, subtrees, &count));
    if (status == SPC_OK) {
        CHECK_MEM(result, values[0], signature.length_bytes);
    }
}

/* Each node reads the values of all nodes. */
static void star_gather(spc_comm_t *comm, uint32_t rank, uint64_t seed) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_GATHER};
    const uint64_t mine[2] = {seed + rank, rank};
    CHECK_OK(spc_comm_collective(comm, &signature, NULL, mine, 8 + 8 * (rank % 2), NULL, SPC_NO_DEADLINE));
    for (uint32_t i = 0; i < STAR_NODES; i++) {
        const void *bytes;
        uint64_t length;
        spc_comm_contribution(comm, i, &bytes, &length);
        const uint64_t expected[2] = {seed + i, i};
        CHECK_EQ_U(length, 8 + 8 * (i % 2));
        CHECK_MEM(bytes, expected, length);
    }
}

/* At the end some nodes enter barriers that others never come to: what is under way becomes urgent. */
static void star_body(int rank, int size, void *argument) {
    star_t *star = argument;
    spc_comm_t *comm = star_join(star, rank);
    uint64_t state = star->seed, fuzzy[STAR_OPEN];
    uint32_t open = 0;
    for (long step = check_scale(120); step > 0; step--) {
        const uint64_t seed = check_random(&state), kind = check_below(&state, 8);
        if (kind == 0 && open < STAR_OPEN) {
            CHECK_OK(spc_comm_fuzzy_enter(comm, &fuzzy[open++]));
        } else if (kind == 1 && open > 0) {
            CHECK_OK(spc_comm_fuzzy_wait(comm, fuzzy[--open], SPC_NO_DEADLINE));
        } else if (kind == 2) {
            star_gather(comm, (uint32_t)rank, seed);
        } else {
            star_reduce(comm, (uint32_t)rank, seed);
        }
    }
    while (open > 0) {
        CHECK_OK(spc_comm_fuzzy_wait(comm, fuzzy[--open], SPC_NO_DEADLINE));
    }
    if (rank < size / 2) {
        CHECK_OK(spc_comm_fuzzy_enter(comm, &fuzzy[0]));
    }
    comm_box_leave(comm);
}

TEST(reductions_of_three_boxes) {
    static const uint16_t PLACES[][STAR_NODES] = {
        {0, 0, 0, 1, 1, 2, 2}, {0, 1, 2, 0, 1, 2, 0}, {0, 0, 1, 0, 1, 2, 2}, {2, 0, 0, 0, 0, 1, 0}};
    uint64_t seed = check_seed();
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        star_t star = {.seed = seed + i, .direct = i % 2 != 0};
        memcpy(star.place, PLACES[i], sizeof PLACES[i]);
        star_run(star, (spc_config_t){.nodes = STAR_NODES}, star_body);
    }
}

TEST_MAIN()
