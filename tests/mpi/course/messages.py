# SPDX-License-Identifier: MIT
"""Messages between two nodes."""

import numpy as np
from mpi4py import MPI

from course import program, say, say_all


@program()
def hello(comm):
    """Each node greets; node 0 prints the greetings in order."""
    greeting = f"Hello from {comm.rank} of {comm.size}"
    if comm.rank > 0:
        comm.send(greeting, dest=0)
        return
    print(greeting)
    for source in range(1, comm.size):
        print(comm.recv(source=source))


@program()
def token_ring(comm):
    """A token goes round, and each node adds its rank."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    if comm.rank == 0:
        request = comm.isend([0], dest=right)
        token = comm.recv(source=left)
        request.wait()
        say(comm, "the token has been at", token)
    else:
        token = comm.recv(source=left)
        comm.send([*token, comm.rank], dest=right)


@program("buffered")
def careless_ring(comm):
    """All send first, which works as long as MPI buffers."""
    comm.send(comm.rank**2, dest=(comm.rank + 1) % comm.size, tag=5)
    say_all(comm, comm.recv(source=(comm.rank - 1) % comm.size, tag=5))


@program()
def sum_ring(comm):
    """With Sendrecv each value visits all nodes; each sums them."""
    value, total = np.array([comm.rank + 1], "i8"), 0
    incoming = np.empty(1, "i8")
    for _ in range(comm.size):
        total += int(value[0])
        comm.Sendrecv(
            value, (comm.rank + 1) % comm.size, 7, incoming, source=(comm.rank - 1) % comm.size, recvtag=7
        )
        value, incoming = incoming, value
    say_all(comm, total)


@program()
def shift_in_place(comm):
    """Sendrecv_replace with growing distances."""
    data = np.full(4, comm.rank, "d")
    for distance in range(1, comm.size + 1):
        comm.Sendrecv_replace(
            data, (comm.rank + distance) % comm.size, source=(comm.rank - distance) % comm.size
        )
        data += 0.5
    say_all(comm, data.tolist())


@program()
def ping_pong(comm):
    """Messages of growing length between pairs of nodes."""
    partner = comm.rank ^ 1
    checks = []
    if partner < comm.size:
        for length in (0, 1, 1000, 100_000):
            data = np.arange(length, dtype="f4") if comm.rank % 2 == 0 else np.zeros(length, "f4")
            for _ in range(3):
                if comm.rank % 2 == 0:
                    comm.Send(data, dest=partner, tag=length)
                    comm.Recv(data, source=partner, tag=length)
                else:
                    comm.Recv(data, source=partner, tag=length)
                    data += 1
                    comm.Send(data, dest=partner, tag=length)
            checks.append(float(data.sum(dtype="f8")))
    say_all(comm, checks)


@program()
def exchange(comm):
    """All to all by Isend, Irecv and Waitall."""
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    incoming = np.zeros((comm.size, 2), "i")
    requests = [comm.Irecv(incoming[rank], source=rank) for rank in others]
    outgoing = [np.array([comm.rank, rank * 10], "i") for rank in others]
    requests += [comm.Isend(data, dest=rank) for data, rank in zip(outgoing, others, strict=True)]
    MPI.Request.Waitall(requests)
    say_all(comm, incoming.tolist())


@program()
def any_source(comm):
    """Node 0 takes what comes first, and learns from the status who sent it."""
    if comm.rank > 0:
        comm.send(comm.rank**3, dest=0, tag=comm.rank + 10)
        return
    found, status = {}, MPI.Status()
    for _ in range(1, comm.size):
        value = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        found[status.Get_source()] = (value, status.Get_tag())
    print(sorted(found.items()))


@program()
def by_tag(comm):
    """Messages of one sender are taken in another order, by their tags."""
    if comm.rank > 0:
        comm.Barrier()
        requests = [comm.isend(f"{comm.rank}/{tag}", dest=0, tag=tag) for tag in range(4)]
        MPI.Request.waitall(requests)
        return
    requests = [comm.irecv(source=rank, tag=tag) for tag in (3, 1, 0, 2) for rank in range(1, comm.size)]
    comm.Barrier()
    print(MPI.Request.waitall(requests))


@program()
def non_overtaking(comm):
    """Messages of one sender with one tag arrive in order, in receives that were posted in order."""
    if comm.rank == 0:
        values = np.zeros((comm.size - 1) * 20, "i")
        requests = [comm.Irecv(values[at : at + 1], at // 20 + 1, 3) for at in range(len(values))]
        MPI.Request.Waitall(requests)
        say(comm, (values.reshape(-1, 20) == np.arange(20)).all())
    else:
        for value in range(20):
            comm.Send(np.array([value], "i"), 0, 3)


@program()
def probe_unknown(comm):
    """The receiver asks for a message's length before it makes room for it."""
    if comm.rank > 0:
        comm.Send(np.arange(comm.rank * 3, dtype="f8"), dest=0, tag=1)
        return
    status = MPI.Status()
    for source in range(1, comm.size):
        comm.Probe(source=source, tag=MPI.ANY_TAG, status=status)
        data = np.empty(status.Get_count(MPI.DOUBLE))
        comm.Recv(data, source=status.source, tag=status.tag)
        print(source, len(data), data.sum())


