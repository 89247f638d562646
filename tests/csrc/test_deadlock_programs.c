/* SPDX-License-Identifier: MIT */
/*
 * Programs of 2 to 4 nodes, in one box and in two: the nodes that an oracle finds blocked are proven to wait for ever,
 * at the operations where it finds them, and no others. Most random programs are correct ones with a mistake or two. A
 * scene is a program for each rule of the proof; it is played in every division of its nodes between two boxes.
 *
 * CHECK_PROGRAM=number plays one program of a seed alone; CHECK_SIDE=number sets how many are played side by side.
 */
#include "wide_box.h"

#include <unistd.h>

#include "diagnose/spc_deadlock.h"
#include "segment/spc_board.h"

enum {
    NODES_MIN = 2,
    NODES_MAX = 4,
    STEPS_MAX = 12,
    TAGS = 2,
    SIDE = 24,
    MESSAGE_BYTES_MAX = 400,
    LOOKS = 200
};
enum {
    HANDLED = TAGS,
    FLOOD_MESSAGES = 2000,
    FLOOD_BYTES = 3000,
    QUEUE_BYTES = 100000,
    ANY = SPC_ANY_SOURCE
};

/* ---- programs */

/* Random programs have those up to COMPUTE. 0: the program is over. */
typedef enum operation {
    SEND = 1,
    SSEND,
    RECEIVE,
    MEET,
    MEET_IN_PART,
    COMPUTE,
    PROBE,
    RECEIVE_TIMED, /* for a day */
    ENTER,         /* a fuzzy barrier */
    WAIT,          /* for its end */
    CYCLE,         /* of coordinated messages, until it is over */
    GROUP,         /* made of all nodes */
    FLOOD,         /* sends more than the queues hold */
    DRAIN,         /* receives that */
    HANDLE,        /* messages with tag HANDLED have a handler, which starts a thread */
    THREAD,        /* another one of the program, which does not end */
    UNTIL_STUCK,   /* computes until the peer waits */
    UNTIL_LOOKED,  /* computes until many looks have proven nothing */
    UNTIL_PROVEN   /* computes until all are proven that ever will be */
} operation_t;

static const char *const names[] = {
    "end",   "send",          "ssend",  "receive",     "barrier",      "part barrier", "compute",
    "probe", "timed receive", "enter",  "wait",        "cycle",        "group",        "flood",
    "drain", "handle",        "thread", "until stuck", "until looked", "until proven",
};

typedef struct step {
    operation_t operation;
    int peer;
    int tag; /* of COMPUTE: milliseconds */
} step_t;

typedef struct program {
    uint64_t number;
    int nodes;
    int count[NODES_MAX];
    step_t step[NODES_MAX][STEPS_MAX];
} program_t;

/* All nodes but the last, if there are at least three. */
static bool is_in_part(const program_t *program, int rank) {
    return program->nodes < 3 || rank < program->nodes - 1;
}

static void append(program_t *program, int rank, step_t step) {
    if (program->count[rank] < STEPS_MAX) {
        program->step[rank][program->count[rank]++] = step;
    }
}

/* An exchange that is correct if those before it are. */
static void append_exchange(program_t *program, uint64_t *state) {
    const operation_t operation = (operation_t)(SEND + check_below(state, COMPUTE));
    const int from = (int)check_below(state, (uint64_t)program->nodes);
    const int to = (from + 1 + (int)check_below(state, (uint64_t)program->nodes - 1)) % program->nodes;
    const int tag = (int)check_below(state, TAGS);
    if (operation == MEET || operation == MEET_IN_PART) {
        for (int rank = 0; rank < program->nodes; rank++) {
            if (operation == MEET || is_in_part(program, rank)) {
                append(program, rank, (step_t){.operation = operation});
            }
        }
    } else if (operation == COMPUTE) {
        append(program, from,
               (step_t){COMPUTE, 0, (int)check_below(state, 2) * (int)check_below(state, 150)});
    } else {
        append(program, from, (step_t){operation == SSEND ? SSEND : SEND, to, tag});
        append(program, to, (step_t){RECEIVE, from, tag});
    }
}

static void make_mistake(program_t *program, uint64_t *state) {
    const int rank = (int)check_below(state, (uint64_t)program->nodes);
    const int count = program->count[rank];
    step_t *steps = program->step[rank];
    if (count < 2) {
        return;
    }
    const int at = (int)check_below(state, (uint64_t)count - 1);
    const step_t first = steps[at];
    switch (check_below(state, 4)) {
    case 0:
        memmove(&steps[at], &steps[at + 1], sizeof(*steps) * (size_t)(count - at - 1));
        program->count[rank]--;
        break;
    case 1:
        steps[at] = steps[at + 1];
        steps[at + 1] = first;
        break;
    case 2:
        steps[at].tag = steps[at].operation == COMPUTE ? first.tag : 1 - first.tag;
        break;
    default:
        steps[at] = (step_t){RECEIVE, (rank + 1) % program->nodes, 0};
    }
}

