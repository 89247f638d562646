# SPDX-License-Identifier: MIT
"""What `spcomm run --trace` writes tells what the nodes did."""

import json
import os
import re
import select
import signal
import sys
from pathlib import Path

import pytest

from spcomm.trace.reader import read
from spcomm.trace.summary import gaps

STEPS = 5
PROGRAM = f"""
    import numpy as np, spcomm
    comm = spcomm.startup()
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for step in range({STEPS}):
        with comm.region("computing"):
            values = np.full(1000 * (step % 2) + 1, comm.rank)
        comm.send(values, right, tag=step)
        assert comm.recv(source=left, tag=step)[0] == left
        comm.global_sum(1.0)
        with comm.fuzzy_barrier():
            pass
"""
HANGS = """
    import spcomm
    comm = spcomm.startup()
    comm.barrier()
    comm.recv(source=(comm.rank + 1) % comm.size)
"""
KILLED = """
    import os, signal, spcomm
    comm = spcomm.startup()
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier()
"""
THREADS = """
    import threading, spcomm
    comm = spcomm.startup()
    all_here = threading.Barrier(3)
    def talk(tag):
        all_here.wait()  # a name is free again when its thread has ended
        for number in range(20):
            comm.send(number, comm.rank, tag=tag)
            assert comm.recv(tag=tag) == number
    others = [threading.Thread(target=talk, args=(tag,)) for tag in (1, 2)]
    for other in others: other.start()
    talk(0)
    for other in others: other.join()
"""
RESULTS = """
    import spcomm
    comm = spcomm.startup()
    assert comm.poll() == 0 and type(comm).__mro__[1] is spcomm.Comm
    for call in (lambda: comm.send(1), lambda: comm.send(1, 99), lambda: comm.recv(tag=-5), lambda: spcomm.Comm.poll()):
        try:
            call()
        except (TypeError, ValueError) as error:
            print(error)
    print(comm.global_sum.__name__, comm.global_sum(2), spcomm.Comm.recv.__doc__ == comm.recv.__doc__)
    with comm.split(0) as part:
        print(part.allreduce(3, op=spcomm.MAX), comm.layout[0])
"""
WHERE = {
    "one box": (),
    "two boxes": ("--boxes", 2),
    "dealt out": ("--map", "0,1,0,1"),
    "other processes": ("--start", "exec"),
}


def traced(launch, *options, text=PROGRAM):
    result = launch(*options, "--trace", "t.json", launch.script(text))
    return result, read(launch.folder / "t.json")


@pytest.mark.smoke
@pytest.mark.parametrize("n", [1, 2, 3, 4, 8])
def test_all_that_the_nodes_did_is_there(launch, n):
    result, trace = traced(launch, "-n", n)
    assert result.code == 0 and result.err == "", result
    check_story(trace, n)


@pytest.mark.parametrize("where", WHERE.values(), ids=WHERE)
def test_wherever_they_are(launch, where):
    result, trace = traced(launch, "-n", 4, *where)
    assert result.code == 0, result
    check_story(trace, 4)


def check_story(trace, n):
    """Each call with its line, each message with both ends, each region."""
    assert (trace.nodes, trace.overwritten) == (n, [0] * n)
    assert [track.rank for track in trace.tracks] == list(range(n))
    for track in trace.tracks:
        calls = [call.name for call in track.calls if call.name != "close"]
        assert calls == ["send", "recv", "global_sum", "fuzzy_barrier", "fuzzy_barrier.wait"] * STEPS
        lines = {call.name: call.line for call in track.calls}
        assert lines["send"] == "program.py:8" and lines["recv"] == "program.py:9"
        assert [region.name for region in track.regions] == ["computing"] * STEPS
        for wait in track.waits:
            assert any(call.begin <= wait.begin and wait.end <= call.end for call in track.calls)
        for call, following in zip(track.calls, track.calls[1:], strict=False):
            assert call.begin <= call.end <= following.begin
    user = [message for message in trace.messages if message.context == "user"]
    assert sorted((m.source, m.dest, m.tag) for m in user) == sorted(
        (rank, (rank + 1) % n, step) for rank in range(n) for step in range(STEPS)
    )
    for message in user:
        assert message.sent is not None and message.received is not None
        assert message.bytes >= (8008 if message.tag % 2 else 8)


