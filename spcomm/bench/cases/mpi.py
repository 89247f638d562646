# SPDX-License-Identifier: MIT
"""MPI programs. Two nodes exchange messages; eight share the cores, whatever their number. Libraries wait as
they do by default: all of them poll, and yield where there are more nodes than cores.
"""

from typing import Any

from spcomm.bench.cases.arrays import KIB, MIB
from spcomm.bench.rows import HOT, MILLISECONDS, MPI4PY, MPI_C, Goal, Row, each

NODES = (2, 4, 8)
MANY = 8
CROWDED = 0.5  # the goal of all rows with so many nodes

# title: work, parameters, and the goals by nodes. A row without a goal for 2, 4 or 8 nodes is not measured with them.
WORKS: dict[str, dict[str, tuple[str, dict[str, Any], dict[int, float]]]] = {
    MPI4PY: {
        "8 bytes, ping-pong": ("pingpong", {"size": 8, "cold": False}, {2: 0.75}),
        "64 KiB, ping-pong": ("pingpong", {"size": 64 * KIB, "cold": False}, {2: 0.6}),
        "1 MiB, ping-pong": ("pingpong", {"size": MIB, "cold": False}, {2: 0.7}),
        "16 MiB, ping-pong": ("pingpong", {"size": 16 * MIB, "cold": False}, {2: 0.9}),
        "small dict, ping-pong": ("object_pingpong", {}, {2: 0.85}),
        "small dict, ring": ("ring", {}, {MANY: CROWDED}),
        "Irecv, Isend, Waitall": ("exchange", {"size": 8}, {2: 0.8, MANY: CROWDED}),
        "Allreduce of 8 bytes": ("allreduce", {"size": 8}, {2: 0.65, MANY: CROWDED}),
        "Allreduce of 1 MiB": ("allreduce", {"size": MIB}, {2: 0.5, MANY: CROWDED}),
        "bcast of a small dict": ("object_broadcast", {}, {2: 0.9, MANY: CROWDED}),
        "Bcast of 8 MiB": ("broadcast", {"size": 8 * MIB}, {4: 0.85}),
        "Barrier": ("barrier", {}, {2: 0.35, MANY: CROWDED}),
    },
    MPI_C: {
        "8 bytes, ping-pong": ("pingpong", {"size": 8}, {2: 0.75}),
        "8 bytes, ring": ("ring", {"size": 8}, {MANY: CROWDED}),
        "Irecv, Isend, Waitall": ("exchange", {"size": 8}, {2: 0.9, MANY: CROWDED}),
        "Allreduce of 8 bytes": ("allreduce", {"size": 8}, {2: 0.7, MANY: CROWDED}),
        "Barrier": ("barrier", {}, {2: 0.6, MANY: CROWDED}),
    },
}
LAUNCH = {"openmpi": 0.25, "mpich": 0.9}  # start to finish, beside each
LAUNCH_NODES = 4
LANGUAGES = {MPI4PY: "Python", MPI_C: "C"}


@each
def rows(n: int) -> list[Row]:
    return [*works(n), *launches(n)]


def works(n: int) -> list[Row]:
    return [
        Row(
            "-".join(
                ["mpi", dialect, work, *([str(parameters["size"])] if "size" in parameters else []), str(n)]
            ),
            f"{LANGUAGES[dialect]}: {title}, {n} nodes",
            work,
            n,
            parameters,
            Goal(goals[n]) if n in goals else None,
            program="mpi",
            dialect=dialect,
            size_bytes=parameters.get("size"),
            buffers=HOT if "size" in parameters else "",
        )
        for dialect, entries in WORKS.items()
        for title, (work, parameters, goals) in entries.items()
        if n in goals or n not in NODES
    ]


def launches(n: int) -> list[Row]:
    """Start to finish of a program that imports NumPy and mpi4py, and meets in a barrier."""
    return [
        Row(
            f"mpi-launch-{n}-{peer}",
            f"Python: start to finish, {n} nodes",
            "launch",
            n,
            goal=Goal(ratio),
            peers=(peer,),
            unit=MILLISECONDS,
            dialect=MPI4PY,
        )
        for peer, ratio in LAUNCH.items()
        if n == LAUNCH_NODES
    ]
