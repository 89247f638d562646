/* SPDX-License-Identifier: MIT */
/* The life of a node, from begin to end: `life MODE [local_nodes total_nodes group_id infile]`. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spcomm/spcomm.h>

static spcomm_t *comm;
static int rank, size;

static void expect(int status, int expected, const char *text) {
    if (status != expected || strstr(spcomm_last_error(), text) == NULL) {
        fprintf(stderr, "node %d: %s, not %s with '%s': %s\n", rank, spcomm_error_name(status),
                spcomm_error_name(expected), text, spcomm_last_error());
        _Exit(50);
    }
}

/* Sends what only fits once the others take it, and leaves by returning from main. */
static int forget(void) {
    static char block[100000];
    for (int i = 0; i < 20; i++) {
        expect(spcomm_send(comm, (rank + 1) % size, 1, spcomm_raw(block, sizeof(block)), SPCOMM_FOREVER), 0,
               "");
    }
    for (int i = 0; i < 20; i++) {
        spcomm_message_t message;
        expect(spcomm_recv(comm, (rank + size - 1) % size, 1, SPCOMM_FOREVER, &message), 0, "");
        spcomm_message_free(&message);
    }
    printf("got all\n");
    return 0;
}

/* Node 1 ends in some way, the others wait for a message of it. */
static int lose(int status, const char *text, int code) {
    spcomm_message_t message;
    expect(spcomm_recv(comm, 1, SPCOMM_ANY, SPCOMM_FOREVER, &message), status, text);
    expect(spcomm_recv(comm, 1, 5, SPCOMM_FOREVER, &message), status,
           "spcomm_recv(source=1, tag=5): node 1 has");
    printf("%s\n", spcomm_last_error());
    return code;
}

static int fork_a_child(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        spcomm_t *again = NULL;
        expect(spcomm_barrier(comm, 0), SPCOMM_EFORKED, "spcomm_barrier(): this process was forked");
        expect(spcomm_startup(0, 0, 0, NULL, &again), SPCOMM_EFORKED, "forked");
        expect(spcomm_shutdown(comm, 0), SPCOMM_EFORKED, "forked");
        exit(0); /* what runs at exit must not speak for the node */
    }
    int status;
    waitpid(child, &status, 0);
    expect(spcomm_barrier(comm, SPCOMM_FOREVER), 0, "");
    printf("the child ended with %d\n", status);
    return 0;
}

/* A program that a node starts is not that node, and gets none of its descriptors. */
static int start_a_program(void) {
    fflush(stdout);
    return system("test -z \"$SPCOMM_NODE$SPCOMM_REPORT\" && ! ls -l /proc/self/fd 2>/dev/null | grep -q "
                  "memfd && "
                  "echo clean")
           != 0;
}

/* The program that takes this node's place says that it is none. */
static int execute_a_program(void) {
    fflush(stdout);
    execl("/proc/self/exe", "life", "place", (char *)NULL);
    return 70;
}

static int live(const char *mode) {
    if (strcmp(mode, "place") == 0) {
        printf("node %d of %d in group %d\n", rank, size, spcomm_group(comm));
        return 0;
    }
    if (strcmp(mode, "sum") == 0) {
        int64_t sum;
        expect(spcomm_global_sum_int64(comm, 1, SPCOMM_FOREVER, &sum), 0, "");
        printf("node %d of %d: %d\n", rank, size, (int)sum);
        return 0;
    }
    if (strcmp(mode, "forget") == 0) {
        return forget();
    }
    if (strcmp(mode, "exit") == 0) {
        return rank == 1 ? 3 : lose(SPCOMM_ELOST, "node 1 has died (exit code 3)", 9);
    }
    if (strcmp(mode, "kill") == 0) {
        return rank == 1 ? raise(SIGKILL) : lose(SPCOMM_ELOST, "node 1 has died (signal 9)", 9);
    }
    if (strcmp(mode, "finish") == 0) {
        return rank == 1 ? 0 : lose(SPCOMM_EFINISHED, "node 1 has finished", 0);
    }
    if (strcmp(mode, "child") == 0) {
        return fork_a_child();
    }
    if (strcmp(mode, "execute") == 0) {
        return execute_a_program();
    }
    return strcmp(mode, "program") == 0 ? start_a_program() : 60;
}

int main(int argc, char **argv) {
    int numbers[3] = {0, 0, 0};
    alarm(60);
    for (int i = 0; i < 3 && i + 2 < argc; i++) {
        numbers[i] = atoi(argv[i + 2]);
    }
    if (spcomm_startup(numbers[0], numbers[1], numbers[2], argc > 5 ? argv[5] : NULL, &comm) != SPCOMM_OK) {
        fprintf(stderr, "%s\n", spcomm_last_error());
        return 40;
    }
    rank = spcomm_rank(comm);
    size = spcomm_size(comm);
    return live(argv[1]);
}