static program_t draw(uint64_t seed, uint64_t number) {
    uint64_t state = seed ^ number * UINT64_C(0x9e3779b97f4a7c15);
    program_t program = {.number = number};
    program.nodes = NODES_MIN + (int)check_below(&state, NODES_MAX - NODES_MIN + 1);
    for (uint64_t left = 2 + check_below(&state, 6); left > 0; left--) {
        append_exchange(&program, &state);
    }
    for (uint64_t left = check_below(&state, 3); left > 0; left--) {
        make_mistake(&program, &state);
    }
    return program;
}

static void show(const program_t *program) {
    for (int rank = 0; rank < program->nodes; rank++) {
        fprintf(stderr, "node %d:", rank);
        for (int i = 0; i < program->count[rank]; i++) {
            const step_t *step = &program->step[rank][i];
            fprintf(stderr, " %d %s(%d, %d);", i, names[step->operation], step->peer, step->tag);
        }
        fputc('\n', stderr);
    }
}

/* ---- the oracle: every order of steps ends in the same place */

typedef enum fate { RUNS, ENDS, FAILS, BLOCKED } fate_t;

typedef struct end {
    fate_t fate;
    int at;
} end_t;

typedef struct world {
    const program_t *program;
    end_t end[NODES_MAX];
    int sent[NODES_MAX][NODES_MAX][TAGS + 1], received[NODES_MAX][NODES_MAX][TAGS + 1];
    int awaits[NODES_MAX]; /* of SSEND: which message of its kind it is; 0: not sent yet */
    int arrived[GROUP + 1][NODES_MAX];
    bool is_here[NODES_MAX]; /* counted in `arrived` */
} world_t;

static bool has_left(const world_t *world, int rank) {
    return world->end[rank].fate == ENDS || world->end[rank].fate == FAILS;
}

/* RUNS: the step is complete. */
static fate_t meet_in_world(world_t *world, int rank, operation_t operation) {
    const bool in_part = operation == MEET_IN_PART;
    int *arrived = world->arrived[operation == WAIT ? ENTER : operation];
    arrived[rank] += !world->is_here[rank] && operation != WAIT;
    world->is_here[rank] = true;
    bool all = true, fails = false;
    for (int other = 0; other < world->program->nodes; other++) {
        const bool is_missing =
            (!in_part || is_in_part(world->program, other)) && arrived[other] < arrived[rank];
        all = all && !is_missing;
        fails = fails || (is_missing && has_left(world, other));
    }
    return all ? RUNS : fails ? FAILS : BLOCKED;
}

/* A receive from anybody: no program leaves it a choice. */
static fate_t receive_in_world(world_t *world, int rank, const step_t *step) {
    bool all_left = true;
    for (int peer = 0; peer < world->program->nodes; peer++) {
        int *received = &world->received[peer][rank][step->tag];
        if (peer == rank || (step->peer != ANY && peer != step->peer)) {
            continue;
        }
        if (*received < world->sent[peer][rank][step->tag]) {
            *received += step->operation != PROBE;
            return RUNS;
        }
        all_left = all_left && has_left(world, peer);
    }
    return all_left ? FAILS : BLOCKED;
}

static fate_t play_step(world_t *world, int rank, const step_t *step) {
    if (step->operation == RECEIVE || step->operation == PROBE || step->operation == RECEIVE_TIMED
        || step->operation == DRAIN) {
        return receive_in_world(world, rank, step);
    }
    int *sent = world->sent[rank][step->peer], *received = world->received[rank][step->peer];
    switch (step->operation) {
    case SEND:
        sent[step->tag]++;
        return RUNS;
    case SSEND:
    case FLOOD:
        world->awaits[rank] = world->awaits[rank] != 0 ? world->awaits[rank] : ++sent[step->tag];
        if (received[step->tag] >= world->awaits[rank]) {
            return RUNS;
        }
        return has_left(world, step->peer) ? FAILS : BLOCKED;
    case MEET_IN_PART:
        return !is_in_part(world->program, rank) ? RUNS : meet_in_world(world, rank, MEET_IN_PART);
    case MEET:
    case WAIT:
    case CYCLE:
    case GROUP:
        return meet_in_world(world, rank, step->operation);
    case ENTER:
        world->arrived[ENTER][rank]++;
        return RUNS;
    default:
        return RUNS;
    }
}

static void play_node(world_t *world, int rank) {
    end_t *end = &world->end[rank];
    while (!has_left(world, rank)) {
        end->fate = end->at == world->program->count[rank]
                        ? ENDS
                        : play_step(world, rank, &world->program->step[rank][end->at]);
        if (end->fate != RUNS) {
            return;
        }
        end->at++;
        world->awaits[rank] = 0;
        world->is_here[rank] = false;
    }
}

