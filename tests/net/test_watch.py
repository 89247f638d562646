# SPDX-License-Identifier: MIT
"""`--watch` of nodes on other hosts: what they wait for, and where."""

import pytest

from terminal import Terminal

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
