/* SPDX-License-Identifier: MIT */
/* Two boxes in one process, two gateways and one connection: messages, cycles, ends, and what no gateway sends. */
#include "any_frame.h"
#include "wide_box.h"

#include "comm/spc_comm_private.h"
#include "net/gateway/spc_gateway_private.h"

/* ---- messages */

static const uint64_t lengths[] = {0, 8, 40, 41, 1000, 8192, 8193, 100000, 600000};

enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static void every_length_body(int rank, int size, void *argument) {
    spc_comm_t *comm = wide_join(argument, rank);
    const int32_t others[2] = {1, 2};
    (void)size;
    for (int i = 0; i < LENGTHS; i++) {
        if (rank == 0) {
            send_content(comm, 2, i, (uint64_t)i, lengths[i]);
            CHECK_OK(send_until(comm, others, 2, i, (uint64_t)i + 1, lengths[i], SPC_NO_DEADLINE));
        } else {
            if (rank == 2) {
                recv_content(comm, 0, i, (uint64_t)i, lengths[i]);
            }
            recv_content(comm, 0, i, (uint64_t)i + 1, lengths[i]);
        }
    }
    comm_box_leave(comm);
}

/* Both receivers elsewhere share a frame, or get their parts one by one. */
TEST(every_length) {
    wide_run(3, (spc_config_t){0}, NULL, every_length_body);
    wide_run(3, (spc_config_t){.arena_bytes = 1, .ring_bytes = 16384, .slots = 3}, NULL, every_length_body);
    wide_run(3, (spc_config_t){.arena_bytes = 65536, .ring_bytes = 1024, .slots = 1},
             (const uint16_t[]){0, 1, 1}, every_length_body);
}

/* One sender, all others at once: over the link once, whatever the length. */
static void casts_body(int rank, int size, void *argument) {
    spc_comm_t *comm = wide_join(argument, rank);
    const int32_t others[] = {1, 2, 3, 4};
    (void)size;
    for (int i = 0; i < 200; i++) {
        if (rank == 0) {
            CHECK_OK(send_until(comm, others, 4, i, (uint64_t)i, lengths[i % LENGTHS], SPC_NO_DEADLINE));
        } else {
            recv_content(comm, 0, i, (uint64_t)i, lengths[i % LENGTHS]);
        }
        barrier(comm);
    }
    comm_box_leave(comm);
}

TEST(casts) {
    wide_box_t wide;
    spc_link_counts_t counts;
    uint64_t frames = 0;
    wide_open(&wide, (spc_config_t){.nodes = 5}, NULL);
    wide_start(&wide);
    check_threads(5, casts_body, &wide);
    wide_finish(&wide);
    spc_gateway_count(wide.gateway[0], &counts);
    for (int i = 0; i < 200; i++) { /* parts of a quarter of the window */
        frames += (lengths[i % LENGTHS] + (1 << 18)) / ((1 << 18) - 64);
    }
    CHECK_EQ_U(counts.sent[SPC_FRAME_ARRIVE].frames, 200);
    CHECK(counts.sent[SPC_FRAME_MESSAGE].frames
          <= frames + 200); /* a sender that is interrupted may cost one more */
    wide_free(&wide);
}

/* ---- receipts */

static void receipts_body(int rank, int size, void *argument) {
    spc_comm_t *comm = wide_join(argument, rank);
    (void)size;
    for (int i = 0; i < 600; i++) { /* two laps of their bits */
        const int64_t value = i;
        const spc_payload_t payload = {.data = &value, .data_bytes = 8, .format = SPC_FORMAT_INT64};
        spc_message_t message;
        if (rank == 0) {
            CHECK_OK(spc_comm_ssend(comm, 1, SPC_CONTEXT_USER, i % 3, &payload, SPC_NO_DEADLINE));
        } else {
            CHECK_OK(recv_until(comm, 0, i % 3, SPC_NO_DEADLINE, &message));
            CHECK_MEM(message.bytes, &value, 8);
            spc_message_release(comm, &message);
        }
    }
    comm_box_leave(comm);
}

TEST(receipts) {
    wide_run(2, (spc_config_t){0}, NULL, receipts_body);
}

/* csrc.mk: in the place of spc_receipt_is_given and spc_link_queue. The gateway of box 1 looks for the receipt of
 * node 1 just before that node gives it and ends. */
