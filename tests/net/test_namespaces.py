# SPDX-License-Identifier: MIT
"""Two hosts as two network namespaces with a cable between them, which is slow, or loses packets."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from netting import stop
from processes import read_lines, read_until

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
                command = f"ip netns exec {name} tc qdisc add dev {end} root netem".split() + list(words)
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


# ---- a cable that is unplugged

ADDS = """
    import sys, spcomm
    comm = spcomm.startup()
    print("ready", flush=True)
    while line := comm.bcast(sys.stdin.readline() if comm.rank == 0 else None, 0):
        print(comm.rank, comm.allreduce(int(line)), flush=True)
"""


def shell(room, namespace, *words, stdin=subprocess.DEVNULL, **more):
    """Start a command of spcomm, or another one, on one of the hosts."""
    return room.popen(["ip", "netns", "exec", namespace, *words], more, stdin=stdin)


@pytest.fixture
def wired(room, cable):
    """A room on one host with a member on each; functions that unplug the cable and plug it in."""
    (here, there), _does = cable
    end = ip_output("-n", here, "-o", "link", "show", "type", "veth").split(":")[1].split("@")[0].strip()

    def plug(state):
        ip("-n", here, "link", "set", end, state)

    def spcomm(namespace, *words, **more):
        return shell(room, namespace, *room.command(*words), **more)

    def serve(timeout):
        words = ("serve", "--room", "--listen", "10.77.0.1", "--link-timeout", timeout)
        room.server = spcomm(here, *words)
        read_until(room.server.stdout, "Ctrl-C ends it.")
        for name, namespace in (("ann", here), ("bob", there)):
            room.members.append(spcomm(namespace, "join", "10.77.0.1", "--name", name))
            read_until(room.members[-1].stderr, "in the room: ")

    def run():
        words = ("run", "--room", "10.77.0.1", "--members", 2, "--stall", 0, "-n", 3, room.script(ADDS))
        started = spcomm(here, *words, stdin=subprocess.PIPE)
        assert read_lines(started, 3) == ["ready"] * 3
        return started

    yield SimpleNamespace(
        room=room,
        serve=serve,
        run=run,
        unplug=lambda: plug("down"),
        plug_in=lambda: plug("up"),
        there=there,
    )


def ip_output(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


def add(run, number):
    run.stdin.write(b"%d\n" % number)
    assert sorted(read_lines(run, 3)) == [f"{rank} {3 * number}" for rank in range(3)]


def connections(namespace):
    """The local ports of its connections."""
    table = subprocess.run(
        ["ip", "netns", "exec", namespace, "cat", "/proc/net/tcp"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in table.splitlines()[1:]]
    return {row[1] for row in rows if row[3] == "01"}  # ESTABLISHED


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_cable_that_is_unplugged_and_plugged_in_is_no_event(wired):
    """For so long that each connection over it has been given up; a message is under way."""
    wired.serve(12)
    run = wired.run()
    for number in range(3):
        before = connections(wired.there)
        assert len(before) >= 3  # of the member, its box, and the gateway
        wired.unplug()
        run.stdin.write(b"%d\n" % number)
        while connections(wired.there) & before:
            time.sleep(0.05)
        wired.plug_in()
        assert sorted(read_lines(run, 3)) == [f"{rank} {3 * number}" for rank in range(3)]
    result = wired.room.finish(run, b"")
    assert result.code == 0 and result.err == "", result
    server, *members = wired.room.close_room()
    assert server.code == 0 and "has left" not in server.err, server
    assert [member.code for member in members] == [0, 0], members


@pytest.mark.slow
def test_a_laptop_that_sleeps_between_runs_is_back_without_a_hand(wired):
    """Its processes stand still, and nothing reaches it, for longer than all timeouts."""
    wired.serve(3)
    run = wired.run()
    add(run, 1)
    assert wired.room.finish(run, b"").code == 0
    sleeper = wired.room.members[1]
    stop(sleeper.pid)
    wired.unplug()
    read_until(wired.room.server.stderr, "bob has left (1 member)")
    wired.plug_in()
    os.kill(sleeper.pid, signal.SIGCONT)
    read_until(wired.room.server.stderr, "bob has joined")
    read_until(sleeper.stderr, "this machine is back in the room, as bob")
    run = wired.run()
    add(run, 2)
    assert wired.room.finish(run, b"").code == 0
    assert [one.code for one in wired.room.close_room()] == [0, 0, 0]


# ---- the tutorial

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "09_boxes.md"


def of_the_page():
    """The blocks of the section on two laptops, and the command for the server of two."""
    section = PAGE.read_text().partition("## From one laptop to two\n")[2].partition("\n## ")[0]
    [listens] = re.findall(r"`(spcomm serve --listen [^`]+)`", section)
    return re.findall(r"```\n(.*?)\n```", section, re.DOTALL), listens


@pytest.mark.parametrize("laptops", [1, 2])
def test_commands_of_the_tutorial(room, cable, laptops):
    """Literally, at the usual port."""
    [serves, infiles, program, commands], listens = of_the_page()
    ends = cable[0]
    (room.folder / "program.py").write_text(program)
    for at, name in enumerate(("first.toml", "second.toml")):
        text = "\n".join(re.split(r" {2,}", line)[at] for line in infiles.splitlines())
        (room.folder / name).write_text(text.replace("localhost", "10.77.0.1") if laptops == 2 else text)
    path = {"SPCOMM_CODE": None, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def start(end, command):
        return shell(room, ends[end], "sh", "-c", f"exec {command}", **path)

    room.server = start(0, listens if laptops == 2 else serves)
    shown = read_until(room.server.stdout, "Ctrl-C ends it.")
    assert shown.startswith("A server at "), shown
    [code] = re.findall(r"^    (\w+(?: \w+){5})$", shown, re.MULTILINE)
    (room.folder / "code.txt").write_text(code)
    first, second = commands.splitlines()
    boxes = [start(0, first)]
    read_until(boxes[0].stderr, "spcomm: waiting for nodes: 3 of 5 are there (3 on ")
    boxes.append(start(laptops - 1, second))
    for number, (box, ranks) in enumerate(zip(boxes, ((0, 1, 3), (2, 4)), strict=True)):
        result = room.finish(box)
        assert result.code == 0, result
        assert sorted(result.lines) == [f"node {rank} of 5 is in box {number}" for rank in ranks], result
    assert room.close_room()[0].code == 0
