# SPDX-License-Identifier: MIT
"""Wrong arguments: one clear sentence with the value, the limits and what to do; nothing is sent, nobody hangs."""

import inspect

import numpy as np
import pytest

import refusals
import spcomm
from nodetools import refused
from spcomm._core import collectives

METHODS = {
    name: inspect.signature(method).parameters
    for name, method in vars(spcomm.Comm).items()
    if callable(method) and not name.startswith("_")
}


def good(comm, method):
    """Arguments that have no default; nothing is sent to that node."""
    values = {
        "obj": "x", "x": np.ones(comm.size), "objs": [0] * comm.size, "a": comm.empty(3), "shape": 3, "seed": 1,
        "dest": spcomm.PROC_NULL, "tag": 0,
    }  # fmt: skip
    return {
        name: values[name]
        for name, one in METHODS[method].items()
        if one.default is one.empty and name in values
    }


def test_each_row_about_python_is_tried():
    named = {name for row in refusals.REFUSALS if row.python for name in row.arguments.split()}
    assert not named - {name for names in METHODS.values() for name in names}


@pytest.mark.parametrize("method", [name for name, names in METHODS.items() if any(map(refusals.of, names))])
def test_a_bad_argument_is_named_and_nothing_is_done(comm, method):
    names = {"comm": comm, "np": np, "spcomm": spcomm}
    for argument in METHODS[method]:
        for row in refusals.of(argument):
            if row.python:
                kind = eval(refusals.EXCEPTIONS.get(row.error, row.error), names)
                with refused(kind, f"{method}({argument}", row.sentence.format(argument=argument)):
                    getattr(comm, method)(**good(comm, method) | {argument: eval(row.python, names)})
    comm.barrier()
    assert comm.try_recv_message() is None


@pytest.mark.sizes(1)
def test_alone_it_says_how_to_start(comm):
    with refused(spcomm.RankError, 1, "spcomm run -n"):
        comm.send("x", 1)
    with refused(spcomm.RankError, "spcomm run -n"):
        comm.recv(1)


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


def test_an_array_without_dimensions_is_no_list_of_ranks(comm):
    with refused(TypeError, "dest", "int"):
        comm.send("x", np.array(1.0))


def test_strings_of_any_length_cannot_be_reduced(comm):
    for call in (comm.global_sum, comm.allreduce):
        with refused(TypeError, f"{call.__name__}(x", "not made of numbers"):
            call(np.array(["a"], dtype=np.dtypes.StringDType()))
