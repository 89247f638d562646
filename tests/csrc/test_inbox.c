/* SPDX-License-Identifier: MIT */
/* Inbox and its queue: matching, order, fairness, parts, put_back, limits, rows that nobody rang for. */
#include "inbox_box.h"

static void expect_in(office_t *office, uint16_t context, int32_t source, int32_t tag, int32_t found_source,
                      int32_t found_tag, uint64_t bytes) {
    spc_message_t message;
    CHECK_OK(take(office, context, source, tag, &message));
    check_message(&message, found_source, found_tag, bytes);
    spc_inbox_release(office->inbox, &message);
    spc_inbox_release(office->inbox, &message); /* does nothing */
}

static void expect(office_t *office, int32_t source, int32_t tag, int32_t found_source, int32_t found_tag,
                   uint64_t bytes) {
    expect_in(office, 0, source, tag, found_source, found_tag, bytes);
}

static void expect_nothing(office_t *office, int32_t source, int32_t tag) {
    spc_message_t message;
    CHECK_EQ(take(office, 0, source, tag, &message), SPC_EAGAIN);
}

/* ---- the queue */

static spc_entry_t *put(spc_inbox_queue_t *queue, uint64_t arrival, int32_t source, int32_t tag) {
    spc_entry_t *entry = spc_inbox_queue_make(queue);
    CHECK(entry != NULL);
    entry->message =
        (spc_message_t){.arrival = arrival, .source = source, .tag = tag, .storage = SPC_STORED_INLINE};
    entry->message.bytes = entry->message.inlined;
    entry->assembled_bytes = 0;
    spc_inbox_queue_insert(queue, entry);
    return entry;
}

static void find(spc_inbox_queue_t *queue, int32_t source, int32_t tag, uint64_t arrival) {
    spc_entry_t *entry = spc_inbox_queue_find(queue, 0, source, tag);
    CHECK_EQ(entry != NULL, arrival != 0);
    CHECK(entry == NULL || entry->message.arrival == arrival);
}

TEST(the_queue_keeps_arrivals_in_order) {
    spc_inbox_queue_t queue;
    spc_message_t message;
    spc_inbox_queue_init(&queue);
    put(&queue, 20, 1, 5);
    put(&queue, 40, 2, 5 + SPC_TAG_BUCKETS); /* the same bucket */
    put(&queue, 30, 2, 5);                   /* put back: goes between */
    put(&queue, 10, 1, 6);                   /* before all */
    CHECK_EQ_U(queue.length, 4);
    find(&queue, SPC_ANY_SOURCE, SPC_ANY_TAG, 10);
    find(&queue, SPC_ANY_SOURCE, 5, 20);
    find(&queue, 2, SPC_ANY_TAG, 30);
    find(&queue, 2, 5 + SPC_TAG_BUCKETS, 40);
    find(&queue, 1, 5 + SPC_TAG_BUCKETS, 0);
    find(&queue, 3, SPC_ANY_TAG, 0);
    CHECK_EQ_PTR(spc_inbox_queue_find(&queue, 1, SPC_ANY_SOURCE, SPC_ANY_TAG), NULL); /* another context */
    for (uint64_t arrival = 10; arrival <= 40; arrival += 10) {
        spc_entry_t *entry = spc_inbox_queue_find(&queue, 0, SPC_ANY_SOURCE, SPC_ANY_TAG);
        spc_inbox_queue_remove(&queue, entry, &message);
        CHECK_EQ_U(message.arrival, arrival);
        CHECK_EQ_PTR(message.bytes, message.inlined); /* not into the entry any more */
    }
    CHECK_EQ_U(queue.length, 0);
    find(&queue, SPC_ANY_SOURCE, 5, 0);
    put(&queue, 50, 1, 5)->message.length_bytes = 8; /* incomplete: has its place, is not found */
    put(&queue, 60, 1, 5);
    find(&queue, SPC_ANY_SOURCE, SPC_ANY_TAG, 60);
    spc_inbox_queue_fini(&queue);
}

/* ---- matching */

