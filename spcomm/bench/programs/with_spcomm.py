# SPDX-License-Identifier: MIT
"""The works with spcomm: functions `<program>_<work>`, and a few whole programs.

`with_mpi4py.py` has the same `works`, `arrays` and `sweep`, in the same order.
"""

import json
import os
import signal
from functools import cache
from pathlib import Path
from time import monotonic, monotonic_ns, perf_counter

import numpy as np
from payload import buffers, check, check_mark, look, marked, one_copy, write

import spcomm
from spcomm._core.comm import Comm
from spcomm._core.regions import Region

start = spcomm.startup
UNREAD = 64  # messages that the last node of `stall` does not read meanwhile
TOGETHER = 8  # messages that a node of `many` sends before it receives as many,
BYTES = 64  # each of this size
SERVER = "spcomm server"
FEW = 8  # messages that a node of `overheads` has not taken, at most
LAST = 1  # tag


def share(comm, value):
    """Node 0's object, on every node."""
    if comm.rank == 0:
        for other in range(1, comm.size):
            comm.send(value, other)
        return value
    return comm.recv(0)


# ---- programs of their own


def balanced(comm):
    """Compute the same on each node, in steps between barriers."""
    for _ in range(20):
        sum(range(500_000))
        comm.barrier()


def deadlock(comm, path):
    """Receive from the next node, as all do, and no node sends. Each writes its start into the file.

    Eight bytes a node, by rank: the monotonic clock in nanoseconds, little-endian.
    """
    descriptor = os.open(path, os.O_WRONLY)
    comm.barrier()
    os.pwrite(descriptor, monotonic_ns().to_bytes(8, "little"), 8 * comm.rank)
    comm.recv(source=(comm.rank + 1) % comm.size)


# ---- works: small messages and meetings


def works_array_pingpong(comm, count):
    """An array of 8 bytes, there and back."""
    if comm.rank == 0:
        source = np.zeros(1)
        for value in range(count):
            source[0] = value
            comm.send(source, 1)
            received = comm.recv()
            check(received[0] == value, received, value)
    elif comm.rank == 1:
        for _ in range(count):
            received = comm.recv()
            comm.send(received, 0)
    return 2 * count


def works_object_pingpong(comm, count):
    """A small dict, there and back."""
    if comm.rank == 0:
        for value in range(count):
            source = {"step": value, "mass": 0.5, "name": "particle"}
            comm.send(source, 1)
            received = comm.recv()
            check(received == source, received, source)
    elif comm.rank == 1:
        for _ in range(count):
            received = comm.recv()
            comm.send(received, 0)
    return 2 * count


def works_written_pingpong(comm, count, size):
    """An array of `size` bytes, written anew by each sender, there and back."""
    received = None
    if comm.rank == 0:
        source = np.empty(size, np.uint8)
        for value in range(count):
            source.fill(value % 251)
            comm.send(source, 1)
            received = comm.recv()
            check(received[0] == received[-1] == value % 251, received, value)
        check((received == source).all(), received, source)
    elif comm.rank == 1:
        source = np.empty(size, np.uint8)
        for _ in range(count):
            received = comm.recv()
            source.fill(received[0])
            comm.send(source, 0)
    return 2 * count


def works_ring(comm, count):
    """A small dict, once round all nodes."""
    right = (comm.rank + 1) % comm.size
    if comm.rank == 0:
        for value in range(count):
            source = {"lap": value, "mass": 0.5, "name": "particle"}
            comm.send(source, right)
            received = comm.recv()
            check(received == source, received, source)
    else:
        for _ in range(count):
            received = comm.recv()
            comm.send(received, right)
    return count * comm.size


def works_barrier(comm, count):
    """All nodes meet."""
    for _ in range(count):
        comm.barrier()
    return count


def works_float_sum(comm, count):
    """The sum of one float."""
    rank, size = comm.rank, comm.size
    ranks = size * (size - 1) // 2
    for value in range(count):
        received = comm.global_sum(float(rank + value))
        check(received == ranks + size * value, received, value)
    return count