def test_a_message_is_sent_before_it_is_received(launch):
    """Within a box all nodes have one clock; it may be read a little late."""
    _result, trace = traced(launch, "-n", 4)
    for message in trace.messages:
        assert message.sent <= message.received + 20  # microseconds


def test_threads_have_tracks(launch):
    result, trace = traced(launch, "-n", 2, text=THREADS)
    assert result.code == 0, result
    assert [(track.rank, track.thread) for track in trace.tracks] == [
        (r, t) for r in (0, 1) for t in range(3)
    ]
    for track in trace.tracks:
        assert sum(call.name == "recv" for call in track.calls) == 20
    assert len(trace.messages) == 2 * 3 * 20


def test_calls_are_what_they_are_without_a_trace(launch):
    script = launch.script(RESULTS)
    plain, traced_run = launch("-n", 1, script), launch("-n", 1, "--trace", "t.json", script)
    assert plain.code == 1 and "__mro__" in plain.err  # the program can tell, if it wants to
    assert traced_run.code == 0, traced_run
    lines = traced_run.lines
    assert len(lines) == 6 and "send" in lines[0] and "99" in lines[1] and "-5" in lines[2], traced_run
    assert "poll" in lines[3] and lines[4] == "global_sum 2 True" and lines[5].startswith("3 "), traced_run


def test_the_last_events_stay(launch):
    result, trace = traced(launch, "-n", 2, "--trace-events", 32)
    assert result.code == 0, result
    assert all(lost > 0 for lost in trace.overwritten)
    assert all(track.calls[-1].name in ("close", "fuzzy_barrier.wait") for track in trace.tracks)


def test_a_deadlock_is_in_the_trace(launch):
    result, trace = traced(launch, "-n", 3, text=HANGS)
    assert result.code == 99 and "DEADLOCK" in result.err, result
    assert all(any(call.name == "recv" for call in track.calls) for track in trace.tracks)


def test_a_node_that_was_killed(launch):
    result, trace = traced(launch, "-n", 3, text=KILLED)
    assert result.code == 137, result
    assert [call.name for call in trace.tracks[1].calls] == ["barrier"]


