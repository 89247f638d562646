# SPDX-License-Identifier: MIT
"""The parts by themselves: messages with descriptors, membership, reports, who was first, lines."""

import os
import select
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from spcomm import config
from spcomm._core import segments, work_sleep
from spcomm._core.errors import NodeLostError
from spcomm.launch import command
from spcomm.launch.base import report
from spcomm.launch.cmdline.groups import Names, gather
from spcomm.launch.cmdline.options import Options
from spcomm.launch.cmdline.plan import Plan
from spcomm.launch.local.output import LONG, Sink, Stream
from spcomm.launch.local.stack_probe import ProbeReplies, user_line
from spcomm.launch.supervise import supervisor
from spcomm.launch.supervise.conclude import Ending
from spcomm.launch.supervise.failures import Failures

TABLE_OF_FAILURES = Path(__file__).parents[1] / "csrc" / "failures.txt"


@pytest.fixture
def pipe():
    ends = list(os.pipe())
    yield ends
    for fd in ends:
        try:
            os.close(fd)
        except OSError:
            pass


# Messages


# Membership


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.setattr(config, "_joined", None)
    monkeypatch.setattr(config, "_owner", 0)
    monkeypatch.setattr(report, "_target", None)


def member(fd, rank=1, size=4):
    found = os.fstat(fd)
    return config.Membership(fd, rank, size, found.st_dev, found.st_ino, os.getpid(), 3)


def test_an_executed_node_finds_its_place_in_the_environment(alone, monkeypatch, pipe):
    expected = member(pipe[0])
    for name, value in config.environment(expected, pipe[1]).items():
        monkeypatch.setenv(name, value)
    os.set_inheritable(pipe[0], True)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    assert config.membership() == expected
    assert config.VARIABLE not in os.environ and config.REPORT_VARIABLE not in os.environ
    assert not os.get_inheritable(pipe[0]) and not os.get_inheritable(pipe[1])
    assert config.membership() == expected, "also the second time"


# Reports


def frames(data):
    found = []
    while data:
        length = int.from_bytes(data[5:7], "little")
        found.append((int.from_bytes(data[:4], "little"), data[4:5], data[7 : 7 + length]))
        data = data[7 + length :]
    return found


def raised(error, cause=None):
    try:
        try:
            if cause is not None:
                raise cause
        finally:
            raise error
    except BaseException as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "cause", "kind", "detail"),
    [
        (ValueError("x"), None, report.RAISED, b"ValueError"),
        (NodeLostError("x"), None, report.LOST, b"NodeLostError"),
        (ValueError("x"), NodeLostError("y"), report.LOST, b"ValueError"),
        (KeyboardInterrupt(), None, report.INTERRUPTED, b"test_parts.py:"),
    ],
)
def test_a_report_is_the_traceback_and_its_kind(alone, pipe, error, cause, kind, detail):
    report.aim(pipe[1], 7)
    stderr = sys.stderr
    report.uncaught(raised(error, cause), sys.__excepthook__)
    assert sys.stderr is stderr
    found = frames(os.read(pipe[0], 65536))
    assert {rank for rank, _kind, _payload in found} == {7}
    assert found[0][1] == kind and found[0][2].startswith(detail)
    text = b"".join(payload for _rank, name, payload in found if name == report.TEXT)
    last = repr(error).split("(")[0].encode() + (b": x" if error.args else b"")
    assert text.startswith(b"Traceback") and text.rstrip().endswith(last)


def test_a_large_report_goes_in_pieces_that_the_kernel_does_not_mix(alone, pipe):
    report.aim(pipe[1], 0)
    report.uncaught(ValueError("é" * 10_000), sys.__excepthook__)
    data = os.read(pipe[0], 65536)
    found = frames(data)
    assert all(len(payload) + report.HEADER <= select.PIPE_BUF for _rank, _kind, payload in found)
    assert "é".encode() * 10_000 in b"".join(payload for _rank, kind, payload in found if kind == report.TEXT)


