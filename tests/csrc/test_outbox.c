/* SPDX-License-Identifier: MIT */
/* Outbox: which way a message goes, what is queued, in which order it leaves, and what the limit stops. */
#include "inbox_box.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "message/spc_mailbox.h"

#define NODES 4

typedef struct sender { /* node 0 sends; the rows of the others are read by hand */
    office_t office;
    spc_outbox_t *outbox;
    uint64_t least_limit; /* of a message of no bytes, while nothing is taken */
    spc_mailbox_reader_t row[NODES]; /* of node 0, in each mailbox */
} sender_t;

static spc_mailbox_writer_t *writers[NODES]; /* of the first outbox that was made since the count was 0 */
static uint32_t writer_count;

/* csrc.mk: in the place of spc_mailbox_writer_init, which the linker calls __real_... */
void __real_spc_mailbox_writer_init(spc_mailbox_writer_t *writer, spc_mailbox_shared_t *mailbox,
                                    uint32_t sender, uint32_t slots);
void __wrap_spc_mailbox_writer_init(spc_mailbox_writer_t *writer, spc_mailbox_shared_t *mailbox,
                                    uint32_t sender, uint32_t slots);

void __wrap_spc_mailbox_writer_init(spc_mailbox_writer_t *writer, spc_mailbox_shared_t *mailbox,
                                    uint32_t sender, uint32_t slots) {
    __real_spc_mailbox_writer_init(writer, mailbox, sender, slots);
    if (writer_count < NODES) {
        writers[writer_count++] = writer;
    }
}

static void open_sender(sender_t *sender, spc_config_t config) {
    config.nodes = NODES;
    writer_count = 0;
    open_office(&sender->office, config);
    CHECK_EQ_U(writer_count, NODES);
    sender->outbox = sender->office.outbox[0];
    sender->least_limit = spc_outbox_limit_for(sender->outbox, 0);
    for (uint32_t i = 0; i < NODES; i++) {
        spc_mailbox_reader_init(&sender->row[i],
                                spc_segment_part(&sender->office.segment, SPC_REGION_MAILBOX, i), 0,
                                sender->office.segment.config->slots);
    }
}

/* The part of the limit that is taken. */
static uint64_t taken_bytes(const sender_t *sender) {
    return spc_outbox_limit_for(sender->outbox, 0) - sender->least_limit;
}

static int send_many(sender_t *sender, const int32_t *to, uint32_t count, int32_t tag, uint64_t bytes) {
    spc_payload_t payload = {.data = content, .data_bytes = bytes};
    memset(content, tag, bytes);
    return spc_outbox_send(sender->outbox, to, count, 0, tag, &payload);
}

static int send_one(sender_t *sender, int32_t to, int32_t tag, uint64_t bytes) {
    return send_many(sender, &to, 1, tag, bytes);
}

/* The next message or part for node `to`; returns its payload, whose bytes are all the tag. */
static const spc_slot_shared_t *see(sender_t *sender, int to, int32_t tag, uint64_t bytes) {
    const spc_slot_shared_t *slot = spc_mailbox_peek(&sender->row[to]);
    CHECK(slot != NULL);
    CHECK_EQ(slot->tag, tag);
    CHECK_EQ_U(slot->length_bytes, bytes);
    return slot;
}

/* Takes it as a receiver would; returns the bytes that were in it. */
static uint64_t read_part(sender_t *sender, int to, int32_t tag, uint64_t bytes) {
    const spc_slot_shared_t *slot = see(sender, to, tag, bytes);
    const unsigned char *payload = slot->payload.inlined;
    spc_ring_header_shared_t *header = spc_segment_address(&sender->office.segment, 0);
    uint64_t found = bytes;
    if ((slot->flags & SPC_SLOT_PLACE) == SPC_SLOT_RING) {
        header = spc_segment_address(&sender->office.segment, slot->payload.offset);
        payload = spc_ring_payload(header);
        found = header->payload_bytes;
    }
    for (uint64_t i = 0; i < found; i++) {
        CHECK_EQ(payload[i], (unsigned char)tag);
    }
    if ((slot->flags & SPC_SLOT_PLACE) == SPC_SLOT_RING) {
        spc_ring_mark_read(header);
    }
    spc_mailbox_consume(&sender->row[to]);
    return found;
}

