# SPDX-License-Identifier: MIT
"""Random steps of all nodes together, drawn by Hypothesis, which also shrinks what fails.

Each program checks the steps on the nodes: `go_through` cycles of coordinated messages, in which a slow node stays in a
cycle until all others have sent in the next one; `gather_all` collectives that move data, also where a node cannot give
any; `reduce_all` reductions of arrays, to the last bit.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn import examples, run_on_nodes
from nodepool import Config
from pairwise import each

CYCLE_SIZES = [0, 1, 30, 60, 100, 800, 3000, 8192, 9000, 30_000]
MOVES = ["bcast", "gather", "allgather", "scatter", "alltoall"]
MOVE_SIZES = [0, 1, 2, 30, 60, 300, 500, 505, 511, 600, 1021, 1024, 4000, 4096, 9000, 20_000]
REDUCTIONS = [
    "allreduce",
    "reduce",
    "allreduce",
    "reduce",
    "scan",
    "exscan",
    "reduce_scatter",
    "bcast",
    "alltoall",
]
OPERATORS = ["SUM", "PROD", "MIN", "MAX", "BXOR", "latest", "composed", "whole", "failing"]
DTYPES = ["f8", "f4", "f2", "i8", "u1", "i4"]
# Elements: none, some, and around what lies in a message, in a step of the reducer, and where slices begin.
LENGTHS = [0, 1, 2, 3, 5, 7, 8, 9, 63, 511, 513, 1023, 1025, 2047, 2049, 4095, 4097, 8191, 8192, 8193]
LENGTHS += [16_385, 33_000]
ALGORITHMS = [None, "tree", "flat", "slices", "binary-swap"]


def cycles(ranks, nodes):
    """Sends of each cycle, and its slow node."""
    some = st.sets(ranks).map(sorted)
    targets = st.one_of(ranks.map(lambda rank: [rank]), some, st.just(list(range(nodes))))
    sends = st.lists(st.tuples(ranks, targets, st.sampled_from(CYCLE_SIZES)), max_size=12)
    return st.lists(st.tuples(sends, st.none() | ranks), min_size=1, max_size=10)


def moves(ranks, nodes):
    """Operations with their roots, the sizes that nodes give, and the node that cannot give anything, if any."""
    sizes = st.lists(st.sampled_from(MOVE_SIZES), min_size=1, max_size=nodes)
    culprit = st.one_of(st.none(), st.none(), st.none(), ranks)
    return st.lists(st.tuples(st.sampled_from(MOVES), ranks, sizes, culprit), min_size=1, max_size=20)


def reductions(ranks, _nodes):
    """Operations with their operators, types, shapes, roots and algorithms."""
    lengths = st.sampled_from(LENGTHS)
    blocks = st.tuples(st.integers(0, 5), st.integers(0, 40), st.integers(1, 3))
    shapes = st.one_of(st.tuples(lengths), st.tuples(lengths), blocks)
    names = (st.sampled_from(list_) for list_ in (REDUCTIONS, OPERATORS, DTYPES))
    step = st.tuples(*names, shapes, ranks, st.sampled_from(ALGORITHMS))
    return st.lists(step.map(possible), min_size=1, max_size=15)


def possible(step):
    """The same step, or one like it that there is."""
    operation, name, dtype, *rest = step
    if name == "BXOR" and dtype[0] == "f":
        name = "SUM"
    if name in ("whole", "failing") and operation not in ("allreduce", "reduce"):
        name = "latest"
    if operation == "reduce_scatter" and name == "composed":
        name = "latest"
    return operation, name, dtype, *rest


# Options and nodes of a pool, and how many examples it carries out.
CYCLES = "default-1 15, tiny-2 30, default-3 40, tiny-3 40, least-3 20, nothing-4 15, tree-8 15"
MOVING = (
    "default-1 10, tiny-2 20, default-3 30, least-3 20, small-4 30, bounded-arena-3 20, part-3 20, tree-8 15"
)
MOVING += ", nothing-4 15"
REDUCING = "default-1 30, default-2 60, default-3 60, default-4 60, default-5 40, default-8 15, tiny-3 22"
REDUCING += ", bounded-arena-3 45, small-4 37, part-3 45, nothing-4 22"


def on_pools(text):
    ids, cases = [], []
    for case in text.split(", "):
        name, count = case.split()
        options, _, nodes = name.rpartition("-")
        ids.append(name)
        cases.append((Config(options, int(nodes)), int(count)))
    return pytest.mark.parametrize(("pool", "count"), each(2, cases), indirect=["pool"], ids=ids)


def carry_out(pool, count, program, steps_of):
    nodes = pool.config.nodes

    @examples(count)
    @given(steps=steps_of(st.integers(0, nodes - 1), nodes), seed=st.integers(0, 2**32))
    def go(steps, seed):
        run_on_nodes(pool, program, {"steps": steps, "seed": seed})

    go()


@on_pools(CYCLES)
def test_random_cycles(pool, count):
    carry_out(pool, count, "go_through", cycles)


@on_pools(MOVING)
def test_random_gatherings(pool, count):
    carry_out(pool, count, "gather_all", moves)


@on_pools(REDUCING)
def test_random_reductions(pool, count):
    carry_out(pool, count, "reduce_all", reductions)
