/* SPDX-License-Identifier: MIT */
/* The public C interface, used as a program would: collectives that move data, handlers, exchanges and places. */
#include "api_check.h"

static spcomm_t *comm;
static int rank, size;
static spcomm_message_t *messages;

static void check_number(spcomm_message_t *message, int source, int64_t expected) {
    CHECK(message->source == source && message->tag == 0 && message->format == SPCOMM_FORMAT_INT64);
    CHECK(message->bytes == 8 && *(int64_t *)message->data == expected);
    spcomm_message_free(message);
}

static void test_numbers(void) {
    spcomm_data_t *gifts = calloc((size_t)size, sizeof(*gifts));
    for (int root = 0; root < size; root++) {
        for (int node = 0; node < size; node++) {
            gifts[node] = spcomm_int64(100 * rank + node);
        }
        CHECK_OK(spcomm_bcast(comm, spcomm_int64(rank + 5), root, SPCOMM_FOREVER, messages));
        check_number(messages, root, root + 5);
        CHECK_OK(spcomm_scatter(comm, rank == root ? gifts : NULL, root, SPCOMM_FOREVER, messages));
        check_number(messages, root, 100 * root + rank);
        CHECK_OK(
            spcomm_gather(comm, spcomm_int64(rank), root, SPCOMM_FOREVER, rank == root ? messages : NULL));
        for (int node = 0; node < size && rank == root; node++) {
            check_number(&messages[node], node, node);
        }
        CHECK_OK(spcomm_alltoall(comm, gifts, SPCOMM_FOREVER, messages));
        for (int node = 0; node < size; node++) {
            check_number(&messages[node], node, 100 * node + rank);
        }
    }
    CHECK_OK(spcomm_bcast(comm, spcomm_none(), 0, SPCOMM_FOREVER, rank == 0 ? NULL : messages));
    if (rank != 0) {
        CHECK(messages->format == SPCOMM_FORMAT_NONE && messages->bytes == 0);
        spcomm_message_free(messages);
    }
    free(gifts);
}

/* In the phase, and in blocks; what came may be written, a node's own part too, and what was given is as it was. */
static void test_arrays(void) {
    for (int64_t rows = 1; rows < 100000; rows *= 30) {
        const int64_t shape[2] = {rows + rank, 3};
        const size_t count = (size_t)(rows + rank) * 3;
        float *mine = malloc(count * sizeof(*mine));
        for (size_t i = 0; i < count; i++) {
            mine[i] = (float)i + (float)rank / 8;
        }
        CHECK_OK(spcomm_allgather(comm, spcomm_array(mine, 'f', 4, 2, shape), SPCOMM_FOREVER, messages));
        for (int node = 0; node < size; node++) {
            const spcomm_message_t *found = &messages[node];
            CHECK(found->format == SPCOMM_FORMAT_ARRAY && found->array.kind == 'f');
            CHECK(found->array.shape[0] == rows + node && found->bytes == (size_t)(rows + node) * 12);
            for (int64_t i = 0; i < found->array.shape[0] * 3; i++) {
                CHECK(((float *)found->data)[i] == (float)i + (float)node / 8);
            }
            memset(found->data, 1, found->bytes);
        }
        CHECK(mine[count - 1] == (float)(count - 1) + (float)rank / 8);
        for (int node = 0; node < size; node++) {
            spcomm_message_free(&messages[node]);
        }
        free(mine);
    }
}

/* The others hear that a node could give nothing, and why; everybody has taken part. */
static void test_a_node_that_gives_nothing(void) {
    const int wrong = size - 1;
    const spcomm_data_t data = rank == wrong ? spcomm_raw(NULL, 3) : spcomm_int64(1);
    const int status = spcomm_allgather(comm, data, SPCOMM_FOREVER, messages);
    CHECK(status == (rank == wrong ? SPCOMM_EINVAL : SPCOMM_EFAILED));
    CHECK(strstr(spcomm_last_error(), "spcomm_allgather(): the data are NULL") != NULL);
    CHECK(rank == wrong || strstr(spcomm_last_error(), "gave nothing, because it raised SPCOMM_EINVAL"));
    if (rank == wrong) {
        CHECK_FAILS(spcomm_scatter(comm, NULL, wrong, SPCOMM_FOREVER, messages), SPCOMM_EINVAL,
                    "data is NULL");
    } else {
        CHECK_FAILS(spcomm_scatter(comm, NULL, wrong, SPCOMM_FOREVER, messages), SPCOMM_EFAILED,
                    "data is NULL");
    }
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
}

