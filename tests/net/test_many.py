# SPDX-License-Identifier: MIT
"""As many nodes and as many boxes as one machine may have to carry: everything still works, only more slowly."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TINY = ("--slots", 2, "--ring", 4096, "--arena", 65_536)

pytestmark = [pytest.mark.slow, pytest.mark.machine, pytest.mark.timeout(600)]


def test_a_thousand_nodes(launch):
    """Also without an option for the memory, most of which the rows of slots take: a split finds some."""
    result = launch.program(
        """
        import numpy as np, spcomm
        comm = spcomm.startup()
        rank, size = comm.rank, comm.size
        after, before = (rank + 1) % size, (rank - 1) % size
        assert (comm.allreduce(np.full(100, rank), spcomm.SUM) == size * (size - 1) // 2).all()
        for number in range(3):
            comm.send((rank, number), after)
            assert comm.recv(before) == (before, number)
        assert comm.gather(rank, 0) == (list(range(size)) if rank == 0 else None)
        part = comm.split(rank % 32)
        assert part.size == size // 32 and part.global_sum(rank) == sum(range(rank % 32, size, 32))
        part.close()
        fuzzy = comm.fuzzy_barrier()
        comm.send(rank, after, tag=4)
        fuzzy.wait()
        assert comm.recv(before, 4) == before
        print(f"node {rank}")
        """,
        options=("-n", 1024),
    )
    assert (result.code, sorted(result.lines)) == (0, sorted(f"node {rank}" for rank in range(1024))), result


@pytest.mark.parametrize("route", ["relay", "direct"])
def test_sixteen_boxes(launch, route):
    folders = os.pathsep.join(str(HERE.parent / name) for name in ("api", "stress"))
    over = launch.script("", "over")
    options = ("--boxes", 16, "--route", route, *TINY, "--arena", "1M")  # room for parts
    result = launch("-n", 32, *options, HERE / "all_operations.py", 7, over, 3, env={"PYTHONPATH": folders})
    assert (result.code, sorted(result.lines)) == (0, sorted(f"{rank} 3" for rank in range(32))), result
