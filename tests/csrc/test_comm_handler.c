/* SPDX-License-Identifier: MIT */
/* Messages for handlers, in waits. Where slices of sleep are endless, one that is overlooked hangs this. */
#include "comm_box.h"

#define QUESTION 5
#define ANSWER 6

typedef struct person {
    spc_comm_t *comm;
    int answered;
    int gives_up; /* the handler fails after so many */
} person_t;

/* Answers all that has come. */
static int handle(void *argument) {
    person_t *person = argument;
    spc_message_t message;
    while (spc_comm_take_handled(person->comm, &message) == SPC_OK) {
        CHECK_EQ(message.tag, QUESTION);
        send_content(person->comm, message.source, ANSWER, (uint64_t)person->answered, 24);
        spc_message_release(person->comm, &message);
        if (++person->answered == person->gives_up) {
            return 1;
        }
    }
    return 0;
}

static void join(person_t *person, const comm_box_t *box, int rank) {
    const spc_comm_options_t options = {
        .descriptor = box->descriptor, .rank = (uint32_t)rank, .handle = handle, .check_argument = person};
    CHECK_OK(spc_comm_create_within(ONE_MAPPING ? &box->segment : NULL, &options, &person->comm));
    CHECK_OK(spc_comm_handle(person->comm, QUESTION));
}

/* Everybody asks everybody, many times, and waits for the answer; the others answer while they wait for theirs. */
static void everybody_asks(int rank, int size, void *box) {
    const int rounds = check_scale(300);
    person_t person = {.answered = 0};
    spc_message_t message;
    join(&person, box, rank);
    for (int i = 0; i < rounds; i++) {
        const int to = (rank + 1 + i % (size - 1)) % size;
        send_content(person.comm, to, QUESTION, 0, 8);
        CHECK_OK(recv_until(person.comm, to, ANSWER, SPC_NO_DEADLINE, &message));
        spc_message_release(person.comm, &message);
    }
    const spc_signature_t barrier = {.operation = SPC_OPERATION_BARRIER};
    CHECK_OK(spc_comm_collective(person.comm, &barrier, NULL, NULL, 0, NULL, SPC_NO_DEADLINE));
    CHECK_EQ(person.answered, rounds);
    comm_box_leave(person.comm);
}

TEST(waits_answer) {
    for (int n = 2; n <= 4; n++) {
        comm_box_t box = comm_box_open((spc_config_t){.nodes = (uint32_t)n, .slots = 2});
        check_threads(n, everybody_asks, &box);
        comm_box_close(&box);
        if (WITH_PROCESSES) {
            box = comm_box_open((spc_config_t){.nodes = (uint32_t)n});
            check_processes(n, everybody_asks, &box);
            comm_box_close(&box);
        }
    }
}

/* The message that the wait was for is not lost: the next one finds it. */
static void one_that_fails(int rank, int size, void *box) {
    person_t person = {.gives_up = rank == 0 ? 1 : 0};
    spc_message_t message;
    (void)size;
    join(&person, box, rank);
    if (rank == 0) {
        CHECK_EQ(recv_until(person.comm, 1, 7, SPC_NO_DEADLINE, &message), SPC_EINTERRUPTED);
        CHECK_EQ(person.answered, 1);
        recv_content(person.comm, 1, 7, 7, 8);
    } else {
        send_content(person.comm, 0, QUESTION, 0, 8);
        CHECK_OK(recv_until(person.comm, 0, ANSWER, SPC_NO_DEADLINE, &message));
        spc_message_release(person.comm, &message);
        send_content(person.comm, 0, 7, 7, 8);
    }
    comm_box_leave(person.comm);
}

TEST(a_handler_that_fails_ends_the_wait) {
    for (int i = 0; i < check_scale(20); i++) {
        comm_box_t box = comm_box_open((spc_config_t){.nodes = 2});
        check_threads(2, one_that_fails, &box);
        comm_box_close(&box);
    }
}

TEST_MAIN()
