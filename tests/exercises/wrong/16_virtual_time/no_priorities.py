# says: ; expected job
# SPDX-License-Identifier: MIT
"""The event of the lower node is the first of several at equal times."""

from heapq import heapify, heappop, heappush

from spcomm import SimTime

STATIONS = 12  # node r has those whose number leaves the rest r, divided by the number of nodes


def serve(station, now, job):
    """A job arrives. Changes the station [chance, free at] and returns when the job arrives at which one next."""
    station[0] = (station[0] * 6364136223846793005 + 1442695040888963407 + job) % 2**64
    station[1] = max(now, station[1]) + 1 + (station[0] >> 40) % 4
    return station[1], (station[0] >> 48) % STATIONS


def event(time, number, sender, job):
    """A message between nodes; events are compared from the left."""
    return SimTime(time), number, sender, job


def gvt_of(comm, pending, caused, end):
    """The time of the earliest event that is not handled yet, on all nodes; `end` if there is none before."""
    times = [event[0] for event in (*pending, *caused)]
    return comm.global_min(min(times, default=end))


def solve(comm, jobs, end):
    """Simulate up to the time `end`; return what this node did: [gvt, time, station, job]."""
    stations = {number: [number, 0.0] for number in range(comm.rank, STATIONS, comm.size)}
    first = [event(0.0, job % STATIONS, comm.rank, job) for job in range(jobs) if job % STATIONS in stations]
    pending, caused, done = first, [], []
    heapify(pending)
    while (gvt := gvt_of(comm, pending, caused, SimTime(end))) < SimTime(end):
        for item in caused:
            comm.coordinated_send(item, item[1] % comm.size)
        for message in comm.coordinated_messages():
            heappush(pending, message.data)
        caused = []
        while pending and pending[0][0] < min(SimTime(float(gvt) + 1), SimTime(end)):
            time, number, _sender, job = heappop(pending)
            done.append([float(gvt), float(time), number, job])
            later, where = serve(stations[number], float(time), job)
            caused.append(event(later, where, comm.rank, job))
    return done
