/* SPDX-License-Identifier: MIT */
/* Receives that have said where they want the data: what is put together there, and what happens if they give up. */
#include "inbox_box.h"

enum { WANTED = 3000, META = 45 };

typedef struct wish { /* a receive that has posted where it wants the data of a message of WANTED bytes */
    unsigned char data[WANTED - META];
    unsigned char meta[META];
    spc_sink_t sink;
    spc_posted_t posted;
    spc_match_t match;
} wish_t;

static void wish_for(office_t *office, wish_t *wish, int32_t source, int32_t tag) {
    memset(wish->data, 0xee, sizeof wish->data);
    memset(wish->meta, tag, sizeof wish->meta);
    wish->sink = (spc_sink_t){.data = wish->data,
                              .data_bytes = sizeof wish->data,
                              .meta = wish->meta,
                              .meta_bytes = META,
                              .format = SPC_FORMAT_ARRAY,
                              .filled = true};
    wish->match = (spc_match_t){.source = source, .tag = tag};
    spc_inbox_post(office->inbox, &wish->match, &wish->sink, &wish->posted);
    CHECK(!wish->sink.filled);
}

static void check_bytes(const unsigned char *bytes, int value, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQ(bytes[i], (unsigned char)value);
    }
}

/* All bytes are the tag, those of the meta, too. */
static void post_array(office_t *office, int source, int32_t tag, uint64_t bytes, uint16_t meta_bytes,
                       uint8_t format) {
    const int32_t to = 0;
    const spc_payload_t payload = {content, content + meta_bytes, bytes - meta_bytes, meta_bytes, format,
                                   NULL};
    memset(content, tag, bytes);
    CHECK_OK(spc_outbox_send(office->outbox[source], &to, 1, 0, tag, &payload));
    memset(content, 0, bytes);
}

static void take_whole(office_t *office, const spc_match_t *match, spc_message_t *message) {
    int turns = 0;
    while (spc_inbox_take(office->inbox, match, message) == SPC_EAGAIN) {
        spc_outbox_flush(office->outbox[1]);
        CHECK(++turns < 100);
    }
}

static void open_narrow_office(office_t *office) {
    open_office(office, (spc_config_t){.nodes = 2, .slots = 2, .ring_bytes = 1024});
}

TEST(parts_go_where_they_are_wanted) {
    office_t office;
    wish_t wish;
    spc_message_t message;
    open_narrow_office(&office);
    for (int i = 1; i < 4; i++) {
        wish_for(&office, &wish, i == 2 ? SPC_ANY_SOURCE : 1, i);
        post_array(&office, 1, i, WANTED, META, SPC_FORMAT_ARRAY);
        if (i == 3) {
            spc_inbox_drain(office.inbox); /* whoever stores the first part */
        }
        take_whole(&office, &wish.match, &message);
        CHECK(wish.sink.filled);
        CHECK_EQ_U(message.length_bytes, WANTED);
        check_bytes(wish.data, i, sizeof wish.data);
        spc_inbox_release(office.inbox, &message);
        spc_inbox_withdraw(office.inbox, &wish.posted);
        check_bytes(wish.data, i, sizeof wish.data);
    }
    close_office(&office);
}

/* Context, source and tag are those of the wish: it gets the message, but where messages are. */
TEST(what_is_not_as_expected_goes_the_usual_way) {
    office_t office;
    wish_t wish;
    spc_message_t message;
    open_narrow_office(&office);
    for (int i = 0; i < 4; i++) {
        uint64_t bytes = i == 0 ? WANTED + 8 : WANTED;
        uint16_t meta_bytes = i == 1 ? META + 1 : META;
        wish_for(&office, &wish, 1, 7);
        wish.meta[META - 1] ^= i == 3;
        post_array(&office, 1, 7, bytes, meta_bytes, i == 2 ? SPC_FORMAT_RAW : SPC_FORMAT_ARRAY);
        take_whole(&office, &wish.match, &message);
        CHECK(!wish.sink.filled);
        check_message(&message, 1, 7, bytes);
        spc_inbox_release(office.inbox, &message);
        spc_inbox_withdraw(office.inbox, &wish.posted);
        check_bytes(wish.data, 0xee, sizeof wish.data);
    }
    close_office(&office);
}

