# SPDX-License-Identifier: MIT
"""Runs `programs/clusters.py`: nodes for a notebook, ours and others'."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping

from spcomm.bench.peers import PROGRAMS
from spcomm.bench.plain_c import CannotMeasureError

INSTALL = {"ipyparallel": "python -m pip install ipyparallel"}


def measure(
    orders: Mapping[str, Mapping[str, str]], nodes: int, seconds: float, timeout: float
) -> dict[str, list[float]]:
    """Return seconds for each key. An order: `whose` nodes, the same in all, and `what`: their "start" or a "call"."""
    (whose,) = {order["whose"] for order in orders.values()}
    if whose in INSTALL and importlib.util.find_spec(whose) is None:
        raise CannotMeasureError(f"not installed: {whose}; {INSTALL[whose]}")
    words = [sys.executable, str(PROGRAMS / "clusters.py"), whose, str(nodes), str(seconds)]
    found = subprocess.run(
        words, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout
    )
    times = json.loads(found.stdout.splitlines()[-1])
    return {key: times[order["what"]] for key, order in orders.items()}
