# SPDX-License-Identifier: MIT
"""Traces that `spcomm run --trace` writes show what the nodes did."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from launching import stand_in_for_ssh
from processes import read_lines
from spcomm._core.traces import NAMES_MAX, NO_ROOM
from spcomm.trace import spans
from spcomm.trace.reader import read
from spcomm.trace.summary import gaps, summarize

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
LEARNT_MEANWHILE = """
    import sys, spcomm
    comm = spcomm.startup()
    region = comm.region("computing")
    asked = []
    class Name(str):
        def startswith(self, *words):
            asked.append(words)
            if len(asked) == 1:
                mark()  # as another thread could that runs meanwhile
            return super().startswith(*words)
    def mark():
        region.__enter__()
        region.__exit__(None, None, None)
    code = mark.__code__ = mark.__code__.replace(co_filename=Name(mark.__code__.co_filename))
    before = sys.getrefcount(code)
    mark()
    assert asked and sys.getrefcount(code) == before + 1, (asked, before, sys.getrefcount(code))
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
LINES = """
    import threading, spcomm
    from spcomm import speedes
    comm = spcomm.startup()
    with comm.fuzzy_barrier() as fb:
        assert isinstance(fb, spcomm.FuzzyBarrier)
    fb = comm.fuzzy_barrier()
    fb.wait(timeout=60)
    def enter():
        return comm.fuzzy_barrier()
    enter().wait()
    speedes.SpComm_StartUp()
    speedes.SpComm_BarrierSync()
    speedes.SpComm_BarrierSync()
    for _ in range(2):
        speedes.SpComm_EnterFuzzyBarrier()
        while not speedes.SpComm_ExitFuzzyBarrier():
            pass
    comm.allreduce([comm.rank], op=spcomm.op(lambda a, b: a + b))
"""
LINES_OF_CALLS = [
    ("fuzzy_barrier", 5),
    ("fuzzy_barrier.wait", 5),
    ("fuzzy_barrier", 7),
    ("fuzzy_barrier.wait", 8),
    ("fuzzy_barrier", 10),
    ("fuzzy_barrier.wait", 11),
    ("barrier", 13),
    ("barrier", 14),
    ("fuzzy_barrier", 16),
    ("fuzzy_barrier.done", 17),  # once, when the answer is yes
    ("fuzzy_barrier", 16),
    ("fuzzy_barrier.done", 17),
    ("allreduce", 19),
]
HANDLERS = """
    import spcomm
    comm = spcomm.startup()
    found = []
    @comm.handler(tag=7)
    def work(message):
        with comm.region("handling"):
            found.append(sum(range(200_000)))
        comm.send("done", message.source, tag=8)
    if comm.rank == 0:
        comm.send("work", 1, tag=7)  # handled while node 1 waits
        comm.recv(source=1, tag=8)
        comm.send("work", 0, tag=7)  # handled by poll()
        comm.poll()
        comm.recv(tag=8)
        comm.send("go on", 1)
    else:
        comm.recv(source=0)
"""
FORKS = """
    import os, spcomm
    comm = spcomm.startup()
    comm.barrier()
    child = os.fork()
    if child == 0:
        refused = 0
        with comm.region("in the child"):
            for call in (comm.barrier, comm.poll, lambda: comm.send(1, 0), comm.fuzzy_barrier):
                try:
                    call()
                except spcomm.SpcommError:
                    refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    comm.barrier()
"""
MANY_NAMES = """
    import spcomm
    comm = spcomm.startup()
    comm.barrier()
    for step in range(3000):
        with comm.region(f"step {step}"):
            pass
    for number in range(50):
        exec(compile("comm.poll()", f"made{number}.py", "exec"))
    comm.barrier()
"""
SCRIBBLES = """
    import mmap, os, random, spcomm
    from spcomm import config
    comm = spcomm.startup()
    random.seed(comm.rank)
    comm.barrier()
    segment = mmap.mmap(config.membership().fd, 0)
    names = segment.find(b"barrier" + bytes(185) + b"program.py:6")
    for node in range(comm.rank):
        names = segment.find(b"barrier" + bytes(185) + b"program.py:6", names + 1)
    comm.barrier()
    slots = names + 2048 * 192
    for at in range(slots, slots + 16 * 64, 64):  # events that look whole, but for what they say
        segment[at:at + 8] = (1 + (at - slots) // 64).to_bytes(8, "little")
        segment[at + 8:at + 64] = random.randbytes(56)
        segment[at + 16] = random.randrange(1, 12)
    segment[names:slots] = random.randbytes(2048 * 192)
    segment[names - 48:names - 44] = random.randbytes(4)  # how many names
    segment[names - 64:names - 48] = (GARBAGE)
    os._exit(0)
"""
GARBAGE = {
    "events": "(16).to_bytes(8, 'little') + (16).to_bytes(8, 'little')",
    "capacity": "(16).to_bytes(8, 'little') + (1 << 50).to_bytes(8, 'little')",
    "count": "bytes([255] * 8) + (16).to_bytes(8, 'little')",
    "all": "random.randbytes(16)",
}
WHERE = {
    "one box": (),
    "two boxes": ("--boxes", 2),
    "dealt out": ("--map", "0,1,0,1"),
    "other processes": ("--start", "exec"),
}


