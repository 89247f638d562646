/* SPDX-License-Identifier: MIT */
/* Routing and collecting: the frames that a job emits for those that it takes. */
#include "net/server/spc_server_job.h"

#include "any_frame.h"
#include "base/spc_error.h"
#include "check.h"
#include "little_endian.h"
#include "net/wire/spc_arrival.h"
#include "reduce/spc_subtree.h"
#include "reduction.h"

enum { BOXES = 3, RANKS = 6, LOG_MAX = 4096, MASK = 8, LAST = SPC_FRAME_LAST, URGENT = SPC_FRAME_URGENT };

static const uint16_t box_of_rank[RANKS] = {0, 0, 1, 0, 1, 2};
static const uint16_t last_rank_of[BOXES] = {3, 4, 5};

/* ---- a job whose frames are written down */

typedef struct line {
    uint16_t box;
    spc_frame_t frame;
    unsigned char *body;
    const spc_link_body_t *shared;
} line_t;

typedef struct record {
    spc_server_job_t *job;
    int count, refuse; /* refuse: the status that emit returns */
    line_t lines[LOG_MAX];
} record_t;

static int note(void *argument, uint16_t box, const spc_frame_t *frame, const spc_frame_piece_t *pieces,
                uint32_t count, spc_link_body_t *shared) {
    record_t *record = argument;
    if (record->refuse != SPC_OK) {
        return record->refuse;
    }
    CHECK(record->count < LOG_MAX);
    line_t *line = &record->lines[record->count++];
    *line = (line_t){.box = box, .frame = *frame, .shared = shared};
    size_t length = shared != NULL ? spc_link_body_length(shared) : 0, at = 0;
    for (uint32_t i = 0; i < count; i++) {
        length += pieces[i].length_bytes;
    }
    CHECK(length <= SPC_FRAME_BODY_MAX);
    line->body = malloc(length + 1);
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].length_bytes > 0) { /* an empty piece may start nowhere, which memcpy does not allow */
            memcpy(line->body + at, pieces[i].start, pieces[i].length_bytes);
            at += pieces[i].length_bytes;
        }
    }
    if (shared != NULL) {
        memcpy(line->body + at, spc_link_body_start(shared), length - at);
    }
    line->frame.length_bytes = (uint32_t)length;
    return SPC_OK;
}

static record_t *begin(uint16_t boxes, const uint16_t *map, uint32_t ranks, uint64_t collected_max) {
    record_t *record = calloc(1, sizeof *record);
    const spc_server_job_options_t options = {boxes, ranks, map, collected_max, note, record, NULL};
    CHECK_OK(spc_server_job_create(&options, &record->job));
    return record;
}

static void forget(record_t *record) {
    for (int i = 0; i < record->count; i++) {
        free(record->lines[i].body);
    }
    record->count = 0;
}

static void end(record_t *record) {
    forget(record);
    spc_server_job_destroy(record->job);
    free(record);
}

static int message(record_t *record, uint16_t box, const uint16_t *ranks, uint16_t count, const char *text) {
    unsigned char body[256] = {0};
    size_t before = (size_t)(count * 2 + 7) / 8 * 8;
    for (int i = 0; i < count; i++) {
        body[2 * i] = (unsigned char)ranks[i];
        body[2 * i + 1] = (unsigned char)(ranks[i] >> 8);
    }
    memcpy(body + before, text, strlen(text));
    const spc_frame_t frame = {.kind = SPC_FRAME_MESSAGE,
                               .source = last_rank_of[box],
                               .tag = -5,
                               .count = count,
                               .length_bytes = (uint32_t)(before + strlen(text))};
    return spc_server_job_take(record->job, box, &frame, body);
}

static int arrive(record_t *record, uint16_t box, uint16_t context, uint64_t generation, uint64_t phase,
                  uint64_t mask, const char *text, uint16_t flags) {
    unsigned char body[256];
    put_u64(body, mask);
    memcpy(body + MASK, text, strlen(text));
    const spc_frame_t frame = {.kind = SPC_FRAME_ARRIVE,
                               .flags = flags,
                               .source = box,
                               .context = context,
                               .total_bytes = generation,
                               .offset = phase,
                               .length_bytes = (uint32_t)(MASK + strlen(text))};
    return spc_server_job_take(record->job, box, &frame, body);
}

/* The frames that were emitted, as "box/phase:text", and what follows each: a full stop if it is the last of its phase,
 * else a comma. The text is what follows the ranks or the mask, which fill 8 bytes. */
static const char *emitted(const record_t *record) {
    static char text[1024];
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < record->count; i++) {
        const line_t *line = &record->lines[i];
        const int length = (int)line->frame.length_bytes - MASK;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u/%" PRIu64 ":%.*s%c", i > 0 ? " " : "",
                               line->box, line->frame.offset, length, (const char *)line->body + MASK,
                               line->frame.flags == LAST ? '.' : ',');
        CHECK(length >= 0 && at < sizeof text && (line->frame.flags == LAST || line->frame.flags == 0));
    }
    return text;
}

/* The frame for this box that was emitted as number `i`, from 0, and what follows its first `skip` bytes. */
static void check_line(const record_t *record, int i, uint16_t box, size_t skip, const char *text,
                       int flags) {
    CHECK(i < record->count);
    const line_t *line = &record->lines[i];
    CHECK_EQ(line->box, box);
    CHECK_EQ(line->frame.flags, flags);
    CHECK_EQ_U(line->frame.length_bytes, skip + strlen(text));
    CHECK_MEM(line->body + skip, text, strlen(text));
}

