# SPDX-License-Identifier: MIT
"""The virtual clock against a second one, which knows what the nodes do, and not how a trace tells it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import Builder
from spcomm.trace.errors import TraceError
from spcomm.trace.model import cut
from spcomm.trace.reader import parse
from spcomm.trace.virtual import replay, text


class Story:
    """A run that is made up, in an order in which it may have happened; `clock` is the other clock.

    Operations are told one after another: each takes ten microseconds of every node that is in it.
    """

    def __init__(self, nodes, latency=0.0):
        self.built = Builder(nodes)
        self.nodes = nodes
        self.latency = latency
        self.clock = [0.0] * nodes
        self.work = [0.0] * nodes
        self._now = 0
        self._under_way = []  # (source, dest, when sent by the trace, by the clock)
        self._fuzzy = []  # of barriers that are open: when each node entered
        self._fuzzy_count = 0

    def times(self):
        return replay(parse(self.built.text()), self.latency)

    def _span(self, rank, name, **told):
        self.built.call(rank, self._now, self._now + 10, name, **told)

    def do_work(self, rank, cost):
        self._span(rank, "work", cost=cost)
        self.clock[rank] += cost
        self.work[rank] += cost
        self._now += 20

    def send(self, source, dest):
        self._span(source, "send")
        self._under_way.append((source, dest, self._now + 5, self.clock[source]))
        self._now += 20

    def receive(self, which, name="recv"):
        source, dest, sent, clock = self._under_way.pop(which)
        self._span(dest, name)
        self.built.message(source, dest, sent, self._now + 5)
        self.clock[dest] = max(self.clock[dest], clock + self.latency)
        self._now += 20

    def ssend(self, source, dest):
        sent = self.clock[source]
        self._span(source, "ssend")
        self._span(dest, "recv")
        self.built.message(source, dest, self._now + 2, self._now + 5)
        self.clock[dest] = max(self.clock[dest], sent + self.latency)
        self.clock[source] = max(sent, self.clock[dest])
        self._now += 20

    def together(self, name, root=0, members=None, number=0):
        members = list(range(self.nodes)) if members is None else members
        entered = [self.clock[rank] for rank in members]
        for at, rank in enumerate(members):
            told = {"part": [number, members[0], len(members), at]} if number else {}
            self._span(rank, name, **told, **({"root": root} if root else {}))
            if name in ("bcast", "scatter"):
                needed = [entered[root]]
            elif name in ("reduce", "gather"):
                needed = entered if at == root else []
            elif name in ("scan", "exscan"):
                needed = entered[:at]
            else:
                needed = entered
            self.clock[rank] = max([self.clock[rank], *needed])
        self._now += 20

    def enter_fuzzy(self):
        self._fuzzy_count += 1
        for rank in range(self.nodes):
            self._span(rank, "fuzzy_barrier")
        self._fuzzy.append((self._fuzzy_count, list(self.clock)))
        self._now += 20

    def leave_fuzzy(self, which, how="wait"):
        number, entered = self._fuzzy.pop(which)
        for rank in range(self.nodes):
            self._span(rank, f"fuzzy_barrier.{how}", barrier=number)
            self.clock[rank] = max(self.clock[rank], *entered)
        self._now += 20

    def cycle(self, pairs):
        """Coordinated messages, from each first to each second, and the end of their cycle."""
        before = []
        for source, dest in pairs:
            self._span(source, "coordinated_send")
            before.append((source, dest, self._now + 5, self.clock[source]))
            self._now += 20
        entered = list(self.clock)
        for source, dest, sent, clock in before:
            self._span(dest, "coordinated_recv")
            self.built.message(source, dest, sent, self._now + 5, context="coordinated")
            self.clock[dest] = max(self.clock[dest], clock + self.latency)
            self._now += 20
        for rank in range(self.nodes):
            self._span(rank, "coordinated_recv")
            self.clock[rank] = max(self.clock[rank], *entered)
        self._now += 20


COLLECTIVE = ("barrier", "global_sum", "allreduce", "allgather", "alltoall", "reduce_scatter", "split",
              "bcast", "scatter", "reduce", "gather", "scan", "exscan")  # fmt: skip


def tell(story, rng, steps):
    """Random things happen."""
    n = story.nodes
    for _step in range(steps):
        what = rng.randrange(10)
        if what < 4:
            story.do_work(rng.randrange(n), rng.randrange(64) / 4)
        elif what == 4:
            story.send(rng.randrange(n), rng.randrange(n))
        elif what == 5 and story._under_way:
            story.receive(rng.randrange(len(story._under_way)), rng.choice(["recv", "sendrecv", "poll"]))
        elif what == 6 and n > 1:
            story.ssend(*rng.sample(range(n), 2))
        elif what == 7:
            story.together(rng.choice(COLLECTIVE), rng.randrange(n))
        elif what == 8 and len(story._fuzzy) < 8:
            story.enter_fuzzy()
        elif what == 8:
            story.leave_fuzzy(rng.randrange(len(story._fuzzy)), rng.choice(["wait", "done"]))
        else:
            pairs = [(rng.randrange(n), rng.randrange(n)) for _message in range(rng.randrange(4))]
            story.cycle(pairs)


@pytest.mark.smoke
@given(st.integers(1, 6), st.integers(0, 60), st.sampled_from([0.0, 0.5, 3.0]), st.integers())
def test_both_clocks_agree(nodes, steps, latency, seed):
    story = Story(nodes, latency)
    tell(story, random.Random(seed), steps)
    found = story.times()
    assert (found.work, found.finish) == (story.work, story.clock)
    assert found.waited == [end - own for end, own in zip(story.clock, story.work, strict=True)]
    assert found.makespan == max(story.clock)


def test_order_of_the_file_means_nothing():
    story = Story(3)
    tell(story, random.Random(5), 60)
    before = story.times()
    story.built.events.reverse()
    assert story.times() == before and max(before.waited) > 0


def test_parts_are_told_apart():
    """The same number is that of all parts of one split; another split has another."""
    story = Story(4)
    for rank in range(4):
        story.do_work(rank, 10.0 * rank)
    story.together("split")
    story.do_work(0, 1)
    story.do_work(3, 7)
    story.together("barrier", members=[0, 2], number=1)
    story.together("allreduce", members=[3, 1], number=1)
    story.together("bcast", root=1, members=[2, 0], number=2)
    story.do_work(1, 1)
    story.together("scan", members=[1, 2, 3], number=3)
    assert story.times().finish == story.clock == [31, 38, 38, 38]


def test_what_a_timeout_has_left_goes_on():
    """The barrier was entered by the first call; the last one ends it."""
    built = Builder(2).call(0, 0, 10, "barrier", ended="left").call(0, 20, 30, "work", cost=5)
    built.call(0, 40, 50, "barrier").call(0, 60, 70, "barrier", ended="raised").call(0, 75, 80, "barrier")
    built.call(1, 0, 30, "work", cost=2).call(1, 35, 50, "barrier").call(1, 76, 80, "barrier")
    assert replay(parse(built.text())).finish == [5, 5]
    built.call(1, 90, 95, "ssend", ended="left").call(1, 96, 97, "recv", ended="left")
    assert replay(parse(built.text())).finish == [5, 5]


def test_what_a_handler_sends_is_not_the_message_of_the_call_around_it():
    """Node 0 waits in ssend until node 1 receives; meanwhile a handler sends to node 2, which receives much later."""
    built = Builder(3).call(2, 0, 4, "send").message(2, 0, 2, 12, context="handled")
    built.call(0, 5, 50, "ssend").message(0, 1, 6, 45)
    built.handler(0, 12, 20).call(0, 13, 18, "send").message(0, 2, 15, 70)
    built.call(1, 10, 40, "work", cost=3).call(1, 42, 48, "recv")
    built.call(2, 10, 60, "work", cost=9).call(2, 65, 75, "recv")
    assert replay(parse(built.text())).finish == [3, 3, 9]


def test_numbers_that_follow():
    story = Story(4)
    for rank in range(4):
        story.do_work(rank, 10.0 if rank == 0 else 5.0)
    story.together("barrier")
    found = story.times()
    assert (found.makespan, found.speedup, found.efficiency) == (10, 2.5, 0.625)
    assert found.karp_flatt == pytest.approx((1 / 2.5 - 1 / 4) / (1 - 1 / 4))
    alone = Story(1)
    alone.do_work(0, 2.5)
    found = alone.times()
    assert (found.speedup, found.efficiency, found.karp_flatt) == (1, 1, None)
    none = Story(2).times()
    assert (none.makespan, none.speedup, none.efficiency, none.karp_flatt) == (0, None, None, None)


def test_text():
    story = Story(2, latency=0.25)
    story.do_work(0, 2.5)
    story.send(0, 1)
    story.receive(0)
    assert text(parse(story.built.text()), 0.25).splitlines() == [
        "virtual times (in units of work; only comm.work takes time, a message takes 0.25)",
        "  node  work  waited  done at",
        "  0      2.5       0      2.5",
        "  1        0    2.75     2.75",
        "  all    2.5    2.75     2.75",
        "  speedup 0.909, efficiency 45.5 %, serial fraction 1.2000 (Karp-Flatt)",
    ]
    assert "no work was declared" in text(parse(Builder(2).text()))


def refused(built, change=lambda trace: trace):
    with pytest.raises(TraceError) as caught:
        replay(change(parse(built.text())))
    words = str(caught.value)
    assert "virtual times" in words and "\n" not in words
    return words


def test_what_has_no_virtual_times():
    built = Builder(2).call(0, 0, 10, "work", cost=1)
    assert "leave --from" in refused(built, lambda trace: cut(trace, 0, 5))
    built.other["overwritten"] = [0, 3]
    assert "3 events of node 1 were overwritten" in refused(built)
    built.other |= {"overwritten": [0, 0], "exit_code": 3}
    assert "exit code 3" in refused(built)
    built.other["exit_code"] = 0
    assert replay(parse(built.text())).finish == [1, 0]
    threads = Builder(2).call(1, 0, 10).call(1, 2, 8, thread=1)
    assert "node 1 called spcomm from several threads" in refused(threads)
    assert "recv (a.py:3) of node 0" in refused(Builder(2).call(0, 0, 10, line="a.py:3", open=True))
    assert "barrier of node 0 has waited for" in refused(Builder(2).call(0, 0, 10, "barrier"))
    assert "bcast of node 0 has waited for" in refused(Builder(2).call(0, 0, 10, "bcast", root=2))
    assert "a receive of node 1" in refused(Builder(2).message(0, 1, None, 5))
    assert "spcomm_fuzzy_wait() is a call of a program in C" in refused(
        Builder(1).call(0, 0, 1, "spcomm_fuzzy_wait()")
    )


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"cost": -1}, "less than no work"),
        ({"cost": "1"}, "not a number of units of work"),
        ({"cost": True}, "not a number of units of work"),
        ({"cost": 1e300}, "not a number of units of work"),
        ({"part": [1, 0, 2]}, "not four whole numbers"),
        ({"part": [1, 0, 2, True]}, "not four whole numbers"),
        ({"part": [1, 0, 3, 0]}, "which a run of 2 nodes does not have"),
        ({"part": [1, 5, 2, 0]}, "which a run of 2 nodes does not have"),
        ({"part": [0, 0, 2, 0]}, "which a run of 2 nodes does not have"),
        ({"root": 1.0}, "not a whole number"),
        ({"barrier": "x"}, "not a whole number"),
    ],
)
def test_forged_calls(told, said):
    with pytest.raises(TraceError, match=said):
        parse(Builder(2).call(0, 0, 10, "bcast", **told).text())
