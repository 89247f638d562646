/* SPDX-License-Identifier: MIT */
/* The C half of a run of both languages: as many nodes as mixed.py has, ranks 0 to n/2 - 1. */
#include "../../csrc/api_check.h"

static spcomm_t *comm;
static int rank, size, partner;

static spcomm_message_t receive(int tag, int format) {
    spcomm_message_t message;
    CHECK_OK(spcomm_recv(comm, partner, tag, SPCOMM_FOREVER, &message));
    CHECK(message.source == partner && message.tag == tag && message.format == format);
    return message;
}

static void send(int tag, spcomm_data_t data) {
    CHECK_OK(spcomm_send(comm, partner, tag, data, SPCOMM_FOREVER));
}

static void expect(int tag, int format, const void *data, size_t bytes) {
    spcomm_message_t message = receive(tag, format);
    CHECK(message.bytes == bytes && memcmp(message.data, data, bytes) == 0);
    spcomm_message_free(&message);
}

/* Both languages meet in the same operations. */
static void meet(void) {
    int64_t sum;
    double least;
    spcomm_simtime_t time = {1.0, {rank, 2, 3, 4}}, latest;
    spcomm_values_t values = {rank, 0.5, {2.0, {1, 1, 1, 1}}}, all;
    spcomm_fuzzy_t fuzzy;
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
    CHECK_OK(spcomm_global_sum_int64(comm, rank, SPCOMM_FOREVER, &sum));
    CHECK(sum == size * (size - 1) / 2);
    CHECK_OK(spcomm_global_min_double(comm, rank + 0.5, SPCOMM_FOREVER, &least));
    CHECK(least == 0.5);
    CHECK_OK(spcomm_global_max_simtime(comm, time, SPCOMM_FOREVER, &latest));
    CHECK(latest.time == 1.0 && latest.priority[0] == size - 1 && latest.priority[3] == 4);
    CHECK_OK(spcomm_global_sum(comm, &values, SPCOMM_FOREVER, &all));
    CHECK(all.integer == sum && all.real == 0.5 * size && all.simtime.time == 2.0 * size);
    CHECK(all.simtime.priority[0] == 0);
    CHECK_OK(spcomm_fuzzy_enter(comm, &fuzzy));
    CHECK_OK(spcomm_fuzzy_wait(comm, &fuzzy, SPCOMM_FOREVER));
}

/* Python returns each object as it came: nothing is lost on the way there and back. */
static void echo(void) {
    static const size_t lengths[] = {0, 3, 40, 41, 5000, 2000000};
    spcomm_simtime_t time = {-0.25, {1, -2, 3, -4}};
    int64_t number = INT64_MIN, shape[2] = {1000, 3};
    double real = 0.1;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        char *bytes = calloc(lengths[i] + 1, 1);
        memset(bytes, 'a' + (int)i, lengths[i]);
        send(1, spcomm_raw(bytes, lengths[i]));
        expect(1, SPCOMM_FORMAT_BYTES, bytes, lengths[i]);
        send(1, spcomm_string(bytes));
        expect(1, SPCOMM_FORMAT_STRING, bytes, lengths[i]);
        free(bytes);
    }
    send(1, spcomm_int64(number));
    expect(1, SPCOMM_FORMAT_INT64, &number, 8);
    send(1, spcomm_float64(real));
    expect(1, SPCOMM_FORMAT_FLOAT64, &real, 8);
    send(1, spcomm_simtime(time));
    expect(1, SPCOMM_FORMAT_SIMTIME, &time, sizeof(time));
    float *matrix = calloc(3000, sizeof(*matrix));
    for (int i = 0; i < 3000; i++) {
        matrix[i] = (float)i / 7;
    }
    for (shape[0] = 0; shape[0] <= 1000; shape[0] += 250) {
        send(1, spcomm_array(matrix, 'f', 4, 2, shape));
        spcomm_message_t message = receive(1, SPCOMM_FORMAT_ARRAY);
        CHECK(message.array.dimensions == 2 && message.array.shape[0] == shape[0]
              && message.array.shape[1] == 3);
        CHECK(message.array.kind == 'f' && message.array.item_bytes == 4);
        CHECK(memcmp(message.data, matrix, (size_t)shape[0] * 12) == 0);
        spcomm_message_free(&message);
    }
    free(matrix);
}

