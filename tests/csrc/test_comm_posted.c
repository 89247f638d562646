/* SPDX-License-Identifier: MIT */
/* Receives into memory of the caller, with messages that come in parts: alone, with timeouts, and among threads. */
#include "comm_box.h"

enum { DATA = 50000, META = 45 };

static const spc_config_t in_parts = {.slots = 3, .ring_bytes = 16384, .arena_bytes = 1};

static const unsigned char meta[META] = "what both sides know";

/* All bytes of the data are the same. */
static void send_uniform(spc_comm_t *comm, int32_t to, int32_t tag, int value, bool waits) {
    unsigned char *data = malloc(DATA);
    const spc_payload_t payload = {meta, data, DATA, META, SPC_FORMAT_ARRAY, NULL};
    memset(data, value, DATA);
    if (waits) {
        CHECK_OK(spc_comm_ssend(comm, to, SPC_CONTEXT_USER, tag, &payload, SPC_NO_DEADLINE));
    } else {
        CHECK_OK(spc_comm_send(comm, &to, 1, SPC_CONTEXT_USER, tag, &payload, SPC_NO_DEADLINE));
    }
    free(data);
}

/* Receives one, and gives its value. */
static int recv_uniform(spc_comm_t *comm, int32_t source, int32_t tag, uint64_t deadline_ns, bool *filled,
                        int *value) {
    spc_message_t message;
    unsigned char *memory = malloc(DATA);
    spc_sink_t sink = {memory, DATA, meta, META, SPC_FORMAT_ARRAY, false};
    int status = spc_comm_recv_into(comm, SPC_CONTEXT_USER, source, tag, deadline_ns, &sink, &message);
    if (status == SPC_OK) {
        const unsigned char *data = sink.filled ? memory : spc_message_data(&message);
        CHECK_EQ_U(message.length_bytes, META + DATA);
        for (int i = 0; i < DATA; i++) {
            CHECK_EQ(data[i], data[0]);
        }
        *value = data[0];
        *filled = sink.filled;
        spc_message_release(comm, &message);
    }
    free(memory);
    return status;
}

/* ---- one thread */

static void there_and_back_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    int partner = size - 1 - rank, value;
    bool filled;
    for (int i = 0; i < check_scale(100); i++) {
        if (rank == 0) {
            send_uniform(comm, partner, 1, i % 200, i % 2 != 0);
        }
        CHECK_OK(
            recv_uniform(comm, i % 3 == 0 ? SPC_ANY_SOURCE : partner, 1, SPC_NO_DEADLINE, &filled, &value));
        CHECK_EQ(value, i % 200);
        CHECK(filled || rank == 0); /* node 0 may have stored parts while it sent the one before */
        if (rank != 0) {
            send_uniform(comm, partner, 1, i % 200, false);
        }
    }
    comm_box_leave(comm);
}

TEST(there_and_back) {
    run_ranks(2, in_parts, there_and_back_body);
}

static void an_arena_is_used_as_ever_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    bool filled = true;
    int value;
    (void)size;
    if (rank == 0) {
        send_uniform(comm, 1, 1, 5, false);
    } else {
        CHECK_OK(recv_uniform(comm, 0, 1, SPC_NO_DEADLINE, &filled, &value));
        CHECK_EQ(value, 5);
        CHECK(!filled);
    }
    comm_box_leave(comm);
}

TEST(an_arena_is_used_as_ever) {
    run_ranks(2, (spc_config_t){0}, an_arena_is_used_as_ever_body);
}

static void impatient_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    bool filled;
    (void)size;
    for (int i = 0; i < check_scale(40); i++) {
        int status = SPC_ETIMEDOUT, value = -1;
        if (rank == 0) {
            send_uniform(comm, 1, 1, i % 200, true);
        }
        while (rank == 1 && status == SPC_ETIMEDOUT) {
            status = recv_uniform(comm, 0, 1, AT_ONCE, &filled, &value);
        }
        CHECK_EQ(value, rank == 0 ? -1 : i % 200);
    }
    comm_box_leave(comm);
}

TEST(giving_up_and_again) {
    run_ranks(2, in_parts, impatient_body);
}

/* ---- several threads */

typedef struct crowd {
    spc_comm_t *comm;
    _Atomic int taken; /* messages */
    _Atomic int sum; /* of their values */
    int messages;
} crowd_t;

/* Some post where they want the data, some do not, and some give up now and then. */
static void take_in_thread(int number, int size, void *argument) {
    crowd_t *crowd = argument;
    (void)size;
    while (atomic_load(&crowd->taken) < crowd->messages) {
        spc_message_t message;
        int value = 0, status;
        bool filled;
        if (number == 0) {
            status = spc_comm_try_recv(crowd->comm, SPC_CONTEXT_USER, SPC_ANY_SOURCE, 1, &message);
            if (status == SPC_OK) {
                value = spc_message_data(&message)[0];
                CHECK_EQ(spc_message_data(&message)[DATA - 1], value);
                spc_message_release(crowd->comm, &message);
            }
        } else {
            uint64_t deadline = number == 1 ? AT_ONCE : spc_clock_deadline_ns(1000 * 1000);
            status = recv_uniform(crowd->comm, SPC_ANY_SOURCE, 1, deadline, &filled, &value);
        }
        if (status == SPC_EFINISHED) { /* another thread has the last one, and has yet to count it */
            return;
        }
        CHECK(status == SPC_OK || status == SPC_ETIMEDOUT || status == SPC_EAGAIN);
        if (status == SPC_OK) {
            atomic_fetch_add(&crowd->sum, value);
            atomic_fetch_add(&crowd->taken, 1);
        }
    }
}

static void crowd_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    int each = (int)check_scale(60);
    crowd_t crowd = {.comm = comm, .messages = (size - 1) * each};
    if (rank == 0) {
        check_threads(4, take_in_thread, &crowd);
        int sum = 0;
        for (int i = 0; i < each; i++) {
            sum += i % 200 * (size - 1);
        }
        CHECK_EQ(atomic_load(&crowd.sum), sum);
    } else {
        for (int i = 0; i < each; i++) {
            send_uniform(comm, 0, 1, i % 200, false);
        }
    }
    comm_box_leave(comm);
}

TEST(many_threads_want_the_same) {
    run_ranks(3, in_parts, crowd_body);
}

TEST_MAIN()
