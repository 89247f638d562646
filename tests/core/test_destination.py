# SPDX-License-Identifier: MIT
"""Destination against Python's own set of ints, and the paper's way to iterate."""

import copy
import enum
import pickle
from collections.abc import MutableSet

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import spcomm
from naming import name_of
from nodetools import refused
from spcomm import Destination

ranks = st.sampled_from([0, 1, 62, 63, 64, 65, 127, 128, 1022, 1023]) | st.integers(0, 1023)
members = st.sets(ranks, max_size=40)


class Targets(Destination):
    """A subclass may have attributes."""


class Changes(RuleBasedStateMachine):
    """Every way to change one, beside a set; an iteration by first and next goes on meanwhile."""

    def __init__(self):
        super().__init__()
        self.destination, self.model, self.behind = Destination(), set(), -1

    @rule(rank=ranks, name=st.sampled_from(["set", "add"]))
    def put(self, rank, name):
        assert getattr(self.destination, name)(rank) is None
        self.model.add(rank)

    @rule(rank=ranks, name=st.sampled_from(["reset", "discard"]))
    def take(self, rank, name):
        assert getattr(self.destination, name)(rank) is None
        self.model.discard(rank)

    @rule(rank=ranks)
    def remove(self, rank):
        if rank in self.model:
            self.destination.remove(rank)
            self.model.remove(rank)
        else:
            with pytest.raises(KeyError):
                self.destination.remove(rank)

    @rule(others=members, kind=st.sampled_from([set, list, Destination]))
    def combine(self, others, kind):
        if kind is list:
            self.destination |= Destination(kind(others))
        else:
            self.destination |= kind(others)
        self.model |= others

    @rule(others=members)
    def cut(self, others):
        self.destination -= others
        self.model -= others

    @rule(others=members)
    def mix(self, others):
        self.destination ^= others
        self.model ^= others

    @rule()
    def clear(self):
        self.destination.clear()
        self.model.clear()
        self.behind = -1

    @rule()
    def first(self):
        self.behind = self.follow(self.destination.first(), -1)

    @rule()
    def next(self):
        self.behind = self.follow(self.destination.next(), self.behind)

    def follow(self, found, behind):
        assert found == min((rank for rank in self.model if rank > behind), default=None)
        return 1023 if found is None else found

    @invariant()
    def the_same(self):
        assert list(self.destination) == sorted(self.model)
        assert len(self.destination) == len(self.model)
        assert self.destination == self.model and self.model == self.destination


TestChanges = Changes.TestCase


@given(members, members)
def test_operators_of_sets(left, right):
    one, other = Destination(left), Destination(right)
    for name in ("or", "and", "sub", "xor"):
        expected = getattr(left, f"__{name}__")(right)
        for result in (getattr(one, f"__{name}__")(other), getattr(one, f"__{name}__")(right)):
            assert type(result) is Destination and result == expected
    assert type(left | other) is Destination and left | other == left | right and left - other == left - right
    for compare in ("lt", "le", "eq", "ne", "gt", "ge"):
        expected = getattr(left, f"__{compare}__")(right)
        assert getattr(one, f"__{compare}__")(other) is expected
        assert getattr(one, f"__{compare}__")(right) is expected
    assert one.isdisjoint(right) is left.isdisjoint(right)
    assert (one, other) == (left, right)  # and nothing was changed


@given(members)
def test_membership_is_that_of_sets(several):
    destination = Destination(several)
    others = 1023, 1024, 10**30, 63.0, 0.5, float("nan"), True, "1", None, np.int8(1), np.float64(64)
    for value in (*range(-2, 70), *others):
        assert (value in destination) is (value in several)


def test_full():
    full = Destination(range(1024))
    assert len(full) == 1024 and list(full) == list(range(1024)) == sorted(full)
    assert full.pop() == 0 and full.first() == 1 and len(full) == 1023


def test_it_is_a_mutable_set_that_cannot_be_a_key():
    assert isinstance(Destination(), MutableSet)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Destination())
    with pytest.raises(AttributeError):
        Destination().attribute = 1


def test_it_may_change_while_it_is_iterated():
    destination = Destination([3, 5, 700])
    seen = []
    for rank in destination:
        seen.append(rank)
        destination.reset(700)
        destination.set(1)
        destination.set(6)
    assert seen == [3, 5, 6]


TWO = enum.IntEnum("Number", "ONE TWO").TWO


@pytest.mark.parametrize(
    "given",
    [
        [2, 1, 1],
        (1, 2),
        {1, 2},
        range(1, 3),
        np.array([1, 2]),
        iter([1, 2]),
        Destination([1, 2]),
        [np.int64(1), TWO],
    ],
    ids=name_of,
)
def test_what_it_is_made_from(given):
    destination = Destination(given)
    assert list(destination) == [1, 2] and {type(rank) for rank in destination} == {int}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_and_copy(protocol):
    destination = Destination([5, 1023, 0])
    for other in (
        pickle.loads(pickle.dumps(destination, protocol)),
        copy.copy(destination),
        copy.deepcopy(destination),
        destination.copy(),
    ):
        assert (
            type(other) is Destination and other == destination and repr(other) == "Destination([0, 5, 1023])"
        )
        other.reset(5)
        assert 5 in destination


def test_a_subclass():
    targets = Targets([1])
    targets.name = "even"
    other = pickle.loads(pickle.dumps(targets))
    assert type(other) is Targets and other == {1} and other.name == "even"
    assert type(targets | {2}) is Targets and repr(targets) == "Targets([1])"


@pytest.mark.parametrize("rank", [-1, 1024, 10**30, spcomm.ALL, np.int64(5000)], ids=repr)
def test_ranks_that_do_not_exist(rank):
    destination = Destination([7])
    for name in ("set", "reset", "add"):
        with refused(spcomm.RankError, f"Destination().{name}({rank!r})", "from 0 to 1023"):
            getattr(destination, name)(rank)
    with refused(spcomm.RankError, "Destination([", repr(rank), "from 0 to 1023"):
        Destination([1, rank])
    with pytest.raises(spcomm.RankError):
        destination |= {rank}
    destination.discard(rank)
    destination -= {rank}
    assert destination == {7}


@pytest.mark.parametrize("rank", ["1", 1.0, None, True, [1]], ids=repr)
def test_what_is_no_rank(rank):
    destination = Destination([7])
    for name in ("set", "reset", "add"):
        with refused(TypeError, f"Destination().{name}({rank!r})", "from 0 to 1023", type(rank).__name__):
            getattr(destination, name)(rank)
    with refused(TypeError, "Destination([", type(rank).__name__):
        Destination([rank])
    assert destination == {7}


@pytest.mark.parametrize("given", [5, "12", b"12", None, {1: 2}], ids=repr)
def test_what_is_no_list_of_ranks(given):
    with refused(TypeError, f"Destination({given!r})", "iterable of ints"):
        Destination(given)
