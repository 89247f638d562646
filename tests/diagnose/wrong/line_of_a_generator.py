# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""A generator that receives is used before the other node sends."""

import spcomm

comm = spcomm.startup()


def incoming(source):
    while True:
        yield comm.recv(source)  # <- node 0: recv(source=1, …) | node 1: recv(source=0, …) in incoming


print(sum(value for value, _ in zip(incoming(1 - comm.rank), range(3), strict=False)))