TEST(matching_by_source_tag_and_context) {
    office_t office;
    open_office(&office, (spc_config_t){.nodes = 3});
    post(&office, 1, 0, 10, 8);
    post(&office, 1, 1, 11, 100);
    post(&office, 1, 0, 12, 100);
    post(&office, 2, 0, 10, 8);
    post(&office, 0, 0, 13, 8);
    expect_nothing(&office, 2, 12);
    expect(&office, 1, 12, 1, 12, 100);
    expect(&office, 2, SPC_ANY_TAG, 2, 10, 8);
    expect(&office, SPC_ANY_SOURCE, 13, 0, 13, 8);
    expect(&office, SPC_ANY_SOURCE, SPC_ANY_TAG, 1, 10, 8);
    expect_nothing(&office, SPC_ANY_SOURCE, SPC_ANY_TAG); /* what is left has another context */
    CHECK_EQ_U(spc_inbox_count(office.inbox, 1), 1);
    CHECK_EQ_U(spc_inbox_count(office.inbox, 7), 0);
    expect_in(&office, 1, SPC_ANY_SOURCE, SPC_ANY_TAG, 1, 11, 100);
    close_office(&office);
}

TEST(what_matches_in_its_row_is_not_copied) {
    office_t office;
    spc_message_t message;
    open_office(&office, (spc_config_t){.nodes = 2});
    post(&office, 1, 0, 1, 200);
    CHECK_OK(take(&office, 0, 1, 1, &message));
    CHECK_EQ(message.storage, SPC_STORED_RING);
    spc_inbox_release(office.inbox, &message);
    post(&office, 1, 0, 2, 200);
    spc_inbox_drain(office.inbox);
    CHECK_OK(take(&office, 0, 1, 2, &message));
    CHECK_EQ(message.storage, SPC_STORED_HEAP); /* the sender's ring is free */
    spc_inbox_release(office.inbox, &message);
    close_office(&office);
}

TEST(any_is_fair) {
    office_t office;
    spc_message_t message;
    open_office(&office,
                (spc_config_t){.nodes = NODES_MAX, .slots = 4, .ring_bytes = 1024, .arena_bytes = 1});
    int served[NODES_MAX] = {0};
    for (int round = 0; round < 3 * NODES_MAX; round++) {
        for (int source = 0; source < NODES_MAX; source++) {
            if (spc_outbox_waiting(office.outbox[source], 0) == 0) {
                post(&office, source, 0, 1, 8); /* everybody always has something to say */
            }
        }
        CHECK_OK(take(&office, 0, SPC_ANY_SOURCE, SPC_ANY_TAG, &message));
        served[message.source]++;
        spc_outbox_flush(office.outbox[message.source]);
    }
    for (int source = 0; source < NODES_MAX; source++) {
        CHECK_EQ(served[source], 3);
    }
    close_office(&office);
}

/* More senders than bits in the doorbell; single ones are found, whichever bit they share. */
TEST(seventy_senders) {
    office_t office;
    open_office(&office,
                (spc_config_t){.nodes = NODES_MAX, .slots = 1, .ring_bytes = 1024, .arena_bytes = 1});
    for (int round = 0; round < 3; round++) {
        for (int source = 0; source < NODES_MAX; source++) {
            post(&office, source, 0, source, 8);
            expect(&office, SPC_ANY_SOURCE, SPC_ANY_TAG, source, source, 8);
            expect_nothing(&office, SPC_ANY_SOURCE, SPC_ANY_TAG);
        }
    }
    post(&office, 69, 0, 69, 8);
    post(&office, 5, 0, 5, 8);
    expect(&office, 5, 5, 5, 5, 8); /* by polling its row: the bell stays rung */
    expect(&office, SPC_ANY_SOURCE, SPC_ANY_TAG, 69, 69, 8);
    expect_nothing(&office, SPC_ANY_SOURCE, SPC_ANY_TAG);
    close_office(&office);
}

/* ---- parts */

TEST(parts_make_one_message) {
    office_t office;
    open_office(&office, (spc_config_t){.nodes = 2, .slots = 2, .ring_bytes = 1024});
    post(&office, 1, 0, 1, 3000);
    post(&office, 1, 0, 2, 8);
    int turns = 0;
    spc_message_t message;
    while (take(&office, 0, 1, 1, &message) == SPC_EAGAIN) {
        CHECK_EQ_U(spc_inbox_count(office.inbox, 0), 0);
        expect_nothing(&office, 1, SPC_ANY_TAG); /* nothing overtakes it */
        spc_outbox_flush(office.outbox[1]);
        CHECK(++turns < 100);
    }
    CHECK(turns > 2);
    check_message(&message, 1, 1, 3000);
    CHECK_OK(spc_inbox_put_back(office.inbox, &message));
    spc_outbox_flush(office.outbox[1]);
    spc_inbox_drain(office.inbox);
    CHECK_EQ_U(spc_inbox_count(office.inbox, 0), 2);
    expect(&office, SPC_ANY_SOURCE, SPC_ANY_TAG, 1, 1, 3000);
    expect(&office, SPC_ANY_SOURCE, SPC_ANY_TAG, 1, 2, 8);
    close_office(&office);
}

