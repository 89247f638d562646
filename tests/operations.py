# SPDX-License-Identifier: MIT
"""The catalogue of operations: each way in which nodes communicate, in a row. A test filters it and fills in who.

`{peer}` is the other node, `{own}` the one that is looked at: root of what it alone waits for.
"""

import re
from typing import NamedTuple

import numpy as np

import spcomm


class Operation(NamedTuple):
    """A call: what it is, and whom the node `{own}` waits for in it."""

    code: str
    waits_for: str  # "nobody", "peer", "all" (whoever the caller is), "others" (as root), "lower" (ranks)
    is_collective: bool = False

    @property
    def method(self):
        return re.search(r"comm\.(\w+)", self.code)[1]

    def by(self, own, peer):
        """The code, as `{own}` has it."""
        return self.code.format(own=own, peer=peer)

    def words(self, own, peer):
        """Words by which errors and reports name the call."""
        roots = re.findall(r"root=\d+", self.by(own, peer))
        called = self.method.replace("coordinated_messages", "coordinated_recv")  # which the iterator calls
        return f"{called}(", *roots


def _collective(code, waits_for="all"):
    return Operation(code, waits_for, is_collective=True)


OPERATIONS = {
    "send": Operation("comm.send('x', {peer})", "nobody"),
    "send-multicast": Operation("comm.send('x', spcomm.ALL)", "nobody"),
    "send-long": Operation("comm.send(np.ones(100_000), {peer})", "nobody"),
    "move": Operation("comm.move(comm.empty(9), {peer})", "nobody"),
    "ssend": Operation("comm.ssend('x', {peer})", "peer"),
    "sendrecv": Operation("comm.sendrecv(1, {own}, {peer})", "peer"),
    "recv": Operation("comm.recv({peer})", "peer"),
    "recv-tag": Operation("comm.recv({peer}, 5)", "peer"),
    "recv-out": Operation("comm.recv({peer}, out=np.zeros(3))", "peer"),
    "recv-timed": Operation("comm.recv({peer}, timeout=100)", "peer"),
    "recv_message": Operation("comm.recv_message({peer})", "peer"),
    "probe": Operation("comm.probe({peer})", "peer"),
    "try_recv_message": Operation("comm.try_recv_message()", "nobody"),
    "take_message": Operation("comm.take_message()", "nobody"),
    "poll": Operation("comm.poll()", "nobody"),
    "coordinated_send": Operation("comm.coordinated_send('x', {peer})", "nobody"),
    "coordinated_recv": _collective("comm.coordinated_recv()"),
    "coordinated_messages": _collective("list(comm.coordinated_messages())"),
    "barrier": _collective("comm.barrier()"),
    "barrier-timed": _collective("comm.barrier(timeout=100)"),
    "fuzzy_barrier": _collective("comm.fuzzy_barrier().wait()"),
    "global_sum": _collective("comm.global_sum(1)"),
    "global_sum-huge": _collective("comm.global_sum(10**100)"),
    "global_sum-long": _collective("comm.global_sum(np.ones(100_000))"),
    "global_min": _collective("comm.global_min(1.5)"),
    "global_max": _collective("comm.global_max((1, 2))"),
    "allreduce": _collective("comm.allreduce(1)"),
    "allreduce-long": _collective("comm.allreduce(np.ones(100_000))"),
    "allreduce-own": _collective("comm.allreduce([1], spcomm.op(lambda a, b: a + b))"),
    "reduce": _collective("comm.reduce(1, root={own})", "others"),
    "reduce_scatter": _collective("comm.reduce_scatter(np.ones(1000 * comm.size))"),
    "scan": _collective("comm.scan(1)", "lower"),
    "exscan": _collective("comm.exscan(1)", "lower"),
    "bcast": _collective("comm.bcast(np.ones(20_000), root={peer})", "peer"),
    "scatter": _collective("comm.scatter([np.ones(20_000)] * comm.size, root={peer})", "peer"),
    "gather": _collective("comm.gather(np.ones(20_000), root={own})", "others"),
    "allgather": _collective("comm.allgather(1)"),
    "allgather-long": _collective("comm.allgather(np.ones(20_000))"),
    "alltoall": _collective("comm.alltoall([1] * comm.size)"),
    "alltoall-long": _collective("comm.alltoall([np.ones(20_000)] * comm.size)"),
    "split": _collective("comm.split(0).close()"),
}
# Methods that do not communicate, or not by themselves.
LOCAL = {
    "box", "close", "empty", "group_id", "handler", "layout", "local_rank", "members", "rank", "region", "rng", "size",
    "time", "work",
}  # fmt: skip
COLLECTIVE = {name: operation for name, operation in OPERATIONS.items() if operation.is_collective}


def waiting(*waits_for):
    """The operations in which the node `{own}` waits for these."""
    return {name: operation for name, operation in OPERATIONS.items() if operation.waits_for in waits_for}


def call(comm, operation, own, peer):
    """Make the call."""
    return eval(operation.by(own, peer), {"comm": comm, "np": np, "spcomm": spcomm})
