# SPDX-License-Identifier: MIT
# run: -n 2
# says: SP101 both nodes wait, and no message is on its way
# circle: 0 → 1 → 0
# hint: let one node send before it receives
"""The wait is within a method, called by a method, called by a function."""

import spcomm


class Neighbour:
    def __init__(self, comm):
        self.comm = comm
        self.other = 1 - comm.rank

    def fetch(self):
        return self.comm.recv(  # <- node 0: recv(source=1, tag=8) | node 1: recv(source=0, tag=8) in fetch
            self.other,
            tag=8,
        )

    def exchange(self, value):
        found = self.fetch()
        self.comm.send(value, self.other, tag=8)
        return found


def main():
    print(Neighbour(spcomm.startup()).exchange(1))


main()
