/* SPDX-License-Identifier: MIT */
/* Requests: posted receives and synchronous sends that are completed later. */
#include "comm/spc_request.h"
#include "comm_box.h"

typedef struct posted {
    spc_request_t request; /* first: deliver gets it back */
    uint64_t bytes;
    int32_t source;
    int32_t tag;
    unsigned char content[4096];
} posted_t;

/* Called with the node's lock, in whichever wait finds the message. */
static void deliver(spc_request_t *request, spc_message_t *message) {
    posted_t *posted = (posted_t *)request;
    posted->bytes = message->length_bytes;
    posted->source = message->source;
    posted->tag = message->tag;
    memcpy(posted->content, message->bytes, message->length_bytes);
}

static void post(spc_comm_t *comm, int32_t source, int32_t tag, posted_t *posted) {
    memset(posted, 0, sizeof(*posted));
    posted->request.deliver = deliver;
    CHECK_OK(spc_request_receive(comm, SPC_CONTEXT_USER, source, tag, &posted->request));
}

static void await(posted_t *posted, int32_t source, int32_t tag, uint64_t seed, uint64_t bytes) {
    CHECK_OK(spc_request_wait(&posted->request, SPC_NO_DEADLINE));
    CHECK(posted->source == source && posted->tag == tag && posted->bytes == bytes);
    content_check(posted->content, seed, bytes);
}

/* ---- order: posted receives come first, in their order, and before any receive that is called later ---- */

static void in_order_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    static const uint64_t lengths[] = {0, 8, 40, 41, 1000, 4000};
    (void)size;
    for (uint64_t i = 0; i < (uint64_t)check_scale(300); i++) {
        const uint64_t bytes = lengths[i % 6];
        if (rank == 0) {
            for (int part = 0; part < 4; part++) {
                send_content(comm, 1, part % 2, 4 * i + (uint64_t)part, bytes);
            }
        } else {
            posted_t any, odd, even;
            post(comm, SPC_ANY_SOURCE, SPC_ANY_TAG, &any);
            post(comm, 0, 1, &odd);
            post(comm, 0, 0, &even);
            recv_content(comm, 0, 1, 4 * i + 3, bytes); /* the second of tag 1: the first one is posted for */
            await(&even, 0, 0, 4 * i + 2, bytes);
            await(&any, 0, 0, 4 * i, bytes);
            await(&odd, 0, 1, 4 * i + 1, bytes);
        }
    }
    comm_box_leave(comm);
}

TEST(in_order) {
    run_ranks(2, (spc_config_t){0}, in_order_body);
    run_ranks(2, (spc_config_t){.arena_bytes = 65536, .ring_bytes = 1024, .slots = 1}, in_order_body);
}

/* ---- lists that are one request ---- */

static void list_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    for (uint64_t i = 0; i < (uint64_t)check_scale(300); i++) {
        if (rank != 0) {
            recv_content(comm, 0, 3, i, 8); /* the list is posted */
            send_content(comm, 0, 1, i + (uint64_t)rank, 100);
            continue;
        }
        posted_t parts[4];
        spc_request_t list = {0}, *first = NULL;
        for (int32_t source = size - 1; source > 0; source--) {
            post(comm, source, 1, &parts[source]);
            parts[source].request.next_part = first;
            first = &parts[source].request;
        }
        spc_request_all(comm, first, &list);
        CHECK(!spc_request_is_done(&list));
        for (int32_t source = size - 1; source > 0; source--) {
            send_content(comm, source, 3, i, 8);
        }
        CHECK_OK(spc_request_wait(&list, SPC_NO_DEADLINE));
        for (int32_t source = 1; source < size; source++) {
            CHECK(parts[source].source == source);
            content_check(parts[source].content, i + (uint64_t)source, 100);
        }
        spc_request_end(&list);
    }
    if (rank == 0) { /* of one that has ended no part takes a message */
        posted_t part;
        spc_request_t list = {0};
        post(comm, 1, 2, &part);
        spc_request_all(comm, &part.request, &list);
        spc_request_end(&list);
        send_content(comm, 1, 4, 0, 8);
        recv_content(comm, 1, 2, 7, 8);
        CHECK(!spc_request_is_done(&part.request));
        spc_request_all(comm, NULL, &list);
        CHECK(spc_request_is_done(&list));
    } else if (rank == 1) {
        recv_content(comm, 0, 4, 0, 8);
        send_content(comm, 0, 2, 7, 8);
    }
    comm_box_leave(comm);
}

TEST(lists) {
    run_ranks(4, (spc_config_t){0}, list_body);
    run_ranks(3, (spc_config_t){.arena_bytes = 65536, .ring_bytes = 1024, .slots = 1}, list_body);
}

/* ---- several sources: those of each come in its order, plain ones, long ones, and ones that want a receipt ---- */

enum { EACH = 8 };