/* All parts of it; what waits is sent in between. */
static void read_all(sender_t *sender, int to, int32_t tag, uint64_t bytes) {
    for (uint64_t got = 0; got < bytes; (void)spc_outbox_flush(sender->outbox)) {
        got += read_part(sender, to, tag, bytes);
    }
}

static void send_block(sender_t *sender, const int32_t *to, uint32_t count, int32_t tag, uint64_t bytes) {
    const spc_payload_t payload = {.data_bytes = bytes};
    spc_block_shared_t *block;
    CHECK_OK(spc_outbox_take_block(sender->outbox, bytes, &block));
    memset(spc_block_payload(block), tag, bytes);
    CHECK_OK(spc_outbox_send_block(sender->outbox, to, count, 0, tag, &payload, block));
}

static void is_idle(sender_t *sender, int to) {
    CHECK_EQ_PTR(spc_mailbox_peek(&sender->row[to]), NULL);
}

TEST(the_way_follows_from_the_length) {
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 64, .ring_bytes = 4096});
    const uint64_t longest = 1024 - sizeof(spc_ring_header_shared_t);
    const struct {
        int to;
        uint64_t bytes;
        uint8_t flags;
    } messages[] = {{1, 0, SPC_SLOT_INLINE},
                    {1, SPC_INLINE_BYTES, SPC_SLOT_INLINE},
                    {1, SPC_INLINE_BYTES + 1, SPC_SLOT_RING},
                    {2, longest, SPC_SLOT_RING}};
    for (int i = 0; i < 4; i++) {
        CHECK_OK(send_one(&sender, messages[i].to, i, messages[i].bytes));
    }
    CHECK_OK(send_one(&sender, 3, 5, longest + 1));
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(see(&sender, messages[i].to, i, messages[i].bytes)->flags, messages[i].flags);
        read_part(&sender, messages[i].to, i, messages[i].bytes);
    }
    CHECK_EQ(see(&sender, 3, 5, longest + 1)->flags, SPC_SLOT_RING | SPC_SLOT_PART | SPC_SLOT_FIRST);
    CHECK_EQ_U(see(&sender, 3, 5, longest + 1)->payload.part.end, longest);
    CHECK_EQ_U(read_part(&sender, 3, 5, longest + 1), longest);
    CHECK_EQ_U(see(&sender, 3, 5, longest + 1)->payload.part.end, longest + 1);
    CHECK_EQ_U(read_part(&sender, 3, 5, longest + 1), 1);
    CHECK(spc_outbox_is_empty(sender.outbox));
    close_office(&sender.office);
}

/* One slot: everything but the first waits, whichever way it is to go, and leaves in the order of the calls. */
TEST(one_fifo_for_each_destination) {
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 1, .ring_bytes = 4096, .arena_bytes = 1 << 20});
    const uint64_t bytes[6] = {8, 100, 1500, 0, 9000, 300};
    const int32_t to[2] = {1, 2};
    for (int i = 0; i < 6; i++) {
        CHECK_OK(send_one(&sender, 1, 10 + i, bytes[i]));
    }
    CHECK_OK(send_many(&sender, to, 2, 20, 200)); /* waits for 1, has gone to 2 */
    send_block(&sender, to, 2, 21, 500);
    CHECK_EQ_U(read_part(&sender, 2, 20, 200), 200);
    CHECK_EQ_U(spc_outbox_waiting(sender.outbox, 1), 7);
    CHECK_EQ_U(spc_outbox_waiting(sender.outbox, 2), 1);
    for (int i = 0; i < 6; i++) {
        for (uint64_t got = 0; got < bytes[i] || bytes[i] == 0;) {
            got += read_part(&sender, 1, 10 + i, bytes[i]);
            CHECK_OK(send_one(&sender, 1, 30, 0)); /* does not overtake */
            CHECK_OK(send_one(&sender, 1, 31, 200)); /* nor does this, through the ring */
            spc_outbox_flush(sender.outbox);
            if (bytes[i] == 0) {
                break;
            }
        }
    }
    read_part(&sender, 1, 20, 200);
    CHECK(spc_outbox_flush(sender.outbox));
    CHECK_EQ(see(&sender, 1, 21, 500)->flags, SPC_SLOT_ARENA);
    CHECK_EQ(see(&sender, 2, 21, 500)->flags, SPC_SLOT_ARENA);
    CHECK_EQ_U(see(&sender, 1, 21, 500)->payload.offset, see(&sender, 2, 21, 500)->payload.offset);
    close_office(&sender.office);
}