def test_other_hosts(launch, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift 2; done\nshift\nexec sh -c "$*"\n')
    ssh.chmod(0o755)
    where = ("--host", "a:2,b:2", "--tunnel", "none", "--listen", "127.0.0.1")
    result, trace = traced(launch, *where, "--ssh", ssh)
    assert result.code == 0, result
    check_story(trace, 4)
    errors = json.loads((launch.folder / "t.json").read_text())["otherData"]["clock_error_us"]
    assert len(errors) == 2 and all(error > 0 for error in errors)
    for message in trace.messages:  # both clocks are one here, and known to so much
        assert message.sent <= message.received + 2 * max(errors)


# A box whose trace is forged: it does what a box does, but for what it says at its end.
FORGER = """\
import sys
from spcomm._core import traces
from spcomm.trace import far
right = far.packed
def wrong(fd, ranks):
    for rank, lost, piece in right(fd, ranks):
        yield {what}
far.packed = wrong
sys.argv = ["spcomm", "box"]
from spcomm.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "what",
    [
        "rank, lost, piece[:-5]",
        "rank, lost, b''",
        "99, lost, piece",
        "rank, 'some', piece",
        "None, [], piece",
    ],
)
def test_a_box_that_forges_its_trace(launch, tmp_path, what):
    """The run is as it was; the other box's part is there."""
    (tmp_path / "forger.py").write_text(FORGER.format(what=what))
    ssh = tmp_path / "ssh"
    ssh.write_text(
        "#!/bin/sh\n"
        'while [ "${1#-}" != "$1" ]; do shift 2; done\nhost=$1\nshift\n'
        f'[ "$host" = b ] && exec {sys.executable} {tmp_path}/forger.py\nexec sh -c "$*"\n'
    )
    ssh.chmod(0o755)
    where = ("--host", "a:2,b:2", "--tunnel", "none", "--listen", "127.0.0.1")
    result, trace = traced(launch, *where, "--ssh", ssh)
    assert result.code == 0, result
    said = [line for line in result.err.splitlines() if "warning" in line]
    assert len(said) == 1 and "Traceback" not in result.err, result
    assert re.fullmatch(
        r"spcomm: warning: box 1 \(host b\) sends a trace that makes no sense \(.+\): "
        r"the part of nodes 2-3 is missing in t\.json", said[0]
    ), said  # fmt: skip
    assert [bool(track.calls) for track in trace.tracks] == [True, True, False, False]


def test_curves(launch):
    traced(launch, "-n", 2)
    rows = json.loads((launch.folder / "t.json").read_text())["traceEvents"]
    computing = [row["args"]["number"] for row in rows if row["name"] == "nodes computing"]
    under_way = [row["args"]["number"] for row in rows if row["name"] == "messages under way"]
    assert set(computing) <= {0, 1, 2} and len(set(computing)) > 1 and computing[-1] == 0
    assert min(under_way) == 0 and max(under_way) in (1, 2, 3, 4) and under_way[-1] == 0


def test_where_the_file_cannot_be_written(launch):
    for path in ("nowhere/t.json", "."):
        result = launch("-n", 1, "--trace", path, launch.script("print('ran')"))
        assert result.code == 125 and "ran" not in result.out, result
        assert re.fullmatch(
            rf"spcomm run: --trace {re.escape(path)}: cannot be written \(.+\)\n", result.err
        ), result


def test_a_signal_while_the_file_is_written(launch):
    """Nobody reads the pipe that is to be the trace, so that writing goes on until the signal comes."""
    pipe = launch.folder / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # with a writer there is no end of file
    try:
        process = launch.start(
            "-n", 2, "--trace", "pipe", launch.script(PROGRAM.replace("range(5)", "range(500)"))
        )
        select.select([reading], [], [])  # it has begun to write
        process.send_signal(signal.SIGINT)
        result = launch.finish(process)
    finally:
        os.close(reading)
    assert result.code == 130, result
    assert result.err == "spcomm: the trace was not written to pipe: SIGINT came before its end\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk(launch):
    result = launch("-n", 1, "--trace", "/dev/full", launch.script("print('ran')"))
    assert result.code == 125 and result.lines == ["ran"], result
    assert result.err == "spcomm: the trace cannot be written to /dev/full (No space left on device)\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--trace", ""), "needs the name of a file"),
        (("--trace", "t.json", "--trace-events", "0"), "--trace-events 0"),
        (("--trace", "t.json", "--trace-events", "1e9"), "--trace-events 1e9"),
        (("--trace", "t.json", "--trace-events", str(2**40)), "must be from 16 to 16777216"),
        (("--trace-events", "64"), "--trace"),
        (("--trace", "t.json", "--group", "3"), "leave --group out"),
    ],
)
def test_one_sentence(launch, words, says):
    result = launch("-n", 1, *words, launch.script("print('ran')"))
    assert result.code == 125 and result.out == "", result
    assert result.err.count("\n") == 1 and says in result.err, result


def test_more_nodes_than_cores(launch):
    many = 2 * os.cpu_count()
    _result, trace = traced(launch, "-n", many)
    assert ("cores", str(os.cpu_count())) in [fact[:2] for fact in gaps(trace)]
    _result, trace = traced(launch, "-n", 1)
    assert "cores" not in [fact[0] for fact in gaps(trace)]


def test_the_last_process_writes_nothing_else(launch):
    traced(launch, "-n", 2)
    assert sorted(os.listdir(launch.folder)) == ["program.py", "t.json"]
