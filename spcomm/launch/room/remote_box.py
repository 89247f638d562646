# SPDX-License-Identifier: MIT
"""One box of a run, on a member of a room: as `box`, but it connects outwards, and the folder comes over the wire.

`spcomm join` starts it, and sends its arguments over its standard input; the end of that input ends it.
"""

import json
import os
import shutil
import tempfile

from spcomm._core import net
from spcomm.launch.base.loop import Loop
from spcomm.launch.remote.box import Box, withdraw
from spcomm.launch.room import connect, folder
from spcomm.launch.room.room_link import ClientLink

_ABANDONED_S = 1.0  # for the run to receive the message


def main() -> None:
    """The top level of the process."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            os._exit(0)
        line += byte
    about = json.loads(line)
    watch = os.dup(0)
    withdraw()
    net.rename("spcomm box")
    key = bytes.fromhex(about["key"])
    ticket = {name: about[name] for name in ("run", "box", "ticket")}
    try:
        link = ClientLink(Loop(), (about["place"][0], about["place"][1]), key, "box", ticket)
    except connect.EntryError as error:
        os.write(2, f"spcomm join: {error}\n".encode("utf-8", "backslashreplace"))
        os._exit(125)
    RoomBox(link, watch, about).run()


class RoomBox(Box):
    """Ends with the run, with `spcomm join`, or when the server is gone."""

    def __init__(self, link: ClientLink, watch: int, about: dict) -> None:
        super().__init__(link)
        self._of = about
        self._server = link.peer
        self._packed = tempfile.TemporaryFile()
        self._loop.add(watch, self._abandoned)

    def _greet(self) -> None:
        """The link was opened by that."""

    def _abandoned(self) -> None:
        """`spcomm join` has ended, or was killed."""
        self._patience_s = _ABANDONED_S
        self._leave()

    def _heard(self, message: list, data: bytes) -> None:
        if message[0] == "piece":
            self._packed.write(data)
            if self._packed.tell() > folder.MOST_PACKED:
                self._fail("the folder that came is larger than allowed")
        elif message[0] == "begin":
            self._unpack(message[1], data)
        else:
            super()._heard(message, data)

    def _unpack(self, about: dict, secrets: bytes) -> None:
        """The folder is there: the run begins in it."""
        try:
            folder.unpack(self._packed, self._of["folder"])
        except (OSError, ValueError) as error:
            self._fail(f"the program's folder cannot be unpacked there ({error})")
        self._packed.close()
        for program in about["programs"]:
            program["folder"] = os.path.normpath(os.path.join(self._of["folder"], program["folder"]))
            program["environment"]["PWD"] = program["folder"]
        about["address"] = list(self._server)
        self._begin(about, secrets)

    def _tidy(self) -> None:
        shutil.rmtree(self._of["folder"], ignore_errors=True)
