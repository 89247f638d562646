/* SPDX-License-Identifier: MIT */
/* Links over channels that split, delay, cut, swallow and change bytes, on a clock of the test's own. */
#include "net/link/spc_link.h"

#include "base/spc_error.h"
#include "check.h"
#include "spc_channel_fake.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum { JOB = 77, BODY_WORDS_MAX = 700 };

static uint64_t clock_ns = SECOND; /* a spc_clock_fn has no argument */

static uint64_t now_ns(void) {
    return clock_ns;
}

/* ---- two links and what runs between them */

typedef struct end {
    spc_link_t *link;
    uint64_t sent, got; /* frames */
    int refuse_at;      /* deliver refuses this frame; 0: none */
    struct end *echo;   /* each frame is sent back from inside deliver */
} end_t;

typedef struct pair {
    end_t ends[2];
    uint64_t random;
    spc_channel_fake_options_t faults;
    spc_channel_t *channels[2]; /* the links' own: only for faults while both are attached */
} pair_t;

/* Frame k from one end has a length and words that k alone decides. */
static size_t length_of(uint64_t k) {
    uint64_t state = k;
    return check_below(&state, 8) == 0 ? check_below(&state, BODY_WORDS_MAX) * 8 : check_below(&state, 6) * 8;
}

static void fill(uint64_t k, uint64_t *words) {
    for (size_t i = 0; i < length_of(k) / 8; i++) {
        words[i] = k * 1000003 + i;
    }
}

static int send_next(end_t *end, bool queue) {
    uint64_t words[BODY_WORDS_MAX], k = end->sent + 1;
    fill(k, words);
    size_t length = length_of(k), first = length / 16 * 8;
    const spc_frame_piece_t pieces[2] = {{words, first}, {(char *)words + first, length - first}};
    const spc_frame_t frame = {.kind = SPC_FRAME_STATUS, .offset = k, .tag = -(int32_t)k};
    int status = (queue ? spc_link_queue : spc_link_send)(end->link, &frame, pieces, 2);
    if (status == SPC_OK) {
        end->sent = k;
    }
    return status;
}

static int deliver(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    end_t *end = argument;
    uint64_t words[BODY_WORDS_MAX];
    CHECK_EQ_U(frame->offset, end->got + 1);
    CHECK_EQ(frame->tag, -(int32_t)frame->offset);
    CHECK_EQ_U(frame->job, JOB);
    CHECK_EQ_U(frame->length_bytes, length_of(frame->offset));
    CHECK_EQ_U((uintptr_t)body % 16, 0);
    fill(frame->offset, words);
    CHECK_MEM(body, words, frame->length_bytes);
    if (end->refuse_at != 0 && (uint64_t)end->refuse_at == frame->offset) {
        return SPC_ELOST;
    }
    end->got++;
    if (end->echo != NULL) {
        CHECK_OK(send_next(end->echo, false));
    }
    return SPC_OK;
}

static void make_pair(pair_t *pair, uint64_t seed) {
    *pair = (pair_t){.random = seed, .faults = {.now_ns = now_ns}};
    for (int i = 0; i < 2; i++) {
        const spc_link_options_t options = {
            .job = JOB, .now_ns = now_ns, .deliver = deliver, .argument = &pair->ends[i]};
        CHECK_OK(spc_link_create(&options, &pair->ends[i].link));
    }
}

static void connect_pair(pair_t *pair) {
    pair->faults.seed = check_random(&pair->random);
    CHECK_OK(spc_channel_fake_create(&pair->faults, pair->channels));
    CHECK_OK(spc_link_attach(pair->ends[0].link, pair->channels[0]));
    CHECK_OK(spc_link_attach(pair->ends[1].link, pair->channels[1]));
}

static void free_pair(pair_t *pair) {
    spc_link_destroy(pair->ends[0].link);
    spc_link_destroy(pair->ends[1].link);
}

static spc_link_state_t state_of(const pair_t *pair, int i) {
    return spc_link_state(pair->ends[i].link);
}

static spc_link_counts_t counts_of(const pair_t *pair, int i) {
    spc_link_counts_t counts;
    spc_link_count(pair->ends[i].link, &counts);
    return counts;
}

