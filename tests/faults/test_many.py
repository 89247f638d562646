# SPDX-License-Identifier: MIT
"""Many nodes on few cores, limits of the launcher, runs that hang, a launcher that dies."""

import os

import pytest

from nodepool import command
from pairwise import each
from programs import finish, ok, run, start, write

RING = """
    for _ in range(20):
        comm.barrier()
    token = rank
    for _ in range(size):
        token = comm.sendrecv(token, (rank + 1) % size, (rank - 1) % size)
    assert token == rank
    total = comm.global_sum((rank, 1.0))
    comm.send("x" * 5000, (rank + 1) % size)
    comm.recv((rank - 1) % size)
    if rank == 0:
        print(total)
"""


@pytest.mark.parametrize(
    "options", each(3, [[], ["--fanin", "2"], ["--slots", "1", "--ring", "2048", "--arena", "0"]]), ids=str
)
def test_sixty_four_nodes(tmp_path, options):
    assert ok(run(tmp_path, 64, RING, *options)).out == "(2016, 64.0)\n"


@pytest.mark.slow
def test_a_hundred_nodes_and_all_to_all(tmp_path):
    text = """
        comm.send(rank, spcomm.ALL)
        assert sorted(comm.recv() for _ in range(size)) == list(range(size))
        comm.barrier()
    """
    ok(run(tmp_path, 100, text))


@pytest.mark.linux("affinity is set with Linux's call")
def test_on_one_core(tmp_path):
    """All nodes share one core: nobody burns it while others should run."""
    text = """
        for step in range(200):
            comm.barrier()
            assert comm.sendrecv(step, (rank + 1) % size, (rank - 1) % size) == step
        print("through")
    """
    core = min(os.sched_getaffinity(0))
    line = command("run", "-n", "4", "--no-label", write(tmp_path, text))
    result = finish(start(line, cwd=tmp_path, preexec_fn=lambda: os.sched_setaffinity(0, {core})))
    assert ok(result).out == "through\n" * 4


def test_beside_computing_processes(tmp_path):
    """Two of five nodes compute without a pause until the others have met often enough."""
    text = """
        if rank >= 3:
            flag = rank
            while not os.path.exists("enough"):
                flag = (flag * 7) % 1000
        else:
            for _ in range(300):
                comm.sendrecv(1, (rank + 1) % 3, (rank - 1) % 3)
            if rank == 0:
                open("enough", "w").close()
        comm.barrier()
    """
    ok(run(tmp_path, 5, text))