/* The row has room, and the ring has for all but the first that waits: whole, or in parts. */
TEST(a_head_without_room_in_the_ring_is_not_overtaken) {
    const uint64_t longer[2] = {600, 1500};
    for (int i = 0; i < 2; i++) {
        sender_t sender;
        open_sender(&sender, (spc_config_t){.slots = 16, .ring_bytes = 4096});
        for (int tag = 0; tag < 4; tag++) {
            CHECK_OK(send_one(&sender, tag < 2 ? 2 : 1, tag, 600)); /* a chunk each, and there are no more */
        }
        CHECK_OK(send_one(&sender, 1, 4, 100)); /* has gone, into what is left of the last chunk */
        CHECK_EQ_U(spc_outbox_waiting(sender.outbox, 1), 0);
        CHECK_OK(send_one(&sender, 1, 5, longer[i]));
        CHECK_OK(send_one(&sender, 1, 6, 100));
        CHECK_OK(send_one(&sender, 1, 7, 8));
        CHECK(!spc_outbox_flush(sender.outbox));
        CHECK_EQ_U(spc_outbox_waiting(sender.outbox, 1), 3);
        read_part(&sender, 1, 2, 600);
        read_part(&sender, 1, 3, 600);
        read_part(&sender, 1, 4, 100);
        is_idle(&sender, 1);
        CHECK(spc_outbox_flush(sender.outbox));
        read_all(&sender, 1, 5, longer[i]);
        read_part(&sender, 1, 6, 100);
        read_part(&sender, 1, 7, 8);
        CHECK(spc_outbox_is_empty(sender.outbox));
        close_office(&sender.office);
    }
}

/* Data in pieces, empty ones too, with meta before them: inline, in the ring, in parts and out of the queue. */
TEST(pieces_are_put_together) {
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 4, .ring_bytes = 4096});
    static unsigned char piece[20000];
    memset(piece, 7, sizeof(piece));
    const uint64_t lengths[] = {8, 40, 500, 20000};
    for (int i = 0; i < 8; i++) {
        uint64_t bytes = lengths[i % 4];
        const spc_extent_t extents[] = {
            {piece, bytes / 4}, {NULL, 0}, {piece, 1}, {piece, bytes - bytes / 4 - 1 - bytes / 8}};
        const spc_payload_t payload = {.meta = piece,
                                       .meta_bytes = (uint16_t)(bytes / 8),
                                       .extents = extents,
                                       .data_bytes = bytes - bytes / 8};
        if (i >= 4) {
            CHECK_OK(send_one(&sender, 1, 9, 30000)); /* what follows is queued */
        }
        const int32_t to = 1;
        CHECK_OK(spc_outbox_send(sender.outbox, &to, 1, 0, 7, &payload));
        read_all(&sender, 1, 9, i >= 4 ? 30000 : 0);
        read_all(&sender, 1, 7, bytes);
    }
    CHECK(spc_outbox_is_empty(sender.outbox));
    close_office(&sender.office);
}

