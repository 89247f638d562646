# SPDX-License-Identifier: MIT
"""Random collectives that move data, drawn by Hypothesis, which also shrinks what fails (gather_all.py).

A list of steps says which operation comes, with which root, how much each node gives, and which node cannot give
anything, if any. In between nodes send ordinary messages, poll, and keep some of what they have got.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn import examples, run_on_nodes
from nodepool import Config
from pairwise import each

CONFIGS = [
    (Config("default", 1), 10),
    (Config("tiny", 2), 20),
    (Config("default", 3), 30),
    (Config("least", 3), 20),
    (Config("small", 4), 30),
    (Config("bounded-arena", 3), 20),
    (Config("part", 3), 20),
    (Config("tree", 8), 15),
    (Config("nothing", 4), 15),
]
OPERATIONS = ["bcast", "gather", "allgather", "scatter", "alltoall"]
SIZES = [0, 1, 2, 30, 60, 300, 500, 505, 511, 600, 1021, 1024, 4000, 4096, 9000, 20_000]


def steps_of(nodes):
    ranks = st.integers(0, nodes - 1)
    sizes = st.lists(st.sampled_from(SIZES), min_size=1, max_size=nodes)
    culprit = st.one_of(st.none(), st.none(), st.none(), ranks)
    return st.lists(st.tuples(st.sampled_from(OPERATIONS), ranks, sizes, culprit), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("pool", "count"), each(2, CONFIGS), indirect=["pool"], ids=[str(config) for config, _ in CONFIGS]
)
def test_random_gatherings(pool, count):
    @examples(count)
    @given(steps=steps_of(pool.config.nodes), seed=st.integers(0, 2**32))
    def go(steps, seed):
        run_on_nodes(pool, "gather_all", {"steps": steps, "seed": seed})

    go()