/* A step begins in one round, and is complete in a later one at most. */
static void foresee(const program_t *program, end_t end[NODES_MAX]) {
    world_t world = {.program = program};
    for (int round = 0; round < 2 * NODES_MAX * STEPS_MAX; round++) {
        for (int rank = 0; rank < program->nodes; rank++) {
            play_node(&world, rank);
        }
    }
    memcpy(end, world.end, sizeof(world.end));
}

/* ---- the stage */

/* A program for a rule; `doubts`: of each node, why nothing is proven; `unheard`: the test rings for node 0. */
typedef struct scene {
    const char *name;
    step_t step[NODES_MAX][4];
    uint32_t doubts[NODES_MAX];
    bool unheard;
} scene_t;

typedef struct stage stage_t;

typedef struct player {
    stage_t *stage;
    int rank;
    spc_comm_t *comm, *part;
    uint64_t phase;          /* of ENTER */
    _Atomic int32_t threads; /* others of its program, as it says */
    _Atomic int32_t at;
    end_t end;
    _Atomic bool leaves; /* is not called off any more */
} player_t;

struct stage {
    const program_t *program;
    const scene_t *scene; /* NULL: a random program */
    end_t expected[NODES_MAX];
    int boxes;
    comm_box_t alone; /* of one box */
    wide_box_t wide;
    player_t player[NODES_MAX];
    spc_deadlock_t *deadlock, *vain; /* of one box */
    int blocked; /* nodes, as the oracle says */
    _Atomic int looks; /* that proved nothing, while all waited that could */
    _Atomic int said; /* times that a gateway has said that nodes are blocked */
    _Atomic bool proven;
    _Atomic bool over; /* their waits are called off */
    _Atomic int called_off, gone;
};

static const comm_box_t *box_of(const stage_t *stage, int rank) {
    return stage->boxes == 1 ? &stage->alone : &stage->wide.box[stage->wide.place[rank]];
}

static _Noreturn void fail(const stage_t *stage, int rank, const char *text, end_t found) {
    static const char *const fates[] = {"runs", "ends", "fails", "is blocked"};
    fprintf(stderr,
            "CHECK_PROGRAM=%" PRIu64
            ", %d box%s, node %d: %s: it %s at step %d; the oracle: it %s at step %d\n",
            stage->program->number, stage->boxes, stage->boxes == 1 ? "" : "es", rank, text,
            fates[found.fate], found.at, fates[stage->expected[rank].fate], stage->expected[rank].at);
    show(stage->program);
    CHECK_FAIL("not as the oracle says");
}

static int is_called_off(void *argument) {
    const player_t *player = argument;
    return atomic_load(&player->stage->over) && !atomic_load(&player->leaves);
}

/* The line is the step; 0: none. */
static int32_t locate(void *argument, spc_board_entry_t *entry, uint64_t *own_signals) {
    const player_t *player = argument;
    (void)own_signals;
    entry->line = (uint32_t)player->at + 1;
    return atomic_load(&player->threads);
}

static int start_thread(void *argument) {
    player_t *player = argument;
    spc_message_t message;
    while (spc_comm_take_handled(player->comm, &message) == SPC_OK) {
        spc_message_release(player->comm, &message);
        atomic_store(&player->threads, 1);
    }
    return 0;
}

static int meet(spc_comm_t *comm) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    return spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE);
}

static int receive(spc_comm_t *comm, const step_t *step) {
    const uint64_t deadline_ns = step->operation == RECEIVE_TIMED ? in_seconds(86400) : SPC_NO_DEADLINE;
    spc_message_t message;
    const int status = recv_until(comm, step->peer, step->tag, deadline_ns, &message);
    if (status == SPC_OK) {
        spc_message_release(comm, &message);
    }
    return status;
}

static int send_to(spc_comm_t *comm, const step_t *step, uint64_t bytes) {
    unsigned char content[MESSAGE_BYTES_MAX] = {0};
    const spc_payload_t payload = content_payload(content, bytes);
    if (step->operation == SSEND) {
        return spc_comm_ssend(comm, step->peer, SPC_CONTEXT_USER, step->tag, &payload, SPC_NO_DEADLINE);
    }
    /* A node that has ended needs no message: the send fails or not, in any order. */
    (void)spc_comm_send(comm, &step->peer, 1, SPC_CONTEXT_USER, step->tag, &payload, SPC_NO_DEADLINE);
    return SPC_OK;
}

static int flood(spc_comm_t *comm, const step_t *step) {
    int status = SPC_OK;
    for (int i = 0; i < FLOOD_MESSAGES && status == SPC_OK; i++) {
        status = step->operation == DRAIN
                     ? receive(comm, step)
                     : send_until(comm, &step->peer, 1, step->tag, 1, FLOOD_BYTES, SPC_NO_DEADLINE);
    }
    return status;
}

