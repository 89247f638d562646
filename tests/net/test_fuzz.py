# SPDX-License-Identifier: MIT
"""Anything that somebody who knows the code says to a room, and that a box says to its run.

`make fuzz FUZZ_SECONDS=3600` goes on for an hour with each; what fails names its seed.
"""

import copy
import json
import os
import random
import shutil
import tarfile
import time
from types import SimpleNamespace

import pytest

from rooming import Site
from spcomm.launch.base.wire import NONSENSE
from spcomm.launch.remote import hosts, relay, versions
from spcomm.launch.remote.box_proxy import RemoteBox, RemoteSegment
from spcomm.launch.remote.framing import FrameError
from spcomm.launch.room import room_relay

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
ROUNDS = 60
GUESTS = 30
VALUES = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**64,
    10**400,
    0.5,
    1e308,
    "",
    "x",
    "\x1b[2J",
    "é" * 300,
    [],
    {},
    [[]],
)


def seeds():
    """A few, or new ones until the time is over."""
    ends = time.monotonic() + SECONDS
    yield from range(2)
    while time.monotonic() < ends:
        yield random.SystemRandom().randrange(1 << 32)


def anything(chance, depth=0):
    kind = chance.random()
    if depth > 3 or kind < 0.7:
        return copy.deepcopy(chance.choice(VALUES))
    if kind < 0.9:
        return [anything(chance, depth + 1) for _item in range(chance.randrange(4))]
    return {chance.choice(("run", "box", "name", "x")): anything(chance, depth + 1) for _item in range(3)}


def places(message):
    """All (container, key) below a message."""
    keys = message.keys() if isinstance(message, dict) else range(len(message))
    for key in list(keys):
        yield message, key
        if isinstance(message[key], (list, dict)):
            yield from places(message[key])


def spoilt(chance, message):
    """Like a message, but for a part of it, or some."""
    message = copy.deepcopy(message)
    for _change in range(chance.choice((0, 1, 1, 2, 5))):
        found = list(places(message))
        if not found:
            break
        container, key = chance.choice(found)
        if chance.random() < 0.2:
            del container[key]
        else:
            container[key] = anything(chance)
    if chance.random() < 0.02:
        message.append(json.loads("[" * 500 + "]" * 500))
    return message


# ---- a room


def known(messages, told):
    """Tokens and tickets that this guest was told."""
    for message in messages:
        if message[0] == "members" and len(message) > 2:
            told["run"] = message[1]
        elif message[0] == "granted":
            told["ticket"] = (message[1].get("tickets") or [""])[0]
        elif message[0] == "run":
            told.update({name: message[1][name] for name in ("run", "box", "ticket")})


def says(chance, told):
    """A message that somebody might send, or nearly that."""
    about = {
        "name": chance.choice("abc"),
        "slots": 2,
        "group": chance.randrange(3),
        "groups": chance.choice(([0], [1], [0, 2], [1, 1])),
        "program": "x",
        "room": True,
    }
    way = {"run": "", "box": 0, "ticket": "", **told}
    box = {"nodes": 1, "total": 2, "ranks": chance.choice(([], [0])), "sizes": {"slots": 8}}
    of = {"link": f"{chance.getrandbits(128):032x}", "ticket": "0" * 64, "was": ["0" * 32, "0" * 64]}
    message = chance.choice(
        [
            ["hello", chance.choice(("join", "run", "look")), versions.mine(), {**about, "members": 1}, of],
            ["hello", chance.choice(("reach", "box")), versions.mine(), way, of],
            ["hello", "meet", versions.mine(), {**about, **box}, of],
            ["failed", chance.choice((1, 99, 125)), "node 0 is gone"],
            ["resume", of["link"], "0" * 64, 0],
            [
                "begin",
                {
                    "groups": [
                        {
                            "places": chance.choice(([0], [0, 1], [0, 0])),
                            "boxes": chance.choice(([0], [1], [0, 1])),
                        }
                        for _group in range(chance.choice((1, 1, 2)))
                    ],
                    "boxes": chance.choice(([], ["a"], ["a", "b"])),
                },
            ],
            ["cannot", way["run"], "it is late"],
            ["ended", way["run"], way["box"]],
            ["abandoned"],
            ["anything"],
        ]
    )
    return spoilt(chance, message)