@program()
def matched_probe(comm):
    """Mprobe takes the message, so that no other thread can."""
    if comm.rank > 0:
        comm.send({"from": comm.rank}, dest=0, tag=2)
        return
    found = []
    for _ in range(1, comm.size):
        found.append(comm.mprobe(tag=2).recv()["from"])
    print(sorted(found))


@program()
def polling(comm):
    """Iprobe until something is there."""
    partner = comm.size - 1 - comm.rank
    request = comm.isend(comm.rank * 11, dest=partner, tag=4)
    while not comm.iprobe(source=partner, tag=4):
        pass
    value = comm.recv(source=partner, tag=4)
    request.wait()
    say_all(comm, value)


@program()
def task_farm(comm):
    """A master hands out tasks; a worker asks for the next one by its answer."""
    WORK, STOP, tasks = 1, 2, list(range(2, 25))
    if comm.size == 1:
        return
    if comm.rank > 0:
        status = MPI.Status()
        answer = None
        while True:
            comm.send(answer, dest=0)
            task = comm.recv(source=0, tag=MPI.ANY_TAG, status=status)
            if status.Get_tag() == STOP:
                return
            answer = (task, [divisor for divisor in range(1, task + 1) if task % divisor == 0])
    results, status, running = {}, MPI.Status(), comm.size - 1
    while running > 0:
        answer = comm.recv(source=MPI.ANY_SOURCE, status=status)
        if answer is not None:
            results[answer[0]] = answer[1]
        if tasks:
            comm.send(tasks.pop(), dest=status.source, tag=WORK)
        else:
            comm.send(None, dest=status.source, tag=STOP)
            running -= 1
    print([(task, len(found)) for task, found in sorted(results.items())])


