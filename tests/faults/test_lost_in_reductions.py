# SPDX-License-Identifier: MIT
"""A node that dies inside a reduction of arrays: the others get NodeLostError, naming it, and all memory comes back."""

import pytest

from pairwise import each
from programs import HEAD, run, write
from test_killed import PARTS, SURVIVE

OPERATORS = """
import numpy as np
@spcomm.op(elementwise=True)
def added(left, right):
    return left + right
"""
# Survivors keep together until all have said what they saw. What was sent for a call that failed may lie with others
# until they close the communicator; then nothing of anybody's arena is in use.
TOOLS = (
    OPERATORS
    + """
import gc
from spcomm._core.arrays import bytes_given_out
@spcomm.op(elementwise=True)
def deadly(left, right):
    if rank == victim:
        die()
    return left + right
def seen(call, node):
    try:
        call()
    except spcomm.NodeLostError as error:
        return "lost" if f"node {node}" in str(error) else f"unnamed: {error}"
    return "done"
world = comm
try:
    comm = world.split(0)
except spcomm.SpcommError:
    pass  # there is no arena
def end_with(others):
    gc.collect()
    if comm is not world:
        comm.close()
    for told in "closed", "all that was sent before that has come":
        for other in others:
            if other != rank:
                world.send(told, other, tag=9)
        for other in others:
            if other != rank:
                assert world.recv(other, tag=9) == told
    world.poll()
"""
)
BIG = "np.zeros(50_000)"
ALGORITHMS = ("tree", "flat", "slices", "binary-swap")
CALLS = {
    **{f"sum-{name}": f"comm.allreduce({BIG}, algorithm='{name}')" for name in ALGORITHMS},
    **{f"own-{name}": f"comm.allreduce({BIG}, added, '{name}')" for name in ALGORITHMS},
    "short": "comm.allreduce(np.zeros(10))",
    "half": f"comm.allreduce({BIG}.astype('f2'))",
    "root": f"comm.reduce({BIG}, root=2)",
    "scan": f"comm.scan({BIG})",
    "exscan": f"comm.exscan({BIG}, added)",
    "scatter": f"comm.reduce_scatter({BIG})",
}


@pytest.mark.spread("options")
@pytest.mark.parametrize("options", [[], ["--fanin", "2"], PARTS], ids=["default", "tree", "parts"])
@pytest.mark.parametrize("name", each(2, CALLS))
def test_while_it_waits(tmp_path, name, options):
    """Node 0 kills node 1, which waits inside the call, and enters it after that.

    Node 1 has arrived, so a call of one phase may end without it; the next one cannot, for anybody.
    """
    text = f"""
        before = bytes_given_out(world)
        if rank == 0:
            kill_when_asleep(comm.recv(1))
            seen(lambda: comm.recv(1), 1)
        elif rank == 1:
            comm.send(os.getpid(), 0)
        first = seen(lambda: {CALLS[name]}, 1)
        report(first if first != "done" else seen(lambda: {CALLS[name]}, 1))
        end_with((0, 2, 3, 4))
        left = bytes_given_out(world) - before
        report("clean" if left == 0 else f"{{left}} bytes are still in use")
    """
    path = write(tmp_path, text, HEAD + SURVIVE + TOOLS)
    result = run(tmp_path, 5, "", "--grace", "60", *options, program=path)
    assert result.code == 137, str(result)
    assert result.lines() == [f"{rank}: {word}" for rank in (0, 2, 3, 4) for word in ("clean", "lost")], str(
        result
    )


@pytest.mark.spread("victim")
@pytest.mark.parametrize("victim", [0, 1, 2, 4])
@pytest.mark.parametrize("name", ["tree", "flat", "slices", "binary-swap"])
def test_in_its_operator(tmp_path, name, victim):
    """Between two rounds: who combines something dies there. Who combines nothing dies afterwards."""
    text = f"""
        victim = {victim}
        others = [other for other in range(size) if other != victim]
        before = bytes_given_out(world)
        def call():
            comm.allreduce(np.full(50_000, rank), deadly, "{name}")
        word = seen(call, victim)
        if rank == victim:
            die()
        report("lost" if word == "done" and seen(call, victim) == "lost" else word)
        end_with(others)
        left = bytes_given_out(world) - before
        report("clean" if left == 0 else f"{{left}} bytes are still in use")
    """
    path = write(tmp_path, text, HEAD + SURVIVE + TOOLS)
    result = run(tmp_path, 5, "", "--grace", "60", program=path)
    assert result.code == 137, str(result)
    others = [other for other in range(5) if other != victim]
    assert result.lines() == [f"{rank}: {word}" for rank in others for word in ("clean", "lost")], str(result)