/* ---- messages */

TEST(a_message_to_one_box) {
    record_t *record = begin(BOXES, box_of_rank, RANKS, 1000);
    CHECK_OK(message(record, 2, (uint16_t[]){3, 0}, 2, "hello"));
    CHECK_STR(emitted(record), "0/0:hello,");
    CHECK_EQ(record->lines[0].frame.count, 2);
    CHECK_EQ(record->lines[0].frame.source, 5);
    CHECK_EQ(record->lines[0].frame.tag, -5);
    CHECK_EQ(record->lines[0].body[0], 3); /* the order of the ranks stays */
    end(record);
}

TEST(a_multicast_once_for_each_box) {
    record_t *record = begin(BOXES, box_of_rank, RANKS, 1000);
    CHECK_OK(message(record, 2, (uint16_t[]){1, 2, 3, 4, 0}, 5, "to many"));
    CHECK_STR(emitted(record), "0/0:to many, 1/0:to many,");
    CHECK_MEM(record->lines[0].body, ((unsigned char[8]){1, 0, 3, 0, 0, 0}), 8);
    CHECK_MEM(record->lines[1].body, ((unsigned char[8]){2, 0, 4, 0}), 8);
    CHECK_EQ(record->lines[0].frame.count, 3);
    CHECK_EQ(record->lines[1].frame.count, 2);
    CHECK(record->lines[0].shared != NULL);
    CHECK_EQ_PTR(record->lines[0].shared, record->lines[1].shared); /* one memory for all */
    end(record);
}

TEST(other_frames_as_they_are) {
    record_t *record = begin(BOXES, box_of_rank, RANKS, 1000);
    spc_frame_t frame = {.kind = SPC_FRAME_CREDIT, .source = 0, .destination = 2, .length_bytes = 6};
    CHECK_OK(spc_server_job_take(record->job, 0, &frame, (const unsigned char *)"credit"));
    CHECK_EQ(record->count, 1);
    check_line(record, 0, 2, 0, "credit", 0);
    frame.flags = SPC_FRAME_OTHERS;
    frame.kind = SPC_FRAME_STATUS;
    frame.source = last_rank_of[1];
    CHECK_OK(spc_server_job_take(record->job, 1, &frame, (const unsigned char *)"status"));
    CHECK_EQ(record->count, 3);
    check_line(record, 1, 0, 0, "status", SPC_FRAME_OTHERS);
    check_line(record, 2, 2, 0, "status", SPC_FRAME_OTHERS);
    frame =
        (spc_frame_t){.kind = SPC_FRAME_ARRIVE, .flags = SPC_FRAME_FORWARD, .source = 1, .length_bytes = 7};
    CHECK_OK(spc_server_job_take(record->job, 1, &frame, (const unsigned char *)"arrived"));
    check_line(record, 3, 0, 0, "arrived", SPC_FRAME_FORWARD);
    frame.source = 2;
    CHECK_EQ(spc_server_job_take(record->job, 1, &frame, (const unsigned char *)"arrived"), SPC_EINVAL);
    frame = (spc_frame_t){
        .kind = SPC_FRAME_STATUS, .flags = SPC_FRAME_OTHERS, .source = last_rank_of[1], .length_bytes = 6};
    spc_server_job_end_box(record->job, 2); /* gets nothing, and nobody is to blame */
    CHECK_OK(spc_server_job_take(record->job, 1, &frame, (const unsigned char *)"status"));
    CHECK_EQ(record->count, 5);
    end(record);
}

/* A box speaks of itself and of its own ranks. A receipt, and what is lent, is of a message from another one. */
TEST(boxes_speak_for_themselves) {
    record_t *record = begin(BOXES, box_of_rank, RANKS, 1000);
    static const struct {
        uint8_t kind;
        uint16_t source;
        int32_t tag;
        uint16_t box; /* that may say it; BOXES: none */
    } FRAMES[] = {
        {SPC_FRAME_STATUS, 2, 0, 1},         {SPC_FRAME_LEFT, 5, 0, 2},
        {SPC_FRAME_NOTE, 3, 0, 0},           {SPC_FRAME_RECEIPT, 2, 5, 2},
        {SPC_FRAME_LENT, 5, 3, 0},           {SPC_FRAME_CREDIT, 1, 5, 1},
        {SPC_FRAME_BOARD, 2, 0, 2},          {SPC_FRAME_ROUTE, 1, 0, 1},
        {SPC_FRAME_SHUTDOWN, 2, 0, 2},       {SPC_FRAME_FAIL, 0, 0, BOXES},
        {SPC_FRAME_STATUS, RANKS, 0, BOXES}, {SPC_FRAME_LENT, 0, -1, BOXES},
        {SPC_FRAME_BOARD, BOXES, 0, BOXES},  {99, 0, 0, BOXES},
    };
    for (size_t i = 0; i < sizeof FRAMES / sizeof *FRAMES; i++) {
        const spc_frame_t frame = {
            .kind = FRAMES[i].kind, .source = FRAMES[i].source, .tag = FRAMES[i].tag, .destination = 0};
        for (uint16_t box = 0; box < BOXES; box++) {
            CHECK_EQ(spc_server_job_take(record->job, box, &frame, NULL),
                     box == FRAMES[i].box ? SPC_OK : SPC_EINVAL);
        }
    }
    end(record);
}

