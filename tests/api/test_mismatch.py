# SPDX-License-Identifier: MIT
"""Nodes that call different collectives: MismatchError on every node, naming what was called; the run goes on."""

import numpy as np
import pytest

import spcomm
from nodetools import refused

CALLS = {
    "barrier": lambda comm: comm.barrier(),
    "fuzzy": lambda comm: comm.fuzzy_barrier().wait(),
    "sum-int": lambda comm: comm.global_sum(1),
    "sum-float": lambda comm: comm.global_sum(1.0),
    "min-int": lambda comm: comm.global_min(1),
    "max-int": lambda comm: comm.global_max(1),
    "sum-array": lambda comm: comm.global_sum(np.ones(5)),
    "sum-array-longer": lambda comm: comm.global_sum(np.ones(6)),
    "sum-array-2x6": lambda comm: comm.global_sum(np.ones((2, 6))),
    "sum-array-3x4": lambda comm: comm.global_sum(np.ones((3, 4))),
    "sum-array-int": lambda comm: comm.global_sum(np.ones(5, dtype=int)),
    "sum-array-1KiB": lambda comm: comm.global_sum(np.ones(128)),
    "sum-array-1MiB": lambda comm: comm.global_sum(np.ones(131_072)),
    "sum-array-8MiB": lambda comm: comm.global_sum(np.ones(1_048_576)),
    "sum-pair": lambda comm: comm.global_sum((1, 2)),
    "sum-triple": lambda comm: comm.global_sum((1, 2, 3)),
    "sum-mixed": lambda comm: comm.global_sum((1, 2.0)),
}
PAIRS = [
    ("barrier", "fuzzy"), ("barrier", "sum-int"), ("fuzzy", "sum-int"), ("sum-int", "sum-float"),
    ("sum-int", "min-int"), ("min-int", "max-int"), ("sum-float", "sum-array"), ("sum-array", "sum-array-longer"),
    ("sum-array", "sum-array-int"), ("sum-array-2x6", "sum-array-3x4"),
    ("sum-array-1KiB", "sum-array-1MiB"), ("sum-array-1MiB", "sum-array-8MiB"), ("barrier", "sum-array-8MiB"),
    ("sum-int", "sum-pair"), ("sum-pair", "sum-triple"), ("sum-pair", "sum-mixed"), ("barrier", "sum-pair"),
]  # fmt: skip


@pytest.mark.sizes(2, 3, 4, 8)
@pytest.mark.parametrize("pair", PAIRS, ids="/".join)
@pytest.mark.parametrize("odd", ["first", "last"])
def test_all_nodes_hear_of_it_and_go_on(comm, pair, odd):
    different = comm.rank == (0 if odd == "first" else comm.size - 1)
    call = CALLS[pair[0] if different else pair[1]]
    with refused(spcomm.MismatchError, *(name.partition("-")[0] for name in pair)):
        call(comm)
    comm.barrier()
    assert comm.global_sum(comm.rank) == comm.size * (comm.size - 1) // 2
    comm.send("still", spcomm.ALL)
    assert [comm.recv(source) for source in range(comm.size)] == ["still"] * comm.size


@pytest.mark.sizes(3, 4, 8)
def test_all_call_something_else(comm):
    names = list(CALLS)
    with pytest.raises(spcomm.MismatchError):
        CALLS[names[comm.rank % len(names)]](comm)
    comm.barrier()


@pytest.mark.sizes(2, 3, 8)
def test_again_and_again(comm):
    for step in range(40):
        with pytest.raises(spcomm.MismatchError):
            (comm.barrier if (comm.rank + step) % comm.size == 0 else lambda: comm.global_sum(1.5))()
        assert comm.global_sum(1) == comm.size


@pytest.mark.sizes(2, 3, 4)
def test_with_an_open_fuzzy_barrier(comm):
    """The mismatch of a later operation does not hurt the fuzzy barrier that was entered by all."""
    fuzzy = comm.fuzzy_barrier()
    with pytest.raises(spcomm.MismatchError):
        (comm.barrier if comm.rank == 0 else lambda: comm.global_min(2))()
    fuzzy.wait()
    comm.barrier()


@pytest.mark.sizes(2, 3, 4)
def test_a_fuzzy_barrier_against_a_barrier_while_waiting_later(comm):
    """The mismatch is told when the fuzzy barrier is asked."""
    if comm.rank == 0:
        with pytest.raises(spcomm.MismatchError):
            comm.barrier()
    else:
        fuzzy = comm.fuzzy_barrier()
        with pytest.raises(spcomm.MismatchError):
            while not fuzzy.done():
                pass
            fuzzy.wait()
    comm.barrier()


@pytest.mark.sizes(4)
def test_in_a_part_errors_name_ranks_of_the_run(comm):
    first, second = comm.rank % 2, comm.rank % 2 + 2
    part = comm.split(comm.rank % 2)
    me = f"as node {part.rank} of a part of 2"
    call = CALLS["barrier" if part.rank == 0 else "sum-int"]
    with refused(
        spcomm.MismatchError, me, f"node {first}: barrier()", f"node {second}: global_sum() of an int"
    ):
        call(part)
    with refused(
        spcomm.RankError,
        "no node 5",
        f"this part has nodes 0 to 1, which are nodes {first}, {second} of the run",
    ):
        part.send(1, 5)
    if part.rank == 0:
        with refused(ValueError, "3 items for 2 nodes"):
            part.scatter([1, 2, 3])
    else:
        with refused(spcomm.SpcommError, me, f"node {first} gave nothing, because it raised ValueError"):
            part.scatter(None)
    with refused(spcomm.WaitTimeoutError, f"node {comm.rank} in that time"):
        part.recv(timeout=0)
    part.barrier()
    part.close()
