/* SPDX-License-Identifier: MIT */
/* The server in a thread, gateways in others, over socketpairs: all routes, renewed connections, ends and failures. */
#include "net/server/spc_server.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/spc_error.h"
#include "base/spc_platform.h"
#include "check.h"
#include "little_endian.h"
#include "net/server/spc_server_poller.h"

#define MS UINT64_C(1000000)

enum { JOB = 9, BOXES_MAX = 8, MASK = 8 };

/* ---- the server's thread, and what it reports */

typedef struct host {
    spc_server_t *server;
    spc_link_limits_t limits; /* of gateways */
    pthread_t thread;
    _Atomic int ended, failed; /* jobs; written by the reports, read by tests (seq_cst) */
    char sentence[SPC_SERVER_SENTENCE_BYTES];
} host_t;

static void report(void *argument, uint32_t job, const char *sentence) {
    host_t *host = argument;
    if (sentence != NULL) {
        snprintf(host->sentence, sizeof host->sentence, "%s", sentence);
        atomic_fetch_add(&host->failed, 1); /* pairs with the load in tests: they then read the sentence */
    } else {
        spc_link_counts_t counts;
        CHECK_OK(spc_server_count(host->server, job, 0, &counts)); /* it may call the server */
        atomic_fetch_add(&host->ended, 1);
    }
}

static void *run(void *argument) {
    host_t *host = argument;
    CHECK_OK(spc_server_run(host->server));
    return NULL;
}

static uint32_t disabled; /* features */

static void make_host(host_t *host, spc_server_options_t options) {
    memset(host, 0, sizeof *host);
    options.disabled = disabled;
    options.report = report;
    options.argument = host;
    options.policy = SPC_WAIT_SHARED_CORES;
    CHECK_OK(spc_server_create(&options, &host->server));
}

static void join(host_t *host) {
    CHECK_EQ(pthread_join(host->thread, NULL), 0);
}

/* ---- a gateway: a link of a test's thread */

typedef struct gateway {
    host_t *host;
    uint32_t job;
    uint16_t box;
    spc_link_t *link;
    uint64_t got[16]; /* frames by kind */
    uint64_t from[BOXES_MAX]; /* messages by box */
    uint64_t phase; /* the last one that was complete */
    char failure[SPC_SERVER_SENTENCE_BYTES];
} gateway_t;

/* A message to several boxes says for each which one it is, in the order of sending. */
static int receive(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    gateway_t *gateway = argument;
    gateway->got[frame->kind]++;
    if (frame->kind == SPC_FRAME_MESSAGE) {
        CHECK_EQ_U(get_u64(body + 8 + (size_t)8 * gateway->box), ++gateway->from[frame->source]);
    } else if (frame->kind == SPC_FRAME_ARRIVE) {
        CHECK_EQ(frame->flags, SPC_FRAME_LAST);
        CHECK_EQ_U(frame->offset, ++gateway->phase);
    } else if (frame->kind == SPC_FRAME_FAIL) {
        snprintf(gateway->failure, sizeof gateway->failure, "%.*s", (int)frame->length_bytes,
                 (const char *)body);
    }
    return SPC_OK;
}

static void make_channel(spc_channel_t *ends[2]) {
    int descriptors[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, descriptors));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(spc_channel_tcp_create(descriptors[i], &ends[i]));
    }
}

static void connect_gateway(gateway_t *gateway) {
    spc_channel_t *ends[2];
    make_channel(ends);
    CHECK_OK(spc_server_adopt(gateway->host->server, gateway->job, gateway->box, ends[1]));
    CHECK_OK(spc_link_attach(gateway->link, ends[0]));
}

static void make_gateway(gateway_t *gateway, host_t *host, uint32_t job, uint16_t box) {
    memset(gateway, 0, sizeof *gateway);
    gateway->host = host;
    gateway->job = job;
    gateway->box = box;
    const spc_link_options_t options = {
        .job = job,
        .deliver = receive,
        .argument = gateway,
        .limits = host->limits,
    };
    CHECK_OK(spc_link_create(&options, &gateway->link));
    connect_gateway(gateway);
}