/* The messages that Python sends of its own accord. */
static void listen(void) {
    static const char fortran[] = {0, 3, 1, 4, 2, 5}, swapped[] = {0, 0, 1, 2};
    spcomm_message_t message = receive(2, SPCOMM_FORMAT_NONE);
    CHECK(message.bytes == 0 && message.data != NULL);
    spcomm_message_free(&message);
    expect(2, SPCOMM_FORMAT_BOOL, "\1", 1);
    message = receive(2, SPCOMM_FORMAT_ARRAY);
    CHECK(message.array.fortran && message.array.shape[0] == 2 && message.array.shape[1] == 3);
    CHECK(message.array.byte_order == '|' && memcmp(message.data, fortran, 6) == 0);
    spcomm_message_free(&message);
    message = receive(2, SPCOMM_FORMAT_ARRAY);
    CHECK(message.array.byte_order == '>' && memcmp(message.data, swapped, 4) == 0);
    spcomm_message_free(&message);
    message = receive(2, SPCOMM_FORMAT_ARRAY); /* of structures: NumPy's dtype for SimTime */
    CHECK(message.array.kind == 'V' && message.array.item_bytes == sizeof(spcomm_simtime_t));
    CHECK(message.array.shape[0] == 2 && ((spcomm_simtime_t *)message.data)[1].priority[3] == 9);
    spcomm_message_free(&message);
}

/* Only Python can read these: each stays the first of its tag until somebody takes it as it is. */
static void refuse(void) {
    static const int formats[] = {SPCOMM_FORMAT_DICT, SPCOMM_FORMAT_LIST, SPCOMM_FORMAT_TUPLE,
                                  SPCOMM_FORMAT_PICKLE};
    spcomm_message_t message;
    uint64_t waiting;
    expect(4, SPCOMM_FORMAT_STRING, "sent behind them", 16);
    CHECK_OK(spcomm_poll(comm, &waiting));
    CHECK(waiting == 4);
    for (int i = 0; i < 4; i++) {
        CHECK(spcomm_recv(comm, partner, 3, SPCOMM_FOREVER, &message) == SPCOMM_EFORMAT);
        CHECK(strstr(spcomm_last_error(), "(tag 3) is a") && strstr(spcomm_last_error(), "stays queued"));
        CHECK(spcomm_try_recv(comm, SPCOMM_ANY, 3, &message) == SPCOMM_EFORMAT);
        CHECK(spcomm_take(comm, partner, SPCOMM_ANY, &message) == SPCOMM_EFORMAT);
        CHECK_OK(spcomm_recv_any(comm, partner, 3, SPCOMM_FOREVER, &message));
        CHECK(message.format == formats[i]);
        if (message.format == SPCOMM_FORMAT_PICKLE) {
            send(3, spcomm_raw(message.data, message.bytes)); /* Python reads it there */
        }
        spcomm_message_free(&message);
    }
}

/* Everybody sends to everybody; what is unreadable can be taken as it is. */
static void coordinate(void) {
    for (int cycle = 0; cycle < 5; cycle++) {
        int over = 0, numbers = 0, texts = 0, unreadable = 0;
        CHECK_OK(spcomm_coordinated_send_all(comm, spcomm_int64(cycle), SPCOMM_FOREVER));
        for (;;) {
            spcomm_message_t message;
            int status = spcomm_coordinated_recv(comm, SPCOMM_FOREVER, &message, &over);
            if (status == SPCOMM_EFORMAT) {
                CHECK(strstr(spcomm_last_error(), "tag") == NULL);
                status = spcomm_coordinated_recv_any(comm, SPCOMM_FOREVER, &message, &over);
                unreadable++;
            }
            CHECK_OK(status);
            if (over) {
                break;
            }
            numbers += message.format == SPCOMM_FORMAT_INT64 && *(int64_t *)message.data == cycle;
            texts += message.format == SPCOMM_FORMAT_STRING && strcmp(message.data, "py") == 0;
            spcomm_message_free(&message);
        }
        CHECK(numbers == size / 2 && texts == size / 2 && unreadable == size / 2);
    }
}

static void divide(void) {
    spcomm_t *part;
    int64_t sum;
    CHECK_OK(spcomm_split(comm, rank % (size / 2), 0, SPCOMM_FOREVER, &part));
    CHECK(spcomm_size(part) == 2 && spcomm_rank(part) == 0);
    CHECK_OK(spcomm_global_sum_int64(part, 1, SPCOMM_FOREVER, &sum));
    CHECK(sum == 2);
    CHECK_OK(spcomm_shutdown(part, SPCOMM_FOREVER));
}

int main(void) {
    alarm(60);
    CHECK_OK(spcomm_startup(0, 0, 0, NULL, &comm));
    rank = spcomm_rank(comm);
    size = spcomm_size(comm);
    partner = rank + size / 2;
    meet();
    echo();
    listen();
    refuse();
    coordinate();
    divide();
    printf("C is done\n");
    return 0;
}
