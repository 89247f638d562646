# SPDX-License-Identifier: MIT
"""Runs `spcomm run` as a user does, in a process of its own, and looks at what it wrote and left behind."""

import sys
import textwrap

from processes import Runner
from spcomm.launch.cmdline import boxes
from spcomm.launch.cmdline.groups import gather
from spcomm.launch.cmdline.options import parse
from spcomm.launch.cmdline.plan import Plan

STARTS = ("fork", "exec")


def planned(words):
    """The programs and the groups of a command line, with the boxes of their nodes."""
    options = parse(words)
    plans = [
        Plan("script", part.name, [], nodes=part.nodes, group=part.group, boxes=part.boxes)
        for part in options.parts
    ]
    if options.boxes is not None:
        plans = boxes.place(options, plans)
    return gather(plans)


class Launch(Runner):
    """Writes scripts into a folder and runs them there."""

    def script(self, text, name="program.py"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def command(self, *arguments, python=()):
        return [sys.executable, *python, "-m", "spcomm", "run", *map(str, arguments)]

    def start(self, *arguments, env=None, python=(), **options):
        """Start a run without waiting for it."""
        return self.popen(self.command(*arguments, python=python), env, **options)

    def __call__(self, *arguments, stdin=None, env=None, python=(), **streams):
        return self.call(*self.command(*arguments, python=python), stdin=stdin, env=env, **streams)

    def program(self, text, *arguments, options=(), **more):
        """Write a script and run it."""
        return self(*options, self.script(text), *arguments, **more)


# Takes options and a host as ssh does, and runs the command here. A forwarded port is the same at both ends.
_SSH = """#!/bin/sh
while [ $# -gt 2 ]; do
  case $1 in
    -R) echo "Allocated port ${2##*:} for remote forward to 127.0.0.1:${2##*:}" >&2; shift 2;;
    -*) shift 2;;
    *) break;;
  esac
done
echo "Welcome to $1: what a login shell prints is no concern of ours"
[ -f "${0%/*}/$1.box" ] && exec $PYTHON "${0%/*}/$1.box"
shift
exec sh -c "$*"
"""


def stand_in_for_ssh(folder):
    """Write a command for --ssh, and return its path. On HOST it runs folder/HOST.box, if that is there, as the box."""
    path = folder / "ssh"
    path.write_text(_SSH.replace("$PYTHON", sys.executable))
    path.chmod(0o755)
    return str(path)


def leaving_nothing(launch):
    """Sees to it that nothing of any run is left when the test ends."""
    yield launch
    launch.close()
    if sys.platform.startswith("linux"):
        launch.wait_until_nothing_is_left()
