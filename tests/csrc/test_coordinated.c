/* SPDX-License-Identifier: MIT */
/*
 * The counting of coordinated messages. The test itself is the mailbox and the barrier: it says when a message is
 * handed over and when everybody has published.
 */
#include "check.h"

#include "base/spc_error.h"
#include "message/spc_coordinated.h"

enum { NODES_MAX = 9 };

typedef struct nodes {
    uint32_t count;
    void *shared;
    spc_coordinated_t *node[NODES_MAX];
} nodes_t;

static nodes_t nodes_open(uint32_t count, uint32_t cycle) {
    nodes_t made = {.count = count};
    const uint64_t bytes = spc_coordinated_bytes(count);
    CHECK_EQ(posix_memalign(&made.shared, SPC_CACHE_LINE, bytes), 0);
    memset(made.shared, 0, bytes);
    for (uint32_t rank = 0; rank < count; rank++) {
        CHECK_OK(spc_coordinated_create(made.shared, rank, count, cycle, &made.node[rank]));
    }
    return made;
}

static void nodes_close(nodes_t *nodes) {
    for (uint32_t rank = 0; rank < nodes->count; rank++) {
        spc_coordinated_destroy(nodes->node[rank]);
    }
    free(nodes->shared);
}

static void send_one(spc_coordinated_t *from, int32_t to) {
    CHECK_OK(spc_coordinated_note_send(from, &to, 1));
}

static void publish_all(nodes_t *nodes) {
    for (uint32_t rank = 0; rank < nodes->count; rank++) {
        spc_coordinated_publish(nodes->node[rank]);
    }
}

/* Counts, takes what is missing from everybody, and goes on to the next cycle. */
static void end_cycle(spc_coordinated_t *node, uint32_t nodes) {
    CHECK(spc_coordinated_count(node));
    for (uint32_t source = 0; source < nodes; source++) {
        while (spc_coordinated_missing(node, source) != 0) {
            CHECK(!spc_coordinated_is_over(node));
            spc_coordinated_note_handed(node, (int32_t)source);
        }
    }
    CHECK(spc_coordinated_is_over(node));
    spc_coordinated_next(node);
    CHECK(!spc_coordinated_is_open(node));
}

TEST(a_cycle_is_over_when_all_have_been_handed_over) {
    nodes_t nodes = nodes_open(3, 0);
    const int32_t all[] = {0, 1, 2};
    CHECK(!spc_coordinated_is_open(nodes.node[0]));
    CHECK_OK(spc_coordinated_note_send(nodes.node[0], all, 3));
    CHECK(spc_coordinated_is_open(nodes.node[0]));
    send_one(nodes.node[0], 2);
    send_one(nodes.node[1], 2);
    spc_coordinated_note_handed(nodes.node[2], 1); /* before anybody has entered */
    publish_all(&nodes);
    CHECK(!spc_coordinated_is_over(nodes.node[2]));
    CHECK(spc_coordinated_count(nodes.node[2]));
    CHECK(spc_coordinated_is_counted(nodes.node[2]));
    CHECK_EQ_U(spc_coordinated_missing(nodes.node[2], 0), 2);
    CHECK_EQ_U(spc_coordinated_missing(nodes.node[2], 1), 0);
    spc_coordinated_note_handed(nodes.node[2], 0);
    CHECK(!spc_coordinated_is_over(nodes.node[2]));
    spc_coordinated_note_handed(nodes.node[2], 0);
    CHECK(spc_coordinated_is_over(nodes.node[2]));
    spc_coordinated_undo_handed(nodes.node[2], 0); /* given back: it comes again */
    CHECK(!spc_coordinated_is_over(nodes.node[2]));
    CHECK_EQ_U(spc_coordinated_missing(nodes.node[2], 0), 1);
    spc_coordinated_note_handed(nodes.node[2], 0);
    end_cycle(nodes.node[0], 3);
    end_cycle(nodes.node[1], 3);
    end_cycle(nodes.node[2], 3);
    nodes_close(&nodes);
}

