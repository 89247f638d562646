/* SPDX-License-Identifier: MIT */
/* The C half of a run whose nodes do all collectives; collectives.py is the other half, and has the words. */
#include "../../csrc/api_check.h"

static spcomm_t *comm;
static int rank, size, number, stride = 1;

/* ---- what a node prints: the CRC-32 of what it got */

static uint32_t crc(const void *data, size_t bytes) {
    const unsigned char *at = data;
    uint32_t sum = 0xffffffff;
    for (size_t i = 0; i < bytes; i++) {
        sum ^= at[i];
        for (int bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ ((sum & 1) != 0 ? 0xedb88320 : 0);
        }
    }
    return ~sum;
}

static void tell(const char *what, const void *data, size_t bytes) {
    printf("%d %s %d %08x\n", number, what, rank, (unsigned)crc(data, bytes));
}

/* ---- values: as `values` in collectives.py */

static uint32_t hash(uint32_t i) {
    uint32_t mixed = (i + 1) * 2654435761u + (uint32_t)rank * 40503u + (uint32_t)number * 97u;
    mixed ^= mixed >> 15;
    mixed *= 2246822519u;
    return mixed ^ mixed >> 13;
}

static double real(uint32_t mixed) {
    const uint64_t nan = UINT64_C(0x7ff8000000000000);
    double value = (int32_t)mixed / 7.0;
    if (mixed % 50 == 0) {
        memcpy(&value, &nan, 8);
    }
    return mixed % 50 == 1 ? -0.0 : value;
}

/* 'i', 'u', 'f' or 'b' at `to`; of integers the low bytes, this machine's order. */
static void put(void *to, char kind, uint32_t bytes, uint32_t mixed) {
    const float narrow = (float)real(mixed);
    const double wide = real(mixed);
    const int64_t all = (int32_t)mixed;
    if (kind == 'f') {
        memcpy(to, bytes == 4 ? (const void *)&narrow : (const void *)&wide, bytes);
    } else if (kind == 'b') {
        *(unsigned char *)to = mixed % 2;
    } else {
        memcpy(to, &all, bytes);
    }
}