TEST(nonsense_is_refused) {
    record_t *record = begin(BOXES, box_of_rank, RANKS, 1000);
    CHECK_EQ(message(record, 0, NULL, 0, "to nobody"), SPC_EINVAL);
    CHECK_EQ(message(record, 0, (uint16_t[]){1, RANKS}, 2, "no such rank"), SPC_EINVAL);
    CHECK_EQ(message(record, 0, (uint16_t[]){1, 1, 1, 1, 1, 1, 1}, 7, "more than there are"), SPC_EINVAL);
    spc_frame_t frame = {.kind = SPC_FRAME_CREDIT, .destination = BOXES};
    CHECK_EQ(spc_server_job_take(record->job, 0, &frame, NULL), SPC_EINVAL);
    frame = (spc_frame_t){.kind = SPC_FRAME_ARRIVE, .length_bytes = 7};
    CHECK_EQ(spc_server_job_take(record->job, 0, &frame, (const unsigned char *)"1234567"), SPC_EINVAL);
    CHECK_EQ(record->count, 0);
    record->refuse = SPC_EAGAIN;
    CHECK_EQ(message(record, 0, (uint16_t[]){1, 2}, 2, "no room"), SPC_EAGAIN);
    end(record);

    spc_server_job_t *job;
    const uint16_t map[2] = {0, 3};
    spc_server_job_options_t options = {3, 2, map, 0, note, NULL, NULL};
    CHECK_EQ(spc_server_job_create(&options, &job), SPC_EINVAL);
    options.boxes = 65;
    CHECK_EQ(spc_server_job_create(&options, &job), SPC_EINVAL);
}

/* ---- phases */

/* An arrival, and the frames that the server then emits, which have its context, generation and mask. */
typedef struct step {
    uint16_t box, context;
    uint64_t generation, phase, mask;
    const char *text;
    uint16_t flags;
    const char *emitted; /* NULL: it is refused */
} step_t;

static void play(const step_t *steps, size_t count, bool all_is_sent) {
    record_t *record = begin(BOXES, box_of_rank, RANKS, 2000);
    for (const step_t *step = steps; step < steps + count; step++) {
        CHECK_EQ(arrive(record, step->box, step->context, step->generation, step->phase, step->mask,
                        step->text, step->flags),
                 step->emitted != NULL ? SPC_OK : SPC_EINVAL);
        CHECK_STR(emitted(record), step->emitted != NULL ? step->emitted : "");
        for (int i = 0; i < record->count; i++) {
            CHECK_EQ(record->lines[i].frame.context, step->context);
            CHECK_EQ_U(record->lines[i].frame.total_bytes, step->generation);
            CHECK_EQ_U(get_u64(record->lines[i].body), step->mask);
        }
        forget(record);
    }
    CHECK_EQ(spc_server_job_collected(record->job) == 0, all_is_sent);
    end(record);
}

#define PLAY(steps, all_is_sent) play(steps, sizeof(steps) / sizeof *(steps), all_is_sent)

TEST(a_phase_costs_one_frame_each_way) {
    static const step_t steps[] = {
        {1, 7, 0, 5, 7, "one ", LAST, ""},
        {0, 7, 0, 5, 7, "zero ", LAST, ""},
        {2, 7, 0, 5, 7, "two ", LAST, "0/5:one two . 1/5:zero two . 2/5:one zero ."},
        /* A phase of some of the boxes concerns nobody else; one of a single box is complete at once. */
        {0, 8, 0, 5, 5, "a", LAST, ""},
        {2, 8, 0, 5, 5, "b", LAST, "0/5:b. 2/5:a."},
        {1, 9, 0, 5, 2, "alone", LAST, "1/5:."},
    };
    PLAY(steps, true);
}

/* The first one leaves an arrival of box 0 behind: box 1 has left without coming to that phase. */
TEST(communicators_of_one_number_are_told_apart) {
    static const step_t steps[] = {
        {0, 7, 1, 1, 3, "a", LAST, ""},
        {0, 7, 2, 1, 3, "b", LAST, ""},
        {1, 7, 2, 1, 3, "c", LAST, "0/1:c. 1/1:b."},
        {0, 7, 3, 1, 3, "d", LAST, ""},
        {1, 7, 3, 1, 3, "e", LAST, "0/1:e. 1/1:d."},
    };
    PLAY(steps, false);
}

TEST(an_urgent_arrival_is_handed_on) {
    static const step_t steps[] = {
        {0, 1, 0, 1, 7, "zero ", LAST, ""},
        {1, 1, 0, 1, 7, "one ", URGENT, "0/1:one , 1/1:zero , 2/1:zero one ,"},
        /* From now on all of it at once, and nothing twice. */
        {1, 1, 0, 1, 7, "more ", LAST, "0/1:more , 2/1:more ,"},
        {2, 1, 0, 1, 7, "two ", LAST, "0/1:two . 1/1:two . 2/1:."},
    };
    PLAY(steps, true);
}

/* A phase that takes several frames is no reason to hurry: those before it may be open. */
TEST(more_that_comes_is_not_urgent) {
    static const step_t steps[] = {
        {0, 1, 0, 1, 3, "first", LAST, ""},
        {0, 1, 0, 2, 3, "one ", 0, ""},
        {0, 1, 0, 2, 3, "another ", LAST, ""},
        {1, 1, 0, 1, 3, "", LAST, "0/1:. 1/1:first."},
        {1, 1, 0, 2, 3, "third", LAST, "0/2:third. 1/2:one another ."},
    };
    PLAY(steps, true);
}

