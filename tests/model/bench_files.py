# SPDX-License-Identifier: MIT
"""Files as `spcomm bench --json` writes them, of a machine whose times follow from known parameters."""

import json
import random

from spcomm.bench.results_file import FORMAT
from spcomm.model import terms
from spcomm.model.loggp import Estimate, LogGP
from spcomm.model.measured import Case

SIZES = (8, 64, 512, 4096, 32768, 262144)
NODES = (2, 3, 4, 6, 8, 12, 16)
CORES = 2
SHARES = {"one_way": 0.7, "send_overhead": 0.4, "receive_overhead": 0.3}


def exactly(*values):
    return [Estimate(value, value, value) for value in values]


KNOWN = {
    "memory": LogGP(*exactly(150, 120, 60, 180, 0.2), (1.0,), *exactly(140, 0.1)),
    "tcp": LogGP(*exactly(900, 700, 14000, 1000, 1.2), (1.0,), *exactly(600, 1.5)),
}
TERMS = {
    "memory": {"call": 300, "size": 0.5, "turn": 700, "crowd": 200, "byte": 0.1, "far_byte": 0.2},
    "tcp": {"turn": 20000, "crowd": 1500, "byte": 0.4, "far_byte": 0.5},
}
TERMS["memory"] |= {"block": 2000, "turn_block": 500}
TERMS["tcp"] |= {"block": 9000, "turn_block": 3000}
SLOWER = {"direct": 4000, "server": 9000, "encrypted": 3000}  # of the paths, in ns


def time_ns(case):
    """The time of a case on the invented machine."""
    loggp = KNOWN[case.transport]
    added = SHARES.get(case.operation, 1) * loggp.size_ns(case.size)
    if case.operation in ("send_overhead", "receive_overhead"):
        return getattr(loggp, f"overhead_{case.operation.partition('_')[0]}_ns").value + added
    if case.operation == "one_way":
        return loggp.gap_ns.value + added
    if case.operation == "pingpong":
        return loggp.message_ns(case.size)
    names = terms.names(terms.key(case, CORES))
    numbers = terms.numbers(case, CORES, loggp)
    return sum(TERMS[case.transport][name] * number for name, number in zip(names, numbers, strict=True))


def cases():
    """All cases that a whole measurement has."""
    found = []
    for transport in KNOWN:
        for name in (*terms.OPERATIONS, "send_overhead", "receive_overhead"):
            operation = terms.OPERATIONS.get(name, terms.OPERATIONS["pingpong"])
            for n in (2,) if operation.is_pair else NODES:
                sizes = SIZES if operation.has_size else (8,) if name == "global_sum" else (0,)
                found += [Case(name, n, size, transport) for size in sizes]
    return found


def entry(case, rounds, **changes):
    tcp = case.transport == "tcp"
    return {
        "key": str(case),
        "contender": "spcomm",
        "operation": case.operation,
        "nodes": case.nodes,
        "boxes": case.nodes if tcp else 1,
        "transport": case.transport,
        "route": ("direct" if case.direct else "server") if tcp else None,
        "encrypted": case.encrypted,
        "bytes": case.size,
        "buffers": "hot",
        "computing": 0,
        "unit": "s",
        "samples": [[1e-9 * time, 1e-9 * time] for time in rounds],
        **changes,
    }


def document(entries, **changes):
    return {
        "format": FORMAT,
        "date": "2026-11-25T04:10:00+00:00",
        "machine": {"cores": CORES, "system": "Linux", "python": "3.11"},
        "versions": {},
        "measurements": entries,
        **changes,
    }


def write(path, which=None, noise=0.0, rounds=3, seed=1):
    """Write a file of these cases, of all by default; noise is the deviation of the logarithm of each round."""
    dice = random.Random(seed)
    entries = [
        entry(case, [time_ns(case) * 2.718281828 ** dice.gauss(0, noise) for _ in range(rounds)])
        for case in (cases() if which is None else which)
    ]
    path.write_text(json.dumps(document(entries)))
    return str(path)