/* One that timed out stays entered, and goes on when the same call comes again. */
static void test_timeouts(void) {
    const size_t bytes = 300000;
    char *data = calloc(bytes, 1);
    if (rank == 0 && size > 1) {
        CHECK_FAILS(spcomm_allgather(comm, spcomm_raw(data, bytes), 0, messages), SPCOMM_ETIMEDOUT,
                    "stays entered: repeat the same call");
        CHECK_FAILS(spcomm_barrier(comm, 0), SPCOMM_EMISMATCH, "has left allgather()");
        CHECK_FAILS(spcomm_bcast(comm, spcomm_none(), 0, 0, messages), SPCOMM_EMISMATCH,
                    "has left allgather()");
        const char *again = "repeat it with data of the same types and lengths";
        CHECK_FAILS(spcomm_allgather(comm, spcomm_raw(data, bytes - 1), 0, messages), SPCOMM_EINVAL, again);
        CHECK_FAILS(spcomm_allgather(comm, spcomm_string("x"), 0, messages), SPCOMM_EINVAL, again);
        char *copy = calloc(bytes, 1); /* other memory, the same data */
        CHECK_FAILS(spcomm_allgather(comm, spcomm_raw(copy, bytes), 0, messages), SPCOMM_ETIMEDOUT,
                    "stays entered: repeat the same call");
        free(copy);
        for (int node = 1; node < size; node++) {
            CHECK_OK(spcomm_send(comm, node, 2, spcomm_none(), SPCOMM_FOREVER));
        }
    } else if (size > 1) {
        CHECK_OK(spcomm_recv(comm, 0, 2, SPCOMM_FOREVER, messages));
        spcomm_message_free(messages);
    }
    CHECK_OK(spcomm_allgather(comm, spcomm_raw(data, bytes), SPCOMM_FOREVER, messages));
    for (int node = 0; node < size; node++) {
        CHECK(messages[node].bytes == bytes);
        spcomm_message_free(&messages[node]);
    }
    free(data);
}

static void test_mismatches(void) {
    if (size == 1) {
        return;
    }
    const int root = rank == 0 ? 1 : 0;
    CHECK_FAILS(spcomm_bcast(comm, spcomm_int64(1), root, SPCOMM_FOREVER, messages), SPCOMM_EMISMATCH,
                "\n  node 0: bcast(root=1)\n  node");
    CHECK(strstr(spcomm_last_error(), "in the same order, with the same root.") != NULL);
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
}

static void test_sendrecv(void) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (size_t bytes = 1; bytes < 4000000; bytes = bytes * 50 + 1) {
        char *data = calloc(bytes, 1);
        CHECK_OK(spcomm_sendrecv(comm, right, 4, spcomm_raw(data, bytes), left, 4, SPCOMM_FOREVER, messages));
        CHECK(messages->source == left && messages->tag == 4 && messages->bytes == bytes);
        spcomm_message_free(messages);
        free(data);
    }
    CHECK_FAILS(spcomm_sendrecv(comm, rank, 5, spcomm_none(), rank, 6, 0, messages), SPCOMM_ETIMEDOUT,
                "no such message");
    CHECK_OK(spcomm_recv(comm, rank, 5, SPCOMM_FOREVER, messages));
    spcomm_message_free(messages);
}

/* ---- handlers */

static int64_t handled;

static int add(spcomm_t *where, spcomm_message_t *message, void *argument) {
    CHECK(where == comm && argument == &handled && message->tag == 21);
    handled += *(int64_t *)message->data;
    spcomm_message_free(message);
    return 0;
}

static int stop(spcomm_t *where, spcomm_message_t *message, void *argument) {
    (void)where;
    (void)argument;
    spcomm_message_free(message);
    return 5;
}

/* Within a barrier of this node: another one on the same communicator is refused. */
static int enter_again(spcomm_t *where, spcomm_message_t *message, void *argument) {
    (void)argument;
    CHECK_FAILS(spcomm_barrier(where, 0), SPCOMM_EBUSY, "inside a collective");
    CHECK_OK(spcomm_send(where, message->source, 24, spcomm_none(), SPCOMM_FOREVER));
    spcomm_message_free(message);
    return 0;
}