/* Both ends read and write what is there now. */
static void exchange(pair_t *pair) {
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 2; i++) {
            CHECK_OK(spc_link_read(pair->ends[i].link));
            spc_link_write(pair->ends[i].link);
        }
    }
}

/* Two links that have greeted each other. */
static void open_pair(pair_t *pair, uint64_t seed) {
    make_pair(pair, seed);
    connect_pair(pair);
    exchange(pair);
}

/* Time passes in small steps; what is due is done. */
static void pass_ns(pair_t *pair, uint64_t time_ns, uint64_t step_ns) {
    for (uint64_t end_ns = clock_ns + time_ns; clock_ns < end_ns;) {
        clock_ns += step_ns;
        exchange(pair);
        spc_link_tick(pair->ends[0].link, clock_ns);
        spc_link_tick(pair->ends[1].link, clock_ns);
    }
}

/* ---- without faults */

TEST(greets_and_delivers) {
    pair_t pair;
    make_pair(&pair, 1);
    CHECK_EQ(state_of(&pair, 0), SPC_LINK_DOWN);
    CHECK_EQ_U(spc_link_deadline_ns(pair.ends[0].link), SPC_NO_DEADLINE); /* nobody has come yet: no hurry */
    CHECK_OK(send_next(&pair.ends[0], false));
    CHECK_EQ(spc_link_wants_write(pair.ends[0].link), false);
    connect_pair(&pair);
    CHECK_EQ(state_of(&pair, 0), SPC_LINK_GREETING);
    exchange(&pair);
    CHECK_EQ(state_of(&pair, 0), SPC_LINK_UP);
    CHECK_EQ(state_of(&pair, 1), SPC_LINK_UP);
    CHECK_EQ_U(pair.ends[1].got, 1); /* what was sent before there was a channel */
    for (int i = 0; i < 100; i++) {
        CHECK_OK(send_next(&pair.ends[0], false));
        CHECK_OK(send_next(&pair.ends[1], false));
    }
    exchange(&pair);
    CHECK_EQ_U(pair.ends[0].got, 100);
    CHECK_EQ_U(pair.ends[1].got, 101);
    CHECK_EQ_U(counts_of(&pair, 0).sent[SPC_FRAME_STATUS].frames, 101);
    CHECK_EQ_U(counts_of(&pair, 1).received[SPC_FRAME_STATUS].frames, 101);
    CHECK_EQ_U(counts_of(&pair, 1).received[SPC_FRAME_STATUS].bytes,
               counts_of(&pair, 0).sent[SPC_FRAME_STATUS].bytes);
    free_pair(&pair);
}

/* A ping-pong costs each end one write and one read, and keeps little. */
TEST(a_small_frame_is_one_write) {
    pair_t pair;
    open_pair(&pair, 2);
    pair.ends[1].echo = &pair.ends[1];
    spc_link_counts_t before[2] = {counts_of(&pair, 0), counts_of(&pair, 1)};
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(send_next(&pair.ends[0], false));
        CHECK_EQ(spc_link_wants_write(pair.ends[0].link), false);
        CHECK_OK(spc_link_read(pair.ends[1].link));
        CHECK_OK(spc_link_read(pair.ends[0].link));
        CHECK_EQ_U(pair.ends[0].got, i + 1);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_U(counts_of(&pair, i).writes - before[i].writes, 1000);
        CHECK_EQ_U(counts_of(&pair, i).reads - before[i].reads, 1000);
        CHECK(counts_of(&pair, i).sent[SPC_FRAME_ACKNOWLEDGE].frames <= 1000 / 16);
        CHECK(counts_of(&pair, i).retained_bytes_worst < 64 * 1024);
    }
    free_pair(&pair);
}

