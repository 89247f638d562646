/* SPDX-License-Identifier: MIT */
/* A receiver that hands a block back to its owner before the call that gave it has returned: the block stays in use
 * until the owner, too, has done with it. */
#include "comm_box.h"

enum { BYTES = 100000 };

static party_t *receives_at_once; /* NULL: nobody does */

/* Node 1 hands back to node 0 what it alone has. */
static void hand_back(party_t *party, spc_message_t *message) {
    spc_block_shared_t *block = message->handle;
    const spc_payload_t payload = content_payload(message->bytes, BYTES);
    CHECK_EQ(message->storage, SPC_STORED_ARENA);
    CHECK(message->sole);
    CHECK_OK(spc_comm_move_block(party->comm[1], 0, SPC_CONTEXT_USER, 5, &payload, SPC_NO_DEADLINE, &block));
    CHECK_EQ_PTR(block, NULL);
}

/* csrc.mk: in the place of spc_trace_record_words, which the linker calls __real_... The outbox calls it as soon as it
 * has announced a message. */
void __real_spc_trace_record_words(spc_trace_t *trace, uint64_t ticks, uint64_t kind_context_peer,
                                   uint64_t tag_what, uint64_t place_number, uint64_t bytes);
void __wrap_spc_trace_record_words(spc_trace_t *trace, uint64_t ticks, uint64_t kind_context_peer,
                                   uint64_t tag_what, uint64_t place_number, uint64_t bytes);

void __wrap_spc_trace_record_words(spc_trace_t *trace, uint64_t ticks, uint64_t kind_context_peer,
                                   uint64_t tag_what, uint64_t place_number, uint64_t bytes) {
    __real_spc_trace_record_words(trace, ticks, kind_context_peer, tag_what, place_number, bytes);
    party_t *party = receives_at_once;
    if (party != NULL && (kind_context_peer & UINT8_MAX) == SPC_TRACE_SEND) {
        receives_at_once = NULL;
        spc_message_t message;
        CHECK_OK(recv_until(party->comm[1], 0, 4, SPC_NO_DEADLINE, &message));
        hand_back(party, &message);
    }
}

/* A block that came back is in use, holds what was sent, and is free once it is released. */
static void check_owner(party_t *party, uint64_t seed) {
    spc_comm_t *owner = party->comm[0];
    spc_message_t message;
    CHECK(spc_comm_block_bytes(owner) >= BYTES);
    CHECK_OK(recv_until(owner, 1, 5, SPC_NO_DEADLINE, &message));
    CHECK(spc_comm_block_bytes(owner) >= BYTES);
    message_check(&message, 1, 5, seed, BYTES);
    spc_message_release(owner, &message);
    CHECK_EQ_U(spc_comm_block_bytes(owner), 0);
}

TEST(while_it_is_sent) {
    party_t party = party_open(2, (spc_config_t){.arena_bytes = 1 << 20, .trace_events = 64});
    receives_at_once = &party;
    send_content(party.comm[0], 1, 4, 7, BYTES);
    CHECK(receives_at_once == NULL);
    check_owner(&party, 7);
    party_close(&party);
}

TEST(while_its_giver_is_in_the_collective) {
    party_t party = party_open(2, (spc_config_t){.arena_bytes = 1 << 20});
    unsigned char *content = content_make(8, BYTES);
    spc_payload_t payload = content_payload(content, BYTES);
    spc_gathering_t gives = {.operation = SPC_OPERATION_DATA_BCAST, .payloads = &payload, .payload_count = 1};
    spc_gathering_t gets = {.operation = SPC_OPERATION_DATA_BCAST};
    CHECK_EQ(spc_comm_gathering_poll(party.comm[0], &gives), SPC_EAGAIN);
    CHECK_OK(spc_comm_gathering_poll(party.comm[1], &gets));
    hand_back(&party, &gets.messages[0]);
    gets.messages[0].handle = NULL;
    CHECK_OK(spc_comm_gathering_poll(party.comm[0], &gives));
    spc_comm_gathering_end(party.comm[0], &gives);
    spc_comm_gathering_end(party.comm[1], &gets);
    check_owner(&party, 8);
    free(content);
    party_close(&party);
}

TEST_MAIN()