/* Waits for the socket, at most until the link wants something, and moves bytes; a broken connection is renewed. */
static void move(gateway_t *gateway) {
    if (spc_link_state(gateway->link) == SPC_LINK_DOWN) {
        connect_gateway(gateway);
    }
    struct pollfd poll_for = {.fd = spc_link_descriptor(gateway->link), .events = POLLIN};
    if (spc_link_wants_write(gateway->link)) {
        poll_for.events |= POLLOUT;
    }
    CHECK(poll(&poll_for, 1, 20) >= 0);
    spc_link_write(gateway->link);
    CHECK_OK(spc_link_read(gateway->link));
    spc_link_tick(gateway->link, spc_clock_now_ns());
}

static void leave(gateway_t *gateway) {
    CHECK_OK(spc_link_finish(gateway->link));
    while (!spc_link_is_flushed(gateway->link)) {
        move(gateway);
    }
    spc_link_destroy(gateway->link);
}

/* To the boxes of this mask; the rank is the box. */
static void send_message(gateway_t *gateway, uint64_t mask, uint64_t *sent) {
    unsigned char body[8 + 8 * BOXES_MAX] = {0};
    uint16_t count = 0;
    for (unsigned box = 0; box < BOXES_MAX; box++) {
        if (mask >> box & 1) {
            body[2 * count++] = (unsigned char)box;
            put_u64(body + 8 + (size_t)8 * box, ++sent[box]);
        }
    }
    CHECK(count <= 4);
    const spc_frame_t frame = {.kind = SPC_FRAME_MESSAGE, .source = gateway->box, .count = count};
    const spc_frame_piece_t piece = {body, sizeof body};
    int status;
    while ((status = spc_link_send(gateway->link, &frame, &piece, 1)) == SPC_EAGAIN) {
        move(gateway);
    }
    CHECK_OK(status);
}

static void send_arrival(gateway_t *gateway, uint64_t phase, uint64_t mask) {
    unsigned char body[MASK + 8];
    put_u64(body, mask);
    put_u64(body + MASK, phase);
    const spc_frame_t frame = {
        .kind = SPC_FRAME_ARRIVE, .flags = SPC_FRAME_LAST, .source = gateway->box, .offset = phase};
    const spc_frame_piece_t piece = {body, sizeof body};
    CHECK_OK(spc_link_send(gateway->link, &frame, &piece, 1));
}

static const uint16_t one_rank_each[BOXES_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};

/* A host with one job of so many boxes, the first `count` of which have these gateways. */
static void start_job(host_t *host, spc_server_options_t options, uint16_t boxes, gateway_t *gateways,
                      uint16_t count) {
    make_host(host, options);
    CHECK_OK(spc_server_add_job(host->server, JOB, boxes, one_rank_each, boxes));
    CHECK_EQ(pthread_create(&host->thread, NULL, run, host), 0);
    for (uint16_t box = 0; box < count; box++) {
        make_gateway(&gateways[box], host, JOB, box);
    }
}

/* ---- cases */

TEST(jobs_and_what_is_refused) {
    host_t host;
    make_host(&host, (spc_server_options_t){0});
    const uint16_t map[2] = {0, 2};
    CHECK_EQ(spc_server_add_job(host.server, JOB, 2, map, 2), SPC_EINVAL);
    CHECK_EQ(spc_server_add_job(host.server, JOB, 65, map, 0), SPC_EINVAL);
    CHECK_OK(spc_server_add_job(host.server, JOB, 3, map, 2));
    CHECK_EQ(spc_server_add_job(host.server, JOB, 3, map, 2), SPC_EBUSY);
    spc_channel_t *channels[2];
    spc_link_counts_t counts;
    make_channel(channels);
    CHECK_EQ(spc_server_adopt(host.server, JOB + 1, 0, channels[0]), SPC_EINVAL);
    CHECK_EQ(spc_server_adopt(host.server, JOB, 3, channels[1]), SPC_EINVAL);
    CHECK_EQ(spc_server_count(host.server, JOB, 3, &counts), SPC_EINVAL);
    CHECK_OK(spc_server_count(host.server, JOB, 2, &counts));
    CHECK_EQ(spc_server_link_state(host.server, JOB, 2), SPC_LINK_DOWN);
    CHECK_EQ(spc_server_remove_job(host.server, JOB), SPC_EBUSY);
    CHECK_EQ(spc_server_fail_job(host.server, JOB + 1, "?"), SPC_EINVAL);
    CHECK_OK(spc_server_fail_job(host.server, JOB, "nobody came")); /* nobody is left: it has ended */
    CHECK_OK(spc_server_run(host.server));
    CHECK_EQ(host.failed, 1);
    CHECK_EQ(host.ended, 1);
    CHECK_STR(host.sentence, "nobody came");
    CHECK_OK(spc_server_remove_job(host.server, JOB));
    spc_server_destroy(host.server);
}

