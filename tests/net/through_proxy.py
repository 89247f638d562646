# SPDX-License-Identifier: MIT
"""`spcomm`, but with what tests do to the connections of agents; the environment says what.

SPCOMM_TEST_PROXY: agents reach the server, and each other, through the proxy at this address (proxy.py).
SPCOMM_TEST_NOWHERE: no agent reaches another.
SPCOMM_TEST_CHANGES: the agent of box 0 changes the route to box 1 so many times, and then makes a file, `done`.
"""

import os
import pathlib
import socket
import sys

from spcomm import cli
from spcomm.launch.carriers import Carriers
from spcomm.launch.peers import Peers


def reach(_self, box, address):
    host, port = os.environ["SPCOMM_TEST_PROXY"].split(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall(f"{box} {address[0]} {address[1]}\n".encode())
        return host, int(sock.makefile().readline())


def nowhere(_self, _box, _address):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # and does not listen
        return sock.getsockname()


def change(self):
    """The other route, once the last one is taken; a little later again, so that something goes over each."""
    counts = self._agent.peer_counts(1)
    wants = getattr(self, "wants_direct", True)
    if counts["changes"] >= int(os.environ["SPCOMM_TEST_CHANGES"]):
        pathlib.Path("done").touch()
        return
    if counts["direct"] == wants:
        self.wants_direct = not wants
        self._agent.route(1, self.wants_direct)
    self._loop.at("change", 0.002, lambda: change(self))


def reached(self, host, plain=Peers.reached):
    plain(self, host)
    if self._place[2] == 0:
        change(self)


if "SPCOMM_TEST_PROXY" in os.environ:
    Carriers._reach = Peers._reach = reach
if "SPCOMM_TEST_NOWHERE" in os.environ:
    Peers._reach = nowhere
if "SPCOMM_TEST_CHANGES" in os.environ:
    Peers.reached = reached
sys.exit(cli.main())