static void send_several(spc_comm_t *comm, int rank, uint64_t round) {
    spc_request_t asking[EACH] = {0};
    for (uint64_t k = 0; k < EACH; k++) {
        const uint64_t word = round * EACH + k, bytes = k % 3 == 2 ? 4000 : sizeof(word);
        uint64_t content[500] = {word};
        const spc_payload_t payload = {.data = content, .data_bytes = bytes, .format = SPC_FORMAT_RAW};
        if (k % 4 == 1) {
            CHECK_OK(spc_request_send(comm, 0, SPC_CONTEXT_USER, 1, &payload, SPC_NO_DEADLINE, &asking[k]));
        } else {
            CHECK_OK(spc_comm_send(comm, &(int32_t){0}, 1, SPC_CONTEXT_USER, 1, &payload, SPC_NO_DEADLINE));
        }
    }
    send_content(comm, 0, 2, round + (uint64_t)rank, 100); /* no receive is posted for it */
    for (int k = 0; k < EACH; k++) {
        if (k % 4 == 1) {
            CHECK_OK(spc_request_wait(&asking[k], SPC_NO_DEADLINE));
            spc_request_end(&asking[k]);
        }
    }
}

static void several_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    for (uint64_t i = 0; i < (uint64_t)check_scale(100); i++) {
        if (rank != 0) {
            send_several(comm, rank, i);
            continue;
        }
        posted_t posted[EACH][3];
        for (int k = 0; k < EACH; k++) {
            for (int32_t source = 1; source < size; source++) {
                post(comm, source, 1, &posted[k][source]);
            }
        }
        for (int k = EACH; k-- > 0;) {
            for (int32_t source = 1; source < size; source++) {
                uint64_t word;
                CHECK_OK(spc_request_wait(&posted[k][source].request, SPC_NO_DEADLINE));
                memcpy(&word, posted[k][source].content, sizeof(word));
                CHECK(posted[k][source].source == source && word == i * EACH + (uint64_t)k);
            }
        }
        for (int32_t source = 1; source < size; source++) {
            recv_content(comm, source, 2, i + (uint64_t)source, 100);
        }
    }
    comm_box_leave(comm);
}

TEST(several) {
    run_ranks(3, (spc_config_t){0}, several_body);
    run_ranks(3, (spc_config_t){.arena_bytes = 65536, .ring_bytes = 1024, .slots = 2}, several_body);
}

/* ---- several of all kinds: whichever is done, or one after another ---- */

static void await_any(spc_request_t *receive, spc_request_t *send) {
    spc_request_t *all[] = {receive, NULL, send};
    for (int left = 2; left > 0; left--) {
        uint32_t which;
        CHECK_OK(spc_request_wait_any(all, 3, SPC_NO_DEADLINE, &which));
        CHECK(all[which] != NULL && spc_request_is_done(all[which]));
        all[which] = NULL;
    }
}

static void await_first(spc_request_t *receive, spc_request_t *send) {
    spc_request_t *const all[] = {receive, send};
    for (uint32_t first = 0; first < 2; first++) {
        CHECK_OK(spc_request_wait_first(all + first, 2 - first, SPC_NO_DEADLINE));
        CHECK(spc_request_is_done(all[first]));
    }
}

static void both_kinds_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    const int32_t next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (long i = 0; i < check_scale(400); i++) {
        posted_t receive;
        spc_request_t send = {0};
        const spc_payload_t payload = {.data = &i, .data_bytes = sizeof(i), .format = SPC_FORMAT_RAW};
        post(comm, before, 3, &receive);
        CHECK_OK(spc_request_send(comm, next, SPC_CONTEXT_USER, 3, &payload, SPC_NO_DEADLINE, &send));
        (i % 2 == 0 ? await_any : await_first)(&receive.request, &send);
        CHECK(memcmp(receive.content, &i, sizeof(i)) == 0);
        spc_request_end(&receive.request);
        spc_request_end(&send);
    }
    comm_box_leave(comm);
}

TEST(both_kinds) {
    run_ranks(2, (spc_config_t){0}, both_kinds_body);
    run_ranks(4, (spc_config_t){.slots = 1, .ring_bytes = 1024}, both_kinds_body);
}

/* ---- many synchronous sends are open before any is received ---- */

enum { MANY = SPC_RECEIPTS_MAX + 150 };

/* The last message first, the others in order; each of these shows which of the requests are done. */
static void take_many(spc_comm_t *comm, uint64_t round) {
    recv_content(comm, 0, MANY - 1, round, 8);
    recv_content(comm, 0, MANY, round, 8); /* its sender has seen that receipt alone */
    for (int32_t i = 0; i < MANY - 1; i++) {
        recv_content(comm, 0, i, round + (uint64_t)i, i % 16 == 0 ? 20000 : 8);
    }
}

