# SPDX-License-Identifier: MIT
"""A node that dies before or inside a collective that moves data: NodeLostError, naming the call, or all data."""

import pytest

from operations import OPERATIONS
from pairwise import each
from programs import HEAD, ok, run, write
from test_killed import PARTS, SURVIVE

LONG = ("bcast", "gather", "allgather-long", "scatter", "alltoall-long")
# Node 1 enters the call, is interrupted, and dies.
ENTERED = """
import numpy as np
import threading
def interrupt_when_asleep(number):
    asleep(number)
    os.kill(os.getpid(), signal.SIGINT)
if rank == 1:
    watcher = threading.Thread(target=interrupt_when_asleep, args=(os.getpid(),))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        watcher.start()
        {call}
    except KeyboardInterrupt:
        pass
    watcher.join()
    comm.send(None, 0)
    comm.recv(0)
    die()
if rank == 0:
    comm.recv(1)
    comm.send(None, 1)
def call():
    {call}
"""


@pytest.mark.parametrize("options", [[], PARTS], ids=["default", "parts"])
@pytest.mark.parametrize("name", each(2, LONG))
def test_after_it_has_entered(tmp_path, name, options):
    """The data that it gave lie in its arena and still come; where that has no room, it has sent nothing."""
    call, words = OPERATIONS[name].by(own=0, peer=1), OPERATIONS[name].words(own=0, peer=1)
    text = (
        ENTERED.format(call=call)
        + f"""
try:
    call()
except spcomm.NodeLostError as error:
    report("lost" if all(word in str(error) for word in {(*words, "node 1")}) else f"unnamed: {{error}}")
else:
    report("done")
if rank == 0:
    comm.recv(2, tag=1)
    comm.send("reported", 2)
else:
    comm.send("reported", 0, tag=1)
    comm.recv(0)
"""
    )
    path = write(tmp_path, text, HEAD + SURVIVE)
    result = run(tmp_path, 3, "", "--grace", "60", *options, program=path)
    assert result.code == 137, str(result)
    # Its messages that lie in its arena still count; those that it has not sent do not.
    came = "done" if options == [] else "lost"
    assert result.lines() == [f"0: {came}", f"2: {'done' if name == 'gather' else came}"], str(result)


@pytest.mark.parametrize("options", [[], PARTS], ids=["default", "parts"])
def test_nodes_that_finish_right_after_it(tmp_path, options):
    """The data that they gave still arrive, from those that have left and from those that have not."""
    text = """
        import numpy as np
        got = comm.gather(np.full(200_000, rank))
        if rank == 0:
            assert [array[-1] for array in got] == list(range(size))
            assert all((array == array[0]).all() for array in got)
            print("whole")
    """
    assert ok(run(tmp_path, 5, text, *options)).lines() == ["whole"]