static wide_box_t *_Atomic looked_at; /* NULL: it looks as it does */
static _Atomic bool has_looked, has_told_end;

bool __real_spc_receipt_is_given(const spc_row_shared_t *row, uint64_t number);
bool __wrap_spc_receipt_is_given(const spc_row_shared_t *row, uint64_t number);

bool __wrap_spc_receipt_is_given(const spc_row_shared_t *row, uint64_t number) {
    const bool is_given = __real_spc_receipt_is_given(row, number);
    wide_box_t *wide = looked_at;
    if (wide != NULL && pthread_equal(pthread_self(), wide->thread[1]) && !has_looked) {
        const spc_status_shared_t *status = spc_segment_part(&wide->box[1].segment, SPC_REGION_STATUS, 0);
        CHECK(!is_given);
        has_looked = true;
        while (spc_status_state(status, 1) != SPC_NODE_FINISHED) {
            sched_yield();
        }
    }
    return is_given;
}

int __real_spc_link_queue(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                          uint32_t count);
int __wrap_spc_link_queue(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                          uint32_t count);

int __wrap_spc_link_queue(spc_link_t *link, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                          uint32_t count) {
    if (looked_at != NULL && frame->kind == SPC_FRAME_STATUS && frame->source == 1) {
        has_told_end = frame->total_bytes == SPC_NODE_FINISHED;
    }
    CHECK(looked_at == NULL || frame->kind != SPC_FRAME_RECEIPT || !has_told_end);
    return __real_spc_link_queue(link, frame, pieces, count);
}

static void last_receipt_body(int rank, int size, void *argument) {
    spc_comm_t *comm = wide_join(argument, rank);
    (void)size;
    if (rank == 0) {
        const spc_payload_t payload = {.data = &rank, .data_bytes = 4, .format = SPC_FORMAT_INT64};
        CHECK_OK(spc_comm_ssend(comm, 1, SPC_CONTEXT_USER, 3, &payload, SPC_NO_DEADLINE));
    } else {
        spc_message_t message;
        looked_at = argument;
        while (!has_looked) {
            sched_yield();
        }
        CHECK_OK(recv_until(comm, 0, 3, SPC_NO_DEADLINE, &message));
        spc_message_release(comm, &message);
    }
    comm_box_leave(comm);
}

TEST(a_receipt_comes_before_the_end_of_its_node) {
    wide_run(2, (spc_config_t){0}, NULL, last_receipt_body);
    looked_at = NULL;
}

/* ---- cycles of coordinated messages */

static void cycles_body(int rank, int size, void *argument) {
    spc_comm_t *comm = wide_join(argument, rank);
    for (int cycle = 0; cycle < 30; cycle++) {
        for (int32_t to = 0; to < size; to++) {
            for (int i = 0; i < (rank + to + cycle) % 4; i++) {
                const int64_t value = cycle;
                const spc_payload_t payload = {.data = &value, .data_bytes = 8, .format = SPC_FORMAT_INT64};
                CHECK_OK(coordinated_send_until(comm, &to, 1, &payload, SPC_NO_DEADLINE));
            }
        }
        int expected = 0;
        for (int from = 0; from < size; from++) {
            expected += (rank + from + cycle) % 4;
        }
        spc_message_t message;
        bool over = false;
        for (int got = 0; !over; got++) {
            CHECK_OK(spc_comm_coordinated_recv(comm, SPC_NO_DEADLINE, &message, &over));
            if (over) {
                CHECK_EQ(got, expected);
            } else {
                const int64_t value = cycle;
                CHECK_MEM(message.bytes, &value, 8);
                spc_message_release(comm, &message);
            }
        }
    }
    comm_box_leave(comm);
}

TEST(cycles) {
    wide_run(4, (spc_config_t){0}, NULL, cycles_body);
}

/* ---- ends */

/* A node that has finished is missed only after its messages. */
static void ends_body(int rank, int size, void *argument) {
    wide_box_t *wide = argument;
    spc_comm_t *comm = wide_join(wide, rank);
    (void)size;
    if (rank == 0) {
        send_content(comm, 1, 1, 1, 3000000);
        send_content(comm, 1, 2, 2, 8);
        comm_box_leave(comm);
        wide_mark_gone(wide, 0);
        return;
    }
    spc_message_t message;
    recv_content(comm, 0, 1, 1, 3000000);
    recv_content(comm, 0, 2, 2, 8);
    CHECK_EQ(recv_until(comm, 0, 3, SPC_NO_DEADLINE, &message), SPC_EFINISHED);
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    CHECK_EQ(spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE), SPC_EFINISHED);
    comm_box_leave(comm);
}

