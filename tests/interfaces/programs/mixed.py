# SPDX-License-Identifier: MIT
"""The Python half of a run of both languages; mixed.c says what happens."""

import pickle

import numpy as np

import spcomm

comm = spcomm.startup()
partner = comm.rank - comm.size // 2


def check(found, wanted):
    assert found == wanted, (found, wanted)


def meet():
    total = comm.size * (comm.size - 1) // 2
    comm.barrier()
    check(comm.global_sum(comm.rank), total)
    check(comm.global_min(comm.rank + 0.5), 0.5)
    check(
        comm.global_max(spcomm.SimTime(1.0, comm.rank, 2, 3, 4)), spcomm.SimTime(1.0, comm.size - 1, 2, 3, 4)
    )
    check(
        comm.global_sum((comm.rank, 0.5, spcomm.SimTime(2.0, 1, 1, 1, 1))),
        (total, 0.5 * comm.size, spcomm.SimTime(2.0 * comm.size)),
    )
    comm.fuzzy_barrier().wait()


def echo():
    kinds = []
    for _ in range(6 + 6 + 3 + 5):
        found = comm.recv(partner, 1)
        kinds.append(type(found))
        comm.send(found, partner, 1)
    check(kinds, [bytes, str] * 6 + [int, float, spcomm.SimTime] + [np.ndarray] * 5)
    assert found.dtype == np.float32 and found.shape == (1000, 3) and found.flags.c_contiguous
    np.testing.assert_array_equal(found, (np.arange(3000).reshape(1000, 3) / 7).astype(np.float32))


def speak():
    comm.send(None, partner, 2)
    comm.send(True, partner, 2)
    comm.send(np.asfortranarray(np.arange(6, dtype=np.int8).reshape(2, 3)), partner, 2)
    comm.send(np.array([258], ">i4"), partner, 2)
    times = np.zeros(2, [("time", "f8"), ("priority", "i4", 4)])
    times[1]["priority"][3] = 9
    comm.send(times, partner, 2)


def send_what_c_cannot_read():
    comm.send({"a": 1}, partner, 3)
    comm.send([1, 2.5], partner, 3)
    comm.send((1, "x"), partner, 3)
    comm.send({1, 2, 3}, partner, 3)
    comm.send("sent behind them", partner, 4)
    check(pickle.loads(comm.recv(partner, 3)), {1, 2, 3})


def coordinate():
    for cycle in range(5):
        comm.coordinated_send("py", spcomm.ALL)
        comm.coordinated_send({cycle}, spcomm.ALL)
        found = sorted((message.data for message in comm.coordinated_messages()), key=str)
        half = comm.size // 2
        check(found, [cycle] * half + ["py"] * half + [{cycle}] * half)


def divide():
    with comm.split(comm.rank % (comm.size // 2)) as part:
        check((part.size, part.rank), (2, 1))
        check(part.global_sum(1), 2)


meet()
echo()
speak()
send_what_c_cannot_read()
coordinate()
divide()
print("Python is done")
