# SPDX-License-Identifier: MIT
"""A node that goes wrong ends the run: its exit code is the run's, and the last line names it, however nodes start."""

import pytest

from forking import HEAD

# The last act of the node, the exit code of the run, and the words about the node.
ENDINGS = {
    "exit": ("sys.exit(3)", 3, "ended with exit code 3"),
    "exit-text": ("sys.exit('words')", 1, "ended with exit code 1"),
    "_exit": ("os._exit(7)", 7, "ended with exit code 7"),
    "raise": ("raise LookupError('words')", 1, "ended with an uncaught LookupError (exit code 1)"),
    "kill": ("os.kill(os.getpid(), 9)", 137, "was killed by SIGKILL (exit code 137)"),
    "term": ("os.kill(os.getpid(), 15)", 143, "was killed by SIGTERM (exit code 143)"),
}
# Options of `spcomm run`; None: node 0 is the program itself, of whose death by a signal only the shell hears.
SURFACES = {
    "fork": ("--start", "fork"),
    "exec": ("--start", "exec"),
    "boxes": ("--map", "0,1,0"),
    "alone": None,
}
OTHERS = {"compute": "while True: time.sleep(1000)", "need-it": "comm.recv({rank})"}


@pytest.mark.spread("surface", "rank", "others")
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_first_failure_ends_the_run_and_gives_its_code(launch, forked, surface, ending, rank, others):
    text, code, words = ENDINGS[ending]
    lines = f"if comm.rank == {rank}: {text}\n{OTHERS[others].format(rank=rank)}\n"
    if SURFACES[surface] is None:
        result = forked.nodes(3, lines)
        if rank == 0 and ending in ("_exit", "kill", "term"):
            words, code = "died", {"_exit": 7, "kill": -9, "term": -15}[ending]
    else:
        script = launch.script(HEAD.replace("local_nodes={nodes}", "") + lines)
        result = launch("-n", 3, *SURFACES[surface], script)
    assert result.code == code, result
    assert result.last.startswith(f"spcomm: node {rank} {words}; "), result
    assert others != "compute" or result.last.endswith("; the other nodes were stopped"), result
    assert result.err.count("Traceback") == (ending == "raise"), result
    assert ("words" in result.err) == ("words" in text), result
