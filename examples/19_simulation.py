# SPDX-License-Identifier: MIT
"""A discrete-event simulation: jobs wander among stations, in windows of time in which no node can surprise another.

    spcomm run -n 4 19_simulation.py [END]

A station serves one job at a time, which takes 1 to 7, and sends it on to another. An event at time t can cause none
before t + 1. So the nodes agree on the earliest event, handle their events up to 1 later, exchange the new events as
coordinated messages, and begin again. A `SimTime` orders events at the same time by the job's number.
Look: the result is the same on any number of nodes, to the last bit.
Try: count the events of each window. `time_buckets.py` has longer windows: it works ahead and undoes.
"""

import sys
from heapq import heapify, heappop, heappush

import spcomm
from spcomm import SimTime

STATIONS, JOBS = 60, 240


def serve(station, time):
    """A job arrives at a station [chance, free at, served]. Returns the event that follows: (time, station)."""
    station[0] = (station[0] * 6364136223846793005 + 1442695040888963407 + time.priorities[0]) % 2**64
    station[1] = max(float(time), station[1]) + 1 + (station[0] >> 40) % 7
    station[2] += 1
    return SimTime(station[1], *time.priorities[:1]), (station[0] >> 48) % STATIONS


def beginning(rank, size):
    """Every size-th station, and the first events: all jobs arrive somewhere at time 0."""
    stations = {number: [number, 0.0, 0] for number in range(rank, STATIONS, size)}
    pending = [(SimTime(0, job), job % STATIONS) for job in range(JOBS) if job % STATIONS in stations]
    heapify(pending)
    return stations, pending


comm = spcomm.startup()
end = SimTime(float(sys.argv[1]) if len(sys.argv) > 1 else 100.0)
stations, pending = beginning(comm.rank, comm.size)
while (now := comm.global_min(pending[0][0] if pending else end)) < end:
    while pending and pending[0][0] < min(SimTime(float(now) + 1), end):
        time, number = heappop(pending)
        event = serve(stations[number], time)
        comm.coordinated_send(event, event[1] % comm.size)
    for message in comm.coordinated_messages():
        heappush(pending, message.data)

parts = comm.gather(stations)
if comm.rank == 0:
    stations = {number: station for part in parts for number, station in part.items()}
    print(f"{JOBS} jobs until time {float(end):g}: {sum(s[2] for s in stations.values())} arrivals")
    alone, pending = beginning(0, 1)
    while pending[0][0] < end:  # the plain way: one event after another
        time, number = heappop(pending)
        heappush(pending, serve(alone[number], time))
    if stations != alone:
        raise SystemExit("wrong: one node finds other stations")
    print(f"checked: one node finds all {STATIONS} stations in the same state")
