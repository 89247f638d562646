# SPDX-License-Identifier: MIT
"""Correct programs, a pattern each, for test_no_false_alarm: they wait often, and long when nodes are stopped.

    spcomm run -n 4 patterns.py PATTERN SECONDS

Node 0 prints the process ids of all nodes first. A round ends when all have come to its end and know whether node 0
wants another one.
"""

import os
import random
import signal
import sys
import threading
import time

import numpy as np

import spcomm

comm = spcomm.startup()
rng = random.Random(comm.rank)
after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def compute():
    """Sometimes nothing, sometimes longer than a wait takes that others can see."""
    if rng.random() < 0.3:
        time.sleep(rng.random() * 0.03)


def ping_pong():
    partner = comm.rank ^ 1
    for number in range(50):
        compute()
        if comm.rank % 2 == 0:
            comm.send(number, partner)
            assert comm.recv(source=partner) == number
        else:
            assert comm.recv(source=partner) == number
            comm.send(number, partner)


def ring():
    for number in range(20):
        if comm.rank == 0:
            comm.send(number, after)
            assert comm.recv(source=before) == number
        else:
            got = comm.recv(source=before)
            compute()
            comm.send(got, after)


def server():
    if comm.rank == 0:
        for _ in range(10 * (comm.size - 1)):
            request = comm.recv_message()
            compute()
            comm.send(request.data + 1, request.source, tag=request.tag)
    else:
        for number in range(10):
            compute()
            comm.send(number, 0, tag=comm.rank)
            assert comm.recv(source=0, tag=comm.rank) == number + 1


def collectives():
    for number in range(20):
        compute()
        assert comm.global_sum(number) == number * comm.size
        comm.barrier()


def gatherings():
    for number in range(10):
        compute()
        array = np.full(30_000 if number % 2 else 30, comm.rank)
        assert [part[0] for part in comm.allgather(array)] == list(range(comm.size))
        compute()
        got = comm.gather(array, number % comm.size)
        assert comm.bcast(len(got) if got else None, number % comm.size) == comm.size


def fuzzy():
    for _ in range(20):
        with comm.fuzzy_barrier():
            compute()
        barrier = comm.fuzzy_barrier()
        while comm.rank == 1 and not barrier.done():
            compute()
        barrier.wait()


def coordinated():
    for number in range(10):
        for other in range(comm.size):
            if rng.random() < 0.5:
                comm.coordinated_send(number, other)
        compute()
        for message in comm.coordinated_messages():
            assert message.data == number
            if rng.random() < 0.1:
                compute()


def parts():
    with comm.split(comm.rank % 2) as part:
        for number in range(10):
            compute()
            part.send(number, (part.rank + 1) % part.size)
            assert part.recv() == number
            part.barrier()


def full_queues():
    """More than queues hold, to receivers who take their time."""
    data = np.zeros(500)
    for dest in (after, before):
        for _ in range(40):
            comm.send(data, dest, tag=int(dest == after))
            if rng.random() < 0.2:
                comm.poll()
    compute()
    for _ in range(40):
        comm.recv(source=before, tag=1)
        comm.recv(source=after, tag=0)


def one_way():
    """Node 0 waits for room, others for messages."""
    for number in range(60):
        if comm.rank == 0:
            for dest in range(1, comm.size):
                comm.send(bytes(5000), dest, tag=number)
        else:
            compute()
            comm.recv(source=0, tag=number)


def timers():
    """The handler of a timer sends the message that everybody waits for."""

    def ring_the_bell(*_):
        comm.send("bell", after, tag=9)

    old = signal.signal(signal.SIGALRM, ring_the_bell)
    for _ in range(3):
        signal.setitimer(signal.ITIMER_REAL, rng.random() * 0.4 + 0.001)
        assert comm.recv(source=before, tag=9) == "bell"
        while signal.getitimer(signal.ITIMER_REAL)[0]:
            compute()
        comm.barrier()
    signal.signal(signal.SIGALRM, old)


def threads():
    """Another thread sends what the main threads wait for."""

    def send_later(delay):
        time.sleep(delay)
        comm.send("later", after, tag=9)

    for _ in range(3):
        sender = threading.Thread(target=send_later, args=(rng.random() * 0.4,))
        sender.start()
        assert comm.recv(source=before, tag=9) == "later"
        sender.join()


def handlers():
    """Node 0 sends no message, but a signal; its handler sends what all the others wait for."""

    def answer(*_):
        for dest in range(2, comm.size):
            comm.send("go", dest, tag=9)
        comm.send("go", 1, tag=9)

    old = signal.signal(signal.SIGUSR1, answer)
    pids = comm.allgather(os.getpid())
    comm.barrier()
    if comm.rank == 0:
        time.sleep(rng.random() * 0.4)
        os.kill(pids[1], signal.SIGUSR1)
    else:
        assert comm.recv(tag=9) == "go"
    comm.barrier()
    signal.signal(signal.SIGUSR1, old)


def timeouts():
    """Nobody sends before it has given up once."""
    for _ in range(5):
        try:
            comm.recv(source=before, tag=9, timeout=rng.random() * 0.1)
        except spcomm.WaitTimeoutError:
            comm.send(1, after, tag=9)
        else:
            comm.send(1, after, tag=9)
            continue
        comm.recv(source=before, tag=9)


def ends():
    """Caught: who waits in vain is told."""
    with comm.split(0) as part:
        if part.rank == 0:
            compute()
        else:
            try:
                part.recv(source=0)
            except spcomm.NodeLostError:
                pass


def pids_of_all():
    """By rank."""
    for dest in range(comm.size):
        comm.send(os.getpid(), dest, tag=8)
    return [comm.recv(source=source, tag=8) for source in range(comm.size)]


def main():
    pattern, seconds = globals()[sys.argv[1]], float(sys.argv[2])
    pids = pids_of_all()
    if comm.rank == 0:
        print(*pids, flush=True)
    deadline = time.monotonic() + seconds
    another = True
    while another:
        pattern()
        another = bool(comm.global_max(int(comm.rank == 0 and time.monotonic() < deadline)))


main()
