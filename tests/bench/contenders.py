# SPDX-License-Identifier: MIT
"""Invented contenders, so that the bench can be tested without measuring anything."""

import sys
from dataclasses import dataclass

from spcomm.bench.peers import Contender

ANSWER = (
    "import json, sys\n"
    "orders = json.loads(sys.argv[3])\n"
    "json.dump({order['key']: [%r, %r] for order in orders}, open(sys.argv[1], 'w'))\n"
)


@dataclass(frozen=True)
class Invented(Contender):
    """Runs this Python code instead of the programs; its first command line arguments are those of `works`."""

    code: str = ""

    def start(self, nodes, program, arguments):
        return [sys.executable, "-c", self.code, *arguments, *([str(nodes)] if program == "meet" else [])]


def answering(name, seconds, library="mpi4py"):
    return Invented(name, name.title(), library, code=ANSWER % (seconds, seconds))


def with_code(name, code, library="mpi4py"):
    return Invented(name, name.title(), library, code=code)
