/* SPDX-License-Identifier: MIT */
/* The segment and its configuration: defaults, limits, the layout of the regions, what is no segment. */
#include "check.h"

#include <sys/mman.h>

#include "base/spc_error.h"
#include "base/spc_platform.h"
#include "segment/spc_segment.h"

/* ---- configuration */

static spc_config_t complete(spc_config_t config) {
    CHECK_OK(spc_config_complete(&config));
    return config;
}

TEST(zeros_become_defaults) {
    spc_config_t config = complete((spc_config_t){.nodes = 2, .features = SPC_FEATURE_memfd});
    CHECK_EQ_U(config.slots, 32);
    CHECK(config.ring_bytes > 0 && config.ring_bytes <= UINT64_C(1) << 20);
    CHECK(config.arena_bytes <= UINT64_C(256) << 20);
    CHECK_EQ_U(config.scratch_bytes, 65536);
    CHECK(config.queue_limit_bytes >= UINT64_C(1) << 20);
    CHECK(2 * (config.ring_bytes + config.arena_bytes) <= spc_platform_memory_limit() / 4);
    CHECK_EQ_U(config.shared_cores, spc_platform_cores() < 2);
}

/* Rings, arenas and the queues of all nodes together, and the gateway's. */
static uint64_t buffers_bytes(const spc_config_t *config) {
    uint64_t shared_bytes = config->ring_bytes + config->arena_bytes + 2 * config->scratch_bytes;
    return (config->nodes + 1) * shared_bytes + 2 * (uint64_t)config->nodes * config->queue_limit_bytes;
}

TEST(all_buffers_fit_a_quarter_of_the_memory) {
    for (uint32_t nodes = 1; nodes <= 512; nodes *= 2) {
        uint64_t quarter_bytes = spc_platform_memory_limit() / 4;
        spc_config_t config = complete((spc_config_t){.nodes = nodes, .features = SPC_FEATURE_memfd});
        CHECK(buffers_bytes(&config) <= quarter_bytes);
        /* A buffer whose size is asked for leaves less to the rest. */
        uint64_t each_bytes = quarter_bytes * 3 / 4 / (2 * nodes);
        config = complete(
            (spc_config_t){.nodes = nodes, .features = SPC_FEATURE_memfd, .queue_limit_bytes = each_bytes});
        CHECK_EQ_U(config.queue_limit_bytes, each_bytes);
        CHECK(buffers_bytes(&config) <= quarter_bytes);
        spc_config_t again = complete(config);
        CHECK_MEM(&again, &config, sizeof config);
    }
}

/* Without an arena there is no split: rows of slots, which grow with the square of the nodes, shrink before it goes. */
TEST(each_node_has_an_arena_if_there_is_memory_for_it) {
    for (uint32_t nodes = 1; nodes <= SPC_NODES_MAX; nodes *= 2) {
        spc_config_t config = complete((spc_config_t){.nodes = nodes, .features = SPC_FEATURE_memfd});
        const uint64_t enough_bytes = nodes * (UINT64_C(18) << 20);
        CHECK(config.arena_bytes >= UINT64_C(1) << 20 || spc_platform_memory_limit() < enough_bytes
              || !spc_platform_memory_is_sparse(config.features));
    }
}

TEST(numbers_given_are_kept) {
    spc_config_t given = {
        .nodes = 16,
        .features = SPC_FEATURE_memfd,
        .slots = 3,
        .fanin = 4,
        .ring_bytes = 4096,
        .arena_bytes = UINT64_C(1) << 36,
        .scratch_bytes = 512,
        .queue_limit_bytes = 4711,
        .shared_cores = 1,
        .sleep_at_once = 1,
        .boxes = 1,
    };
    spc_config_t config = complete(given);
    CHECK_MEM(&config, &given, sizeof config);
    config = complete(config);
    CHECK_MEM(&config, &given, sizeof config);
}

TEST(sizes_are_rounded) {
    spc_config_t config = complete((spc_config_t){.nodes = 2,
                                                  .features = SPC_FEATURE_memfd,
                                                  .ring_bytes = 1025,
                                                  .arena_bytes = 1,
                                                  .scratch_bytes = 257});
    CHECK_EQ_U(config.ring_bytes, 1536);
    CHECK_EQ_U(config.arena_bytes, 0); /* less than a page: none */
    CHECK_EQ_U(config.scratch_bytes, 320);
}