TEST(ends) {
    wide_run(2, (spc_config_t){0}, NULL, ends_body);
}

/* Messages of node 0 to a node that is gone lie in its arena, where it can write new messages at once. */
enum { TAKEN = 16 << 10, TAKEN_MAX = 4096 };

static struct {
    spc_comm_t *comm; /* NULL: nobody takes anything */
    const spc_status_shared_t *elsewhere; /* of the other box, where the end is known first */
    spc_block_shared_t *block[TAKEN_MAX];
    int count;
} taker;

static void take_all(void) {
    while (taker.count < TAKEN_MAX
           && spc_comm_take_block(taker.comm, TAKEN, &taker.block[taker.count]) == SPC_OK) {
        memset(spc_block_payload(taker.block[taker.count++]), 1, TAKEN);
    }
}

/* csrc.mk: in the place of spc_status_end, which the linker calls __real_... In the other box, too, the memory of a
 * process that was killed is free before its end is known. */
void __real_spc_status_end(spc_status_shared_t *status, uint32_t rank, spc_node_state_t state, int32_t reason,
                           spc_event_shared_t *events, uint32_t event_count, uint32_t features);
void __wrap_spc_status_end(spc_status_shared_t *status, uint32_t rank, spc_node_state_t state, int32_t reason,
                           spc_event_shared_t *events, uint32_t event_count, uint32_t features);

void __wrap_spc_status_end(spc_status_shared_t *status, uint32_t rank, spc_node_state_t state, int32_t reason,
                           spc_event_shared_t *events, uint32_t event_count, uint32_t features) {
    CHECK(state != SPC_NODE_DIED || spc_status_is_gone(status, rank));
    if (taker.comm != NULL && state == SPC_NODE_DIED && status != taker.elsewhere) {
        take_all();
    }
    __real_spc_status_end(status, rank, state, reason, events, event_count, features);
}

static _Atomic bool has_sent;

static void unread_body(int rank, int size, void *argument) {
    wide_box_t *wide = argument;
    spc_comm_t *comm = wide_join(wide, rank);
    spc_message_t message;
    (void)size;
    if (rank == 1) {
        while (!has_sent) {
            sched_yield();
        }
        spc_comm_mark_ended(&wide->box[1].segment, 1, SPC_NODE_DIED, -9);
        comm_box_leave(comm);
        return;
    }
    for (int i = 0; i < 80; i++) {
        send_content(comm, 1, 3, 1, 300000);
    }
    taker.comm = comm;
    taker.elsewhere = spc_segment_part(&wide->box[1].segment, SPC_REGION_STATUS, 0);
    has_sent = true;
    CHECK_EQ(recv_until(comm, 1, 3, SPC_NO_DEADLINE, &message), SPC_ELOST);
    CHECK_EQ(recv_until(comm, 1, 3, 1000000, &message), SPC_ELOST);
    taker.comm = NULL;
    CHECK(taker.count > 80);
    for (int i = 0; i < taker.count; i++) {
        const unsigned char *bytes = spc_block_payload(taker.block[i]);
        for (int at = 0; at < TAKEN; at++) {
            CHECK_EQ(bytes[at], 1);
        }
        spc_comm_release_block(comm, taker.block[i]);
    }
    comm_box_leave(comm);
}

/* A gateway touches nothing that was on its way to a node that is gone. */
TEST(unread_messages_of_the_gone) {
    wide_run(2, (spc_config_t){.slots = 2, .arena_bytes = 32 << 20}, NULL, unread_body);
}

/* Nodes 0, 1 and 3 are a part. Node 0 has entered its barrier and is gone, while a message that it sent before still
 * waits for its receiver; node 1 has left without entering. Node 1 is missing, not node 0. Nodes 2 and 4 keep the
 * gateways at work. */
static _Atomic int gone_nodes;

