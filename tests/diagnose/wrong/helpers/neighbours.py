# SPDX-License-Identifier: MIT
"""A module of line_of_a_module.py."""


def swap(comm, value):
    found = comm.recv(1 - comm.rank)  # <- node 0: recv(source=1, …) | node 1: recv(source=0, …) in swap
    comm.send(value, 1 - comm.rank)
    return found
