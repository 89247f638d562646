# SPDX-License-Identifier: MIT
"""The culprit: the last line of a run names the node that went wrong first, on a machine that is busy.

Each program goes wrong in one way, on a drawn node, while the others wait in a drawn call. `CHECK_SCALE` multiplies the
number of runs, and gives other draws than those of `make test-slow` (`REPLAY` is the first seed).
"""

import os
import random
import subprocess
import sys

import pytest

from operations import waiting

RUNS = round(24 * float(os.environ.get("CHECK_SCALE", "1")))
FIRST = int(os.environ.get("REPLAY", "0"))
BUSY = "import sys\nprint(flush=True)\nwhile True:\n    pass\n"

# The culprit's line 7, `{node}`; and the words of the last line of the run.
SPOILS = {
    "segfault": ("os.kill(os.getpid(), signal.SIGSEGV)", 139, "node {node} was killed by SIGSEGV", "at program.py:7"),
    "abort": ("os.abort()", 134, "node {node} was killed by SIGABRT", "at program.py:7"),
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", 137, "node {node} was killed by SIGKILL", ""),
    "input": ("input()", 1, "node {node} ended with an uncaught EOFError", "standard input goes to node 0"),
    "raises": ("raise KeyError('mine')", 1, "node {node} ended with an uncaught KeyError", ""),
    "exits": ("sys.exit(7)", 7, "node {node} ended with exit code 7", ""),
    "quits": ("os._exit(5)", 5, "node {node} ended with exit code 5", ""),
    "root": ("comm.scatter([1] * (comm.size + 1), root=comm.rank)", 1, "node {node} ended with an uncaught ValueError",
             ""),
    "rank": ("comm.send(1, comm.size)", 1, "node {node} ended with an uncaught RankError", ""),
}  # fmt: skip
# The call in which all others wait meanwhile.
WAITS = {
    **{
        name: operation.by(own="comm.rank", peer="{node}")
        for name, operation in waiting("peer", "all").items()
    },
    "any": "comm.recv()",
    "ring": "comm.recv((comm.rank + 1) % comm.size)",
}
PROGRAM = """\
import os, signal, sys, numpy as np
import spcomm
comm = spcomm.startup()
{before}
if comm.rank == {node}:
    {delay}
    {spoil}
{wait}
{wait}
"""
HANDLER = """\
import spcomm
comm = spcomm.startup()
@comm.handler(3)
def take(message):
    raise AssertionError
if comm.rank == {other}:
    comm.send(0, {node})  # the last call of this node: none could run the handler
if comm.rank == {node}:
    comm.recv({other})
    comm.send(1, {other}, tag=3)
"""


@pytest.fixture
def busy():
    """Two processes that never wait: the nodes have to share their cores."""
    loads = [subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) for _ in range(2)]
    for load in loads:
        load.stdout.readline()
    yield
    for load in loads:
        load.kill()
        load.wait()
        load.stdout.close()


def drawn(seed):
    """Kind, text, options, exit code, and the words of the last line of a run."""
    choose = random.Random(seed)
    size = choose.randint(2, 5)
    kind = [*SPOILS, "handler"][seed % (len(SPOILS) + 1)]
    node = choose.randrange(1 if kind == "input" else 0, size)
    boxes = 1 if kind == "handler" else choose.choice((1, 1, 2))
    options = ("-n", size, "--boxes", boxes)
    if kind == "handler":
        other = (node + choose.randrange(1, size)) % size
        words = f"from node {node} ", f"to node {other} ", "for a handler that did not run"
        return kind, HANDLER.format(node=node, other=other), (*options, "--strict"), 1, words
    spoil, code, *words = SPOILS[kind]
    wait = WAITS["scatter" if kind == "root" else choose.choice(list(WAITS))].format(node=node)
    before = choose.choice(("", "comm.barrier()", "comm.global_sum(comm.rank)"))
    delay = choose.choice(("pass", "sum(range(300_000))"))
    text = PROGRAM.format(before=before, node=node, delay=delay, spoil=spoil, wait=wait)
    return kind, text, options, code, tuple(word.format(node=node) for word in words if word)


@pytest.mark.slow
def test_the_culprit_is_named(launch, busy):
    for seed in range(FIRST, FIRST + RUNS):
        kind, text, options, code, words = drawn(seed)
        result = launch.program(text, options=options)
        told = result.err if kind == "handler" else result.last
        assert result.code == code and all(word in told for word in words), (seed, words, text, result)
