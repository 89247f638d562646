# SPDX-License-Identifier: MIT
"""Control links: whatever is cut, at whatever byte, nothing is lost, doubled or reordered. No sockets, no clock."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spcomm.launch.remote import control_link
from spcomm.launch.remote.control_link import MOST_MESSAGE, WINDOW, ControlLink, LinkError

TIMEOUT_S = 30.0


class Network:
    """Two ends and what is under way between them, in each direction."""

    def __init__(self):
        self.now = 0.0
        self.ends = [ControlLink(TIMEOUT_S, self.now) for _end in range(2)]
        self.ways = [bytearray(), bytearray()]  # to each end
        self.sent = [[], []]  # by each end
        self.got = [[], []]  # at each end
        self.connect()

    def connect(self):
        """A new connection. The second end is the server: it attaches first, and may stay alone."""
        self.cut()
        client, server = self.ends
        has = client.acknowledging
        server.attach(has, self.now)
        client.attach(server.acknowledging, self.now)

    def half_connect(self):
        """The answer to the client is lost."""
        self.cut()
        self.ends[1].attach(self.ends[0].acknowledging, self.now)
        self.write(1, 1 << 16)
        self.cut()

    def cut(self):
        """Whatever is under way is lost."""
        for end, way in zip(self.ends, self.ways, strict=True):
            end.detach()
            way.clear()

    def send(self, at, size):
        message = f"{at} {len(self.sent[at])} ".encode() + bytes(size)
        self.sent[at].append(message)
        self.ends[at].send(message)

    def write(self, at, most):
        self.ways[1 - at] += self.ends[at].output(most)

    def deliver(self, at, count):
        data = bytes(self.ways[at][:count])
        del self.ways[at][:count]
        if self.ends[at].is_attached:
            try:
                self.ends[at].feed(data, self.now, self.got[at])
            except LinkError:
                self.cut()

    def garble(self, at):
        """Bytes of nobody's follow those under way."""
        self.ways[at] += b"\xff" * 13
        self.deliver(at, 1 << 30)

    def tick(self, seconds):
        self.now += seconds
        for end in self.ends:
            end.tick(self.now)

    def settle(self):
        """Until all has arrived, which takes one beat more than the bytes do."""
        for end in self.ends:
            end.hold(False)
        self.connect()
        for _round in range(500):
            if not any(end.kept for end in self.ends):
                return
            self.tick(1.0)
            for at in (0, 1):
                self.write(at, 1 << 16)
                self.deliver(at, 1 << 30)


ENDS = st.integers(0, 1)
ACTIONS = st.one_of(
    st.tuples(st.just("send"), ENDS, st.sampled_from([0, 1, 100, 70_000, 300_000])),
    st.tuples(st.just("write"), ENDS, st.sampled_from([1, 1 << 16, 1 << 20])),
    st.tuples(st.just("deliver"), ENDS, st.integers(0, 200) | st.sampled_from([70_000, 1 << 30])),
    st.tuples(st.sampled_from(["cut", "connect", "half_connect"])),
    st.tuples(st.just("tick"), st.sampled_from([0.1, 1.0, 4.0])),
    st.tuples(st.just("garble"), ENDS),
    st.tuples(st.just("hold"), ENDS, st.booleans()),
)


def carry_out(actions):
    network = Network()
    for name, *arguments in actions:
        if name == "hold":
            network.ends[arguments[0]].hold(arguments[1])
        else:
            getattr(network, name)(*arguments)
        for at in (0, 1):
            assert network.got[at] == network.sent[1 - at][: len(network.got[at])]
    network.settle()
    for at, end in enumerate(network.ends):
        assert network.got[at] == network.sent[1 - at]
        assert end.kept == 0 and end.received == len(network.sent[1 - at])
        assert not end.is_dead(network.now)


@settings(deadline=None, max_examples=60)
@given(st.lists(ACTIONS, max_size=50))
def test_nothing_is_lost_doubled_or_reordered(actions):
    carry_out(actions)


@pytest.mark.slow
@settings(deadline=None, max_examples=5000)
@given(st.lists(ACTIONS, max_size=200))
def test_nothing_is_lost_doubled_or_reordered_in_many_cases(actions):
    carry_out(actions)


def test_what_came_before_wrong_bytes_has_come():
    network = Network()
    network.send(0, 100)
    network.write(0, 1 << 20)
    network.garble(1)
    assert network.got[1] == network.sent[0] and not network.ends[1].is_attached
    network.settle()
    assert network.got[1] == network.sent[0]