static int end_cycle(spc_comm_t *comm) {
    spc_message_t message;
    bool over;
    return spc_comm_coordinated_recv(comm, SPC_NO_DEADLINE, &message, &over);
}

static int make_group(const player_t *player) {
    static const uint32_t members[NODES_MAX] = {0, 1, 2, 3};
    spc_comm_t *group;
    return spc_comm_create_group(player->comm, members, (uint32_t)player->stage->program->nodes, 5,
                                 SPC_NO_DEADLINE, &group);
}

static uint32_t stuck_of(const stage_t *stage, int rank) {
    return spc_board_stuck(spc_segment_part(&box_of(stage, rank)->segment, SPC_REGION_BOARD, (uint32_t)rank));
}

static int compute(const player_t *player, const step_t *step) {
    const stage_t *stage = player->stage;
    while (!atomic_load(&stage->over)
           && (step->operation == UNTIL_STUCK    ? !spc_board_is_stuck(stuck_of(stage, step->peer))
               : step->operation == UNTIL_LOOKED ? atomic_load(&stage->looks) < LOOKS
                                                 : !atomic_load(&stage->proven))) {
        usleep(500);
    }
    return SPC_OK;
}

static int probe(spc_comm_t *comm, const step_t *step) {
    int32_t source, tag;
    uint64_t bytes;
    return spc_comm_probe(comm, SPC_CONTEXT_USER, step->peer, step->tag, SPC_NO_DEADLINE, &source, &tag,
                          &bytes);
}

static int act(player_t *player, const step_t *step, uint64_t bytes) {
    spc_comm_t *comm = player->comm;
    switch (step->operation) {
    case SEND:
    case SSEND:
        return send_to(comm, step, bytes);
    case RECEIVE:
    case RECEIVE_TIMED:
        return receive(comm, step);
    case PROBE:
        return probe(comm, step);
    case FLOOD:
    case DRAIN:
        return flood(comm, step);
    case MEET:
        return meet(comm);
    case MEET_IN_PART:
        return player->part != NULL ? meet(player->part) : SPC_OK;
    case ENTER:
        return spc_comm_fuzzy_enter(comm, &player->phase);
    case WAIT:
        return spc_comm_fuzzy_wait(comm, player->phase, SPC_NO_DEADLINE);
    case CYCLE:
        return end_cycle(comm);
    case GROUP:
        return make_group(player);
    case HANDLE:
        return spc_comm_handle(comm, HANDLED);
    case THREAD:
        atomic_store(&player->threads, 1);
        return SPC_OK;
    case COMPUTE:
        usleep((useconds_t)step->tag * 1000);
        return SPC_OK;
    default:
        return compute(player, step);
    }
}

static void play(int rank, int size, void *argument) {
    stage_t *stage = argument;
    player_t *player = &stage->player[rank];
    const comm_box_t *box = box_of(stage, rank);
    const spc_comm_options_t options = {
        .descriptor = box->descriptor,
        .rank = (uint32_t)rank,
        .check = is_called_off,
        .handle = start_thread,
        .locate = locate,
        .check_argument = player,
        .own_signals = UINT64_C(1) << (SIGALRM - 1), /* the test's own */
    };
    uint64_t state = stage->program->number + (uint64_t)rank;
    (void)size;
    player->at = -1;
    CHECK_OK(spc_comm_create_within(ONE_MAPPING ? &box->segment : NULL, &options, &player->comm));
    CHECK_OK(spc_comm_split(player->comm, is_in_part(stage->program, rank) ? 0 : -1, 0, SPC_NO_DEADLINE,
                            &player->part));
    int status = SPC_OK;
    for (player->at = 0; player->at < stage->program->count[rank]; player->at++) {
        status = act(player, &stage->program->step[rank][player->at], check_below(&state, MESSAGE_BYTES_MAX));
        if (status != SPC_OK) {
            break;
        }
    }
    player->end = (end_t){status == SPC_OK ? ENDS : status == SPC_EINTERRUPTED ? BLOCKED : FAILS, player->at};
    if (player->end.fate == FAILS && status != SPC_EFINISHED) {
        CHECK_FAIL("program %" PRIu64 ": status %d", stage->program->number, status);
    }
    atomic_store(&player->leaves, true);
    if (player->end.fate == BLOCKED) { /* whoever leaves ends waits of others */
        atomic_fetch_add(&stage->called_off, 1);
        while (atomic_load(&stage->called_off) < stage->blocked) {
            spc_platform_yield();
        }
    }
    if (player->part != NULL) {
        (void)spc_comm_close(player->part, AT_ONCE);
        spc_comm_destroy(player->part);
    }
    (void)spc_comm_close(player->comm, player->end.fate == BLOCKED ? AT_ONCE : SPC_NO_DEADLINE);
    spc_comm_destroy(player->comm);
    spc_comm_mark_ended(&box->segment, (uint32_t)rank, SPC_NODE_FINISHED, 0);
    atomic_fetch_add(&stage->gone, 1);
}

