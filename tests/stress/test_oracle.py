# SPDX-License-Identifier: MIT
"""Random schedules of everything at once, against a plain Python oracle (schedule.py, carry_out.py).

Rings, slots and arenas are tiny, so queues, parts and full buffers are what usually happens. A failure prints the
seed and the length that it was found with: `REPLAY=seed,length python -m pytest tests/stress -k replay` runs it again
(`REPLAY=seed,length,across` those over boxes). CHECK_SCALE multiplies the number of schedules; `make soak` goes on for
SOAK_SECONDS.
"""

import os
import random
import time
from types import SimpleNamespace

import hypothesis
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from drawn import examples, run_on_nodes
from nodepool import OPTIONS, Config, Options
from pairwise import each

CONFIGS = [
    # options and nodes, bytes under way at once, schedules
    (Config("tiny", 1), 200_000, 10),
    (Config("tiny", 2), 200_000, 30),
    (Config("tiny", 3), 200_000, 40),
    (Config("tiny", 8), 400_000, 15),
    (Config("least", 3), 100_000, 20),
    (Config("narrow", 3), 3_500, 50),
    (Config("small", 4), 400_000, 30),
    (Config("default", 4), 2_000_000, 20),
    (Config("tree", 8), 1_000_000, 15),
    (Config("nothing", 3), 400_000, 15),
]


# Over boxes, with fuzzy barriers open across every collective.
BOXES = [
    *(
        (Config(f"{boxes}-boxes-{place}{suffix}", 4 * boxes), bound)  # four that contribute need two frames
        for boxes in (2, 3)
        for place in ("block", "cyclic")
        for suffix, bound in (("", 2_000_000), ("-tiny", 400_000))
    ),
    (Config("3-boxes-direct", 6), 1_000_000),
]


def check(pool, seed, length, bound, across=0):
    arguments = {"seed": seed, "length": length, "bound": bound, "across": across}
    run_on_nodes(pool, "carry_out", arguments)


@pytest.mark.parametrize(
    ("pool", "bound", "count"),
    each(2, CONFIGS),
    indirect=["pool"],
    ids=[str(config) for config, _, _ in CONFIGS],
)
def test_random_schedules(pool, bound, count):
    @examples(count, phases=[Phase.generate])  # a shorter schedule of this seed is another one
    @given(seed=st.integers(0, 2**32), length=st.sampled_from([10, 40, 150, 400, 800]))
    def schedules(seed, length):
        check(pool, seed, length, bound)

    schedules()


def test_a_failure_that_happens_once_is_shown_with_its_seed(capsys):
    """All that a run which was ended could say is in the first report; Hypothesis keeps the last one."""
    answers = [{"run": ("failed", "no answer from nodes [10]")}, {0: ("passed", "")}]
    pool = SimpleNamespace(
        config=Config("tiny", 3),
        process=SimpleNamespace(poll=lambda: 0),
        ensure=lambda: None,
        run=lambda *_arguments: answers.pop(0) if len(answers) > 1 else answers[0],
    )

    @examples(10, phases=[Phase.generate])
    @given(seed=st.just(77))
    def schedules(seed):
        check(pool, seed, 20, 1000, 3)

    with pytest.raises(hypothesis.errors.Flaky):
        schedules()
    shown = capsys.readouterr().out
    assert (
        "carry_out has failed on tiny-3 with {'seed': 77, 'length': 20, 'bound': 1000, 'across': 3}" in shown
    )
    assert "no answer from nodes [10]" in shown


def over_boxes(pool, bound, count):
    @examples(count, phases=[Phase.generate])
    @given(seed=st.integers(0, 2**32), length=st.sampled_from([20, 60, 120]), across=st.integers(1, 7))
    def schedules(seed, length, across):
        check(pool, seed, length, bound, across)

    schedules()


SOAKED = [
    *((config, bound, 0) for config, bound, _ in CONFIGS),
    *((config, bound, 7) for config, bound in BOXES),
]
SOAK_S = float(os.environ.get("SOAK_SECONDS", 0)) / len(SOAKED)


@pytest.mark.stress
@pytest.mark.skipif(not SOAK_S, reason="runs with `make soak`")
@pytest.mark.parametrize(
    ("pool", "bound", "across"), SOAKED, indirect=["pool"], ids=[str(config) for config, *_ in SOAKED]
)
def test_soak(pool, bound, across):
    """Other schedules each time, for this configuration's part of SOAK_SECONDS."""
    chance, end, left = random.Random(), time.monotonic() + SOAK_S, True
    while left:
        check(
            pool, chance.getrandbits(32), chance.choice([20, 60, 150, 400]), bound, chance.randint(0, across)
        )
        left = time.monotonic() < end


A_FEW = [BOXES[0], BOXES[7], BOXES[8]]


@pytest.mark.parametrize(
    ("pool", "bound"), A_FEW, indirect=["pool"], ids=[str(config) for config, _ in A_FEW]
)
def test_barriers_are_open_between_boxes(pool, bound):
    over_boxes(pool, bound, 3)


@pytest.mark.stress
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("pool", "bound"), BOXES, indirect=["pool"], ids=[str(config) for config, _ in BOXES]
)
def test_five_hundred_with_barriers_open_between_boxes(pool, bound):
    over_boxes(pool, bound, 500)


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
        check(pool, seed, 150, bound)


if "REPLAY" in os.environ:

    @pytest.mark.parametrize(
        ("pool", "bound"), [c[:2] for c in CONFIGS + BOXES], indirect=["pool"], ids=lambda c: str(c)
    )
    def test_replay(pool, bound):
        check(
            pool,
            *map(int, os.environ["REPLAY"].split(",")[:2]),
            bound,
            *map(int, os.environ["REPLAY"].split(",")[2:]),
        )
