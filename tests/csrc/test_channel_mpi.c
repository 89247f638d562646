/* SPDX-License-Identifier: MIT */
/* Channels over MPI, with a library of MPI in this file: both kinds of handles, full slots, errors. */
#include "net/link/spc_channel_mpi.h"

#include <errno.h>

#include "base/spc_error.h"
#include "check.h"

/* ---- an MPI of two processes, whose messages wait in one queue for each of them */

enum { QUEUED = 64, BYTE = 77, COMM = 5 };

typedef struct message {
    unsigned char *bytes;
    int length;
} message_t;

/* A request: of a send, whose message is there when `taken` is set; of a receive, whose buffer waits. */
typedef struct request {
    bool is_send, is_used, is_over;
    unsigned char *buffer;
    int length, rank;
} request_t;

static struct {
    message_t queue[2][QUEUED]; /* by receiver: what was sent and not received */
    unsigned first[2], last[2];
    request_t requests[QUEUED];
    bool is_slow; /* sends end later */
    int fails; /* so many calls from now a call fails; negative: none */
    int cancelled;
    int at; /* the process that calls */
} fake;

static int outcome(void) {
    return fake.fails >= 0 && fake.fails-- == 0 ? 15 : 0;
}

static int new_request(bool is_send, unsigned char *buffer, int length, int rank) {
    int i = 1;
    while (fake.requests[i].is_used) {
        i++;
        CHECK(i < QUEUED);
    }
    fake.requests[i] = (request_t){is_send, true, is_send && !fake.is_slow, buffer, length, rank};
    return i;
}

static int isend(void *bytes, int count, intptr_t type, int rank, int tag, intptr_t comm) {
    CHECK(type == BYTE && comm == COMM && tag == 3);
    message_t *message = &fake.queue[rank][fake.last[rank]++ % QUEUED];
    message->bytes = malloc((size_t)count);
    message->length = count;
    memcpy(message->bytes, bytes, (size_t)count);
    return new_request(true, NULL, 0, rank);
}

static int irecv(void *bytes, int count, intptr_t type, int rank, int tag, intptr_t comm) {
    CHECK(type == BYTE && comm == COMM && tag == 3 && rank == 1 - fake.at);
    return new_request(false, bytes, count, fake.at);
}

static void test_one(int number, int *is_over, int *length) {
    request_t *request = &fake.requests[number];
    CHECK(request->is_used);
    if (!request->is_send && fake.first[request->rank] != fake.last[request->rank]) {
        message_t *message = &fake.queue[request->rank][fake.first[request->rank]++ % QUEUED];
        CHECK(message->length <= request->length);
        memcpy(request->buffer, message->bytes, (size_t)message->length);
        *length = message->length;
        free(message->bytes);
        request->is_over = true;
    }
    *is_over = request->is_over;
    request->is_used = !request->is_over;
}

/* The length stands at the begin of the status. */
#define FAKE(suffix, handle)                                                                       \
    static int isend_##suffix(void *bytes, int count, handle type, int rank, int tag, handle comm, \
                              void *request) {                                                     \
        *(handle *)request =                                                                       \
            (handle)(intptr_t)isend(bytes, count, (intptr_t)type, rank, tag, (intptr_t)comm);      \
        return outcome();                                                                          \
    }                                                                                              \
    static int irecv_##suffix(void *bytes, int count, handle type, int rank, int tag, handle comm, \
                              void *request) {                                                     \
        *(handle *)request =                                                                       \
            (handle)(intptr_t)irecv(bytes, count, (intptr_t)type, rank, tag, (intptr_t)comm);      \
        return outcome();                                                                          \
    }                                                                                              \
    static int test_##suffix(void *request, int *is_over, void *status) {                          \
        const int code = outcome();                                                                \
        if (code == 0) {                                                                           \
            test_one((int)(intptr_t)*(handle *)request, is_over, status);                          \
        }                                                                                          \
        return code;                                                                               \
    }                                                                                              \
    static int wait_##suffix(void *request, void *status) {                                        \
        (void)status;                                                                              \
        fake.requests[(int)(intptr_t)*(handle *)request].is_used = false;                          \
        return 0;                                                                                  \
    }                                                                                              \
    static int cancel_##suffix(void *request) {                                                    \
        CHECK(fake.requests[(int)(intptr_t)*(handle *)request].is_used);                           \
        fake.cancelled++;                                                                          \
        return 0;                                                                                  \
    }                                                                                              \
    static int count_##suffix(const void *status, handle type, int *count) {                       \
        CHECK((intptr_t)type == BYTE);                                                             \
        *count = *(const int *)status;                                                             \
        return outcome();                                                                          \
    }                                                                                              \
    static const spc_mpi_functions_t fake_##suffix = {                                             \
        .isend = (spc_mpi_function_t *)isend_##suffix,                                             \
        .irecv = (spc_mpi_function_t *)irecv_##suffix,                                             \
        .test = (spc_mpi_function_t *)test_##suffix,                                               \
        .wait = (spc_mpi_function_t *)wait_##suffix,                                               \
        .cancel = (spc_mpi_function_t *)cancel_##suffix,                                           \
        .get_count = (spc_mpi_function_t *)count_##suffix,                                         \
    };

typedef void *pointer_t;
FAKE(narrow, int)
FAKE(wide, pointer_t)

static spc_mpi_functions_t mpi;

