/* SPDX-License-Identifier: MIT */
/* Mailbox: sender and receiver walk along a row in step; the doorbell tells which rows to look at, and misses none. */
#include "check.h"

#include <sys/mman.h>

#include "base/spc_platform.h"
#include "message/spc_mailbox.h"

#define SENDERS 71 /* some share a bit of the doorbell */

static spc_mailbox_shared_t *make_mailbox(uint32_t slots) {
    spc_mailbox_shared_t *mailbox = mmap(NULL, spc_mailbox_bytes(SENDERS, slots), PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(mailbox != MAP_FAILED);
    return mailbox;
}

static void free_mailbox(spc_mailbox_shared_t *mailbox, uint32_t slots) {
    munmap(mailbox, spc_mailbox_bytes(SENDERS, slots));
}

static void write_number(spc_mailbox_writer_t *writer, uint64_t number) {
    spc_envelope_t envelope = {.tag = (int32_t)(number % 1000), .source = 3, .length_bytes = sizeof number};
    spc_slot_shared_t *slot = spc_mailbox_next(writer);
    spc_slot_write_envelope(slot, &envelope);
    memcpy(slot->payload.inlined, &number, sizeof number);
    spc_mailbox_announce(writer);
}

static void read_number(const spc_slot_shared_t *slot, uint64_t expected) {
    uint64_t number;
    memcpy(&number, slot->payload.inlined, sizeof number);
    CHECK_EQ_U(number, expected);
    CHECK_EQ(slot->tag, expected % 1000);
    CHECK_EQ_U(slot->length_bytes, sizeof number);
}

TEST(the_envelope_arrives_whole) {
    spc_mailbox_shared_t *mailbox = make_mailbox(4);
    spc_mailbox_writer_t writer;
    spc_mailbox_reader_t reader;
    spc_mailbox_writer_init(&writer, mailbox, 7, 4);
    spc_mailbox_reader_init(&reader, mailbox, 7, 4);
    CHECK_EQ_PTR(spc_mailbox_peek(&reader), NULL);
    const spc_envelope_t envelope = {
        .tag = SPC_TAG_MAX,
        .source = 65535,
        .context = 513,
        .meta_bytes = 40000,
        .format = SPC_FORMAT_PICKLE,
        .flags = SPC_SLOT_ARENA | SPC_SLOT_SOLE,
        .length_bytes = UINT64_C(1) << 40,
    };
    spc_slot_shared_t *slot = spc_mailbox_next(&writer);
    spc_slot_write_envelope(slot, &envelope);
    slot->payload.offset = 4096;
    CHECK_EQ_PTR(spc_mailbox_peek(&reader), NULL); /* not before it is announced */
    spc_mailbox_announce(&writer);
    const spc_slot_shared_t *found = spc_mailbox_peek(&reader);
    CHECK_EQ_PTR(found, slot);
    CHECK_EQ(found->tag, SPC_TAG_MAX);
    CHECK_EQ(found->source, 65535);
    CHECK_EQ(found->context, 513);
    CHECK_EQ(found->meta_bytes, 40000);
    CHECK_EQ(found->format, SPC_FORMAT_PICKLE);
    CHECK_EQ(found->flags, SPC_SLOT_ARENA | SPC_SLOT_SOLE);
    CHECK_EQ_U(found->length_bytes, UINT64_C(1) << 40);
    CHECK_EQ_U(found->payload.offset, 4096);
    free_mailbox(mailbox, 4);
}

/* The totals of a row at the end: how many messages, also past the end of the row, and long ones' bytes. */
TEST(a_row_says_what_its_sender_did) {
    for (uint32_t slots = 1; slots <= 5; slots++) {
        spc_mailbox_shared_t *mailbox = make_mailbox(slots);
        spc_mailbox_writer_t writer;
        spc_mailbox_reader_t reader;
        spc_mailbox_writer_init(&writer, mailbox, 7, slots);
        spc_mailbox_reader_init(&reader, mailbox, 7, slots);
        for (uint32_t i = 0; i < 3 * slots + 2; i++) {
            CHECK_EQ_U(spc_mailbox_count(mailbox, 7, slots).messages, i);
            write_number(&writer, i);
            (void)spc_mailbox_consume(&reader);
        }
        CHECK_EQ_U(spc_mailbox_count(mailbox, 6, slots).messages, 0);
        CHECK_EQ_U(spc_mailbox_count(mailbox, 7, slots).long_bytes, 0);
        spc_mailbox_count_long(&reader, UINT64_C(1) << 40);
        spc_mailbox_count_long(&reader, 41);
        CHECK_EQ_U(spc_mailbox_count(mailbox, 7, slots).long_bytes, (UINT64_C(1) << 40) + 41);
        CHECK_EQ_U(spc_mailbox_count(mailbox, 7, slots).messages, 3 * slots + 2);
        spc_mailbox_count_part(&reader);
        CHECK_EQ_U(spc_mailbox_count(mailbox, 7, slots).messages, 3 * slots + 1);
        free_mailbox(mailbox, slots);
    }
}

/* Any number of slots, also over the end of the 32-bit sequence. */
TEST(rows_of_any_length) {
    for (uint32_t slots = 1; slots <= 12; slots++) {
        for (uint64_t start = 0; start <= UINT32_MAX; start += UINT32_MAX - 20) {
            spc_mailbox_shared_t *mailbox = make_mailbox(slots);
            spc_mailbox_writer_t writer;
            spc_mailbox_reader_t reader;
            spc_mailbox_writer_init(&writer, mailbox, 0, slots);
            spc_mailbox_reader_init(&reader, mailbox, 0, slots);
            writer.announced = writer.consumed = reader.received = (uint32_t)start;
            atomic_store(&writer.row->consumed, (uint32_t)start);
            uint64_t sent = 0, seen = 0;
            for (int round = 0; round < 60; round++) {
                while (spc_mailbox_has_room(&writer)) {
                    write_number(&writer, sent++);
                }
                CHECK(sent - seen <= slots && sent - seen >= 1);
                uint64_t wanted = 1 + (uint64_t)round % slots;
                for (uint64_t i = 0; i < wanted && seen < sent; i++) {
                    read_number(spc_mailbox_peek(&reader), seen++);
                    spc_mailbox_consume(&reader);
                }
            }
            while (seen < sent) {
                read_number(spc_mailbox_peek(&reader), seen++);
                spc_mailbox_consume(&reader);
            }
            CHECK_EQ_PTR(spc_mailbox_peek(&reader), NULL);
            CHECK(spc_mailbox_has_room(&writer)); /* all read: room, however lazily that is published */
            free_mailbox(mailbox, slots);
        }
    }
}

TEST(rows_do_not_touch) {
    spc_mailbox_shared_t *mailbox = make_mailbox(2);
    for (uint32_t sender = 0; sender < SENDERS; sender++) {
        spc_mailbox_writer_t writer;
        spc_mailbox_writer_init(&writer, mailbox, sender, 2);
        write_number(&writer, sender);
        write_number(&writer, 1000 + sender);
        CHECK(!spc_mailbox_has_room(&writer));
    }
    for (uint32_t sender = 0; sender < SENDERS; sender++) {
        spc_mailbox_reader_t reader;
        spc_mailbox_reader_init(&reader, mailbox, sender, 2);
        read_number(spc_mailbox_peek(&reader), sender);
        spc_mailbox_consume(&reader);
        read_number(spc_mailbox_peek(&reader), 1000 + sender);
    }
    free_mailbox(mailbox, 2);
}

TEST(the_doorbell_names_rows) {
    spc_mailbox_shared_t *mailbox = make_mailbox(2);
    CHECK_EQ_U(spc_mailbox_collect(mailbox), 0);
    const uint32_t senders[] = {0, 5, 63, 64, 69};
    for (int i = 0; i < 5; i++) {
        spc_mailbox_writer_t writer;
        spc_mailbox_writer_init(&writer, mailbox, senders[i], 2);
        write_number(&writer, 1);
    }
    CHECK_EQ_U(spc_mailbox_collect(mailbox), UINT64_C(1) << 63 | 1 << 5 | 1); /* 64 and 69 share 0 and 5 */
    CHECK_EQ_U(spc_mailbox_collect(mailbox), 0);
    free_mailbox(mailbox, 2);
}

typedef struct flow {
    spc_mailbox_shared_t *mailbox;
    uint32_t slots;
    uint64_t messages;
} flow_t;

static void send_numbers(const flow_t *flow, uint32_t sender) {
    spc_mailbox_writer_t writer;
    spc_mailbox_writer_init(&writer, flow->mailbox, sender, flow->slots);
    for (uint64_t i = 0; i < flow->messages; i++) {
        while (!spc_mailbox_has_room(&writer)) {
            spc_platform_yield();
        }
        write_number(&writer, i);
    }
}

/* The receiver only looks at rows that rang: a lost ring leaves a message unseen for ever. */
static void receive_numbers(const flow_t *flow, uint32_t senders) {
    spc_mailbox_reader_t reader[8];
    uint64_t seen[8] = {0}, total = 0;
    for (uint32_t i = 0; i < senders; i++) {
        spc_mailbox_reader_init(&reader[i], flow->mailbox, i, flow->slots);
    }
    while (total < senders * flow->messages) {
        uint64_t rung = spc_mailbox_collect(flow->mailbox);
        for (uint32_t i = 0; i < senders; i++) {
            if (!(rung >> i & 1)) {
                continue;
            }
            const spc_slot_shared_t *slot;
            while ((slot = spc_mailbox_peek(&reader[i])) != NULL) {
                read_number(slot, seen[i]++);
                spc_mailbox_consume(&reader[i]);
                total++;
            }
        }
        if (rung == 0) {
            spc_platform_yield();
        }
    }
}

static void flow_body(int rank, int size, void *argument) {
    const flow_t *flow = argument;
    if (rank == 0) {
        receive_numbers(flow, (uint32_t)size - 1);
    } else {
        send_numbers(flow, (uint32_t)rank - 1);
    }
}

TEST(many_senders_one_receiver) {
    for (uint32_t slots = 1; slots <= 8; slots *= 2) {
        flow_t flow = {make_mailbox(slots), slots, (uint64_t)check_scale(20000)};
        check_threads(4, flow_body, &flow);
        free_mailbox(flow.mailbox, slots);
        flow.mailbox = make_mailbox(slots);
        check_processes(4, flow_body, &flow);
        free_mailbox(flow.mailbox, slots);
    }
}

TEST_MAIN()
