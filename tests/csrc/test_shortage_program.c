/* SPDX-License-Identifier: MIT */
/*
 * Each allocation of a C program without a launcher fails once, in the process that forks the nodes, in each of them
 * and in their supervisor: the run ends, and if it fails it says why.
 */
#include "shortage.h"

#include "spcomm/spcomm.h"

enum { NODES = 3, TEXT_BYTES = 16384 };

#define FAILS(call)                                       \
    do {                                                  \
        const int status = (call);                        \
        if (status != SPCOMM_OK) {                        \
            CHECK(spcomm_last_error()[0] != '\0');        \
            fprintf(stderr, "%s\n", spcomm_last_error()); \
            exit(9);                                      \
        }                                                 \
    } while (0)

static void send_and_receive(spcomm_t *comm, size_t bytes) {
    static char data[50000];
    const int next = (spcomm_rank(comm) + 1) % NODES;
    spcomm_message_t message;
    FAILS(spcomm_send(comm, next, 1, spcomm_raw(data, bytes), SPCOMM_FOREVER));
    FAILS(spcomm_recv(comm, SPCOMM_ANY, 1, SPCOMM_FOREVER, &message));
    CHECK_EQ_U(message.bytes, bytes);
    spcomm_message_free(&message);
}

static void reduce_array(spcomm_t *comm, int64_t count) {
    static double values[3000], sum[3000];
    FAILS(spcomm_allreduce(comm, spcomm_array(values, 'f', 8, 1, &count), SPCOMM_SUM, SPCOMM_FOREVER, sum));
}

static void gather(spcomm_t *comm) {
    static char data[9000];
    spcomm_message_t messages[NODES];
    FAILS(spcomm_allgather(comm, spcomm_raw(data, sizeof data), SPCOMM_FOREVER, messages));
    for (int rank = 0; rank < NODES; rank++) {
        spcomm_message_free(&messages[rank]);
    }
}

static void use_part(spcomm_t *comm) {
    spcomm_t *part;
    int64_t all;
    FAILS(spcomm_split(comm, spcomm_rank(comm) % 2, 0, SPCOMM_FOREVER, &part));
    FAILS(spcomm_global_sum_int64(part, 1, SPCOMM_FOREVER, &all));
    FAILS(spcomm_shutdown(part, SPCOMM_FOREVER));
}

static int count(spcomm_t *comm, spcomm_message_t *message, void *argument) {
    (void)comm;
    spcomm_message_free(message);
    ++*(int *)argument;
    return 0;
}

static void program(void) {
    spcomm_t *comm;
    int handled = 0;
    shortage_begin();
    if (spcomm_startup(NODES, 0, 0, NULL, &comm) != SPCOMM_OK) {
        fprintf(stderr, "%s\n", spcomm_last_error());
        _exit(9); /* what watches over the nodes stays until the process ends */
    }
    FAILS(spcomm_handler(comm, 3, count, &handled));
    send_and_receive(comm, 100);
    send_and_receive(comm, 50000);
    reduce_array(comm, 10);
    reduce_array(comm, 3000);
    gather(comm);
    use_part(comm);
    FAILS(spcomm_send_all(comm, 3, spcomm_none(), SPCOMM_FOREVER));
    for (uint64_t waiting; handled < NODES;) {
        FAILS(spcomm_poll(comm, &waiting));
    }
    FAILS(spcomm_barrier(comm, SPCOMM_FOREVER));
    FAILS(spcomm_shutdown(comm, SPCOMM_FOREVER));
    exit(0);
}

static void run_of_a_program(void) {
    int text[2], how;
    static char said[TEXT_BYTES];
    CHECK_EQ(pipe(text), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(text[1], 2);
        close(text[0]);
        close(text[1]);
        check_watchdog(20);
        program();
    }
    close(text[1]);
    size_t length = 0;
    for (ssize_t got = 1; got > 0 && length + 1 < sizeof said; length += got > 0 ? (size_t)got : 0) {
        got = read(text[0], said + length, sizeof said - 1 - length);
    }
    close(text[0]);
    how = check_wait(pid);
    if (getenv("CHECK_SHORTAGE") != NULL) {
        printf("status 0x%x:\n%s", how, said);
    }
    if (!WIFEXITED(how) || (WEXITSTATUS(how) == 0) != (said[0] == '\0') || WEXITSTATUS(how) == 1
        || strstr(said, "Sanitizer") != NULL || strstr(said, "killed by") != NULL
        || strstr(said, "watchdog")) {
        CHECK_FAIL("status 0x%x; it said:\n%s", (unsigned)how, said);
    }
}

TEST(a_run_ends_and_says_why) {
    SWEEP(run_of_a_program);
}

TEST_MAIN()