/* A block that is moved queues as others do, and is never without a pin. */
TEST(moved_blocks_keep_the_order) {
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 1, .ring_bytes = 4096, .arena_bytes = 1 << 20});
    const spc_payload_t payload = {.data_bytes = 500};
    spc_block_shared_t *block[3];
    for (int i = 0; i < 3; i++) {
        CHECK_OK(spc_outbox_take_block(sender.outbox, 500, &block[i]));
        memset(spc_block_payload(block[i]), 10 + i, 500);
    }
    CHECK_OK(send_one(&sender, 1, 9, 8));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(spc_outbox_move_block(sender.outbox, i == 2 ? 2 : 1, 0, 10 + i, &payload, block[i]));
        CHECK_EQ(atomic_load(&block[i]->pin[0]), 0);
        CHECK_EQ(atomic_load(&block[i]->pin[i == 2 ? 2 : 1]), 1);
    }
    CHECK_OK(send_one(&sender, 1, 12, 8));
    CHECK_EQ_U(spc_outbox_waiting(sender.outbox, 1), 3);
    read_part(&sender, 1, 9, 8);
    for (int i = 0; i < 2; i++) {
        CHECK(spc_outbox_flush(sender.outbox));
        const spc_slot_shared_t *slot = see(&sender, 1, 10 + i, 500);
        CHECK_EQ(slot->flags, SPC_SLOT_ARENA | SPC_SLOT_SOLE);
        CHECK_EQ_U(slot->payload.offset, spc_segment_offset(&sender.office.segment, block[i]));
        spc_mailbox_consume(&sender.row[1]);
        spc_mailbox_publish(&sender.row[1]);
    }
    CHECK(spc_outbox_flush(sender.outbox));
    read_part(&sender, 1, 12, 8);
    CHECK(spc_outbox_block_bytes(sender.outbox) > 1500);
    close_office(&sender.office);
}

TEST(the_limit_leaves_nothing_half_done) {
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 1, .ring_bytes = 1024, .queue_limit_bytes = 2000});
    const int32_t to[3] = {1, 2, 3};
    int sent = 0;
    while (send_one(&sender, 1, sent, 8) == SPC_OK) {
        sent++;
    }
    CHECK(sent > 3 && sent < 50);
    uint64_t queued = taken_bytes(&sender);
    CHECK(queued <= 2000);
    CHECK_EQ(send_many(&sender, to, 3, 99, 8), SPC_EAGAIN);
    is_idle(&sender, 2); /* nobody got it */
    is_idle(&sender, 3);
    CHECK_OK(send_one(&sender, 2, 50, 8)); /* what need not wait is not concerned */
    CHECK_EQ(send_one(&sender, 2, 51, 8), SPC_EAGAIN);
    CHECK_EQ_U(taken_bytes(&sender), queued);
    for (int i = 0; i < sent; i++) {
        read_part(&sender, 1, i, 8);
        spc_outbox_flush(sender.outbox);
    }
    read_part(&sender, 2, 50, 8);
    CHECK_EQ_U(taken_bytes(&sender), 0);
    CHECK_OK(send_many(&sender, to, 3, 99, 8));
    close_office(&sender.office);
}

TEST(empty_messages_count) {
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 1, .ring_bytes = 1024, .queue_limit_bytes = 2000});
    int sent = 0;
    while (send_one(&sender, 1, 0, 0) == SPC_OK) {
        CHECK(++sent < 100);
    }
    close_office(&sender.office);
}

TEST(one_longer_than_the_limit_may_wait_alone) {
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 1, .ring_bytes = 1024, .queue_limit_bytes = 1024});
    CHECK_OK(send_one(&sender, 1, 1, 8));
    CHECK_OK(send_one(&sender, 1, 2, 50000));
    CHECK_EQ(send_one(&sender, 1, 3, 8), SPC_EAGAIN);
    read_part(&sender, 1, 1, 8);
    CHECK(spc_outbox_flush(sender.outbox));
    read_all(&sender, 1, 2, 50000);
    CHECK_OK(send_one(&sender, 1, 3, 8));
    read_part(&sender, 1, 3, 8);
    close_office(&sender.office);
}

