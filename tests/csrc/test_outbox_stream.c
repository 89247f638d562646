/* SPDX-License-Identifier: MIT */
/* Streams: messages that go in parts to a receiver that waits for them, and what happens when it does not keep up. */
#include "inbox_box.h"

enum { BYTES = 50000, META = 45, TAG = 3, ROUNDS = 10000 };

static const spc_config_t tiny = {.nodes = 2, .slots = 4, .ring_bytes = 4096, .arena_bytes = 1 << 17};
static const unsigned char meta[META] = "what both sides know";

/* Node 1 sends, node 0 receives. */
typedef struct pair {
    office_t office;
    unsigned char sent[BYTES], memory[BYTES];
    spc_payload_t payload;
    spc_sink_t sink;
    spc_match_t match;
    spc_posted_t posted;
    spc_stream_t stream;
} pair_t;

static pair_t *open_pair(spc_config_t config) {
    pair_t *pair = calloc(1, sizeof(*pair));
    uint64_t seed = 7;
    open_office(&pair->office, config);
    for (int i = 0; i < BYTES; i++) {
        pair->sent[i] = (unsigned char)check_random(&seed);
    }
    pair->payload = (spc_payload_t){meta, pair->sent, BYTES, META, SPC_FORMAT_ARRAY, NULL};
    pair->sink = (spc_sink_t){pair->memory, BYTES, meta, META, SPC_FORMAT_ARRAY, false};
    pair->match = (spc_match_t){1, TAG, 0, NULL};
    return pair;
}

static void close_pair(pair_t *pair) {
    CHECK(spc_outbox_is_empty(pair->office.outbox[1]));
    CHECK_EQ_U(spc_outbox_block_bytes(pair->office.outbox[1]), 0);
    close_office(&pair->office);
    free(pair);
}

static void want(pair_t *pair) {
    spc_inbox_post(pair->office.inbox, &pair->match, &pair->sink, &pair->posted);
}

static int begin(pair_t *pair) {
    return spc_outbox_begin_stream(pair->office.outbox[1], 0, 0, TAG, &pair->payload, &pair->stream);
}

static void begin_wanted(pair_t *pair) {
    want(pair);
    CHECK_OK(begin(pair));
    CHECK(spc_outbox_flush(pair->office.outbox[1]));
    CHECK(pair->stream.sent != 0 && !pair->stream.done);
}

/* As a sender does whose receiver does not keep up; then the memory is its own again. */
static void abandon(pair_t *pair) {
    const uint64_t sent = pair->stream.sent;
    pair->stream.held = true;
    CHECK(!spc_outbox_flush(pair->office.outbox[1]));
    spc_payload_copy(&pair->payload, sent, META + BYTES - sent, spc_block_payload(pair->stream.block));
    spc_outbox_end_stream(pair->office.outbox[1], &pair->stream);
}

static void check_data(const unsigned char *data) {
    uint64_t seed = 7;
    for (int i = 0; i < BYTES; i++) {
        CHECK_EQ(data[i], (unsigned char)check_random(&seed));
    }
}

static void expect_whole(pair_t *pair, bool filled) {
    spc_message_t message;
    int status = SPC_EAGAIN;
    for (int i = 0; i < ROUNDS && status == SPC_EAGAIN; i++) {
        status = spc_inbox_take(pair->office.inbox, &pair->match, &message);
        spc_outbox_flush(pair->office.outbox[1]);
    }
    CHECK_OK(status);
    CHECK_EQ(pair->sink.filled, filled);
    CHECK_EQ_U(message.length_bytes, META + BYTES);
    check_data(filled ? pair->memory : spc_message_data(&message));
    spc_inbox_release(pair->office.inbox, &message);
}

TEST(both_sides_in_turn) {
    pair_t *pair = open_pair(tiny);
    for (int i = 0; i < 3; i++) {
        begin_wanted(pair);
        expect_whole(pair, true);
        CHECK(pair->stream.done);
        spc_outbox_end_stream(pair->office.outbox[1], &pair->stream);
        spc_inbox_withdraw(pair->office.inbox, &pair->posted);
    }
    CHECK(spc_outbox_expect_stream(pair->office.outbox[1], 0, false));
    CHECK(!spc_outbox_expect_stream(pair->office.outbox[1], 0, false));
    close_pair(pair);
}