TEST(acknowledged_frames_are_freed) {
    pair_t pair;
    open_pair(&pair, 3);
    for (int i = 0; i < 10; i++) {
        CHECK_OK(send_next(&pair.ends[0], false));
    }
    exchange(&pair);
    CHECK_EQ_U(pair.ends[1].got, 10);
    CHECK(counts_of(&pair, 0).retained_bytes > 0);
    CHECK_EQ(spc_link_is_flushed(pair.ends[0].link), false);
    CHECK(spc_link_deadline_ns(pair.ends[1].link) <= clock_ns + 40 * MS); /* it wants to acknowledge */
    pass_ns(&pair, 50 * MS, 10 * MS);
    CHECK_EQ_U(counts_of(&pair, 0).retained_bytes, 0);
    CHECK_EQ(spc_link_is_flushed(pair.ends[0].link), true);
    CHECK_EQ_U(counts_of(&pair, 1).sent[SPC_FRAME_ACKNOWLEDGE].frames, 1);
    /* Many bytes do not wait for the clock. */
    uint64_t frozen_ns = clock_ns;
    for (int i = 0; i < 3000; i++) {
        CHECK_OK(send_next(&pair.ends[0], false));
        exchange(&pair);
        CHECK(counts_of(&pair, 0).retained_bytes <= (512 + 8) * 1024);
    }
    CHECK_EQ_U(clock_ns, frozen_ns);
    free_pair(&pair);
}

TEST(the_limit_of_what_is_kept) {
    end_t end = {0};
    const spc_link_options_t options = {
        .job = JOB, .now_ns = now_ns, .deliver = deliver, .argument = &end, .retained_max = 1000};
    const unsigned char bytes[400] = {0};
    const spc_frame_piece_t piece = {bytes, sizeof bytes};
    spc_frame_t frame = {.kind = SPC_FRAME_BOARD};
    CHECK_OK(spc_link_create(&options, &end.link));
    CHECK_OK(spc_link_send(end.link, &frame, &piece, 1));
    CHECK_OK(spc_link_send(end.link, &frame, &piece, 1));
    CHECK_EQ(spc_link_send(end.link, &frame, &piece, 1), SPC_EAGAIN);
    CHECK_OK(spc_link_send(end.link, &frame, NULL, 0));
    CHECK_OK(spc_link_finish(end.link));
    CHECK_EQ(spc_link_send(end.link, &frame, NULL, 0), SPC_ECLOSED);
    spc_link_destroy(end.link);

    CHECK_OK(spc_link_create(&options, &end.link));
    const spc_frame_piece_t huge[2] = {piece, {bytes, SPC_FRAME_BODY_MAX - 399}};
    CHECK_EQ(spc_link_send(end.link, &frame, huge, 2), SPC_EINVAL);
    frame.kind = SPC_FRAME_HELLO;
    CHECK_EQ(spc_link_send(end.link, &frame, NULL, 0), SPC_EINVAL);
    spc_link_destroy(end.link);
}

TEST(a_body_shared_by_links) {
    enum { LINKS = 3, BYTES = 4096 };
    pair_t pairs[LINKS];
    uint64_t words[BODY_WORDS_MAX];
    spc_link_body_t *body;
    uint64_t k = 1; /* a frame with a body of some length, which begins with 8 copied bytes */
    while (length_of(k) < BYTES) {
        k++;
    }
    fill(k, words);
    CHECK_OK(spc_link_body_create(NULL, length_of(k) - 8, &body));
    memcpy(spc_link_body_start(body), words + 1, length_of(k) - 8);
    for (int i = 0; i < LINKS; i++) {
        make_pair(&pairs[i], 4);
        pairs[i].faults.room_bytes = 1000; /* no write takes all of it */
        connect_pair(&pairs[i]);
        exchange(&pairs[i]);
        pairs[i].ends[1].got = k - 1;
        const spc_frame_t frame = {.kind = SPC_FRAME_STATUS, .offset = k, .tag = -(int32_t)k};
        const spc_frame_piece_t piece = {words, 8};
        CHECK_OK(spc_link_queue_shared(pairs[i].ends[0].link, &frame, &piece, 1, body));
        CHECK_EQ(spc_link_wants_write(pairs[i].ends[0].link), true);
    }
    spc_link_body_release(body);
    for (int i = 0; i < LINKS; i++) {
        spc_link_write(pairs[i].ends[0].link);
        exchange(&pairs[i]);
        CHECK_EQ_U(pairs[i].ends[1].got, k);
        free_pair(&pairs[i]); /* the last frees the body: the sanitizer sees that */
    }
}

/* ---- the end */