def test_a_reader_puts_frames_together_again():
    reader = report.Reader()
    assert reader.read() == [] and not reader.ended
    frame = (5).to_bytes(4, "little") + report.TEXT + (3).to_bytes(2, "little") + b"abc"
    os.write(reader.write, frame + frame[:6])
    assert reader.read() == [(5, report.TEXT, b"abc")]
    os.write(reader.write, frame[6:9])
    assert reader.read() == []
    os.write(reader.write, frame[9:])
    assert reader.read() == [(5, report.TEXT, b"abc")]
    os.close(reader.write)
    assert reader.read() == [] and reader.ended
    os.close(reader.fd)


def test_without_a_launcher_the_exception_is_shown(alone, capsys):
    report.uncaught(ValueError("here"), sys.__excepthook__)
    assert "ValueError: here" in capsys.readouterr().err


# The first failure


def apply(failures, event):
    verb, *words = event.split(maxsplit=3)
    if verb == "closed":
        failures.closed = True
    elif verb == "report":
        failures.reported(int(words[0]), words[1].encode(), words[2])
    elif int(words[1]):  # an end with status 0 is no failure, and is not told
        failures.ended(int(words[0]), int(words[1]) << (8 if verb == "exit" else 0))


@pytest.mark.parametrize(
    "row", [line for line in TABLE_OF_FAILURES.read_text().splitlines() if not line.startswith("#")]
)
def test_who_was_first(row):
    """The same table holds for runs without a launcher (tests/csrc/test_failures.c)."""
    events, expected = row.split(" -> ")
    failures = Failures()
    for event in events.split(";"):
        apply(failures, event)
    failures.settle()
    assert f"{failures.first.code}: {failures.first.sentence()}" == expected


def test_a_node_that_the_kernel_killed_for_memory_is_called_one(monkeypatch):
    """The control group counts them: no count, no such sentence."""
    kills = 3
    monkeypatch.setattr(segments, "oom_kills", lambda: kills)
    failures, others = Failures(), Failures()
    failures.ended(1, 9)
    assert failures.first.sentence() == "node 1 was killed by SIGKILL (exit code 137)"
    kills += 1
    others.ended(1, 9)
    assert others.first.sentence() == "node 1 was killed by the kernel: out of memory (exit code 137)"


def test_what_happens_after_the_end_was_asked_for_is_no_failure():
    failures = Failures()
    failures.closed = True
    failures.ended(0, 15)
    failures.settle()
    assert failures.first is None


def test_tracebacks_that_follow_from_the_first_are_counted_only():
    failures = Failures()
    for rank, text in ((1, b"first\n"), (0, b"lost\n"), (2, b"first\n"), (3, b"other\n")):
        failures.text(rank, text)
        failures.reported(rank, report.LOST if text == b"lost\n" else report.RAISED, "X")
    text, notes = failures.tracebacks(lambda index, _target: Names().label(index), interrupted=False)
    assert text == b"[3] other\n[1] first\n"
    assert notes == "node 2 failed in the same way; node 0 raised X because of it"


def test_a_mismatch_is_told_once_though_all_nodes_raise_it():
    failures = Failures()
    for rank, text, kind in (
        (1, b"at 5\n", "MismatchError"),
        (0, b"at 7\n", "MismatchError"),
        (2, b"x\n", "ValueError"),
    ):
        failures.text(rank, text)
        failures.reported(rank, report.RAISED, kind)
    text, notes = failures.tracebacks(lambda _index, _target: b"", interrupted=False)
    assert text == b"node 2:\nx\nnode 1:\nat 5\n" and notes == "node 0 raised MismatchError, too"


def test_victims_that_were_stopped_before_their_tracebacks_came_are_counted():
    failures = Failures()
    failures.text(1, b"first\n")
    for rank, kind in ((1, "MismatchError"), (0, "NodeLostError"), (2, "MismatchError")):
        failures.reported(rank, report.LOST if rank == 0 else report.RAISED, kind)
    failures.ended(3, 256)
    text, notes = failures.tracebacks(lambda _index, _target: b"", interrupted=False)
    assert text == b"first\n"
    assert notes == "node 2 raised MismatchError, too; node 0 raised NodeLostError because of it"


