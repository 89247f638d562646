# SPDX-License-Identifier: MIT
"""The tables in place of products (pairwise.py): what is in them, and that they are always the same."""

import itertools
from types import SimpleNamespace

import pairwise


class Item:
    """A test as pytest knows it, as far as a table is concerned."""

    def __init__(self, name, params=None, **markers):
        self.nodeid, self.markers = f"test_file.py::{name}", markers
        if params is not None:
            self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name):
        return next(self.iter_markers(name), None)

    def iter_markers(self, name):
        if name in self.markers:
            yield SimpleNamespace(args=self.markers[name])


def product(name="f[]", markers=(), **parameters):
    rows = itertools.product(*parameters.values())
    return [Item(name, dict(zip(parameters, row, strict=True)), **dict(markers)) for row in rows]


def rows(items, *names):
    return [tuple(item.callspec.params[name] for name in names) for item in pairwise.table(items)]


def test_all_pairs_meet_in_few_cases():
    items = product(a="abc", b=(1, 2, 3), c=(True, False), d="xyz")
    for one, other in itertools.combinations("abcd", 2):
        assert set(rows(items, one, other)) == {
            tuple(item.callspec.params[name] for name in (one, other)) for item in items
        }
    assert 9 <= len(rows(items)) <= 13


def test_sizes_and_options_are_spread():
    pools = [SimpleNamespace(nodes=n, options=o) for n in (1, 2, 3, 4, 8) for o in ("default", "tiny")]
    found = rows(product(comm=pools, dtype=range(30)), "comm", "dtype")
    assert sorted(dtype for _, dtype in found) == [*range(30)]
    for options in ("default", "tiny"):
        assert {pool.nodes for pool, _ in found if pool.options == options} == {1, 2, 3, 4, 8}
    halves = [
        {pool.nodes for (pool,) in rows(product(f"{name}[]", comm=pools), "comm")} for name in "abcdefghij"
    ]
    assert {len(half) for half in halves} == {3} and set().union(*halves) == {1, 2, 3, 4, 8}
    assert len(set(map(frozenset, halves))) > 3, "functions have different halves"
    chosen = product("g[]", {"options": ()}.items(), comm=[pool for pool in pools if pool.nodes < 3])
    assert {pool.options for (pool,) in rows(chosen, "comm")} == {"default", "tiny"}


def test_also_those_that_a_marker_names():
    items = product(markers={"spread": ("placing",)}.items(), case=range(7), placing="abc")
    assert sorted(rows(items, "case")) == [(case,) for case in range(7)]
    assert {placing for (placing,) in rows(items, "placing")} == set("abc")


def test_the_same_every_time():
    items = product(a=range(4), b=range(4), c=range(4), n=(1, 2, 3))
    assert pairwise.table(items) == pairwise.table(items)


def test_one_parameter_few_cases_and_whole_functions_stay():
    items = product(a=range(9)) + product("g[]", a=(1, 2), n=(1,)) + [Item("alone")]
    items += product("h[]", {"whole": ()}.items(), a=range(5), n=(1, 2, 3))
    assert pairwise.table(items) == items
