# SPDX-License-Identifier: MIT
"""Programs that rely on luck (wrong/) run out of it within ten seeds.

The second line of each says how it is run. Found is: an exception of the program's own, or that it does not end.
"""

from pathlib import Path

import pytest

from pairwise import each

PROGRAMS = sorted(Path(__file__).parent.glob("wrong/*.py"))
SEEDS = 10
TIMEOUT, DEADLOCK = 124, 99
WAITS_FOR_EVER = ("receive_receive", "ring_of_sends", "send_send")
PATIENCE_S = 4  # of those that never end; the others end by themselves


def options_of(program):
    line = program.read_text().splitlines()[1]
    assert line.startswith("# run: ")
    return line.removeprefix("# run: ").split()


def test_there_are_enough():
    assert len(PROGRAMS) >= 12


@pytest.mark.whole
@pytest.mark.parametrize("program", each(3, PROGRAMS), ids=lambda program: program.stem)
def test_is_found(launch, program):
    options = options_of(program)
    found = []
    for seed in range(SEEDS if "--perturb" in options else 1):
        seeded = ["--seed", seed] if "--perturb" in options else []
        limit = PATIENCE_S if program.stem in WAITS_FOR_EVER else 50
        result = launch(*options, *seeded, "--timeout", limit, program)
        found.append(result.code)
        if program.stem in WAITS_FOR_EVER:
            assert result.code in (TIMEOUT, DEADLOCK), repr(result)
            return
        if result.code == 1:
            assert any(f"{error}" in result.err for error in ("AssertionError", "FileNotFoundError")), repr(
                result
            )
            return
        assert result.code == 0, repr(result)
    pytest.fail(f"{program.stem} was right with all seeds: {found}")
