# SPDX-License-Identifier: MIT
"""From what nodes have recorded to the file: spans, curves, what is missing, and where it cannot be written."""

import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import zlib

import pytest

from recorded import MOST, Group, call, event, packed
from spcomm._core.traces import CALL, CORE, ENTER, LEAVE, RECEIVE, RETURN, SEND, START
from spcomm.trace import files, writing
from spcomm.trace.reader import read


def written(folder, group, warn=None):
    path = folder / "t.json"
    assert writing.write(str(path), group, "heat.py", "0.1.0", warn) is None
    return path


def curve(path, name):
    rows = json.loads(path.read_text())["traceEvents"]
    return [(row["ts"], row["args"]["number"]) for row in rows if row["name"] == name]


WAITS = [event(CORE, 30, bytes=6000), *call(30, 40)]
# Events that nodes record, and how many of them compute since when.
COMPUTING = {
    "ended": (Group(call(0, 10) + call(20, 25), call(0, 30) + call(90, 100)),
              [(0, 0), (10, 1), (20, 0), (30, 1), (90, 0)]),
    "begin overwritten": (Group(call(0, 10) + call(50, 60), call(40, 45) + call(50, 60), lost=[0, 7]),
                          [(0, 0), (10, 1), (45, 2), (50, 0)]),
    "first call late": (Group(call(0, 10), call(40, 45)), [(0, 1), (40, 0)]),
    "started late": (Group([event(START, 0), *call(0, 10)], [event(START, 30), *call(40, 45)]),
                     [(0, 0), (30, 1), (40, 0)]),
    "without a core": (Group(call(0, 10) + WAITS, [event(CORE, 5, bytes=9000), *call(5, 20)]),
                       [(0, 0), (10, 1), (24, 0)]),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPUTING)
def test_how_many_nodes_compute(tmp_path, case):
    group, expected = COMPUTING[case]
    path = written(tmp_path, group)
    assert curve(path, "nodes computing") == expected == read(path).running(), "the page shows the same"


def test_waiting_for_a_core_ends_where_it_was_looked_up(tmp_path):
    """Node 0 lacks a core for the last 6 of 30 µs in which it computes, and for all that is before its begin."""
    first, second = read(written(tmp_path, COMPUTING["without a core"][0])).firsts()
    assert (first.queued(), first.computing()) == ([(24, 30)], [(10, 24)])
    assert (second.queued(), second.computing()) == ([(0, 5)], [])
    assert read(written(tmp_path, COMPUTING["started late"][0])).tracks[1].starting == 30


def test_messages_come_back_to_none(tmp_path):
    """The first was received, where that was overwritten; the second never was; the third was."""
    sent = [event(SEND, at, peer=1, number=number) for number, at in ((1, 10), (2, 60), (3, 70))]
    group = Group([*sent, *call(90, 100)], [event(RECEIVE, 80, peer=0, number=3), *call(50, 81)], lost=[0, 3])
    assert curve(written(tmp_path, group), "messages under way") == [(50, 1), (60, 2), (70, 1), (90, 0)]


def test_messages_that_were_received_before_their_sender_is_read(tmp_path):
    group = Group([event(RECEIVE, 20, peer=1, number=1)], [event(SEND, 5, peer=0, number=1)])
    assert curve(written(tmp_path, group), "messages under way") == [(0, 1), (15, 0)]


def test_regions_end_by_name(tmp_path):
    """Not all of them are nested; of `lost` the begin was overwritten."""
    events = [
        event(ENTER, 0, "a"), event(ENTER, 10, "b"), event(LEAVE, 15, "lost"),
        event(LEAVE, 20, "a"), event(LEAVE, 30, "b"), event(ENTER, 40, "c"), event(ENTER, 41, "c"),
        event(LEAVE, 50, "c"), event(LEAVE, 60, "c"),
    ]  # fmt: skip
    [track] = read(written(tmp_path, Group(events))).tracks
    found = [(region.name, region.begin, region.end) for region in track.regions]
    assert found == [("a", 0, 20), ("b", 10, 30), ("c", 40, 60), ("c", 41, 50)]


def test_calls_that_have_not_returned_and_returns_without_a_call(tmp_path):
    events = [event(RETURN, 0), event(CALL, 5, "send"), *call(6, 8, "recv"), event(SEND, 9, peer=0, number=1)]
    [track] = read(written(tmp_path, Group(events))).tracks
    assert [(c.name, c.begin, c.end, c.open) for c in track.calls] == [
        ("send", 0, 4, True),
        ("recv", 1, 3, False),
    ]


def test_many_rows_are_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_PIECE", 3)
    nodes = [call(0, 10) + call(20, 30) for _rank in range(5)]
    whole = read(written(tmp_path, Group(*nodes)))
    assert [len(track.calls) for track in whole.tracks] == [2] * 5


# Events of boxes elsewhere


