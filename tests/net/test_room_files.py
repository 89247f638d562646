# SPDX-License-Identifier: MIT
"""Files that nodes of a room write: listed at the end, and brought back by `--fetch`, whatever a member sends."""

import contextlib
import errno
import os
import signal
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaks import wait_for_end
from processes import WATCHDOG_S
from spcomm.launch.base.usage import UsageError
from spcomm.launch.room import fetch, folder, room_relay

MUCH = 1 << 40
MADE = []  # by `incoming`


def tree(top):
    """All that is below a folder: {name: content, or None for what is no file}."""
    return {
        str(path.relative_to(top)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in Path(top).rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def incoming(top, *entries, files=100, size=MUCH, count=None):
    MADE.append(fetch.Incoming(str(top), "ann", list(entries), count or len(entries), files, size))
    return MADE[-1]


def entry(position, content=b"", size=None, type=tarfile.REGTYPE):
    """Return a file in a tar, as a box makes it, or another entry."""
    info = tarfile.TarInfo(str(position))
    info.size, info.type = len(content) if size is None else size, type
    return info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


END = bytes(1024)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    while MADE:
        MADE.pop().give_up("the test is over")


def send(to, *contents):
    """Send these (position, content) pairs, and the end."""
    to.take("tar", [], b"".join(entry(*one) for one in contents) + END)
    to.take("sent", [[]], b"")


@pytest.fixture
def top(tmp_path):
    """The folder of --fetch, beside which nothing may be written."""
    made = tmp_path / "around" / "fetched"
    made.mkdir(parents=True)
    yield made
    assert os.listdir(made.parent) == ["fetched"]


# ---- what a member may name

NAMES = [
    ("/etc/passwd", "absolute"),
    ("../x", "leads out"),
    ("a/../../x", "leads out"),
    ("a//b", "leads out"),
    ("./x", "leads out"),
    ("a/", "leads out"),
    ("..", "leads out"),
    ("a\nspcomm: all is well", "cannot be printed"),
    ("a\0b", "cannot be printed"),
    ("a\x1b[2J", "cannot be printed"),
    ("gnp.\u202eexe", "cannot be printed"),
    ("a\u200bb", "cannot be printed"),
    ("a\udcffb", "cannot be printed"),
    ("x" * 2000, "too long"),
    ("é" * 600, "too long"),
    ("a/" * 40 + "b", "too long"),
    (".git/config", "never sent"),
    ("a/.GIT/hooks/post-checkout", "never sent"),
    (".ſsh/authorized_keys", "never sent"),
]


@pytest.mark.parametrize(("name", "why"), NAMES, ids=range(len(NAMES)))
def test_names_that_are_refused(top, name, why):
    found = incoming(top, (name, 3), ("good.txt", 3))
    assert found.wanted == [1] and why in found.left[0][1]
    send(found, (1, b"abc"))
    assert found.is_over and tree(top) == {"ann/good.txt": b"abc"}
    names, count, size, left, missing, trouble = found.report()
    assert (names, count, size, missing, trouble) == (["good.txt"], 1, 3, 1, "")
    assert left[0][0].isprintable() and len(left[0][0]) <= 60


@pytest.mark.parametrize(
    "name", ["ä/ö.txt", "a b", ".hidden", "-rf", "a/b/c/d", "...", "a\\b", "heat.png~", "日本"]
)
def test_names_that_are_taken(top, name):
    found = incoming(top, (name, 1))
    send(found, (0, b"x"))
    assert tree(top) == {f"ann/{name}": b"x"}


def test_names_of_members_as_names_of_folders():
    names = ["ann", "Ann", "../x", "/", "", "a/b", "a_b", ".git", "x\x1b[2J", "é", "y" * 64]
    found = fetch.places(names)
    assert len({place.casefold() for place in found.values()}) == len(names)
    assert found["ann"] == "ann" and found["Ann"] == "Ann-2" and found["../x"] == "_x" and found["é"] == "é"
    for place in found.values():
        assert not fetch.refusal(place) and "/" not in place and len(place) < 50


@pytest.mark.parametrize(
    "wrong",
    [
        ([["a", -1]], 1, 1, 0),
        ([["a", 1 << 63]], 1, 1, 0),
        ([["a", True]], 1, 1, 0),
        ([["a", 1.0]], 1, 1, 0),
        ([["a", "1"]], 1, 1, 0),
        ([["", 1]], 1, 1, 0),
        ([[5, 1]], 1, 1, 0),
        ([["a"]], 1, 1, 0),
        ([["a", 1], ["b", 1]], 1, 1, 0),
        ([["a", 1]], None, 1, 0),
        ([["a", 1]], 1, -1, 0),
        ([["a", 1]], 1, 1, "x"),
        ([["a", 1]] * (fetch.MOST_FILES + 1), MUCH, 1, 0),
        (5, 1, 1, 0),
    ],
    ids=range(14),
)
def test_lists_that_no_box_makes(wrong):
    with pytest.raises((TypeError, ValueError)):
        fetch.check_list(*wrong)
    fetch.check_list([["a", 1]], 7, 9, 0)


# ---- what it may send


def other(type, linkname=""):
    """Return an entry that is no regular file, and has the first name."""
    info = tarfile.TarInfo("0")
    info.type, info.linkname = type, linkname
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "sent",
    [
        b"x" * 1024,
        entry(1, b"abc") + entry(0, b"abc"),
        entry(0, b"abc") + entry(0, b"abc"),
        entry(2, b"abc"),
        entry("a", b"abc"),
        entry("../0", b"abc"),
        entry("/0", b"abc"),
        entry(0, b"ab"),
        entry(0, b"abcd"),
        entry(0, b"", MUCH),
        entry(0, b"abc", type=tarfile.GNUTYPE_SPARSE),
        entry(0, b"path=../../x\n", type=tarfile.XHDTYPE),
        entry(0, b"", MUCH, type=tarfile.XHDTYPE),
        entry(0, b"", MUCH, type=tarfile.GNUTYPE_LONGNAME),
        other(tarfile.SYMTYPE, "/etc/passwd"),
        other(tarfile.LNKTYPE, "../../x"),
        other(tarfile.CHRTYPE),
        other(tarfile.FIFOTYPE),
        other(tarfile.DIRTYPE),
        b"",
    ],
    ids=range(20),
)
def test_tars_that_no_box_makes(top, sent):
    """They end all, and what was complete before stays."""
    found = incoming(top, ("a", 3), ("b", 3))
    for piece in (sent, END):
        if piece and not found.is_over:
            found.take("tar", [], piece)
    if not found.is_over:
        found.take("sent", [[]], b"")
    assert found.is_over and found.report()[5] == "it sent a malformed message"
    assert tree(top) in ({}, {"ann/a": b"abc"}, {"ann/b": b"abc"})


@pytest.mark.parametrize("type", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_entries_that_are_no_files(top, type):
    found = incoming(top, ("a", 0), ("b", 0))
    found.take("tar", [], other(type, "b") + END)
    found.take("sent", [[]], b"")
    assert found.trouble == "it sent a malformed message" and os.listdir(top) == []


@pytest.mark.parametrize(
    ("verb", "rest", "data"),
    [
        ("tar", [], b""),
        ("tar", [], bytes(1024 + 2 * 1024 + 1)),
        ("sent", [], b""),
        ("sent", [5], b""),
        ("sent", [[[2, "x"]]], b""),
        ("sent", [[["a", "x"]]], b""),
        ("sent", [[[[], "x"]]], b""),
        ("sent", [[[0]]], b""),
    ],
    ids=range(8),
)
def test_messages_that_are_not_due(top, verb, rest, data):
    found = incoming(top, ("a", 3), ("b", 3))
    with pytest.raises((IndexError, TypeError, ValueError)):
        found.take(verb, rest, data)
    found.give_up("x")
    with pytest.raises(ValueError):
        found.take("sent", [[]], b"")
    assert tree(top) == {}


def test_a_folder_has_its_name_once_it_is_complete(top):
    found = incoming(top, ("a", 3), ("b", 3))
    found.take("tar", [], entry(0, b"abc") + entry(1, b"def")[:514])
    assert [name for name in os.listdir(top) if not name.endswith(".part")] == []
    found.give_up("no more")
    assert tree(top) == {"ann/a": b"abc"} and os.listdir(top) == ["ann"]
    assert found.report() == (["a"], 1, 3, [], 0, "no more")


def test_files_are_no_programs(top):
    found = incoming(top, ("a.sh", 1))
    info = tarfile.TarInfo("0")
    info.mode, info.size, info.uid = 0o6777, 1, 1234
    found.take("tar", [], info.tobuf() + b"x".ljust(512, b"\0") + END)
    found.take("sent", [[]], b"")
    state = os.stat(top / "ann" / "a.sh")
    assert not state.st_mode & 0o7111 and state.st_uid == os.getuid()


@pytest.mark.parametrize("there", ["file", "link", "dangling", "folder"])
def test_what_is_there_is_not_overwritten(top, there):
    """The folder of the launcher was empty; somebody may have been quick."""
    taken = top / "ann"
    (top / "other").mkdir()
    (top / "other" / "b").write_text("as before")
    if there == "file":
        taken.write_text("as before")
    elif there == "folder":
        taken.mkdir()
        (taken / "a").write_text("as before")
    else:
        taken.symlink_to("other" if there == "link" else "nothing")
    before = tree(top)
    found = incoming(top, ("a", 3), ("b", 3))
    send(found, (0, b"abc"), (1, b"def"))
    assert found.report()[:3] == ([], 0, 0) and found.trouble.startswith("ann cannot be stored: ")
    assert tree(top) == before


def test_one_name_twice(top):
    found = incoming(top, ("a", 1), ("a", 1), ("a/b", 1), ("c/d", 1), ("c", 1))
    send(found, *((position, b"%d" % position) for position in range(5)))
    assert tree(top) == {"ann/a": b"0", "ann/c/d": b"3"} and len(found.left) == 3 and not found.trouble
    assert found.left[0] == ("a", "another file has that name here")
    assert found.left[1] == ("a/b", "a file or a link here has the name of its folder")


def test_a_name_that_no_file_system_takes(top):
    found = incoming(top, ("x" * 300, 1), ("a", 1))
    send(found, (0, b"x"), (1, b"y"))
    assert tree(top) == {"ann/a": b"y"} and found.left[0][1] == "File name too long" and not found.trouble


def test_a_file_is_left_out_for_one_reason(top):
    found = incoming(top, ("x" * 300, 1), ("a", 1))
    found.take("tar", [], entry(0, b"x") + entry(1, b"y") + END)
    found.take("sent", [[[0, "it has become shorter"], [1, "it has become shorter"]]], b"")
    assert [why for _name, why in found.left] == [
        "File name too long",
        "cannot be read: it has become shorter",
    ]
    assert tree(top) == {} and found.report()[4] == 2 and not found.trouble


def test_limits(top):
    found = incoming(top, ("a", 60), ("b", 60), ("c", 40), ("d", 0), ("e", 0), files=3, size=100, count=9)
    assert found.wanted == [0, 2, 3] and [name for name, _why in found.left] == ["b", "e"]
    assert "beyond --fetch-limit" in found.left[0][1]
    assert found.report()[4] == 2 + 4  # those that were not listed, too
    assert incoming(top, ("a", 1), size=0).wanted == []


def test_more_files_than_may_come(top):
    found = incoming(top, ("a", 1), ("b", 1), files=1)
    assert found.wanted == [0] and "10000 files" in found.left[0][1] and "limit" not in found.left[0][1]


def test_a_full_disk(top, monkeypatch):
    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tarfile.TarFile, "extract", full)
    found = incoming(top, ("a", 3), ("b", 3))
    send_all(found, entry(0, b"abc") + entry(1, b"def") + END)
    assert found.is_over and found.report()[5] == "a cannot be stored: No space left on device"
    assert tree(top) == {}


def send_all(to, sent):
    """Send as much of a tar as is taken, byte by byte, and its end."""
    for at in range(len(sent)):
        if not to.is_over:
            to.take("tar", [], sent[at : at + 1])
    if not to.is_over:
        to.take("sent", [[]], b"")


def test_pieces_of_one_byte(top):
    found = incoming(top, ("a", 3), ("b/c", 600), ("d", 0))
    send_all(found, entry(0, b"abc") + entry(1, b"x" * 600) + entry(2) + END)
    assert tree(top) == {"ann/a": b"abc", "ann/b/c": b"x" * 600, "ann/d": b""} and not found.trouble


# ---- the box


@pytest.fixture
def box(tmp_path):
    """The folder of a run, as it was unpacked."""
    made = tmp_path / "box"
    (made / "data").mkdir(parents=True)
    for name in ("program.py", "data/x.txt", "data/y.txt", "gone.txt"):
        (made / name).write_text("as sent")
    return made


def test_what_is_new_or_changed(box):
    unpacked = fetch.Unpacked(str(box))
    assert unpacked.changed() == ([], 0, 0, 0)
    (box / "data" / "x.txt").write_text("changed")  # as long as before
    (box / "data" / "y.txt").write_text("as sent")  # written again
    os.utime(box / "program.py")
    (box / "gone.txt").unlink()
    (box / "out").mkdir()
    (box / "out" / "new.txt").write_text("12345")
    (box / "__pycache__").mkdir()
    (box / "__pycache__" / "program.pyc").write_text("x")
    (box / "link").symlink_to("/etc/passwd")
    (box / "out" / "folder").symlink_to("/etc")
    os.mkfifo(box / "fifo")
    assert unpacked.changed() == ([("data/x.txt", 7), ("out/new.txt", 5)], 2, 12, 3)


@pytest.mark.parametrize("is_link", [True, False])
def test_a_folder_that_was_exchanged_lists_nothing(tmp_path, is_link):
    """A link in its place would have files of the member listed, and sent, that no node wrote."""
    mine, elsewhere = tmp_path / "mine", tmp_path / "elsewhere"
    mine.mkdir()
    elsewhere.mkdir()
    (elsewhere / "private").write_text("x")
    unpacked = fetch.Unpacked(str(mine))
    (mine / "new").write_text("x")
    assert unpacked.changed() == ([("new", 1)], 1, 1, 0)
    mine.rename(tmp_path / "before")
    if is_link:
        mine.symlink_to(elsewhere)
    assert unpacked.changed() == ([], 0, 0, 0)
    folder.remove(str(mine))
    assert not os.path.lexists(mine) and (elsewhere / "private").read_text() == "x"


def test_a_list_is_no_longer_than_a_message(box, monkeypatch):
    monkeypatch.setattr(fetch, "_LISTED_CHARACTERS", 30)
    unpacked = fetch.Unpacked(str(box))
    for number in range(10):
        (box / f"file{number:06}").write_text("x")
    entries, count, size, _others = unpacked.changed()
    assert len(entries) == 3 and (count, size) == (10, 10)
    monkeypatch.setattr(fetch, "_SEEN_MOST", 5)
    assert unpacked.changed()[1] < 10


def carry(outgoing, to):
    """Hand all messages on."""
    outgoing.choose(to.wanted)
    while (message := outgoing.next()) is not None:
        (verb, *rest), data = message
        to.take(verb, rest, data)
    assert outgoing.is_over


FILES = st.dictionaries(
    st.from_regex(r"\A[abcé]{1,2}(/[xy.]z){0,2}\Z"), st.binary(max_size=50), min_size=1, max_size=8
)


@given(FILES, st.integers(1, 60))
def test_files_arrive_as_they_were(tmp_path_factory, files, piece):
    """Or, if one has the name of another's folder, are missing with a reason."""
    tmp_path = tmp_path_factory.mktemp("both")
    (tmp_path / "box").mkdir()
    (tmp_path / "top").mkdir()
    unpacked = fetch.Unpacked(str(tmp_path / "box"))
    for name, content in files.items():
        path = tmp_path / "box" / name
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    entries, *_counts = unpacked.changed()
    to = incoming(tmp_path / "top", *entries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch, "_PIECE", piece)
        carry(fetch.Outgoing(str(tmp_path / "box"), entries), to)
    assert to.is_over and not to.left
    assert tree(tmp_path / "top") == {
        f"ann/{name}": content for name, content in tree(tmp_path / "box").items()
    }


def test_files_that_cannot_be_read(box, top):
    unpacked = fetch.Unpacked(str(box))
    for name in "abcde":
        (box / name).write_text("12345")
    entries, *_counts = unpacked.changed()
    (box / "a").unlink()
    os.mkfifo(box / "a")  # nobody waits for its writer
    (box / "b").unlink()
    (box / "b").symlink_to("/etc/passwd")
    (box / "c").write_text("123")
    (box / "d").unlink()
    to = incoming(top, *entries)
    carry(fetch.Outgoing(str(box), entries), to)
    assert tree(top) == {"ann/e": b"12345"} and not to.trouble
    assert [name for name, _why in to.left] == ["a", "b", "c", "d"] and "shorter" in to.left[2][1]


def test_a_file_that_becomes_shorter_while_it_is_sent(box, top, monkeypatch):
    monkeypatch.setattr(fetch, "_PIECE", 2)
    unpacked = fetch.Unpacked(str(box))
    for name in "abc":
        (box / name).write_text("12345")
    entries, *_counts = unpacked.changed()
    to, outgoing = incoming(top, *entries), fetch.Outgoing(str(box), entries)
    outgoing.choose(to.wanted)
    while (message := outgoing.next()) is not None:
        (verb, *rest), data = message
        to.take(verb, rest, data)
        os.truncate(box / "b", 3)
    assert tree(top) == {"ann/a": b"12345", "ann/c": b"12345"} and not to.trouble
    assert to.left == [("b", "cannot be read: it has become shorter")]


@pytest.mark.parametrize("positions", [[1], [-1], ["x"], [None], 5])
def test_files_that_no_list_has(box, positions):
    with pytest.raises((TypeError, ValueError)):
        fetch.Outgoing(str(box), [("program.py", 7)]).choose(positions)


# ---- the relay, whose box is this test


class Left(Exception):
    """The relay would end here."""


class Relay(room_relay.Relay):
    def __init__(self, top):
        self.said = []
        super().__init__(SimpleNamespace(send=self.said.append, fileno=lambda: -1))
        self._about = {"host": "ann", "box": {"link_timeout": 30.0}, "room": {"fetch": [str(top), "ann"]}}
        self.sent = []
        self._frames = SimpleNamespace(send=lambda *frame: self.sent.append(frame))

    def _leave(self):
        raise Left

    def hear(self, *messages):
        for message in messages:
            data = message.pop() if isinstance(message[-1], bytes) else b""
            self._heard(message, data)


@pytest.fixture
def relay(top):
    made = Relay(top)
    made.hear(["files", [["a", 3], ["b", 3]], 2, 6, 0])
    assert made.said.pop() == ("files", ["a", "b"], 2, [3, 3], 0)
    made._order(("fetch", 2, 6), [])
    assert made.sent == [(["fetch", [0, 1]],)]
    yield made
    made._loop.close()


def test_a_relay_reports_what_has_come(relay, top):
    relay.hear(["tar", entry(0, b"abc")], ["tar", entry(1, b"def") + END], ["sent", []])
    assert relay.said == [("fetched", ["a", "b"], 2, 6, [], 0, "")]
    assert tree(top) == {"ann/a": b"abc", "ann/b": b"def"}


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda relay: relay.hear(["tar", bytes(4096)]), "malformed"),
        (lambda relay: relay.hear(["tar"]), "malformed"),
        (lambda relay: relay.hear(["sent"]), "malformed"),
        (lambda relay: relay.hear(["gone"]), "ended before"),
        (lambda relay: relay._ended(), "connection"),
        (lambda relay: relay._order(("stop_fetching",), []), "interrupted"),
        (lambda relay: relay._see_progress(0), "too slowly"),
    ],
    ids=["too much", "nothing", "nonsense", "gone", "killed", "Ctrl-C", "slow"],
)
def test_a_relay_ends_it_with_a_sentence(relay, top, call, why):
    relay.hear(["tar", entry(0, b"abc") + entry(1, b"def")[:513]])
    with pytest.raises(Left):
        call(relay)
    (found,) = relay.said
    assert "ssh" not in found[-1]
    assert found[:3] == ("fetched", ["a"], 1) and why in found[-1]
    assert tree(top) == {"ann/a": b"abc"}