static void *play_all(void *argument) {
    stage_t *stage = argument;
    check_threads(stage->program->nodes, play, stage);
    return NULL;
}

/* ---- verdicts */

/* The boards of a proof; returns how many nodes it is about. `is_vain`: what they wait for never comes; it may fail. */
static int check_proof(const stage_t *stage, const spc_segment_t *segment, const spc_deadlock_t *deadlock,
                       bool is_vain) {
    int found = 0;
    for (int rank = 0; rank < stage->program->nodes; rank++) {
        const spc_board_shared_t *board = spc_segment_part(segment, SPC_REGION_BOARD, (uint32_t)rank);
        const uint32_t stuck = spc_board_stuck(board);
        const end_t *expected = &stage->expected[rank];
        spc_board_entry_t entry;
        if (deadlock != NULL ? !spc_deadlock_has(deadlock, (uint32_t)rank) : !spc_board_is_stuck(stuck)) {
            continue;
        }
        const bool is_known = spc_board_read(board, stuck, &entry);
        const end_t wait = {BLOCKED, is_known ? (int)entry.line - 1 : -1};
        const bool is_right = expected->fate == BLOCKED || (is_vain && expected->fate == FAILS);
        if (!is_right || (is_known && wait.at != expected->at) || (!is_known && !is_vain)) {
            if (is_right && !is_known) {
                continue; /* it has failed meanwhile */
            }
            fail(stage, rank, is_vain ? "waits in vain" : "deadlock", wait);
        }
        found++;
    }
    return found;
}

typedef struct verdict {
    int blocked; /* nodes */
    int vain;
} verdict_t;

static void look_alone(stage_t *stage, verdict_t *verdict) {
    if (spc_deadlock_look(stage->deadlock) != 0) {
        verdict->blocked = check_proof(stage, &stage->alone.segment, stage->deadlock, false);
    }
    if (spc_deadlock_look(stage->vain) != 0) {
        const int found = check_proof(stage, &stage->alone.segment, stage->vain, true);
        verdict->vain = found > verdict->vain ? found : verdict->vain;
    }
}

static void look_over_boxes(stage_t *stage, verdict_t *verdict) {
    for (int box = 0; box < WIDE_BOXES; box++) {
        const spc_segment_t *together;
        const spc_gateway_proof_t proof = spc_gateway_blocked(stage->wide.gateway[box], &together);
        CHECK(box == 0 || proof == SPC_GATEWAY_PROVEN_NOTHING || stage->scene == NULL);
        if (proof == SPC_GATEWAY_PROVEN_DEADLOCK) {
            verdict->blocked = check_proof(stage, together, NULL, false);
        } else if (proof == SPC_GATEWAY_PROVEN_VAIN) {
            const int found = check_proof(stage, together, NULL, true);
            verdict->vain = found > verdict->vain ? found : verdict->vain;
            spc_gateway_go_on(stage->wide.gateway[box]);
        }
    }
}

/* ---- a run */

static void call_off(stage_t *stage) {
    atomic_store(&stage->over, true);
    while (atomic_load(&stage->gone) != stage->program->nodes) {
        for (int rank = 0; rank < stage->program->nodes; rank++) {
            const spc_segment_t *segment = &box_of(stage, rank)->segment;
            spc_event_raise(spc_segment_part(segment, SPC_REGION_EVENT, (uint32_t)rank),
                            segment->config->features);
        }
        usleep(1000);
    }
}

static void note_blocked(void *argument) {
    atomic_fetch_add(&((stage_t *)argument)->said, 1);
}

static void open_stage(stage_t *stage, uint64_t *state) {
    const spc_config_t config = {.nodes = (uint32_t)stage->program->nodes,
                                 .arena_bytes = 1 << 20,
                                 .ring_bytes = 1 << 14,
                                 .slots = 16,
                                 .queue_limit_bytes = QUEUE_BYTES,
                                 .scratch_bytes = 1024};
    if (stage->boxes == 1) {
        stage->alone = comm_box_open(config);
        CHECK_OK(spc_deadlock_create(&stage->alone.segment, &stage->deadlock));
        CHECK_OK(spc_deadlock_create(&stage->alone.segment, &stage->vain));
        spc_deadlock_find_vain(stage->vain);
        return;
    }
    uint16_t place[NODES_MAX];
    const spc_gateway_options_t options = {.blocked = note_blocked, .argument = stage};
    for (int rank = 0; rank < NODES_MAX; rank++) {
        place[rank] = stage->scene != NULL ? stage->program->number >> rank & 1
                                           : (uint16_t)check_below(state, WIDE_BOXES);
    }
    place[1] = 1 - place[0]; /* both boxes have a node */
    wide_open_with(&stage->wide, config, place, (const spc_gateway_options_t[]){options, options});
}

