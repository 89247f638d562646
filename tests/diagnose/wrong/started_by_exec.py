# SPDX-License-Identifier: MIT
# run: -n 2 --start exec
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""Nodes that were not forked."""

import spcomm

comm = spcomm.startup()


def main():
    comm.recv(1 - comm.rank, tag=2)  # <- node 0: recv(source=1, …) | node 1: recv(source=0, …) in main


main()
