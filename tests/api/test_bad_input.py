# SPDX-License-Identifier: MIT
"""Wrong arguments: one clear sentence with the value, the limits and what to do; nothing is sent, nobody hangs."""

import numpy as np
import pytest

import spcomm
from nodetools import refused
from spcomm._core import collectives

CALLS = {
    "send": lambda comm, rank: comm.send("x", rank),
    "send-list": lambda comm, rank: comm.send("x", [0, rank]),
    "sendrecv-dest": lambda comm, rank: comm.sendrecv("x", rank, 0),
    "sendrecv-source": lambda comm, rank: comm.sendrecv("x", 0, rank),
    "recv": lambda comm, rank: comm.recv(rank),
    "recv_message": lambda comm, rank: comm.recv_message(rank),
    "try_recv_message": lambda comm, rank: comm.try_recv_message(rank),
    "probe": lambda comm, rank: comm.probe(rank),
}
TAGGED = {
    "send": lambda comm, tag: comm.send("x", 0, tag),
    "sendrecv": lambda comm, tag: comm.sendrecv("x", 0, 0, tag),
    "recv": lambda comm, tag: comm.recv(0, tag),
    "recv_message": lambda comm, tag: comm.recv_message(tag=tag),
    "try_recv_message": lambda comm, tag: comm.try_recv_message(0, tag),
    "take_message": lambda comm, tag: comm.take_message(tag),
    "probe": lambda comm, tag: comm.probe(0, tag),
}


@pytest.mark.parametrize("call", CALLS)
def test_ranks_out_of_range(comm, call):
    for rank in (comm.size, comm.size + 1000, -77, 2**31, 2**63, -(2**70), np.int64(comm.size)):
        limits = [comm.size - 1] if comm.size > 1 else []
        with refused(spcomm.RankError, int(rank), *limits) as caught:
            CALLS[call](comm, rank)
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, spcomm.SpcommError)
    assert comm.try_recv_message() is None


@pytest.mark.sizes(1)
def test_alone_it_says_how_to_start(comm):
    with refused(spcomm.RankError, 1, "spcomm run -n"):
        comm.send("x", 1)
    with refused(spcomm.RankError, "spcomm run -n"):
        comm.recv(1)


@pytest.mark.parametrize("call", CALLS)
def test_ranks_of_wrong_types(comm, call):
    for rank in (1.0, "0", None, b"0", 1j):
        with refused((TypeError, spcomm.RankError), repr(rank)):
            CALLS[call](comm, rank)
    assert comm.try_recv_message() is None


def test_a_wrong_rank_in_a_list_sends_to_nobody(comm):
    for bad in (comm.size, -9, "1", None, 2.0):
        with pytest.raises((spcomm.RankError, TypeError)):
            comm.send("x", [*range(comm.size), bad])
    comm.barrier()
    assert comm.try_recv_message() is None


def test_any_is_no_destination(comm):
    """ANY must be no valid destination even if it is spelled as a number."""
    for bad in (spcomm.ANY, [spcomm.ANY]):
        with pytest.raises((spcomm.RankError, TypeError)):
            comm.send("x", bad)


def test_all_is_no_source(comm):
    for bad in (spcomm.ALL, spcomm.OTHERS):
        with pytest.raises((spcomm.RankError, TypeError)):
            comm.recv(bad, timeout=0)


@pytest.mark.parametrize("call", TAGGED)
def test_tags_out_of_range(comm, call):
    for tag in (-2, -(2**40), 2**31, 2**32, 2**64, 2**100):
        with refused(spcomm.TagError, tag, 2**31 - 1) as caught:
            TAGGED[call](comm, tag)
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, spcomm.SpcommError)
    assert comm.try_recv_message() is None


@pytest.mark.parametrize("call", TAGGED)
def test_tags_of_wrong_types(comm, call):
    for tag in (1.0, "0", b"0", [0]):
        with refused((TypeError, spcomm.TagError), repr(tag)):
            TAGGED[call](comm, tag)
    assert comm.try_recv_message() is None