TEST(a_link_that_has_finished) {
    pair_t pair;
    open_pair(&pair, 5);
    CHECK_OK(send_next(&pair.ends[0], false));
    CHECK_OK(spc_link_finish(pair.ends[0].link));
    spc_channel_fake_cut(pair.channels[0]); /* finishing survives it, too */
    exchange(&pair);
    CHECK_EQ(spc_link_has_ended(pair.ends[1].link), false);
    connect_pair(&pair);
    exchange(&pair);
    CHECK_EQ_U(pair.ends[1].got, 1);
    CHECK_EQ(spc_link_has_ended(pair.ends[1].link), true);
    CHECK_EQ(spc_link_is_flushed(pair.ends[0].link), true); /* acknowledged at once */
    CHECK_EQ(spc_link_has_ended(pair.ends[0].link), false);
    CHECK_OK(send_next(&pair.ends[1], false)); /* the other direction goes on */
    exchange(&pair);
    CHECK_EQ_U(pair.ends[0].got, 1);
    free_pair(&pair);
}

TEST(a_refusal_ends_the_link) {
    pair_t pair;
    open_pair(&pair, 6);
    pair.ends[1].refuse_at = 3;
    for (int i = 0; i < 5; i++) {
        CHECK_OK(send_next(&pair.ends[0], false));
    }
    CHECK_EQ(spc_link_read(pair.ends[1].link), SPC_ELOST);
    CHECK_EQ_U(pair.ends[1].got, 2);
    CHECK_EQ(state_of(&pair, 1), SPC_LINK_DEAD);
    int system_error;
    CHECK_EQ(spc_link_reason(pair.ends[1].link, &system_error), SPC_ELOST);
    CHECK_EQ(send_next(&pair.ends[1], false), SPC_ETIMEDOUT);
    spc_channel_t *channels[2];
    CHECK_OK(spc_channel_fake_create(&pair.faults, channels));
    CHECK_EQ(spc_link_attach(pair.ends[1].link, channels[1]), SPC_ETIMEDOUT);
    spc_channel_destroy(channels[0]);
    spc_channel_destroy(channels[1]);
    free_pair(&pair);
}

/* ---- silence */

TEST(heartbeats_keep_a_link_up) {
    pair_t pair;
    open_pair(&pair, 7);
    pass_ns(&pair, 100 * SECOND, 100 * MS);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(state_of(&pair, i), SPC_LINK_UP);
        uint64_t beats = counts_of(&pair, i).sent[SPC_FRAME_ACKNOWLEDGE].frames;
        CHECK(beats >= 98 && beats <= 101);
        CHECK_EQ_U(counts_of(&pair, i).broken, 0);
    }
    free_pair(&pair);
}

/* Suspect, then without a channel, then dead; and the owner is told when to look. */
TEST(silence_in_steps) {
    pair_t pair;
    open_pair(&pair, 8);
    const uint64_t start_ns = clock_ns;
    spc_link_t *link = pair.ends[0].link;
    spc_channel_fake_blackhole(pair.channels[0]);
    CHECK_OK(send_next(&pair.ends[0], false));
    uint64_t states_ns[SPC_LINK_DEAD + 1] = {0};
    for (int looks = 0; spc_link_deadline_ns(link) != SPC_NO_DEADLINE; looks++) {
        CHECK(looks < 100); /* a deadline that has passed is not told again */
        CHECK(spc_link_deadline_ns(link) > clock_ns);
        clock_ns = spc_link_deadline_ns(link);
        spc_link_state_t state = spc_link_tick(link, clock_ns);
        if (states_ns[state] == 0) {
            states_ns[state] = clock_ns - start_ns;
        }
        int system_error;
        CHECK_EQ(spc_link_reason(link, &system_error),
                 state == SPC_LINK_DOWN || state == SPC_LINK_DEAD ? SPC_ETIMEDOUT : SPC_OK);
    }
    CHECK_EQ_U(states_ns[SPC_LINK_SUSPECT], 5 * SECOND);
    CHECK_EQ_U(states_ns[SPC_LINK_DOWN], 10 * SECOND);
    CHECK_EQ_U(states_ns[SPC_LINK_DEAD], 30 * SECOND);
    CHECK_EQ_U(counts_of(&pair, 0).retained_bytes, 0); /* nobody will ever ask for it */
    free_pair(&pair);
}

