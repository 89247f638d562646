/* SPDX-License-Identifier: MIT */
/* The public C interface, used as a program would: messages of all formats and sizes, and coordinated ones. */
#include "api_check.h"

#define MANY 3000

static spcomm_t *comm;
static int rank, size;

static void fill(unsigned char *bytes, size_t length, unsigned seed) {
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (unsigned char)(seed * 31 + i * 7 + i / 251);
    }
}

static spcomm_message_t receive(int source, int tag) {
    spcomm_message_t message;
    CHECK_OK(spcomm_recv(comm, source, tag, SPCOMM_FOREVER, &message));
    CHECK(message.source == source && message.tag == tag);
    CHECK((uintptr_t)message.data % _Alignof(max_align_t) == 0);
    return message;
}

/* Inline, by ring, by arena, in parts: around every border between them. */
static void test_lengths(void) {
    static const size_t lengths[] = {0, 1, 39, 40, 41, 64, 1000, 4095, 4096, 4097, 70000, 3000001};
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        unsigned char *sent = malloc(lengths[i] + 1), *expected = malloc(lengths[i] + 1);
        fill(sent, lengths[i], (unsigned)rank);
        fill(expected, lengths[i], (unsigned)left);
        CHECK_OK(spcomm_send(comm, right, 5, spcomm_raw(sent, lengths[i]), SPCOMM_FOREVER));
        memset(sent, 0, lengths[i]); /* it was copied */
        spcomm_message_t message = receive(left, 5);
        CHECK(message.format == SPCOMM_FORMAT_RAW && message.bytes == lengths[i]);
        CHECK(memcmp(message.data, expected, lengths[i]) == 0);
        memset(message.data, 1, message.bytes); /* it may be written */
        spcomm_message_free(&message);
        CHECK(message.data == NULL);
        spcomm_message_free(&message);
        free(sent);
        free(expected);
    }
    spcomm_message_free(NULL);
}

/* In pairs: alone, or with an odd node at the end, there is nobody to receive. */
static void test_ssend(void) {
    int partner = rank % 2 == 0 ? rank + 1 : rank - 1;
#if defined __linux__ && !defined __SANITIZE_THREAD__ /* where threads are counted, and there is one only */
    CHECK_FAILS(spcomm_ssend(comm, rank, 1, spcomm_int64(1), 0), SPCOMM_ERANK, "no other thread");
#endif
    if (partner < size && rank % 2 == 0) {
        CHECK_OK(spcomm_ssend(comm, partner, 81, spcomm_int64(rank), SPCOMM_FOREVER));
        CHECK_FAILS(spcomm_ssend(comm, partner, 82, spcomm_int64(rank), 0), SPCOMM_ETIMEDOUT,
                    "no node received the message");
        CHECK_OK(spcomm_send(comm, partner, 83, spcomm_int64(0), SPCOMM_FOREVER));
    } else if (rank % 2 == 1) {
        spcomm_message_t message;
        for (int tag = 81; tag <= 83; tag += 2) {
            message = receive(partner, tag);
            spcomm_message_free(&message);
        }
        message = receive(partner, 82);
        CHECK(*(int64_t *)message.data == partner);
        spcomm_message_free(&message);
    }
}

static void test_formats(void) {
    spcomm_simtime_t time = {2.5, {1, -2, 3, rank}};
    const char text[] = "h\xc3\xa9llo";
    spcomm_message_t message;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    CHECK_OK(spcomm_send(comm, to, 1, spcomm_int64(INT64_MIN + rank), SPCOMM_FOREVER));
    CHECK_OK(spcomm_send(comm, to, 2, spcomm_float64(0.1 * rank), SPCOMM_FOREVER));
    CHECK_OK(spcomm_send(comm, to, 3, spcomm_string(text), SPCOMM_FOREVER));
    CHECK_OK(spcomm_send(comm, to, 4, spcomm_simtime(time), SPCOMM_FOREVER));
    message = receive(from, 1);
    CHECK(message.format == SPCOMM_FORMAT_INT64 && *(int64_t *)message.data == INT64_MIN + from);
    spcomm_message_free(&message);
    message = receive(from, 2);
    CHECK(message.format == SPCOMM_FORMAT_FLOAT64 && *(double *)message.data == 0.1 * from);
    spcomm_message_free(&message);
    message = receive(from, 3);
    CHECK(message.format == SPCOMM_FORMAT_STRING && message.bytes == strlen(text));
    CHECK(strcmp(message.data, text) == 0);
    spcomm_message_free(&message);
    message = receive(from, 4);
    time.priority[3] = from;
    CHECK(message.format == SPCOMM_FORMAT_SIMTIME
          && spcomm_simtime_equal(*(spcomm_simtime_t *)message.data, time));
    spcomm_message_free(&message);
}

