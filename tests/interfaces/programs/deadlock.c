/* SPDX-License-Identifier: MIT */
/* Waits for ever, or for long: `deadlock MODE local_nodes`. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <spcomm/spcomm.h>

static spcomm_t *comm;
static int rank, size;

static int receive(int source) {
    spcomm_message_t message;
    int status = spcomm_recv(comm, source, 7, SPCOMM_FOREVER, &message);
    if (status == SPCOMM_OK) {
        spcomm_message_free(&message);
    } else {
        fprintf(stderr, "%s\n", spcomm_last_error());
    }
    return status;
}

/* ---- of a node that is alone: who may end its wait begins when the standard input ends */

static void *send_later(void *argument) {
    while (getchar() != EOF) {
    }
    (void)spcomm_send(comm, 0, 7, spcomm_raw("x", 1), SPCOMM_FOREVER);
    return argument;
}

static int wait_for_thread(void) {
    pthread_t thread;
    int status = pthread_create(&thread, NULL, send_later, NULL) == 0 ? receive(0) : 60;
    pthread_join(thread, NULL);
    return status;
}

static void end_well(int number) {
    (void)number;
    _exit(0);
}

static int wait_for_signal(int number) {
    struct sigaction action = {.sa_handler = end_well};
    sigaction(number, &action, NULL);
    if (number == SIGALRM) {
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 700000}}, NULL);
    }
    return receive(0);
}

/* Long enough for the supervisor to look several times at those who wait. */
static void compute(void) {
    const struct timespec time = {.tv_nsec = 400000000};
    nanosleep(&time, NULL);
}

static int wait_for_long(void) {
    for (int turn = 0; turn < size; turn++) {
        if (rank == turn) {
            compute();
            if (spcomm_send(comm, (rank + 1) % size, 7, spcomm_raw("x", 1), SPCOMM_FOREVER) != SPCOMM_OK) {
                return 50;
            }
        } else if (rank == (turn + 1) % size && receive(turn) != SPCOMM_OK) {
            return 51;
        }
    }
    return spcomm_barrier(comm, SPCOMM_FOREVER) == SPCOMM_OK ? 0 : 52;
}

static int live(const char *mode) {
    if (strcmp(mode, "barrier") == 0 && rank != 1) {
        return spcomm_barrier(comm, SPCOMM_FOREVER);
    }
    if (strcmp(mode, "thread") == 0) {
        return wait_for_thread();
    }
    if (strcmp(mode, "timer") == 0 || strcmp(mode, "interrupt") == 0) {
        return wait_for_signal(mode[0] == 't' ? SIGALRM : SIGINT);
    }
    return strcmp(mode, "long") == 0 ? wait_for_long() : receive((rank + 1) % size) != SPCOMM_OK;
}

int main(int argc, char **argv) {
    if (argc != 3 || spcomm_startup(atoi(argv[2]), 0, 0, NULL, &comm) != SPCOMM_OK) {
        fprintf(stderr, "%s\n", spcomm_last_error());
        return 40;
    }
    rank = spcomm_rank(comm);
    size = spcomm_size(comm);
    return live(argv[1]);
}
