/* SPDX-License-Identifier: MIT */
/* Messages between two nodes. */
#include "course.h"

void course_hello(int rank, int size) {
    char text[64];
    snprintf(text, sizeof(text), "Hello from %d of %d", rank, size);
    if (rank > 0) {
        MPI_Send(text, (int)strlen(text) + 1, MPI_CHAR, 0, 0, WORLD);
        return;
    }
    printf("%s\n", text);
    for (int source = 1; source < size; source++) {
        MPI_Recv(text, sizeof(text), MPI_CHAR, source, 0, WORLD, IGNORE);
        printf("%s\n", text);
    }
}

void course_ring(int rank, int size) {
    int value = rank, total = 0, right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int step = 0; step < size; step++) {
        int incoming;
        total += value;
        MPI_Sendrecv(&value, 1, MPI_INT, right, 1, &incoming, 1, MPI_INT, left, 1, WORLD, IGNORE);
        value = incoming;
    }
    MPI_Sendrecv_replace(&value, 1, MPI_INT, right, 2, left, 2, WORLD, IGNORE);
    say_all("%d %d", total, value);
}

/* All send first, which works as long as MPI buffers. */
void course_careless_ring(int rank, int size) {
    int value = rank * rank, incoming;
    MPI_Send(&value, 1, MPI_INT, (rank + 1) % size, 3, WORLD);
    MPI_Recv(&incoming, 1, MPI_INT, (rank + size - 1) % size, 3, WORLD, IGNORE);
    say_all("%d", incoming);
}

void course_ping_pong(int rank, int size) {
    static double data[20000];
    const int partner = rank ^ 1;
    double sum = 0;
    for (int length = 1; partner < size && length <= 10000; length *= 100) {
        if (rank % 2 == 0) {
            for (int i = 0; i < length; i++) {
                data[i] = i;
            }
            MPI_Send(data, length, MPI_DOUBLE, partner, length, WORLD);
            MPI_Recv(data, 20000, MPI_DOUBLE, partner, length, WORLD, IGNORE);
        } else {
            MPI_Recv(data, 20000, MPI_DOUBLE, partner, MPI_ANY_TAG, WORLD, IGNORE);
            data[length - 1] += 1;
            MPI_Send(data, length, MPI_DOUBLE, partner, length, WORLD);
        }
        sum += data[length - 1];
    }
    say_all("%.1f", sum);
}

void course_exchange(int rank, int size) {
    int out[16], in[16];
    MPI_Request requests[32];
    MPI_Status statuses[32];
    for (int peer = 0; peer < size; peer++) {
        out[peer] = rank * 10 + peer;
        MPI_Irecv(&in[peer], 1, MPI_INT, peer, 4, WORLD, &requests[peer]);
    }
    for (int peer = 0; peer < size; peer++) {
        MPI_Isend(&out[peer], 1, MPI_INT, peer, 4, WORLD, &requests[size + peer]);
    }
    MPI_Waitall(2 * size, requests, statuses);
    int are_right = 1;
    for (int peer = 0; peer < size; peer++) {
        are_right &= statuses[peer].MPI_SOURCE == peer && statuses[peer].MPI_TAG == 4;
    }
    say_all("%s %d", ints(in, size), are_right);
}

void course_any_source(int rank, int size) {
    int squares[16] = {0};
    if (rank > 0) {
        int square = rank * rank;
        MPI_Send(&square, 1, MPI_INT, 0, rank, WORLD);
        return;
    }
    for (int i = 1; i < size; i++) {
        int value;
        MPI_Status status;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status);
        squares[status.MPI_SOURCE] = value + 1000 * status.MPI_TAG;
    }
    printf("%s\n", ints(squares, size));
}

void course_probe_unknown(int rank, int size) {
    if (rank > 0) {
        double data[48];
        for (int i = 0; i < 3 * rank; i++) {
            data[i] = i;
        }
        MPI_Send(data, 3 * rank, MPI_DOUBLE, 0, 5, WORLD);
        return;
    }
    for (int source = 1; source < size; source++) {
        MPI_Status status;
        int count;
        MPI_Probe(source, MPI_ANY_TAG, WORLD, &status);
        MPI_Get_count(&status, MPI_DOUBLE, &count);
        double *data = malloc((size_t)count * sizeof(double)), sum = 0;
        MPI_Recv(data, count, MPI_DOUBLE, status.MPI_SOURCE, status.MPI_TAG, WORLD, IGNORE);
        for (int i = 0; i < count; i++) {
            sum += data[i];
        }
        printf("%d %d %.0f\n", source, count, sum);
        free(data);
    }
}

void course_matched_probe(int rank, int size) {
    if (rank > 0) {
        MPI_Send(&rank, 1, MPI_INT, 0, 6, WORLD);
        return;
    }
    int total = 0;
    for (int i = 1; i < size; i++) {
        MPI_Message message;
        int value, flag = 0;
        while (!flag) {
            MPI_Improbe(MPI_ANY_SOURCE, 6, WORLD, &flag, &message, IGNORE);
        }
        MPI_Mrecv(&value, 1, MPI_INT, &message, IGNORE);
        total += value;
    }
    printf("%d\n", total);
}

static int divisors(int number) {
    int count = 0;
    for (int i = 1; i <= number; i++) {
        count += number % i == 0;
    }
    return count;
}

