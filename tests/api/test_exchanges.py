# SPDX-License-Identifier: MIT
"""Large arrays both ways at once: in pairs, in circles, all with all, with oneself. Nobody may wait for ever."""

import threading

import numpy as np
import pytest

import spcomm
from pairwise import each
from programs import run

CROWDED = ("default", "tiny", "least", "small", "bounded", "bounded-arena")
LENGTHS = [
    2_000,
    70_000,
]  # doubles: a block of the arena, or some parts; and enough for recv(out=) to say where


def array_of(sender, receiver, length):
    return np.arange(length, dtype=float) + 1000 * sender + receiver


def assert_is_from(array, sender, receiver):
    assert np.array_equal(array, array_of(sender, receiver, array.size))


@pytest.mark.options(*CROWDED)
@pytest.mark.sizes(1, 2, 3, 4)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("into", [False, True], ids=["new", "out"])
def test_sendrecv_in_circles_of_every_step(comm, length, into):
    """Step 0 is an exchange with oneself, and half the size one in pairs."""
    me, size = comm.rank, comm.size
    for step in range(size):
        to, source = (me + step) % size, (me - step) % size
        out = np.zeros(length) if into else None
        received = comm.sendrecv(array_of(me, to, length), to, source, tag=step, out=out)
        assert received is out or not into
        assert_is_from(received, source, me)


@pytest.mark.options(*CROWDED)
@pytest.mark.sizes(2, 3, 4)
@pytest.mark.parametrize("length", LENGTHS)
def test_ssend_by_turns(comm, length):
    """The smaller rank of each pair sends first: no circle, whatever the number of nodes."""
    out = np.zeros(length)
    for node in range(comm.size):
        if node == comm.rank:
            continue
        for sends in (comm.rank < node, comm.rank > node):
            if sends:
                comm.ssend(array_of(comm.rank, node, length), node)
            else:
                assert_is_from(comm.recv(node, out=out), node, comm.rank)


@pytest.mark.options("default", "tiny", "small")
@pytest.mark.sizes(2, 4)
def test_ssend_round_the_circle_while_another_thread_receives(comm):
    """All wait in ssend at once: a second thread of each node is what ends that."""
    following, previous = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    found = []
    thread = threading.Thread(target=lambda: found.append(comm.recv(previous, out=np.zeros(90_000))))
    thread.start()
    comm.ssend(array_of(comm.rank, following, 90_000), following)
    thread.join()
    assert_is_from(found[0], previous, comm.rank)


IN_PARTS = ("tiny", "least", "small")


@pytest.mark.options("default", *IN_PARTS)
@pytest.mark.sizes(2, 3)
def test_a_receive_that_gives_up_with_parts_there(comm):
    """Again and again, each time into other memory: what was there of the message is not lost with it."""
    if comm.rank == 1:
        comm.ssend(array_of(1, 0, 70_000), 0, tag=1)
        comm.send("after", 0, tag=1)
    elif comm.rank == 0:
        received = None
        while received is None:
            out = np.zeros(70_000)
            try:
                received = comm.recv(1, 1, out=out, timeout=0)
            except spcomm.WaitTimeoutError:
                out[:] = -1.0
        assert received is out
        assert_is_from(out, 1, 0)
        assert comm.recv(1, 1) == "after"


@pytest.mark.options("default", *IN_PARTS)
@pytest.mark.sizes(2, 3)
def test_what_does_not_fit_stays_queued(comm):
    """Arrays of as many bytes, too: nothing of it may be put where it does not belong."""
    length = 100_000
    if comm.rank == 1:
        comm.recv(0)
        comm.send(array_of(1, 0, length), 0, tag=1)
    elif comm.rank == 0:
        comm.send("go", 1)
        for wrong in (np.full(length, 7), np.full(length - 1, 7.0)):
            with pytest.raises((TypeError, spcomm.TruncationError)):
                comm.recv(1, 1, out=wrong)
            assert (wrong == 7).all()
        strided = np.zeros((2, length))[:, ::2]
        with pytest.raises(spcomm.TruncationError, match="only the same shape fits"):
            comm.recv(1, 1, out=strided)
        assert not strided.any()
        with pytest.raises((TypeError, ValueError), match="read-only"):
            comm.recv(1, 1, out=np.broadcast_to(np.zeros(1), length))
        fitting = np.zeros((4, length // 4))
        assert comm.recv(1, 1, out=fitting) is fitting
        assert_is_from(fitting.reshape(-1), 1, 0)


@pytest.mark.options(*IN_PARTS)
@pytest.mark.sizes(2, 3)
@pytest.mark.spread("order")
@pytest.mark.parametrize(
    "dtype", each(3, ["?", "i1", "f4", ">f8", "c16", "M8[s]", "S5", [("a", "i4"), ("b", "f8")]]), ids=str
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_all_kinds_of_arrays_in_parts(comm, dtype, order):
    shape = (100, 600)
    numbers = np.arange(60_000, dtype="i8") % 100
    made = numbers.astype([("a", "i4"), ("b", "f8")] if isinstance(dtype, list) else "i8").astype(dtype)
    made = np.asarray(made.reshape(shape), order=order)
    out = np.empty(shape, dtype=dtype, order=order)
    partner = comm.rank ^ 1
    if partner < comm.size:
        assert comm.sendrecv(made, partner, partner, out=out) is out
        assert np.array_equal(out, made)


DEATHS = ("--ring", "4096", "--slots", "2", "--grace", "60")


@pytest.mark.near
@pytest.mark.parametrize("arena", ["0", "64M"])
def test_a_sender_that_is_killed_between_parts(tmp_path, arena):
    """Without an arena the rest is in its private memory, and dies with it."""
    result = run(
        tmp_path,
        2,
        """
        import numpy as np
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher's, to nodes that are left
        comm.barrier()
        out = np.zeros(200_000)
        if rank == 1:
            comm.send(np.ones(200_000), 0)
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            print("got", comm.recv(1, out=out).sum())
            comm.recv(1, out=out)
        except spcomm.NodeLostError as error:
            print("lost", error.rank)
        """,
        "--arena",
        arena,
        *DEATHS,
    )
    assert result.lines() == (["lost 1"] if arena == "0" else ["got 200000.0", "lost 1"]), result


@pytest.mark.parametrize("arena", ["0", "64M"])
def test_a_receiver_that_is_killed_between_parts(tmp_path, arena):
    """It may have taken some when it gives up; who waits for its receipt is told."""
    result = run(
        tmp_path,
        2,
        """
        import numpy as np
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        comm.barrier()
        if rank == 1:
            try:
                comm.recv(0, 7, out=np.zeros(200_000), timeout=0.05)
            except spcomm.WaitTimeoutError:
                os.kill(os.getpid(), signal.SIGKILL)
        comm.send(np.ones(200_000), 1, tag=5)
        try:
            comm.ssend(np.ones(200_000), 1, tag=6)
        except spcomm.NodeLostError as error:
            print("lost", error.rank)
        """,
        "--arena",
        arena,
        *DEATHS,
    )
    assert result.lines() == ["lost 1"], result
