# SPDX-License-Identifier: MIT
"""Two hosts as two network namespaces with a cable between them, which is slow, or loses packets."""

import os
import shutil
import subprocess

import pytest

RUNS = """
    import numpy as np, spcomm
    comm = spcomm.startup()
    for step in range(20):
        assert comm.allreduce(comm.rank + step) == sum(range(comm.size)) + step * comm.size
    total = comm.allreduce(np.full(20_000, comm.rank, float))
    assert (total == sum(range(comm.size))).all()
    print(comm.rank, comm.box, flush=True)
"""


def ip(*words):
    found = subprocess.run(["ip", *words], capture_output=True, text=True)
    if found.returncode:
        raise OSError(found.stderr.strip())


@pytest.fixture
def cable(tmp_path):
    """The namespaces of launcher and host; a function that sets what the cable does to packets."""
    if not (shutil.which("ip") and shutil.which("tc")):
        pytest.skip("needs ip and tc")
    names = [f"spcomm-{os.getpid()}-{end}" for end in "ab"]
    ends = [f"sp{os.getpid() % 10**7}{end}" for end in "ab"]
    made = []
    try:
        try:
            for name in names:
                ip("netns", "add", name)
                made.append(name)
            ip(
                "-n",
                names[0],
                "link",
                "add",
                ends[0],
                "type",
                "veth",
                "peer",
                "name",
                ends[1],
                "netns",
                names[1],
            )
            for number, (name, end) in enumerate(zip(names, ends, strict=True), 1):
                ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", end)
                ip("-n", name, "link", "set", end, "up")
                ip("-n", name, "link", "set", "lo", "up")
        except OSError as error:
            pytest.skip(f"namespaces cannot be made here: {error}")

        def does(*words):
            for name, end in zip(names, ends, strict=True):
                command = [
                    "ip",
                    "netns",
                    "exec",
                    name,
                    "tc",
                    "qdisc",
                    "add",
                    "dev",
                    end,
                    "root",
                    "netem",
                    *words,
                ]
                found = subprocess.run(command, capture_output=True, text=True)
                if found.returncode:
                    pytest.skip(f"tc cannot do this here: {found.stderr.strip()}")

        yield names, does
    finally:
        for name in made:
            ip("netns", "del", name)


@pytest.mark.parametrize("way", [(), ("delay", "20ms"), ("loss", "2%"), ("rate", "20mbit")], ids=" ".join)
def test_over_a_cable(launch, tmp_path, cable, way):
    (here, there), does = cable
    if way:
        does(*way)
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\nshift\nexec ip netns exec {there} sh -c "$*"\n')
    ssh.chmod(0o755)
    plain = launch.command
    launch.command = lambda *words, python=(): ["ip", "netns", "exec", here, *plain(*words, python=python)]
    # The host's address is also its name: the launcher finds its own that reaches it.
    result = launch(
        "--host", "localhost:2,10.77.0.2:2", "--ssh", ssh, "--tunnel", "none", launch.script(RUNS)
    )
    assert result.code == 0, result
    assert sorted(result.lines) == ["0 0", "1 0", "2 1", "3 1"]
    assert "boxes connect to 10.77.0.1:" in result.err, result
