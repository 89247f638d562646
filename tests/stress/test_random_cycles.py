# SPDX-License-Identifier: MIT
"""Random cycles of coordinated messages, drawn by Hypothesis, which also shrinks what fails (go_through.py).

A list of cycles says who sends what to whom, and which node is slow: it stays within the cycle until all others are
in the next one and have sent there. Nodes receive in all ways, and err on purpose: what is refused must lose nothing.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn import examples, run_on_nodes
from nodepool import Config
from pairwise import each

CONFIGS = [
    (Config("default", 1), 15),
    (Config("tiny", 2), 30),
    (Config("default", 3), 40),
    (Config("tiny", 3), 40),
    (Config("least", 3), 20),
    (Config("nothing", 4), 15),
    (Config("tree", 8), 15),
]
SIZES = [0, 1, 30, 60, 100, 800, 3000, 8192, 9000, 30_000]


def cycles_of(nodes):
    ranks = st.integers(0, nodes - 1)
    some = st.sets(ranks).map(sorted)
    targets = st.one_of(ranks.map(lambda rank: [rank]), some, st.just(list(range(nodes))))
    sends = st.lists(st.tuples(ranks, targets, st.sampled_from(SIZES)), max_size=12)
    return st.lists(st.tuples(sends, st.none() | ranks), min_size=1, max_size=10)


@pytest.mark.parametrize(
    ("pool", "count"), each(2, CONFIGS), indirect=["pool"], ids=[str(config) for config, _ in CONFIGS]
)
def test_random_cycles(pool, count):
    @examples(count)
    @given(cycles=cycles_of(pool.config.nodes), seed=st.integers(0, 2**32))
    def go(cycles, seed):
        run_on_nodes(pool, "go_through", {"cycles": cycles, "seed": seed})

    go()
