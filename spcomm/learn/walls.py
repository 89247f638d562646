# SPDX-License-Identifier: MIT
"""Keeps a solution away from the rest of the machine: bubblewrap (bwrap), where it is installed and works.

Behind the walls there are the system's programs and libraries, this Python and spcomm, all read-only, and a folder in
memory of limited size. There is no network, no process of others, and nothing of the exercises.
"""

import functools
import os
import shutil
import site
import subprocess
import sys
from dataclasses import dataclass

from spcomm.learn.catalogue import exercises_dir

FOLDER = "/box"  # where a solution works, behind walls
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
)
_MACHINE = ("/sys/devices/system/cpu", "/sys/devices/system/node")
_ROOM = 64 << 20  # bytes of files
_OPEN = (
    "none: bubblewrap is not {}; the solution could read the judge's files, see and end other processes of this \
user, use the network and fill the disk. Install bubblewrap (apt install bubblewrap), or grade in a container"
)


@dataclass(frozen=True)
class Walls:
    """How solutions are kept apart. `about` is a line for the report."""

    about: str
    bwrap: "str | None" = None

    def command(self, inner: "list[str]", files: "dict[str, str]", writable: "dict[str, str]") -> "list[str]":
        """Return the command that runs another one behind the walls.

        Parameters
        ----------
        inner
            What is run there.
        files, writable
            Files that are there, read-only and not: their names within `FOLDER`, and where they really are.
        """
        if self.bwrap is None:
            return inner
        words = [self.bwrap, *_outside(), "--size", str(_ROOM), "--tmpfs", FOLDER]
        for name, origin in files.items():
            words += ["--ro-bind", origin, f"{FOLDER}/{name}"]
        for name, origin in writable.items():
            words += ["--bind", origin, f"{FOLDER}/{name}"]
        return [*words, "--remount-ro", "/", "--chdir", FOLDER, "--", *inner]


@functools.cache
def walls() -> Walls:
    """Find out what this machine can do; asked once."""
    found = shutil.which("bwrap")
    if found is None:
        return Walls(_OPEN.format("installed"))
    made = Walls("bubblewrap", found)
    probe = made.command([python(), "-I", "-S", "-c", "pass"], {}, {})
    try:
        done = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
        why = done.stderr.decode(errors="replace").strip().splitlines()[-1:] if done.returncode else []
        if done.returncode == 0:
            return made
    except (OSError, subprocess.TimeoutExpired) as error:
        why = [str(error)]
    return Walls(_OPEN.format(f"allowed here ({why[0][:200] if why else 'it fails'})"))


def python() -> str:
    """This interpreter, by a path that needs no other folders than its own to be there: without `..`."""
    return os.path.abspath(sys.executable)


def _outside() -> "list[str]":
    """Everything but the folder in which a solution works."""
    words = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--uid", "1000", "--gid", "1000", "--hostname", "box", "--proc", "/proc", "--dev", "/dev"]
    words += ["--size", str(_ROOM), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    words += ["--size", str(_ROOM), "--tmpfs", "/tmp"]
    for path in _SYSTEM:
        words += (
            ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind-try", path, path]
        )
    places = _python()
    for path in (*_SETTINGS, *_MACHINE, *places):
        words += ["--ro-bind-try", path, path]
    for path in _hidden([*(path for path in _SYSTEM if not os.path.islink(path)), *places]):
        words += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
    return words


def _hidden(places: "list[str]") -> "list[str]":
    """Where exercises and their solutions would be seen in these places: each way to them, if there are links."""
    data = os.path.join(os.path.dirname(sys.modules["spcomm"].__file__), "data")  # of a wheel
    folders = {os.path.realpath(folder) for folder in (data, exercises_dir()) if os.path.isdir(folder)}
    found = set()
    for place in places:
        real = os.path.realpath(place)
        for folder in folders:
            if folder == real or folder.startswith(real + "/"):
                found.add(place + folder[len(real) :])
            elif real.startswith(folder + "/"):
                found.add(place)
    return sorted(found)


def _python() -> "list[str]":
    """Folders of this Python, of packages and of spcomm, that are not the system's; outer ones first."""
    package = os.path.dirname(os.path.abspath(sys.modules["spcomm"].__file__))
    places = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, package]
    places += [*site.getsitepackages(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    if site.ENABLE_USER_SITE:
        places.append(site.getusersitepackages())
    places.append(os.path.dirname(os.path.realpath(sys.executable)))
    found = {os.path.abspath(place) for place in places} | {os.path.realpath(place) for place in places}
    kept: list[str] = []
    for place in sorted(found):
        inside = any(place == outer or place.startswith(outer + "/") for outer in (*_SYSTEM, *kept))
        if place != "/" and not inside and os.path.isdir(place):
            kept.append(place)
    return kept
