# SPDX-License-Identifier: MIT
# run: -n 2 -m as_a_module
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""Run by its name."""

import spcomm

comm = spcomm.startup()


def main():
    comm.recv(1 - comm.rank)  # <- node 0: recv(source=1, tag=ANY) | node 1: recv(source=0, tag=ANY) in main


main()
