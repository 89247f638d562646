# SPDX-License-Identifier: MIT
"""Other programs' use of the machine, from invented counters."""

import os

import pytest

from spcomm.bench import neighbours
from spcomm.bench.neighbours import Neighbours, busy_seconds

TICKS = os.sysconf("SC_CLK_TCK")


def write(path, busy, idle):
    user, nice, system, irq, softirq, steal = (seconds * TICKS for seconds in busy)
    path.write_text(f"cpu  {user} {nice} {system} {idle * TICKS} 7 {irq} {softirq} {steal} 0 0\ncpu0 1 1 1\n")


def test_busy_time_is_all_but_idle(tmp_path):
    write(tmp_path / "stat", busy=(1, 2, 3, 4, 5, 6), idle=1000)
    assert busy_seconds(tmp_path / "stat") == 21


def test_own_time_does_not_count(monkeypatch, tmp_path):
    clock, own = iter([100.0, 110.0]), iter([3.0, 8.0])
    monkeypatch.setattr(neighbours, "monotonic", lambda: next(clock))
    monkeypatch.setattr(neighbours, "own_seconds", lambda: next(own))
    write(tmp_path / "stat", busy=(10, 0, 0, 0, 0, 0), idle=0)
    watch = Neighbours(tmp_path / "stat")
    write(tmp_path / "stat", busy=(20, 0, 0, 0, 0, 0), idle=10)
    assert watch.cores() == pytest.approx(0.5)  # 10 s busy, 5 of them our own, in 10 s


def test_unknown_elsewhere(tmp_path):
    assert Neighbours(tmp_path / "none").cores() is None
    (tmp_path / "odd").write_text("cpu a b\n")
    assert Neighbours(tmp_path / "odd").cores() is None