TEST(a_suspect_that_speaks_again) {
    pair_t pair;
    open_pair(&pair, 9);
    clock_ns += 6 * SECOND; /* the other end is stopped */
    CHECK_EQ(spc_link_tick(pair.ends[0].link, clock_ns), SPC_LINK_SUSPECT);
    CHECK_OK(send_next(&pair.ends[1], false));
    CHECK_OK(spc_link_read(pair.ends[0].link));
    CHECK_EQ(state_of(&pair, 0), SPC_LINK_UP);
    /* This end was stopped, for longer than any limit: what waits to be read counts. */
    CHECK_OK(send_next(&pair.ends[1], false));
    clock_ns += 100 * SECOND;
    CHECK_EQ(spc_link_tick(pair.ends[0].link, clock_ns), SPC_LINK_UP);
    CHECK_EQ_U(pair.ends[0].got, 2);
    free_pair(&pair);
}

/* Connections that are made, but over which nobody of ours speaks, do not keep a link alive. */
TEST(noise_is_no_sign_of_life) {
    pair_t pair;
    make_pair(&pair, 10);
    spc_link_t *link = pair.ends[0].link;
    spc_link_state_t state = SPC_LINK_DOWN;
    const uint64_t start_ns = clock_ns;
    for (int i = 0; state != SPC_LINK_DEAD; i++) {
        CHECK(i < 100);
        spc_channel_t *channels[2];
        const char noise[] =
            "GET / HTTP/1.0\r\nwhat is this, and more than sixty-four bytes of it in one go?\r\n\r\n";
        const spc_frame_piece_t piece = {noise, sizeof noise};
        size_t taken;
        CHECK_OK(spc_channel_fake_create(&pair.faults, channels));
        CHECK_OK(spc_link_attach(link, channels[0]));
        CHECK_OK(spc_channel_write(channels[1], &piece, 1, &taken));
        CHECK_OK(spc_link_read(link));
        CHECK_EQ(spc_link_state(link), SPC_LINK_DOWN);
        int system_error;
        CHECK_EQ(spc_link_reason(link, &system_error), SPC_EINVAL);
        spc_channel_destroy(channels[1]);
        clock_ns += SECOND;
        state = spc_link_tick(link, clock_ns);
    }
    CHECK_EQ_U(clock_ns - start_ns, 30 * SECOND);
    free_pair(&pair);
}

/* ---- others who do not keep to the protocol */

/* The other end of a channel to link 0, which has written these headers; the link has read them. */
static spc_channel_t *write_headers(pair_t *pair, const spc_frame_t *frames, uint32_t count) {
    spc_channel_t *channels[2];
    CHECK_OK(spc_channel_fake_create(&pair->faults, channels));
    CHECK_OK(spc_link_attach(pair->ends[0].link, channels[0]));
    for (uint32_t i = 0; i < count; i++) {
        unsigned char header[SPC_FRAME_HEADER_BYTES];
        const spc_frame_piece_t piece = {header, sizeof header};
        size_t taken;
        spc_frame_write_header(&frames[i], NULL, 0, header);
        CHECK_OK(spc_channel_write(channels[1], &piece, 1, &taken));
    }
    CHECK_OK(spc_link_read(pair->ends[0].link));
    return channels[1];
}

/* After a good greeting that says `received`. */
TEST(wrong_frames_end_the_channel) {
    static const struct {
        uint64_t received;
        spc_frame_t frame;
        spc_link_state_t state;
    } CASES[] = {
        {0, {.kind = SPC_FRAME_ACKNOWLEDGE, .job = JOB}, SPC_LINK_UP},
        /* It cannot have what was not yet written when it said so. */
        {1, {.kind = SPC_FRAME_ACKNOWLEDGE, .job = JOB, .total_bytes = 1}, SPC_LINK_DOWN},
        {0, {.kind = SPC_FRAME_ACKNOWLEDGE, .job = JOB + 1}, SPC_LINK_DOWN},
        {0, {.kind = SPC_FRAME_ACKNOWLEDGE, .job = JOB, .total_bytes = 9}, SPC_LINK_DOWN}, /* never sent */
        {0, {.kind = SPC_FRAME_ACKNOWLEDGE, .job = JOB, .offset = 1}, SPC_LINK_DOWN}, /* a frame is missing */
        {0, {.kind = SPC_FRAME_ACKNOWLEDGE, .job = JOB, .sequence = 1}, SPC_LINK_DOWN}, /* counted */
        {0, {.kind = SPC_FRAME_HELLO, .job = JOB}, SPC_LINK_DOWN}, /* a second greeting */
        {0, {.kind = SPC_FRAME_CREDIT, .job = JOB, .sequence = 2}, SPC_LINK_DOWN}, /* a gap */
        {0, {.kind = SPC_FRAME_CREDIT, .job = JOB}, SPC_LINK_DOWN},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        pair_t pair;
        make_pair(&pair, 11);
        CHECK_OK(send_next(&pair.ends[0], false));
        const spc_frame_t frames[] = {{.kind = SPC_FRAME_HELLO, .job = JOB, .total_bytes = CASES[i].received},
                                      CASES[i].frame};
        spc_channel_t *other = write_headers(&pair, frames, 2);
        CHECK_EQ(state_of(&pair, 0), CASES[i].state);
        spc_channel_destroy(other);
        free_pair(&pair);
    }
}