TEST(another_message_than_the_wanted) {
    office_t office;
    wish_t other_tag, other_source, first, second;
    spc_message_t message;
    open_narrow_office(&office);
    wish_for(&office, &other_tag, 1, 6);
    memset(other_tag.meta, 7, META);
    wish_for(&office, &other_source, 0, 7);
    wish_for(&office, &first, 1, 7);
    wish_for(&office, &second, 1, 7);
    for (int i = 0; i < 2; i++) { /* each wish is good for one */
        post_array(&office, 1, 7, WANTED, META, SPC_FORMAT_ARRAY);
    }
    take_whole(&office, &first.match, &message);
    spc_inbox_release(office.inbox, &message);
    take_whole(&office, &second.match, &message);
    spc_inbox_release(office.inbox, &message);
    CHECK(first.sink.filled && second.sink.filled && !other_tag.sink.filled && !other_source.sink.filled);
    check_bytes(other_tag.data, 0xee, sizeof other_tag.data);
    check_bytes(other_source.data, 0xee, sizeof other_source.data);
    spc_inbox_withdraw(office.inbox, &first.posted);
    spc_inbox_withdraw(office.inbox, &other_source.posted);
    spc_inbox_withdraw(office.inbox, &second.posted);
    spc_inbox_withdraw(office.inbox, &other_tag.posted);
    close_office(&office);
}

/* With `parts` of it there: then the message is somewhere else, and whole in the end. */
static void give_up_after(int parts) {
    office_t office;
    wish_t wish;
    int tag = 20 + parts; /* memory that is used again has other bytes */
    open_narrow_office(&office);
    wish_for(&office, &wish, 1, tag);
    post_array(&office, 1, tag, WANTED, META, SPC_FORMAT_ARRAY);
    for (int i = 0; i < parts; i++) {
        spc_inbox_drain(office.inbox);
        spc_outbox_flush(office.outbox[1]);
    }
    spc_inbox_withdraw(office.inbox, &wish.posted);
    CHECK(!wish.sink.filled);
    CHECK_EQ(wish.data[0], parts == 0 ? 0xee : tag);
    memset(wish.data, 0xdd, sizeof wish.data);
    spc_message_t message;
    take_whole(&office, &(spc_match_t){.source = 1, .tag = tag}, &message);
    check_message(&message, 1, tag, WANTED);
    check_bytes(wish.data, 0xdd, sizeof wish.data);
    spc_inbox_release(office.inbox, &message);
    close_office(&office);
}

TEST(giving_up_keeps_the_message) {
    for (int parts = 0; parts < 12; parts++) {
        give_up_after(parts);
    }
}

TEST(another_receive_takes_it) {
    office_t office;
    wish_t wish, later;
    spc_message_t message;
    open_narrow_office(&office);
    wish_for(&office, &wish, 1, 7);
    post_array(&office, 1, 7, WANTED, META, SPC_FORMAT_ARRAY);
    spc_inbox_drain(office.inbox);
    wish_for(&office, &later, 1, 7);
    take_whole(&office, &later.match, &message);
    CHECK(!wish.sink.filled && !later.sink.filled);
    check_message(&message, 1, 7, WANTED);
    check_bytes(later.data, 0xee, sizeof later.data);
    spc_inbox_release(office.inbox, &message);
    spc_inbox_withdraw(office.inbox, &wish.posted);
    spc_inbox_withdraw(office.inbox, &later.posted);
    close_office(&office);
}

/* By another thread, which closes the inbox or the communicator. */
TEST(a_wanted_message_is_dropped) {
    for (int closes = 0; closes < 2; closes++) {
        office_t office;
        wish_t wish;
        open_narrow_office(&office);
        wish_for(&office, &wish, 1, 7);
        post_array(&office, 1, 7, WANTED, META, SPC_FORMAT_ARRAY);
        spc_inbox_drain(office.inbox);
        if (closes) {
            spc_inbox_close_contexts(office.inbox, 0, 1);
        } else {
            spc_inbox_discard(office.inbox);
        }
        for (int i = 0; i < 12; i++) {
            spc_outbox_flush(office.outbox[1]);
            spc_inbox_drain(office.inbox);
        }
        spc_inbox_withdraw(office.inbox, &wish.posted);
        CHECK(!wish.sink.filled);
        spc_message_t message; /* where that was in the queue */
        post(&office, 1, 1, 9, 8);
        spc_inbox_drain(office.inbox);
        CHECK_OK(take(&office, 1, 1, 9, &message));
        check_message(&message, 1, 9, 8);
        spc_inbox_release(office.inbox, &message);
        close_office(&office);
    }
}

TEST_MAIN()
