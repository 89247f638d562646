# SPDX-License-Identifier: MIT
"""Active messages: functions that take messages, called by poll, by receives, and in waits.

Handlers stay for as long as their communicator, so each test has one of its own.
"""

import os
import signal
import threading

import numpy as np
import pytest

import spcomm
from nodetools import neighbours, pass_on, refused, same, when_asleep, workers

# Not those without an arena, which a communicator's memory comes from.
pytestmark = pytest.mark.options("default", "small", "tree", "part", "exec", "no-futex", "nothing")
TAG = 5


def kept(part, tag=TAG):
    """Where a handler of this tag puts what it gets."""
    found = []
    part.handler(tag)(lambda message: found.append((message.data, message.source, message.tag)))
    return found


def test_poll_calls_it(comm):
    with comm.split() as part:
        found = kept(part)
        part.send("a", part.rank, TAG)
        part.send("b", part.rank, TAG + 1)
        assert part.poll() >= 0  # what is not for a handler counts as before
        assert found == [("a", part.rank, TAG)]
        assert part.recv(part.rank) == "b"


@pytest.mark.smoke
def test_a_wait_calls_it(comm):
    """Each node asks the next for its rank; all of them wait for answers meanwhile."""
    with comm.split() as part:

        @part.handler(TAG)
        def answer(message):
            part.send((part.rank, message.data), message.source, TAG + 1)

        following, _ = neighbours(part)
        for number in range(50):
            part.send(number, following, TAG)
            assert part.recv(following, TAG + 1) == (following, number)
        part.barrier()  # the others may still ask


@pytest.mark.parametrize(
    "call", ["recv", "recv_message", "try_recv_message", "probe", "poll", "barrier", "sum", "fuzzy"]
)
def test_calls_that_call_it(comm, call):
    """They handle the messages that are there before the call, and those that come while it waits."""
    with comm.split() as part:
        found = kept(part)
        part.send(1, part.rank, TAG)
        part.send(None, part.rank, 9)
        watcher = when_asleep(lambda: part.send(2, part.rank, TAG)) if call in ("barrier", "sum") else None
        {
            "recv": lambda: part.recv(part.rank, 9),
            "recv_message": lambda: part.recv_message(tag=9),
            "try_recv_message": lambda: part.try_recv_message(tag=9),
            "probe": lambda: part.probe(tag=9),
            "poll": part.poll,
            "barrier": part.barrier,
            "sum": lambda: part.global_sum(1),
            "fuzzy": lambda: part.fuzzy_barrier().wait(),
        }[call]()
        if watcher:
            watcher.join()
        part.poll()
        assert [data for data, _, _ in found] == ([1, 2] if watcher else [1])
        part.barrier()


def test_order_and_kinds(comm):
    """Messages of a sender are handled in the order sent, also long ones and those that were there before."""
    with comm.split() as part:
        following, previous = neighbours(part)
        values = [0, "one", b"2" * 3000, np.full(30_000, 3.0), {"four": 4}, None]
        for value in values:
            part.send(value, following, TAG)
        part.send("end", following, 9)
        part.probe(previous, 9)  # so all has been received before there is a handler
        found = kept(part)
        for value in values:
            part.send(value, following, TAG)
        part.send("end", following, 9)
        assert part.recv(previous, 9) == part.recv(previous, 9) == "end"
        while len(found) < 2 * len(values):
            part.poll()
        assert [type(data) for data, _, _ in found] == [type(value) for value in values] * 2
        assert {(source, tag) for _, source, tag in found} == {(previous, TAG)}
        assert (found[3][0] == 3.0).all() and found[3][0].flags.writeable
        part.barrier()


def test_receives_do_not_see_them(comm):
    with comm.split() as part:
        found = kept(part)
        part.send("handled", part.rank, TAG)
        assert part.try_recv_message() is None and found
        for call in (part.recv, part.recv_message, part.try_recv_message, part.probe):
            with refused(spcomm.TagError, "tag=5", "handler", "poll()"):
                call(tag=TAG)
        assert part.take_message(tag=TAG) is None


@pytest.mark.options("default", "part")
def test_communicators_have_their_own(comm):
    with comm.split() as one, comm.split() as two:
        of_one, of_two = kept(one), kept(two)
        one.send(1, one.rank, TAG)
        two.send(2, two.rank, TAG)
        comm.send(3, comm.rank, TAG)
        one.poll()
        two.poll()
        assert comm.recv(comm.rank, TAG) == 3
        assert [data for data, _, _ in of_one] == [1] and [data for data, _, _ in of_two] == [2]


def test_any_wait_of_the_node_calls_those_of_all_its_communicators(comm):
    with comm.split() as part:
        found = kept(part)
        following, _ = neighbours(comm)
        part.send("while it waits elsewhere", following, TAG)
        while not found:
            comm.send(None, comm.rank)
            when_asleep(lambda: None).join()
            comm.recv(comm.rank)
            with pytest.raises(spcomm.WaitTimeoutError):
                comm.recv(comm.rank, timeout=0.01)
        part.barrier()


def test_a_second_one_replaces_the_first(comm):
    with comm.split() as part:
        first, second = kept(part), kept(part)
        part.send(1, part.rank, TAG)
        part.poll()
        assert first == [] and len(second) == 1


def test_it_gives_the_function_back(comm):
    with comm.split() as part:
        assert part.handler(TAG)(print) is print


def test_bad_input(comm):
    with comm.split() as part:
        with refused(TypeError, "handler(tag=5)", "NoneType cannot be called"):
            part.handler(TAG)(None)
        part.send(1, part.rank, TAG)
        assert part.recv(tag=TAG) == 1  # nothing was registered
    with refused(spcomm.SpcommError, "closed"):
        part.handler(TAG)(print)