static void gone_body(int rank, int size, void *argument) {
    wide_box_t *wide = argument;
    spc_comm_t *comm = wide_join(wide, rank), *part;
    spc_message_t message;
    spc_node_state_t state;
    int32_t reason;
    uint64_t phase;
    CHECK_OK(spc_comm_split(comm, rank == 2 || rank == 4, 0, SPC_NO_DEADLINE, &part));
    (void)size;
    if (rank < 2) {
        if (rank == 0) {
            send_content(comm, 3, 1, 1, 5000000);
            CHECK_OK(spc_comm_fuzzy_enter(part, &phase));
        }
        const int closed = spc_comm_close(comm, 1);
        CHECK_EQ(closed, rank == 0 ? SPC_ETIMEDOUT : SPC_OK); /* far from all of that was sent */
        spc_comm_destroy(part);
        spc_comm_destroy(comm);
        wide_mark_gone(wide, (uint32_t)rank);
        atomic_fetch_add(&gone_nodes, 1);
        return;
    }
    if (rank == 3) {
        recv_content(comm, 4, 2, 2, 8);
        CHECK_EQ(recv_until(comm, 0, 1, SPC_NO_DEADLINE, &message), SPC_EFINISHED);
        CHECK_OK(spc_comm_fuzzy_enter(part, &phase));
        CHECK_EQ(spc_comm_fuzzy_wait(part, phase, SPC_NO_DEADLINE), SPC_EFINISHED);
        CHECK_EQ(spc_comm_culprit(part, &state, &reason), 1);
    } else {
        while (rank == 2 && atomic_load(&gone_nodes) < 2) {
            spc_platform_yield();
        }
        for (int i = 0; i < 3; i++) {
            send_content(comm, 6 - rank, i, 1, 8);
            recv_content(comm, 6 - rank, i, 1, 8);
        }
        if (rank == 4) {
            send_content(comm, 3, 2, 2, 8);
        }
    }
    spc_comm_destroy(part);
    comm_box_leave(comm);
}

TEST(who_is_gone_had_entered_a_barrier) {
    static const uint16_t place[] = {0, 0, 0, 1, 1};
    atomic_store(&gone_nodes, 0);
    wide_run(5, (spc_config_t){.arena_bytes = 65536, .ring_bytes = 16384, .slots = 3}, place, gone_body);
}

/* ---- messages to nodes elsewhere that have ended: each is counted once, by a gateway or by its sender */

static _Atomic int ended_nodes;

static void to_the_ended_body(int rank, int size, void *argument) {
    const int32_t others[] = {1, 2, 3};
    spc_comm_t *comm = wide_join(argument, rank);
    (void)size;
    while (rank == 0 && atomic_load(&ended_nodes) < 2) {
        spc_platform_yield();
    }
    for (int i = 0; i < LENGTHS && rank < 2; i++) {
        if (rank == 0) {
            send_content(comm, 2, 0, (uint64_t)i, lengths[i]);
            CHECK_OK(send_until(comm, others, 3, 1, (uint64_t)i, lengths[i], SPC_NO_DEADLINE));
        } else {
            recv_content(comm, 0, 1, (uint64_t)i, lengths[i]);
        }
    }
    comm_box_leave(comm);
    atomic_fetch_add(&ended_nodes, rank >= 2);
}

static uint64_t count_left(const wide_box_t *wide, uint32_t destination, int32_t tag) {
    uint64_t count = 0;
    for (int box = 0; box < WIDE_BOXES; box++) {
        for (uint32_t rank = 0; rank < 4; rank++) {
            const spc_note_shared_t *notes = spc_segment_part(&wide->box[box].segment, SPC_REGION_NOTE, rank);
            CHECK_EQ_U(notes->left_more, 0);
            for (uint32_t i = 0; i < notes->left_count; i++) {
                const spc_note_left_t *left = &notes->left[i];
                const bool is_it = left->source == 0 && left->destination == destination && left->tag == tag;
                count += is_it ? left->count : 0;
            }
        }
        /* A short one may lie in the row of its receiver. */
        spc_mailbox_shared_t *mailbox =
            spc_segment_part(&wide->box[box].segment, SPC_REGION_MAILBOX, destination);
        spc_unread_t unread;
        uint32_t at = 0;
        while (spc_mailbox_unread(mailbox, 0, wide->box[box].segment.config->slots, &at, &unread)) {
            count += box == wide->place[destination] && unread.tag == tag;
        }
    }
    return count;
}

