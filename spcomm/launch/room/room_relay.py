# SPDX-License-Identifier: MIT
"""The way from the launcher to a box on a member of a room: as `relay`, through the server in place of ssh."""

import os
import signal
import sys

from spcomm.launch.base import process
from spcomm.launch.base.wire import NONSENSE, Wire
from spcomm.launch.remote import relay, versions
from spcomm.launch.remote.framing import MOST, one_line
from spcomm.launch.room import connect, fetch
from spcomm.launch.room.room_link import ClientLink

_PIECE = 1 << 18
_ABANDONED_S = 1.0  # for the server to receive the end


def main() -> None:
    """The top level of the process."""
    process.end_by_interrupt()
    process.die_with(int(sys.argv[2]), signal.SIGKILL)
    Relay(Wire.adopt(int(sys.argv[1]))).run()


class Relay(relay.Relay):
    """One member."""

    what = "member"

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._folder = -1
        self._at = 0  # in it
        self._is_sent = False
        self._list: list | None = None  # of the files that nodes wrote: the entries, and their number
        self._incoming: fetch.Incoming | None = None

    def run(self) -> None:
        """Run until the launcher ends. If it was killed, this process tells the server."""
        try:
            super().run()
        except ConnectionError:
            self._abandoned()

    def _abandoned(self) -> None:
        if self._incoming is not None:
            self._incoming.give_up("it was interrupted")
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

    # Files of the nodes

    def _order(self, message: tuple, descriptors: "list[int]") -> None:
        if message[0] == "fetch":
            self._fetch(*message[1:])
        elif message[0] != "stop_fetching":
            super()._order(message, descriptors)
        elif self._incoming is not None:
            self._give_up("it was interrupted")

    def _lose_patience(self) -> None:
        if self._incoming is None:  # otherwise no node is left, and files still come
            super()._lose_patience()

    def _heard(self, message: list, data: bytes) -> None:
        verb, *rest = message
        if verb == "files":
            self._listed(*rest)
        elif verb in fetch.VERBS:
            self._take(verb, rest, data)
        elif verb == "gone" and self._incoming is not None:
            self._give_up("it ended before they were sent")
        else:
            super()._heard(message, data)

    def _listed(self, entries: list, count: int, size: int, others: int) -> None:
        fetch.check_list(entries, count, size, others)
        if self._list is not None or self._about["box"].get("cluster"):
            raise ValueError("files")
        self._list = [entries, count]
        names = [fetch.shown(name) for name, _size in entries[: fetch.SHOWN]]
        sizes = [size for name, size in entries if not fetch.refusal(name)]
        self._wire.send(("files", names, count, sizes, others))

    def _fetch(self, files: int, size: int) -> None:
        top, place = self._about["room"]["fetch"]
        self._incoming = fetch.Incoming(top, place, *self._list, files, size)
        self._frames.send(["fetch", self._incoming.wanted])
        self._see_progress(None)

    def _take(self, verb: str, rest: list, data: bytes) -> None:
        if self._incoming is None:
            raise ValueError(verb)
        try:
            self._incoming.take(verb, rest, data)
        except NONSENSE:
            self._incoming.give_up("it sent a malformed message")
        self._report_fetched()

    def _see_progress(self, before: "int | None") -> None:
        """Check, as long as files come, that they come: a member must not keep a run for ever."""
        if self._incoming is None:
            return
        seconds = 2 * self._about["box"]["link_timeout"]
        came = self._incoming.came
        if before is not None and fetch.is_too_slow(came - before, seconds):
            self._give_up("they come too slowly")
        else:
            self._loop.at("progress", seconds, lambda: self._see_progress(came))

    def _give_up(self, why: str) -> None:
        self._incoming.give_up(why)
        self._report_fetched()

    def _report_fetched(self) -> None:
        """Report to the launcher, once nothing more comes."""
        incoming = self._incoming
        if incoming is None or not incoming.is_over:
            return
        self._incoming = None
        self._loop.forget("progress")
        self._wire.send(("fetched", *incoming.report()))
        if incoming.trouble:
            self._leave()

    def _ended(self) -> None:
        if self._incoming is not None:
            self._give_up("the connection to it has ended")
        if not self._leaving and self._frames.is_gone:
            self._fail(f"{self._frames.why}; the nodes were stopped (exit code 125)")
        if not self._leaving:
            self._fail(
                f"{self.what} {self._about['host']}: the connection to it has ended, with its nodes; run it again"
            )