def test_any_is_no_tag_to_send_with(comm):
    with pytest.raises((spcomm.TagError, TypeError)):
        comm.send("x", 0, spcomm.ANY)


def test_the_limits_themselves_are_allowed(comm):
    for tag in (0, 255, 256, 2**31 - 1):
        comm.send(tag, comm.rank, tag)
        assert comm.recv_message(tag=tag) == (tag, comm.rank, tag)


@pytest.mark.parametrize("name", ["rank", "size", "local_rank", "box", "layout", "unheard_of"])
def test_a_node_cannot_change_who_it_is(comm, name):
    with pytest.raises((AttributeError, TypeError)):
        setattr(comm, name, 5)


@pytest.mark.parametrize("name", ["global_sum", "global_min", "global_max"])
def test_what_cannot_be_reduced(comm, name):
    """Refused by every node before it enters, so nothing hangs; complex sums may be allowed."""
    values = [None, "text", b"bytes", [1, 2], {1: 2}, object(), (1, "x"), (None,), [[]], np.array(["a"])]
    for value in values if name == "global_sum" else [*values, 1j]:
        with refused((TypeError, ValueError), name):
            getattr(comm, name)(value)


def test_a_value_whose_class_raises_cannot_be_reduced(comm):
    class Classless:
        @property
        def __class__(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        comm.global_sum(Classless())


def test_the_communicator_cannot_be_copied_or_sent(comm):
    import copy
    import pickle

    for attempt in (lambda: pickle.dumps(comm), lambda: copy.copy(comm), lambda: comm.send(comm, comm.rank)):
        with pytest.raises((TypeError, pickle.PicklingError)):
            attempt()


def test_errors_form_one_family():
    for name in (
        "ConfigError", "RankError", "TagError", "TruncationError", "MismatchError", "CycleError", "NodeLostError",
        "DeadlockError", "WaitTimeoutError", "BufferInUseError", "ConnectionLostError", "AuthenticationError",
        "VersionError",
    ):  # fmt: skip
        kind = getattr(spcomm, name)
        assert issubclass(kind, spcomm.SpcommError) and kind.__doc__, name
    assert issubclass(spcomm.WaitTimeoutError, TimeoutError)
    assert issubclass(spcomm.RankError, ValueError) and issubclass(spcomm.TagError, ValueError)


def test_a_fuzzy_barrier_of_no_node(comm):
    """Made past its constructor: an exception, not a crash."""
    kind = collectives.FuzzyBarrier
    for call in (lambda fb: fb.wait(), lambda fb: fb.done(), lambda fb: fb.__exit__(None, None, None)):
        with refused(TypeError, "comm.fuzzy_barrier()"):
            call(kind.__new__(kind))
    assert "no node" in repr(kind.__new__(kind))


def test_numbers_beyond_all_limits(comm):
    """Longer than Python converts to text, and than a float holds."""
    for number in (10**400, -(10**400), 10**5000):
        with refused(spcomm.RankError, "send"):
            comm.send("x", number)
        with refused(spcomm.TagError, "recv"):
            comm.recv(tag=number)
    with refused(ValueError, "timeout"):
        comm.recv(timeout=-(10**400))
    comm.send("x", comm.rank)
    assert comm.recv(timeout=10**400) == "x"
    with refused(TypeError, "timeout"):
        comm.recv(timeout=np.zeros(2))


def test_an_array_without_dimensions_is_no_list_of_ranks(comm):
    with refused(TypeError, "dest", "int"):
        comm.send("x", np.array(1.0))


def test_strings_of_any_length_cannot_be_reduced(comm):
    for call in (comm.global_sum, comm.allreduce):
        with refused(TypeError, f"{call.__name__}(x", "not made of numbers"):
            call(np.array(["a"], dtype=np.dtypes.StringDType()))