def traced(launch, *options, text=PROGRAM, **more):
    result = launch(*options, "--trace", "t.json", launch.script(text), **more)
    return result, read(launch.folder / "t.json")


@pytest.mark.smoke
@pytest.mark.parametrize("n", [1, 2, 3, 4, 8])
def test_all_that_the_nodes_did_is_there(launch, n):
    result, trace = traced(launch, "-n", n)
    assert result.code == 0 and result.err == "", result
    check_story(trace, n)


@pytest.mark.slow
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
        assert lines["fuzzy_barrier"] == lines["fuzzy_barrier.wait"] == "program.py:11"
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


def test_ids_of_arrows_are_numbers_for_perfetto(launch, tmp_path):
    """It draws no arrow for an id that is no number in hexadecimal; both ends have the same."""
    traced(launch, "-n", 3)
    rows = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    ends = {kind: sorted(int(row["id"], 16) for row in rows if row["ph"] == kind) for kind in "sf"}
    assert ends["s"] == ends["f"] and len(set(ends["s"])) == 3 * STEPS
    assert ends["s"][-1] < 2**64


def test_threads_have_tracks(launch):
    result, trace = traced(launch, "-n", 2, text=THREADS)
    assert result.code == 0, result
    assert [(track.rank, track.thread) for track in trace.tracks] == [
        (r, t) for r in (0, 1) for t in range(3)
    ]
    for track in trace.tracks:
        assert sum(call.name == "recv" for call in track.calls) == 20
    assert len(trace.messages) == 2 * 3 * 20


def test_a_place_that_two_threads_learn_at_once_counts_its_references(launch):
    result, trace = traced(launch, "-n", 1, text=LEARNT_MEANWHILE)
    assert result.code == 0, result
    assert [len(track.regions) for track in trace.tracks] == [2]


def test_lines_are_those_of_the_program(launch):
    result, trace = traced(launch, "-n", 2, text=LINES)
    assert result.code == 0, result
    expected = [(name, f"program.py:{line}") for name, line in LINES_OF_CALLS]
    for track in trace.tracks:
        assert [(call.name, call.line) for call in track.calls if call.name != "close"] == expected
        assert not [wait for wait in track.waits if wait.line is not None and "program.py" not in wait.line]


def test_what_comes_before_startup_is_starting(launch):
    early = launch.script("import spcomm\ncomm = spcomm.startup()\nprint('live')\ncomm.barrier()\n")
    late = launch.script("import spcomm\ninput()\nspcomm.startup().barrier()\n", "late.py")
    both = ("-n", 1, early, ":", "-n", 1, late)
    process = launch.start("--trace", "t.json", "--stdin", 1, *both, stdin=subprocess.PIPE)
    assert read_lines(process, 1) == ["live"]
    result = launch.finish(process, b"go\n")
    first, second = read(launch.folder / "t.json").firsts()
    assert result.code == 0 and first.starting == 0 < second.starting, result
    assert second.begin <= min(call.begin for call in second.calls)


def test_what_handlers_do_is_computing(launch):
    result, trace = traced(launch, "-n", 2, text=HANDLERS)
    assert result.code == 0, result
    for track, around in zip(trace.tracks, ("poll", "recv"), strict=True):
        (handled,) = track.handlers
        (region,) = track.regions
        assert handled.begin <= region.begin <= region.end <= handled.end
        call = next(call for call in track.calls if call.name == around)
        assert call.begin <= handled.begin and handled.end <= call.end
        (answer,) = (call for call in track.calls if call.name == "send" and call.begin > handled.begin
                     and call.end < handled.end)  # fmt: skip
        computing = track.computing()
        ready = spans.union((*computing, *track.queued()))  # a busy machine gives it no core at times
        assert any(begin <= region.begin and region.end <= end for begin, end in ready)
        assert not any(begin < answer.end and answer.begin < end for begin, end in computing)
        assert not any(wait.begin < handled.end and handled.begin < wait.end for wait in track.waits)
        times = next(node for node in summarize(trace).nodes if node.name == track.name)
        assert times.computing + times.queued >= region.end - region.begin


@pytest.mark.parametrize("disabled", ["", "wipe_on_fork"])
def test_a_forked_process_leaves_the_trace_of_its_node_alone(launch, disabled):
    result, trace = traced(launch, "-n", 2, text=FORKS, env={"SPCOMM_DISABLE": disabled})
    assert result.code == 0, result
    for track in trace.tracks:
        assert [call.name for call in track.calls] == ["barrier", "barrier", "close"] and not track.regions


