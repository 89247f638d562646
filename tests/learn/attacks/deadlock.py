# SPDX-License-Identifier: MIT
# wrong: the program did not finish (2 nodes):
# also: DEADLOCK
# also: deadlock.py:6
def solve(comm, items):
    comm.recv(source=(comm.rank + 1) % comm.size)
    return sum(items)
