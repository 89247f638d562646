# SPDX-License-Identifier: MIT
"""Exercise 7: a small statistics program in which the nodes do not call the same collective operations."""

import spcomm


def solve(comm, values):
    """Return (how many, mean, largest) of the values of all nodes; `values` are this node's floats, maybe none."""
    # TODO: three lines are wrong. Run it, read the report, fix what it names, and run it again
    count = comm.global_sum(len(values))
    if comm.rank == 0:
        comm.barrier()  # wait until all have counted
    total = comm.global_sum(sum(values))
    largest = None
    if values:
        largest = comm.global_max(max(values))
    return count, total / count, largest


if __name__ == "__main__":
    comm = spcomm.startup()
    print(solve(comm, [1.5, 2.5, 9.0][comm.rank % 4 :]))  # node 3 has none
