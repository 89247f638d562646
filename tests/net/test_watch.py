# SPDX-License-Identifier: MIT
"""`--watch` of nodes on other machines: their calls and lines."""

import re
import subprocess

import pytest

from processes import read_until
from terminal import Terminal
from test_watch_page import TOLD, Client

WAITS = """
import signal, spcomm
comm = spcomm.startup()
def step():
    comm.recv(source=0, tag=7)
step() if comm.rank else signal.pause()
"""


@pytest.mark.slow
def test_nodes_on_other_hosts_are_shown(launch, ssh):
    terminal = Terminal()
    terminal.run(launch, "--host", "a:2,b:2", "--ssh", ssh, "--watch", launch.script(WAITS))

    def waiting(t):
        return [
            line.split()[0]
            for line in t.lines
            if "recv(source=0, tag=7)  " in line and "program.py:5 in step" in line
        ]

    terminal.until(lambda t: [node for node in waiting(t) if node.isdecimal()] == ["1", "2", "3"])
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    terminal.check()
    terminal.close()


@pytest.mark.slow
def test_nodes_of_a_room_are_on_a_page(room):
    """The page shows what they do while they run, and at the end the timelines of all members."""
    room.serve("--room")
    room.join("ann", "--nodes", 2)
    room.join("bob", "--nodes", 1)
    program = room.script(TOLD)
    process = room.start(
        "run", "--room", room.place, "-n", 3, "--watch=browser", program, stdin=subprocess.PIPE
    )
    link = re.search(r":(\d+)/\?token=(\w+)\n", read_until(process.stderr, "watch this run at"))
    for _node in range(3):
        process.stdout.readline()
    client = Client(int(link[1]), link[2])
    assert "nodes 0-2" in client.get("/")[1].decode(), "their timeline comes at the end"
    news = client.until(lambda news: [row[1] for row in news["state"]["rows"]].count("waits") == 2)
    for row in news["state"]["rows"][1:]:
        assert row[3].startswith("barrier") and row[4].startswith("program.py:"), row
    assert news["pieces"] == []
    process.stdin.write(b"\n")
    assert client.until(lambda news: news["state"].get("is_over"))["state"]["code"] == 0
    status, page = client.get("/trace?page=5")
    assert status == 200 and re.findall(rb'"(?:barrier|first)"', page) == [b'"barrier"', b'"first"']
    assert room.finish(process).code == 0