TEST(an_empty_cycle_is_over_at_once) {
    nodes_t nodes = nodes_open(2, 0);
    publish_all(&nodes);
    CHECK(spc_coordinated_is_open(nodes.node[0]));
    CHECK(!spc_coordinated_is_over(nodes.node[0])); /* nobody has counted yet */
    end_cycle(nodes.node[0], 2);
    end_cycle(nodes.node[1], 2);
    nodes_close(&nodes);
}

TEST(nothing_is_sent_after_publishing) {
    nodes_t nodes = nodes_open(2, 0);
    const int32_t to = 1;
    send_one(nodes.node[0], to);
    publish_all(&nodes);
    CHECK_EQ(spc_coordinated_note_send(nodes.node[0], &to, 1), SPC_ECYCLE);
    CHECK_EQ(spc_coordinated_note_send(nodes.node[0], NULL, 0), SPC_ECYCLE);
    CHECK(spc_coordinated_count(nodes.node[1]));
    CHECK_EQ_U(spc_coordinated_missing(nodes.node[1], 0), 1);
    end_cycle(nodes.node[0], 2);
    CHECK_OK(spc_coordinated_note_send(nodes.node[0], &to, 1)); /* of the next one */
    end_cycle(nodes.node[1], 2);
    nodes_close(&nodes);
}

TEST(what_was_not_sent_is_undone) {
    nodes_t nodes = nodes_open(3, 0);
    const int32_t both[] = {1, 2};
    CHECK_OK(spc_coordinated_note_send(nodes.node[0], both, 2));
    spc_coordinated_undo_send(nodes.node[0], 1);
    CHECK(spc_coordinated_is_open(nodes.node[0])); /* the other one went */
    publish_all(&nodes);
    CHECK(spc_coordinated_count(nodes.node[1]));
    CHECK(spc_coordinated_is_over(nodes.node[1]));
    CHECK(spc_coordinated_count(nodes.node[2]));
    CHECK_EQ_U(spc_coordinated_missing(nodes.node[2], 0), 1);
    nodes_close(&nodes);
}

TEST(a_send_that_came_to_nothing_begins_no_cycle) {
    nodes_t nodes = nodes_open(2, 0);
    send_one(nodes.node[0], 1);
    spc_coordinated_undo_send(nodes.node[0], 1);
    CHECK(!spc_coordinated_is_open(nodes.node[0]));
    CHECK_OK(spc_coordinated_note_send(nodes.node[0], NULL, 0)); /* to nobody, but it is one */
    CHECK(spc_coordinated_is_open(nodes.node[0]));
    publish_all(&nodes);
    end_cycle(nodes.node[0], 2);
    nodes_close(&nodes);
}

/* A node that asks too early is told so: somebody's row is of an older cycle, or there is none. */
TEST(rows_of_another_cycle_are_not_counted) {
    nodes_t nodes = nodes_open(2, 0);
    spc_coordinated_publish(nodes.node[0]);
    CHECK(!spc_coordinated_count(nodes.node[0]));
    CHECK(!spc_coordinated_is_counted(nodes.node[0]));
    spc_coordinated_publish(nodes.node[1]);
    for (int cycle = 1; cycle < 5; cycle++) {
        end_cycle(nodes.node[0], 2);
        end_cycle(nodes.node[1], 2);
        spc_coordinated_publish(nodes.node[cycle % 2]);
        CHECK(!spc_coordinated_count(nodes.node[0]));
        CHECK(!spc_coordinated_count(nodes.node[1]));
        spc_coordinated_publish(nodes.node[1 - cycle % 2]);
    }
    nodes_close(&nodes);
}