# ---- arrays


def arrays_pingpong_arrays(comm, count, size, into, fresh, read):
    """An array of `size` bytes there and back, received as a new one, or into one.

    Each sender writes all of it, or its first and last byte.
    """
    source = np.empty(size, np.uint8)
    out = np.empty(size, np.uint8) if into else None
    received = None
    for value in range(count if comm.rank < 2 else 0):
        if comm.rank == 1:
            received = comm.recv(1 - comm.rank, out=out)
            look(received, read)
        source[:: 1 if fresh else size - 1] = value % 251
        comm.send(source, 1 - comm.rank)
        if comm.rank == 0:
            received = comm.recv(1 - comm.rank, out=out)
            look(received, read)
        check(received[0] == received[-1] == value % 251, received, value)
    return 2 * count


def arrays_moved_pingpong(comm, count, size, rewrite, read):
    """An array of `size` bytes handed over and back; its owner writes all of it, or a byte of each page."""
    received = comm.empty(size, np.uint8)
    for value in range(count if comm.rank < 2 else 0):
        if comm.rank == 1:
            received = comm.recv()
            look(received, read)
            check(received[0] == received[-4096] == value % 251, received, value)
        write(received, value, rewrite)
        comm.move(received, 1 - comm.rank)
        if comm.rank == 0:
            received = comm.recv()
            look(received, read)
            check(received[0] == received[-4096] == value % 251, received, value)
    return 2 * count


def arrays_stream(comm, count, size, read):
    """Arrays of `size` bytes one way, 64 before the receiver answers."""
    source = np.zeros(size, np.uint8)
    for value in range(count):
        if comm.rank == 0:
            source[0] = value % 251
            for _ in range(64):
                comm.send(source, 1)
            comm.recv(1)
        elif comm.rank == 1:
            for _ in range(64):
                received = comm.recv(0)
                look(received, read)
                check(received[0] == value % 251, received, value)
            comm.send(None, 0)
    return 64 * count


def arrays_dict_pingpong(comm, count, size, read):
    """A dict that holds an array of `size` bytes, written anew by each sender, there and back."""
    source = np.empty(size, np.uint8)
    for value in range(count if comm.rank < 2 else 0):
        if comm.rank == 1:
            received = comm.recv()
        source.fill(value % 251)
        comm.send({"step": value, "field": source}, 1 - comm.rank)
        if comm.rank == 0:
            received = comm.recv()
        look(received["field"], read)
        check(received["field"][-1] == value % 251 and received["step"] == value, received, value)
    return 2 * count