def wrong_pieces():
    good = event(CALL, 5, "recv")
    yield "no bytes", "text"
    yield "not compressed", b"hello"
    yield "cut off", packed([good])[:-3]
    yield "no JSON", zlib.compress(b"[[1,")
    yield "no list", packed({"a": 1})
    yield "an event that is none", packed([7])
    yield "too few fields", packed([list(good)[:-1]])
    for field, value in {
        "time_ns": "soon", "kind": 0, "context": -1, "peer": 2, "tag": 2**40, "what": None, "line": 3,
        "thread": 1.5, "bytes": True, "number": [],
    }.items():  # fmt: skip
        yield field, packed([good._replace(**{"kind": SEND, field: value})])
    yield "too many", packed([good] * (MOST + 1))


@pytest.mark.parametrize(("name", "piece"), [pytest.param(*one, id=one[0]) for one in wrong_pieces()])
def test_a_part_that_makes_no_sense(tmp_path, name, piece):
    group = Group(call(0, 10), call(0, 20))
    group.segments[1].add_trace(1, 0, piece)
    said = []
    trace = read(written(tmp_path, group, said.append))
    assert len(said) == 1 and re.fullmatch(
        r"box 1 \(host host1\) sent a malformed trace \(.+\): the part of node 1 is missing in .*t\.json",
        said[0], re.DOTALL,
    ), said  # fmt: skip
    assert "\n" not in said[0]
    assert [len(track.calls) for track in trace.tracks] == [1, 0], "the rest is there"


NOTHING = packed([])
NOBODIES = [
    (), (1,), (2, 0, NOTHING), (-1, 0, NOTHING), (1, "0", NOTHING), (True, 0, NOTHING), (1, -1, NOTHING),
]  # fmt: skip


@pytest.mark.parametrize("words", NOBODIES)
def test_a_piece_of_nobody(tmp_path, words):
    group = Group(call(0, 10), call(0, 20))
    group.segments[1].add_trace(*words)
    said = []
    written(tmp_path, group, said.append)
    assert len(said) == 1 and "malformed" in said[0]


def test_a_box_that_was_lost(tmp_path):
    """Its connection ended before all had come."""
    group = Group(call(0, 10), call(0, 20), call(0, 30))
    group.segments[1].known = {}
    group.segments[2].traces = None
    said = []
    trace = read(written(tmp_path, group, said.append))
    assert said == [
        f"box {box} (host host{box}) did not send all of its trace before its connection ended: "
        f"the part of node {box} is missing in {tmp_path / 't.json'}" for box in (1, 2)
    ]  # fmt: skip
    assert [len(track.calls) for track in trace.tracks] == [1, 0, 0]


def test_clocks_are_as_good_as_they_are_said_to_be(tmp_path):
    group = Group(call(0, 10), call(0, 10))
    group.boxes_there[1].clock = type(group.segments[1].clock)()
    group.segments[1].clock.add(0, 2000, 1000)
    errors = json.loads(written(tmp_path, group).read_text())["otherData"]["clock_error_us"]
    assert 1 <= errors[1] <= 1.1 and errors[0] < 0.1


@pytest.mark.parametrize(
    "answer", [{"clock_ns": "noon"}, {"clock_ns": None}, {"clock_ns": [1]}, {"clock_ns": 5}]
)
def test_clocks_that_say_nothing(answer):
    box = Group([], []).boxes_there[0]
    box.answer(1, answer)  # nobody has asked, or it is no number
    assert box.ask_clock() and box.clock.ours(7) == 7


WRONG_ANSWERS = [
    {"groups": 5},
    {"groups": [[0, {"nodes": 5}]], "now_ns": 1},
    {"groups": [[0, {"nodes": [[1]]}]], "now_ns": 1},
    {"groups": [[0, {"nodes": [], "traffic": 1}]], "now_ns": 1},
    {"groups": [[1, {"nodes": [], "traffic": 1, "waits": []}]], "now_ns": 1},
    {"groups": [[0, {"nodes": [], "traffic": 1, "waits": []}]], "now_ns": "noon"},
    {"lines": 7},
    {"lines": [[1, 2, 3]]},
]


@pytest.mark.parametrize("answer", WRONG_ANSWERS, ids=str)
def test_answers_that_make_no_sense(answer):
    """Nobody knows then what its nodes do."""
    box = Group([], []).boxes_there[0]
    box.answer(1, answer)
    assert box.answered == 1 and box.silence == "box host0: it sent malformed answers"


# The disk


def full(file):
    file.write("half of it")
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("before", [None, "the one before"])
def test_half_a_file_is_never_there(tmp_path, before):
    path = tmp_path / "t.json"
    if before is not None:
        path.write_text(before)
    with pytest.raises(OSError, match="No space left"):
        files.replace(str(path), full)
    assert os.listdir(tmp_path) == (["t.json"] if before else [])
    assert before is None or path.read_text() == before


def test_links_and_modes_stay(tmp_path):
    target = tmp_path / "kept" / "t.json"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "t.json"
    link.symlink_to(target)
    files.replace(str(link), lambda file: file.write("new"))
    assert link.is_symlink() and target.read_text() == "new" and target.stat().st_mode & 0o777 == 0o640
    assert os.listdir(target.parent) == ["t.json"]


