# SPDX-License-Identifier: MIT
"""comm.rng: independent streams, reproducible, one a node."""

import numpy as np

from spcomm import ALL


def everybody(comm, value):
    comm.send(value, ALL)
    return [comm.recv(source) for source in range(comm.size)]


def test_the_same_seed_gives_the_same_numbers(comm):
    assert np.array_equal(comm.rng(5).random(100), comm.rng(5).random(100))
    assert not np.array_equal(comm.rng(5).random(100), comm.rng(6).random(100))


def test_no_two_nodes_draw_the_same(comm):
    draws = everybody(comm, comm.rng(5).integers(0, 2**63, 50))
    numbers = {int(number) for draw in draws for number in draw}
    assert len(numbers) == 50 * comm.size


def test_neighbouring_seeds_do_not_share_streams(comm):
    """Seed 1 on node 1 is not seed 2 on node 0."""
    draws = [
        tuple(draw) for seed in range(4) for draw in everybody(comm, comm.rng(seed).integers(0, 2**63, 4))
    ]
    assert len(set(draws)) == len(draws)


def test_a_nodes_stream_does_not_depend_on_the_number_of_nodes(comm):
    """By construction: a function of seed and rank only. The known numbers are NumPy's own for spawn_key (rank,)."""
    mine = comm.rng(7).random(3)
    candidates = [
        np.random.default_rng(np.random.SeedSequence(7, spawn_key=(comm.rank,))).random(3),
        np.random.default_rng([7, comm.rank]).random(3),
        np.random.default_rng([comm.rank, 7]).random(3),
        np.random.default_rng(np.random.SeedSequence(7).spawn(comm.size)[comm.rank]).random(3),
    ]
    assert any(np.array_equal(mine, candidate) for candidate in candidates)


def test_large_and_numpy_seeds(comm):
    for seed in (0, 2**32, 2**64, 10**30, np.int64(3), np.uint32(3)):
        assert 0 <= comm.rng(seed).random() < 1


def test_global_generators_differ_between_nodes(comm):
    """`random` and `numpy.random` were seeded anew in every node."""
    import random

    draws = everybody(comm, (random.getrandbits(64), int(np.random.randint(0, 2**62))))
    assert len(set(draws)) == comm.size and len({b for _, b in draws}) == comm.size
