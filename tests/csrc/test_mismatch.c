/* SPDX-License-Identifier: MIT */
/* The text about calls that differ, on calls that are written by hand. */
#include "check.h"

#include "diagnose/spc_mismatch.h"
#include "reduce/spc_layout.h"

#define NODES 5

static spc_signature_t sum_of(uint64_t kind, uint64_t shape) {
    return (spc_signature_t){.operation = SPC_OPERATION_REDUCE,
                             .operator = SPC_SUM,
                             .type = SPC_TYPE_FLOAT64,
                             .field_count = 1,
                             .length_bytes = 8,
                             .layout = spc_layout_of(kind, shape, 0)};
}

static spc_called_t call_of(uint32_t rank, spc_signature_t signature) {
    return (spc_called_t){.is_known = true, .rank = rank, .signature = signature};
}

static void expect(const spc_called_t *called, uint32_t count, const char *wanted) {
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    CHECK(out != NULL);
    CHECK(spc_mismatch_differs(called, count));
    spc_mismatch_write(called, count, 3, out);
    fclose(out);
    if (strcmp(text, wanted) != 0) {
        CHECK_FAIL("it is\n%s\nand should be\n%s", text, wanted);
    }
    free(text);
}

TEST(groups_of_nodes) {
    const spc_signature_t barrier = {.operation = SPC_OPERATION_BARRIER};
    const spc_signature_t fuzzy = {.operation = SPC_OPERATION_FUZZY};
    const spc_called_t called[NODES] = {call_of(0, barrier), call_of(1, sum_of(SPC_KIND_FLOAT, 0)),
                                        call_of(2, barrier), call_of(3, barrier), call_of(4, fuzzy)};
    expect(called, NODES,
           "the nodes called different operations (collective call 3 of each node):\n"
           "  nodes 0, 2-3: barrier()\n"
           "  node 1: global_sum() of a float\n"
           "  node 4: fuzzy_barrier()\n"
           "All nodes must call the same operations in the same order, with values of the same type and "
           "shape.   "
           "  (spcomm explain SP105)");
}

TEST(equal_words_for_different_calls) {
    const spc_called_t called[] = {call_of(6, sum_of(SPC_KIND_ARRAY, 1)),
                                   call_of(8, sum_of(SPC_KIND_ARRAY, 2))};
    expect(called, 2,
           "the nodes gave different types or shapes (collective call 3 of each node):\n"
           "  node 6: global_sum() of an array of float64, 8 bytes (of a different shape or type)\n"
           "  node 8: global_sum() of an array of float64, 8 bytes (of a different shape or type)\n"
           "All nodes must call the same operations in the same order, with values of the same type and "
           "shape.   "
           "  (spcomm explain SP105)");
}

TEST(words_and_places_of_programs) {
    spc_called_t called[NODES];
    for (uint32_t rank = 0; rank < NODES; rank++) {
        called[rank] = call_of(rank, sum_of(SPC_KIND_ARRAY, 1 + rank % 2));
        called[rank].note = (spc_note_t){.line = 10 + rank % 2, .function = "step", .file = "/home/a.py"};
        snprintf(called[rank].note.words, sizeof(called[rank].note.words),
                 "global_sum() of an array of float64, shape (%u,)", 3 + rank % 2);
    }
    called[3].is_known = false;
    snprintf(called[4].note.function, sizeof(called[4].note.function), "<module>");
    expect(called, NODES,
           "the nodes gave different types or shapes (collective call 3 of each node):\n"
           "  nodes 0, 2: global_sum() of an array of float64, shape (3,), at a.py:10 in step\n"
           "  node 1: global_sum() of an array of float64, shape (4,), at a.py:11 in step\n"
           "  node 4: global_sum() of an array of float64, shape (3,), at a.py:10\n"
           "All nodes must call the same operations in the same order, with values of the same type and "
           "shape.   "
           "  (spcomm explain SP105)");
}

TEST(other_roots) {
    const spc_called_t called[] = {
        call_of(0, (spc_signature_t){.operation = SPC_OPERATION_DATA_BCAST, .root = 0}),
        call_of(1, (spc_signature_t){.operation = SPC_OPERATION_DATA_BCAST, .root = 2})};
    expect(
        called, 2,
        "the nodes called different operations (collective call 3 of each node):\n"
        "  node 0: bcast(root=0)\n"
        "  node 1: bcast(root=2)\n"
        "All nodes must call the same operations in the same order, with the same root.     (spcomm explain "
        "SP105)");
}

TEST(equal_calls_do_not_differ) {
    const spc_signature_t barrier = {.operation = SPC_OPERATION_BARRIER};
    const spc_called_t called[] = {call_of(0, barrier), {.is_known = false}, call_of(2, barrier)};
    CHECK(!spc_mismatch_differs(called, 3));
}

TEST_MAIN()