static void test_long_string(void) {
    size_t length = 300000;
    char *text = malloc(length + 1);
    memset(text, 'x', length);
    text[length] = '\0';
    CHECK_OK(spcomm_send(comm, rank, 3, spcomm_string(text), SPCOMM_FOREVER));
    spcomm_message_t message = receive(rank, 3);
    CHECK(message.bytes == length && strlen(message.data) == length);
    spcomm_message_free(&message);
    free(text);
}

static void test_arrays(void) {
    for (int64_t rows = 0; rows < 3000; rows = rows * 3 + 1) {
        int64_t shape[2] = {rows, 5};
        int32_t *numbers = calloc((size_t)(rows * 5) + 1, sizeof(*numbers));
        for (int i = 0; i < rows * 5; i++) {
            numbers[i] = i * i - rank;
        }
        CHECK_OK(spcomm_send_all(comm, 6, spcomm_array(numbers, 'i', 4, 2, shape), SPCOMM_FOREVER));
        for (int source = 0; source < size; source++) {
            spcomm_message_t message = receive(source, 6);
            const spcomm_array_t *array = &message.array;
            CHECK(message.format == SPCOMM_FORMAT_ARRAY && message.bytes == (size_t)rows * 20);
            CHECK(array->dimensions == 2 && array->shape[0] == rows && array->shape[1] == 5);
            CHECK(array->kind == 'i' && array->item_bytes == 4 && !array->fortran
                  && array->byte_order != '|');
            for (int i = 0; i < rows * 5; i++) {
                CHECK(((int32_t *)message.data)[i] == i * i - source);
            }
            spcomm_message_t copy = message; /* copies are fine, one of them is freed */
            spcomm_message_free(&copy);
        }
        free(numbers);
    }
    double scalar = 1.5; /* no dimensions: one element */
    CHECK_OK(spcomm_send(comm, rank, 6, spcomm_array(&scalar, 'f', 8, 0, NULL), SPCOMM_FOREVER));
    spcomm_message_t message = receive(rank, 6);
    CHECK(message.array.dimensions == 0 && message.bytes == 8 && *(double *)message.data == 1.5);
    spcomm_message_free(&message);
}

static void test_sets(void) {
    spcomm_destination_t evens;
    spcomm_destination_clear(&evens);
    CHECK_OK(spcomm_send_set(comm, &evens, 1, spcomm_int64(1), 0)); /* nobody */
    for (int node = 0; node < size; node += 2) {
        spcomm_destination_set(&evens, node);
    }
    CHECK_OK(spcomm_send_set(comm, &evens, 8, spcomm_int64(rank), SPCOMM_FOREVER));
    for (int source = 0; source < size && rank % 2 == 0; source++) {
        spcomm_message_t message = receive(source, 8);
        CHECK(*(int64_t *)message.data == source);
        spcomm_message_free(&message);
    }
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
    spcomm_message_t message;
    CHECK(spcomm_try_recv(comm, SPCOMM_ANY, SPCOMM_ANY, &message) == SPCOMM_EAGAIN);
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER)); /* a fast node's next message must not be that one */
}

