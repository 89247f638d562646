/* SPDX-License-Identifier: MIT */
/*
 * deadlock_box: a stage for nodes that wait without end. Ranks are threads; each goes through its part of a scene,
 * which ends in such a wait, and is called off when the test has looked.
 */
#ifndef DEADLOCK_BOX_H
#define DEADLOCK_BOX_H

#include "comm_box.h"

#include "diagnose/spc_deadlock.h"
#include "segment/spc_board.h"

#define NODES_MAX 4
#define CALLED_OFF SPC_EINTERRUPTED
#define LOOKS 200

typedef struct scene scene_t;

typedef struct player {
    scene_t *scene;
    uint32_t rank;
    int32_t threads; /* others of its program, as it says */
    spc_comm_t *comm;
    spc_comm_t *part;
    _Atomic bool leaves;
    _Atomic bool gone;
} player_t;

struct scene {
    comm_box_t box;
    spc_deadlock_t *deadlock;
    uint32_t nodes;
    void (*act)(player_t *player);
    _Atomic bool over; /* waits are called off */
    _Atomic uint32_t ready; /* nodes that have come as far as the test wants them */
    _Atomic uint32_t played;
    _Atomic uint32_t step; /* of the test: nodes that compute wait for it */
    player_t player[NODES_MAX];
};

/* ---- the stage ---- */

static inline int is_called_off(void *argument) {
    const player_t *player = argument;
    return atomic_load(&player->scene->over) && !atomic_load(&player->leaves);
}

static inline int32_t count_threads(void *argument, spc_board_entry_t *entry, uint64_t *own_signals) {
    (void)own_signals;
    const player_t *player = argument;
    entry->line = 100 + player->rank;
    return player->threads;
}

/* A message handler that starts a thread, which does not end. */
static inline int start_thread(void *argument) {
    player_t *player = argument;
    spc_message_t message;
    while (spc_comm_take_handled(player->comm, &message) == SPC_OK) {
        spc_message_release(player->comm, &message);
        player->threads = 1;
    }
    atomic_fetch_add(&player->scene->ready, 1);
    return 0;
}

static inline void play(int rank, int size, void *argument) {
    scene_t *scene = argument;
    player_t *player = &scene->player[rank];
    const spc_comm_options_t options = {
        .descriptor = scene->box.descriptor,
        .rank = (uint32_t)rank,
        .check = is_called_off,
        .handle = start_thread,
        .locate = count_threads,
        .check_argument = player,
        .own_signals = UINT64_C(1) << (SIGALRM - 1), /* the test's own */
    };
    (void)size;
    player->rank = (uint32_t)rank;
    CHECK_OK(spc_comm_create_within(ONE_MAPPING ? &scene->box.segment : NULL, &options, &player->comm));
    scene->act(player);
    atomic_store(&player->leaves, true);
    atomic_fetch_add(&scene->played, 1);
    while (atomic_load(&scene->played) != scene->nodes) { /* who leaves ends waits of others */
        spc_platform_yield();
    }
    if (player->part != NULL) {
        (void)spc_comm_close(player->part, AT_ONCE);
        spc_comm_destroy(player->part);
    }
    (void)spc_comm_close(player->comm, AT_ONCE); /* what is queued may not be sent, or it has left already */
    spc_comm_destroy(player->comm);
    atomic_store(&player->gone, true);
}

static inline void *play_all(void *argument) {
    scene_t *scene = argument;
    check_threads((int)scene->nodes, play, scene);
    return NULL;
}

static inline void call_off(scene_t *scene) {
    atomic_store(&scene->over, true);
    for (uint32_t left = scene->nodes; left != 0;) {
        left = 0;
        for (uint32_t rank = 0; rank < scene->nodes; rank++) { /* again: it may not have slept yet */
            spc_event_raise(spc_segment_part(&scene->box.segment, SPC_REGION_EVENT, rank),
                            scene->box.segment.config->features);
            left += !atomic_load(&scene->player[rank].gone);
        }
        spc_platform_yield();
    }
}

/* Runs the scene; `test` has the looks. */
static inline void perform(spc_config_t config, void (*act)(player_t *player), void (*test)(scene_t *scene)) {
    scene_t scene = {.box = comm_box_open(config), .nodes = config.nodes, .act = act};
    pthread_t thread;
    for (uint32_t rank = 0; rank < NODES_MAX; rank++) {
        scene.player[rank].scene = &scene;
    }
    CHECK_OK(spc_deadlock_create(&scene.box.segment, &scene.deadlock));
    CHECK_OK(pthread_create(&thread, NULL, play_all, &scene));
    test(&scene);
    call_off(&scene);
    CHECK_OK(pthread_join(thread, NULL));
    spc_deadlock_destroy(scene.deadlock);
    comm_box_close(&scene.box);
}

/* ---- looking ---- */

static inline uint32_t stuck_of(const scene_t *scene, uint32_t rank) {
    return spc_board_stuck(spc_segment_part(&scene->box.segment, SPC_REGION_BOARD, rank));
}

static inline spc_board_entry_t entry_of(const scene_t *scene, uint32_t rank) {
    spc_board_entry_t entry;
    uint32_t stuck;
    do {
        stuck = stuck_of(scene, rank);
    } while (
        !spc_board_is_stuck(stuck)
        || !spc_board_read(spc_segment_part(&scene->box.segment, SPC_REGION_BOARD, rank), stuck, &entry));
    return entry;
}

static inline uint32_t look(scene_t *scene) {
    uint32_t mask = 0;
    uint32_t count = spc_deadlock_look(scene->deadlock);
    for (uint32_t rank = 0; rank < scene->nodes; rank++) {
        mask |= spc_deadlock_has(scene->deadlock, rank) ? 1u << rank : 0;
    }
    CHECK_EQ_U(__builtin_popcount(mask), count);
    return mask;
}

/* Until these are proven. What is proven on the way may only be some of them. */
static inline void await(scene_t *scene, uint32_t mask) {
    uint32_t found = 0;
    while (found != mask) {
        found = look(scene);
        CHECK_EQ_U(found & ~mask, 0);
        spc_platform_yield();
    }
}

/* Nothing is found while these wait, all of them, and have published it. */
static inline void nothing_while(scene_t *scene, uint32_t mask) {
    uint32_t looks = 0;
    while (looks < LOOKS) {
        bool all = true;
        for (uint32_t rank = 0; rank < scene->nodes; rank++) {
            all = all && (!(mask >> rank & 1) || spc_board_is_stuck(stuck_of(scene, rank)));
        }
        CHECK_EQ_U(look(scene), 0);
        looks += all;
        spc_platform_yield();
    }
}

static inline void compute_until(const player_t *player, uint32_t step) {
    while (atomic_load(&player->scene->step) < step && !atomic_load(&player->scene->over)) {
        spc_platform_yield();
    }
}

#endif