/* Its beginning is forgotten with the inbox: LeakSanitizer looks. */
TEST(unfinished_parts_are_never_seen) {
    office_t office;
    open_office(&office, (spc_config_t){.nodes = 2, .slots = 2, .ring_bytes = 1024});
    post(&office, 1, 0, 1, 3000);
    spc_inbox_drain(office.inbox);
    spc_comm_mark_ended(&office.segment, 1, SPC_NODE_DIED, -9);
    spc_inbox_drain_row(office.inbox, 1);
    CHECK_EQ_U(spc_inbox_count(office.inbox, 0), 0);
    expect_nothing(&office, 1, SPC_ANY_TAG);
    close_office(&office);
}

/* ---- putting back */

TEST(what_is_put_back_has_its_old_place) {
    office_t office;
    spc_message_t first, second;
    open_office(&office, (spc_config_t){.nodes = 2});
    for (int tag = 1; tag <= 4; tag++) {
        post(&office, 1, 0, tag, 20 * (uint64_t)tag); /* inline and ring */
    }
    for (int round = 0; round < 3; round++) {
        CHECK_OK(take(&office, 0, 1, 3, &first)); /* 1 and 2 go into the queue */
        CHECK_OK(take(&office, 0, 1, SPC_ANY_TAG, &second));
        check_message(&first, 1, 3, 60);
        check_message(&second, 1, 1, 20);
        CHECK_OK(spc_inbox_put_back(office.inbox, &first));
        CHECK_OK(spc_inbox_put_back(office.inbox, &second));
        spc_inbox_release(office.inbox, &first); /* no longer the caller's: does nothing */
    }
    for (int tag = 1; tag <= 4; tag++) {
        expect(&office, SPC_ANY_SOURCE, SPC_ANY_TAG, 1, tag, 20 * (uint64_t)tag);
    }
    close_office(&office);
}

/* ---- what is kept of a sender that nobody listens to */

#define LIMIT 2000

static int try_to_post(office_t *office, int source, uint16_t context, int32_t tag, uint64_t bytes) {
    const int32_t to = 0;
    const spc_payload_t payload = {.data = content, .data_bytes = bytes};
    memset(content, tag, bytes);
    return spc_outbox_send(office->outbox[source], &to, 1, context, tag, &payload);
}

/* Whatever a sender has sent before, and however much: what is asked for is found behind it. */
TEST(nothing_hides_what_comes_behind_it) {
    office_t office;
    int32_t source, tag;
    uint64_t bytes;
    const spc_match_t last = {SPC_ANY_SOURCE, 4, 0, NULL};
    open_office(&office, (spc_config_t){.nodes = 2, .slots = 64, .queue_limit_bytes = 1024});
    CHECK_OK(spc_inbox_filter(office.inbox, 0, 5, SPC_CONTEXT_HANDLED));
    for (int i = 0; i < 40; i++) {
        post(&office, 1, 0, i % 2, i % 3 == 0 ? 100 : 0); /* empty ones count, too */
    }
    post(&office, 1, SPC_CONTEXT_INTERNAL, 3, 50);
    post(&office, 1, 0, 5, 60);
    post(&office, 1, 0, 4, 70);
    expect_in(&office, SPC_CONTEXT_INTERNAL, 1, 3, 1, 3, 50);
    expect_in(&office, SPC_CONTEXT_HANDLED, SPC_ANY_SOURCE, SPC_ANY_TAG, 1, 5, 60);
    CHECK_OK(spc_inbox_peek(office.inbox, &last, &source, &tag, &bytes));
    CHECK_EQ_U(bytes, 70);
    expect(&office, 1, 4, 1, 4, 70);
    for (int i = 0; i < 40; i++) {
        expect(&office, 1, SPC_ANY_TAG, 1, i % 2, i % 3 == 0 ? 100 : 0); /* in the order sent */
    }
    close_office(&office);
}

