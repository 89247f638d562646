# SPDX-License-Identifier: MIT
"""Random schedules of everything at once, against a plain Python oracle (schedule.py, oracle.py, play.py).

Rings, slots and arenas are tiny, so queues, parts and full buffers are what usually happens. A failure prints the
seed and the length that it was found with: `REPLAY=seed,length,across python -m pytest tests/stress -k replay` runs it
again. CHECK_SCALE multiplies the number of schedules; `make soak` goes on for SOAK_SECONDS.
"""

import os
import random
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodepool import OPTIONS, Config, Options, verdict

SCALE = float(os.environ.get("CHECK_SCALE", 1))
PLAYER = Path(__file__).with_name("play.py")

SURFACES = [
    # options, nodes, bytes under way at once, barriers that may be open (there are parts, too, which need an arena)
    ("tiny", 3, 200_000, 0),
    ("tiny", 1, 200_000, 0),
    ("default", 2, 2_000_000, 7),
    ("tiny", 2, 200_000, 0),
    ("least", 3, 100_000, 0),
    ("default", 1, 2_000_000, 7),
    ("small", 4, 400_000, 0),
    ("tiny", 8, 400_000, 0),
    ("narrow", 3, 3_500, 0),
    ("bounded-arena", 3, 200_000, 7),
    ("default", 5, 2_000_000, 7),
    ("default", 4, 2_000_000, 7),
    ("part", 3, 2_000_000, 7),
    ("nothing", 3, 400_000, 7),
    ("tree", 8, 1_000_000, 7),
]
GATEWAYS = [  # direct, or by the relay
    *(
        (f"{boxes}-boxes-{place}{suffix}", 4 * boxes, bound, 7)  # four that contribute need two frames
        for boxes in (2, 3)
        for place in ("block", "cyclic")
        for suffix, bound in (("", 2_000_000), ("-tiny", 400_000))
    ),
    ("3-boxes-direct", 6, 1_000_000, 7),
]
LENGTHS = (20, 60, 150, 400)


def on_pools(*cases):
    """A pool for each surface."""
    found = [(Config(options, nodes), *rest) for options, nodes, *rest in cases]
    return pytest.mark.parametrize(
        ("pool", "bound", "across"), found, indirect=["pool"], ids=[str(case[0]) for case in found]
    )


def check(pool, seed, length, across, bound):
    arguments = {"seed": seed, "length": length, "across": across, "bound": bound}
    pool.ensure()
    answers = pool.run(PLAYER, "play", arguments)
    if any(status == "failed" for status, _ in answers.values()):
        print(f"a schedule has failed on {pool.config} with {arguments}")
        if pool.process.poll() is None:  # nodes that one has failed are no good for the next schedule
            pool.kill()
    verdict(answers)


def check_many(pool, chance, bound, across, count):
    for _ in range(count):
        check(pool, chance.getrandbits(32), chance.choice(LENGTHS), chance.randint(0, across), bound)


@pytest.mark.whole
@on_pools(*SURFACES[::2])
def test_in_one_box(pool, bound, across):
    """The same schedules each time."""
    check_many(pool, random.Random(str(pool.config)), bound, across, 3)


@pytest.mark.whole
@on_pools(GATEWAYS[0], GATEWAYS[7], GATEWAYS[8])
def test_over_gateways(pool, bound, across):
    check(pool, 1, 150, across, bound)


@pytest.mark.stress
@pytest.mark.timeout(3600)
@on_pools(*SURFACES, *GATEWAYS)
def test_many_random_schedules(pool, bound, across):
    check_many(pool, random.Random(), bound, across, round(100 * SCALE))


def test_a_failure_is_shown_with_its_seed(capsys):
    """Nodes that do not answer cannot say it themselves."""
    pool = SimpleNamespace(
        config=Config("tiny", 3),
        process=SimpleNamespace(poll=lambda: 0),
        ensure=lambda: None,
        run=lambda *_arguments: {"run": ("failed", "no answer from nodes [10]")},
    )
    with pytest.raises(pytest.fail.Exception, match=r"no answer from nodes \[10\]"):
        check(pool, 77, 20, 3, 1000)
    shown = capsys.readouterr().out
    assert "failed on tiny-3 with {'seed': 77, 'length': 20, 'across': 3, 'bound': 1000}" in shown


SOAK_S = float(os.environ.get("SOAK_SECONDS", 0)) / len(SURFACES + GATEWAYS)


@pytest.mark.stress
@pytest.mark.skipif(not SOAK_S, reason="runs with `make soak`")
@on_pools(*SURFACES, *GATEWAYS)
def test_soak(pool, bound, across):
    """Other schedules each time, for this surface's part of SOAK_SECONDS."""
    end = time.monotonic() + SOAK_S
    while time.monotonic() < end:
        check_many(pool, random.Random(), bound, across, 1)


LIMITS = [f"limits-{number}" for number in range(40)]
QUICK = 3  # of them run always


def draw(name):
    """Sizes of buffers, most of them tiny, and the nodes and the limit of queues that they are for."""
    chance = random.Random(name)
    limit = chance.choice([16, 64, 200, 700, 1500]) << 10
    arguments = ["--slots", chance.choice([1, 2, 5, 32]), "--ring", chance.choice(["1K", "4K", "64K"])]
    arguments += ["--arena", chance.choice(["0", "0", "64K", "1M"]), "--queue-limit", limit]
    nodes = chance.choice([2, 3, 4, 8])
    arguments += ["--boxes", 2] if chance.random() < 0.3 else []
    OPTIONS[name] = Options(name, tuple(map(str, arguments)))
    return nodes, limit


@pytest.mark.whole
@pytest.mark.parametrize(
    ("pool", "bound"),
    [
        pytest.param(Config(name, nodes), limit // 3, id=name, marks=[pytest.mark.stress] if late else [])
        for late, name, (nodes, limit) in [(at >= QUICK, name, draw(name)) for at, name in enumerate(LIMITS)]
    ],
    indirect=["pool"],
)
def test_what_is_within_the_limit_is_received(pool, bound):
    """All that is under way at once is less than one node's limit, and may be all from one node to another."""
    for seed in range(3):
        check(pool, seed, 150, 0, bound)


if "REPLAY" in os.environ:

    @on_pools(*SURFACES, *GATEWAYS)
    def test_replay(pool, bound, across):
        check(pool, *map(int, os.environ["REPLAY"].split(",")), bound)