/* The frames of one box in the next case. */
typedef struct work {
    host_t *host;
    uint64_t seed;
    long rounds;
    bool breaks;
} work_t;

static void talk(int rank, int size, void *argument) {
    const work_t *work = argument;
    gateway_t gateway;
    uint64_t state = work->seed + (uint64_t)rank * 7919, sent[BOXES_MAX] = {0},
             all = (UINT64_C(1) << size) - 1;
    make_gateway(&gateway, work->host, JOB, (uint16_t)rank);
    for (long round = 1; round <= work->rounds; round++) {
        /* One to each, one to all: everybody knows how many will come. */
        for (int box = 0; box < size; box++) {
            send_message(&gateway, UINT64_C(1) << box, sent);
        }
        send_message(&gateway, all, sent);
        send_arrival(&gateway, (uint64_t)round, all);
        while (gateway.phase < (uint64_t)round) {
            move(&gateway);
        }
        if (work->breaks && check_below(&state, 4) == 0) {
            spc_link_detach(gateway.link); /* what is on its way is lost */
        }
    }
    for (int box = 0; box < size; box++) {
        while (gateway.from[box] < 2 * (uint64_t)work->rounds) {
            move(&gateway);
        }
    }
    leave(&gateway);
}

static void talk_to_each_other(int boxes, long rounds, bool breaks) {
    host_t host;
    /* No heartbeat, no late acknowledgement: what is not written because of a frame is never written. */
    const uint64_t hour_ns = 3600000 * MS;
    const spc_link_limits_t limits = {hour_ns, hour_ns, hour_ns, hour_ns, hour_ns};
    start_job(&host, (spc_server_options_t){.limits = limits}, (uint16_t)boxes, NULL, 0);
    host.limits = limits;
    work_t work = {&host, check_seed(), rounds, breaks};
    check_threads(boxes, talk, &work);
    join(&host);
    CHECK_EQ(atomic_load(&host.failed), 0);
    CHECK_EQ(atomic_load(&host.ended), 1);
    for (uint16_t box = 0; box < boxes; box++) {
        spc_link_counts_t counts;
        CHECK_OK(spc_server_count(host.server, JOB, box, &counts));
        /* No more than an operation needs: the multicast goes up once, the phase up once and down once. */
        CHECK_EQ_U(counts.received[SPC_FRAME_MESSAGE].frames, (boxes + 1) * rounds);
        CHECK_EQ_U(counts.sent[SPC_FRAME_MESSAGE].frames, 2 * boxes * rounds);
        CHECK_EQ_U(counts.received[SPC_FRAME_ARRIVE].frames, rounds);
        CHECK_EQ_U(counts.sent[SPC_FRAME_ARRIVE].frames, rounds);
        CHECK_EQ(counts.attached > 1, breaks);
    }
    spc_server_destroy(host.server);
}

TEST(boxes_talk) {
    talk_to_each_other(3, check_scale(400), false);
    talk_to_each_other(4, check_scale(200) + 50, true); /* connections are renewed */
}

TEST(several_jobs_and_a_server_that_stays) {
    host_t host;
    gateway_t gateways[2];
    make_host(&host, (spc_server_options_t){.keep_running = true});
    CHECK_EQ(pthread_create(&host.thread, NULL, run, &host), 0);
    for (uint32_t job = 1; job <= 5; job++) {
        uint64_t sent[BOXES_MAX] = {0};
        CHECK_OK(spc_server_add_job(host.server, job, 2, one_rank_each, 2));
        make_gateway(&gateways[0], &host, job, 0);
        make_gateway(&gateways[1], &host, job, 1);
        send_message(&gateways[0], 2, sent);
        while (gateways[1].from[0] == 0) {
            move(&gateways[0]); /* it has to be greeted first */
            move(&gateways[1]);
        }
        leave(&gateways[0]);
        leave(&gateways[1]);
        while (atomic_load(&host.ended) < (int)job) {
            sched_yield();
        }
        CHECK_OK(spc_server_remove_job(host.server, job));
        CHECK_EQ(spc_server_link_state(host.server, job, 0), SPC_LINK_DEAD);
    }
    spc_server_stop(host.server);
    join(&host);
    spc_server_destroy(host.server);
}