def test_a_member_that_goes_on_is_waited_for(relay):
    relay._see_progress(-MUCH)
    assert relay._loop.waits("progress") and not relay.said
    relay._lose_patience()  # files come, so its nodes have ended
    relay._incoming.give_up("the test is over")


@pytest.mark.parametrize(
    "messages",
    [[["tar", b"x"]], [["sent", []]], [["files", [], 0, 0, 0]] * 2, [["files", [["a", -1]], 1, 1, 0]]],
)
def test_files_that_nobody_has_asked_for(top, messages):
    made = Relay(top)
    with pytest.raises(ValueError):
        made.hear(*(list(message) for message in messages))
    made._loop.close()


# ---- the launcher


class Client:
    """A relay of a member."""

    def __init__(self, name):
        self.host = SimpleNamespace(name=name)
        self.said = []

    def fetch(self, *granted):
        self.said.append(granted)

    def stop_fetching(self):
        self.said.append("stop")


def test_the_limit_is_that_of_all_members(tmp_path):
    files = fetch.RoomFiles(str(tmp_path / "new"), 100)
    clients = [Client(name) for name in ("ann", "bob", "cyd", "dan")]
    files.expect([client.host.name for client in clients])
    for client, sizes in zip(clients[:3], ([40, 101, 30], [25, 25], [10]), strict=True):
        files.listed(client, ["a"], 2, sizes, 0)
    assert [client.said for client in clients] == [[(2, 70)], [(1, 25)], [(0, 0)], []]
    files.fetched(clients[0], ["a"], 1, 20, [("b", "x")], 1, "")
    files.listed(clients[3], ["a"], 2, [60, 50], 0)
    assert clients[3].said == [(1, 50)]
    files.stop()
    assert [client.said[-1] == "stop" for client in clients] == [False, True, True, True]
    files.close()
    assert os.listdir(tmp_path / "new") == [folder.FETCHED]