/* Two good ends never send a frame that the other has; one that does is understood. */
TEST(a_duplicate_is_dropped_and_acknowledged) {
    pair_t pair;
    uint64_t k = 1;
    while (length_of(k) != 0) {
        k++;
    }
    make_pair(&pair, 12);
    pair.ends[0].got = k - 1;
    const spc_frame_t news = {
        .kind = SPC_FRAME_STATUS, .job = JOB, .sequence = 1, .offset = k, .tag = -(int32_t)k};
    const spc_frame_t frames[] = {{.kind = SPC_FRAME_HELLO, .job = JOB}, news, news};
    spc_channel_t *other = write_headers(&pair, frames, 3);
    CHECK_EQ(state_of(&pair, 0), SPC_LINK_UP);
    CHECK_EQ_U(pair.ends[0].got, k);
    CHECK_EQ_U(counts_of(&pair, 0).duplicates, 1);
    CHECK_EQ_U(counts_of(&pair, 0).received[SPC_FRAME_STATUS].frames, 1);
    CHECK_EQ_U(counts_of(&pair, 0).sent[SPC_FRAME_ACKNOWLEDGE].frames, 1);
    spc_channel_destroy(other);
    free_pair(&pair);
}

/* ---- faults */

static void step_at_random(pair_t *pair) {
    end_t *end = &pair->ends[check_below(&pair->random, 2)];
    switch (check_below(&pair->random, 10)) {
    case 0:
    case 1:
    case 2:
        CHECK_OK(send_next(end, check_below(&pair->random, 3) == 0));
        break;
    case 3:
        spc_link_write(end->link);
        break;
    case 4:
        clock_ns += check_below(&pair->random, 20) == 0 ? SECOND : check_below(&pair->random, 20 * MS);
        break;
    case 5:
        spc_link_tick(end->link, clock_ns);
        break;
    case 6:
        if (check_below(&pair->random, 50) == 0) {
            spc_link_detach(end->link);
        }
        break;
    default:
        CHECK_OK(spc_link_read(end->link));
        break;
    }
}

static void reconnect_if_down(pair_t *pair) {
    bool is_down = state_of(pair, 0) == SPC_LINK_DOWN || state_of(pair, 1) == SPC_LINK_DOWN;
    /* Sometimes only one end has noticed, and the other's channel is replaced; sometimes it takes a while. */
    if (is_down && check_below(&pair->random, 4) == 0) {
        connect_pair(pair);
    }
}

/* One run: random work over a bad wire, then over a good one until all is there. */
static spc_link_counts_t run_with_faults(uint64_t seed, const spc_channel_fake_options_t *faults, int steps) {
    pair_t pair;
    make_pair(&pair, seed);
    pair.faults = *faults;
    connect_pair(&pair);
    for (int i = 0; i < steps; i++) {
        step_at_random(&pair);
        reconnect_if_down(&pair);
    }
    pair.faults.cut = pair.faults.flip = pair.faults.blackhole = 0;
    connect_pair(&pair);
    CHECK_OK(spc_link_finish(pair.ends[0].link));
    CHECK_OK(spc_link_finish(pair.ends[1].link));
    for (int i = 0; !spc_link_is_flushed(pair.ends[0].link) || !spc_link_is_flushed(pair.ends[1].link); i++) {
        CHECK(i < 100000);
        pass_ns(&pair, 10 * MS, 10 * MS);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_U(pair.ends[i].got, pair.ends[1 - i].sent);
        CHECK_EQ(spc_link_has_ended(pair.ends[i].link), true);
        CHECK_EQ_U(counts_of(&pair, i).retained_bytes, 0);
        CHECK_EQ_U(counts_of(&pair, i).received[SPC_FRAME_STATUS].frames, pair.ends[i].got);
    }
    spc_link_counts_t counts = counts_of(&pair, 0);
    free_pair(&pair);
    return counts;
}