def test_a_cut_at_each_byte():
    """Each byte of those that go over the first connection, in one direction."""
    whole = len(stream())
    for at in range(whole + 1):
        network = Network()
        say(network)
        network.write(0, 1 << 20)
        network.deliver(1, at)
        network.cut()
        network.settle()
        assert network.got[1] == network.sent[0], at
        assert network.ends[1].is_over and network.ends[0].has_arrived


def say(network):
    for size in (0, 5, 17):
        network.send(0, size)
    network.ends[0].finish()


def stream():
    network = Network()
    say(network)
    return network.ends[0].output(1 << 20)


def test_what_was_acknowledged_is_not_kept():
    """At the next beat, also of an end that has something to say itself."""
    network = Network()
    network.send(0, 100)
    assert network.ends[0].kept > 100
    network.send(1, 100)
    network.write(1, 1 << 20)
    network.write(0, 1 << 20)
    network.deliver(1, 1 << 30)
    network.tick(1.0)
    network.write(1, 1 << 20)
    network.deliver(0, 1 << 30)
    assert network.ends[0].kept == 0


def test_no_more_than_a_window_is_under_way():
    """However much is sent, and however often the connection is made anew while the other end passes nothing on."""
    network = Network()
    for _message in range(100):
        network.send(0, 100_000)
    network.ends[1].hold(True)
    for _connection in range(5):
        for _round in range(100):
            network.write(0, 1 << 16)
            network.deliver(1, 1 << 30)
            network.tick(0.1)
            network.write(1, 1 << 16)
            network.deliver(0, 1 << 30)
        assert sum(map(len, network.got[1])) < WINDOW + 200_000
        network.connect()
    network.settle()
    assert network.got[1] == network.sent[0]


def record(kind, number, length, data=b""):
    return control_link._HEAD.pack(kind, number, length) + data


@pytest.mark.parametrize(
    "data",
    [
        record(1, 2, 0),  # a gap
        record(1, 1, MOST_MESSAGE + 1),
        record(2, 1, 1),
        record(3, 0, 1),
        record(3, 9, 0),  # was never sent
        record(0, 1, 0),
        record(2, 1, 0) + record(1, 2, 0),  # after the end
    ],
)
def test_bytes_that_no_link_sends(data):
    with pytest.raises(LinkError):
        Network().ends[0].feed(data, 0.0, [])


def test_an_end_that_holds_refuses_more_than_the_other_end_may_send():
    """A window, and the message that overshoots it: memory stays bounded whatever the other end does."""
    end, came, length = Network().ends[0], [], 1 << 16
    end.hold(True)
    most = (WINDOW + MOST_MESSAGE + control_link._HEAD.size) // (length + control_link._HEAD.size)
    for number in range(1, most + 1):
        end.feed(record(1, number, length, bytes(length)), 0.0, came)
    assert len(came) == most
    with pytest.raises(LinkError, match="sends more than it may"):
        end.feed(record(1, most + 1, length, bytes(length)), 0.0, came)


def test_an_end_that_asks_for_what_is_not_kept():
    network = Network()
    network.send(0, 1)
    network.settle()
    for number in (0, 2):
        with pytest.raises(LinkError):
            network.ends[0].attach(number, network.now)


def test_the_finish_comes_again_to_an_end_that_holds():
    """It was not acknowledged before the connection broke."""
    network = Network()
    network.ends[1].hold(True)
    network.send(0, 1)
    network.ends[0].finish()
    for _connection in range(2):
        network.write(0, 1 << 16)
        network.ends[1].feed(bytes(network.ways[1]), network.now, network.got[1])
        network.connect()
    assert network.got[1] == network.sent[0] and network.ends[1].is_over
    network.ends[1].hold(False)
    network.connect()
    assert network.ends[0].has_arrived


def test_the_end_that_is_not_there():
    """Its connection is given up after a third of the time, and it after the whole."""
    end = ControlLink(TIMEOUT_S, 0.0)
    end.attach(0, 0.0)
    found = []
    for second in range(1, 31):
        end.tick(float(second))
        found.append((end.is_silent(second), end.is_dead(second)))
    assert found == [(False, False)] * 9 + [(True, False)] * 20 + [(True, True)]


def test_the_end_that_has_slept_itself():
    """It reads first what has come meanwhile."""
    end = ControlLink(TIMEOUT_S, 0.0)
    end.attach(0, 0.0)
    end.tick(1.0)
    end.tick(61.0)
    assert not end.is_silent(61.0) and not end.is_dead(61.0)


def test_each_beat_shows_that_the_end_is_there():
    network = Network()
    for _beat in range(40):
        network.tick(1.0)
        for at in (0, 1):
            network.write(at, 100)
            network.deliver(at, 100)
        assert not any(end.is_silent(network.now) for end in network.ends)