static void test_handlers(void) {
    CHECK_OK(spcomm_send(comm, rank, 21, spcomm_int64(1000), SPCOMM_FOREVER)); /* before there is one */
    CHECK_OK(spcomm_handler(comm, 21, add, &handled));
    CHECK_OK(spcomm_send_all(comm, 21, spcomm_int64(rank + 1), SPCOMM_FOREVER));
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER)); /* so all have been sent */
    while (handled < 1000 + size * (size + 1) / 2) {
        CHECK_OK(spcomm_poll(comm, NULL));
    }
    CHECK(handled == 1000 + size * (size + 1) / 2);
    CHECK_FAILS(spcomm_recv(comm, SPCOMM_ANY, 21, 0, messages), SPCOMM_ETAG, "for the handler of that tag");
    CHECK(spcomm_try_recv(comm, SPCOMM_ANY, SPCOMM_ANY, messages) == SPCOMM_EAGAIN);
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
}

static void test_a_handler_ends_a_call(void) {
    CHECK_OK(spcomm_handler(comm, 22, stop, NULL));
    CHECK_OK(spcomm_send(comm, rank, 22, spcomm_none(), SPCOMM_FOREVER));
    CHECK_FAILS(spcomm_recv(comm, SPCOMM_ANY, 1, SPCOMM_FOREVER, messages), SPCOMM_EINTERRUPTED,
                "the handler of tag 22 has ended this call");
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
    if (rank == 0 && size > 1) { /* a collective call stays entered: the others come when it has ended */
        CHECK_OK(spcomm_send(comm, 1, 25, spcomm_none(), SPCOMM_FOREVER));
        CHECK_FAILS(spcomm_barrier(comm, SPCOMM_FOREVER), SPCOMM_EINTERRUPTED, "repeat the same call");
        CHECK_OK(spcomm_send(comm, 1, 26, spcomm_none(), SPCOMM_FOREVER));
    } else if (rank == 1) {
        for (int tag = 25; tag <= 26; tag++) {
            CHECK_OK(spcomm_recv(comm, 0, tag, SPCOMM_FOREVER, messages));
            spcomm_message_free(messages);
            if (tag == 25) {
                CHECK_OK(spcomm_send(comm, 0, 22, spcomm_none(), SPCOMM_FOREVER));
            }
        }
    }
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
}

static void test_a_collective_within_a_collective(void) {
    CHECK_OK(spcomm_handler(comm, 23, enter_again, NULL));
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
    if (rank == 1) { /* node 0 waits in the barrier meanwhile: nothing else makes it answer */
        CHECK_OK(spcomm_send(comm, 0, 23, spcomm_none(), SPCOMM_FOREVER));
        CHECK_OK(spcomm_recv(comm, 0, 24, SPCOMM_FOREVER, messages));
        spcomm_message_free(messages);
    }
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
}

static int of_a_part(spcomm_t *where, spcomm_message_t *message, void *argument) {
    *(int *)argument += spcomm_size(where);
    spcomm_message_free(message);
    return 0;
}

static void test_handlers_of_parts(void) {
    spcomm_t *part;
    int found = 0;
    CHECK_OK(spcomm_split(comm, rank % 2, rank, SPCOMM_FOREVER, &part));
    CHECK_OK(spcomm_handler(part, 21, of_a_part, &found));
    CHECK_OK(spcomm_send(part, spcomm_rank(part), 21, spcomm_none(), SPCOMM_FOREVER));
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
    while (found == 0) {
        CHECK_OK(spcomm_poll(part, NULL));
    }
    CHECK(found == spcomm_size(part));
    spcomm_layout_t layout;
    CHECK_OK(spcomm_layout(part, spcomm_rank(part), &layout));
    CHECK(layout.rank_in_run == rank && layout.box == spcomm_box(comm));
    CHECK_OK(spcomm_shutdown(part, SPCOMM_FOREVER));
    CHECK_FAILS(spcomm_layout(part, 0, &layout), SPCOMM_ECLOSED, "shut down");
    CHECK_FAILS(spcomm_layout(comm, size, NULL), SPCOMM_EINVAL, "layout is NULL");
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
}

int main(int argc, char **argv) {
    comm = api_start(argc, argv);
    rank = spcomm_rank(comm);
    size = spcomm_size(comm);
    messages = calloc((size_t)size, sizeof(*messages));
    test_numbers();
    test_arrays();
    test_a_node_that_gives_nothing();
    test_timeouts();
    test_mismatches();
    test_sendrecv();
    test_handlers();
    test_a_handler_ends_a_call();
    test_a_collective_within_a_collective();
    test_handlers_of_parts();
    CHECK_OK(spcomm_allgather(comm, spcomm_int64(rank), SPCOMM_FOREVER, messages));
    CHECK_OK(spcomm_shutdown(comm, SPCOMM_FOREVER));
    for (int node = 0; node < size; node++) {
        check_number(&messages[node], node, node); /* valid until it is freed */
    }
    free(messages);
    return 0;
}