/* The others are told once, and the job ends when they have left. */
TEST(a_box_that_talks_nonsense) {
    host_t host;
    gateway_t gateways[3];
    start_job(&host, (spc_server_options_t){0}, 3, gateways, 3);
    const spc_frame_t frame = {.kind = SPC_FRAME_CREDIT, .destination = 17};
    CHECK_OK(spc_link_send(gateways[1].link, &frame, NULL, 0));
    while (gateways[0].got[SPC_FRAME_FAIL] == 0 || gateways[2].got[SPC_FRAME_FAIL] == 0) {
        move(&gateways[0]);
        move(&gateways[2]);
        if (spc_link_state(gateways[1].link) != SPC_LINK_DOWN) {
            move(&gateways[1]);
        }
    }
    CHECK_STR(gateways[2].failure, "box 1 has sent a frame that makes no sense to the server");
    spc_channel_t *channels[2];
    make_channel(channels);
    CHECK_EQ(spc_server_adopt(host.server, JOB, 1, channels[0]), SPC_ECLOSED);
    CHECK_OK(spc_server_fail_job(host.server, JOB, "a second reason")); /* the first counts */
    spc_channel_destroy(channels[1]);
    leave(&gateways[0]);
    leave(&gateways[2]);
    join(&host);
    CHECK_EQ(atomic_load(&host.failed), 1);
    CHECK_EQ_U(gateways[0].got[SPC_FRAME_FAIL], 1);
    CHECK_STR(host.sentence, gateways[0].failure);
    spc_link_destroy(gateways[1].link);
    spc_server_destroy(host.server);
}

/* Box 1 reads nothing. What box 0 sends it beyond the bound ends box 0, by name; box 2 has no part in it. */
TEST(a_bound_for_each_link) {
    host_t host;
    gateway_t gateways[3];
    start_job(&host, (spc_server_options_t){.retained_max = 100000}, 3, gateways, 3);
    unsigned char *bytes = calloc(1, 20000);
    const spc_frame_t frame = {.kind = SPC_FRAME_BOARD, .destination = 1};
    const spc_frame_piece_t piece = {bytes, 20000};
    while (atomic_load(&host.failed) == 0 && spc_link_state(gateways[0].link) != SPC_LINK_DOWN) {
        int status = spc_link_send(gateways[0].link, &frame, &piece, 1);
        CHECK(status == SPC_OK || status == SPC_EAGAIN);
        move(&gateways[0]);
    }
    while (gateways[2].got[SPC_FRAME_FAIL] == 0) {
        move(&gateways[2]);
    }
    CHECK_STR(gateways[2].failure,
              "box 0 has sent more than another box takes: the server keeps 100000 bytes for each");
    spc_link_counts_t counts;
    CHECK_OK(spc_server_count(host.server, JOB, 1, &counts));
    CHECK(counts.retained_bytes_worst <= 100000);
    spc_server_stop(host.server);
    join(&host);
    for (int box = 0; box < 3; box++) {
        spc_link_destroy(gateways[box].link);
    }
    free(bytes);
    spc_server_destroy(host.server);
}

/* Box 1 has been there, and falls silent. False: this thread stood still for as long, so that box 0 was lost, too. */
static bool lose_a_box(uint64_t timeout_ns) {
    host_t host;
    gateway_t gateways[2];
    const spc_link_limits_t limits = {.timeout_ns = timeout_ns, .heartbeat_ns = 20 * MS};
    start_job(&host, (spc_server_options_t){.limits = limits}, 3, gateways, 2);
    spc_link_destroy(gateways[1].link); /* box 2 never came: it does not hold up the end */
    bool has_finished = false;
    while (spc_link_state(gateways[0].link) != SPC_LINK_DOWN
           && !(has_finished && spc_link_is_flushed(gateways[0].link))) {
        if (has_finished) {
            /* the last bytes are on their way */
        } else if (gateways[0].got[SPC_FRAME_FAIL] > 0) {
            CHECK_OK(spc_link_finish(gateways[0].link));
            has_finished = true;
        } else {
            const spc_frame_t frame = {.kind = SPC_FRAME_CREDIT, .destination = 1}; /* a sign of life */
            CHECK_OK(spc_link_send(gateways[0].link, &frame, NULL, 0));
        }
        move(&gateways[0]);
    }
    bool is_lost_alone = spc_link_state(gateways[0].link) != SPC_LINK_DOWN;
    if (is_lost_alone) {
        char sentence[SPC_SERVER_SENTENCE_BYTES];
        snprintf(sentence, sizeof sentence, "box 1 is lost: nothing was heard of it for %g seconds",
                 (double)timeout_ns / 1e9);
        CHECK_STR(gateways[0].failure, sentence);
    }
    spc_link_destroy(gateways[0].link);
    join(&host);
    CHECK_EQ(atomic_load(&host.ended), 1);
    spc_server_destroy(host.server);
    return is_lost_alone;
}