TEST(an_urgent_phase_takes_those_before_it_along) {
    static const step_t steps[] = {
        {0, 1, 0, 1, 7, "a1", LAST, ""},
        {1, 1, 0, 1, 7, "b1", LAST, ""},
        {0, 1, 0, 2, 7, "a2", LAST, ""},
        {0, 2, 0, 2, 7, "of another communicator", LAST, ""},
        {0, 1, 0, 3, 7, "a3", URGENT, "0/1:b1, 1/1:a1, 2/1:a1b1, 1/2:a2, 2/2:a2, 1/3:a3, 2/3:a3,"},
        {1, 1, 0, 2, 7, "b2", LAST, "0/2:b2, 2/2:b2,"}, /* urgent, as phase 3 is */
        {1, 1, 0, 3, 7, "b3", LAST, "0/3:b3, 2/3:b3,"},
        {1, 1, 0, 4, 7, "b4", LAST, ""},
    };
    PLAY(steps, false);
}

/* Without a contribution an urgent arrival is about what the box has sent before. */
TEST(a_reminder) {
    static const step_t steps[] = {
        {0, 1, 0, 1, 3, "zero", LAST, ""},
        {0, 1, 0, 1, 3, "", URGENT, "1/1:zero,"},
        /* It has sent its last contribution. */
        {0, 1, 0, 1, 3, "too late", URGENT, NULL},
        {1, 1, 0, 1, 3, "one", LAST, "0/1:one. 1/1:."},
        /* The phase is complete by now. */
        {0, 1, 0, 1, 3, "", URGENT, ""},
    };
    PLAY(steps, true);
}

TEST(wrong_arrivals_are_refused) {
    static const step_t steps[] = {
        {0, 1, 0, 1, 8, "", LAST, NULL}, /* no such box */
        {0, 1, 0, 1, 6, "", LAST, NULL}, /* it takes no part */
        {0, 1, 0, 1, 7, "", LAST, ""}, /* as it should be */
        {0, 1, 0, 1, 7, "", LAST, NULL}, /* twice */
        {1, 1, 0, 1, 3, "", LAST, NULL}, /* who takes part? */
    };
    PLAY(steps, false);
}

TEST(contributions_too_long_for_one_frame) {
    enum { LONG = SPC_FRAME_BODY_MAX - 100 };
    record_t *record = begin(BOXES, box_of_rank, RANKS, 4 * SPC_FRAME_BODY_MAX);
    unsigned char *body = calloc(1, LONG);
    for (uint16_t box = 0; box < BOXES; box++) {
        put_u64(body, 7);
        body[MASK] = (unsigned char)(box + 1);
        const spc_frame_t frame = {
            .kind = SPC_FRAME_ARRIVE, .flags = SPC_FRAME_LAST, .source = box, .length_bytes = LONG};
        CHECK_OK(spc_server_job_take(record->job, box, &frame, body));
    }
    CHECK_EQ(record->count, 2 * BOXES);
    for (int i = 0; i < record->count; i++) {
        CHECK_EQ(record->lines[i].box, i / 2);
        CHECK_EQ(record->lines[i].frame.flags, i % 2 == 0 ? 0 : SPC_FRAME_LAST);
        CHECK_EQ_U(record->lines[i].frame.length_bytes, LONG);
        CHECK_NE(record->lines[i].body[MASK], i / 2 + 1);
    }
    free(body);
    end(record);
}

TEST(what_is_collected_is_bounded) {
    record_t *record = begin(BOXES, box_of_rank, RANKS, 100000);
    uint64_t phases = 0;
    int status;
    while ((status = arrive(record, 0, 1, 0, ++phases, 7, "something", LAST)) == SPC_OK) {
        CHECK(spc_server_job_collected(record->job) <= 100000 && phases < 10000);
    }
    CHECK_EQ(status, SPC_ELIMIT);
    CHECK(phases > 200);
    end(record);
}

