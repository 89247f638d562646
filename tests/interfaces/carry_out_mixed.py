# SPDX-License-Identifier: MIT
"""The nodes in Python of a random schedule whose other nodes are in C (carry_out.c): SEED NODES INFILE.

All messages are bytes, and what is left out of the schedule is what C programs have no call for.
"""

import sys

import carry_out
import spcomm
from schedule import Schedule


def contents(source, sent):
    word = f"{source}:{sent.number}:"
    return (word * (sent.size // len(word) + 1))[: sent.size].encode()


class MixedSchedule(Schedule):
    """Events that both languages have."""

    def collect(self):
        self.hold()
        kind = self.chance.choice(["allreduce", "reduce", "scan"])
        self.add("collect", None, kind, self.any_node(), self.chance.choice([1, 100, 3000, 20_000]))

    def reduce(self):
        self.hold()
        kind = self.chance.choice(["global_sum", "global_min", "global_max"])
        self.add("reduce", None, kind, "int", self.chance.getrandbits(30))

    def time_out(self):
        pass

    def poll(self):
        pass

    def exchange(self):
        pass


def schedule(seed, nodes):
    return MixedSchedule(seed, nodes, 150, 400_000, 1 + seed % 7)


if __name__ == "__main__":
    carry_out.contents = contents
    comm = spcomm.startup(infile=sys.argv[-1])
    carry_out.Worker(comm, schedule(int(sys.argv[1]), comm.size)).run()
    print(comm.rank, "has carried it out")
