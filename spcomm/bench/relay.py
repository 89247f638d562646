# SPDX-License-Identifier: MIT
"""What a relay in plain C costs on this machine: the least that going through a server can take.

Its source, `programs/relay.c`, is compiled when it is to be measured.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spcomm.bench.peers import PROGRAMS
from spcomm.bench.programs.driver import BATCHES

COMPILERS = ("cc", "gcc", "clang")


class NotHere(Exception):
    """It cannot be measured on this machine; the text is why."""


def measure(
    orders: Mapping[str, Mapping[str, Any]], seconds: float, timeout: float
) -> dict[str, list[float]]:
    """Seconds per message, by batch, for each key. An order: whether it `spins`, the `way`, the `size`.

    `way` is "pingpong", half a round trip, or "stream", 64 one way before the receiver answers.
    """
    with tempfile.TemporaryDirectory(prefix="spcomm-bench-") as folder:
        program = build(Path(folder))
        return {key: one(program, seconds, timeout, **order) for key, order in orders.items()}


def build(folder: Path) -> Path:
    compiler = next((found for found in map(shutil.which, COMPILERS) if found), None)
    if compiler is None:
        raise NotHere(f"there is no C compiler ({', '.join(COMPILERS)}) on the path")
    program = folder / "relay"
    command = [compiler, "-O2", "-pthread", "-o", str(program), str(PROGRAMS / "relay.c")]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines() or ["it said nothing"]
        raise NotHere(f"{compiler} cannot compile it: {said[0]}") from error
    return program


def one(program: Path, seconds: float, timeout: float, *, spins: bool, way: str, size: int) -> list[float]:
    words = ["spin" if spins else "sleep", way, str(size), str(seconds), str(BATCHES)]
    found = subprocess.run(
        [str(program), *words],
        check=True,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
    )
    return [float(line) for line in found.stdout.split()]
