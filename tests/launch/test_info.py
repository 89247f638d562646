# SPDX-License-Identifier: MIT
"""`spcomm info`: the page and its JSON."""

import json
import os
import sys

from spcomm import info
from spcomm._core import segments


def test_the_page_says_what_matters(launch):
    done = launch.spcomm("info")
    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) <= 24, "one page"
    rows = dict(line.split(None, 1) for line in done.out.splitlines())
    expected = {
        "spcomm",
        "Python",
        "system",
        "cores",
        "memory",
        "buffers",
        "/dev/shm",
        "memfd",
        "pidfd",
    }
    assert expected <= set(rows) and {"mpiexec", "mpi4py", "tmux", "gdb"} <= set(rows)
    assert rows["cores"].startswith(f"{segments.cores():g} may be used")


def test_json_has_the_same(launch):
    done = launch.spcomm("info", "--json")
    found = json.loads(done.out)
    assert (
        found["memory"]["usable"] == segments.memory()
        and found["memory"]["buffers"] == segments.memory() // 4
    )
    assert found["processors"]["usable"] == segments.cores()
    assert set(found["allowed"]) == set(segments.features())
    assert found["versions"]["python"].split()[0] == ".".join(map(str, sys.version_info[:3]))
    assert info.page(found)


def test_what_is_switched_off_is_not_allowed(launch):
    found = json.loads(launch.spcomm("info", "--json", env={"SPCOMM_DISABLE": "memfd,futex"}).out)["allowed"]
    assert (found["memfd"], found["futex"]) == (False, False)
    page = launch.spcomm("info", env={"SPCOMM_DISABLE": "memfd"}).out
    assert "no: shared memory lies in /dev/shm" in page


def test_an_mpi_is_found_and_asked(launch):
    tool = launch.script("#!/bin/sh\necho 'mpiexec (of a test) 1.2'\n", "mpiexec")
    tool.chmod(0o755)
    found = json.loads(
        launch.spcomm("info", "--json", env={"PATH": f"{launch.folder}{os.pathsep}{os.defpath}"}).out
    )
    assert found["mpi"]["mpiexec"] == f"{tool} (mpiexec (of a test) 1.2)"
    nothing = json.loads(launch.spcomm("info", "--json", env={"PATH": str(launch.folder / "nowhere")}).out)
    assert nothing["mpi"]["mpiexec"] is None and nothing["tools"]["tmux"] is None


def test_help(launch):
    assert launch.spcomm("info", "--help").out.startswith("usage: spcomm info")