def arrays_array_sum(comm, count, size, read):
    """The sum of arrays of `size` bytes over all nodes, for all."""
    source = np.full(size // 8, float(comm.rank))
    ranks = comm.size * (comm.size - 1) // 2
    for value in range(count):
        source[0] = source[-1] = comm.rank + value
        received = comm.allreduce(source)
        look(received, read)
        check(received[0] == received[-1] == ranks + comm.size * value, received, value)
    return count


def arrays_broadcast(comm, count, size, copy, read):
    """Node 0's array of `size` bytes for all: a copy for each, or one that they only read."""
    source = np.zeros(size, np.uint8)
    for value in range(count):
        source[0] = source[-1] = value % 251
        received = comm.bcast(source if comm.rank == 0 else None, copy=copy)
        look(received, read)
        check(received[0] == received[-1] == value % 251, received, value)
    return count


def arrays_all_to_all(comm, count, size, read):
    """An array of `size` bytes from each node to each."""
    source = np.zeros((comm.size, size), np.uint8)
    for value in range(count):
        source[:, 0] = (comm.rank + value) % 251
        received = comm.alltoall(source)
        for rank in range(comm.size):
            look(received[rank], read)
            check(received[rank][0] == (rank + value) % 251, received, value)
    return count


arrays_one_copy = one_copy


# ---- sweep
# Each returns the seconds that the operations alone took, on node 0's clock: to the acknowledgement, or to a barrier at
# the end. The last message of a batch is marked, and the mark is checked.


def sweep_one_way(comm, count, size, cold):
    """Node 0 sends messages to node 1, which acknowledges the last one (Gonzalez 2000, figure 6)."""
    arrays = buffers(size, cold)
    begin = perf_counter()
    if comm.rank == 0:
        for _ in range(count - 1):
            comm.send(next(arrays), 1)
        comm.send(marked(next(arrays), count), 1)
        comm.recv(1)
    elif comm.rank == 1:
        for _ in range(count):
            received = comm.recv(0, out=next(arrays))
        comm.send(None, 0)
        check_mark(received, count)
    return count, perf_counter() - begin


def sweep_pingpong(comm, count, size, cold):
    """Half a round trip between nodes 0 and 1 (Gonzalez 2000, figure 7)."""
    arrays = buffers(size, cold)
    begin = perf_counter()
    if comm.rank == 0:
        for _ in range(count - 1):
            comm.send(next(arrays), 1)
            comm.recv(1, out=next(arrays))
        comm.send(marked(next(arrays), count), 1)
        check_mark(comm.recv(1, out=next(arrays)), count)
    elif comm.rank == 1:
        for _ in range(count):
            received = comm.recv(0, out=next(arrays))
            comm.send(received, 0)
    return 2 * count, perf_counter() - begin


def sweep_one_to_all(comm, count, size, cold):
    """Node 0 sends a message of its own to each other node."""
    arrays = buffers(size, cold)
    others = range(1, comm.size)
    begin = perf_counter()
    for value in range(count):
        if comm.rank == 0:
            for other in others:
                comm.send(marked(next(arrays), value + other), other)
        else:
            received = comm.recv(0, out=next(arrays))
    comm.barrier()
    if comm.rank:
        check_mark(received, count - 1 + comm.rank)
    return count, perf_counter() - begin


def sweep_all_to_one(comm, count, size, cold):
    """Each other node sends a message to node 0."""
    arrays = buffers(size, cold)
    others = range(1, comm.size)
    begin = perf_counter()
    for value in range(count):
        if comm.rank == 0:
            for other in others:
                check_mark(comm.recv(other, out=next(arrays)), value + other)
        else:
            comm.send(marked(next(arrays), value + comm.rank), 0)
    comm.barrier()
    return count, perf_counter() - begin


def sweep_all_to_all(comm, count, size, cold):
    """Each node sends a message of its own to each node."""
    arrays = buffers(size * comm.size, cold)
    begin = perf_counter()
    for value in range(count):
        source = next(arrays).reshape(comm.size, size)
        source[:, 0] = (comm.rank + value) % 251
        received = comm.alltoall(source)
        check(received[-1][0] == (comm.size - 1 + value) % 251, received, value)
    comm.barrier()
    return count, perf_counter() - begin


def sweep_broadcast(comm, count, size, cold):
    """Each node gets node 0's message."""
    arrays = buffers(size, cold)
    begin = perf_counter()
    for value in range(count):
        source = marked(next(arrays), value) if comm.rank == 0 else None
        check_mark(comm.bcast(source), value)
    comm.barrier()
    return count, perf_counter() - begin


def sweep_reduce(comm, count, size, cold):
    """Node 0 gets the sums of the elements of all nodes' arrays of doubles."""
    return array_sums(comm, comm.reduce, comm.rank == 0, count, size, cold)


def sweep_allreduce(comm, count, size, cold):
    """Each node gets the sums of the elements of all nodes' arrays of doubles."""
    return array_sums(comm, comm.allreduce, True, count, size, cold)


def array_sums(comm, operation, is_receiver, count, size, cold):
    arrays, ranks = buffers(size, cold, doubles=True), sum(rank % 251 for rank in range(comm.size))
    begin = perf_counter()
    for value in range(count):
        received = operation(marked(next(arrays), comm.rank))
        check(not is_receiver or received[0] == received[-1] == ranks, received, value)
    comm.barrier()
    return count, perf_counter() - begin


def sweep_global_sum(comm, count):
    """Each node gets the sum of one float of each node."""
    ranks = sum(range(comm.size))
    begin = perf_counter()
    for value in range(count):
        received = comm.global_sum(float(comm.rank + value))
        check(received == ranks + comm.size * value, received, value)
    return count, perf_counter() - begin


sweep_barrier = works_barrier


# ---- overheads: those of LogP, and chains of hops


def overheads_send_overhead(comm, count, size):
    """Calls of send: after every few of them node 1 says that it has received these."""
    arrays, seconds = buffers(size, False), 0.0
    for value in range(count if comm.rank < 2 else 0):
        if comm.rank == 0:
            begin = perf_counter()
            for _ in range(FEW):
                comm.send(next(arrays), 1)
            seconds += perf_counter() - begin
            received = comm.recv(1)
            check(received == value, received, value)
        else:
            for _ in range(FEW):
                comm.recv(0, out=next(arrays))
            comm.send(value, 0)
    return FEW * count, seconds


def overheads_receive_overhead(comm, count, size):
    """Calls of recv that find their message: the last of every few has arrived before the first is taken."""
    arrays, seconds = buffers(size, False), 0.0
    for value in range(count if comm.rank < 2 else 0):
        if comm.rank == 0:
            last = comm.recv(1, tag=LAST)
            check(last == value, last, value)
            begin = perf_counter()
            for _ in range(FEW):
                received = comm.recv(1, tag=0, out=next(arrays))
            seconds += perf_counter() - begin
            check_mark(received, value)
            comm.send(None, 1)
        else:
            for _ in range(FEW):
                comm.send(marked(next(arrays), value), 0)
            comm.send(value, 0, tag=LAST)
            comm.recv(0)
    return FEW * count, seconds


def overheads_chain(comm, count, size):
    """A message from node 0 by way of every node to the last one, and back: half of that."""
    arrays = buffers(size, False)
    left, right, last = comm.rank - 1, comm.rank + 1, comm.size - 1
    begin = perf_counter()
    for value in range(count):
        if comm.rank == 0:
            comm.send(marked(next(arrays), value), right)
            check_mark(comm.recv(right, out=next(arrays)), value)
            continue
        received = comm.recv(left, out=next(arrays))
        if comm.rank < last:
            comm.send(received, right)
            received = comm.recv(right, out=next(arrays))
        comm.send(received, left)
    return 2 * count, perf_counter() - begin


# ---- stall: two nodes, while the last one is stopped, or waits like them


def is_stopped(number):
    return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def stall_exchange(comm, count, size, stops):
    """Arrays of `size` bytes between nodes 0 and 1, while the last one is stopped, or waits."""
    last, spent = comm.size - 1, 0.0
    if comm.rank == last:
        comm.send(os.getpid(), 0)
        if stops:
            os.kill(os.getpid(), signal.SIGSTOP)
        for _ in range(UNREAD):
            comm.recv(1)
        comm.recv(0)
    elif comm.rank == 0:
        number = comm.recv(last)
        while stops and not is_stopped(number):
            os.sched_yield()
        comm.send(None, 1)
        try:
            spent = back_and_forth(comm, count, size, 1)
        finally:
            os.kill(number, signal.SIGCONT)
        comm.send(None, last)
    elif comm.rank == 1:
        comm.recv(0)
        for value in range(UNREAD):
            comm.send(np.full(1 << 10, value % 251, np.uint8), last)
        back_and_forth(comm, count, size, 0)
    return 2 * count, spent


def back_and_forth(comm, count, size, other):
    """Seconds."""
    source, begin = np.zeros(size, np.uint8), perf_counter()
    for value in range(count):
        if comm.rank == 0:
            source[0] = source[-1] = value % 251
            comm.send(source, other)
        received = comm.recv(other)
        if comm.rank == 1:
            comm.send(received, other)
        else:
            check(received[0] == received[-1] == value % 251, received, value)
    return perf_counter() - begin


# ---- many: pairs of nodes exchange small messages for some seconds, as fast as they can


def many_message(comm, count, seconds):
    """Return seconds for each message of one node, on average."""
    counts = received(comm, seconds)
    return count * seconds * len(counts) / max(1, sum(counts))


def many_slowest_message(comm, count, seconds):
    """Return the same for the node that got the fewest."""
    return count * seconds / max(1, min(received(comm, seconds)))


def many_server_memory(comm, count, seconds):
    """Return bytes, at the worst moment."""
    received(comm, seconds)
    return count * peak_bytes(server()) if comm.rank == 0 else 0


@cache
def received(comm, seconds):
    """Return the number of messages of each node. All nodes call it."""
    pairs = comm.size // 2
    other, got = comm.rank ^ 1, 0
    source = np.zeros(BYTES, np.uint8)
    comm.barrier()
    end = monotonic() + seconds
    goes = comm.rank // 2 < pairs
    while goes:
        source[0] = monotonic() < end
        for _ in range(TOGETHER):
            comm.send(source, other)
        for _ in range(TOGETHER):
            array = comm.recv(other)
            check(len(array) == BYTES, array, source)
            goes = goes and bool(source[0]) and bool(array[0])
        got += TOGETHER
    counts = comm.gather(got)
    return tuple(counts[: 2 * pairs]) if comm.rank == 0 else (1,)


def server():
    """Return the process of the run's server: a child of the launcher, from which this node descends."""
    above = [os.getppid()]
    while above[-1] > 1:
        above.append(identity(Path("/proc", str(above[-1])))[1])
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            name, parent = identity(folder)
            if name == SERVER and parent in above:
                return int(folder.name)
    raise AssertionError(f"no child {SERVER!r} of any of {above}")


def identity(folder):
    """Return name and parent; ("", 0): it has just ended."""
    try:
        name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        return name, int(rest.split()[1])
    except OSError:
        return "", 0


def peak_bytes(number):
    lines = Path(f"/proc/{number}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def many(comm, path, _seconds, orders):
    """Report each figure once, from the same exchange."""
    found = {
        order["key"]: [globals()[f"many_{order['work']}"](comm, 1, **order["parameters"])]
        for order in json.loads(orders)
    }
    if comm.rank == 0:
        Path(path).write_text(json.dumps(found), encoding="utf-8")


# ---- numbers: NumPy's, and spcomm's own kinds, on one node


@cache  # made while the clock warms up, and kept
def in_turn(dtype, length):
    """Return a thousand different ones, from 0 on; `dtype` is the name of NumPy's or of spcomm's."""
    return (np.arange(length) % 1000).astype(getattr(spcomm, dtype, dtype))


def numbers_sum_elements(comm, count, dtype, length):
    """Read all of an array."""
    if comm.rank == 0:
        array = in_turn(dtype, length)
        for _ in range(count):
            total = array.sum()
        check(total == length // 1000 * 499_500, total, dtype)
    return count


def numbers_read_elements(comm, count, dtype, length):
    """Read one element repeatedly, a thousand times for each count."""
    if comm.rank == 0:
        array = in_turn(dtype, length)
        for _ in range(count):
            for _index in range(1000):
                found = array[77_777]
        check(found == 777, found, dtype)
    return 1000 * count


# ---- events: of a trace: the difference between recorded work and the same work unrecorded


def events_call_events(comm, count):
    """Two events a call: one when it begins, one when it ends."""
    plain = Comm.poll  # of a traced run's `comm`, poll() is another one
    begin = perf_counter()
    for _ in range(count):
        plain(comm)
    middle = perf_counter()
    for _ in range(count):
        comm.poll()
    return 2 * count, difference(begin, middle, perf_counter())


def events_region_events(comm, count):
    """Two events a region. A region without a node costs the same as an ordinary `with`."""
    region, other = comm.region("work"), Region()
    begin = perf_counter()
    for _ in range(count):
        with other:
            pass
    middle = perf_counter()
    for _ in range(count):
        with region:
            pass
    return 2 * count, difference(begin, middle, perf_counter())


def difference(begin, middle, end):
    return max((end - middle) - (middle - begin), 1e-12)