def test_the_same_traceback_of_several_is_shown_once():
    failures = Failures()
    for rank, text in ((1, b"first\n"), (0, b"other\n"), (2, b"other\n"), (3, b"other\n")):
        failures.text(rank, text)
        failures.reported(rank, report.RAISED, "MismatchError" if rank == 3 else "ValueError")
    text, notes = failures.tracebacks(lambda _index, _target: b"", interrupted=False)
    assert text == b"node 0:\nother\nnode 1:\nfirst\n" and notes == "nodes 2-3 failed as node 0 did"


def test_failures_at_one_line_show_their_messages_alone():
    trace = b'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n'
    failures = Failures()
    for rank, text in ((2, trace + b"E: 2\n"), (0, b"other\n"), (1, trace + b"E: 1\n  more\n")):
        failures.text(rank, text)
        failures.reported(rank, report.RAISED, "E")
    text, _notes = failures.tracebacks(lambda _index, _target: b"", interrupted=False)
    alike = b"node 1, at the same line: E: 1\n  more\n"
    assert text == b"node 0:\nother\n" + alike + b"node 2:\n" + trace + b"E: 2\n"


# The record of a run without a launcher


def record(*events):
    """Frames of the record, as csrc/fork/spc_failures.c writes them: rank, kind and payload of each."""
    made = b""
    for rank, kind, payload in ((4, "B", "0"), *events):
        data = str(payload).encode()
        made += rank.to_bytes(4, "little") + kind.encode() + len(data).to_bytes(2, "little") + data
    return made


RECORDS = [
    (
        [(1, "L", "NodeLostError"), (3, "W", 9), (0, "F", 3), (0, "W", 15), (1, "W", 256), (2, "W", 15)],
        "node 3 was killed by SIGKILL (exit code 137); node 1 raised NodeLostError because of it; nodes 0, 2 were "
        "stopped",
    ),
    (
        [(0, "V", ""), (0, "F", 0), *((rank, "W", 15) for rank in (1, 2, 3))],
        "node 0 died; the other nodes were stopped",
    ),
    (
        [(2, "X", 7), (0, "F", 2), (0, "S", ""), (1, "V", ""), (2, "W", 9), (3, "W", 0)],
        "node 2 ended with exit code 7; nodes 0-1 were stopped",
    ),
    (
        [(0, "F", -1), (1, "A", "mpiexec"), (3, "A", "mpiexec")],
        "nodes 1, 3 have not called startup() within 30 s; every process that mpiexec starts has to (exit code 125)",
    ),
    (
        [(0, "F", -1), (0, "O", "srun")],
        "srun has ended without its processes; they were stopped (exit code 125)",
    ),
    (
        [(1, "W", 768), (0, "F", 1), (0, "N", 15)],
        "told to end by SIGTERM (exit code 143); the nodes were stopped",
    ),
]


@pytest.mark.parametrize(("events", "sentence"), RECORDS)
def test_a_record_has_its_sentence(events, sentence):
    ending = Ending(record(*events), [0, 1, 2, 3])
    assert not ending.is_well and ending.text(labels=False) == f"spcomm: {sentence}\n".encode()


def test_a_record_with_tracebacks():
    events = [(0, "E", "KeyError"), (1, "E", "KeyError"), (0, "F", 0), (0, "W", 256), (1, "W", 256)]
    texts = [(0, "T", "one\n"), (1, "T", "other\n"), (1, "T", "line\n")]
    ending = Ending(record(*events, *texts), [0, 1])
    assert ending.text(labels=True).decode() == (
        "[1] other\n[1] line\n[0] one\nspcomm: node 0 ended with an uncaught KeyError (exit code 1)\n"
    )


def test_a_record_with_a_reason_that_the_supervisor_says_itself():
    ending = Ending(record((0, "L", "NodeLostError"), (0, "F", -1), (0, "R", ""), (0, "T", "one\n")), [0])
    assert not ending.is_well and ending.text(labels=False) == b""
    ending = Ending(record((0, "E", "KeyError"), (0, "F", -1), (0, "R", ""), (0, "T", "one\n")), [0])
    assert ending.text(labels=False) == b"node 0:\none\n"