@pytest.mark.slow
def test_what_is_said_to_a_room():
    for seed in seeds():
        chance, site = random.Random(seed), Site()
        told, guests = {}, []
        for _round in range(ROUNDS):
            if len(guests) < GUESTS:
                guests.append(site.guest())
            for guest in chance.sample(guests, len(guests) // 2 + 1):
                if chance.random() < 0.02:
                    guest.garbage(os.urandom(chance.randrange(1, 40)))
                guest.send(says(chance, told), os.urandom(chance.choice((0, 0, 10))))
            site.serve()
            for guest in list(guests):
                messages = guest.heard()
                if messages is None or chance.random() < 0.01:
                    guest.close()
                    guests.remove(guest)
                else:
                    known(messages, told)
        honest = site.guest()
        honest.frames.send(["hello", "look", versions.mine(), {}])
        site.serve()
        assert honest.heard()[0][0] == "welcome", seed
        assert all(text.isprintable() for text in site.said), seed
        for guest in (honest, *guests):
            guest.close()
        site.close()


# ---- a box


class Left(Exception):
    """The relay would end here."""


class Relay(relay.Relay):
    """One whose launcher is this test."""

    def _leave(self):
        raise Left


def test_what_a_box_says():
    messages = [
        ["hello", versions.mine()],
        ["out", 0, 1],
        ["closed", 1, 2],
        ["taken", 0, 10],
        ["trace", 0, 0],
        [
            "answer",
            1,
            {"groups": [[0, {"nodes": [[0, 77, 0, "S"]], "waits": [], "traffic": 5}]], "now_ns": 7},
        ],
        ["answer", 1, {"clock_ns": 5}],
        ["answer", 1, {"lines": [[0, "x.py:3"]], "left": [], "counts": []}],
        ["report", 0, "E"],
        ["report", 1, "X"],
        ["failed", "it is late", 1],
        ["warning", "it rains"],
        ["missing", "x", "y\nz"],
        ["ready"],
        ["started", [0, 1], [77, 78]],
        ["unstarted", [1], 0],
        ["exited", 0, 256, 3],
        ["noted", [[0, {"left": [], "counts": [[0, 1]]}]]],
        ["deadlock", 0, []],
        ["gone"],
    ]
    for seed in seeds():
        chance, sent = random.Random(seed), []
        ends = [os.pipe() for _pipe in range(4)]
        made = Relay(SimpleNamespace(send=sent.append, fileno=lambda: -1))
        made._about = {"host": "there", "tunnel": False, "box": {}, "secrets": b""}
        made._frames = SimpleNamespace(send=lambda *_frame: None)
        made._indices = {0, 1}
        made._outlets = {
            (rank, target): relay.Outlet(ends[2 * rank + target - 1][1])
            for rank in (0, 1)
            for target in (1, 2)
        }
        fork_client = hosts.RemoteForkClient.__new__(hosts.RemoteForkClient)
        box = RemoteBox("there")
        fork_client._indices, fork_client._host = [0, 1], SimpleNamespace(far=box)
        fork_client._exited = set()
        segment = box.segments[0] = RemoteSegment(2, box, 100)
        for _round in range(ROUNDS * 10):
            message, data = spoilt(chance, chance.choice(messages)), os.urandom(chance.choice((0, 5, 100)))
            if not message:
                continue
            try:
                made._heard(message, data)
            except (Left, FrameError, *NONSENSE):  # it ends with a sentence
                pass
            for _outlet, outlet in made._outlets.items():
                outlet._kept.clear()
            while sent:
                take(fork_client, segment, sent.pop(0), seed)
        for pair in ends:
            for fd in pair:
                os.close(fd)


class RoomRelay(room_relay.Relay):
    """The same of a room."""

    def _leave(self):
        raise Left


def test_what_a_box_sends_for_files(tmp_path):
    """Whatever it is: nothing is written but files of this member, and no more than the limit."""
    names = ["a", "b/c", "b", "../x", "/x", "a\0", ".git/x", "b/../../x", "d/e/f"]
    for seed in seeds():
        chance, sent = random.Random(seed), []
        top = tmp_path / str(seed) / "top"
        for one in range(ROUNDS):
            top.mkdir(parents=True)
            made = RoomRelay(SimpleNamespace(send=sent.append, fileno=lambda: -1))
            made._about = {"host": "ann", "box": {"link_timeout": 30}, "room": {"fetch": [str(top), "ann"]}}
            made._frames = SimpleNamespace(send=lambda *_frame: None)
            entries = [[name, chance.choice((0, 3, 9))] for name in chance.sample(names, 5)]
            messages = [["files", entries, 5, 20, 0], ["tar"], ["sent", [[0, "x"]]], ["sent", []], ["gone"]]
            try:
                made._heard(messages[0], b"")
                made._fetch(4, 12)
                sent_by_box = b"".join(tar_entry(chance, at, entries[at][1]) for at in made._incoming.wanted)
                while made._incoming is not None:
                    length = chance.choice((1, 512, 1024))
                    data, sent_by_box = sent_by_box[:length], sent_by_box[length:]
                    due = ["tar"] if data else ["sent", []]
                    made._heard(spoilt(chance, chance.choice([due] * 9 + messages)) or ["tar"], data)
            except (Left, *NONSENSE):
                pass
            if made._incoming is not None:
                made._incoming.give_up("it is over")
            made._loop.close()
            files = [os.path.join(path, name) for path, _folders, names in os.walk(top) for name in names]
            assert len(files) <= 5 and sum(map(os.path.getsize, files)) <= 12, (seed, one)
            assert os.listdir(top) in (["ann"], []) and os.listdir(top.parent) == ["top"], (seed, one)
            shutil.rmtree(top)
        assert any(message[0] == "fetched" and message[2] for message in sent), seed


def tar_entry(chance, position, size):
    """Return a file in a tar, which is often another than was listed, or no file."""
    info = tarfile.TarInfo(chance.choice([str(position)] * 9 + ["../x", "/x", "9"]))
    info.size = chance.choice([size] * 9 + [0, 600])
    info.type = chance.choice(
        [tarfile.REGTYPE] * 20 + [tarfile.SYMTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_SPARSE]
    )
    info.linkname = "../x"
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    if chance.random() < 0.05:
        head[chance.randrange(512)] ^= 1 << chance.randrange(8)
    return bytes(head) + os.urandom(info.size) + bytes(-info.size % 512)


def take(fork_client, segment, message, seed):
    """As the supervisor does, up to where it knows what to make of it."""
    try:
        fork_client._check(*message)
        if message[0] == "noted":
            fork_client.far.noted(message[1])
            segment.left()
            segment.counts()
        elif message[0] == "answer" and isinstance(message[-1], dict):
            fork_client.far.answer(message[1], message[-1])
            for rank in (0, 1):
                segment.state(rank), segment.wait(rank), segment.process(rank), segment.vain(rank)
        elif message[0] == "trace":
            segment.add_trace(*message[1:])
        elif message[0] in ("failed", "warning"):
            assert message[1].isprintable(), seed
    except NONSENSE:
        pass  # "the box there sent a malformed message"
