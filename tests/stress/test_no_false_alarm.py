# SPDX-License-Identifier: MIT
"""Correct programs are never reported as deadlocked, whoever is stopped meanwhile, and for how long: nodes, and in
several boxes gateways and the server, too."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pairwise import each
from processes import WATCHDOG_S, name, read_lines

NODES = 4
BOXES = {"one box": [], "two": ["--boxes", 2], "mixed": ["--map", "0,1,2,0"]}
SECONDS = 6 * int(os.environ.get("CHECK_SCALE", 1))  # a minute with `make stress`
SHORT = 0.4
PATTERNS = [
    "ping_pong",
    "ring",
    "server",
    "collectives",
    "gatherings",
    "fuzzy",
    "coordinated",
    "parts",
    "full_queues",
    "one_way",
    "timers",
    "threads",
    "handlers",
    "timeouts",
    "ends",
]


def still_runs(process, seconds):
    """A run that has ended says so at once."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def send(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass  # at the end of the run


def disturb(run, nodes, seconds, rng):
    """Stops nodes for longer than the launcher takes to prove something, often several of them."""
    deadline = time.monotonic() + seconds
    running = True
    while running and time.monotonic() < deadline:
        stopped = rng.sample(nodes, rng.randint(1, len(nodes) - 1))
        for node in stopped:
            send(node, signal.SIGSTOP)
            running = running and still_runs(run, rng.random() * 0.01)
        running = running and still_runs(run, 0.1 + rng.random() * 0.4)
        for node in stopped:
            send(node, signal.SIGCONT)
            running = running and still_runs(run, rng.random() * 0.1)


def transports(launch, but):
    """Processes that spcomm has started beside the nodes, and those that start them."""
    return sorted(
        pid for pid in set(launch.alive()) - but if name(pid).startswith(("spcomm gw", "spcomm server"))
    )


def check(launch, pattern, boxes, seconds, seed):
    print(f"seed {seed}")
    options = ["-n", NODES, "--queue-limit", "100k", "--slots", "8", *BOXES[boxes]]
    run = launch.start(*options, Path(__file__).with_name("patterns.py"), pattern, seconds)
    nodes = [int(word) for word in read_lines(run, 1)[0].split()]
    assert len(nodes) == NODES
    if BOXES[boxes]:
        nodes += transports(launch, {run.pid, *nodes})
    disturb(run, nodes, seconds, random.Random(seed))
    result = launch.finish(run)
    assert result.code == 0, repr(result)
    assert "DEADLOCK" not in result.err


@pytest.mark.spread("boxes")
@pytest.mark.parametrize("boxes", BOXES)
@pytest.mark.parametrize("pattern", each(3, PATTERNS))
def test_for_a_moment(launch, pattern, boxes):
    check(launch, pattern, boxes, SHORT, f"{pattern} {boxes}")


@pytest.mark.stress
@pytest.mark.timeout(SECONDS + 2 * WATCHDOG_S)
@pytest.mark.parametrize("boxes", BOXES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_for_long(launch, pattern, boxes):
    check(launch, pattern, boxes, SECONDS, int.from_bytes(os.urandom(4), "little"))