def test_names_that_have_no_room(launch):
    result, trace = traced(launch, "-n", 2, text=MANY_NAMES)
    assert result.code == 0, result
    left = 3000 - (NAMES_MAX - 3)  # "barrier", its line, that of the regions
    for track in trace.tracks:
        names = [region.name for region in track.regions]
        assert names.count(NO_ROOM) == left and names[:2] == ["step 0", "step 1"], names[-1]
        calls = [call for call in track.calls if call.name == NO_ROOM]
        assert len(calls) >= 50 and all(call.line is None for call in calls)
    assert ("without a name", str(trace.unnamed)) in [fact[:2] for fact in gaps(trace)]
    assert trace.unnamed >= 2 * (2 * left + 50)


@pytest.mark.spread("where")
@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("where", [(), ("--boxes", 2)], ids=["one box", "two boxes"])
def test_a_program_that_writes_over_its_trace(launch, garbage, where):
    text = SCRIBBLES.replace("GARBAGE", GARBAGE[garbage])
    if where:
        text = text.replace("range(comm.rank)", "range(comm.local_rank)")
    result, trace = traced(launch, "-n", 2, *where, text=text)
    assert (result.code, result.err) == (0, "") and trace.nodes == 2, result
    is_read = any(track.calls or track.waits or track.regions or track.handlers for track in trace.tracks)
    assert is_read == (garbage == "events")


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


@pytest.mark.slow
def test_other_hosts(launch, tmp_path):
    where = ("--host", "a:2,b:2", "--tunnel", "none", "--listen", "127.0.0.1")
    result, trace = traced(launch, *where, "--ssh", stand_in_for_ssh(tmp_path))
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
from spcomm.trace import remote_traces
right = remote_traces.packed
def wrong(fd, ranks):
    for rank, lost, piece in right(fd, ranks):
        yield {what}
remote_traces.packed = wrong
sys.argv = ["spcomm", "box"]
from spcomm.cli import main
sys.exit(main())
"""


@pytest.mark.slow
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
    (tmp_path / "b.box").write_text(FORGER.format(what=what))
    where = ("--host", "a:2,b:2", "--tunnel", "none", "--listen", "127.0.0.1")
    result, trace = traced(launch, *where, "--ssh", stand_in_for_ssh(tmp_path))
    assert result.code == 0, result
    said = [line for line in result.err.splitlines() if "warning" in line]
    assert len(said) == 1 and "Traceback" not in result.err, result
    assert re.fullmatch(
        r"spcomm: warning: box 1 \(host b\) sent a malformed trace \(.+\): "
        r"the part of nodes 2-3 is missing in t\.json", said[0]
    ), said  # fmt: skip
    assert [bool(track.calls) for track in trace.tracks] == [True, True, False, False]
    assert trace.missing == [2, 3] and gaps(trace)[-2][:2] == ("missing", "nodes 2-3")


def test_a_name_of_a_page_makes_the_page(launch):
    result = launch("-n", 2, "--trace", "t.html", launch.script(PROGRAM))
    assert result.code == 0 and result.err == "", result
    page = (launch.folder / "t.html").read_text()
    assert page.startswith("<!doctype html>") and '"nodes":2' in page
    assert sorted(os.listdir(launch.folder)) == ["program.py", "t.html"]


def test_the_page_of_a_failed_run(launch):
    result = launch("-n", 2, "--trace", "t.html", launch.script(KILLED))
    assert result.code == 128 + signal.SIGKILL, result
    assert (launch.folder / "t.html").read_text().startswith("<!doctype html>")


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


@pytest.mark.parametrize("before", [None, "the one before"])
def test_no_room_when_the_run_is_over(launch, before):
    """The launcher may write files of a few bytes only, and is told of it by an error."""
    trace = launch.folder / "t.json"
    if before is not None:
        trace.write_text(before)
    limit = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "from spcomm.trace import writing; from spcomm.launch import tracing; real = tracing.finish\n"
        "def finish(*words):\n    resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16)); return real(*words)\n"
        "tracing.finish = finish; from spcomm import cli; sys.argv[0] = 'spcomm'; sys.exit(cli.main())"
    )
    words = ["run", "-n", "1", "--trace", "t.json", launch.script("print('ran')")]
    words = [sys.executable, "-c", limit, *words]
    result = subprocess.run(words, cwd=launch.folder, capture_output=True, text=True, timeout=60)
    assert result.returncode == 125 and "ran" in result.stdout, result
    assert result.stderr == "spcomm: the trace cannot be written to t.json (File too large)\n"
    assert sorted(path.name for path in launch.folder.glob("t.json*")) == (["t.json"] if before else [])
    assert before is None or trace.read_text() == before


def test_more_nodes_than_cores(launch):
    many = 2 * os.cpu_count()
    _result, trace = traced(launch, "-n", many)
    assert ("cores", str(os.cpu_count())) in [fact[:2] for fact in gaps(trace)]
    _result, trace = traced(launch, "-n", 1)
    assert "cores" not in [fact[0] for fact in gaps(trace)]


def test_the_last_process_writes_nothing_else(launch):
    traced(launch, "-n", 2)
    assert sorted(os.listdir(launch.folder)) == ["program.py", "t.json"]
