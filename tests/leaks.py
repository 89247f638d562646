# SPDX-License-Identifier: MIT
"""Leftovers that no test may have: processes, file descriptors, shared memory.

The test process adopts orphans (Linux), so a node that outlived its launcher is found here, not lost to init.
"""

import contextlib
import ctypes
import gc
import os
import select
import sys
import time
from pathlib import Path

PATIENCE = 10.0  # seconds for processes that are on their way out
PR_SET_CHILD_SUBREAPER = 36
# multiprocessing keeps these for the life of the process, whoever used it first.
LONG_LIVED = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


def adopt_orphans():
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parent_of(pid):
    """The parent of a process, or None once it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except OSError:
        return None


def child_numbers():
    """The children of this process, dead but unreaped ones too."""
    try:
        lists = [
            Path(f"/proc/self/task/{task}/children").read_text() for task in os.listdir("/proc/self/task")
        ]
        return [int(number) for numbers in lists for number in numbers.split()]
    except OSError:  # a kernel without these lists
        me = os.getpid()
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and parent_of(entry) == me]


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "?"


def children():
    """{pid: command} of the children of this process, but for those that stay for good."""
    found = {pid: command_of(pid) for pid in child_numbers()}
    return {pid: command for pid, command in found.items() if not any(name in command for name in LONG_LIVED)}


def descriptors():
    """{descriptor: what it refers to}."""
    found = {}
    for entry in os.listdir("/proc/self/fd"):
        try:
            found[int(entry)] = os.readlink(f"/proc/self/fd/{entry}")
        except OSError:  # the directory's own descriptor
            pass
    tracker = getattr(sys.modules.get("multiprocessing.resource_tracker"), "_resource_tracker", None)
    found.pop(getattr(tracker, "_fd", None), None)
    return found


def shared_files():
    """The names of shared memory whose creator, which stands in the name, is this process or has ended.

    Live processes are those of other tests that run now, or are found as processes. Semaphores of multiprocessing name
    no creator.
    """
    try:
        names = os.listdir("/dev/shm")
    except OSError:
        return set()
    creators = {name: int(name.split("-")[1], 16) for name in names if name.startswith("spcomm-")}
    ended = {
        name for name, pid in creators.items() if pid == os.getpid() or not os.path.exists(f"/proc/{pid}")
    }
    return ended | {name for name in names if name.startswith("sem.mp-")}


def stays(name, deadline):
    """Whether shared memory stays. Semaphores of other tests on this machine disappear by themselves."""
    if not name.startswith("sem."):
        return True
    while os.path.exists(f"/dev/shm/{name}") and not is_mapped(name):
        if time.monotonic() > deadline:
            return True
        time.sleep(0.01)  # nothing tells when a name is removed
    return False


def is_mapped(name):
    """Whether some process uses it."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if f"/dev/shm/{name}" in maps.read_text(errors="replace"):
                return True
        except OSError:
            pass
    return False


def snapshot():
    return children(), descriptors(), shared_files()


def wait_for_end(pid, deadline):
    """Wait until a process ends, whoever's child it is, and tell whether it did."""
    try:
        descriptor = os.pidfd_open(pid)
    except (ProcessLookupError, AttributeError):
        return True
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(max(0.0, deadline - time.monotonic()) * 1000))
    finally:
        os.close(descriptor)


def leaked(before):
    """Sentences on what is there now and was not in the snapshot; ends the processes among it."""
    processes, files, memory = before
    deadline = time.monotonic() + PATIENCE
    complaints = []
    for pid, command in sorted(children().items()):
        if pid not in processes and not wait_for_end(pid, deadline):
            complaints.append(f"process {pid} still runs: {command}")
            os.kill(pid, 9)
            wait_for_end(pid, deadline + PATIENCE)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    new = {fd: target for fd, target in descriptors().items() if files.get(fd) != target}
    if new:
        gc.collect()
        still = descriptors()
        complaints += [
            f"descriptor {fd} is still open: {t}" for fd, t in sorted(new.items()) if still.get(fd) == t
        ]
    complaints += [
        f"shared memory /dev/shm/{name} is still there"
        for name in sorted(shared_files() - memory)
        if stays(name, deadline)
    ]
    return complaints
