# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""Python's own library calls the user's function: its line is shown, not the library's."""

import functools

import spcomm

comm = spcomm.startup()


def combine(total, number):
    other = 1 - comm.rank
    total += comm.recv(other)  # <- node 0: recv(source=1, …) | node 1: recv(source=0, …) in combine
    return total + number


print(functools.reduce(combine, range(3)))