# ---- what they raise


class Refused(Exception):
    pass


def refusing(part):
    @part.handler(TAG)
    def refuse(message):
        raise Refused(message.data)


CALLS = {
    "poll": lambda part: part.poll(),
    "try": lambda part: part.try_recv_message(),
    "recv": lambda part: part.recv(tag=9),
    "probe": lambda part: part.probe(tag=9),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_exception_comes_out_of_the_call(comm, call):
    """And nothing is lost: the receive has taken nothing."""
    with comm.split() as part:
        refusing(part)
        part.send("here", part.rank, 9)
        part.send("why", part.rank, TAG)
        with pytest.raises(Refused, match="why"):
            CALLS[call](part)
        assert part.recv(tag=9) == "here"


@pytest.mark.parametrize("call", ["recv", "barrier"])
def test_an_exception_in_a_wait(comm, call):
    """A barrier stays entered, and the next one goes on with it."""
    with comm.split() as part:
        refusing(part)
        number = 0
        if part.rank == 0:
            watcher = when_asleep(lambda: part.send("late", 0, TAG))
            with pytest.raises(Refused, match="late"):
                part.recv(0, 9) if call == "recv" else barriers(part)
            watcher.join()
            part.send("now", spcomm.ALL, 9)
            number = 1
        assert part.recv(0, 9) == "now"
        part.barrier()
        assert part.global_sum(number) == 1


def barriers(part):
    """The others come only later. Alone nothing is waited for."""
    if part.size == 1:
        part.recv(0, 9)
    part.barrier()


# ---- what they may do


def test_they_may_wait(comm):
    """Others are handled within."""
    with comm.split() as part:
        order = []

        @part.handler(TAG)
        def outer(message):
            order.append("begin")
            part.send(None, part.rank, TAG + 1)
            order.append(part.recv(part.rank, 9))
            order.append("end")

        @part.handler(TAG + 1)
        def inner(message):
            order.append("within")
            part.send("answer", part.rank, 9)

        part.send(None, part.rank, TAG)
        part.poll()
        assert order == ["begin", "within", "answer", "end"]


@pytest.mark.sizes(2, 3, 4)
def test_they_may_not_take_part_in_what_the_call_waits_for(comm):
    with comm.split() as part:
        refusals = []

        @part.handler(TAG)
        def meet(message):
            with refused(spcomm.SpcommError, "barrier()", "collective"):
                part.barrier()
            refusals.append(message)
            part.send("now", spcomm.OTHERS, 9)

        if part.rank == 0:
            watcher = when_asleep(lambda: part.send(None, 0, TAG))
        else:
            part.recv(0, 9)
        assert part.global_sum(1) == part.size
        if part.rank == 0:
            watcher.join()
            assert len(refusals) == 1


LONG = np.arange(100_000)
OUTER = {
    "recv": lambda part: part.recv(1, 8) if part.rank == 0 else part.rank == 1 and part.send("later", 0, 8),
    "sendrecv": lambda part: part.sendrecv(part.rank, neighbours(part)[0], source=neighbours(part)[1]),
    "move": lambda part: (
        part.recv(1, 8) if part.rank == 0 else part.rank == 1 and part.move(part.empty(9), 0, 8)
    ),
    "barrier": lambda part: part.barrier(),
    "allgather": lambda part: part.allgather(part.rank),
    "allgather-long": lambda part: part.allgather(LONG),
    "allreduce": lambda part: part.allreduce(part.rank),
    "allreduce-long": lambda part: part.allreduce(LONG),
}


@pytest.mark.sizes(2, 3)
@pytest.mark.parametrize("how", ["message", "signal", "thread"])
@pytest.mark.parametrize("call", OUTER)
def test_calls_within_the_wait_of_another_call(comm, call, how):
    """Handlers of messages and signals call on another communicator, also while two threads wait."""
    with comm.split() as part, comm.split() as other:
        done = []

        def meet(*_):
            other.barrier()
            assert other.allreduce(1) == other.size
            assert other.allgather(other.rank) == list(range(other.size))
            assert pass_on(other, "short") == "short"
            assert same(pass_on(other, LONG), LONG)
            assert same(other.allreduce(LONG), LONG * other.size)
            done.append(how)

        def outer():
            OUTER[call](part)
            if how == "thread" and part.rank == 0:
                part.send(None, 0, 9)

        part.handler(TAG)(meet)
        before = signal.signal(signal.SIGUSR2, meet)
        try:
            if part.rank == 0:
                trigger = {"signal": lambda: os.kill(os.getpid(), signal.SIGUSR2)}
                watcher = when_asleep(trigger.get(how, lambda: part.send(None, 0, TAG)))
                if how == "thread":
                    workers(outer, lambda: part.recv(0, 9))
                else:
                    outer()
                watcher.join()
            else:
                meet()
                outer()
            while not done:
                part.poll()
        finally:
            signal.signal(signal.SIGUSR2, before)
        part.barrier()


def test_one_thread_of_those_that_wait_calls_it(comm):
    with comm.split() as part:
        found = kept(part)
        threads = [threading.Thread(target=part.recv, args=(part.rank, 20 + n)) for n in range(3)]
        for thread in threads:
            thread.start()
        for number in range(20):
            part.send(number, part.rank, TAG)
        while len(found) < 20:
            os.sched_yield()  # a waiting thread does it
        for number in range(3):
            part.send(None, part.rank, 20 + number)
        for thread in threads:
            thread.join()
        assert [data for data, _, _ in found] == list(range(20))
