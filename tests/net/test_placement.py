# SPDX-License-Identifier: MIT
"""Random command lines of programs, groups, boxes and hosts: where each node is, against an oracle."""

import random
from itertools import count

import pytest

from launching import planned

HOSTS = ("a", "b", "localhost", "c")


class Program:
    """One program of a command line; `hosts` are pairs of a name and a number of nodes, or None."""

    def __init__(self, name, chance, has_hosts):
        self.name = name
        self.group = chance.choice((0, 0, 1, 5))
        self.start = chance.choice(("fork", "exec"))
        self.hosts = None
        self.nodes = chance.randint(1, 3)
        if has_hosts and chance.random() < 0.8:
            self.hosts = [
                (chance.choice(HOSTS), chance.choice((None, 1, 2))) for _host in range(chance.randint(1, 3))
            ]
            room = sum(slots or 0 for _name, slots in self.hosts)
            if all(slots for _name, slots in self.hosts):
                self.nodes = min(self.nodes, room)

    def words(self, *options):
        hosts = ",".join(name + (f":{slots}" if slots else "") for name, slots in self.hosts or ())
        place = ["--host", hosts] if hosts else []
        group = ["--group", str(self.group)] if self.group else []
        return ["-n", str(self.nodes), *group, "--start", self.start, *place, *options, self.name]

    def machines(self, is_cyclic):
        """The machine of each node: nodes go to the hosts' free places, one after another."""
        seen, free = {}, []
        for name, slots in self.hosts or [("localhost", None)]:
            seen[name] = seen.get(name, -1) + 1
            free.append([(name, seen[name]), slots])
        left = self.nodes - sum(slots or 0 for _machine, slots in free)
        evenly = [place for place in free if place[1] is None]
        for place in evenly:
            place[1] = 0
        for turn in range(max(0, left)):
            evenly[turn % len(evenly)][1] += 1
        taken = []
        while len(taken) < self.nodes:  # fill hosts in the order given; in turns it is the same share of each
            place = next(one for one in free if taken.count(one[0]) < one[1])
            taken.append(place[0])
        if not is_cyclic:
            return taken
        found, order = [], [place[0] for place in free]
        while len(found) < self.nodes:
            found += [one for one in order if taken.count(one) > found.count(one)]
        return found


class CommandLine:
    """A random one, and the place that each node must have."""

    def __init__(self, seed):
        chance = random.Random(seed)
        has_hosts = chance.random() < 0.5
        self.programs = [
            Program(name, chance, has_hosts)
            for name in ("one.py", "two.py", "three.py")[: chance.randint(1, 3)]
        ]
        size = sum(program.nodes for program in self.programs)
        how = chance.choice(("block", "cyclic", "map"))
        self.options = ["--map", how] if how != "map" else []
        if any(program.hosts for program in self.programs):
            of_each = [program.machines(how == "cyclic") for program in self.programs]
            self._machines = [machine for some in of_each for machine in some]
            self._order = self._mentioned()
            if how == "map":  # the hosts' own nodes, mixed
                self._mix(of_each, chance)
        else:
            number = chance.randint(1, min(4, size))
            self._order = list(range(number))
            counts = [-(-(size - box) // number) for box in self._order]
            self._machines = {
                "block": [box for box in self._order for _node in range(counts[box])],
                "cyclic": [node % number for node in range(size)],
                "map": chance.sample(
                    [*self._order, *(chance.choice(self._order) for _ in range(size - number))], size
                ),
            }[how]
            self.options += ["--boxes", str(number)]
            if how == "map":
                self.options += ["--map", ",".join(map(str, self._machines))]

    def _mentioned(self):
        """The machines with nodes, in the order in which the command line names them."""
        found = []
        for program in self.programs:
            seen = {}
            for name, _slots in program.hosts or [("localhost", None)]:
                seen[name] = seen.get(name, -1) + 1
                found.append((name, seen[name]))
        return list(dict.fromkeys(found))

    def _mix(self, of_each, chance):
        mixed = [chance.sample(some, len(some)) for some in of_each]
        machines = [machine for some in mixed for machine in some]
        numbers = [self._order.index(machine) for machine in machines]
        if set(numbers) == set(range(max(numbers) + 1)):  # otherwise a box would have no node
            self._machines = machines
            self.options += ["--map", ",".join(map(str, numbers))]

    @property
    def words(self):
        found = []
        for at, program in enumerate(self.programs):
            found += ([":"] if at else []) + program.words(*([] if at else self.options))
        return found

    def expected(self):
        """Each group, by number: for each rank the program, the box of the run, and that of the group."""
        machines = iter(self._machines)
        used = [machine for machine in self._order if machine in self._machines]
        groups = {}
        for program in self.programs:
            for _node in range(program.nodes):
                groups.setdefault(program.group, []).append((program.name, used.index(next(machines))))
        found = {}
        for number, nodes in groups.items():
            own = sorted({box for _name, box in nodes})
            found[number] = [(name, box, own.index(box)) for name, box in nodes]
        return found


def test_where_nodes_are_of_random_command_lines():
    kinds = set()
    for seed in range(400):
        line = CommandLine(seed)
        plans, groups = planned(line.words)
        programs = {index: plan.target for plan in plans for index in plan.indices}
        found = {
            group.number: [
                (programs[group.first + rank], group.boxes_of_run[group.box(rank)], group.box(rank))
                for rank in range(group.size)
            ]
            for group in groups
        }
        assert found == line.expected(), (seed, line.words)
        kinds.add((len(groups), max(group.boxes for group in groups), "--host" in line.words))
    assert {(groups, 3, has_hosts) for groups in (1, 2, 3) for has_hosts in (False, True)} <= kinds


SAYS = """
    import os, sys, spcomm
    comm = spcomm.startup()
    name = os.path.basename(sys.argv[0])
    names = comm.allgather(name)
    assert comm.allreduce(1 << comm.rank) == (1 << comm.size) - 1
    for rank in range(comm.size):
        comm.send((comm.group_id, comm.rank), rank)
    assert {comm.recv() for _rank in range(comm.size)} == {(comm.group_id, rank) for rank in range(comm.size)}
    print(comm.group_id, comm.rank, names, [(line.box, line.local_rank) for line in comm.layout], flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_runs_of_random_command_lines(launch, ssh, seed):
    line = CommandLine(seed)
    for program in line.programs:
        launch.script(SAYS, program.name)
    ways = ["--ssh", ssh] if "--host" in line.words else []
    result = launch(*ways, *line.words)
    lines = []
    for number, nodes in line.expected().items():
        numbers = {box: count() for _name, _of_run, box in nodes}
        layout = [(box, next(numbers[box])) for _name, _of_run, box in nodes]
        names = [name for name, _of_run, _box in nodes]
        lines += [f"{number} {rank} {names} {layout}" for rank in range(len(nodes))]
    assert result.code == 0 and result.err == "", (line.words, result)
    assert sorted(result.lines) == sorted(lines), line.words
