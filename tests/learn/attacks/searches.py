# SPDX-License-Identifier: MIT
# right
# walls only: it fails if it finds what it should not.
import os
from pathlib import Path

import spcomm


def solve(comm, items):
    assert sorted(os.listdir(".")) == ["searches.py", "trace.json"]
    checkout = Path(spcomm.__file__).resolve().parent.parent
    assert not (checkout / "exercises").exists() and not (checkout / "tests").exists(), os.listdir(checkout)
    data = checkout / "spcomm" / "data"
    assert not data.exists() or not os.listdir(data)
    others = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    assert len(others) < 20, others
    for place in ("spcomm", "/usr/lib", "/etc"):
        try:
            Path(checkout / place, "mine").touch()
        except OSError:
            continue
        raise AssertionError(f"{place} can be written")
    return comm.allreduce(sum(items)) // comm.size
