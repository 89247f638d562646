# SPDX-License-Identifier: MIT
# wrong: raised ValueError: yyyyyyyyyy
# also: long_error.py:6, in solve: raise ValueError("y" * 50_000_000)
# also: …
def solve(comm, items):
    raise ValueError("y" * 50_000_000)
