# SPDX-License-Identifier: MIT
"""Programs that rely on luck (wrong.txt, entries.py) run out of it within ten seeds.

Found is: an exception of the program's own, or that it does not end.
"""

from pathlib import Path

import pytest

import entries
from pairwise import each

PROGRAMS = entries.read(Path(__file__).with_name("wrong.txt"), "run")
SEEDS = 10
TIMEOUT, DEADLOCK = 124, 99
WAITS_FOR_EVER = ("receive_receive", "ring_of_sends", "send_send")
PATIENCE_S = 4  # of those that never end; the others end by themselves


def test_there_are_enough():
    assert len(PROGRAMS) >= 12
    for program in PROGRAMS:
        program.compile()


@pytest.mark.whole
@pytest.mark.parametrize("program", each(3, PROGRAMS), ids=lambda program: program.name)
def test_is_found(launch, program):
    options, file = program.get("run").split(), program.write(launch.folder)
    found = []
    for seed in range(SEEDS if "--perturb" in options else 1):
        seeded = ["--seed", seed] if "--perturb" in options else []
        limit = PATIENCE_S if program.name in WAITS_FOR_EVER else 50
        result = launch(*options, *seeded, "--timeout", limit, file)
        found.append(result.code)
        if program.name in WAITS_FOR_EVER:
            assert result.code in (TIMEOUT, DEADLOCK), repr(result)
            return
        if result.code == 1:
            assert any(f"{error}" in result.err for error in ("AssertionError", "FileNotFoundError")), repr(
                result
            )
            return
        assert result.code == 0, repr(result)
    pytest.fail(f"{program.name} was right with all seeds: {found}")
