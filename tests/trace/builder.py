# SPDX-License-Identifier: MIT
"""Makes trace files of what is known, for tests: times in whole microseconds, so that sums are exact."""

import json

THREADS_APART = 1024


class Builder:
    """A trace that is being made; each method adds what happened on one thread of a node."""

    def __init__(self, nodes=2, boxes=1, map=None, program="heat.py", start=0):
        self.nodes = nodes
        self.start = start  # where the clock of the file begins; a reader should not care
        self.other = {
            "spcomm": "0.1.0",
            "format": 1,
            "nodes": nodes,
            "boxes": boxes,
            "map": map or [0] * nodes,
            "program": program,
            "overwritten": [0] * nodes,
            "clock_error_us": [0.0] * boxes,
        }
        self.events = [
            {"ph": "M", "name": "process_name", "pid": box, "args": {"name": f"box {box}"}}
            for box in range(boxes)
        ]
        self.events += [
            {"ph": "M", "name": "thread_name", **self._place(rank, 0), "args": {"name": f"node {rank}"}}
            for rank in range(nodes)
        ]
        self._messages = 0

    def _place(self, rank, thread):
        return {"pid": self.other["map"][rank], "tid": rank + THREADS_APART * thread}

    def _span(self, kind, name, rank, thread, begin, end, **more):
        times = {"ts": self.start + begin, "dur": end - begin}
        event = {"ph": "X", "cat": kind, "name": name, **self._place(rank, thread), **times, **more}
        self.events.append(event)
        return event

    def call(self, rank, begin, end, name="recv", line=None, waits=(), thread=0, open=False, **told):
        """A call with the (begin, end) of its waits; more of what it tells: cost, part, root, barrier, ended."""
        told = {"line": line, **told} if line else told
        if open:
            told["open"] = True
        self._span("call", name, rank, thread, begin, end, args=told)
        for first, last in waits:
            self._span("wait", "wait", rank, thread, first, last, cname="terrible")
        return self

    def starting(self, rank, end):
        self._span("starting", "starting", rank, 0, 0, end)
        return self

    def core(self, rank, begin, end):
        """It waits for a core."""
        self._span("core", "waiting for a core", rank, 0, begin, end)
        return self

    def region(self, rank, begin, end, name="step", thread=0):
        self._span("region", name, rank, thread, begin, end)
        return self

    def handler(self, rank, begin, end, thread=0):
        """It runs within a call."""
        self._span("handler", "handler", rank, thread, begin, end, args={"from": 0, "tag": 7})
        return self

    def message(self, source, dest, sent, received, bytes=8, tag=0, context="user", threads=(0, 0)):
        """None for an end that is not in the trace."""
        self._messages += 1
        told = {"from": source, "to": dest, "tag": tag, "bytes": bytes, "context": context}
        same = {"cat": "message", "id": f"{source}>{dest}#{self._messages}", "name": "message", "args": told}
        if sent is not None:
            self.events.append(
                {"ph": "s", **same, **self._place(source, threads[0]), "ts": self.start + sent}
            )
        if received is not None:
            place = self._place(dest, threads[1])
            self.events.append({"ph": "f", "bp": "e", **same, **place, "ts": self.start + received})
        return self

    def content(self):
        return {"traceEvents": self.events, "displayTimeUnit": "ns", "otherData": self.other}

    def text(self):
        return json.dumps(self.content())

    def write(self, folder, name="t.json"):
        path = folder / name
        path.write_text(self.text())
        return path


def two_nodes(**options):
    """Node 0 computes 60 of 100 µs, node 1 20: it waits 50 of the rest, in two lines.

    node 0:  compute 0-30, send 30-40, compute 40-70, barrier 70-100 (waits 90-100)
    node 1:  recv 0-40 (waits 5-35), compute 40-60, barrier 60-100 (waits 70-90)
    """
    built = Builder(2, **options)
    built.call(0, 30, 40, "send", "heat.py:5").call(0, 70, 100, "barrier", "heat.py:9", [(90, 100)])
    built.call(1, 0, 40, "recv", "heat.py:6", [(5, 35)]).call(1, 60, 100, "barrier", "heat.py:9", [(70, 90)])
    return built.message(0, 1, 32, 36, bytes=800, tag=7)
