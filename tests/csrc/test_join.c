/* SPDX-License-Identifier: MIT */
/* Processes of another launcher: the socket at which they find each other. */
#include "check.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spc_error.h"
#include "fork/spc_join.h"

static spc_launcher_place_t place_of(uint32_t rank) {
    spc_launcher_place_t place = {
        .rank = rank, .size = 2, .local_rank = rank, .local_size = 2, .launcher = "mpiexec"};
    (void)snprintf(place.name, sizeof place.name, "spcomm-test-%ld", (long)getpid());
    return place;
}

static int listen_as(const spc_launcher_place_t *place) {
    int listener;
    CHECK_OK(spc_join_listen(place, &listener));
    CHECK(fcntl(listener, F_SETFL, O_NONBLOCK) == 0);
    return listener;
}

/* A child that connects, and ends with 0 if it gets `status`. */
static pid_t child(const spc_launcher_place_t *place, int status) {
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) {
        char message[SPC_JOIN_MESSAGE_BYTES] = "";
        spc_join_t joined;
        alarm(60);
        CHECK_EQ(spc_join_connect(place, place, NULL, NULL, &joined, message, sizeof message), status);
        if (status != SPC_OK) {
            CHECK(strstr(message, status == SPC_ELOST ? "waits in vain" : "as it is") != NULL);
            CHECK_EQ(joined.connection, -1);
            _exit(0);
        }
        CHECK_EQ(joined.supervisor, getppid());
        CHECK_EQ(write(joined.report, "r", 1), 1);
        CHECK_EQ(write(joined.segment, "s", 1), 1);
        CHECK(!spc_join_has_ended(joined.connection));
        char word[4];
        CHECK_EQ(read(joined.connection, word, 4), 4);
        CHECK_EQ(read(joined.connection, word, 1), 0);
        CHECK(spc_join_has_ended(joined.connection));
        _exit(0);
    }
    return process;
}

static int accept_from(int listener, spc_join_hello_t *hello) {
    int connection;
    while ((connection = spc_join_accept(listener, hello)) < 0) {
        (void)usleep(1000);
    }
    return connection;
}

TEST(a_process_gets_two_descriptors_and_a_word) {
    const spc_launcher_place_t first = place_of(0), second = place_of(1);
    int listener = listen_as(&first), segment[2], report[2];
    spc_join_hello_t hello;
    char byte;
    CHECK_EQ(pipe(segment), 0);
    CHECK_EQ(pipe(report), 0);
    CHECK_EQ(spc_join_accept(listener, &hello), -1);
    pid_t process = child(&second, SPC_OK);
    int connection = accept_from(listener, &hello);
    CHECK_EQ(hello.rank, 1);
    CHECK_EQ(hello.size, 2);
    CHECK_EQ(hello.process, process);
    CHECK(hello.self == (uint64_t)(uintptr_t)&second);
    CHECK_OK(spc_join_hand(connection, (int[2]){segment[1], report[1]}, getpid()));
    CHECK_EQ(read(segment[0], &byte, 1), 1);
    CHECK_EQ(byte, 's');
    CHECK_EQ(read(report[0], &byte, 1), 1);
    CHECK_EQ(byte, 'r');
    CHECK_EQ(write(connection, "word", 4), 4);
    close(connection);
    CHECK_EQ(check_wait(process), 0);
    close(listener);
}

TEST(a_connection_that_ends_without_an_answer) {
    const spc_launcher_place_t first = place_of(0), second = place_of(1);
    int listener = listen_as(&first);
    spc_join_hello_t hello;
    pid_t process = child(&second, SPC_ELOST);
    close(accept_from(listener, &hello));
    CHECK_EQ(check_wait(process), 0);
    close(listener);
}

TEST(the_first_process_says_why_there_is_no_run) {
    const spc_launcher_place_t first = place_of(0), second = place_of(1);
    int listener = listen_as(&first);
    pid_t process = child(&second, SPC_EINVAL);
    spc_join_refuse(listener, 1, SPC_EINVAL, "as it is");
    close(listener);
    CHECK_EQ(check_wait(process), 0);
}

TEST(the_name_is_taken_once) {
    const spc_launcher_place_t first = place_of(0);
    int listener = listen_as(&first), other;
    CHECK_EQ(spc_join_listen(&first, &other), SPC_EAGAIN);
    close(listener);
    close(listen_as(&first));
}

static int give_up(void *argument) {
    return ++*(int *)argument > 3 ? SPC_EINTERRUPTED : SPC_OK;
}

TEST(the_check_ends_the_wait) {
    const spc_launcher_place_t second = place_of(1);
    char message[SPC_JOIN_MESSAGE_BYTES];
    spc_join_t joined;
    int tries = 0;
    CHECK_EQ(spc_join_connect(&second, &tries, give_up, &tries, &joined, message, sizeof message),
             SPC_EINTERRUPTED);
    CHECK_EQ(tries, 4);
}

TEST_MAIN()
