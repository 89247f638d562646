# SPDX-License-Identifier: MIT
# wrong: raised MemoryError at eats_memory.py:4, in solve: data = bytearray(1 << 40)
def solve(comm, items):
    data = bytearray(1 << 40)
    return sum(items) + len(data)