/* The limit is short here, and longer again on a machine that stood still. */
TEST(a_box_that_is_lost) {
    uint64_t timeout_ns = 200 * MS;
    while (!lose_a_box(timeout_ns)) {
        timeout_ns *= 4;
        CHECK(timeout_ns <= 60000 * MS);
    }
}

/* Two boxes whose links stall and go on: POLLOUT, partial frames, large bodies. */
TEST(large_frames) {
    enum { FRAMES = 40, BYTES = SPC_FRAME_BODY_MAX };
    host_t host;
    gateway_t gateways[2];
    start_job(&host, (spc_server_options_t){.retained_max = UINT64_C(1) << 28}, 2, gateways, 2);
    unsigned char *bytes = calloc(1, BYTES);
    const spc_frame_t frame = {.kind = SPC_FRAME_BOARD, .destination = 1};
    const spc_frame_piece_t piece = {bytes, BYTES};
    for (int i = 0; i < FRAMES; i++) {
        while (spc_link_send(gateways[0].link, &frame, &piece, 1) != SPC_OK) {
            move(&gateways[0]);
        }
    }
    while (
        !spc_link_is_flushed(gateways[0].link)) { /* the server takes all of it, though box 1 does not read */
        move(&gateways[0]);
    }
    while (gateways[1].got[SPC_FRAME_BOARD] < FRAMES) {
        move(&gateways[1]);
    }
    leave(&gateways[0]);
    leave(&gateways[1]);
    join(&host);
    CHECK_EQ(atomic_load(&host.failed), 0);
    free(bytes);
    spc_server_destroy(host.server);
}

/* epoll reports a closed descriptor while a forked process holds it; here a duplicate does. Its key may be freed. */
TEST(a_forgotten_descriptor_is_not_reported) {
    spc_server_poller_t *poller;
    spc_server_event_t events[4];
    uint32_t count;
    int ends[2], key = 0;
    CHECK_OK(spc_server_poller_create(disabled, &poller));
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_OK(spc_server_poller_add(poller, &key, ends[0]));
    CHECK_EQ(write(ends[1], "x", 1), 1);
    for (int writes = 0; writes <= 1; writes++) {
        CHECK_OK(spc_server_poller_set(poller, &key, ends[0], writes));
        CHECK_OK(spc_server_poller_prepare(poller));
        CHECK_OK(spc_server_poller_wait(poller, 0, events, 4, &count));
        CHECK(count == 1 && events[0].key == &key && events[0].is_readable);
        CHECK_EQ(events[0].is_writable, writes);
    }
    int held = dup(ends[0]);
    spc_server_poller_forget(poller, &key);
    close(ends[0]);
    CHECK_OK(spc_server_poller_prepare(poller));
    CHECK_OK(spc_server_poller_wait(poller, 0, events, 4, &count));
    CHECK_EQ(count, 0);
    spc_server_poller_wake(poller);
    CHECK_OK(spc_server_poller_wait(poller, UINT64_MAX, events, 4, &count));
    CHECK(count == 1 && events[0].key == NULL);
    CHECK_OK(spc_server_poller_wait(poller, 0, events, 4, &count));
    CHECK_EQ(count, 0);
    close(held);
    close(ends[1]);
    spc_server_poller_destroy(poller);
}

int main(void) {
    const uint32_t kinds[] = {0, SPC_FEATURE_epoll};
    for (unsigned kind = 0; kind < 2; kind++) {
        disabled = kinds[kind];
        check_all();
    }
    return check_done();
}
