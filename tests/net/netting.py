# SPDX-License-Identifier: MIT
"""Runs whose boxes are connected through a network that breaks."""

import os
import signal
import sys
from pathlib import Path

from launching import Launch
from processes import named
from proxy import Proxy

HERE = Path(__file__).parent
PATHS = [HERE.parent, HERE.parent / "api", HERE.parent / "stress"]


class Net(Launch):
    """Runs of several boxes, with or without a proxy between them and the server."""

    def __init__(self, folder):
        super().__init__(folder)
        self.proxy = None
        self.meddles = False  # by the environment, as through_proxy.py says

    def through(self, **options):
        """From now on, through a proxy."""
        self.proxy = Proxy(**options)
        return self.proxy

    def command(self, *arguments, python=()):
        program = ["-m", "spcomm"] if self.proxy is None and not self.meddles else [HERE / "through_proxy.py"]
        return [sys.executable, *python, *map(str, program), "run", *map(str, arguments)]

    def environment(self, extra=None):
        found = super().environment(extra)
        found["PYTHONPATH"] = ":".join([*map(str, PATHS), found["PYTHONPATH"]])
        if self.proxy is not None:
            found["SPCOMM_TEST_PROXY"] = "{}:{}".format(*self.proxy.address)
        return found

    def close(self):
        super().close()
        if self.proxy is not None:
            self.proxy.close()


def stop(pid):
    """SIGSTOP, and wait until it holds: one thread takes the signal, and the others run until that one has run."""
    os.kill(pid, signal.SIGSTOP)
    for thread in Path(f"/proc/{pid}/task").iterdir():
        while (thread / "stat").read_text().rpartition(")")[2].split()[0] != "T":
            os.sched_yield()


def transports(net, process, nodes):
    """The server and the gateways of a run: {name: process id}."""
    return named(set(net.alive()) - {process.pid, *nodes}, "spcomm")
