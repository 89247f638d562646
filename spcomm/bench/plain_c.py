# SPDX-License-Identifier: MIT
"""C programs: floors of this machine, such as the minimum time of a server, a barrier or a hop; spcomm's C API; MPI.

The sources, `programs/*.c`, are compiled when they are to be measured. `layers.c` is a program of spcomm's, on two
nodes, and `mpi.c` one of MPI, which each contender compiles and starts; the others use no library.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spcomm.bench.peers import COMPILERS, PROGRAMS, c_compiler
from spcomm.bench.programs.driver import BATCHES
from spcomm.bench.rows import Row
from spcomm.compiling import cflags, libs

LAYERS = "layers"  # the one that is linked with spcomm
LAUNCHER = (sys.executable, "-m", "spcomm", "run", "--no-label", "-n", "2")


class CannotMeasureError(Exception):
    """It cannot be measured on this machine; the text gives the reason."""


def measure(
    name: str, orders: Mapping[str, Mapping[str, Any]], seconds: float, patience_s: Callable[[], float]
) -> Iterator[tuple[str, list[float]]]:
    """Yield each key with its seconds per operation, by batch. The values of an order begin the arguments."""
    with tempfile.TemporaryDirectory(prefix="spcomm-bench-") as folder:
        program = [*(LAUNCHER if name == LAYERS else ()), str(build(name, Path(folder)))]
        for key, order in orders.items():
            yield key, one(program, [*order.values(), seconds], patience_s())


def build(name: str, folder: Path, compiler: Sequence[str] = ()) -> Path:
    """Compile a program; `compiler` has the words that compile for an MPI library."""
    plain = c_compiler()
    if plain is None:
        raise CannotMeasureError(f"no C compiler ({', '.join(COMPILERS)}) on the path")
    program = folder / name
    words = [*(compiler or (plain, "-pthread"))]
    command = [*words, "-O2", "-o", str(program), str(PROGRAMS / f"{name}.c")]
    try:
        command += [*cflags(), *libs()] if name == LAYERS else []
        subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines() or ["it said nothing"]
        raise CannotMeasureError(f"{words[0]} cannot compile it: {said[0]}") from error
    return program


def words_of(rows: Sequence[Row], repetitions: int | None) -> list[str]:
    """Return the orders of `mpi.c`: repetitions in a batch, or 0, and key, work and size of each row."""
    orders = [(row.key, row.work, str(row.parameters.get("size", 0))) for row in rows]
    return [str(repetitions or 0), *(word for order in orders for word in order)]


def one(program: list[str], arguments: list[Any], timeout: float) -> list[float]:
    found = subprocess.run(
        [*program, *map(str, arguments), str(BATCHES)],
        check=True,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
    )
    return [float(line) for line in found.stdout.split()]