static void close_stage(stage_t *stage) {
    if (stage->boxes == 1) {
        spc_deadlock_destroy(stage->deadlock);
        spc_deadlock_destroy(stage->vain);
        comm_box_close(&stage->alone);
    } else {
        wide_close(&stage->wide);
    }
}

/* Have the blocked nodes come to the steps at which they are? */
static bool are_blocked(const stage_t *stage) {
    for (int rank = 0; rank < stage->program->nodes; rank++) {
        const end_t *expected = &stage->expected[rank];
        if (expected->fate == BLOCKED && atomic_load(&stage->player[rank].at) != expected->at) {
            return false;
        }
    }
    return true;
}

/* Each node waits, with the doubts that the scene expects of it, computes until a look, or has gone. */
static bool all_wait(const stage_t *stage) {
    for (int rank = 0; rank < stage->program->nodes; rank++) {
        const int32_t at = atomic_load(&stage->player[rank].at);
        const spc_segment_t *segment = &box_of(stage, rank)->segment;
        const uint32_t stuck = stuck_of(stage, rank);
        spc_board_entry_t entry;
        if (at < 0
            || (at < stage->program->count[rank] && stage->program->step[rank][at].operation < UNTIL_STUCK
                && !(spc_board_is_stuck(stuck)
                     && spc_board_read(spc_segment_part(segment, SPC_REGION_BOARD, (uint32_t)rank), stuck,
                                       &entry)
                     && entry.doubts == stage->scene->doubts[rank]))) {
            return false;
        }
    }
    return true;
}

static bool is_vague(const scene_t *scene) {
    bool found = false;
    for (int rank = 0; scene != NULL && rank < NODES_MAX; rank++) {
        found = found || scene->doubts[rank] != 0;
    }
    return found;
}

/* Nothing may be proven before the looks are over that a scene wants; if it is vague, ever. */
static bool wants_looks(const stage_t *stage) {
    bool found = is_vague(stage->scene);
    for (int rank = 0; stage->scene != NULL && rank < stage->program->nodes; rank++) {
        for (int i = 0; i < stage->program->count[rank]; i++) {
            found = found || stage->program->step[rank][i].operation == UNTIL_LOOKED;
        }
    }
    return found;
}

/* The test rings for a node, or in its place, and wakes nobody: it is not blocked until it has looked. */
static void ring_unheard(stage_t *stage) {
    spc_event_shared_t *event = spc_segment_part(&stage->alone.segment, SPC_REGION_EVENT, 0);
    for (int round = 0; round < 3;) {
        while (spc_deadlock_look(stage->deadlock) != (uint32_t)stage->blocked) {
            spc_platform_yield();
        }
        const uint32_t before = stuck_of(stage, 0);
        atomic_fetch_add(&event->word, 1);
        const uint32_t found = spc_deadlock_look(stage->deadlock);
        const bool has_looked = !spc_board_is_stuck(before) || stuck_of(stage, 0) != before;
        CHECK(found == 0 || has_looked);
        round += !has_looked;
        spc_event_raise(event, stage->alone.segment.config->features);
    }
}

static bool is_decided(const stage_t *stage, const verdict_t *verdict) {
    if (is_vague(stage->scene)) {
        return atomic_load(&stage->looks) >= LOOKS;
    }
    return stage->blocked == 0
               ? atomic_load(&stage->gone) == stage->program->nodes
               : verdict->blocked >= (stage->boxes == 1 || stage->scene != NULL ? stage->blocked : 1);
}

static void set_stage(stage_t *stage, const program_t *program, const scene_t *scene, int boxes) {
    uint64_t state = program->number;
    *stage = (stage_t){.program = program, .scene = scene, .boxes = boxes};
    foresee(program, stage->expected);
    for (int rank = 0; rank < program->nodes; rank++) {
        stage->player[rank] = (player_t){.stage = stage, .rank = rank};
        stage->blocked += stage->expected[rank].fate == BLOCKED;
    }
    open_stage(stage, &state);
}

static void check_ends(const stage_t *stage) {
    for (int rank = 0; rank < stage->program->nodes; rank++) {
        const end_t *end = &stage->player[rank].end;
        if (end->fate != stage->expected[rank].fate || end->at != stage->expected[rank].at) {
            fail(stage, rank, "its end", *end);
        }
    }
}

/* Until every blocked node is proven so (of random programs in several boxes: any, and the others are counted); or all
 * have ended. */