/* Many communicators of random boxes, several phases each, arrivals in any order, urgent ones between. */
TEST(many_communicators) {
    enum { B = 5, CONTEXTS = 40, PHASES = 4 };
    uint64_t state = check_seed();
    const uint16_t map[B] = {0, 1, 2, 3, 4};
    record_t *record = begin(B, map, B, 1 << 20);
    for (int context = 0; context < CONTEXTS; context++) {
        uint64_t mask = 1 + check_below(&state, (1 << B) - 1);
        int next[B][PHASES] = {0}; /* how many frames a box has sent to a phase; -1: its last */
        int left = PHASES * __builtin_popcountll(mask), boxes = __builtin_popcountll(mask), urgent = 0;
        uint64_t wanted[PHASES] = {0}, got[B][PHASES] = {0}, lasts[B][PHASES] = {0};
        while (left > 0) {
            uint16_t box = (uint16_t)check_below(&state, B);
            int phase = (int)check_below(&state, PHASES);
            if (!(mask >> box & 1) || next[box][phase] < 0) {
                continue;
            }
            bool last = next[box][phase] == 3 || check_below(&state, 4) != 0;
            char text[2] = {(char)('a' + box), 0}; /* each frame contributes one letter, its box's */
            CHECK_OK(
                arrive(record, box, (uint16_t)context, 0, (uint64_t)phase, mask, text, last ? LAST : URGENT));
            wanted[phase] += UINT64_C(1) << 8 * box;
            next[box][phase] = last ? -1 : next[box][phase] + 1;
            left -= last;
            urgent += !last;
        }
        for (int i = 0; i < record->count; i++) {
            const line_t *line = &record->lines[i];
            CHECK_EQ(line->frame.context, context);
            CHECK_EQ_U(get_u64(line->body), mask);
            CHECK_EQ(lasts[line->box][line->frame.offset], 0); /* nothing comes after the last */
            lasts[line->box][line->frame.offset] = (line->frame.flags & SPC_FRAME_LAST) != 0;
            for (uint32_t k = MASK; k < line->frame.length_bytes; k++) {
                got[line->box][line->frame.offset] += UINT64_C(1) << 8 * (line->body[k] - 'a');
            }
        }
        for (int box = 0; box < B; box++) {
            for (int phase = 0; phase < PHASES; phase++) {
                bool takes_part = mask >> box & 1;
                uint64_t own = UINT64_C(0xff) << 8 * box;
                CHECK_EQ(lasts[box][phase], takes_part);
                CHECK_EQ_U(got[box][phase], takes_part ? wanted[phase] & ~own : 0);
            }
        }
        if (urgent == 0) {
            CHECK_EQ(record->count, PHASES * boxes);
        }
        forget(record);
    }
    CHECK_EQ_U(spc_server_job_collected(record->job), 0);
    end(record);
}

/* ---- reductions: the server combines */

enum { MEMBERS_MAX = 24, PARTS_MAX = 8, ELEMENTS_MAX = 40, REDUCED_MAX = 16 * ELEMENTS_MAX };

/* A reduction of one field; each box sends the values of its members. */
typedef struct reduction {
    spc_signature_t signature;
    spc_field_t field;
    uint32_t members;
    uint16_t boxes, map[MEMBERS_MAX];
    _Alignas(8) unsigned char values[MEMBERS_MAX][REDUCED_MAX];
} reduction_t;

static void make_reduction(reduction_t *made, spc_operator_t operator, uint32_t type, uint32_t count,
                           uint32_t members, uint16_t boxes) {
    *made = (reduction_t){.field = {type, count}, .members = members, .boxes = boxes};
    made->signature = reduction_signature(operator, &made->field, 1);
    for (uint32_t i = 0; i < members; i++) {
        made->map[i] = (uint16_t)(i % boxes);
        for (uint32_t k = 0; k < count && type == SPC_TYPE_INT; k++) {
            made->values[i][8 * k] = (unsigned char)(i + k);
        }
    }
}

static uint64_t mask_of(const reduction_t *reduction) {
    return (UINT64_C(1) << reduction->boxes) - 1;
}

/* Head, fields and value of a member at the end of a body. */
static uint32_t put_arrival(const reduction_t *reduction, uint32_t member, unsigned char *body, uint32_t at) {
    const spc_arrival_head_t head = {.signature = reduction->signature,
                                     .first = member,
                                     .span = 1,
                                     .length_bytes = (uint32_t)spc_fields_bytes(&reduction->field, 1)};
    memcpy(body + at, &head, sizeof head);
    at += (uint32_t)sizeof head;
    memcpy(body + at, &reduction->field, sizeof reduction->field);
    at += (uint32_t)sizeof reduction->field;
    memcpy(body + at, reduction->values[member], head.length_bytes);
    return at + head.length_bytes;
}

static void give(record_t *record, uint16_t box, uint64_t mask, uint16_t flags, unsigned char *body,
                 uint32_t length) {
    put_u64(body, mask);
    const spc_frame_t frame = {
        .kind = SPC_FRAME_ARRIVE, .flags = flags, .source = box, .offset = 1, .length_bytes = length};
    CHECK_OK(spc_server_job_take(record->job, box, &frame, body));
}

/* All members of a box, in so many frames or as many as there are members. */
static void give_box(record_t *record, const reduction_t *reduction, uint16_t box, uint32_t frames,
                     uint16_t flags) {
    _Alignas(8) static unsigned char body[MASK + MEMBERS_MAX * (REDUCED_MAX + 48)];
    uint32_t at = MASK;
    for (uint32_t i = 0; i < reduction->members; i++) {
        if (reduction->map[i] != box) {
            continue;
        }
        at = put_arrival(reduction, i, body, at);
        if (frames > 1) {
            give(record, box, mask_of(reduction), 0, body, at);
            at = MASK;
            frames--;
        }
    }
    give(record, box, mask_of(reduction), flags, body, at);
}

static void give_all(record_t *record, const reduction_t *reduction) {
    for (uint16_t box = 0; box < reduction->boxes; box++) {
        give_box(record, reduction, box, 1, LAST);
    }
}

static record_t *begin_reduction(const reduction_t *reduction) {
    return begin(reduction->boxes, reduction->map, reduction->members, 1 << 20);
}

/* Frames that came to a box: the arrivals, and the bytes of all values. */
typedef struct told {
    uint32_t count;
    uint64_t value_bytes;
    spc_arrival_t arrivals[MEMBERS_MAX];
} told_t;

