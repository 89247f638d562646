# SPDX-License-Identifier: MIT
"""A room on this machine: `spcomm serve`, members and runs, each a process of its own."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

import pytest

from launching import Launch
from processes import read_until
from spcomm._core import net
from spcomm.launch.base.loop import Loop
from spcomm.launch.remote.control_link import ControlLink, LinkError
from spcomm.launch.remote.framing import FrameError, encode, take_frame
from spcomm.launch.room import join_code
from spcomm.launch.room.broker import Broker
from spcomm.launch.room.room_framing import RoomFrames

CODE = " ".join(map(join_code.word, (1, 22, 333, 4444, 5555, 7000)))
OTHER_CODE = " ".join(map(join_code.word, (1, 22, 333, 4444, 5555, 7001)))
HOST = "127.0.0.2"  # to spcomm another machine, since it is not 127.0.0.1: what goes there is encrypted


class Room(Launch):
    """Commands of a room, in a folder of their own, with a folder for what is temporary."""

    def __init__(self, folder):
        super().__init__(folder)
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        (folder / "work").mkdir()
        self.folder = folder / "work"
        self.server = None
        self.port = 0
        self.members = []

    def environment(self, extra=None):
        found = {**super().environment(), "SPCOMM_CODE": CODE, "TMPDIR": str(self.temporary), **(extra or {})}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def place(self):
        return f"{HOST}:{self.port}"

    def command(self, *arguments, python=()):
        return [sys.executable, *python, "-m", "spcomm", *map(str, arguments)]

    def serve(self, *options, **more):
        """Start a server, and wait until it listens."""
        self.server = self.start("serve", "--listen", f"{HOST}:0", *options, **more)
        shown = read_until(self.server.stdout, "Ctrl-C ends it.")
        self.port = int(re.search(rf" at {HOST}:(\d+)\.", shown).group(1))
        return shown

    def join(self, name, *options, env=None):
        """Start a member, and wait until it is one."""
        process = self.start("join", self.place, "--name", name, *options, env=env)
        self.members.append(process)
        read_until(process.stderr, "in the room: ")
        return process

    def run(self, *arguments, **more):
        """A run in the room, which is waited for."""
        return self("run", "--room", self.place, *arguments, **more)

    def box(self, *command, infile, name="run.toml", env=None, place=None, stdin=subprocess.DEVNULL):
        """Start a program without a launcher, with the path of an infile that names the server as its last argument."""
        path = self.folder / name
        path.write_text(f'server = "{place or self.place}"\n{infile}\n')
        # In a process group of its own, as a shell does it: Ctrl-C reaches all of it.
        return self.popen([*command, path], env, stdin=stdin, process_group=0)

    def close_room(self):
        """As by Ctrl-C; what server and members have said besides."""
        self.server.send_signal(signal.SIGINT)
        return [self.finish(process) for process in (self.server, *self.members)]

    def left(self):
        """The names in the folder for temporary files."""
        return sorted(path.name for path in self.temporary.iterdir())


# ---- a room in this process


class Site:
    """A broker, and connections to it, in this process."""

    def __init__(self):
        self.loop = Loop()
        self.server = net.Server(30, keep_running=True)
        self.said = []
        about = {"room": True, "expires": time.time() + 1e6, "most": 64, "link_timeout": 30.0}
        self.broker = Broker(self.loop, self.server, {}, about, self.said.append)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.read, self.write = os.pipe()
        self.loop.add(self.read, lambda: os.read(self.read, 1))

    def guest(self):
        client = socket.create_connection(self.listener.getsockname())
        self.broker.welcome(self.listener.accept()[0], None, b"")
        return Guest(client)

    def serve(self):
        """Until everything that was said is heard."""
        os.write(self.write, b".")
        while select.select([self.read], [], [], 0)[0]:
            self.loop.turn()
            self.broker.flush()
        self.loop.at("now", 0.0, lambda: None)
        self.loop.turn()
        self.broker.flush()

    def close(self):
        self.broker.part()
        self.broker.close()
        self.loop.close()
        self.listener.close()
        os.close(self.read)
        os.close(self.write)


class Guest:
    """A connection, and once the room has said so, a link over it."""

    def __init__(self, client):
        self.frames = RoomFrames(client, None)
        self.link = None
        self.close = self.frames.close

    def send(self, message, data=b""):
        if self.link is None:
            self.frames.send(message)
            return
        self.link.send(encode(message, data))
        self._write(self.link.output(1 << 20))

    def _write(self, data):
        if data:
            self.frames.write(data)

    def garbage(self, data):
        self._write(data)

    def heard(self):
        """The messages that have come; None: it was sent away."""
        try:
            if self.link is None:
                return self._heard_first()
            data = self.frames.read()
            return None if data is None else self._took(data)
        except (FrameError, LinkError):
            pytest.fail("the room says what makes no sense")

    def _heard_first(self):
        message = self.frames.message()
        if not message:
            return message
        if message[0] not in ("linked", "resumed"):
            return [message]
        self.link = ControlLink(message[-1], 0.0)
        self.link.attach(0, 0.0)
        return self._took(self.frames.rest())

    def _took(self, data):
        found = []
        self.link.feed(data, 0.0, found)
        self.link.tick(0.0)
        self._write(self.link.output(1 << 20))
        return [take_frame(bytearray(message))[0] for message in found]