static verdict_t perform(const program_t *program, const scene_t *scene, int boxes) {
    stage_t stage;
    verdict_t verdict = {0, 0};
    pthread_t thread;
    set_stage(&stage, program, scene, boxes);
    if (boxes != 1) {
        wide_start(&stage.wide);
    }
    CHECK_OK(pthread_create(&thread, NULL, play_all, &stage));
    while (!is_decided(&stage, &verdict)) {
        const bool counts = scene != NULL && all_wait(&stage);
        (boxes == 1 ? look_alone : look_over_boxes)(&stage, &verdict);
        if (verdict.blocked != 0 && atomic_load(&stage.looks) < LOOKS && wants_looks(&stage)) {
            CHECK_FAIL("%s: proven too early", scene->name);
        }
        atomic_fetch_add(&stage.looks, counts);
        usleep(scene != NULL && boxes == 1 ? 0 : 2000);
    }
    atomic_store(&stage.proven, true);
    if (boxes == 1 && scene != NULL && scene->unheard) {
        ring_unheard(&stage);
    }
    /* Those that the proof leaves out may still end, fail, or come to where they are blocked, by themselves. */
    while (atomic_load(&stage.gone) != program->nodes - stage.blocked || !are_blocked(&stage)) {
        usleep(1000);
    }
    call_off(&stage);
    CHECK_OK(pthread_join(thread, NULL));
    check_ends(&stage);
    CHECK(boxes == 1 || scene == NULL || verdict.vain != 0
          || atomic_load(&stage.said) == (verdict.blocked != 0));
    close_stage(&stage);
    return verdict;
}

/* ---- scenes */

/* clang-format off */
#define SCENE(title, ...) .name = (title), .step = {__VA_ARGS__}
#define ONE(operation, peer) {{operation, peer, 0}}
#define TWO(first, first_peer, second, peer) {{first, first_peer, 0}, {second, peer, 0}}

static const scene_t scenes[] = {
    {SCENE("a circle of receives", ONE(RECEIVE, 1), ONE(RECEIVE, 2), ONE(RECEIVE, 0)), .unheard = true},
    {SCENE("a circle of four", ONE(RECEIVE, 1), ONE(RECEIVE, 2), ONE(RECEIVE, 3), ONE(RECEIVE, 0))},
    {SCENE("a circle of probes", ONE(PROBE, 1), ONE(PROBE, 0))},
    {SCENE("a knot of any", ONE(RECEIVE, ANY), ONE(RECEIVE, 0), TWO(UNTIL_LOOKED, 0, RECEIVE, ANY))},
    {SCENE("a closed subset while one computes, and one that waits for it", ONE(RECEIVE, 1), ONE(RECEIVE, 0),
           ONE(UNTIL_PROVEN, 0), ONE(RECEIVE, 2))},
    {SCENE("one ends, two are a knot", ONE(RECEIVE, ANY), ONE(RECEIVE, ANY), ONE(UNTIL_LOOKED, 0))},
    {SCENE("a barrier that one never reaches", ONE(MEET, 0), ONE(RECEIVE, 0), TWO(UNTIL_LOOKED, 0, MEET, 0))},
    {SCENE("a fuzzy barrier that one never reaches, and one that goes on has", TWO(ENTER, 0, WAIT, 0),
           ONE(RECEIVE, 2), TWO(ENTER, 0, WAIT, 0), TWO(ENTER, 0, UNTIL_PROVEN, 0))},
    {SCENE("a cycle that one never reaches", ONE(CYCLE, 0), ONE(RECEIVE, 0), TWO(UNTIL_LOOKED, 0, CYCLE, 0))},
    {SCENE("a group that one never joins", ONE(GROUP, 0), ONE(GROUP, 0), ONE(RECEIVE, 0))},
    {SCENE("full queues", ONE(FLOOD, 1), ONE(FLOOD, 0))},
    {SCENE("a full queue that is emptied", TWO(FLOOD, 1, RECEIVE, 1),
           {{UNTIL_LOOKED, 0, 0}, {DRAIN, 0, 0}, {RECEIVE, 0, 0}})},
    {SCENE("a time limit", ONE(RECEIVE_TIMED, 1), ONE(RECEIVE, 0)), .doubts = {SPC_BOARD_TIMED}},
    {SCENE("another thread", TWO(THREAD, 0, RECEIVE, 1), ONE(RECEIVE, 0)), .doubts = {SPC_BOARD_THREADS}},
    {SCENE("a handler that may send", TWO(HANDLE, 0, RECEIVE, 1), ONE(RECEIVE, 0),
           TWO(UNTIL_LOOKED, 0, RECEIVE, 0))},
    {SCENE("a handler that starts a thread", TWO(HANDLE, 0, RECEIVE, 1),
           {{UNTIL_STUCK, 0, 0}, {SEND, 0, HANDLED}, {RECEIVE, 0, 0}}), .doubts = {SPC_BOARD_THREADS}},
};