static told_t told_of(const record_t *record, const reduction_t *reduction, uint16_t box) {
    told_t told = {0};
    for (int i = 0; i < record->count; i++) {
        const line_t *line = &record->lines[i];
        uint32_t at = MASK;
        while (line->box == box && at < line->frame.length_bytes) {
            spc_arrival_t *arrival = &told.arrivals[told.count++];
            CHECK(told.count <= MEMBERS_MAX);
            CHECK_OK(spc_arrival_read(line->body, line->frame.length_bytes, 0, &at, arrival));
            CHECK_MEM(&arrival->head.signature, &reduction->signature, sizeof reduction->signature);
            told.value_bytes += arrival->head.length_bytes;
        }
    }
    return told;
}

/* Each box got the same frame, with one arrival for all members. */
static void check_total(const record_t *record, const reduction_t *reduction, uint32_t type,
                        const unsigned char *value) {
    const uint64_t bytes = spc_fields_bytes(&reduction->field, 1);
    CHECK_EQ(record->count, reduction->boxes);
    for (uint16_t box = 0; box < reduction->boxes; box++) {
        const told_t told = told_of(record, reduction, box);
        CHECK_EQ(record->lines[box].box, box);
        CHECK_EQ(record->lines[box].frame.flags, LAST);
        CHECK_EQ(record->lines[box].frame.source, SPC_FRAME_FROM_SERVER);
        CHECK_EQ(record->lines[box].frame.destination, box);
        CHECK_EQ_PTR(record->lines[box].shared, record->lines[0].shared); /* one memory for all */
        CHECK_EQ_U(get_u64(record->lines[box].body), mask_of(reduction));
        CHECK_EQ_U(told.count, 1);
        CHECK_EQ_U(told.arrivals[0].head.first, 0);
        CHECK_EQ_U(told.arrivals[0].head.span, reduction->members);
        CHECK_EQ_U(told.arrivals[0].fields[0].type, type);
        CHECK_EQ_U(told.arrivals[0].fields[0].count, reduction->field.count);
        CHECK_EQ_U(told.value_bytes, bytes); /* however many boxes there are */
        if (value != NULL) {
            CHECK_MEM(told.arrivals[0].value, value, bytes);
        }
    }
    CHECK_EQ_U(spc_server_job_collected(record->job), 0);
}

/* Each box got those of all others, as they were sent. */
static void check_passed_on(const record_t *record, const reduction_t *reduction) {
    for (uint16_t box = 0; box < reduction->boxes; box++) {
        uint32_t elsewhere = 0;
        for (uint32_t i = 0; i < reduction->members; i++) {
            elsewhere += reduction->map[i] != box;
        }
        const told_t told = told_of(record, reduction, box);
        CHECK_EQ_U(told.count, elsewhere);
        for (uint32_t i = 0; i < told.count; i++) {
            const uint32_t member = told.arrivals[i].head.first;
            CHECK_EQ_U(told.arrivals[i].head.span, 1);
            CHECK(member < reduction->members && reduction->map[member] != box);
            CHECK_MEM(told.arrivals[i].value, reduction->values[member], told.arrivals[i].head.length_bytes);
        }
    }
}

/* The values of each box in any number of frames, the boxes in any order; what comes is what one fold gives. */
TEST(a_reduction_comes_back_as_one_value) {
    uint64_t state = check_seed();
    for (long round = check_scale(2000); round > 0; round--) {
        static reduction_t reduction;
        spc_subtree_t subtrees[MEMBERS_MAX];
        const spc_operator_t operator = (spc_operator_t)check_below(&state, SPC_OPERATOR_COUNT);
        const uint16_t boxes = (uint16_t)(2 + check_below(&state, PARTS_MAX - 1));
        const uint32_t members = boxes + (uint32_t)check_below(&state, MEMBERS_MAX + 1 - boxes);
        uint32_t type = SPC_TYPE_WIDE;
        while (type == SPC_TYPE_WIDE || !spc_ops_has(operator, type) || spc_type_size(type) > 16) {
            type = 1 + (uint32_t)check_below(&state, SPC_TYPE_COUNT - 1);
        }
        make_reduction(&reduction, operator, type, (uint32_t)check_below(&state, ELEMENTS_MAX + 1), members,
                       boxes);
        for (uint32_t i = 0; i < members; i++) {
            reduction.map[i] = i < boxes ? (uint16_t)i : (uint16_t)check_below(&state, boxes);
            for (uint32_t k = 0; k < spc_fields_bytes(&reduction.field, 1); k++) {
                reduction.values[i][k] = (unsigned char)check_random(&state);
            }
            subtrees[i] = (spc_subtree_t){i, 1, reduction.values[i]};
        }
        for (uint32_t i = members - 1; i > 0; i--) { /* any box may hold any member */
            const uint32_t k = (uint32_t)check_below(&state, i + 1);
            const uint16_t box = reduction.map[i];
            reduction.map[i] = reduction.map[k];
            reduction.map[k] = box;
        }
        record_t *record = begin_reduction(&reduction);
        uint64_t left = mask_of(&reduction);
        while (left != 0) {
            const uint16_t box = (uint16_t)check_below(&state, boxes);
            if (left >> box & 1) {
                give_box(record, &reduction, box, 1 + (uint32_t)check_below(&state, 3), LAST);
                left &= ~(UINT64_C(1) << box);
            }
        }
        uint32_t count = members;
        const int status = spc_subtree_combine(operator, &reduction.field, 1, members, subtrees, &count);
        check_total(record, &reduction, status == SPC_EWIDE ? SPC_TYPE_WIDE : type,
                    status == SPC_EWIDE ? NULL : reduction.values[0]);
        end(record);
    }
}