def test_a_record_with_the_places_of_ctrl_c():
    events = [(1, "K", "a.py:1"), (0, "F", 1), (0, "N", 2), (1, "T", "Traceback"), (1, "W", 2), (0, "W", 0)]
    assert Ending(record(*events), [0, 1, 2]).text(labels=False).decode().splitlines() == [
        "spcomm: where the nodes were:",
        "  node 0  finished",
        "  node 1  a.py:1",
        "  node 2  no answer",
        "  node 3  in another box",
        "spcomm: interrupted by Ctrl-C (exit code 130); the nodes were stopped",
    ]


def test_a_record_of_a_run_that_went_well(monkeypatch):
    monkeypatch.setattr(segments, "oom_kills", lambda: 1)
    assert Ending(record((0, "W", 0), (1, "W", 0), (0, "F", -1)), [0, 1]).is_well
    assert "out of memory" in Ending(record((1, "W", 9), (0, "F", 1)), [0, 1]).reason()


# Groups


def plans(*pairs):
    """Programs with so many nodes, in such a group."""
    return [Plan("script", "/x.py", ["x.py"], nodes=nodes, group=group) for nodes, group in pairs]


def test_programs_of_one_group_get_consecutive_nodes_in_the_order_of_the_command_line():
    made, groups = gather(plans((2, 5), (3, 1), (1, 5), (2, 1)))
    assert [(group.number, group.first, group.size) for group in groups] == [(5, 0, 3), (1, 3, 5)]
    assert [list(plan.indices) for plan in made] == [[0, 1], [3, 4, 5], [2], [6, 7]]
    assert [groups[1].rank(index) for plan in (made[1], made[3]) for index in plan.indices] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("nodes", "shared"), [((2, 2), True), ((2, 1), False), ((4,), True), ((3,), False)])
def test_whether_cores_are_shared_depends_on_all_nodes_of_the_run(monkeypatch, nodes, shared):
    """Each group has fewer nodes than there are cores; together they may have more."""
    made, segments = plans(*((count, group) for group, count in enumerate(nodes))), []
    core = SimpleNamespace(
        LIMITS={}, cores=lambda: 3.0, adopt_orphans=lambda: None, disable_mask=lambda: 0,
        memory=lambda: 1 << 40, plan=lambda *_sizes, **_more: {"bytes": 0, "queue_limit": 0},
    )  # fmt: skip
    monkeypatch.setattr(command, "_segments", lambda: core)
    monkeypatch.setattr(command, "_segment", lambda _core, *found: segments.append(found[:2]))
    monkeypatch.setattr(supervisor, "Supervisor", lambda *_: SimpleNamespace(run=lambda *_: 7))
    monkeypatch.setattr("spcomm.launch.local.stdin.Stdin", lambda _chosen, relays: None)
    starters = [SimpleNamespace(place=lambda _programs: None) for _plan in made]
    assert command._supervise(Options(), made, starters, None, 0) == 7
    assert segments == [(count, shared) for count in nodes]


# Lines


class Written(Sink):
    """A sink that keeps what is written."""

    def __init__(self):
        super().__init__()
        self.data = b""

    def _append(self, fd, data):
        self.data += data


def stream(sink, rank, label=True):
    read, write = os.pipe()
    return Stream(read, 1, sink, b"[%d] " % rank if label else b"", alone=False), write


def feed(target, data):
    made, write = target
    for at in range(0, len(data), 60_000):
        os.write(write, data[at : at + 60_000])
        made.read()


@pytest.fixture
def two():
    sink = Written()
    pair = [stream(sink, 0), stream(sink, 1)]
    yield sink, *pair
    for made, write in pair:
        made.close()
        os.close(write)


def test_an_unfinished_line_waits_for_its_end(two):
    sink, one, other = two
    feed(one, b"a\nb")
    feed(other, b"c\n")
    feed(one, b"d\n")
    assert sink.data == b"[0] a\n[1] c\n[0] bd\n"