/* Node 1 stands still; node 2 gets its messages, also multicasts to both, for ever. */
TEST(a_stopped_receiver_holds_up_nobody) {
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 2, .ring_bytes = 1024});
    const int32_t to[2] = {1, 2};
    for (int i = 0; i < 500; i++) {
        uint64_t bytes = 8 + (uint64_t)i % 600;
        CHECK_OK(send_one(&sender, 1, i % 100, bytes));
        CHECK_OK(send_many(&sender, to, 2, i % 100, bytes));
        read_all(&sender, 2, i % 100, bytes);
        CHECK_EQ_U(spc_outbox_waiting(sender.outbox, 2), 0);
    }
    close_office(&sender.office);
}

TEST(who_has_ended_gets_nothing_more) {
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 2, .ring_bytes = 1024, .arena_bytes = 8192});
    const int32_t to[2] = {1, 2};
    for (int i = 0; i < 20; i++) {
        CHECK_OK(send_many(&sender, to, 2, i, 50));
        read_part(&sender, 2, i, 50);
    }
    CHECK(spc_outbox_waiting(sender.outbox, 1) > 2);
    CHECK_EQ_U(spc_outbox_waiting(sender.outbox, 2), 0); /* it did not wait for the other */
    spc_comm_mark_ended(&sender.office.segment, 1, SPC_NODE_DIED, -9);
    spc_outbox_flush(sender.outbox);
    CHECK(spc_outbox_is_empty(sender.outbox));
    CHECK_EQ_U(taken_bytes(&sender), 0);
    for (int i = 0; i < 200; i++) {
        CHECK_OK(send_many(&sender, to, 2, i % 100, 60));
        read_part(&sender, 2, i % 100, 60);
        CHECK_OK(send_one(&sender, 1, 1, (uint64_t)i * 20));
        send_block(&sender, to, 1, 1, 4000); /* comes back each time */
        CHECK(spc_outbox_is_empty(sender.outbox));
    }
    close_office(&sender.office);
}

/* An end by finishing frees what was never announced, too. */
TEST(what_waits_for_a_finished_node_is_dropped) {
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 1, .ring_bytes = 1024, .arena_bytes = 8192});
    const int32_t to[2] = {1, 2};
    spc_block_shared_t *block;
    CHECK_OK(send_one(&sender, 1, 1, 8));
    CHECK_OK(send_many(&sender, to, 2, 2, 200));
    send_block(&sender, to, 1, 3, 6000);
    CHECK_EQ(spc_outbox_take_block(sender.outbox, 6000, &block), SPC_EAGAIN);
    CHECK_EQ_U(spc_outbox_waiting(sender.outbox, 1), 2);
    read_part(&sender, 2, 2, 200);
    spc_status_end(sender.office.status, 1, SPC_NODE_FINISHED, 0, sender.office.events, NODES + 1, 0);
    CHECK(spc_outbox_flush(sender.outbox));
    CHECK_OK(spc_outbox_take_block(sender.outbox, 6000, &block));
    for (int i = 0; i < 4; i++) { /* all four chunks, one for each of two nodes: the ring is empty again */
        CHECK_OK(send_one(&sender, 2 + i % 2, i, 200));
        read_part(&sender, 2 + i % 2, i, 200);
    }
    close_office(&sender.office);
}

/* Once a process is gone its marks are void, and what was written for it is used for other messages before its end is
 * known. What waited for it is then forgotten without a touch. */