/* One of them does not fit, or all together do not. */
TEST(integers_that_become_too_wide) {
    static reduction_t reduction;
    for (int is_sent = 0; is_sent < 2; is_sent++) {
        make_reduction(&reduction, SPC_SUM, SPC_TYPE_INT, 1, 4, 2);
        record_t *record = begin_reduction(&reduction);
        give_box(record, &reduction, 0, 1, LAST);
        if (is_sent) {
            reduction.field.type = SPC_TYPE_WIDE;
        } else {
            memset(reduction.values[1], 0x7f, 8);
            memset(reduction.values[3], 0x7f, 8);
        }
        give_box(record, &reduction, 1, 1, LAST);
        check_total(record, &reduction, SPC_TYPE_WIDE, NULL);
        end(record);
    }
}

/* Values that cannot be combined go to all as they came. */
TEST(what_is_no_reduction_is_passed_on) {
    static const struct {
        uint8_t operation, operator, type;
    } CASES[] = {
        {SPC_OPERATION_GATHER, SPC_SUM, SPC_TYPE_INT}, /* data: everybody reads everybody's */
        {SPC_OPERATION_REDUCE, SPC_OPERATOR_COUNT, SPC_TYPE_INT},
        {SPC_OPERATION_REDUCE, SPC_SUM, SPC_TYPE_COUNT + 3},
        {SPC_OPERATION_REDUCE, SPC_MINLOC, SPC_TYPE_INT},
    };
    static reduction_t reduction;
    record_t *record;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        make_reduction(&reduction, SPC_SUM, SPC_TYPE_INT, 1, 5, 3);
        reduction.signature.operation = CASES[i].operation;
        reduction.signature.operator = CASES[i].operator;
        reduction.field.type = CASES[i].type;
        record = begin_reduction(&reduction);
        give_all(record, &reduction);
        CHECK_EQ(record->count, 3);
        check_passed_on(record, &reduction);
        end(record);
    }
    /* They do not agree what they do: all of them have to hear of all. */
    make_reduction(&reduction, SPC_SUM, SPC_TYPE_INT, 1, 5, 2);
    record = begin_reduction(&reduction);
    give_box(record, &reduction, 0, 1, LAST);
    reduction.signature.operator = SPC_MAX;
    give_box(record, &reduction, 1, 1, LAST);
    CHECK_EQ(record->count, 2);
    check_line(record, 0, 0, MASK + 2 * 56, "", LAST);
    check_line(record, 1, 1, MASK + 3 * 56, "", LAST);
    end(record);
}

/* Some values were sent already, so the others follow one by one. */
TEST(an_urgent_reduction_is_passed_on) {
    static reduction_t reduction;
    make_reduction(&reduction, SPC_SUM, SPC_TYPE_INT, 2, 5, 3);
    record_t *record = begin_reduction(&reduction);
    give_box(record, &reduction, 0, 1, LAST);
    give_box(record, &reduction, 1, 1, URGENT);
    CHECK(record->count > 0);
    _Alignas(8) unsigned char body[MASK];
    give(record, 1, mask_of(&reduction), LAST, body, MASK);
    give_box(record, &reduction, 2, 1, LAST);
    check_passed_on(record, &reduction);
    CHECK_EQ_U(spc_server_job_collected(record->job), 0);
    end(record);
}

/* A box that sends heads of its own making: nothing is read or written that is not a value, and the gateways judge. */
TEST(forged_arrivals_are_passed_on) {
    static const struct {
        uint32_t first, span, length;
        uint32_t type, count;
    } FORGED[] = {
        {0, 1, 8, SPC_TYPE_INT, 1}, /* the other box's */
        {1, 2, 8, SPC_TYPE_INT, 1}, /* no node of the tree */
        {0, 2, 8, SPC_TYPE_INT, 1}, /* the other's, too */
        {0, 4, 8, SPC_TYPE_INT, 1}, /* all by itself */
        {1, 0, 8, SPC_TYPE_INT, 1}, /* of nobody */
        {2, 1, 8, SPC_TYPE_INT, 1}, /* one is left out */
        {4, 1, 8, SPC_TYPE_INT, 1}, /* no such member */
        {UINT32_MAX, 1, 8, SPC_TYPE_INT, 1}, /* */
        {1, UINT32_MAX, 8, SPC_TYPE_INT, 1}, /* */
        {1, 1, 8, SPC_TYPE_INT, 2}, /* longer than it is */
        {1, 1, 8, SPC_TYPE_INT, UINT32_MAX}, /* */
        {1, 1, 16, SPC_TYPE_INT, 1}, /* beyond the end of the frame */
        {1, 1, UINT32_MAX, SPC_TYPE_INT, 1}, /* */
        {1, 1, 8, SPC_TYPE_FLOAT64, 1}, /* of another kind, with the same signature */
    };
    for (size_t i = 0; i < sizeof FORGED / sizeof *FORGED; i++) {
        static reduction_t reduction;
        _Alignas(8) unsigned char body[MASK + 56] = {0};
        make_reduction(&reduction, SPC_SUM, SPC_TYPE_INT, 1, 2, 2);
        const uint16_t map[4] = {0, 1, 0, 1};
        record_t *record = begin(2, map, 4, 1 << 20);
        give_box(record, &reduction, 0, 1, LAST);
        const spc_arrival_head_t head = {.signature = reduction.signature,
                                         .first = FORGED[i].first,
                                         .span = FORGED[i].span,
                                         .length_bytes = FORGED[i].length};
        const spc_field_t field = {FORGED[i].type, FORGED[i].count};
        memcpy(body + MASK, &head, sizeof head);
        memcpy(body + MASK + sizeof head, &field, sizeof field);
        give(record, 1, 3, LAST, body, sizeof body);
        CHECK_EQ(record->count, 2);
        CHECK_EQ(record->lines[0].frame.source, 1); /* the box to blame */
        check_line(record, 0, 0, MASK + 56, "", LAST);
        CHECK_MEM(record->lines[0].body, body, sizeof body);
        check_line(record, 1, 1, MASK + 56, "", LAST);
        end(record);
    }
}