@pytest.mark.linux("reads /proc")
def test_a_pipe_is_written_itself(tmp_path):
    read_end, write_end = os.pipe()
    try:
        files.replace(f"/proc/self/fd/{write_end}", lambda file: file.write("all of it"))
        assert os.read(read_end, 100) == b"all of it"
    finally:
        os.close(read_end)
        os.close(write_end)


def refuse_files_beside(monkeypatch, number):
    real_open, real = os.open, open

    def refuse(name, mode="r", **more):
        if "x" in mode:
            raise OSError(number, os.strerror(number))
        return real(name, mode, **more)

    def refuse_unnamed(path, flags, *more, **others):
        if (
            flags & getattr(os, "O_TMPFILE", 0) == getattr(os, "O_TMPFILE", -1)
            and str(path) != tempfile.gettempdir()
        ):
            raise OSError(number, os.strerror(number))
        return real_open(path, flags, *more, **others)

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(os, "open", refuse_unnamed)


def test_where_no_other_file_can_be_made(tmp_path, monkeypatch):
    """Then it is the file itself, and what was there before stays if there is no room."""
    path = tmp_path / "t.json"
    refuse_files_beside(monkeypatch, errno.EACCES)
    files.replace(str(path), lambda file: file.write("all of it"))
    assert path.read_text() == "all of it"
    with pytest.raises(OSError, match="No space left"):
        files.replace(str(path), full)
    assert path.read_text() == "all of it"
    monkeypatch.setattr(os, "posix_fallocate", lambda *_: full(io.StringIO()))
    with pytest.raises(OSError, match="No space left"):
        files.replace(str(path), lambda file: file.write("more than there is room for"))
    assert path.read_text() == "all of it"


def test_where_an_unnamed_file_gets_no_name(tmp_path, monkeypatch):
    def refuse(*_words, **_more):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    files.replace(str(tmp_path / "t.json"), lambda file: file.write("all of it"))
    assert os.listdir(tmp_path) == ["t.json"] and (tmp_path / "t.json").read_text() == "all of it"


def test_a_disk_without_room_for_a_name(tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    path.write_text("the one before")
    refuse_files_beside(monkeypatch, errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        files.replace(str(path), lambda file: file.write("all of it"))
    assert path.read_text() == "the one before"


def test_a_process_that_is_killed_while_it_writes(tmp_path):
    """It leaves nothing, or what the next one removes."""
    code = "files.replace('t.json', lambda file: (file.write('half'), file.flush(), os.kill(os.getpid(), 9)))"
    for take in ("", "del os.O_TMPFILE; "):
        words = [sys.executable, "-c", f"import os; from spcomm.trace import files; {take}{code}"]
        assert subprocess.run(words, cwd=tmp_path).returncode == -9
        assert len(os.listdir(tmp_path)) == (1 if take or not hasattr(os, "O_TMPFILE") else 0)
    other = tmp_path / f"t.json.{os.uname().nodename}.{os.getppid()}.part"
    other.write_text("of one that still writes")
    files.replace(str(tmp_path / "t.json"), lambda file: file.write("all of it"))
    assert sorted(os.listdir(tmp_path)) == ["t.json", other.name]
    assert (tmp_path / "t.json").read_text() == "all of it"


@pytest.mark.parametrize("take", ["", "del os.O_TMPFILE; "])
def test_a_killed_process_had_the_id_of_this_one(tmp_path, take):
    """A container begins at the same numbers each time it starts."""
    code = """
        left = f"t.json.{os.uname().nodename}.{os.getpid()}.part"
        open(left, "w").close()
        files.replace("t.json", lambda file: file.write("all of it"))
    """
    head = f"import os\nfrom spcomm.trace import files\n{take}"
    answer = subprocess.run([sys.executable, "-c", head + textwrap.dedent(code)], cwd=tmp_path)
    assert (answer.returncode, os.listdir(tmp_path)) == (0, ["t.json"])


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EPERM])
def test_a_file_that_nothing_can_replace(tmp_path, monkeypatch, number):
    """Such as a mounted one, or somebody else's in /tmp."""
    path = tmp_path / "t.json"
    path.write_text("old, and longer than the new")

    def refuse(_beside, _path):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", refuse)
    files.replace(str(path), lambda file: file.write("all of it"))
    assert path.read_text() == "all of it"
    assert os.listdir(tmp_path) == ["t.json"]


def test_a_mounted_file_needs_no_room_in_its_folder(tmp_path):
    """Such as the judge's, in a folder of limited size that the program can fill."""
    if shutil.which("bwrap") is None:
        pytest.skip("needs bubblewrap, to mount")
    path, box = tmp_path / "t.json", tmp_path / "box"
    path.touch()
    box.mkdir()
    code = f"files.replace({str(box / 't.json')!r}, lambda file: file.write('x' * (1 << 20)))"
    words = [*"bwrap --dev-bind / / --size 4096 --tmpfs".split(), box, "--bind", path, box / "t.json"]
    words += [sys.executable, "-c", f"from spcomm.trace import files; {code}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.stderr.startswith("bwrap:"):
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size == 1 << 20