/* As in Python: at the edge of a grid a neighbour may be missing. */
static void test_no_node(void) {
    const int left = rank > 0 ? rank - 1 : SPCOMM_PROC_NULL;
    const int right = rank + 1 < size ? rank + 1 : SPCOMM_PROC_NULL;
    const int nobody = SPCOMM_PROC_NULL;
    int32_t source = 0, tag = 0;
    size_t bytes = 1;
    spcomm_message_t message;
    CHECK_OK(spcomm_sendrecv(comm, right, 7, spcomm_int64(rank), left, 7, SPCOMM_FOREVER, &message));
    if (left == nobody) {
        CHECK(message.source == nobody && message.tag == 7 && message.format == SPCOMM_FORMAT_NONE);
        CHECK(message.bytes == 0 && message.data != NULL);
        CHECK((uintptr_t)message.data % _Alignof(max_align_t) == 0);
    } else {
        CHECK(message.source == left && *(int64_t *)message.data == left);
    }
    spcomm_message_free(&message);
    CHECK_OK(spcomm_send(comm, nobody, 1, spcomm_int64(1), 0));
    CHECK_OK(spcomm_ssend(comm, nobody, 1, spcomm_int64(1), 0));
    CHECK_FAILS(spcomm_send(comm, nobody, -1, spcomm_int64(1), 0), SPCOMM_ETAG, "there is no tag -1");
    CHECK_FAILS(spcomm_ssend(comm, nobody, 1, spcomm_raw(NULL, 1), 0), SPCOMM_EINVAL, "the data are NULL");
    CHECK_OK(spcomm_recv(comm, nobody, SPCOMM_ANY, 0, &message));
    CHECK(message.source == nobody && message.tag == SPCOMM_ANY);
    CHECK_OK(spcomm_recv_any(comm, nobody, 3, 0, &message));
    CHECK_OK(spcomm_try_recv(comm, nobody, 3, &message));
    CHECK_OK(spcomm_take(comm, nobody, 3, &message));
    CHECK_OK(spcomm_probe(comm, nobody, 3, 0, &source, &tag, &bytes));
    CHECK(source == nobody && tag == 3 && bytes == 0);
    CHECK_FAILS(spcomm_recv(comm, nobody, -1, 0, &message), SPCOMM_ETAG,
                "spcomm_recv(source=SPCOMM_PROC_NULL, tag=-1): there is no tag -1");
    CHECK_FAILS(spcomm_send(comm, -105, 1, spcomm_int64(1), 0), SPCOMM_ERANK, "and SPCOMM_PROC_NULL");
    CHECK_FAILS(spcomm_bcast(comm, spcomm_none(), nobody, 0, &message), SPCOMM_ERANK, "");
}

/* take looks at the queues only; poll fills them; probe leaves. */
static void test_looking(void) {
    spcomm_message_t message;
    int32_t source, tag;
    uint64_t waiting = 0;
    size_t bytes;
    CHECK(spcomm_take(comm, SPCOMM_ANY, 9, &message) == SPCOMM_EAGAIN);
    CHECK_OK(spcomm_send(comm, rank, 9, spcomm_raw("abc", 3), SPCOMM_FOREVER));
    while (waiting == 0) {
        CHECK_OK(spcomm_poll(comm, &waiting));
    }
    CHECK(waiting == 1);
    CHECK_OK(spcomm_poll(comm, NULL));
    CHECK_OK(spcomm_probe(comm, SPCOMM_ANY, SPCOMM_ANY, SPCOMM_FOREVER, &source, &tag, &bytes));
    CHECK(source == rank && tag == 9 && bytes == 3);
    CHECK_OK(spcomm_probe(comm, rank, 9, 0, NULL, NULL, NULL));
    CHECK(spcomm_take(comm, SPCOMM_ANY, 8, &message) == SPCOMM_EAGAIN);
    CHECK_OK(spcomm_take(comm, SPCOMM_ANY, 9, &message));
    CHECK(message.bytes == 3 && memcmp(message.data, "abc", 3) == 0);
    spcomm_message_free(&message);
    CHECK_FAILS(spcomm_probe(comm, rank, 9, 0, NULL, NULL, NULL), SPCOMM_ETIMEDOUT, "no such message");
    CHECK_FAILS(spcomm_recv(comm, rank, 9, 1000, &message), SPCOMM_ETIMEDOUT, "spcomm_recv(source=");
}