/* ---- boxes whose nodes arrive, run ahead and end, as gateways tell of them */

enum { CREW_BOXES = 4, EACH = 2, CREW = CREW_BOXES * EACH, AHEAD = 9, CREW_MASK = 15 };

typedef struct team {
    record_t *record;
    uint64_t random;
    uint64_t arrived[CREW], told[CREW]; /* the last phase of each, and the last that was sent */
    bool has_ended[CREW];
    uint64_t sent[CREW_BOXES]; /* the last phase that was sent as a whole */
    uint64_t heard[CREW_BOXES][CREW];
} team_t;

/* Whatever has come: of each node one phase after the other. */
static void crew_hear(team_t *team) {
    for (int i = 0; i < team->record->count; i++) {
        const line_t *line = &team->record->lines[i];
        for (uint32_t k = MASK; k < line->frame.length_bytes; k++) {
            const int member = line->body[k] - 'a';
            CHECK_NE(member / EACH, line->box);
            CHECK_EQ_U(line->frame.offset, ++team->heard[line->box][member]);
        }
    }
    forget(team->record);
}

static void crew_tell(team_t *team, int box, uint64_t phase, const char *text, uint16_t flags) {
    CHECK_OK(arrive(team->record, (uint16_t)box, 1, 0, phase, CREW_MASK, text, flags));
    crew_hear(team);
}

static uint64_t crew_completed(const team_t *team, int box) {
    uint64_t completed = team->sent[box];
    for (int i = 0; i < CREW; i++) {
        completed = i / EACH != box && team->heard[box][i] < completed ? team->heard[box][i] : completed;
    }
    return completed;
}

/* In one frame or in several. */
static void crew_send(team_t *team, int box) {
    const int first = box * EACH;
    while (team->arrived[first] > team->sent[box] && team->arrived[first + 1] > team->sent[box]) {
        const uint64_t phase = ++team->sent[box];
        char text[EACH + 1] = "";
        for (int i = first; i < first + EACH; i++) {
            if (team->told[i] < phase) {
                team->told[i] = phase;
                const size_t length = strlen(text);
                text[length] = (char)('a' + i);
                text[length + 1] = 0;
            }
            if (check_below(&team->random, 3) == 0) {
                crew_tell(team, box, phase, text, 0);
                text[0] = 0;
            }
        }
        crew_tell(team, box, phase, text, LAST);
    }
}

/* All have to have heard of all that it has arrived at. */
static void crew_end(team_t *team, int member) {
    const int box = member / EACH;
    team->has_ended[member] = true;
    if (team->arrived[member] <= crew_completed(team, box)) {
        return;
    }
    if (team->told[member] == team->arrived[member]) {
        crew_tell(team, box, team->told[member], "", URGENT);
    }
    while (team->told[member] < team->arrived[member]) {
        crew_tell(team, box, ++team->told[member], (char[2]){(char)('a' + member), 0}, URGENT);
    }
    for (int to = 0; to < CREW_BOXES; to++) {
        CHECK(to == box || team->heard[to][member] == team->arrived[member]);
    }
}

TEST(nodes_that_run_ahead_and_end) {
    const uint16_t map[CREW] = {0, 0, 1, 1, 2, 2, 3, 3};
    uint64_t state = check_seed();
    for (long run = 0; run < check_scale(300); run++) {
        team_t team = {.record = begin(CREW_BOXES, map, CREW, 1 << 20), .random = check_random(&state)};
        for (int step = 0; step < 400; step++) {
            const int member = (int)check_below(&team.random, CREW), box = member / EACH;
            if (team.has_ended[member] || team.arrived[member] >= crew_completed(&team, box) + AHEAD) {
                continue;
            }
            team.arrived[member]++;
            crew_send(&team, box);
            if (step > 200 && check_below(&team.random, 20) == 0) {
                crew_end(&team, member);
            }
        }
        end(team.record);
    }
}

/* Two boxes of three that know their secrets. */
TEST(anything_is_said_by_boxes) {
    static const uint16_t map[] = {0, 1, 1, 2};
    static unsigned char body[ANY_FRAME_BYTES];
    uint64_t state = check_seed();
    for (long round = check_scale(400); round > 0; round--) {
        record_t *record = begin(3, map, 4, 1 << 20);
        for (int i = 0; i < 200; i++) {
            spc_frame_t frame;
            const uint16_t box = (uint16_t)check_below(&state, 2);
            any_frame(&state, &frame, body);
            frame.source =
                check_below(&state, 4) != 0 ? box : frame.source; /* of the rank of that number, too */
            (void)spc_server_job_take(record->job, box, &frame, body);
            CHECK(spc_server_job_collected(record->job) <= 1 << 20);
            forget(record);
        }
        end(record);
    }
}

TEST_MAIN()
