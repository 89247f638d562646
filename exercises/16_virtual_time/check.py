# SPDX-License-Identifier: MIT
"""Judges exercise 16: the same events as on one node, in the same order, and a global time that is never too late."""

from heapq import heapify, heappop, heappush
from numbers import Real

from spcomm.learn.case import Case, Wrong, counted, short

STATIONS = 12
LARGE = 1e15  # above all times


def cases(rng):
    for nodes in (2, 1, 3, 4, 7):
        jobs, end = rng.randint(15, 30), float(rng.randint(12, 20))
        name = f"{jobs} jobs up to time {end:g} on {counted(nodes, 'node')}"
        yield Case(nodes, {"jobs": jobs, "end": end}, name=name)


def alone(jobs, end):
    """By station what comes: pairs (time, job), in order."""
    stations = [[number, 0.0] for number in range(STATIONS)]
    pending = [(0.0, job, job % STATIONS) for job in range(jobs)]
    heapify(pending)
    came = [[] for _ in range(STATIONS)]
    while pending and pending[0][0] < end:
        now, job, number = heappop(pending)
        came[number].append((now, job))
        station = stations[number]
        station[0] = (station[0] * 6364136223846793005 + 1442695040888963407 + job) % 2**64
        station[1] = max(now, station[1]) + 1 + (station[0] >> 40) % 4
        heappush(pending, (station[1], job, (station[0] >> 48) % STATIONS))
    return came


def judge(case, outcome):
    logs = [checked_log(rank, value) for rank, value in enumerate(outcome.values)]
    for rank, log in enumerate(logs):
        check_times(case, rank, log)
    check_global(case, logs)
    found = [[] for _ in range(STATIONS)]
    for rank, log in enumerate(logs):
        for _gvt, time, number, job in log:
            if number % case.nodes != rank:
                raise Wrong(
                    f"node {rank} handled an event of station {number}, which is node {number % case.nodes}'s"
                )
            found[number].append((time, job))
    for number, right in enumerate(alone(case.arguments["jobs"], case.arguments["end"])):
        check_station(case, number, found[number], right)


def checked_log(rank, value):
    good = isinstance(value, list) and all(
        isinstance(item, (list, tuple))
        and len(item) == 4
        and all(isinstance(part, Real) and abs(part) < LARGE for part in item)  # nor NaN
        for item in value
    )
    if not good:
        raise Wrong(f"node {rank} returned {short(value)}; expected a list of [gvt, time, station, job]")
    for item in value:
        if item[2] not in range(STATIONS):
            raise Wrong(f"node {rank} returned {short(item)}; there are stations 0 to {STATIONS - 1}")
    return [(gvt, time, int(number), job) for gvt, time, number, job in value]  # 2.0 is station 2, too


def check_times(case, rank, log):
    """That no event of this node came after gvt had passed it, and gvt never went back."""
    last = -1.0
    for gvt, time, number, job in log:
        if gvt < last:
            raise Wrong(
                f"gvt was {last:g} on node {rank}, and then {gvt:g} ({case.name}): it never goes back"
            )
        if time < gvt:
            raise Wrong(
                f"gvt was {gvt:g} on node {rank}, and then it handled job {job} at station {number} at time {time:g}, "
                f"which was still on its way ({case.name}): gvt is the minimum of all events that are not handled yet"
            )
        if time >= gvt + 1:
            raise Wrong(
                f"gvt was {gvt:g} on node {rank}, and it handled an event of time {time:g} ({case.name}): only what "
                "comes before gvt + 1 is safe"
            )
        last = gvt


def check_global(case, logs):
    """That all nodes had the same gvt: windows of different nodes are the same or lie apart."""
    seen = sorted({item[0] for log in logs for item in log})
    least = {gvt: min(item[1] for log in logs for item in log if item[0] == gvt) for gvt in seen}
    for gvt, time in least.items():
        if time != gvt:
            raise Wrong(
                f"gvt was {gvt:g}, and the earliest event of all nodes had time {time:g} ({case.name}): it has "
                "to be the same minimum on all nodes"
            )


def check_station(case, number, found, right):
    for place, expected in enumerate(right):
        if place >= len(found):
            raise Wrong(
                f"station {number} had {len(found)} jobs; expected {len(right)} ({case.name}): did it end while an "
                "event was still on its way?"
            )
        (time, job), (when, which) = found[place], expected
        if (time, job) == (when, which):
            continue
        if time == when:
            raise Wrong(
                f"at station {number} job {job} came first at time {time:g}; expected job {which}, which has "
                f"the same time ({case.name}): what orders equal times?"
            )
        raise Wrong(
            f"at station {number} job {job} came at time {time:g}; expected job {which} at time {when:g} "
            f"({case.name}): were all events before it handled in their order?"
        )
    if len(found) > len(right):
        raise Wrong(
            f"station {number} had {len(found)} jobs; expected {len(right)} before the end ({case.name})"
        )