void course_task_farm(int rank, int size) {
    enum { TASKS = 30, STOP = 99 };
    if (rank > 0) {
        int pair[2] = {-1, 0};
        for (;;) {
            int task;
            MPI_Status status;
            MPI_Send(pair, 2, MPI_INT, 0, 0, WORLD);
            MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, WORLD, &status);
            if (status.MPI_TAG == STOP) {
                return;
            }
            pair[0] = task;
            pair[1] = divisors(task + 1);
        }
    }
    int results[TASKS] = {0}, next = 0;
    for (int running = size - 1; running > 0;) {
        int pair[2];
        MPI_Status status;
        MPI_Recv(pair, 2, MPI_INT, MPI_ANY_SOURCE, 0, WORLD, &status);
        if (pair[0] >= 0) {
            results[pair[0]] = pair[1];
        }
        running -= next == TASKS;
        MPI_Send(&next, 1, MPI_INT, status.MPI_SOURCE, next < TASKS ? 1 : STOP, WORLD);
        next += next < TASKS;
    }
    printf("%s\n", ints(results, TASKS));
}

void course_persistent(int rank, int size) {
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    double mine = rank, from_left, from_right;
    MPI_Request requests[4];
    MPI_Recv_init(&from_left, 1, MPI_DOUBLE, left, 1, WORLD, &requests[0]);
    MPI_Recv_init(&from_right, 1, MPI_DOUBLE, right, 2, WORLD, &requests[1]);
    MPI_Send_init(&mine, 1, MPI_DOUBLE, right, 1, WORLD, &requests[2]);
    MPI_Ssend_init(&mine, 1, MPI_DOUBLE, left, 2, WORLD, &requests[3]);
    for (int step = 0; step < 4; step++) {
        MPI_Startall(4, requests);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        mine = (mine + from_left + from_right) / 2;
    }
    for (int i = 0; i < 4; i++) {
        MPI_Request_free(&requests[i]);
    }
    say_all("%.4f %d", mine, requests[0] == MPI_REQUEST_NULL);
}

void course_wait_any(int rank, int size) {
    int values[16] = {0}, seen = 0;
    MPI_Request requests[16];
    if (rank > 0) {
        MPI_Send(&rank, 1, MPI_INT, 0, 7, WORLD);
        return;
    }
    for (int peer = 1; peer < size; peer++) {
        MPI_Irecv(&values[peer], 1, MPI_INT, peer, 7, WORLD, &requests[peer - 1]);
    }
    for (;;) {
        int index;
        MPI_Status status;
        MPI_Waitany(size - 1, requests, &index, &status);
        if (index == MPI_UNDEFINED) {
            break;
        }
        seen += status.MPI_SOURCE == index + 1 && values[index + 1] == index + 1;
    }
    printf("%d\n", seen);
}

void course_wait_some(int rank, int size) {
    int values[32] = {0}, done = 0, indices[32], count;
    MPI_Request requests[32];
    if (rank > 0) {
        MPI_Send(&rank, 1, MPI_INT, 0, 8, WORLD);
        MPI_Send(&rank, 1, MPI_INT, 0, 9, WORLD);
        return;
    }
    for (int i = 0; i < 2 * (size - 1); i++) {
        MPI_Irecv(&values[i], 1, MPI_INT, i / 2 + 1, 8 + i % 2, WORLD, &requests[i]);
    }
    do {
        MPI_Waitsome(2 * (size - 1), requests, &count, indices, MPI_STATUSES_IGNORE);
        done += count != MPI_UNDEFINED ? count : 0;
    } while (count != MPI_UNDEFINED);
    printf("%d: %s\n", done, ints(values, 2 * (size - 1)));
}

void course_buffered(int rank, int size) {
    int data[100], room = 100 * (int)sizeof(int) + MPI_BSEND_OVERHEAD, detached;
    void *memory = malloc((size_t)room), *back;
    for (int i = 0; i < 100; i++) {
        data[i] = rank;
    }
    MPI_Buffer_attach(memory, room);
    MPI_Bsend(data, 100, MPI_INT, (rank + 1) % size, 10, WORLD);
    MPI_Recv(data, 100, MPI_INT, (rank + size - 1) % size, 10, WORLD, IGNORE);
    MPI_Buffer_detach(&back, &detached);
    say_all("%d %d %d", data[99], back == memory, detached == room);
    free(memory);
}

void course_synchronous(int rank, int size) {
    int value = rank + 100, incoming = -1, flag = 0;
    MPI_Request request;
    MPI_Issend(&value, 1, MPI_INT, size - 1 - rank, 11, WORLD, &request);
    MPI_Recv(&incoming, 1, MPI_INT, size - 1 - rank, 11, WORLD, IGNORE);
    while (!flag) {
        MPI_Test(&request, &flag, IGNORE);
    }
    say_all("%d", incoming);
}

void course_cancel(int rank, int size) {
    int value, flag;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&value, 1, MPI_INT, (rank + 1) % size, 12, WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    say_all("%d", flag);
}

void course_return_codes(int rank, int size) {
    MPI_Comm comm;
    int classes[4], value = 0;
    MPI_Comm_dup(WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int codes[4] = {MPI_Send(&value, 1, MPI_INT, size, 0, comm), MPI_Send(&value, -1, MPI_INT, 0, 0, comm),
                    MPI_Send(&value, 1, MPI_INT, 0, -9, comm), MPI_Bcast(&value, 1, MPI_INT, size, comm)};
    for (int i = 0; i < 4; i++) {
        MPI_Error_class(codes[i], &classes[i]);
    }
    say_all("%d %d %d %d", classes[0] == MPI_ERR_RANK, classes[1] == MPI_ERR_COUNT, classes[2] == MPI_ERR_TAG,
            classes[3] == MPI_ERR_ROOT);
    (void)rank;
    MPI_Comm_free(&comm);
}
