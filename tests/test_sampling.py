# SPDX-License-Identifier: MIT
"""What of the tests a sample has (sampling.py)."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

import sampling


@dataclass(frozen=True)
class Pool:
    nodes: int
    options: str = field(metadata={"rotates": True})


class Item:
    """A test as pytest knows it, as far as the sample looks."""

    def __init__(self, name, params=None, **markers):
        self.nodeid, self.markers = f"test_file.py::{name}", markers
        if params is not None:
            self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name):
        return getattr(pytest.mark, name)(*self.markers[name]).mark if name in self.markers else None


def kept(items, seed="1", alone=True):
    return sampling.sample(items, seed, alone)[0]


def test_every_value_of_a_matrix_occurs():
    items = [Item("f[]", {"n": n, "kind": kind}) for n in (1, 2, 3, 4, 8) for kind in "abc"]
    found = kept(items)
    assert {item.callspec.params["n"] for item in found} == {1, 2, 3, 4, 8}
    assert {item.callspec.params["kind"] for item in found} == set("abc")
    assert len(found) < len(items) and kept(items) == found
    assert len({tuple(kept(items, str(seed))) for seed in range(20)}) > 1


def test_each_size_occurs_once_with_one_set_of_options():
    items = [Item("f[]", {"comm": Pool(n, options)}) for n in (1, 2, 3, 4, 8) for options in "abc"]
    assert sorted(item.callspec.params["comm"].nodes for item in kept(items)) == [1, 2, 3, 4, 8]


def test_small_matrices_and_other_functions_are_whole():
    items = [Item("f[]", {"n": n}) for n in range(6)] + [Item("g[]", {"x": x}) for x in range(50)]
    items += [Item("h[]", {"n": n}, whole=()) for n in range(50)] + [Item("alone")]
    assert kept(items) == items


def test_some_have_turns():
    items = [Item("f[]", {"x": x}, rota=(4,)) for x in range(10)]
    assert len(kept(items)) == 3
    assert {item for seed in range(60) for item in kept(items, str(seed))} == set(items)


def test_of_those_without_cases_a_third_runs_unless_their_file_is_named():
    items = [Item(f"f{number}", rota=(3,)) for number in range(10)]
    assert len(kept(items)) == 4 and kept(items, alone=False) == items


def test_turns_are_taken_back():
    items = [Item("f[]", {"x": x}, rota=(1,)) for x in range(10)] + [Item("alone", rota=(1,))]
    items += [Item("g[]", {"x": x}, rota=(4,), smoke=()) for x in range(10)]
    assert kept(items) == items


def test_numbers_are_added_by_file():
    numbers = {"a.py": (1, 2), "a.py::f": (3, 9), "b.py::g": (1, 4)}
    assert sampling.by_file(numbers) == {"a.py": (4, 11), "b.py": (1, 4)}
