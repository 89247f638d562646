# SPDX-License-Identifier: MIT
"""The core that a node runs on: --bind-to, --report-bindings."""

import os

import pytest

from spcomm.launch.cmdline import values
from spcomm.launch.local import binding

if not hasattr(os, "sched_getaffinity"):
    pytest.skip("this system cannot bind", allow_module_level=True)

WHERE = "import os, spcomm; print(spcomm.startup().rank, *sorted(os.sched_getaffinity(0)))"


def test_nodes_get_cores_in_turn(launch, start):
    places = binding.places()
    assert sorted(cpu for (cpu,) in places) == sorted(os.sched_getaffinity(0))
    result = launch.program(WHERE, options=("-n", 5, "--bind-to", "core", *start))
    assert sorted(result.lines) == [f"{rank} {places[rank % len(places)][0]}" for rank in range(5)]


def test_the_turn_goes_on_with_the_next_group(launch):
    places, script = binding.places(), launch.script("import os; print(*sorted(os.sched_getaffinity(0)))")
    result = launch("-n", 1, "--bind-to", "core", "-l", script, ":", "-n", 2, "--group", 1, script)
    turns = [places[index % len(places)][0] for index in range(3)]
    assert sorted(result.lines) == [f"[0:0] {turns[0]}", f"[1:0] {turns[1]}", f"[1:1] {turns[2]}"]


@pytest.mark.parametrize("options", [(), ("--bind-to", "none")], ids=str)
def test_nodes_run_anywhere_unless_they_are_bound(launch, options):
    allowed = " ".join(map(str, sorted(os.sched_getaffinity(0))))
    assert sorted(launch.program(WHERE, options=("-n", 2, *options)).lines) == [
        f"0 {allowed}",
        f"1 {allowed}",
    ]


def test_only_cores_that_are_allowed_are_used(launch):
    one = max(os.sched_getaffinity(0))
    process = launch.start(
        "-n", 3, "--bind-to", "core", launch.script(WHERE), preexec_fn=lambda: os.sched_setaffinity(0, {one})
    )
    assert sorted(launch.finish(process).lines) == [f"{rank} {one}" for rank in range(3)]


def test_bindings_are_reported(launch):
    places = binding.places()
    script = launch.script("")
    lines = launch("-n", len(places) + 1, "--bind-to", "core", "--report-bindings", script).err.splitlines()
    assert (
        lines[0]
        == f"spcomm: processor {places[0][0]}: nodes 0{'-' if len(places) == 1 else ', '}{len(places)}"
    )
    assert len(lines) == len(places)
    assert "are not bound" in launch("-n", 2, "--report-bindings", script).err


def test_second_hardware_threads_come_last(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3, 4, 5})
    monkeypatch.setattr(binding, "_core", lambda cpu: f"core {cpu % 3}")
    assert binding.places() == [(0,), (1,), (2,), (3,), (4,), (5,)]
    monkeypatch.setattr(binding, "_core", lambda cpu: f"core {cpu // 2}")
    assert binding.places() == [(0,), (2,), (4,), (1,), (3,), (5,)]


def test_each_node_has_the_processors_that_are_given(launch, start):
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    both = sorted({first, last})
    words = ("-n", 3, "--bind-to", f"{first},{last}/{last}", "--report-bindings", *start)
    result = launch.program(WHERE, options=words)
    assert sorted(result.lines) == [
        f"0 {' '.join(map(str, both))}",
        f"1 {last}",
        f"2 {' '.join(map(str, both))}",
    ]
    assert ": nodes 0, 2\n" in result.err and f"spcomm: processor {last}: node 1\n" in result.err


def test_a_range_of_processors():
    assert values.binding("--bind-to", "0-2,5/7") == ((0, 1, 2, 5), (7,))
