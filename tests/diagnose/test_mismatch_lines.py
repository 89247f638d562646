# SPDX-License-Identifier: MIT
"""SP105: collective operations that do not match, by line and by group of nodes."""

import pytest

from pairwise import each

START = """\
import numpy as np, sys, spcomm
comm = spcomm.startup()
def told(*calls):
    try:
        calls[min(comm.rank, len(calls) - 1)]()
    except spcomm.MismatchError as error:
        if comm.rank == 0:
            print(error)
"""

# The calls of nodes 0, 1 and 2, from line 10 on, and the report on each group.
CASES = {
    "barrier-sum": (
        ["comm.barrier()", "comm.global_sum(1)"],
        [
            "node 0: barrier(), at program.py:10 in a",
            "nodes 1-2: global_sum() of an int, at program.py:12 in b",
        ],
    ),
    "three-operators": (
        ["comm.global_min(1.5)", "comm.global_max(1.5)", "comm.global_sum(1.5)"],
        [
            "node 0: global_min() of a float, at program.py:10 in a",
            "node 1: global_max() of a float, at program.py:12 in b",
            "node 2: global_sum() of a float, at program.py:14 in c",
        ],
    ),
    "shapes": (
        ["comm.global_sum(np.ones((3, 4)))", "comm.global_sum(np.ones((4, 3)))"],
        [
            "node 0: global_sum() of an array of float64, shape (3, 4), at program.py:10 in a",
            "nodes 1-2: global_sum() of an array of float64, shape (4, 3), at program.py:12 in b",
        ],
    ),
    "dtypes": (
        ["comm.global_sum(np.ones(6, 'i4'))", "comm.global_sum(np.ones(6, 'f2'))"],
        [
            "an array of int32, shape (6,), at program.py:10",
            "an array of float16, shape (6,), at program.py:12",
        ],
    ),
    "tuples": (
        ["comm.global_sum((1, 2))", "comm.global_sum((1, 2.5))"],
        [
            "node 0: global_sum() of a tuple of (an int, an int)",
            "nodes 1-2: global_sum() of a tuple of (an int, a float)",
        ],
    ),
    "large": (
        ["comm.global_sum(np.ones(300_000))", "comm.global_sum(np.ones(300_001))"],
        ["shape (300000,), at program.py:10", "shape (300001,), at program.py:12"],
    ),
    "split": (
        ["comm.split(0)", "comm.barrier()"],
        ["node 0: split(), at program.py:10 in a", "nodes 1-2: barrier(), at program.py:12 in b"],
    ),
    "roots": (
        ["comm.bcast(1, root=2)", "comm.bcast(np.ones(99_999))"],
        [
            "node 0: bcast(root=2), at program.py:10 in a",
            "nodes 1-2: bcast(root=0), at program.py:12 in b",
            "with the same root.",
        ],
    ),
    "data": (
        ["comm.gather(1, 1)", "comm.scatter([1, 2, 3], 1)", "comm.alltoall([1, 2, 3])"],
        [
            "node 0: gather(root=1), at program.py:10 in a",
            "node 1: scatter(root=1), at program.py:12 in b",
            "node 2: alltoall(), at program.py:14 in c",
        ],
    ),
    "data-and-reduction": (
        ["comm.allgather(1)", "comm.global_sum(1)"],
        [
            "node 0: allgather(), at program.py:10 in a",
            "nodes 1-2: global_sum() of an int",
            "same type and shape.",
        ],
    ),
    "cycle": (
        ["comm.coordinated_recv()", "comm.barrier()"],
        ["node 0: coordinated_recv(), at program.py:10 in a", "nodes 1-2: barrier(), at program.py:12 in b"],
    ),
    "waiting-in-a-fuzzy-barrier": (
        ["comm.fuzzy_barrier().wait()", "comm.barrier()"],
        ["node 0: fuzzy_barrier(), at program.py:10 in a", "nodes 1-2: barrier(), at program.py:12 in b"],
    ),
}


def functions(calls):
    """Functions a, b and c; their calls are in lines 10, 12 and 14 of the script."""
    return "".join(f"def {name}():\n    {call}\n" for name, call in zip("abc", calls, strict=False))


@pytest.mark.parametrize("case", each(3, CASES))
def test_each_group_with_its_line(launch, case):
    calls, words = CASES[case]
    text = START + functions(calls) + f"told({', '.join('abc'[: len(calls)])})\n"
    result = launch.program(text, options=("-n", 3))
    for word in words:
        assert word in result.out, result
    assert "(collective call 1 of each node)" in result.out and "(spcomm explain SP105)" in result.out


def test_equal_calls_at_different_lines_are_told_apart(launch):
    text = (
        START
        + """
def either():
    if comm.rank == 1:
        comm.barrier()
    else:
        comm.barrier()
comm.global_sum(1)
told(comm.fuzzy_barrier().wait if comm.rank == 2 else either)
"""
    )
    result = launch.program(text, options=("-n", 3))
    assert (
        "node 0: barrier(), at program.py:14 in either\n  node 1: barrier(), at program.py:12 in either"
        in (result.out)
    ), result
    assert "(collective call 2 of each node)" in result.out


def test_a_node_that_asks_later(launch):
    """It is in a fuzzy barrier, and elsewhere: the others do not wait for its line."""
    text = (
        START
        + """
if comm.rank == 1:
    fuzzy = comm.fuzzy_barrier()
    comm.recv(0)
    told(None, fuzzy.wait)
else:
    told(comm.barrier)
    comm.send("go on", 1)
"""
    )
    result = launch.program(text, options=("-n", 2))
    assert "node 0: barrier(), at program.py:5 in told\n  node 1: fuzzy_barrier()\n" in result.out, result
    assert result.code == 0


def test_in_a_part(launch):
    text = (
        START
        + """
part = comm.split(comm.rank % 2)
told(part.barrier if comm.rank < 2 else lambda: part.global_sum(1))
"""
    )
    result = launch.program(text, options=("-n", 4))
    assert (
        "node 0: barrier(), at program.py:5 in told\n  node 2: global_sum() of an int, at program.py:11"
        in (result.out)
    ), result


def test_a_call_that_was_left_is_no_matter_of_others(launch):
    text = (
        START
        + """
if comm.rank == 0:
    try:
        comm.barrier(timeout=0)
    except spcomm.WaitTimeoutError:
        told(lambda: comm.global_sum(1))
        comm.send(0, 1)
else:
    comm.recv(0)
comm.barrier()
"""
    )
    result = launch.program(text, options=("-n", 2))
    assert "node 0 has left barrier() before its end" in result.out and "SP105" not in result.out, result


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_matching_calls_say_nothing(launch, nodes):
    text = """
        import numpy as np, spcomm
        comm = spcomm.startup()
        for step in range(50):
            comm.barrier()
            assert comm.global_sum(np.ones((2, 3))).sum() == 6 * comm.size
            with comm.fuzzy_barrier():
                comm.global_max((step, float(comm.rank)))
    """
    result = launch.program(text, options=("-n", nodes))
    assert result.code == 0 and result.err == "" and result.out == "", result
