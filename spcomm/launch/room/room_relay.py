# SPDX-License-Identifier: MIT
"""The way from the launcher to a box on a member of a room: as `relay`, through the server in place of ssh."""

import _signal
import os
import sys

from spcomm.launch.base import process
from spcomm.launch.base.wire import Wire
from spcomm.launch.remote import relay
from spcomm.launch.remote.framing import MOST
from spcomm.launch.room import connect

_PIECE = 1 << 18


def main() -> None:
    """The top level of the process."""
    process.die_with(int(sys.argv[2]), _signal.SIGKILL)
    Relay(Wire.adopt(int(sys.argv[1]))).run()


class Relay(relay.Relay):
    """One member."""

    what = "member"

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._folder = -1
        self._at = 0  # in it
        self._is_sent = False

    def _start(self) -> None:
        room = self._about["room"]
        place = room["place"][0], room["place"][1]
        self._folder = self._more.pop(0)
        try:
            frames = connect.enter(place, room["key"])
        except connect.EntryError as error:
            self._fail(str(error))
            return
        way = {"run": room["run"], "box": self._about["box"]["number"], "ticket": room["ticket"]}
        connect.hello(frames, "reach", way)
        self._frames = frames
        self._loop.add(frames.reading, self._hear)

    def _heard(self, message: list, data: bytes) -> None:
        if message[0] == "refused":
            self._fail(f"{self.what} {self._about['host']}: {message[1]}")
        else:
            super()._heard(message, data)

    def _begin(self) -> None:
        """The box is there: the folder goes first."""
        if self._hello is not None and not self._is_sent:
            self._send_folder()
        if self._is_sent:
            super()._begin()

    def _send_folder(self) -> None:
        while self._frames.kept < MOST:
            piece = os.pread(self._folder, _PIECE, self._at)  # others read the same file
            if not piece:
                self._is_sent = True
                os.close(self._folder)
                return
            self._at += len(piece)
            self._frames.send(["piece"], piece)

    def _flush(self) -> None:
        super()._flush()
        if self._hello is not None and not self._is_sent:
            self._begin()
            super()._flush()

    def _ended(self) -> None:
        self._loop.remove(self._frames.reading)
        if not self._leaving:
            self._fail(
                f"{self.what} {self._about['host']}: the connection to it has ended, with its nodes; run it again"
            )
