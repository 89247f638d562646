# SPDX-License-Identifier: MIT
"""Message buffers stay within a quarter of the memory: defaults shrink, more than that is refused."""

import re
from types import SimpleNamespace

import pytest

from spcomm._core import segments
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.groups import Group
from spcomm.launch.cmdline.memory import sizes
from spcomm.launch.cmdline.options import parse
from spcomm.text import rounded_size

PROGRAM = "import spcomm; c = spcomm.startup(); c.barrier(); print(c.size)"


def groups(*counts):
    return [Group(number, size=count) for number, count in enumerate(counts)]


def taken(plan, nodes):
    return plan["bytes"] + 2 * nodes * plan["queue_limit"]


@pytest.mark.parametrize("nodes", [1, 2, 3, 8, 32, 200, 1024])
def test_defaults_stay_within_a_quarter(nodes):
    assert taken(segments.plan(nodes), nodes) <= segments.memory() // 4


@pytest.mark.parametrize("counts", [(8, 8), (1, 1, 1, 1), (64, 2, 64), (300, 300), (1000, 1000)], ids=str)
def test_several_groups_share_it(counts):
    found = sizes(segments, parse(["x.py"]), groups(*counts), 0)
    assert sum(taken(segments.plan(count, **found), count) for count in counts) <= segments.memory() // 4


def limited(memory):
    """The core, on a machine with less memory."""
    return SimpleNamespace(
        memory=lambda: memory, plan=segments.plan, LIMITS=segments.LIMITS, NODES_MAX=segments.NODES_MAX
    )


@pytest.mark.parametrize("option", ["arena", "queue-limit"])
@pytest.mark.parametrize("counts", [(2,), (8,), (4, 3)], ids=str)
def test_more_is_refused_and_what_is_advised_is_accepted(option, counts):
    with pytest.raises(UsageError) as caught:
        sizes(segments, parse([f"--{option}", str(segments.memory() // 4), "x.py"]), groups(*counts), 0)
    text = str(caught.value)
    assert text.startswith(f"spcomm run: --{option} ")
    assert (
        f"may take {rounded_size(segments.memory() // 4)}, a quarter of the memory that there is here" in text
    )
    advised = re.search(rf"try --{option} (\w+) or less", text)
    assert advised is not None, text
    assert sizes(segments, parse([f"--{option}", advised[1], "x.py"]), groups(*counts), 0)


def test_where_there_is_no_room_at_all_fewer_nodes_are_advised():
    with pytest.raises(UsageError, match=r"try fewer nodes \(-n\), or leave --ring out"):
        sizes(limited(1 << 20), parse(["--ring", "1M", "x.py"]), groups(64), 0)


def test_what_is_asked_for_is_kept_and_the_rest_follows():
    arena = segments.memory() // 32
    found = sizes(segments, parse(["--arena", str(arena), "x.py"]), groups(3), 0)
    assert found == {"arena": arena}
    plan = segments.plan(3, **found)
    assert plan["arena"] == arena - arena % 4096 and taken(plan, 3) <= segments.memory() // 4


def test_a_run_is_refused_before_anything_starts(launch):
    size = f"{segments.memory() >> 30 or 1}G"
    result = launch.program(PROGRAM, options=("-n", 4, "--arena", size))
    assert (result.code, result.out) == (125, "") and len(result.err.splitlines()) == 1
    assert f"a quarter of the memory that there is here ({rounded_size(segments.memory())})" in result.err


def test_runs_of_groups_start(launch):
    script = launch.script(PROGRAM)
    result = launch("-n", 3, script, ":", "-n", 2, "--group", 1, script)
    assert (result.code, sorted(result.lines)) == (0, ["2", "2", "3", "3", "3"])


@pytest.mark.parametrize(("value", "text"), [(7, "7"), (1536, "1.5K"), (2 << 30, "2G"), (8 << 20, "8M")])
def test_sizes_for_reading(value, text):
    assert rounded_size(value) == text


RESIDENT = """
    import pathlib, spcomm
    comm = spcomm.startup()
    status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    print(int(status["RssShmem"].split()[0]))
"""


@pytest.mark.slow
@pytest.mark.linux("reads /proc")
@pytest.mark.parametrize("start", ["fork", "exec"])
def test_prefault(launch, start):
    """Each node has its own arena and ring in memory before it does anything."""
    options = ("-n", 2, "--start", start, "--arena", "24M", "--ring", "8M")
    lazy = launch.program(RESIDENT, options=options)
    eager = launch.program(RESIDENT, options=(*options, "--prefault"))
    assert (lazy.code, eager.code) == (0, 0), eager
    assert all(int(kib) < 8 << 10 for kib in lazy.lines), lazy
    assert all(int(kib) >= 32 << 10 for kib in eager.lines), eager
