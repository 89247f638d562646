/* SPDX-License-Identifier: MIT */
/*
 * The player in C of a random schedule (tests/stress/schedule.py), of which other nodes are in Python (play.py):
 *
 *     play STEPS INFILE
 *
 * Each line of STEPS-<rank> is a step of this node, as test_mixed.py writes it; lines `expect` come first, and list the
 * messages to this node, by sender in the order of the sends.
 */
#include <inttypes.h>

#include "../../csrc/api_check.h"

enum { NODES_MAX = 16, MESSAGES_MAX = 4096, FUZZY_MAX = 1024, ITEMS_MAX = 33000 };

typedef struct sent {
    int number, tag, size;
} sent_t;

static spcomm_t *comm;
static int rank, size;
static sent_t waiting[NODES_MAX][MESSAGES_MAX];
static int counts[NODES_MAX];
static spcomm_fuzzy_t fuzzy[FUZZY_MAX];

/* "<source>:<number>:", over and over. */
static char *contents(int source, sent_t sent) {
    char word[40], *made = malloc((size_t)sent.size + 1);
    const int length = snprintf(word, sizeof word, "%d:%d:", source, sent.number);
    CHECK(made != NULL && length > 0);
    for (int i = 0; i < sent.size; i++) {
        made[i] = word[i % length];
    }
    return made;
}

static void expect(FILE *steps) {
    int source;
    sent_t sent;
    CHECK(fscanf(steps, "%d %d %d %d", &source, &sent.number, &sent.tag, &sent.size) == 4);
    CHECK(source < NODES_MAX && counts[source] < MESSAGES_MAX);
    waiting[source][counts[source]++] = sent;
}

static void send(FILE *steps) {
    sent_t sent;
    int left, dest;
    CHECK(fscanf(steps, "%d %d %d %d", &sent.number, &sent.tag, &sent.size, &left) == 4);
    char *data = contents(rank, sent);
    while (left-- > 0) {
        CHECK(fscanf(steps, "%d", &dest) == 1);
        CHECK_OK(spcomm_send(comm, dest, sent.tag, spcomm_raw(data, (size_t)sent.size), SPCOMM_FOREVER));
    }
    free(data);
}

/* The first message of its sender that the call may find. */
static void receive(FILE *steps) {
    int source, tag, at = 0;
    spcomm_message_t message;
    CHECK(fscanf(steps, "%d %d", &source, &tag) == 2);
    CHECK_OK(spcomm_recv(comm, source, tag, SPCOMM_FOREVER, &message));
    CHECK(source == SPCOMM_ANY || source == message.source);
    sent_t *of = waiting[message.source];
    while (tag != SPCOMM_ANY && at < counts[message.source] && of[at].tag != tag) {
        at++;
    }
    CHECK(at < counts[message.source] && of[at].tag == message.tag);
    CHECK(message.format <= SPCOMM_FORMAT_BYTES && message.bytes == (size_t)of[at].size);
    char *data = contents(message.source, of[at]);
    CHECK(memcmp(data, message.data, message.bytes) == 0);
    free(data);
    spcomm_message_free(&message);
    memmove(&of[at], &of[at + 1], (size_t)(--counts[message.source] - at) * sizeof *of);
}

static void reduce_numbers(FILE *steps) {
    char kind[8];
    long long mine, wanted;
    int64_t found;
    CHECK(fscanf(steps, "%7s %lld %lld", kind, &mine, &wanted) == 3);
    CHECK_OK(strcmp(kind, "sum") == 0   ? spcomm_global_sum_int64(comm, mine, SPCOMM_FOREVER, &found)
             : strcmp(kind, "min") == 0 ? spcomm_global_min_int64(comm, mine, SPCOMM_FOREVER, &found)
                                        : spcomm_global_max_int64(comm, mine, SPCOMM_FOREVER, &found));
    CHECK(found == wanted);
}

/* Item i of a node's array, as oracle.py has it. */
static int64_t item(int64_t i, int64_t step, int64_t node) {
    return ((i * 7919 + 31 * step + 104729 * (node + 1)) >> 3) % 5;
}

static void reduce_arrays(FILE *steps) {
    static int64_t values[ITEMS_MAX], found[ITEMS_MAX];
    char kind[16];
    int root;
    int64_t step, count;
    CHECK(fscanf(steps, "%" SCNd64 " %15s %d %" SCNd64, &step, kind, &root, &count) == 4
          && count <= ITEMS_MAX);
    for (int64_t i = 0; i < count; i++) {
        values[i] = item(i, step, rank);
    }
    const spcomm_data_t data = spcomm_array(values, 'i', 8, 1, &count);
    const bool is_scan = strcmp(kind, "scan") == 0, is_reduce = strcmp(kind, "reduce") == 0;
    if (is_scan) {
        CHECK_OK(spcomm_scan(comm, data, SPCOMM_SUM, SPCOMM_FOREVER, found));
    } else if (is_reduce) {
        CHECK_OK(spcomm_reduce(comm, data, SPCOMM_SUM, root, SPCOMM_FOREVER, rank == root ? found : NULL));
    } else {
        CHECK_OK(spcomm_allreduce(comm, data, SPCOMM_SUM, SPCOMM_FOREVER, found));
    }
    for (int64_t i = 0; i < count && (!is_reduce || rank == root); i++) {
        for (int node = 0; node < (is_scan ? rank + 1 : size); node++) {
            found[i] -= item(i, step, node);
        }
        CHECK(found[i] == 0);
    }
}

static int number_of(FILE *steps) {
    int number;
    CHECK(fscanf(steps, "%d", &number) == 1 && number < FUZZY_MAX);
    return number;
}

static void step(const char *kind, FILE *steps) {
    if (strcmp(kind, "expect") == 0) {
        expect(steps);
    } else if (strcmp(kind, "send") == 0) {
        send(steps);
    } else if (strcmp(kind, "receive") == 0) {
        receive(steps);
    } else if (strcmp(kind, "reduce_numbers") == 0) {
        reduce_numbers(steps);
    } else if (strcmp(kind, "reduce_arrays") == 0) {
        reduce_arrays(steps);
    } else if (strcmp(kind, "barrier") == 0) {
        CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
    } else if (strcmp(kind, "enter") == 0) {
        CHECK_OK(spcomm_fuzzy_enter(comm, &fuzzy[number_of(steps)]));
    } else {
        CHECK(strcmp(kind, "leave") == 0);
        CHECK_OK(spcomm_fuzzy_wait(comm, &fuzzy[number_of(steps)], SPCOMM_FOREVER));
    }
}

int main(int count, char **words) {
    char path[4096], kind[16];
    uint64_t left;
    alarm(60);
    CHECK(count == 3);
    CHECK_OK(spcomm_startup(0, 0, 0, words[2], &comm));
    rank = spcomm_rank(comm);
    size = spcomm_size(comm);
    snprintf(path, sizeof path, "%s-%d", words[1], rank);
    FILE *steps = fopen(path, "r");
    CHECK(steps != NULL && size <= NODES_MAX);
    while (fscanf(steps, "%15s", kind) == 1) {
        step(kind, steps);
    }
    fclose(steps);
    for (int source = 0; source < size; source++) {
        CHECK(counts[source] == 0);
    }
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
    CHECK_OK(spcomm_poll(comm, &left));
    CHECK(left == 0);
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
    printf("%d has played\n", rank);
    return 0;
}