def test_files_beyond_the_number_are_not_beyond_the_size(tmp_path, top, monkeypatch):
    """The grant of the first member leaves the others their reason."""
    monkeypatch.setattr(fetch, "MOST_FILES", 2)
    files = fetch.RoomFiles(str(tmp_path / "new"), 100)
    clients = [Client(name) for name in ("ann", "bob")]
    files.expect(["ann", "bob"])
    files.listed(clients[0], ["a"], 3, [10, 10, 10], 0)
    assert "fetching 2 files, 20, of ann" in files.progress()
    files.listed(clients[1], ["a"], 1, [10], 0)
    assert clients[0].said == [(2, 100)] and clients[1].said == [(0, 80)]
    for granted, left in (((2, 100), ["c"]), ((0, 80), ["a", "b", "c"])):
        found = incoming(top, ("a", 10), ("b", 10), ("c", 10), files=granted[0], size=granted[1])
        assert found.left == [(name, "beyond the 2 files of all members") for name in left]


def test_sentences_are_bounded(tmp_path):
    for fetched in (False, True):
        files = fetch.RoomFiles(str(tmp_path / "new") if fetched else None, None)
        clients = [Client(f"member{number}\x1b") for number in range(64)]
        files.expect([client.host.name for client in clients])
        for client in clients:
            files.listed(client, ["x" * 60] * 5, 10**18, [], 10**18)
            if fetched:
                files.fetched(client, ["x" * 60] * 5, 9, 9, [("y" * 60, "z" * 60)] * 5, 9, "t" * 200)
        text, is_missing = files.report(True)
        assert is_missing == fetched and len(text) < 3000 and text.count("\n") == 1 + fetched
        assert text.replace("\n", "").isprintable()
        files.close()


