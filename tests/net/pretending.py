# SPDX-License-Identifier: MIT
"""Another server, or none of spcomm: a listener whose connections get one answer."""

import contextlib
import socket
import sys
import threading

from spcomm._core import net

ORDER = 1 if sys.byteorder == "little" else 2


def message(kind, *, verdict=0, order=ORDER, version=net.VERSION, random=bytes(32)):
    """One of the handshake, as launch/remote/handshake.py lays it out."""
    head = b"spch" + bytes([kind, verdict, order, 0]) + version.to_bytes(4, "little")
    return head + bytes(20) + random


HELLO, CHALLENGE, PROOF, VERDICT = 1, 2, 3, 5


class Pretender:
    """Says `answer` to whoever has said something, and hangs up; None: says nothing, and stays."""

    def __init__(self, answer):
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.place = f"127.0.0.1:{self.port}"
        self._guests = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while True:
            guest, _address = self._listener.accept()
            if self._guests is None:
                guest.close()
                return
            self._guests.append(guest)
            guest.settimeout(60)
            with contextlib.suppress(OSError):  # it may leave before it has read all
                if self._answer is not None and guest.recv(64):
                    guest.sendall(self._answer)
                    guest.shutdown(socket.SHUT_WR)
                    while guest.recv(4096):  # until it has read, and left
                        pass

    def close(self):
        guests, self._guests = self._guests, None
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._thread.join()
        for one in (*guests, self._listener):
            one.close()