TEST(what_waits_for_a_gone_node_is_not_touched) {
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 1, .ring_bytes = 1024, .arena_bytes = 8192});
    spc_block_shared_t *block;
    CHECK_OK(send_one(&sender, 1, 1, 8));
    CHECK_OK(send_many(&sender, (const int32_t[]){1, 2}, 2, 2, 200));
    for (int i = 0; i < 2; i++) {
        send_block(&sender, &(int32_t){1}, 1, 3, 3000);
    }
    CHECK_EQ_U(spc_outbox_waiting(sender.outbox, 1), 3);
    spc_status_set_gone(sender.office.status, 1, sender.office.events, NODES + 1, 0);
    CHECK_OK(spc_outbox_take_block(sender.outbox, 6000, &block));
    memset(spc_block_payload(block), 1, 6000);
    for (int i = 0; i < 8; i++) { /* more than the ring has chunks: each is looked at */
        CHECK_OK(send_one(&sender, 3, i, 200));
        read_part(&sender, 3, i, 200);
    }
    spc_status_end(sender.office.status, 1, SPC_NODE_DIED, -9, sender.office.events, NODES + 1, 0);
    CHECK(spc_outbox_flush(sender.outbox));
    for (int i = 0; i < 6000; i++) {
        CHECK_EQ(((const unsigned char *)spc_block_payload(block))[i], 1);
    }
    for (int i = 0; i < 8; i++) {
        CHECK_OK(send_one(&sender, 3, i, 200));
        read_part(&sender, 3, i, 200);
    }
    read_part(&sender, 2, 2, 200); /* nothing was written over it */
    close_office(&sender.office);
}

/* However many announcements have come out of the queue, a full row is seen to be full. */
TEST(leave_does_not_wrap) {
    const uint32_t many = UINT32_C(1) << 31;
    sender_t sender;
    open_sender(&sender, (spc_config_t){.slots = 1});
    spc_mailbox_writer_t *writer = writers[1];
    CHECK_OK(send_one(&sender, 1, 1, 8));
    CHECK_OK(send_one(&sender, 1, 2, 8));
    read_part(&sender, 1, 1, 8);
    sender.row[1].received += many; /* as if so many had been queued and read in between */
    atomic_fetch_add(&sender.row[1].row->consumed, many);
    writer->announced += many;
    writer->consumed += many;
    CHECK(spc_outbox_flush(sender.outbox));
    CHECK_OK(send_one(&sender, 1, 3, 8));
    CHECK_EQ_U(spc_outbox_waiting(sender.outbox, 1), 1);
    read_part(&sender, 1, 2, 8);
    CHECK(spc_outbox_flush(sender.outbox));
    read_part(&sender, 1, 3, 8);
    close_office(&sender.office);
}

/* The rest of a message in parts needs memory. Without it nothing may have begun: the receiver would wait for ever. */
static void no_memory_body(int rank, int size, void *argument) {
    (void)rank, (void)size, (void)argument;
    const uint64_t huge = UINT64_C(1) << 30;
    sender_t sender;
    long pages = 0;
    open_sender(&sender, (spc_config_t){.slots = 8, .ring_bytes = 8192});
    unsigned char *data = mmap(NULL, huge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(data != MAP_FAILED);
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    const rlim_t now = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){now + huge / 2, RLIM_INFINITY}), 0);
    const int32_t all[] = {1, 2, 3};
    const spc_payload_t payload = {.data = data, .data_bytes = huge};
    CHECK_EQ(spc_outbox_send(sender.outbox, all, 1, 0, 'H', &payload), SPC_ENOMEM);
    CHECK_EQ(spc_outbox_send(sender.outbox, all, 3, 0, 'H', &payload), SPC_ENOMEM);
    CHECK(spc_outbox_is_empty(sender.outbox));
    CHECK_EQ_U(taken_bytes(&sender), 0);
    for (int to = 1; to < NODES; to++) {
        is_idle(&sender, to);
        CHECK(!spc_outbox_took(sender.outbox, (uint32_t)to));
    }
    CHECK_OK(send_one(&sender, 1, 'S', 20000)); /* in parts, and there is memory for it */
    read_all(&sender, 1, 'S', 20000);
    is_idle(&sender, 1);
    CHECK_EQ_U(taken_bytes(&sender), 0);
    close_office(&sender.office);
}

TEST(no_memory_no_parts) {
    if (!CHECK_SANITIZED
        && access("/proc/self/statm", R_OK) == 0) { /* sanitizers have a malloc of their own */
        CHECK_EQ(check_wait(check_fork(0, 1, no_memory_body, NULL)), 0);
    }
}

TEST_MAIN()
