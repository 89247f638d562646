# SPDX-License-Identifier: MIT
"""Events as nodes record them, for tests of the files made from them: groups whose boxes all are elsewhere."""

import json
import zlib

from spcomm._core import traces
from spcomm._core.traces import Event
from spcomm.launch.remote.box_proxy import RemoteBox, RemoteSegment

MOST = 1000


def event(kind, time_us, what="", thread=1, peer=0, context=0, number=0, line="", bytes=8):
    return Event(int(time_us * 1000), kind, context, peer, 0, what, line, thread, bytes, number)


def call(begin, end, name="recv", thread=1):
    return [event(traces.CALL, begin, name, thread), event(traces.RETURN, end, "", thread)]


def packed(events):
    """As a box sends them."""
    return zlib.compress(json.dumps(events).encode())


class Group:
    """A box for each node; the clock there is ours."""

    def __init__(self, *nodes, lost=None):
        self.size = self.boxes = len(nodes)
        self.places = list(range(self.size))
        self.boxes_there = [RemoteBox(f"host{box}") for box in self.places]
        self.segments = [RemoteSegment(self.size, box, MOST) for box in self.boxes_there]
        for box, segment in zip(self.boxes_there, self.segments, strict=True):
            box.segments[0] = segment
        for rank, (segment, events) in enumerate(zip(self.segments, nodes, strict=True)):
            segment.clock.add(0, 0, 0)
            segment.add_trace(rank, lost[rank] if lost else 0, packed(events))
            segment.known = {"has_left": False}
