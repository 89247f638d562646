# SPDX-License-Identifier: MIT
"""A discrete-event simulation that works ahead: jobs wander among the stations of a closed queueing network.

    spcomm run -n 8 time_buckets.py [END]

A station serves one job at a time, in the order of arrival, and sends it on to another, drawn by lot. Each node has
every n-th station. An event is the arrival of a job. Many jobs arrive at the same time: a `SimTime` orders them by its
first priority, the job's number. So all runs agree, on any number of nodes, with the plainest simulation on one.

A node cannot know which events the others will cause. So it keeps what its own events cause until it is sure of them:
"breathing time buckets" (J. Steinman, SPEEDES: A Unified Approach to Parallel Simulation, 1992; Discrete-Event
Simulation and the Event Horizon, 1994). One cycle, as long as the horizon allows:

1. The node handles its events in order, up to the earliest of the new events that it keeps: its *event horizon*.
2. It enters a fuzzy barrier. While others still compute, it handles further events on trial.
3. The minimum of all horizons is the global one. No new event is earlier, so what was handled before it is final.
4. The events that follow from final ones are sent, as coordinated messages: the cycle is over when all have arrived.
   If one comes before what its station has done on trial, that is undone; nobody else knows of it yet.
"""

import hashlib
import sys
from heapq import heapify, heappop, heappush
from time import perf_counter
from typing import NamedTuple

import spcomm
from spcomm import SimTime

STATIONS, JOBS = 60, 240
AHEAD = 30  # so many events may be handled on trial: what can be undone takes memory


class Station(NamedTuple):
    """The state of a station. It is replaced, never changed: to undo is to put the old one back."""

    chance: int  # where its random numbers are
    free_at: float = 0.0  # when it has served all that have arrived
    served: int = 0
    waited: float = 0.0  # by all jobs together
    order: int = 0  # mixes the numbers of the jobs; another one if two come in another order


class Step(NamedTuple):
    """The work of a station, which it may have to undo."""

    time: SimTime
    before: Station
    following: "tuple[SimTime, int]"  # the new event: when a job arrives, and where


def serve(station, time):
    """A job arrives. Returns the station's new state, and the event that follows: (time, station)."""
    job = time.priorities[0]
    chance = (station.chance * 6364136223846793005 + 1442695040888963407) % 2**64
    start = max(float(time), station.free_at)
    end = start + 1 + (chance >> 40) % 7
    order = (station.order * 1_000_003 + job) % 2**64
    new = Station(chance, end, station.served + 1, station.waited + start - float(time), order)
    return new, (SimTime(end, job), (chance >> 48) % STATIONS)


def beginning():
    """All stations, and the first events: all jobs arrive somewhere at time 0."""
    stations = {number: Station(chance=number) for number in range(STATIONS)}
    return stations, [(SimTime(0, job), job % STATIONS) for job in range(JOBS)]


def simulate_alone(end):
    """The plain way: one event after another."""
    stations, pending = beginning()
    heapify(pending)
    while pending[0][0] < end:
        time, number = heappop(pending)
        stations[number], following = serve(stations[number], time)
        heappush(pending, following)
    return stations


class Simulation:
    """A node's stations, their pending events, and what has been handled and is not final."""

    def __init__(self, comm, end):
        self.comm, self.end = comm, SimTime(end)
        stations, events = beginning()
        self.stations = {number: stations[number] for number in range(comm.rank, STATIONS, comm.size)}
        self.pending = [event for event in events if event[1] in self.stations]
        heapify(self.pending)
        self.steps = {number: [] for number in self.stations}  # by station, in order of time
        self.cycles = self.undone = 0

    def run(self):
        horizon = SimTime(0)
        while horizon < self.end:
            local = self.handle_up_to_horizon()
            with self.comm.fuzzy_barrier() as others:
                while not others.done() and self.handle_on_trial():
                    pass
            horizon = self.comm.global_min(local)
            self.send_what_is_final(horizon)
            for message in self.comm.coordinated_messages():
                for event in message.data:
                    self.arrive(*event)
            self.cycles += 1

    def handle_up_to_horizon(self):
        """Returns the local event horizon, or the end if that is earlier."""
        kept = (step.following[0] for steps in self.steps.values() for step in steps)
        horizon = min([self.end, *kept])
        while self.pending and self.pending[0][0] < horizon:
            horizon = min(horizon, self.handle())
        return horizon

    def handle_on_trial(self):
        """Handles one event, unless there is none or too much has been tried already."""
        if not self.pending or self.pending[0][0] >= self.end or sum(map(len, self.steps.values())) >= AHEAD:
            return False
        self.handle()
        return True

    def handle(self):
        """Handles the first event; returns the time of the one that it causes."""
        time, number = heappop(self.pending)
        before = self.stations[number]
        self.stations[number], following = serve(before, time)
        self.steps[number].append(Step(time, before, following))
        return following[0]

    def send_what_is_final(self, horizon):
        caused = {}  # by the node that is to have it
        for steps in self.steps.values():
            while steps and steps[0].time < horizon:
                event = steps.pop(0).following
                caused.setdefault(event[1] % self.comm.size, []).append(event)
        for node, events in caused.items():
            self.comm.coordinated_send(events, node)

    def arrive(self, time, number):
        """Undoes what the station has done on trial for later events."""
        steps = self.steps[number]
        while steps and steps[-1].time > time:
            step = steps.pop()
            self.stations[number] = step.before
            heappush(self.pending, (step.time, number))
            self.undone += 1
        heappush(self.pending, (time, number))


def digest(stations):
    return hashlib.sha256(repr(sorted(stations.items())).encode()).hexdigest()[:16]


comm = spcomm.startup()
end = float(sys.argv[1]) if len(sys.argv) > 1 else 200.0
comm.barrier()  # all start the clock together
begin = perf_counter()
simulation = Simulation(comm, end)
simulation.run()
undone = comm.global_sum(simulation.undone)
spent = perf_counter() - begin

comm.coordinated_send(simulation.stations, 0)
stations = {}
for message in comm.coordinated_messages():
    stations |= message.data
if comm.rank == 0:
    served = sum(station.served for station in stations.values())
    wait = sum(station.waited for station in stations.values()) / max(served, 1)
    print(f"{JOBS} jobs at {STATIONS} stations until time {end:g}: {served} arrivals, mean wait {wait:.3f}")
    print(f"digest of all stations: {digest(stations)}")
    print(f"{comm.size} nodes, {simulation.cycles} cycles, {undone} events undone, {spent:.3f} s")

    begin, alone = perf_counter(), simulate_alone(end)
    print(f"one event after another on one node: {perf_counter() - begin:.3f} s")
    if stations != alone:
        raise SystemExit(f"wrong: one node has the digest {digest(alone)}")
    print("checked: one node finds the same")
