# SPDX-License-Identifier: MIT
"""Judges exercise 14: two formulas, and a program whose makespan is the predicted one."""

from spcomm.learn.case import Case, Wrong, close, counted, short


def cases(rng):
    shares = [[0.1, 4], [0.0, 7], [1.0, 5], [0.5, 1], *([rng.random(), rng.randint(2, 64)] for _ in range(6))]
    speedups = [[4.0, 4], [1.0, 3], *([n * rng.uniform(0.2, 1.0), n] for n in (2, 3, 8, 16, 64))]
    yield Case(1, {"shares": shares, "speedups": speedups}, function="formulas", name="the formulas")
    serial, cost = rng.randint(5, 20), rng.randint(2, 5)
    for nodes in (1, 2, 4):
        arguments = {"serial": serial, "tasks": [cost] * 16}
        yield Case(
            nodes,
            arguments,
            name=f"{serial} units alone and {16 * cost} divided, on {counted(nodes, 'node')}",
        )


def judge(case, outcome):
    if case.function == "formulas":
        check_formulas(case, outcome.values[0])
    else:
        check_program(case, outcome)


def amdahl(f, n):
    return 1 / (f + (1 - f) / n)


def karp_flatt(speedup, n):
    return (1 / speedup - 1 / n) / (1 - 1 / n)


def check_formulas(case, value):
    wanted = [len(pairs) for pairs in case.arguments.values()]
    if (
        not isinstance(value, list)
        or [len(found) if isinstance(found, list) else None for found in value] != wanted
    ):
        raise Wrong(
            f"formulas() returned {short(value)}; expected one list of results for each formula: leave that function "
            "as it was"
        )
    for name, function, pairs, found in (
        ("amdahl", amdahl, case.arguments["shares"], value[0]),
        ("karp_flatt", karp_flatt, case.arguments["speedups"], value[1]),
    ):
        for (number, nodes), result in zip(pairs, found, strict=True):
            right = function(number, nodes)
            if not close(result, right, 1e-9):
                raise Wrong(f"{name}({number:.4g}, {nodes}) returned {short(result)}; expected {right:.6g}")


def check_program(case, outcome):
    serial, tasks = case.arguments["serial"], case.arguments["tasks"]
    total = serial + sum(tasks)
    done = sum(outcome.work)
    if done > total + 1e-6:
        raise Wrong(
            f"all nodes together worked {done:g} units; expected {total:g} ({case.name}; by rank: "
            f"{[round(units, 3) for units in outcome.work]}): something was done more than once"
        )
    if done < total - 1e-6:
        raise Wrong(
            f"all nodes together worked {done:g} units; expected {total:g} ({case.name}): tasks were left out"
        )
    right = serial + sum(tasks) / case.nodes
    if outcome.makespan > right + 1e-6:
        speedup = total / outcome.makespan
        raise Wrong(
            f"the makespan is {outcome.makespan:g} units; expected {right:g} ({case.name}): the speed-up is "
            f"{speedup:.3f}, and by Karp and Flatt {karp_flatt(speedup, case.nodes):.3f} of the work behaves as if it "
            f"could not be divided, in place of {serial / total:.3f}: how many tasks does each node have?"
            if case.nodes > 1
            else f"the makespan is {outcome.makespan:g} units; expected {right:g} ({case.name})"
        )
    check_waited(case, outcome)
    for rank, value in enumerate(outcome.values):
        if not close(value, total / outcome.makespan, 1e-6):
            raise Wrong(
                f"node {rank} predicts a speed-up of {short(value)}; {total / outcome.makespan:.6g} was measured "
                f"({case.name}): which share of this work cannot be divided?"
            )


def check_waited(case, outcome):
    """The makespan cannot show it: node 0 ends last, whether the others wait for it or not."""
    for track in outcome.trace.firsts()[1:]:
        if track.calls and track.calls[0].name == "work":
            raise Wrong(
                f"node {track.rank} worked at once ({case.name}): the tasks may begin only after node 0 has done "
                "its work alone; let the others wait for it"
            )
