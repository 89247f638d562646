# SPDX-License-Identifier: MIT
"""The program of every node of a pool (nodepool.py): runs the test functions that pytest names."""

import faulthandler
import gc
import importlib.util
import os
import pickle
import signal
import socket
import sys
import traceback
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [
    str(TESTS),
    *(str(TESTS / folder) for folder in ("core", "api", "launch", "faults", "stress", "interfaces")),
]

import spcomm  # noqa: E402

LEFT_BEHIND = 20  # messages listed


def receive(link):
    """The next task; None when pytest has closed the connection."""
    head = link.recv(8, socket.MSG_WAITALL)
    return (
        pickle.loads(link.recv(int.from_bytes(head, "little"), socket.MSG_WAITALL))
        if len(head) == 8
        else None
    )


def answer(link, message):
    data = pickle.dumps(message)
    link.sendall(len(data).to_bytes(8, "little") + data)


def function(path, name):
    """The test function; its module is imported once."""
    key = f"tests_of_{Path(path).parent.name}_{Path(path).stem}"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[key] = module
        spec.loader.exec_module(module)
        gc.freeze()  # what is imported stays: the collection after each test passes over it
    return getattr(sys.modules[key], name)


def locals_of(error):
    """The variables where it happened: there is no pytest here that rewrites assertions."""
    trace = error.__traceback__
    frames = [frame for frame, _ in traceback.walk_tb(trace)]
    inside = [frame for frame in frames if "tests_of_" in frame.f_globals.get("__name__", "")]
    lines = []
    for name, value in (inside or frames)[-1].f_locals.items():
        try:
            text = repr(value)
        except Exception as problem:
            text = f"<repr failed: {problem!r}>"
        lines.append(f"    {name} = {text[:300]}")
    return "\n".join(lines)


def unmatched(comm):
    """The messages that the test sent and nobody received; the queues are empty afterwards."""
    comm.barrier()
    comm.poll()
    comm.barrier()  # what was queued has been sent by every poll, and by this wait
    left = comm.poll()
    found = []
    while (message := comm.try_recv_message()) is not None:
        found.append(f"from {message.source}, tag {message.tag}: {message.data!r:.80}")
    comm.barrier()
    return left, found


def execute(comm, path, name, arguments):
    try:
        function(path, name)(comm, **arguments)
        gc.collect()
        left, found = unmatched(comm)
        if left or found:
            listed = "\n".join(found[:LEFT_BEHIND])
            return (
                "failed",
                f"node {comm.rank}: poll() gives {left}; {len(found)} messages left behind:\n{listed}",
            )
    except BaseException as error:
        if type(error).__name__ == "Skipped":
            return "skipped", str(error)
        return "failed", f"{traceback.format_exc()}{locals_of(error)}"
    return "passed", ""


def part_of(whole):
    """All nodes but the first, in the opposite order; the first gets None."""
    return whole.split(None if whole.rank == 0 else 0, key=-whole.rank)


def main():
    whole = spcomm.startup()
    comm = part_of(whole) if "part" in sys.argv[2:] else whole
    if comm is None:
        whole.barrier()
        return
    stacks = open(Path(sys.argv[1]).parent / f"stacks-{comm.rank}", "w")
    faulthandler.register(signal.SIGUSR1, stacks, all_threads=True)
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect(sys.argv[1])
    answer(link, (comm.rank, os.getpid()))
    while (task := receive(link)) is not None:
        answer(link, execute(comm, *task))
    if comm is not whole:
        whole.barrier()


if __name__ == "__main__":
    main()