/* Node 0 is through with a cycle, sends and publishes the next, before node 1 has looked at the rows of the first. */
TEST(a_fast_node_leaves_the_rows_that_a_slow_one_reads) {
    nodes_t nodes = nodes_open(2, 0);
    for (int cycle = 0; cycle < 7; cycle++) {
        if (cycle == 0) {
            send_one(nodes.node[0], 1);
            spc_coordinated_publish(nodes.node[0]);
        }
        spc_coordinated_publish(nodes.node[1]);
        end_cycle(nodes.node[0], 2);
        for (int i = 0; i < cycle + 2; i++) {
            send_one(nodes.node[0], 1);
        }
        spc_coordinated_publish(nodes.node[0]);
        CHECK(spc_coordinated_count(nodes.node[1]));
        CHECK_EQ_U(spc_coordinated_missing(nodes.node[1], 0), cycle + 1);
        end_cycle(nodes.node[1], 2);
    }
    nodes_close(&nodes);
}

/* Over the wrap of the cycle's 32 bits and of the tag's 31. */
TEST(cycles_go_on_when_their_number_wraps) {
    const uint32_t first[] = {UINT32_MAX - 4, INT32_MAX - UINT32_C(4)};
    for (int i = 0; i < 2; i++) {
        nodes_t nodes = nodes_open(2, first[i]);
        int32_t before = spc_coordinated_tag(nodes.node[0]);
        for (int cycle = 0; cycle < 10; cycle++) {
            CHECK_EQ(spc_coordinated_tag(nodes.node[1]), before);
            send_one(nodes.node[0], 1);
            spc_coordinated_publish(nodes.node[0]);
            CHECK(cycle < 2 || !spc_coordinated_count(nodes.node[0]));
            spc_coordinated_publish(nodes.node[1]);
            end_cycle(nodes.node[0], 2);
            CHECK(spc_coordinated_count(nodes.node[1]));
            CHECK_EQ_U(spc_coordinated_missing(nodes.node[1], 0), 1);
            end_cycle(nodes.node[1], 2);
            const int32_t tag = spc_coordinated_tag(nodes.node[0]);
            CHECK(tag >= 0);
            CHECK_EQ(tag, before == INT32_MAX ? 0 : before + 1);
            before = tag;
        }
        nodes_close(&nodes);
    }
}

/* Random rows, in random order, against a plain matrix. */
TEST(random_cycles_agree_with_a_matrix) {
    uint64_t state = check_seed();
    for (uint32_t size = 1; size <= NODES_MAX; size++) {
        nodes_t nodes = nodes_open(size, 0);
        for (long cycle = 0; cycle < check_scale(100); cycle++) {
            uint64_t sent[NODES_MAX][NODES_MAX] = {{0}};
            for (uint64_t i = check_below(&state, 30); i > 0; i--) {
                const uint32_t from = (uint32_t)check_below(&state, size);
                int32_t to[NODES_MAX];
                uint32_t count = 0;
                for (uint32_t rank = 0; rank < size; rank++) {
                    if (check_below(&state, 2) != 0) {
                        to[count++] = (int32_t)rank;
                        sent[from][rank]++;
                    }
                }
                CHECK_OK(spc_coordinated_note_send(nodes.node[from], to, count));
            }
            publish_all(&nodes);
            for (uint32_t rank = 0; rank < size; rank++) {
                CHECK(spc_coordinated_count(nodes.node[rank]));
                for (uint32_t source = 0; source < size; source++) {
                    CHECK_EQ_U(spc_coordinated_missing(nodes.node[rank], source), sent[source][rank]);
                }
                end_cycle(nodes.node[rank], size);
            }
        }
        nodes_close(&nodes);
    }
}

TEST(wrong_arguments_are_refused) {
    static _Alignas(SPC_CACHE_LINE) unsigned char shared[4096];
    spc_coordinated_t *node;
    CHECK_EQ(spc_coordinated_create(shared, 2, 2, 0, &node), SPC_EINVAL);
    CHECK_EQ(spc_coordinated_create(shared, 0, 0, 0, &node), SPC_EINVAL);
    CHECK_EQ(spc_coordinated_create(shared + 8, 0, 2, 0, &node), SPC_EINVAL);
    spc_coordinated_destroy(NULL);
}

TEST_MAIN()