/* Sends while it may, and while somebody waits for something else. How many messages that were. */
static int flood(office_t *office, int source, uint64_t bytes) {
    int accepted = 0;
    while (try_to_post(office, source, 0, 1, bytes) == SPC_OK) {
        CHECK(++accepted < 1000); /* something bounds it */
        do {
            expect_nothing(office, SPC_ANY_SOURCE, 9);
        } while (spc_outbox_flush(office->outbox[source]));
    }
    CHECK(spc_outbox_is_empty(office->outbox[source])); /* all of it has come */
    return accepted;
}

static void the_limit_is_the_senders(uint64_t bytes) {
    office_t office;
    open_office(&office,
                (spc_config_t){.nodes = 3, .slots = 64, .queue_limit_bytes = LIMIT, .arena_bytes = 1});
    const uint64_t each = bytes + sizeof(spc_entry_t); /* at most */
    const int accepted = flood(&office, 1, bytes);
    CHECK((uint64_t)accepted * each >= LIMIT);
    CHECK((uint64_t)accepted * sizeof(spc_entry_t) <= 2 * LIMIT + 2 * each);
    CHECK(spc_outbox_is_lent(office.outbox[1], 0));
    CHECK(spc_outbox_limit_for(office.outbox[1], bytes) > LIMIT);
    CHECK_OK(try_to_post(&office, 1, SPC_CONTEXT_INTERNAL, 7, bytes)); /* collectives go on */
    CHECK(!spc_outbox_is_lent(office.outbox[2], 0)); /* others are not concerned */
    post(&office, 2, 0, 9, 8);
    expect(&office, SPC_ANY_SOURCE, 9, 2, 9, 8);
    for (int i = 0; i < accepted; i++) {
        expect(&office, 1, SPC_ANY_TAG, 1, 1, bytes);
    }
    CHECK(!spc_outbox_is_lent(office.outbox[1], 0));
    const int again = flood(&office, 1, bytes);
    CHECK(again >= accepted - 1 && again <= accepted + 1);
    close_office(&office);
}

TEST(a_flood) {
    static const uint64_t lengths[] = {0, 8, 100, 900};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        the_limit_is_the_senders(lengths[i]);
    }
}

/* In parts: each longer than the limit, so one may be on its way, and one be kept. */
TEST(a_flood_in_parts) {
    office_t office;
    open_office(&office,
                (spc_config_t){.nodes = 3, .slots = 8, .queue_limit_bytes = LIMIT, .arena_bytes = 1});
    const int accepted = flood(&office, 1, 10000);
    CHECK(accepted >= 1 && accepted <= 2);
    for (int i = 0; i < accepted; i++) {
        expect(&office, 1, 1, 1, 1, 10000);
    }
    CHECK_OK(try_to_post(&office, 1, 0, 1, 10000));
    close_office(&office);
}

/* A sender that sleeps until its messages are received is notified when one is. */
TEST(a_sender_at_its_limit_is_told_of_room) {
    office_t office;
    open_office(&office, (spc_config_t){.nodes = 2, .slots = 64, .queue_limit_bytes = LIMIT});
    (void)flood(&office, 1, 0);
    atomic_store(&office.events[1].sleeping, 1);
    const uint32_t word = atomic_load(&office.events[1].word);
    expect(&office, 1, 1, 1, 1, 0);
    CHECK(atomic_load(&office.events[1].word) != word);
    close_office(&office);
}

/* Bytes that ended receivers keep no longer count. */
TEST(a_receiver_that_ends_lends_nothing) {
    office_t office;
    open_office(&office, (spc_config_t){.nodes = 2, .slots = 64, .queue_limit_bytes = LIMIT});
    (void)flood(&office, 1, 0);
    spc_comm_mark_ended(&office.segment, 0, SPC_NODE_DIED, -9);
    CHECK(!spc_outbox_is_lent(office.outbox[1], 0));
    CHECK(spc_outbox_limit_for(office.outbox[1], 0) < LIMIT);
    close_office(&office);
}

/* ---- ends */

/* A sender killed between writing a slot and ringing: whoever looks after its end finds the message. */
TEST(a_bell_that_nobody_rang) {
    office_t office;
    open_office(&office, (spc_config_t){.nodes = 70, .slots = 2, .ring_bytes = 1024, .arena_bytes = 1});
    post(&office, 66, 0, 1, 8);
    spc_mailbox_shared_t *mailbox = spc_segment_part(&office.segment, SPC_REGION_MAILBOX, 0);
    atomic_store(&mailbox->doorbell, 0);
    expect_nothing(&office, SPC_ANY_SOURCE, 1);
    spc_comm_mark_ended(&office.segment, 66, SPC_NODE_DIED, -9);
    expect(&office, SPC_ANY_SOURCE, 1, 66, 1, 8);
    expect_nothing(&office, SPC_ANY_SOURCE, 1);
    close_office(&office);
}