def test_a_member_without_a_list_is_missed(tmp_path):
    files = fetch.RoomFiles(str(tmp_path / "new"), None)
    files.expect(["ann"])
    assert files.report(True) == (
        "spcomm: files of ann not fetched: it listed none (exit code 125)\n",
        True,
    )
    files.listed(Client("ann"), [], 0, [], 0)
    assert files.report(True) == ("", False)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: (path.mkdir(), (path / "x").write_text("")), "is not empty"),
        (lambda path: path.write_text(""), "is a file"),
    ],
    ids=["full", "file"],
)
def test_folders_that_are_refused(tmp_path, make, why):
    make(tmp_path / "taken")
    with pytest.raises(UsageError, match=why):
        fetch.RoomFiles(str(tmp_path / "taken"), None)


# ---- rooms

WRITES = """
    import os, sys, spcomm
    comm = spcomm.startup()
    with open("out.txt", "a") as file:
        file.write(f"{comm.rank}\\n")
    if comm.rank == 1:
        os.makedirs("deep", exist_ok=True)
        with open("deep/er.bin", "wb") as file:
            file.write(b"x" * 3_000_000)
        with open("data.txt", "a") as file:
            file.write(" and more")
        os.symlink("/etc/passwd", "link")
    comm.barrier()
    sys.exit(int((sys.argv[1:] or ["0"])[0]) * (comm.rank == 0))
"""