/* All wait, and a message lies where the gateway of box 1 has not looked. */
static const scene_t chain = {SCENE("a chain over two boxes", TWO(RECEIVE, 1, SEND, 3), TWO(SEND, 0, RECEIVE, 2),
                                    TWO(RECEIVE, 3, SEND, 1), TWO(RECEIVE, 0, SEND, 2))};
/* clang-format on */

static program_t program_of(const scene_t *scene, uint64_t number) {
    program_t program = {.number = number};
    for (int rank = 0; rank < NODES_MAX && scene->step[rank][0].operation != 0; rank++, program.nodes++) {
        for (int i = 0; scene->step[rank][i].operation != 0; i++) {
            append(&program, rank, scene->step[rank][i]);
        }
    }
    return program;
}

/* In one box, and in two with node 0 in box 0, node 1 in box 1, and the others anywhere. */
static void each_rule(void) {
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        program_t program = program_of(&scenes[i], 0);
        (void)perform(&program, &scenes[i], 1);
        for (; program.number < UINT64_C(1) << program.nodes; program.number += 4) {
            (void)perform(&program, &scenes[i], WIDE_BOXES);
        }
    }
}

static void a_silent_box_proves_nothing(void) {
    const program_t program = program_of(&chain, 8); /* nodes 1 and 3 are in box 1 */
    stage_t stage;
    pthread_t thread, *gateways = stage.wide.thread;
    spc_link_counts_t counts = {0};
    const spc_segment_t *together;
    set_stage(&stage, &program, &chain, WIDE_BOXES);
    CHECK_OK(pthread_create(&gateways[0], NULL, wide_run_gateway, stage.wide.gateway[0]));
    CHECK_OK(pthread_create(&thread, NULL, play_all, &stage));
    while (counts.sent[SPC_FRAME_BOARD].frames < 2) { /* it has asked, and has read its own */
        spc_gateway_count(stage.wide.gateway[0], &counts);
        spc_platform_yield();
    }
    CHECK_EQ(spc_gateway_blocked(stage.wide.gateway[0], &together), SPC_GATEWAY_PROVEN_NOTHING);
    CHECK_OK(pthread_create(&gateways[1], NULL, wide_run_gateway, stage.wide.gateway[1]));
    CHECK_OK(pthread_join(thread, NULL));
    check_ends(&stage);
    CHECK_EQ(atomic_load(&stage.said), 0);
    close_stage(&stage);
}

/* ---- all programs */

typedef struct work {
    uint64_t seed;
    long programs;
    _Atomic long next;
    _Atomic long dead, partly, vain[2], failed;
} work_t;

static void play_program(work_t *work, uint64_t number) {
    const program_t program = draw(work->seed, number);
    end_t expected[NODES_MAX];
    int blocked = 0, failed = 0;
    foresee(&program, expected);
    for (int rank = 0; rank < program.nodes; rank++) {
        blocked += expected[rank].fate == BLOCKED;
        failed += expected[rank].fate == FAILS;
    }
    const verdict_t alone = perform(&program, NULL, 1);
    const verdict_t wide = perform(&program, NULL, WIDE_BOXES);
    atomic_fetch_add(&work->dead, blocked != 0);
    atomic_fetch_add(&work->partly, wide.blocked != alone.blocked);
    atomic_fetch_add(&work->failed, failed != 0);
    atomic_fetch_add(&work->vain[0], alone.vain != 0);
    atomic_fetch_add(&work->vain[1], wide.vain != 0);
}

static void *play_programs(void *argument) {
    work_t *work = argument;
    for (long number; (number = atomic_fetch_add(&work->next, 1)) < work->programs;) {
        play_program(work, (uint64_t)number);
    }
    return NULL;
}

static void programs(void) {
    const long one = check_environment("CHECK_PROGRAM", -1);
    const long side = check_environment("CHECK_SIDE", SIDE);
    work_t work = {.seed = check_seed(), .programs = check_scale(2000)};
    pthread_t threads[SIDE * 4];
    if (one >= 0) {
        play_program(&work, (uint64_t)one);
        return;
    }
    for (long i = 0; i < side; i++) {
        CHECK_OK(pthread_create(&threads[i], NULL, play_programs, &work));
    }
    for (long i = 0; i < side; i++) {
        CHECK_OK(pthread_join(threads[i], NULL));
    }
    printf("%ld programs: %ld with blocked nodes (over boxes at first some of them: %ld), %ld with failing "
           "ones; "
           "waits in vain reported: %ld in one box, %ld over boxes\n",
           work.programs, work.dead, work.partly, work.failed, work.vain[0], work.vain[1]);
}

static void run_all(void) {
    RUN(each_rule);
    RUN(a_silent_box_proves_nothing);
    RUN(programs);
}

int main(void) {
    return wide_main(run_all);
}
