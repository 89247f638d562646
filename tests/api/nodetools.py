# SPDX-License-Identifier: MIT
"""Tools of test bodies on the nodes: exact comparison, expected errors, and waiting for events without sleeping."""

import contextlib
import os
import struct
import threading
from pathlib import Path

import numpy as np
import pytest


def same(one, other):
    """Equal to the last bit, and of the same types all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return same_array(one, other)
    if isinstance(one, float):
        return struct.pack("d", one) == struct.pack("d", other)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return one == other


def same_array(one, other):
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.hasobject:
        return all(same(a, b) for a, b in zip(one.ravel(), other.ravel(), strict=True))
    return one.tobytes() == other.tobytes()


@contextlib.contextmanager
def refused(kind, *fragments):
    """The block raises exactly this kind (or one derived from it), and its message has all these fragments."""
    with pytest.raises(kind) as caught:
        yield caught
    text = str(caught.value)
    missing = [str(fragment) for fragment in fragments if str(fragment) not in text]
    assert not missing, f"{missing} not in: {text}"


def boxes(comm):
    """The number of boxes (nodepool.box_options)."""
    return len({line.box for line in comm.layout})


def neighbours(comm):
    """The next and the previous node of the ring."""
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def pass_on(comm, value, tag=0, **options):
    """Every node sends to the next and receives from the one before."""
    following, previous = neighbours(comm)
    comm.send(value, following, tag)
    return comm.recv(previous, tag, **options)


def tree(values, operator):
    """The fixed tree over ranks: v[i] = v[i] op v[i + 2^k] for growing k."""
    values = list(values)
    step = 1
    while step < len(values):
        for index in range(0, len(values) - step, 2 * step):
            values[index] = operator(values[index], values[index + step])
        step *= 2
    return values[0]


def state(thread):
    """One letter of the kernel's, of a thread or of a process's first: S sleeps, R runs (or wants to)."""
    try:
        text = Path(f"/proc/{thread}/stat").read_text()
    except OSError:
        return "gone"
    return text.rpartition(")")[2].split()[0]


def until_asleep(thread):
    """Returns once that thread sleeps, so probably waits inside a call; or is gone, as it did not have to wait.

    What a test concludes must also hold if that comes earlier: then it only tests less.
    """
    seen = 0
    while seen < 20:
        now = state(thread)
        if now == "gone":
            return
        seen = seen + 1 if now == "S" else 0
        os.sched_yield()


def when_asleep(action, thread=None):
    """Starts a thread that does `action` once the calling thread, or that one, sleeps: see `until_asleep`."""
    watched = thread or threading.get_native_id()

    def watch():
        until_asleep(watched)
        action()

    watcher = threading.Thread(target=watch)
    watcher.start()
    return watcher


def workers(*functions):
    """Runs the functions at once, each in a thread; what one raises is raised here."""
    errors = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