@pytest.fixture
def two(room):
    """A room with two members, and a program."""
    room.serve("--room")
    room.join("ann")
    room.join("bob")
    room.script(WRITES)
    (room.folder / "data.txt").write_text("as sent")
    (room.folder / "other.txt").write_text("as sent")
    return room


def test_files_are_listed_or_fetched(two):
    result = two.run("-n", 2, "program.py")
    assert result.code == 0 and result.err == (
        "spcomm: 4 files that nodes wrote are gone: out.txt (ann), data.txt (bob), out.txt (bob), deep/er.bin (bob); "
        "spcomm run --fetch FOLDER brings them\n"
    ), result
    before = tree(two.folder)
    result = two.run("-n", 2, "--fetch", "back", "program.py")
    assert result.code == 0 and result.err == (
        "spcomm: 4 files that nodes wrote are in back: ann/out.txt, bob/data.txt, bob/out.txt, bob/deep/er.bin; "
        "without 1 link or device\n"
    ), result
    back = tree(two.folder / "back")
    assert b"spcomm run --fetch" in back.pop(".spcomm-fetched")
    assert back == {
        "ann/out.txt": b"0\n",
        "bob/out.txt": b"1\n",
        "bob/data.txt": b"as sent and more",
        "bob/deep/er.bin": b"x" * 3_000_000,
    }
    assert {name: content for name, content in tree(two.folder).items() if "back/" not in name} == before
    result = two.run("-n", 2, "--fetch", "back", "program.py")
    assert result.code == 125 and result.last.startswith("spcomm run: --fetch back: is not empty"), result
    two.close_room()