@program()
def persistent(comm):
    """Requests that are made once and started in every step."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    mine, from_left, from_right = np.array([float(comm.rank)]), np.zeros(1), np.zeros(1)
    requests = [
        comm.Recv_init(from_left, left, 1),
        comm.Recv_init(from_right, right, 2),
        comm.Send_init(mine, right, 1),
        comm.Send_init(mine, left, 2),
    ]
    for _ in range(5):
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
        mine += (from_left + from_right) / 2
    for request in requests:
        request.Free()
    say_all(comm, float(mine[0]))


@program()
def wait_any(comm):
    """Requests are worked off in the order in which they complete."""
    if comm.rank > 0:
        comm.Send(np.array([comm.rank * 100], "i"), dest=0)
        return
    values = np.zeros((comm.size, 1), "i")
    requests = [comm.Irecv(values[rank], source=rank) for rank in range(1, comm.size)]
    total = 0
    while (index := MPI.Request.Waitany(requests)) != MPI.UNDEFINED:
        total += int(values[index + 1, 0])
    print(total)


@program()
def wait_some(comm):
    """As many as have completed at once."""
    if comm.rank > 0:
        for part in range(3):
            comm.Send(np.array([comm.rank * 10 + part], "i"), dest=0, tag=part)
        return
    values = np.zeros(3 * comm.size, "i")
    requests = [
        comm.Irecv(values[3 * rank + part :][:1], source=rank, tag=part)
        for rank in range(1, comm.size)
        for part in range(3)
    ]
    done = []
    while indices := MPI.Request.Waitsome(requests):
        done += indices
    print(sorted(done) == list(range(len(requests))), values.tolist())


@program()
def test_all(comm):
    """Something is computed while messages are on their way."""
    incoming = np.zeros(comm.size, "i8")
    requests = [comm.Irecv(incoming[rank : rank + 1], source=rank) for rank in range(comm.size)]
    mine = np.array([2**comm.rank], "i8")
    requests += [comm.Isend(mine, dest=rank) for rank in range(comm.size)]
    computed = 0
    while not MPI.Request.Testall(requests):
        computed += 1
    say_all(comm, incoming.tolist())


@program()
def synchronous(comm):
    """An Issend is over when its receiver has begun to receive."""
    if comm.rank == 0:
        for source in range(1, comm.size):
            print(comm.recv(source=source))
    else:
        request = comm.issend(f"synchronous {comm.rank}", dest=0)
        request.wait()
    if comm.size > 1 and comm.rank < 2:
        if comm.rank == 0:
            comm.ssend("last", dest=1)
        else:
            assert comm.recv(source=0) == "last"


@program()
def buffered(comm):
    """Bsend in a circle, with a buffer of the program."""
    data = np.full(1000, comm.rank, "i")
    size = comm.size * (data.nbytes + MPI.BSEND_OVERHEAD)
    MPI.Attach_buffer(bytearray(size))
    comm.Bsend(data, dest=(comm.rank + 1) % comm.size)
    comm.Recv(data, source=(comm.rank - 1) % comm.size)
    MPI.Detach_buffer()
    say_all(comm, int(data.sum()))


@program()
def ready(comm):
    """Rsend where the receive is known to be posted."""
    data = np.zeros(3, "i")
    request = comm.Irecv(data, source=(comm.rank + 1) % comm.size, tag=9)
    comm.Barrier()
    comm.Rsend(np.arange(3, dtype="i") * comm.rank, dest=(comm.rank - 1) % comm.size, tag=9)
    request.Wait()
    say_all(comm, data.tolist())


@program()
def cancel(comm):
    """A receive that nobody sends to is withdrawn."""
    status = MPI.Status()
    request = comm.Irecv(np.empty(1), source=(comm.rank + 1) % comm.size, tag=77)
    request.Cancel()
    request.Wait(status)
    say_all(comm, status.Is_cancelled())


@program()
def objects(comm):
    """Whatever can be pickled."""
    things = [None, True, 2**100, 1.5, "α" * 10_000, b"x", {"a": [1, (2, 3)]}, {1, 2}, np.eye(2), range(5)]
    partner = comm.size - 1 - comm.rank
    back = comm.sendrecv(things, dest=partner, source=partner)
    say_all(comm, [str(thing)[:12].replace("\n", "") for thing in back])


@program()
def proc_null(comm):
    """At the ends of a line the neighbour is PROC_NULL, and its messages change nothing."""
    left = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
    right = comm.rank + 1 if comm.rank < comm.size - 1 else MPI.PROC_NULL
    halo, status = np.full(1, -1, "i"), MPI.Status()
    comm.Sendrecv(np.array([comm.rank], "i"), right, recvbuf=halo, source=left, status=status)
    at_left_end = status.source == MPI.PROC_NULL and status.Get_count(MPI.INT) == 0
    say_all(comm, (int(halo[0]), at_left_end, comm.sendrecv("x", dest=right, source=left)))


@program()
def to_itself(comm):
    """A node's messages to itself."""
    data = np.zeros(5, "i")
    request = comm.Irecv(data, source=comm.rank, tag=1)
    comm.Send(np.arange(5, dtype="i") + comm.rank, dest=comm.rank, tag=1)
    request.Wait()
    say_all(comm, int(data.sum()))


@program()
def long_messages(comm):
    """4 MiB from and to both neighbours at once."""
    data = np.arange(2**19, dtype="f8") + comm.rank
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    incoming = np.zeros((2, 2**19))
    requests = [comm.Irecv(incoming[0], left, 1), comm.Irecv(incoming[1], right, 2)]
    requests += [comm.Isend(data, right, 1), comm.Isend(data, left, 2)]
    MPI.Request.Waitall(requests)
    say_all(comm, incoming[:, -1].tolist())


@program()
def truncated(comm):
    """A message that is longer than its buffer is an error of the receive."""
    if comm.rank == 0:
        request = comm.Isend(np.arange(10, dtype="i"), dest=0)
        try:
            comm.Recv(np.empty(5, "i"), source=0)
        except MPI.Exception as error:
            print("ERR_TRUNCATE", error.Get_error_class() == MPI.ERR_TRUNCATE)
        request.Wait()


@program()
def partial(comm):
    """A shorter message fills the beginning, and the status has the number of elements."""
    if comm.rank == 0:
        data, status = np.full(6, -1, "i2"), MPI.Status()
        request = comm.Irecv(data, source=0)
        comm.Send(np.arange(4, dtype="i2"), dest=0)
        request.Wait(status)
        print(data.tolist(), status.Get_count(MPI.SHORT), status.Get_elements(MPI.BYTE))


@program()
def clock(comm):
    """Wtime goes forward, by at least Wtick."""
    start = MPI.Wtime()
    while MPI.Wtime() - start < MPI.Wtick():
        pass
    say_all(comm, (MPI.Wtime() > start, 0 < MPI.Wtick() < 0.1, len(MPI.Get_processor_name()) > 0))