TEST(limits_are_limits) {
    spc_config_t bad[] = {
        {.nodes = 0},
        {.nodes = SPC_NODES_MAX + 1},
        {.nodes = 2, .slots = 4097},
        {.nodes = 2, .ring_bytes = 1023},
        {.nodes = 2, .arena_bytes = (UINT64_C(1) << 40) + 1},
        {.nodes = 2, .scratch_bytes = 255},
        {.nodes = 2, .queue_limit_bytes = 1023},
        {.nodes = 2, .fanin = 1},
        {.nodes = 2, .fanin = 65},
        {.nodes = 200, .fanin = 128},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_EQ(spc_config_complete(&bad[i]), SPC_EINVAL);
    }
}

static uint32_t fanin_of(uint32_t nodes, uint32_t asked, uint32_t shared_cores) {
    spc_config_t config = {
        .nodes = nodes, .features = SPC_FEATURE_memfd, .fanin = asked, .shared_cores = shared_cores};
    config = complete(config);
    CHECK_EQ_U(complete(config).fanin, config.fanin); /* a second call changes nothing */
    return config.fanin;
}

TEST(reducer_is_flat_where_it_should_be) {
    CHECK_EQ_U(fanin_of(1, 0, 0), 2);
    CHECK_EQ_U(fanin_of(5, 0, 0), 8);
    CHECK_EQ_U(fanin_of(8, 0, 0), 8);
    CHECK_EQ_U(fanin_of(9, 0, 1), 16);
    CHECK_EQ_U(fanin_of(1024, 0, 1), 1024);
    CHECK_EQ_U(fanin_of(8, 2, 0), 2); /* asked for */
    CHECK_EQ_U(fanin_of(16, 5, 1), 8);
    CHECK_EQ_U(fanin_of(100, 64, 1), 64);
    if (spc_platform_cores() >= 9) {
        CHECK_EQ_U(fanin_of(9, 0, 0), 8);
    }
    spc_config_t many = complete((spc_config_t){.nodes = 1024, .features = SPC_FEATURE_memfd});
    CHECK_EQ_U(many.shared_cores, spc_platform_cores() < 1024);
}

TEST(reserved_memory_fits_the_mount) {
    for (uint32_t nodes = 2; nodes <= 64; nodes *= 2) {
        spc_config_t config = complete((spc_config_t){.nodes = nodes, .features = 0});
        uint64_t room_bytes = spc_platform_memory_room();
        CHECK(config.ring_bytes >= 4096 && config.slots >= 4);
        CHECK(nodes * (config.ring_bytes + config.arena_bytes + 2 * config.scratch_bytes) <= room_bytes);
        CHECK(config.arena_bytes <= UINT64_C(8) << 20);
    }
}

/* ---- segment */

static spc_segment_plan_t small_plan(uint32_t features) {
    spc_segment_plan_t plan = {.config = complete((spc_config_t){.nodes = 3, .features = features})};
    plan.region[SPC_REGION_STATUS].stride = 100;
    plan.region[SPC_REGION_STATUS].count = 1;
    plan.region[SPC_REGION_EVENT].stride = 128;
    plan.region[SPC_REGION_EVENT].count = 4;
    plan.region[SPC_REGION_MAILBOX].stride = 5000;
    plan.region[SPC_REGION_MAILBOX].count = 3;
    plan.region[SPC_REGION_RING].stride = 4096;
    plan.region[SPC_REGION_RING].count = 3;
    plan.region[SPC_REGION_ARENA].count = 3; /* of nothing */
    return plan;
}

static int create_small(uint32_t features) {
    spc_segment_plan_t plan = small_plan(features);
    int descriptor = -1;
    uint64_t size_bytes = 0;
    CHECK_OK(spc_segment_create(&plan, &descriptor, &size_bytes));
    CHECK_EQ_U(size_bytes, lseek(descriptor, 0, SEEK_END));
    return descriptor;
}

