# SPDX-License-Identifier: MIT
# wrong: the program did not finish: DEADLOCK — both nodes wait, and no message is on its way (2 nodes)
# also: deadlock.py:5
def solve(comm, items):
    comm.recv(source=(comm.rank + 1) % comm.size)
    return sum(items)
