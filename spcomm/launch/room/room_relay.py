# SPDX-License-Identifier: MIT
"""The way from the launcher to a box on a member of a room: as `relay`, through the server in place of ssh."""

import _signal
import os
import sys

from spcomm.launch.base import process
from spcomm.launch.base.wire import Wire
from spcomm.launch.remote import relay, versions
from spcomm.launch.remote.framing import MOST, one_line
from spcomm.launch.room import connect
from spcomm.launch.room.room_link import ClientLink

_PIECE = 1 << 18
_ABANDONED_S = 1.0  # for the server to receive the end


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

    def run(self) -> None:
        """Run until the launcher ends. If it was killed, this process tells the server."""
        try:
            super().run()
        except ConnectionError:
            self._abandoned()

    def _abandoned(self) -> None:
        if self._frames is not None:
            self._frames.send(["abandoned"])
            self._frames.finish(_ABANDONED_S)
        os._exit(0)

    def _start(self) -> None:
        room = self._about["room"]
        place = room["place"][0], room["place"][1]
        self._folder = self._more.pop(0)
        way = {"run": room["run"], "box": self._about["box"]["number"], "ticket": room["ticket"]}
        try:
            link = ClientLink(self._loop, place, room["key"], "reach", way)
        except connect.FinalError as error:
            self._fail(f"{self.what} {self._about['host']}: {error}")
        except connect.EntryError as error:
            self._fail(str(error))
        self._frames = link
        link.listen(self._loop, self._hear)
        process.die_with(0, 0)  # from now on the end of the wire shows it, in time to tell the server

    def _leave(self) -> None:
        self._wire.send(("gone",))
        if self._frames is not None:
            self._frames.finish(_ABANDONED_S)
        os._exit(0)

    def _begin(self) -> None:
        """The box is there: send it the folder first."""
        if self._hello is not None and self._about["box"].get("cluster"):
            theirs = one_line(self._hello.get("python", ""), 40)
            if theirs.split(".")[:2] != versions.mine()["python"].split(".")[:2]:
                self._fail(
                    f"{self.what} {self._about['host']} has Python {theirs}, and this machine has "
                    f"{versions.mine()['python']}; a Cluster sends compiled code, so both need the same 3.x"
                )
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
        if not self._leaving:
            self._fail(
                f"{self.what} {self._about['host']}: the connection to it has ended, with its nodes; run it again"
            )