TEST(parts_are_where_they_should_be) {
    int descriptor = create_small(spc_platform_features(0));
    spc_segment_t segment;
    CHECK_OK(spc_segment_attach(&segment, descriptor));
    CHECK_EQ_U(spc_segment_stride(&segment, SPC_REGION_STATUS), 128);
    CHECK_EQ_U(spc_segment_stride(&segment, SPC_REGION_MAILBOX), 8192);
    CHECK_EQ_U(segment.config->nodes, 3);
    uint64_t end = sizeof(spc_config_t);
    for (int region = 0; region < SPC_REGION_COUNT; region++) {
        uint64_t stride = spc_segment_stride(&segment, region);
        unsigned char *part;
        for (uint32_t i = 0; (part = spc_segment_part(&segment, region, i)) != NULL; i++) {
            uint64_t offset = spc_segment_offset(&segment, part);
            CHECK(offset >= end);
            CHECK_EQ_U(offset % SPC_CACHE_LINE, 0);
            CHECK_EQ_PTR(spc_segment_address(&segment, offset), part);
            for (uint64_t k = 0; k < stride; k++) {
                CHECK_EQ(part[k], 0);
            }
            end = offset + stride;
        }
        CHECK(end <= segment.size_bytes);
    }
    CHECK(spc_segment_part(&segment, SPC_REGION_RING, 2) != NULL);
    CHECK(spc_segment_part(&segment, SPC_REGION_RING, 3) == NULL);
    CHECK(spc_segment_part(&segment, SPC_REGION_ARENA, 0) == NULL);
    CHECK(spc_segment_part(&segment, SPC_REGION_REDUCE, 0) == NULL);
    spc_segment_detach(&segment);
    CHECK(segment.base == NULL);
    spc_segment_detach(&segment);
    close(descriptor);
}

static void attach_and_write(int rank, int size, void *argument) {
    spc_segment_t segment;
    (void)size;
    CHECK_OK(spc_segment_attach(&segment, *(int *)argument));
    unsigned char *ring = spc_segment_part(&segment, SPC_REGION_RING, (uint32_t)rank);
    memset(ring, rank + 1, 4096);
    spc_segment_detach(&segment);
}

static void ranks_share_it(bool processes, uint32_t features) {
    int descriptor = create_small(features);
    (processes ? check_processes : check_threads)(3, attach_and_write, &descriptor);
    spc_segment_t one, two;
    CHECK_OK(spc_segment_attach(&one, descriptor));
    CHECK_OK(spc_segment_attach(&two, descriptor));
    close(descriptor); /* no longer needed */
    CHECK(one.base != two.base);
    for (uint32_t i = 0; i < 3; i++) {
        unsigned char *ring = spc_segment_part(&one, SPC_REGION_RING, i);
        CHECK_EQ(ring[0], i + 1);
        CHECK_EQ(ring[4095], i + 1);
        CHECK_EQ_U(spc_segment_offset(&one, ring),
                   spc_segment_offset(&two, spc_segment_part(&two, SPC_REGION_RING, i)));
    }
    spc_segment_detach(&one);
    spc_segment_detach(&two);
}

TEST(threads_and_processes_share_it) {
    ranks_share_it(false, spc_platform_features(0));
    ranks_share_it(true, spc_platform_features(0));
    ranks_share_it(false, 0);
    ranks_share_it(true, 0);
}

/* ---- what is not a segment */

TEST(other_memory_is_refused) {
    int descriptor;
    spc_segment_t segment;
    CHECK_OK(spc_platform_memory_create(spc_platform_features(0), 65536, &descriptor));
    CHECK_EQ(spc_segment_attach(&segment, descriptor), SPC_EINVAL);
    close(descriptor);
    CHECK_OK(spc_platform_memory_create(spc_platform_features(0), 100, &descriptor));
    CHECK_EQ(spc_segment_attach(&segment, descriptor), SPC_EINVAL);
    close(descriptor);
    CHECK_EQ(spc_segment_attach(&segment, -1), SPC_ESYSTEM);
    CHECK(segment.base == NULL);
}

/* The version is the 32-bit number behind the 64-bit mark. */
TEST(other_versions_are_refused) {
    int descriptor = create_small(spc_platform_features(0));
    spc_segment_t segment;
    uint32_t *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    CHECK(words != MAP_FAILED);
    words[2]++;
    CHECK_EQ(spc_segment_attach(&segment, descriptor), SPC_EVERSION);
    CHECK(segment.base == NULL);
    words[2]--;
    CHECK_OK(spc_segment_attach(&segment, descriptor));
    spc_segment_detach(&segment);
    munmap(words, 4096);
    close(descriptor);
}

TEST(impossible_plans_are_refused) {
    int descriptor;
    uint64_t size_bytes;
    spc_segment_plan_t plan = small_plan(0);
    plan.region[SPC_REGION_ARENA].stride = UINT64_C(1) << 62;
    CHECK_EQ(spc_segment_create(&plan, &descriptor, &size_bytes), SPC_EINVAL);
    plan.region[SPC_REGION_ARENA].stride = UINT64_MAX;
    plan.region[SPC_REGION_ARENA].count = 1;
    CHECK_EQ(spc_segment_create(&plan, &descriptor, &size_bytes), SPC_EINVAL);
}

TEST_MAIN()