static void begin(bool are_wide, spc_channel_t *ends[2]) {
    memset(&fake, 0, sizeof fake);
    fake.fails = -1;
    mpi = are_wide ? fake_wide : fake_narrow;
    mpi.are_wide = are_wide;
    spc_mpi_handle_t comm = {.wide = NULL};
    if (are_wide) {
        mpi.byte.wide = (void *)(intptr_t)BYTE;
        comm.wide = (void *)(intptr_t)COMM;
    } else {
        mpi.byte.narrow = BYTE;
        comm.narrow = COMM;
    }
    for (int i = 0; i < 2; i++) {
        CHECK_OK(spc_channel_mpi_create(&mpi, comm, 1 - i, 3, &ends[i]));
        CHECK_EQ(spc_channel_descriptor(ends[i]), -1);
    }
}

static int read_at(spc_channel_t *ends[2], int at, void *buffer, size_t room, size_t *got) {
    fake.at = at;
    return spc_channel_read(ends[at], buffer, room, got);
}

static void finish_sends(void) {
    for (int i = 0; i < QUEUED; i++) {
        fake.requests[i].is_over = fake.requests[i].is_send;
    }
}

static void end(spc_channel_t *ends[2]) {
    for (int i = 0; i < 2; i++) {
        spc_channel_destroy(ends[i]);
    }
    for (int i = 0; i < QUEUED; i++) {
        CHECK(!fake.requests[i].is_used);
    }
}

/* ---- */

TEST(bytes_go_both_ways) {
    for (int are_wide = 0; are_wide < 2; are_wide++) {
        spc_channel_t *ends[2];
        char buffer[64];
        size_t bytes = 0;
        begin(are_wide != 0, ends);
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(read_at(ends, i, buffer, sizeof buffer, &bytes), SPC_EAGAIN);
        }
        for (int i = 0; i < 2; i++) {
            const spc_frame_piece_t pieces[3] = {{"one ", 4}, {NULL, 0}, {"two", 3}};
            CHECK_OK(spc_channel_write(ends[i], pieces, 3, &bytes));
            CHECK_EQ_U(bytes, 7);
            CHECK_OK(read_at(ends, 1 - i, buffer, 4, &bytes));
            CHECK_EQ_U(bytes, 4);
            CHECK(spc_channel_has_unread(ends[1 - i]));
            CHECK_OK(read_at(ends, 1 - i, buffer + 4, sizeof buffer - 4, &bytes));
            CHECK_EQ_U(bytes, 3);
            CHECK(!spc_channel_has_unread(ends[1 - i]));
            CHECK_MEM(buffer, "one two", 7);
        }
        end(ends);
        CHECK(fake.cancelled != 0);
    }
}

/* More than the slots take, in pieces that end nowhere near their ends: neither end waits, and nothing is lost. */
TEST(a_full_channel) {
    enum { PIECES = 7, BYTES = 200003 };
    spc_channel_t *ends[2];
    unsigned char *data = malloc(BYTES), *buffer = malloc((size_t)PIECES * BYTES);
    spc_frame_piece_t pieces[PIECES];
    size_t taken = 0, got = 0, seen = 0;
    for (int i = 0; i < BYTES; i++) {
        data[i] = (unsigned char)(i * 7 % 251);
    }
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = (spc_frame_piece_t){data, BYTES};
    }
    begin(true, ends);
    fake.is_slow = true;
    CHECK_OK(spc_channel_write(ends[0], pieces, PIECES, &taken));
    CHECK(taken < (size_t)PIECES * BYTES);
    size_t none = 9;
    CHECK_EQ(spc_channel_write(ends[0], pieces, PIECES, &none), SPC_EAGAIN);
    while (read_at(ends, 1, buffer + seen, (size_t)PIECES * BYTES - seen, &got) == SPC_OK) {
        seen += got;
    }
    CHECK_EQ_U(seen, taken);
    for (size_t i = 0; i < seen; i++) {
        CHECK(buffer[i] == data[i % BYTES]);
    }
    finish_sends();
    const spc_frame_piece_t more = {"more", 4};
    CHECK_OK(spc_channel_write(ends[0], &more, 1, &taken));
    CHECK_EQ_U(taken, 4);
    CHECK_OK(read_at(ends, 1, buffer, 10, &got));
    CHECK_MEM(buffer, "more", 4);
    finish_sends();
    end(ends);
    free(data);
    free(buffer);
}

TEST(each_call_may_fail) {
    const spc_frame_piece_t piece = {"here", 4};
    char buffer[8];
    size_t bytes = 0;
    spc_channel_t *ends[2];
    for (int fails = 0; fails < 3; fails++) { /* posting, testing, counting */
        begin(false, ends);
        CHECK_OK(spc_channel_write(ends[0], &piece, 1, &bytes));
        fake.fails = fails == 0 ? 0 : 7 + fails;
        errno = 0;
        CHECK_EQ(read_at(ends, 1, buffer, sizeof buffer, &bytes), SPC_ESYSTEM);
        CHECK_EQ(errno, EIO);
        fake.fails = -1;
        spc_channel_destroy(ends[0]);
        spc_channel_destroy(ends[1]);
        while (fake.first[1] != fake.last[1]) {
            free(fake.queue[1][fake.first[1]++ % QUEUED].bytes);
        }
    }
    begin(false, ends);
    fake.fails = 0;
    CHECK_EQ(spc_channel_write(ends[0], &piece, 1, &bytes), SPC_ESYSTEM);
    free(fake.queue[1][0].bytes);
    spc_channel_destroy(ends[0]);
    spc_channel_destroy(ends[1]);
}

TEST_MAIN()