TEST(thousands_of_runs_with_faults) {
    uint64_t seed = check_seed(), resent = 0, broken = 0;
    for (long run = 0; run < check_scale(3000); run++) {
        uint64_t state = seed + (uint64_t)run;
        spc_channel_fake_options_t faults = {
            .now_ns = now_ns,
            .delay_max_ns = check_below(&state, 3) * 3 * MS,
            .room_bytes = check_below(&state, 2) == 0 ? 1 + check_below(&state, 3000) : 0,
            .splits = check_below(&state, 4) != 0,
            .cut = (uint32_t)check_below(&state, 3) * 10,
            .flip = (uint32_t)check_below(&state, 3) * 10,
            .blackhole = (uint32_t)check_below(&state, 3),
        };
        spc_link_counts_t counts = run_with_faults(seed + (uint64_t)run, &faults, 1000);
        resent += counts.resent;
        broken += counts.broken;
    }
    CHECK(resent > 0 && broken > 0); /* or nothing was tested */
    printf("%" PRIu64 " broken channels, %" PRIu64 " frames sent again\n", broken, resent);
}

/* ---- a channel that takes and has read more than the system does, as one with TLS */

typedef struct eager {
    spc_channel_t channel;
    spc_channel_t *below;
    bool holds; /* what was written, until it is asked again */
    uint32_t writes;
} eager_t;

static int eager_read(spc_channel_t *channel, void *buffer, size_t room_bytes, size_t *got_bytes) {
    return spc_channel_read(((eager_t *)channel)->below, buffer, room_bytes, got_bytes);
}

static int eager_write(spc_channel_t *channel, const spc_frame_piece_t *pieces, uint32_t count,
                       size_t *taken_bytes) {
    eager_t *eager = (eager_t *)channel;
    eager->writes++;
    eager->holds = count > 0;
    *taken_bytes = 0;
    return count > 0 ? spc_channel_write(eager->below, pieces, count, taken_bytes) : SPC_OK;
}

static int eager_descriptor(const spc_channel_t *channel) {
    return spc_channel_descriptor(((const eager_t *)channel)->below);
}

static void eager_destroy(spc_channel_t *channel) {
    spc_channel_destroy(((eager_t *)channel)->below);
}

static int eager_holds(const spc_channel_t *channel) {
    return ((const eager_t *)channel)->holds;
}

static int eager_has_unread(const spc_channel_t *channel) {
    return spc_channel_fake_coming(((const eager_t *)channel)->below) > 0;
}

static const spc_channel_methods_t eager_methods = {eager_read,    eager_write, eager_descriptor,
                                                    eager_destroy, eager_holds, eager_has_unread};

TEST(what_a_channel_holds_is_written_and_what_it_has_read_is_taken) {
    pair_t pair;
    make_pair(&pair, 11);
    spc_link_t *link = pair.ends[0].link;
    CHECK_OK(spc_channel_fake_create(&pair.faults, pair.channels));
    eager_t eager = {.channel = {&eager_methods}, .below = pair.channels[0]};
    CHECK_OK(spc_link_attach(pair.ends[1].link, pair.channels[1])); /* its greeting comes first */
    CHECK_OK(spc_link_attach(link, &eager.channel));
    CHECK_EQ(spc_link_state(link), SPC_LINK_GREETING);
    CHECK_EQ_U(spc_link_deadline_ns(link), 0);
    CHECK_EQ_U(eager.writes, 1);
    CHECK(spc_link_wants_write(link));
    spc_link_write(link);
    CHECK_EQ_U(eager.writes, 2);
    CHECK(!spc_link_wants_write(link));
    CHECK_EQ(spc_link_tick(link, clock_ns), SPC_LINK_UP);
    CHECK(spc_link_deadline_ns(link) > clock_ns);
    free_pair(&pair);
}

TEST_MAIN()