@pytest.mark.slow
def test_a_run_that_fails_keeps_its_code(two):
    result = two.run("-n", 2, "--fetch", "back", "program.py", 7)
    assert result.code == 7 and "node 0 ended with exit code 7" in result.last, result
    assert tree(two.folder / "back")["ann/out.txt"] == b"0\n"
    result = two.run("-n", 2, "--fetch", "less", "--fetch-limit", "1M", "program.py")
    assert result.code == 125 and result.last == (
        "spcomm: 1 file not fetched: deep/er.bin (bob: 2.9M, beyond --fetch-limit) (exit code 125)"
    ), result
    less = {".spcomm-fetched", "ann/out.txt", "bob/out.txt", "bob/data.txt"}
    assert set(tree(two.folder / "less")) == less
    result = two.run("-n", 1, "--fetch", "nothing", "sh", "-c", "true")
    assert result.code == 0 and not result.err and not (two.folder / "nothing").exists(), result
    two.close_room()


MUCH_WRITTEN = """
    import spcomm
    comm = spcomm.startup()
    with open("much.bin", "wb") as file:
        file.truncate(8 << 30)
"""


def coming(room):
    """A run that fetches more than there is time for, once it has begun to."""
    program = room.script(MUCH_WRITTEN, "much.py")
    run = room.start("run", "--room", room.place, "-n", 1, "--fetch", "back", "--fetch-limit", "9G", program)
    deadline = time.monotonic() + WATCHDOG_S
    while not tree_names(room.folder / "back"):
        assert run.poll() is None and time.monotonic() < deadline, room.finish(run)
    return run


def tree_names(top):
    return [name for _path, _folders, names in os.walk(top) for name in names]


@pytest.mark.linux("reads /proc")
@pytest.mark.parametrize("killed", ["Ctrl-C", "box", "launcher"])
@pytest.mark.slow
def test_files_that_come_without_end(two, killed):
    run = coming(two)
    if killed == "Ctrl-C":
        run.send_signal(signal.SIGINT)
    elif killed == "launcher":
        run.kill()
    else:
        (box,) = [pid for pid in two.alive() if Path(f"/proc/{pid}/comm").read_text().strip() == "spcomm box"]
        os.kill(box, signal.SIGKILL)
    relays = [pid for pid, command in two.alive().items() if "room_relay" in command]
    result = two.finish(run)
    if killed == "Ctrl-C":
        assert result.code == 130 and result.last.endswith("(exit code 130); the nodes had ended"), result
        assert "1 file of ann not fetched: it was interrupted" in result.err, result
    elif killed == "box":
        assert result.code == 125 and result.last.startswith(
            "spcomm: 1 file of ann not fetched: the connection"
        ), result
    assert all(wait_for_end(pid, time.monotonic() + WATCHDOG_S) for pid in relays)
    assert tree_names(two.folder / "back") == []
    two.close_room()
