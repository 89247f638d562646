# SPDX-License-Identifier: MIT
"""Classes that stand in for each other have the methods of their contract: mypy compares."""

import subprocess
import sys

import pytest

from checkout import ROOT

# The types that the callers of each contract are given.
GIVEN = """
from spcomm.launch.local.fork_client import ForkClient
from spcomm.launch.local.node_contract import Listener, RemoteListener, RemoteStarter, Starter
from spcomm.launch.remote.box import Box
from spcomm.launch.remote.transport_contract import Transport, Transports
from spcomm.launch.remote.hosts import RemoteForkClient
from spcomm.launch.remote.transport_processes import TransportProcess, TransportProcesses
from spcomm.launch.room.client import Server, ServerTransport
from spcomm.launch.supervise.supervisor import Supervisor
from spcomm.notebook.nodes import Nodes
from spcomm.notebook.room_nodes import RoomNodes

def starters(here: ForkClient, there: RemoteForkClient) -> "list[Starter]":
    return [here, there]

def remote_starters(there: RemoteForkClient) -> "list[RemoteStarter]":
    return [there]

def listeners(box: Box, here: Nodes) -> "list[Listener]":
    return [box, here]

def remote_listeners(launcher: Supervisor, there: RoomNodes) -> "list[RemoteListener]":
    return [launcher, there]

def transports(process: TransportProcess, server: Server) -> "list[Transport]":
    return [process, server]

def of_a_run(processes: TransportProcesses, server: ServerTransport) -> "list[Transports]":
    return [processes, server]
"""


def complaints(tmp_path, text):
    pytest.importorskip("mypy")
    path = tmp_path / "given.py"
    path.write_text(text)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--follow-imports=silent",
        "--cache-dir",
        tmp_path / "cache",
        path,
    ]
    found = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=200)
    return found.stdout.splitlines()[:-1]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_stand_ins_keep_the_contract(tmp_path):
    assert complaints(tmp_path, GIVEN) == []
    given = GIVEN.replace("there: RemoteForkClient", "there: ForkClient").replace(
        "there: RoomNodes", "there: Nodes"
    )
    wrong = complaints(tmp_path, given)
    for found, contract in (("ForkClient", "RemoteStarter"), ("Nodes", "RemoteListener")):
        assert any(f'"{found}"; expected "{contract}"' in line for line in wrong), wrong
