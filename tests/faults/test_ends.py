# SPDX-License-Identifier: MIT
"""A node that has ended: each call that needs it fails, and names itself and that node, however the node has ended."""

import pytest

from operations import waiting
from programs import HEAD, run, write
from test_killed import SURVIVE
from test_lost_in_reductions import CALLS, OPERATORS

ENDS = {
    "killed": ("die()", 137, "died ("),
    "raises": ("raise ValueError", 1, "died (an uncaught ValueError at program.py:"),
    "exits": ("os._exit(3)", 3, "died ("),
    "finishes": ("sys.exit()", 0, "finished ("),
    "leaves": ("world.close(); sys.exit()", 0, "finished (close() at program.py:"),
}
SURFACES = {
    "one-box": (),
    "exec": ("--start", "exec"),
    "direct": ("--map", "0,1,0"),
    "relay": ("--map", "0,0,1", "--route", "relay"),
    "alone-in-boxes": ("--boxes", 3),
}
NEEDED = [
    (operation.by(own=0, peer=1), operation.words(own=0, peer=1))
    for operation in waiting("peer", "others", "all").values()
] + [(call, ()) for call in CALLS.values()]


@pytest.mark.spread("surface")
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("end", ENDS)
def test_calls_that_need_it(tmp_path, end, surface):
    """Each on a communicator of its own, in which the call stays entered."""
    text, code, word = ENDS[end]
    lines = [
        f"world = comm\nparts = [world.split(0) for _ in range({len(NEEDED)})]\nif rank == 1:\n    {text}\n"
    ]
    for call, words in NEEDED:
        lines.append(f"comm = parts.pop()\nneeds_lost(lambda: {call}, 1, '{word}', 'SP104', *{words})\n")
    path = write(tmp_path, "".join(lines), HEAD + SURVIVE + OPERATORS)
    result = run(tmp_path, 3, "", "--grace", "60", *SURFACES[surface], program=path)
    assert result.code == code, str(result)
    assert result.lines() == [f"{rank}: lost" for rank in (0, 2) for _ in NEEDED], str(result)