/* Counts what node 0 has sent node 2 in the other box, as --stats does. */
static uint32_t count_sent(const wide_box_t *wide) {
    return spc_mailbox_count(spc_segment_part(&wide->box[0].segment, SPC_REGION_MAILBOX, 2), 0,
                             wide->box[0].segment.config->slots)
        .messages;
}

static void to_the_ended_with(spc_config_t config) {
    wide_box_t wide;
    config.nodes = 4;
    atomic_store(&ended_nodes, 0);
    wide_open(&wide, config, NULL);
    wide_start(&wide);
    check_threads(4, to_the_ended_body, &wide);
    wide_finish(&wide);
    CHECK_EQ_U(count_left(&wide, 2, 0), LENGTHS);
    CHECK_EQ_U(count_left(&wide, 1, 1), 0);
    CHECK_EQ_U(count_left(&wide, 2, 1), LENGTHS);
    CHECK_EQ_U(count_left(&wide, 3, 1), LENGTHS);
    wide_free(&wide);
}

TEST(to_the_ended) {
    for (long round = check_scale(2); round > 0; round--) {
        to_the_ended_with((spc_config_t){0});
        to_the_ended_with((spc_config_t){.arena_bytes = 1, .ring_bytes = 16384, .slots = 3});
        to_the_ended_with((spc_config_t){.arena_bytes = 65536, .ring_bytes = 1024, .slots = 1});
    }
}

/* The parts of one message, dropped one after the other: it counts once, with the last one. */
TEST(parts_to_the_ended) {
    wide_box_t wide;
    wide_open(&wide, (spc_config_t){.nodes = 4, .arena_bytes = 1, .ring_bytes = 16384, .slots = 3}, NULL);
    const spc_frame_t end = {.kind = SPC_FRAME_STATUS, .source = 2, .total_bytes = SPC_NODE_FINISHED};
    CHECK_OK(wide.gateway[0]->deliver(wide.gateway[0], &end, NULL));
    spc_comm_t *comm = wide_join(&wide, 0);
    send_content(comm, 2, 0, 1, 100000);
    for (int i = 0; i < 100; i++) {
        CHECK(count_left(&wide, 2, 0) <= 1);
        (void)spc_gateway_send_progress(wide.gateway[0]);
        CHECK_OK(spc_comm_poll(comm, SPC_CONTEXT_USER, &(uint64_t){0}));
    }
    CHECK_EQ_U(count_left(&wide, 2, 0), 1);
    CHECK_EQ_U(count_sent(&wide), 1);
    spc_comm_destroy(comm);
    wide_free(&wide);
}

/* That a sender has destroyed a communicator is no message: dropped, it is not counted. */
TEST(last_messages_to_the_ended) {
    wide_box_t wide;
    wide_open(&wide, (spc_config_t){.nodes = 4}, NULL);
    const spc_frame_t end = {.kind = SPC_FRAME_STATUS, .source = 2, .total_bytes = SPC_NODE_FINISHED};
    CHECK_OK(wide.gateway[0]->deliver(wide.gateway[0], &end, NULL));
    spc_comm_t *comm = wide_join(&wide, 0);
    spc_outbox_send_last(comm->node->outbox, &(uint32_t){2}, 1, SPC_CONTEXT_KINDS + SPC_CONTEXT_INTERNAL);
    CHECK(!spc_gateway_send_are_empty(wide.gateway[0], 0));
    (void)spc_gateway_send_progress(wide.gateway[0]);
    CHECK(spc_gateway_send_are_empty(wide.gateway[0], 0));
    CHECK_EQ_U(count_left(&wide, 2, 0), 0);
    CHECK_EQ_U(count_sent(&wide), 0);
    spc_comm_destroy(comm);
    wide_free(&wide);
}

/* ---- what comes late, of a former communicator with that number and that first member */