static void give_many(spc_comm_t *comm, uint64_t round) {
    spc_request_t *all = calloc(MANY, sizeof(*all));
    CHECK(all != NULL);
    for (int32_t i = 0; i < MANY; i++) {
        const uint64_t seed = i == MANY - 1 ? round : round + (uint64_t)i, bytes = i % 16 == 0 ? 20000 : 8;
        unsigned char *content = content_make(seed, bytes);
        const spc_payload_t payload = content_payload(content, bytes);
        CHECK_OK(spc_request_send(comm, 1, SPC_CONTEXT_USER, i, &payload, SPC_NO_DEADLINE, &all[i]));
        free(content);
    }
    CHECK_OK(spc_request_wait(&all[MANY - 1], SPC_NO_DEADLINE));
    CHECK(!spc_request_is_done(&all[0]) && !spc_request_is_done(&all[MANY - 2]));
    send_content(comm, 1, MANY, round, 8);
    for (int32_t i = 0; i < MANY; i++) {
        CHECK_OK(spc_request_wait(&all[i], SPC_NO_DEADLINE));
        spc_request_end(&all[i]);
    }
    free(all);
}

static void many_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    (void)size;
    for (uint64_t round = 0; round < 3; round++) {
        (rank == 0 ? give_many : take_many)(comm, round);
    }
    comm_box_leave(comm);
}

TEST(many) {
    run_ranks(2, (spc_config_t){.arena_bytes = 1048576}, many_body);
    run_ranks(2, (spc_config_t){.slots = 2, .ring_bytes = 1024}, many_body);
}

/* ---- cancelling: a request either gets its message or leaves it to the next receive ---- */

static void cancel_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    (void)size;
    for (uint64_t i = 0; i < (uint64_t)check_scale(500); i++) {
        if (rank == 0) {
            send_content(comm, 1, 0, i, 100);
        } else {
            posted_t posted;
            post(comm, 0, 0, &posted);
            if (spc_request_cancel(&posted.request)) {
                CHECK(!spc_request_is_done(&posted.request));
                recv_content(comm, 0, 0, i, 100);
            } else {
                await(&posted, 0, 0, i, 100);
            }
        }
    }
    comm_box_leave(comm);
}

TEST(cancel) {
    run_ranks(2, (spc_config_t){.slots = 2}, cancel_body);
}

/* ---- ends ---- */

/* Rank 0 looks at the row of rank 1, and then at a long list of receives from rank 2. In that time rank 1 sends and
 * leaves: its part is there, and that of rank 2, which comes much later, is not lost. */
enum { FILLERS = 3000, ROUNDS = 300 };

static void ping_pong(spc_comm_t *comm, int other) {
    for (uint64_t i = 0; i < ROUNDS; i++) {
        send_content(comm, other, 7, i, 8);
        recv_content(comm, other, 7, i, 8);
    }
}

static void part_of_who_left(spc_comm_t *comm, spc_request_t fillers[FILLERS]) {
    posted_t parts[2];
    spc_request_t list = {0};
    post(comm, 1, 1, &parts[0]);
    for (int i = 0; i < FILLERS; i++) {
        fillers[i].deliver = deliver;
        CHECK_OK(spc_request_receive(comm, SPC_CONTEXT_USER, 2, 6, &fillers[i]));
    }
    post(comm, 2, 5, &parts[1]);
    parts[0].request.next_part = &parts[1].request;
    spc_request_all(comm, &parts[0].request, &list);
    send_content(comm, 1, 3, 0, 8);
    CHECK_OK(spc_request_wait(&list, SPC_NO_DEADLINE));
    content_check(parts[0].content, 1, 8);
    content_check(parts[1].content, 2, 8);
}

static void left_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    spc_request_t *fillers = calloc(FILLERS, sizeof(*fillers));
    spc_message_t message;
    (void)size;
    CHECK(fillers != NULL);
    if (rank == 0) {
        part_of_who_left(comm, fillers);
    } else if (rank == 1) {
        recv_content(comm, 0, 3, 0, 8);
        send_content(comm, 0, 1, 1, 8);
    } else if (rank == 2) {
        CHECK_EQ(spc_comm_recv(comm, SPC_CONTEXT_USER, 1, 9, SPC_NO_DEADLINE, &message), SPC_EFINISHED);
        ping_pong(comm, 3);
        send_content(comm, 0, 5, 2, 8);
    } else {
        ping_pong(comm, 2);
    }
    comm_box_leave(comm);
    free(fillers); /* posted until then */
}

TEST(parts_of_nodes_that_left) {
    for (long i = 0; i < check_scale(1200); i++) {
        run_ranks(4, (spc_config_t){0}, left_body);
    }
}

static void lost_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    (void)size;
    if (rank == 1) {
        posted_t first, second;
        uint32_t which;
        post(comm, 0, 0, &first);
        post(comm, 0, 1, &second);
        spc_request_t *both[] = {&first.request, &second.request};
        CHECK(spc_request_wait_any(both, 2, SPC_NO_DEADLINE, &which) == SPC_EFINISHED);
        spc_request_end(&first.request);
        spc_request_end(&second.request);
    }
    comm_box_leave(comm);
}

TEST(lost) {
    run_ranks(2, (spc_config_t){0}, lost_body);
}

TEST_MAIN()
