# SPDX-License-Identifier: MIT
"""Keeps a solution away from the rest of the machine: bubblewrap (bwrap), where it is installed and works.

Behind the walls there are the system's programs and libraries, this Python and spcomm, all read-only, and a folder in
memory of limited size. There is no network, no process of others, and nothing of the exercises. Root has no
namespace of users, and is the user nobody behind the walls.
"""

import functools
import os
import shutil
import site
import subprocess
import sys
from dataclasses import dataclass
from pathlib import PurePath

from spcomm.launch.base.process import start_clean
from spcomm.learn import confine
from spcomm.learn.catalogue import exercises_dir
from spcomm.learn.errors import LearnError

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
class Sandbox:
    """Isolation of solutions. `about` is a line for the report."""

    about: str
    bwrap: "str | None" = None

    def command(
        self, inner: "list[str]", files: "dict[str, str]", writable: "dict[str, str]", exercise: str = ""
    ) -> "list[str]":
        """Return the command that runs a given one behind the walls.

        Parameters
        ----------
        inner
            The command to run there.
        files, writable
            Files that are there, read-only and not: their names within `FOLDER`, and where they really are.
        exercise
            A folder that is not to be seen.
        """
        if self.bwrap is None:
            return inner
        words = [self.bwrap, *_outside(exercise), *_in_memory(FOLDER)]
        for name, origin in files.items():
            words += ["--ro-bind", origin, f"{FOLDER}/{name}"]
        for name, origin in writable.items():
            words += ["--bind", origin, f"{FOLDER}/{name}"]
            if os.getuid() == 0:
                os.chown(origin, confine.NOBODY, confine.NOBODY)
        words += ["--remount-ro", "/", "--chdir", FOLDER, "--"]
        return [*words, python(), "-I", "-S", os.path.abspath(confine.__file__), *inner]


@functools.cache
def walls() -> Sandbox:
    """Return the walls that this machine supports; probed once."""
    found = shutil.which("bwrap")
    if found is None:
        return Sandbox(_OPEN.format("installed"))
    made = Sandbox("bubblewrap", found)
    probe = made.command([python(), "-I", "-S", "-c", "pass"], {}, {})
    try:
        # bwrap waits for ever for a child whose end is not told, as where the caller ignores SIGCHLD.
        done = subprocess.run(
            probe,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
            preexec_fn=start_clean,
        )
        why = done.stderr.decode(errors="replace").strip().splitlines()[-1:] if done.returncode else []
        if done.returncode == 0:
            return made
    except (OSError, subprocess.TimeoutExpired) as error:
        why = [str(error)]
    return Sandbox(_OPEN.format(f"allowed here ({why[0][:200] if why else 'it fails'})"))


def require() -> None:
    """Raise `LearnError` unless solutions are kept apart here."""
    found = walls()
    if found.bwrap is None:
        raise LearnError(f"--walls required: nothing is graded here. Isolation: {found.about}")


def python() -> str:
    """This interpreter, by a path that needs no other folders than its own to be there: without `..`."""
    return os.path.abspath(sys.executable)


def _in_memory(place: str) -> "list[str]":
    return ["--perms", "0777", "--size", str(_ROOM), "--tmpfs", place]


def _outside(exercise: str) -> "list[str]":
    """Everything but the folder in which a solution works."""
    words = ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.getuid() == 0:  # a user namespace would leave root's files to the solution
        words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        # bwrap's reaper would be an unfiltered process of the same user: a solution could change its memory.
        words += ["--unshare-all", "--as-pid-1", "--uid", "1000", "--gid", "1000"]
    words += ["--hostname", "box", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    words += [*_in_memory("/dev/shm"), "--remount-ro", "/dev", *_in_memory("/tmp")]
    for path in _SYSTEM:
        words += (
            ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind-try", path, path]
        )
    places = _python()
    shown = [*_SETTINGS, *_MACHINE, *places]
    for folder in sorted({str(parent) for path in shown for parent in PurePath(path).parents} - {"/"}):
        words += ["--perms", "0755", "--dir", folder]  # or else only root may pass through
    for path in shown:
        words += ["--ro-bind-try", path, path]
    for path in _hidden([*(path for path in _SYSTEM if not os.path.islink(path)), *places], exercise):
        words += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
    return words


def _hidden(places: "list[str]", exercise: str) -> "list[str]":
    """Places where exercises and their solutions would be seen: each way to them, if there are links.

    The outer folders only: within a hidden one nothing can be hidden.
    """
    data = os.path.join(os.path.dirname(sys.modules["spcomm"].__file__), "data")  # of a wheel
    named = (data, exercises_dir(), *filter(None, [exercise]))
    folders = {os.path.realpath(folder) for folder in named if os.path.isdir(folder)}
    found = set()
    for place in places:
        real = os.path.realpath(place)
        for folder in folders:
            if folder == real or folder.startswith(real + "/"):
                found.add(place + folder[len(real) :])
            elif real.startswith(folder + "/"):
                found.add(place)
    return sorted(path for path in found if not any(path.startswith(f"{outer}/") for outer in found))


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