static void late_body(int rank, int size, void *argument) {
    wide_box_t *wide = argument;
    spc_comm_t *comm = wide_join(wide, rank), *part;
    (void)size;
    CHECK_OK(spc_comm_split(comm, 0, 0, SPC_NO_DEADLINE, &part));
    if (rank == 0) {
        spc_gateway_t *gateway = wide->gateway[0];
        pthread_mutex_lock(&gateway->lock);
        const spc_gateway_area_t *area = gateway->areas->next;
        spc_frame_t frame = {.kind = SPC_FRAME_LEFT,
                             .source = 1,
                             .context = (uint16_t)part->number,
                             .total_bytes = area->generation - 1};
        CHECK(area->generation != 0);
        CHECK_OK(gateway->deliver(gateway, &frame, NULL));
        CHECK(!area->leaves[1]);
        frame.kind = SPC_FRAME_ARRIVE;
        frame.offset = area->phase[1] + 1; /* node 1 may have come to the barrier */
        frame.length_bytes = 48;
        CHECK_OK(gateway->deliver(gateway, &frame, (const unsigned char[48]){0}));
        CHECK_EQ_U(area->phase[1], frame.offset - 1);
        frame.total_bytes = area->generation;
        CHECK_EQ(gateway->deliver(gateway, &frame, (const unsigned char[48]){0}), SPC_EINVAL); /* nonsense */
        pthread_mutex_unlock(&gateway->lock);
    }
    barrier(part);
    CHECK_OK(spc_comm_close(part, SPC_NO_DEADLINE));
    spc_comm_destroy(part);
    comm_box_leave(comm);
}

TEST(news_of_a_former_communicator) {
    wide_run(2, (spc_config_t){0}, NULL, late_body);
}

/* ---- what no gateway of ours sends */

TEST(a_receiver_is_named_twice) {
    enum { BYTES = 20000 };
    static unsigned char body[8 + BYTES];
    wide_box_t wide;
    wide_open(&wide, (spc_config_t){.nodes = 4, .arena_bytes = 1 << 20, .ring_bytes = 16384, .slots = 4},
              NULL);
    spc_frame_t frame = {
        .kind = SPC_FRAME_MESSAGE, .tag = 1, .count = 2, .total_bytes = BYTES, .length_bytes = sizeof body};
    const uint16_t twice[] = {3, 3}, each[] = {2, 3};
    memcpy(body, twice, sizeof twice);
    CHECK_EQ(spc_gateway_on_message(wide.gateway[1], &frame, body), SPC_EINVAL);
    memcpy(body, each, sizeof each);
    CHECK_OK(spc_gateway_on_message(wide.gateway[1], &frame, body));
    wide_free(&wide);
}

/* No length is too long for a message: a peer may queue one that is longer than its limit, and credit counts only what
 * is under way. One that no memory holds is refused, and what its source sends goes on. */
TEST(a_message_is_longer_than_any_memory) {
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX / 2, UINT64_C(1) << 56};
    wide_box_t wide;
    wide_open(&wide, (spc_config_t){.nodes = 4, .arena_bytes = 1 << 20, .ring_bytes = 16384, .slots = 4},
              NULL);
    const uint16_t list[16] = {3};
    spc_frame_t frame = {
        .kind = SPC_FRAME_MESSAGE, .flags = SPC_FRAME_PART, .count = 1, .length_bytes = sizeof list};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        frame.total_bytes = lengths[i];
        CHECK_EQ(spc_gateway_on_message(wide.gateway[1], &frame, (const unsigned char *)list), SPC_ENOMEM);
    }
    frame.flags = 0;
    frame.total_bytes = sizeof list - 8;
    CHECK_OK(spc_gateway_on_message(wide.gateway[1], &frame, (const unsigned char *)list));
    wide_free(&wide);
}

/* Somebody who knows the secret says anything: it is refused, or does no harm to memory. Its nodes then look at what
 * has come. */
TEST(anything_is_said_by_a_box) {
    static unsigned char body[ANY_FRAME_BYTES];
    uint64_t state = check_seed();
    for (long round = check_scale(400); round > 0; round--) {
        wide_box_t wide;
        spc_message_t message;
        wide_open(&wide, (spc_config_t){.nodes = 4, .arena_bytes = 1 << 20, .ring_bytes = 16384, .slots = 4},
                  NULL);
        spc_comm_t *comm = wide_join(&wide, 2);
        for (int i = 0; i < 100; i++) {
            spc_frame_t frame;
            any_frame(&state, &frame, body);
            (void)wide.gateway[1]->deliver(wide.gateway[1], &frame, body);
            while (recv_until(comm, SPC_ANY_SOURCE, SPC_ANY_TAG, 0, &message) == SPC_OK) {
                spc_message_release(comm, &message);
            }
        }
        spc_comm_destroy(comm);
        wide_free(&wide);
    }
}

TEST_MAIN()