TEST(discarding_gives_all_room_back) {
    office_t office;
    spc_block_shared_t *block;
    const int32_t to = 0;
    open_office(&office, (spc_config_t){.nodes = 2, .slots = 8, .ring_bytes = 1024, .arena_bytes = 8192});
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 4; i++) {
            post(&office, 1, 0, 1, 100);
            spc_inbox_drain(office.inbox);
        }
        post(&office, 1, 0, 2, 200);
        CHECK_OK(spc_outbox_take_block(office.outbox[1], 6000, &block));
        CHECK_OK(spc_outbox_send_block(office.outbox[1], &to, 1, 0, 3, &(spc_payload_t){.data_bytes = 6000},
                                       block));
        spc_inbox_discard(office.inbox);
        CHECK(spc_outbox_is_empty(office.outbox[1]));
    }
    close_office(&office);
}

TEST(messages_for_handlers) {
    office_t office;
    open_office(&office, (spc_config_t){.nodes = 2, .slots = 8});
    post(&office, 1, 0, 5, 8);
    post(&office, 1, 0, 6, 8);
    post(&office, 1, 0, 5, 300);
    spc_inbox_drain(office.inbox); /* those three were queued before; the next are not */
    CHECK_OK(spc_inbox_filter(office.inbox, 0, 5, 3));
    CHECK_OK(spc_inbox_filter(office.inbox, 0, 5, 3)); /* again: nothing */
    CHECK_EQ_U(spc_inbox_count(office.inbox, 0), 1);
    CHECK_EQ_U(spc_inbox_count(office.inbox, 3), 2);
    CHECK(spc_inbox_has_filtered(office.inbox));
    post(&office, 1, 0, 5, 16);
    post(&office, 1, 1, 5, 8); /* of another context: nothing happens to it */
    post(&office, 1, 0, 7, 8);
    expect_nothing(&office, 1, 5);
    expect(&office, SPC_ANY_SOURCE, SPC_ANY_TAG, 1, 6, 8);
    expect(&office, 1, SPC_ANY_TAG, 1, 7, 8);
    const uint64_t bytes[] = {8, 300, 16};
    for (int i = 0; i < 3; i++) {
        expect_in(&office, 3, SPC_ANY_SOURCE, SPC_ANY_TAG, 1, 5, bytes[i]);
    }
    CHECK(!spc_inbox_has_filtered(office.inbox));
    expect_in(&office, 1, 1, 5, 1, 5, 8);
    spc_inbox_close_contexts(office.inbox, 0, 4); /* forgets it, and a later one may have the number again */
    CHECK(!spc_inbox_has_filtered(office.inbox));
    close_office(&office);
}

/* As many tags as would take minutes if each were compared with all others. */
TEST(any_number_of_handlers) {
    enum { HANDLERS = 500000, FIRST = 7, APART = 64 };
    office_t office;
    open_office(&office, (spc_config_t){.nodes = 2, .slots = 8});
    for (int32_t i = 0; i < HANDLERS; i++) {
        CHECK_OK(spc_inbox_filter(office.inbox, 0, FIRST + APART * i, 3));
        CHECK_OK(spc_inbox_filter(office.inbox, 4, FIRST + i, 7)); /* of another communicator */
    }
    for (int32_t i = 0; i < HANDLERS; i += 1000) {
        post(&office, 1, 0, FIRST + APART * i, 8);
        expect_nothing(&office, 1, FIRST + APART * i);
        expect_in(&office, 3, 1, FIRST + APART * i, 1, FIRST + APART * i, 8);
        post(&office, 1, 0, FIRST + APART * i + 1, 8);
        expect(&office, 1, FIRST + APART * i + 1, 1, FIRST + APART * i + 1, 8);
    }
    spc_inbox_close_contexts(office.inbox, 0, 4); /* those of the other one stay */
    CHECK(spc_inbox_has_filters(office.inbox));
    for (int32_t i = 0; i < HANDLERS; i += 1000) {
        post(&office, 1, 4, FIRST + i, 8);
        expect_in(&office, 7, 1, FIRST + i, 1, FIRST + i, 8);
    }
    spc_inbox_close_contexts(office.inbox, 4, 4);
    CHECK(!spc_inbox_has_filters(office.inbox));
    close_office(&office);
}

TEST_MAIN()
