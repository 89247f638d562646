# SPDX-License-Identifier: MIT
"""Random reductions of arrays, drawn by Hypothesis, which also shrinks what fails (reduce_all.py).

A list of steps says which operation comes, by which operator, of which type and shape, with which root and algorithm.
What comes of each must be, to the last bit, what NumPy gives along the fixed tree.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn import examples, run_on_nodes
from nodepool import Config
from pairwise import each

CONFIGS = [
    (Config("default", 1), 30),
    (Config("default", 2), 60),
    (Config("default", 3), 60),
    (Config("default", 4), 60),
    (Config("default", 5), 40),
    (Config("default", 8), 15),
    (Config("tiny", 3), 22),
    (Config("bounded-arena", 3), 45),
    (Config("small", 4), 37),
    (Config("part", 3), 45),
    (Config("nothing", 4), 22),
]
OPERATIONS = [
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
LENGTHS = [
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    9,
    63,
    511,
    513,
    1023,
    1025,
    2047,
    2049,
    4095,
    4097,
    8191,
    8192,
    8193,
    16_385,
    33_000,
]
ALGORITHMS = [None, "tree", "flat", "slices", "binary-swap"]


def steps_of(nodes):
    lengths = st.sampled_from(LENGTHS)
    shapes = st.one_of(
        st.tuples(lengths),
        st.tuples(lengths),
        st.tuples(st.integers(0, 5), st.integers(0, 40), st.integers(1, 3)),
    )
    step = st.tuples(
        st.sampled_from(OPERATIONS), st.sampled_from(OPERATORS), st.sampled_from(DTYPES), shapes,
        st.integers(0, nodes - 1), st.sampled_from(ALGORITHMS),
    )  # fmt: skip
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


@pytest.mark.parametrize(
    ("pool", "count"), each(2, CONFIGS), indirect=["pool"], ids=[str(config) for config, _ in CONFIGS]
)
def test_random_reductions(pool, count):
    @examples(count)
    @given(steps=steps_of(pool.config.nodes), seed=st.integers(0, 2**32))
    def go(steps, seed):
        run_on_nodes(pool, "reduce_all", {"steps": steps, "seed": seed})

    go()
