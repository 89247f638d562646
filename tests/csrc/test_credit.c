/* SPDX-License-Identifier: MIT */
/* Credit: whatever the map, all that gateways may have under way to one box fits into what the server keeps for it. */
#include "net/wire/spc_credit.h"

#include "net/gateway/spc_gateway_private.h"
#include "net/server/spc_server.h"
#include "net/wire/spc_frame.h"
#include "wide_box.h"

#define MIB (UINT64_C(1) << 20)

enum { JOB = 7 };

/* From all other boxes, for each node of the box that has most: all of its credit. */
static uint64_t towards(const uint16_t *place, uint32_t nodes, uint32_t boxes) {
    const spc_credit_t credit = spc_credit_of_map(place, nodes, boxes);
    uint64_t worst = 0;
    for (uint32_t box = 0; box < boxes; box++) {
        uint64_t bytes = 0;
        for (uint32_t rank = 0; rank < nodes; rank++) {
            bytes += place[rank] == box ? credit.window * (boxes - 1) : 0;
        }
        worst = bytes > worst ? bytes : worst;
    }
    CHECK(worst + SPC_CREDIT_BESIDE_BYTES <= credit.kept);
    CHECK(credit.kept < 64 * MIB);
    /* Messages can be sent: a part is a quarter of the window, and holds more than its own cost. */
    CHECK(credit.window / 4 > 2 * (uint64_t)SPC_CREDIT_FRAME_COST && credit.window <= MIB);
    return worst;
}

static void check_map(const uint16_t *place, uint32_t nodes, uint32_t boxes) {
    (void)towards(place, nodes, boxes);
    if (nodes <= 64 && boxes <= 8) { /* what is usual costs the server no more than it always keeps */
        CHECK_EQ_U(spc_credit_of_map(place, nodes, boxes).kept, 16 * MIB);
    }
    if (nodes <= 64) { /* and if nobody reads at all */
        CHECK(spc_credit_of_map(place, nodes, boxes).window * nodes * (boxes - 1) < 64 * MIB);
    }
}

/* In blocks, in turns, and all in one box but one in each other. */
TEST(every_map) {
    static const uint32_t sizes[] = {2, 3, 4, 8, 63, 64, 65, 100, 256, 512, 1023, SPC_NODES_MAX};
    uint16_t place[SPC_NODES_MAX];
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const uint32_t nodes = sizes[i];
        for (uint32_t boxes = 2; boxes <= SPC_BOXES_MAX && boxes <= nodes; boxes++) {
            for (uint32_t rank = 0; rank < nodes; rank++) {
                place[rank] = (uint16_t)((uint64_t)rank * boxes / nodes);
            }
            check_map(place, nodes, boxes);
            for (uint32_t rank = 0; rank < nodes; rank++) {
                place[rank] = (uint16_t)(rank % boxes);
            }
            check_map(place, nodes, boxes);
            for (uint32_t large = 0; large < boxes; large += boxes - 1) {
                for (uint32_t rank = 0; rank < nodes; rank++) {
                    place[rank] = (uint16_t)(rank < boxes ? rank : large);
                }
                check_map(place, nodes, boxes);
            }
        }
    }
}

/* On the link a frame is never more than what it takes of all its destinations' credit. */
TEST(a_frame_is_never_more_than_its_credit) {
    for (uint64_t count = 1; count <= SPC_NODES_MAX; count++) {
        for (uint64_t length = 0; length < 3; length++) {
            const uint64_t frame =
                SPC_FRAME_HEADER_BYTES + spc_round_up(count * sizeof(uint16_t), 8) + length;
            CHECK(frame <= count * (length + SPC_CREDIT_FRAME_COST));
        }
    }
}

/* One node here, 63 there: the gateway takes the window, and the server the bound, of the same map. */
TEST(both_ask_for_the_same_map) {
    enum { NODES = 64 };
    uint16_t place[NODES];
    for (uint32_t rank = 0; rank < NODES; rank++) {
        place[rank] = rank != 0;
    }
    wide_box_t wide;
    wide_open(&wide, (spc_config_t){.nodes = NODES}, place);
    CHECK(towards(place, NODES, WIDE_BOXES) <= 12 * MIB);
    for (int i = 0; i < WIDE_BOXES; i++) {
        CHECK_EQ_U(wide.gateway[i]->window, spc_credit_of_map(place, NODES, WIDE_BOXES).window);
    }
    wide_free(&wide);
}

/* csrc.mk: in the place of spc_link_create, which the linker calls __real_... What the server asks its links to
 * keep. */
static uint64_t asked_for;
int __real_spc_link_create(const spc_link_options_t *options, spc_link_t **link);
int __wrap_spc_link_create(const spc_link_options_t *options, spc_link_t **link);
int __wrap_spc_link_create(const spc_link_options_t *options, spc_link_t **link) {
    asked_for = options->retained_max;
    return __real_spc_link_create(options, link);
}

static uint64_t bound(uint64_t retained_max, const uint16_t *place, uint32_t nodes, uint16_t boxes) {
    spc_server_t *server;
    CHECK_OK(spc_server_create(&(spc_server_options_t){.retained_max = retained_max}, &server));
    CHECK_OK(spc_server_add_job(server, JOB, boxes, place, nodes));
    spc_server_destroy(server);
    return asked_for;
}

TEST(the_server_keeps_as_much) {
    uint16_t place[SPC_NODES_MAX];
    for (uint32_t rank = 0; rank < SPC_NODES_MAX; rank++) {
        place[rank] = (uint16_t)(rank < SPC_BOXES_MAX ? rank : 5);
    }
    CHECK(towards(place, SPC_NODES_MAX, SPC_BOXES_MAX) > 50 * MIB); /* as much as there can be */
    CHECK_EQ_U(bound(0, place, SPC_NODES_MAX, SPC_BOXES_MAX),
               spc_credit_of_map(place, SPC_NODES_MAX, SPC_BOXES_MAX).kept);
    CHECK_EQ_U(bound(100000, place, SPC_NODES_MAX, SPC_BOXES_MAX), 100000);
    CHECK_EQ_U(bound(0, place, 2, 2), 16 * MIB);
    CHECK_EQ_U(bound(0, (const uint16_t[]){0}, 1, 1), 16 * MIB);
    CHECK_EQ_U(bound(0, NULL, 0, 2), 16 * MIB);
}

TEST_MAIN()
