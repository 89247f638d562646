# SPDX-License-Identifier: MIT
"""`spcomm`, but with what tests do to the connections of gateways; the environment says what.

SPCOMM_TEST_PROXY: gateways reach the server, and each other, through the proxy at this address (proxy.py).
SPCOMM_TEST_NOWHERE: no gateway reaches another.
SPCOMM_TEST_ONCE: connections between gateways can be made until this file exists.
"""

import os
import socket
import sys
import types

from spcomm import cli
from spcomm.launch.remote import handshake, peers
from spcomm.launch.remote.peers import Peers
from spcomm.launch.remote.transport_processes import TransportProcesses


def reach(_self, box, address):
    host, port = os.environ["SPCOMM_TEST_PROXY"].split(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall(f"{box} {address[0]} {address[1]}\n".encode())
        return host, int(sock.makefile().readline())


def nowhere(_self, _box, _address):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # and does not listen
        return sock.getsockname()


def enter(*arguments, enter=handshake.enter):
    if os.path.exists(os.environ["SPCOMM_TEST_ONCE"]):
        raise ConnectionRefusedError
    return enter(*arguments)


if "SPCOMM_TEST_PROXY" in os.environ:
    TransportProcesses._reach = Peers._reach = reach
if "SPCOMM_TEST_NOWHERE" in os.environ:
    Peers._reach = nowhere
if "SPCOMM_TEST_ONCE" in os.environ:
    peers.handshake = types.SimpleNamespace(**{**vars(handshake), "enter": enter})
sys.exit(cli.main())
