# SPDX-License-Identifier: MIT
"""A room on this machine: `spcomm serve`, members and runs, each a process of its own."""

import re
import signal
import subprocess
import sys

from launching import WATCHDOG_S, Launch
from spcomm.launch.room import join_code

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

    def box(self, *command, infile, name="run.toml", env=None):
        """Start a program without a launcher, with the path of an infile that names the server as its last argument."""
        path = self.folder / name
        path.write_text(f'server = "{self.place}"\n{infile}\n')
        process = subprocess.Popen(
            [*map(str, command), str(path)],
            cwd=self.folder,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0,  # as a shell does it: Ctrl-C reaches all of it
        )
        self.running.append(process)
        return process

    def close_room(self):
        """As by Ctrl-C; what server and members have said besides."""
        self.server.send_signal(signal.SIGINT)
        return [self.finish(process) for process in (self.server, *self.members)]

    def left(self):
        """What is in the folder for temporary files."""
        return sorted(path.name for path in self.temporary.iterdir())


def read_until(stream, text):
    """Lines up to one that contains this: a test's way to wait for it."""
    found = ""
    while text not in found:
        line = stream.readline().decode()
        assert line, f"{text!r} did not come, but\n{found}"
        found += line
    return found


def finished(process):
    """Standard output and error of somebody who ends by himself."""
    try:
        return process.communicate(timeout=WATCHDOG_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