/* Nothing is sent, and no block is held, unless the receiver waits for just this message, and has read all others. */
TEST(only_what_is_wanted) {
    pair_t *pair = open_pair(tiny);
    spc_outbox_t *outbox = pair->office.outbox[1];
    CHECK_EQ(begin(pair), SPC_EAGAIN);
    want(pair);
    CHECK_EQ(spc_outbox_begin_stream(outbox, 0, 0, TAG + 1, &pair->payload, &pair->stream), SPC_EAGAIN);
    CHECK_EQ(spc_outbox_begin_stream(outbox, 0, 4, TAG, &pair->payload, &pair->stream), SPC_EAGAIN);
    pair->payload.data_bytes--;
    CHECK_EQ(begin(pair), SPC_EAGAIN);
    pair->payload.data_bytes++;
    post(&pair->office, 1, 0, TAG + 1, 8);
    CHECK_EQ(begin(pair), SPC_EAGAIN); /* the receiver has not read that one */
    spc_inbox_withdraw(pair->office.inbox, &pair->posted);
    CHECK_EQ(spc_inbox_drain(pair->office.inbox), 1);
    CHECK_EQ(begin(pair), SPC_EAGAIN);
    pair->match.tag = SPC_ANY_TAG;
    want(pair);
    CHECK_OK(begin(pair));
    pair->match.tag = TAG;
    pair->match.posted = &pair->posted;
    spc_outbox_flush(outbox);
    expect_whole(pair, true);
    spc_outbox_end_stream(outbox, &pair->stream);
    spc_inbox_withdraw(pair->office.inbox, &pair->posted);
    spc_inbox_discard(pair->office.inbox);
    close_pair(pair);
}

/* The rest of the message is in a block at once: the receiver needs nothing more of its sender. */
TEST(abandoned_half_way) {
    for (uint32_t slots = 2; slots <= 64; slots *= 2) {
        spc_config_t config = tiny;
        config.slots = slots;
        pair_t *pair = open_pair(config);
        begin_wanted(pair);
        abandon(pair);
        memset(pair->sent, 0, BYTES);
        CHECK_EQ_U(spc_outbox_waiting(pair->office.outbox[1], 0), 0); /* nor is its row full */
        expect_whole(pair, true);
        spc_inbox_withdraw(pair->office.inbox, &pair->posted);
        close_pair(pair);
    }
}

/* Not one part has been sent: it is an ordinary block. */
TEST(abandoned_at_once) {
    pair_t *pair = open_pair(tiny);
    want(pair);
    CHECK_OK(begin(pair));
    abandon(pair);
    expect_whole(pair, false);
    spc_inbox_withdraw(pair->office.inbox, &pair->posted);
    close_pair(pair);
}

TEST(the_receiver_gives_up) {
    pair_t *pair = open_pair(tiny);
    spc_message_t message;
    begin_wanted(pair);
    CHECK_EQ(spc_inbox_take(pair->office.inbox, &pair->match, &message), SPC_EAGAIN);
    CHECK((spc_inbox_news(pair->office.inbox) & SPC_INBOX_MOVED) != 0);
    spc_inbox_withdraw(pair->office.inbox, &pair->posted);
    pair->match.posted = NULL;
    abandon(pair);
    memset(pair->memory, 0, BYTES);
    expect_whole(pair, false);
    close_pair(pair);
}

TEST(what_is_sent_meanwhile_comes_later) {
    pair_t *pair = open_pair(tiny);
    spc_message_t message;
    begin_wanted(pair);
    post(&pair->office, 1, 0, TAG, 8);
    post(&pair->office, 1, 0, TAG, 300);
    abandon(pair);
    expect_whole(pair, true);
    spc_inbox_withdraw(pair->office.inbox, &pair->posted);
    for (uint64_t bytes = 8; bytes <= 300; bytes += 292) {
        while (take(&pair->office, 0, 1, TAG, &message) == SPC_EAGAIN) {
            spc_outbox_flush(pair->office.outbox[1]);
        }
        check_message(&message, 1, TAG, bytes);
        spc_inbox_release(pair->office.inbox, &message);
    }
    close_pair(pair);
}

TEST(the_receiver_ends) {
    pair_t *pair = open_pair(tiny);
    begin_wanted(pair);
    spc_status_end(pair->office.status, 0, SPC_NODE_FINISHED, 0, pair->office.events, 3, 0);
    CHECK(spc_outbox_flush(pair->office.outbox[1]));
    CHECK(pair->stream.done);
    spc_outbox_end_stream(pair->office.outbox[1], &pair->stream);
    spc_inbox_withdraw(pair->office.inbox, &pair->posted);
    spc_inbox_discard(pair->office.inbox);
    close_pair(pair);
}

/* At the receiver's end all parts are given back, the block too. */
TEST(nobody_takes_it) {
    for (int stored = 0; stored < 2; stored++) {
        pair_t *pair =
            open_pair((spc_config_t){.nodes = 2, .slots = 64, .ring_bytes = 4096, .arena_bytes = 1 << 17});
        begin_wanted(pair);
        if (stored) {
            spc_inbox_drain(pair->office.inbox);
        }
        abandon(pair);
        spc_inbox_withdraw(pair->office.inbox, &pair->posted);
        spc_inbox_discard(pair->office.inbox);
        close_pair(pair);
    }
}

TEST_MAIN()