def test_a_long_line_keeps_the_floor_until_it_ends(two):
    sink, one, other = two
    feed(one, b"x" * (LONG + 1))
    assert sink.floor is one[0] and len(sink.data) > LONG
    feed(other, b"c\n")
    feed(one, b"y\nz\n")
    assert sink.data == b"[0] " + b"x" * (LONG + 1) + b"y\n[1] c\n[0] z\n"


def test_a_long_line_that_stands_still_is_ended_for_the_others(two):
    sink, one, other = two
    feed(one, b"x" * (LONG + 1))
    feed(other, b"c\n")
    sink.take_floor()
    feed(one, b"y\n")
    assert sink.data == b"[0] " + b"x" * (LONG + 1) + b"\n[1] c\n[0] y\n"


def test_two_long_lines_the_second_is_not_read_further(two):
    _sink, one, other = two
    feed(one, b"x" * (LONG + 1))
    feed(other, b"y" * (LONG + 1))
    assert other[0].blocked and not one[0].blocked
    feed(one, b"\n")
    assert not other[0].blocked


def test_a_shown_prompt_is_ended_by_the_next_line(two):
    sink, one, other = two
    feed(one, b"name? ")
    one[0].show()
    assert sink.data == b"[0] name? "
    feed(other, b"c\n")
    feed(one, b"Ada\n")
    assert sink.data == b"[0] name? \n[1] c\n[0] Ada\n"


# Where nodes are


def test_the_users_own_line_is_found_in_a_stack():
    library, package = os.path.dirname(os.__file__), os.path.dirname(config.__file__)
    dump = "\n".join(
        [
            "Current thread 0x00007f (most recent call first):",
            f'  File "{library}/threading.py", line 5 in wait',
            f'  File "{package}/startup.py", line 7 in recv',
            '  File "/home/ada/ring.py", line 12 in step',
            '  File "/home/ada/ring.py", line 20 in <module>',
            "",
        ]
    )
    assert user_line(dump.encode()) == "ring.py:12 in step"
    assert user_line(dump[: dump.index("ring.py")].encode()) == "threading.py:5 in wait"
    assert user_line(dump[: dump.index(" in step")].encode()) == "threading.py:5 in wait"  # half a line
    assert user_line(b"") == ""
    asleep = dump.replace(f"{package}/startup.py", work_sleep.__file__)
    assert user_line(asleep.encode()) == "work()  ring.py:12 in step"


@pytest.mark.linux("no SO_PASSCRED")
def test_an_answer_that_comes_late_is_not_taken_for_another_nodes():
    """Node 0 answers when node 1 is asked, and before it."""
    answers = ProbeReplies()
    script = (
        "import os; input(); os.write({}, b'  File \"{}.py\", line 7 in step\\n'); print(flush=True); input()"
    )
    nodes = [
        subprocess.Popen(
            [sys.executable, "-c", script.format(answers.fileno(), name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[answers.fileno()],
            bufsize=0,
        )
        for name in ("zero", "one")
    ]
    answers.close_theirs()

    def poke(node, _number):
        for writer in nodes if node == 1 else []:
            writer.stdin.write(b"\n")
            writer.stdout.readline()

    found = answers.ask(poke, [0, 1], {0: nodes[0].pid, 1: nodes[1].pid})
    for node in nodes:
        node.communicate(b"\n", timeout=60)
    answers.close()
    assert found == {0: "zero.py:7 in step", 1: "one.py:7 in step"}


# The loop


# Sources newer than what was built from them


def test_a_source_newer_than_the_compiled_core_is_found(tmp_path):
    from spcomm.launch.rebuild_check import newer_source

    for name, age in (
        ("spcomm/_core/segments.so", 5),
        ("csrc/base/old.c", 1),
        ("csrc/base/new.c", 9),
        ("csrc/x.txt", 9),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (age, age))
    assert newer_source(str(tmp_path / "spcomm")) == os.path.join("csrc", "base", "new.c")
    os.utime(tmp_path / "spcomm/_core/segments.so", (10, 10))
    assert newer_source(str(tmp_path / "spcomm")) is None
    assert newer_source(str(tmp_path / "installed" / "spcomm")) is None