static void put_item(unsigned char *to, char kind, uint32_t bytes, int32_t element, uint32_t i) {
    static const char kinds[] = "iiiiuuuuff";
    static const uint32_t widths[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
    const uint32_t mixed = hash(i);
    if (element == SPCOMM_ELEMENT_SIMTIME) {
        spcomm_simtime_t time = {mixed % 5 * 0.5, {(int32_t)(mixed >> 8) % 3, 0, -rank, 1}};
        memcpy(to, &time, sizeof(time));
    } else if (element != SPCOMM_ELEMENT_PLAIN) {
        const int which = element - SPCOMM_ELEMENT_PAIR_INT8;
        spcomm_pair_t pair = {{0}, (int64_t)i * 3 - rank};
        put(&pair.value, kinds[which], widths[which], mixed % 50 < 2 ? mixed : mixed % 7);
        memcpy(to, &pair, sizeof(pair));
    } else if (kind == 'c') {
        const float narrow[2] = {(int16_t)mixed / 8.0f, (int16_t)(mixed >> 16) / 8.0f};
        const double wide[2] = {(int16_t)mixed / 8.0, (int16_t)(mixed >> 16) / 8.0};
        memcpy(to, bytes == 8 ? (const void *)narrow : (const void *)wide, bytes);
    } else {
        put(to, kind, bytes, mixed);
    }
}

/* ---- reductions of arrays */

static void reduce_array(char kind, uint32_t bytes, int32_t element, int32_t op) {
    const int64_t rows = (const int64_t[]){3, 96, 3000}[number % 3];
    const int64_t shape[2] = {rows, 3};
    const int dimensions = 1 + number / 3 % 2;
    const size_t count = (size_t)(dimensions == 1 ? rows : rows * 3), length = count * bytes;
    unsigned char *input = malloc(length), *result = malloc(length);
    int64_t counts[64] = {0};
    for (size_t i = 0; i < count; i++) {
        put_item(input + i * bytes, kind, bytes, element, (uint32_t)i);
    }
    spcomm_data_t values = spcomm_array(input, kind, bytes, dimensions, shape);
    values.element = element;
    CHECK_OK(spcomm_allreduce(comm, values, op, SPCOMM_FOREVER, result));
    tell("allreduce", result, length);
    CHECK_OK(spcomm_reduce(comm, values, op, size - 1, SPCOMM_FOREVER, rank == size - 1 ? result : NULL));
    tell("reduce", result, rank == size - 1 ? length : 0);
    CHECK_OK(spcomm_scan(comm, values, op, SPCOMM_FOREVER, result));
    tell("scan", result, length);
    CHECK_OK(spcomm_exscan(comm, values, op, SPCOMM_FOREVER, result));
    tell("exscan", result, rank > 0 ? length : 0);
    counts[size - 1] = rows - 1;
    counts[0] += 1;
    const size_t row = length / (size_t)rows;
    CHECK_OK(spcomm_reduce_scatter(comm, values, op, counts, SPCOMM_FOREVER, result));
    tell("reduce_scatter", result, (size_t)counts[rank] * row);
    CHECK_OK(spcomm_reduce_scatter(comm, values, op, NULL, SPCOMM_FOREVER, result));
    tell("divided", result, (size_t)(rows / size + (rank < rows % size)) * row);
    CHECK_OK(spcomm_allreduce(comm, values, op, SPCOMM_FOREVER, input)); /* in place */
    tell("again", input, length);
    free(input);
    free(result);
}

static void reduce_all(char kind, uint32_t bytes, int32_t element, int32_t op) {
    if (number % stride == 0) {
        reduce_array(kind, bytes, element, op);
    }
    number++;
}

static void reduce_types(void) {
    static const uint32_t widths[] = {1, 2, 4, 8};
    for (int i = 0; i < 4; i++) {
        for (int32_t op = SPCOMM_SUM; op <= SPCOMM_BXOR; op++) {
            reduce_all('i', widths[i], 0, op);
            reduce_all('u', widths[i], 0, op);
        }
    }
    for (int32_t op = SPCOMM_SUM; op <= SPCOMM_LXOR; op++) {
        reduce_all('f', 4, 0, op);
        reduce_all('f', 8, 0, op);
    }
    for (int32_t op = SPCOMM_MIN; op <= SPCOMM_BXOR; op++) {
        if (op != SPCOMM_PROD) {
            reduce_all('b', 1, 0, op);
        }
    }
    for (uint32_t bytes = 8; bytes <= 16; bytes += 8) {
        reduce_all('c', bytes, 0, SPCOMM_SUM);
        reduce_all('c', bytes, 0, SPCOMM_PROD);
    }
    for (int32_t op = SPCOMM_SUM; op <= SPCOMM_MAX; op++) {
        reduce_all('V', sizeof(spcomm_simtime_t), SPCOMM_ELEMENT_SIMTIME, op);
    }
    for (int32_t element = SPCOMM_ELEMENT_PAIR_INT8; element <= SPCOMM_ELEMENT_PAIR_FLOAT64; element++) {
        reduce_all('V', sizeof(spcomm_pair_t), element, SPCOMM_MINLOC);
        reduce_all('V', sizeof(spcomm_pair_t), element, SPCOMM_MAXLOC);
    }
}

static void reduce_numbers(void) {
    for (int32_t op = SPCOMM_SUM; op <= SPCOMM_MAX; op++) {
        int64_t whole;
        double wide;
        spcomm_simtime_t time = {rank / 2 * 0.5, {-rank, 2, 3, 4}};
        CHECK_OK(spcomm_allreduce(comm, spcomm_int64(rank - 7), op, SPCOMM_FOREVER, &whole));
        tell("int", &whole, 8);
        CHECK_OK(spcomm_reduce(comm, spcomm_float64(rank / 7.0), op, 0, SPCOMM_FOREVER, &wide));
        tell("float", &wide, rank == 0 ? 8 : 0);
        CHECK_OK(spcomm_allreduce(comm, spcomm_simtime(time), op, SPCOMM_FOREVER, &time));
        tell("time", &time, sizeof(time));
        number++;
    }
}

/* ---- moving data */

static char text[70001];
static float matrix[15000];

/* The data that this node gives to node `to`: of another format and length for each. */
static spcomm_data_t gift(int to) {
    static int64_t shape[2] = {0, 5};
    const int which = (rank * 3 + to + number) % 7;
    const spcomm_simtime_t time = {0.25, {rank, to, -1, 9}};
    switch (which) {
    case 0:
        return spcomm_int64((int64_t)rank << 40 | to);
    case 1:
        return spcomm_float64(rank / 7.0);
    case 2:
        return spcomm_string(text + sizeof(text) - 1 - (number % 2 == 0 ? 5 : 70000));
    case 3:
        return spcomm_raw(text, number % 2 == 0 ? 41 : 5000);
    case 4:
        return spcomm_simtime(time);
    case 5:
        shape[0] = number % 2 == 0 ? 3 : 3000;
        return spcomm_array(matrix, 'f', 4, 2, shape);
    default:
        return spcomm_none();
    }
}

static void tell_message(const char *what, spcomm_message_t *message, int source) {
    CHECK(message->source == source && message->tag == 0);
    tell(what, message->data, message->bytes);
    memset(message->data, 1, message->bytes); /* it is the program's */
    spcomm_message_free(message);
}

static void move_data(void) {
    spcomm_message_t *messages = calloc((size_t)size, sizeof(*messages));
    spcomm_data_t *gifts = calloc((size_t)size, sizeof(*gifts));
    const int root = number % size;
    for (int node = 0; node < size; node++) {
        gifts[node] = gift(node);
    }
    CHECK_OK(spcomm_bcast(comm, gift(0), root, SPCOMM_FOREVER, messages));
    tell_message("bcast", messages, root);
    CHECK_OK(spcomm_scatter(comm, gifts, root, SPCOMM_FOREVER, messages));
    tell_message("scatter", messages, root);
    CHECK_OK(spcomm_gather(comm, gift(0), root, SPCOMM_FOREVER, rank == root ? messages : NULL));
    for (int node = 0; node < size && rank == root; node++) {
        tell_message("gather", &messages[node], node);
    }
    CHECK_OK(spcomm_allgather(comm, gift(0), SPCOMM_FOREVER, messages));
    for (int node = 0; node < size; node++) {
        tell_message("allgather", &messages[node], node);
    }
    CHECK_OK(spcomm_alltoall(comm, gifts, SPCOMM_FOREVER, messages));
    for (int node = 0; node < size; node++) {
        tell_message("alltoall", &messages[node], node);
    }
    CHECK_OK(spcomm_sendrecv(comm, (rank + 1) % size, 3, gift(0), (rank + size - 1) % size, 3, SPCOMM_FOREVER,
                             messages));
    messages->tag = 0;
    tell_message("sendrecv", messages, (rank + size - 1) % size);
    free(messages);
    free(gifts);
    number++;
}

/* ---- handlers: each node counts what it is told, and answers */

static int64_t told;

static int count(spcomm_t *where, spcomm_message_t *message, void *argument) {
    CHECK(where == comm && argument == &told && message->format == SPCOMM_FORMAT_INT64);
    told += *(int64_t *)message->data;
    CHECK_OK(spcomm_send(comm, message->source, 12, spcomm_int64(rank), SPCOMM_FOREVER));
    spcomm_message_free(message);
    return 0;
}

static void handle(void) {
    spcomm_message_t message;
    int64_t answers = 0;
    CHECK_OK(spcomm_handler(comm, 11, count, &told));
    CHECK_OK(spcomm_send_all(comm, 11, spcomm_int64(rank + 1), SPCOMM_FOREVER));
    for (int node = 0; node < size; node++) {
        CHECK_OK(spcomm_recv(comm, node, 12, SPCOMM_FOREVER, &message));
        answers += *(int64_t *)message.data;
        spcomm_message_free(&message);
    }
    while (told < size * (size + 1) / 2) {
        CHECK_OK(spcomm_poll(comm, NULL));
    }
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
    tell("told", &told, 8);
    tell("answers", &answers, 8);
}

static void place(void) {
    for (int node = 0; node < size; node++) {
        spcomm_layout_t layout;
        CHECK_OK(spcomm_layout(comm, node, &layout));
        CHECK(node != rank || spcomm_box(comm) == layout.box);
        tell("layout", &layout, sizeof(layout));
    }
}

/* With an argument n: every n-th reduction of arrays. */
int main(int argc, char **argv) {
    alarm(300);
    stride = argc > 1 ? atoi(argv[1]) : 1;
    CHECK_OK(spcomm_startup(0, 0, 0, NULL, &comm));
    rank = spcomm_rank(comm);
    size = spcomm_size(comm);
    for (int i = 0; i < 70000; i++) {
        text[i] = (char)('a' + i % 23);
    }
    for (int i = 0; i < 15000; i++) {
        matrix[i] = (float)(i + rank) / 7;
    }
    reduce_types();
    reduce_numbers();
    for (int i = 0; i < 14; i++) {
        move_data();
    }
    handle();
    place();
    return 0;
}
