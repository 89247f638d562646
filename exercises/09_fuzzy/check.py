# SPDX-License-Identifier: MIT
"""Judges exercise 9: the order of the work, from the trace, and the makespan, from the costs."""

from itertools import chain

from spcomm.learn.case import Case, Wrong, counted

ENTER, WAIT = "fuzzy_barrier", ("fuzzy_barrier.wait", "fuzzy_barrier.done")


def cases(rng):
    for nodes, steps in ((2, 3), (1, 2), (3, 4), (4, 4), (7, 3)):
        first = rng.randrange(nodes)
        slow = [(first + step) % nodes for step in range(steps)]  # another one each time
        each = [
            {
                "parts": [
                    rng.randint(8, 12) if slow[step] == rank else rng.randint(1, 3) for step in range(steps)
                ],
                "own": [rng.randint(4, 8) for _ in range(steps)],
                "use": [rng.randint(1, 3) for _ in range(steps)],
            }
            for rank in range(nodes)
        ]
        yield Case(nodes, each=each, name=f"{steps} steps on {counted(nodes, 'node')}")


def makespan(each, fuzzy):
    """The time at which the last node ends."""
    times = [0.0] * len(each)
    for step in range(len(each[0]["parts"])):
        entered = [time + costs["parts"][step] for time, costs in zip(times, each, strict=True)]
        for rank, costs in enumerate(each):
            own = costs["own"][step]
            passed = max(entered[rank] + own, max(entered)) if fuzzy else max(entered) + own
            times[rank] = passed + costs["use"][step]
    return max(times)


def judge(case, outcome):
    for track in outcome.trace.firsts():
        costs = case.each[track.rank]
        wanted = list(chain.from_iterable(zip(costs["parts"], costs["own"], costs["use"], strict=True)))
        done = [call for call in track.calls if call.name == "work"]
        check_all_done(track.rank, wanted, [call.cost for call in done])
        # The own work may lie anywhere between: what counts of it is the makespan, below.
        check_order(track, wanted)
    best, plain = makespan(case.each, fuzzy=True), makespan(case.each, fuzzy=False)
    if outcome.makespan > best + 1e-6:
        raise Wrong(
            f"the makespan is {outcome.makespan:g} units; with a fuzzy barrier it would be {best:g}, and with a plain "
            f"one it is {plain:g}: which work could a node do between entering the barrier and waiting for the others?"
        )
    if outcome.makespan < best - 1e-6:
        raise Wrong(
            f"the makespan is {outcome.makespan:g} units, less than the {best:g} that are possible: "
            "some node went on before all had done their parts"
        )


def check_all_done(rank, wanted, done):
    if sorted(wanted) != sorted(done):
        raise Wrong(
            f"node {rank} worked {sum(done):g} units in {len(done)} pieces; its lists have {sum(wanted):g} units in "
            f"{len(wanted)} pieces: each piece must be done once"
        )
    if wanted != done:
        place = next(place for place, pair in enumerate(zip(wanted, done, strict=True)) if pair[0] != pair[1])
        what = ("parts", "own", "use")[place % 3]
        raise Wrong(
            f"node {rank} did {done[place]:g} units where {what}[{place // 3}], {wanted[place]:g} units, was to be "
            "done: in each step first the part, then its own work, then the use"
        )


def check_order(track, wanted):
    """That each part is done before this node enters, and used after it has waited."""
    names = [call.name for call in track.calls if call.name in ("work", ENTER, *WAIT, "barrier")]
    works = entered = waited = 0
    for name in names:
        if name == "work":
            step, what = divmod(works, 3)
            if what == 2 and waited <= step:
                raise Wrong(
                    f"node {track.rank} began use[{step}] before it had waited for the others: that work needs the "
                    "parts of all nodes; call wait() first, or put that work after the `with` block"
                )
            works += 1
        else:
            if name in (ENTER, "barrier"):
                if works < 3 * entered + 1:
                    raise Wrong(
                        f"node {track.rank} entered the barrier of step {entered} before it had done parts[{entered}]: "
                        "to enter means that the part is there"
                    )
                entered += 1
            waited = entered if name != ENTER else waited  # once or twice: it is over
    if entered != len(wanted) // 3:
        raise Wrong(
            f"node {track.rank} entered {entered} barriers in {len(wanted) // 3} steps: one in each step"
        )