/* Everybody floods its neighbour; order is kept, nothing is lost. */
static void test_many(void) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int64_t i = 0; i < MANY; i++) {
        CHECK_OK(spcomm_send(comm, to, (int32_t)(i % 3), spcomm_int64(i), SPCOMM_FOREVER));
    }
    for (int64_t i = 0; i < MANY; i++) {
        spcomm_message_t message;
        CHECK_OK(spcomm_recv(comm, from, SPCOMM_ANY, SPCOMM_FOREVER, &message));
        CHECK(*(int64_t *)message.data == i && message.tag == i % 3);
        spcomm_message_free(&message);
    }
}

/* In cycle k node r sends k + r messages to each node; who has got all is told so, once. */
static void test_coordinated(void) {
    for (int cycle = 0; cycle < 20; cycle++) {
        int expected = 0, got = 0, over = 0;
        for (int source = 0; source < size; source++) {
            expected += cycle % 4 + source;
        }
        for (int i = 0; i < cycle % 4 + rank; i++) {
            CHECK_OK(spcomm_coordinated_send_all(comm, spcomm_int64(cycle), SPCOMM_FOREVER));
        }
        while (!over) {
            spcomm_message_t message;
            CHECK_OK(spcomm_coordinated_recv(comm, SPCOMM_FOREVER, &message, &over));
            if (over) {
                break;
            }
            CHECK(*(int64_t *)message.data == cycle && message.tag == 0);
            spcomm_message_free(&message);
            got++;
            CHECK_FAILS(spcomm_coordinated_send(comm, rank, spcomm_int64(0), 0), SPCOMM_ECYCLE,
                        "receives the coordinated messages");
            CHECK_FAILS(spcomm_barrier(comm, 0), SPCOMM_ECYCLE, "within a cycle");
        }
        CHECK(got == expected);
    }
    spcomm_destination_t to;
    spcomm_destination_clear(&to);
    spcomm_destination_set(&to, size - 1);
    CHECK_OK(spcomm_coordinated_send(comm, 0, spcomm_raw("one", 3), SPCOMM_FOREVER));
    CHECK_OK(spcomm_coordinated_send_set(comm, &to, spcomm_raw("set", 3), SPCOMM_FOREVER));
    CHECK_OK(spcomm_coordinated_send(comm, SPCOMM_PROC_NULL, spcomm_raw("none", 4), SPCOMM_FOREVER));
    int over = 0, count = 0;
    for (;; count++) {
        spcomm_message_t message;
        CHECK_OK(spcomm_coordinated_recv_any(comm, SPCOMM_FOREVER, &message, &over));
        if (over) {
            break;
        }
        spcomm_message_free(&message);
    }
    CHECK(count == (rank == 0 ? size : 0) + (rank == size - 1 ? size : 0));
}

int main(int argc, char **argv) {
    comm = api_start(argc, argv);
    rank = spcomm_rank(comm);
    size = spcomm_size(comm);
    test_lengths();
    test_ssend();
    test_formats();
    test_long_string();
    test_arrays();
    test_sets();
    test_looking();
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER)); /* a fast node's next message must not be seen there */
    test_no_node();
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
    test_many();
    test_coordinated();
    spcomm_message_t kept;
    int64_t shape = 1000;
    double *numbers = calloc(1000, 8);
    numbers[999] = 4.5;
    CHECK_OK(spcomm_send(comm, rank, 1, spcomm_array(numbers, 'f', 8, 1, &shape), SPCOMM_FOREVER));
    CHECK_OK(spcomm_recv(comm, rank, 1, SPCOMM_FOREVER, &kept));
    free(numbers);
    CHECK_OK(spcomm_shutdown(comm, SPCOMM_FOREVER));
    CHECK(((double *)kept.data)[999] == 4.5); /* valid until it is freed */
    spcomm_message_free(&kept);
    return 0;
}
