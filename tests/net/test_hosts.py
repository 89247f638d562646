# SPDX-License-Identifier: MIT
"""Boxes on hosts that ssh reaches: a stand-in for ssh, and the real one on loopback where there is an sshd."""

import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time

import pytest

import leaks
import processes
from leaks import wait_for_end
from pairwise import each
from processes import WATCHDOG_S, read_lines
from python_programs import FOUND, STDIN, written
from spcomm.launch.cmdline import machines
from spcomm.launch.cmdline.environment import THREADS
from spcomm.launch.cmdline.options import parse
from spcomm.launch.remote import versions
from spcomm.launch.remote.framing import GREETING, FrameError, Frames

SUMS = """
    import sys, spcomm
    comm = spcomm.startup()
    print(comm.rank, comm.box, comm.local_rank, comm.allreduce(comm.rank), *sys.argv[1:], flush=True)
"""
WAITS = """
    import os, signal, spcomm
    comm = spcomm.startup()
    print(os.getpid(), flush=True)
    signal.pause()
"""
FAILS = """
    import spcomm
    comm = spcomm.startup()
    comm.barrier()
    if comm.rank == 2:
        raise ValueError("as it should")
    comm.barrier()
"""


# A box that says something else than what happens there.
FORGER = """\
import sys
from spcomm.launch.remote.framing import Frames
right = Frames.send
def send(self, message, data=b""):
    verb, *rest = message
    right(self, {forged} or message, data)
Frames.send = send
sys.argv = ["spcomm", "box"]
from spcomm.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "forged",
    each(
        3,
        [
            "verb == 'exited' and ['failed', 'all is well\\x1b[2J', 0]",
            "verb == 'ready' and ['ready', 'x']",
            "verb == 'started' and ['started', rest[0], 5]",
            "verb == 'started' and ['started', [0, 1], rest[1]]",
            "verb == 'exited' and ['exited', 0, 0]",
            "verb == 'exited' and ['exited', rest[0]]",
            "verb == 'exited' and ['exited', 2, 0]",
            "verb == 'exited' and ['exited', rest[0], 1 << 40]",
            "verb == 'exited' and ['exited', True, 0]",
            "verb == 'exited' and ['report', 0, 'X']",
            "verb == 'exited' and ['deadlock', 0, [[0, 1, 2]]]",
            "verb == 'exited' and ['deadlock', 0, [[0, 'ff' * 936, [1]]]]",
            "verb == 'exited' and ['deadlock', 0, 5]",
            "verb == 'exited' and ['deadlock', 0, []]",
            "verb == 'exited' and ['deadlock', 1, []]",
            "verb == 'noted' and ['noted', [[1, {}]]]",
            "verb == 'noted' and ['noted', 5]",
        ],
    ),
)
def test_a_box_that_says_what_cannot_be(launch, ssh, tmp_path, forged):
    (tmp_path / "b.box").write_text(FORGER.format(forged=forged))
    where = ("--host", "a:2,b:2", "--tunnel", "none", "--listen", "127.0.0.1")
    result = launch(*where, "--ssh", ssh, launch.script("import spcomm; spcomm.startup().barrier()"))
    assert result.code == 125 and "Traceback" not in result.err and "\x1b" not in result.err, result
    assert result.last.startswith("spcomm: host b: ")


# ---- options


@pytest.mark.parametrize(
    ("words", "hosts", "boxes"),
    [
        ("--host a:4,b:2 x", "a b", "000011"),
        ("--host=a,me@b:2 x", "a me@b", "011"),
        ("-n 5 --host a:4,b:4,c:4 x", "a b", "00001"),
        ("-n 8 --host b,c x", "b c", "00001111"),
        ("-n 5 --host a:1,b,c x", "a b c", "01122"),
        ("-n 1 --host a:1,b,c x", "a", "0"),
        ("--host a:2,a:1 x", "a a", "001"),
        ("--host a:3,b:1,c:2 --map cyclic x", "a b c", "012020"),
        ("-n 4 --host a,b --map cyclic x", "a b", "0101"),
        ("--host a,b --map 0,1,1,0 x", "a b", "0110"),
        ("--host a:2,b:2,c --map 1,0 x", "a b", "10"),
        ("-n 1 --host a m : -n 8 --host b,c w", "a b c", "0 11112222"),
        ("-n 1 --host b m : --host a:2,b:1 w", "b a", "0 110"),
        ("-n 1 --host a:1,a:1 m : --host a:1,a:2 w", "a a", "0 011"),
        ("-n 2 m : -n 2 --host a,b w", "localhost a b", "00 12"),
        ("-n 2 --host a,localhost m : -n 2 w", "a localhost", "01 11"),
        ("-n 2 --host a m : -n 3 --host a,b --map 0,0,1,0,1 w", "a b", "00 101"),
    ],
)
def test_hosts_and_their_nodes(words, hosts, boxes):
    options = parse(words.split())
    assert options.hosts == hosts.split()
    assert ["".join(map(str, part.boxes)) for part in options.parts] == boxes.split()
    assert [part.nodes for part in options.parts] == [len(some) for some in boxes.split()]


def test_a_file_of_hosts(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("# ours\nalpha slots=4\n\nbeta:2  # slow\ngamma\n")
    assert machines.read("--hostfile", str(path)) == [("alpha", 4), ("beta", 2), ("gamma", None)]


# ---- versions, frames


def test_versions_that_differ():
    ours = {"spcomm": "1.2", "python": "3.12.1", "numpy": "2.1.0", "order": "little"}
    assert versions.compare("a", {**ours, "python": "3.12.7", "numpy": "2.0.2"}, ours) == ("", "")
    error, _ = versions.compare("a", {**ours, "spcomm": "1.1"}, ours)
    assert "host a has spcomm 1.1" in error and "1.2" in error
    assert "endian" in versions.compare("a", {**ours, "order": "big"}, ours)[0]
    error, warning = versions.compare("a", {**ours, "python": "3.11.1", "numpy": "1.26"}, ours)
    assert not error and "Python 3.11.1 there" in warning and "NumPy 1.26 there" in warning


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_frames_in_pieces_after_noise(step):
    down, up = os.pipe(), os.pipe()
    ours, theirs = Frames(down[0], up[1], False), Frames(up[0], down[1], True)
    try:
        os.write(down[1], b"Welcome\n")
        theirs.greet()
        theirs.send(["out", 3, 1], b"\0\xff" * 100)
        theirs.send(["name", "\udce9"])
        data, found = os.read(down[0], 1 << 20), []
        for at in range(0, len(data), step):
            os.write(down[1], data[at : at + step])
            found += ours.receive()
        assert found == [(["out", 3, 1], b"\0\xff" * 100), (["name", "\udce9"], b"")]
        os.write(down[1], b"\xff" * 8)
        with pytest.raises(FrameError):
            ours.receive()
    finally:
        for fd in (*down, *up):
            os.close(fd)
    assert GREETING.startswith(b"\0")


# ---- runs, by a stand-in


@pytest.mark.smoke
@pytest.mark.parametrize(
    "where", [["a:2,b:1"], ["localhost:2,b:1"], ["a:2,b:1", "--listen", "127.0.0.1"]], ids=" ".join
)
def test_nodes_on_two_hosts(launch, ssh, where):
    result = launch("--host", *where, "--ssh", ssh, launch.script(SUMS), "x y", "'")
    assert result.code == 0, result
    assert sorted(result.lines) == ["0 0 0 3 x y '", "1 0 1 3 x y '", "2 1 0 3 x y '"]
    assert ("boxes connect to 127.0.0.1:" in result.err) == ("--listen" in where), result


@pytest.mark.parametrize("case", ["link", "bytes", "zip", "folder", "package", "code", "standard input"])
@pytest.mark.slow
def test_what_python_starts_starts_on_hosts(launch, ssh, case):
    written(launch)
    words, stdin = FOUND[case], STDIN.get(case, b"")
    plain = launch.python(*words, stdin=stdin)
    result = launch("--host", "a:1,b:1", "--no-label", "--ssh", ssh, *words, stdin=stdin)
    assert result.code == 0, result
    found, expected = [json.loads(line) for line in result.lines], json.loads(plain.out)
    del expected["stdin"], found[0]["stdin"], found[1]["stdin"]
    assert found == [expected] * 2


def test_one_host_alone(launch, ssh):
    result = launch("--host", "a:2", "--ssh", ssh, "--label", "--stats", launch.script(SUMS))
    assert result.code == 0 and sorted(result.lines) == ["[0] 0 0 0 1", "[1] 1 0 1 1"], result
    assert "statistics of the nodes" in result.err, result


def test_the_first_failure_is_shown_once(launch, ssh):
    result = launch("--host", "a:2,b:2", "--ssh", ssh, launch.script(FAILS))
    assert result.code == 1 and result.err.count("ValueError: as it should") == 1, result
    assert result.last.startswith("spcomm: node 2 ended with an uncaught ValueError (exit code 1)"), result


def test_an_exit_code(launch, ssh):
    result = launch("--host", "a:1,b:1", "--ssh", ssh, "sh", "-c", "exit 7")
    assert result.code == 7 and "exit code 7" in result.last, result


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_to_a_relay(launch, ssh, number):
    process = launch.start("--host", "a:1", "--ssh", ssh, launch.script(WAITS))
    read_lines(process, 1)
    (relay,) = processes.children(process.pid)
    os.kill(relay, number)
    result = launch.finish(process)
    assert result.code == 125, result
    assert result.err == f"spcomm: host a: the process here that reaches it was killed by {number.name}\n", (
        result
    )


SENT = b"".join(b"line %d\n" % number for number in range(100_000))


def test_a_crash_there_names_its_last_line(launch, ssh):
    text = "import os, signal, spcomm\nif spcomm.startup().rank == 3:\n    os.abort()\nsignal.pause()\n"
    result = launch("--host", "a:2,b:2", "--ssh", ssh, launch.script(text))
    assert "node 3 was killed by SIGABRT (exit code 134), last at program.py:3;" in result.last, result


def test_standard_input_reaches_nodes_there(launch, ssh):
    result = launch("--host", "a:1,b:1", "--ssh", ssh, "--stdin", "1", "cat", stdin=SENT)
    assert result.code == 0 and result.raw == SENT, (result.code, len(result.raw), result.err)


def test_a_file_as_standard_input_reaches_nodes_there(launch, ssh, tmp_path):
    (tmp_path / "sent").write_bytes(SENT)
    with open(tmp_path / "sent", "rb") as file:
        result = launch.finish(
            launch.start("--host", "a:1,b:1", "--ssh", ssh, "--stdin", "all", "cat", stdin=file)
        )
    assert result.code == 0 and sorted(result.raw.split()) == sorted(2 * SENT.split()), result.err


def test_a_deadlock_in_the_only_box(launch, ssh):
    ring = launch.script("import spcomm\ncomm = spcomm.startup()\ncomm.recv((comm.rank + 1) % comm.size)")
    result = launch("--host", "a:3", "--ssh", ssh, ring)
    assert result.code == 99 and "SP101" in result.err, result
    assert "nodes 0-2  recv(source=rank" in result.err, result


def test_every_library_there_has_the_count_of_openmp(launch, ssh):
    text = f"import os; print(*(os.environ.get(name) for name in {[*THREADS]}))"
    result = launch("--host", "a:1", "--ssh", ssh, "--no-label", launch.script(text))
    assert result.lines == [" ".join(["1"] * len(THREADS))], result


def test_variables(launch, ssh):
    program = launch.script("import os; print(os.environ.get('GIVEN'), os.environ.get('SPCOMM_SAID'))")
    result = launch("--host", "a:1", "--ssh", ssh, "-x", "GIVEN=1 2", program, env={"SPCOMM_SAID": "so"})
    assert result.lines == ["1 2 so"], result


@pytest.mark.slow
def test_a_timeout_ends_them_all(launch, ssh):
    result = launch("--host", "localhost:1,b:1", "--ssh", ssh, "--timeout", "4", launch.script(WAITS))
    assert result.code == 124 and "--timeout 4" in result.last, result


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(launch, ssh, number, code):
    process = launch.start("--host", "a:1,b:1", "--ssh", ssh, launch.script(WAITS))
    read_lines(process, 2)
    process.send_signal(number)
    assert launch.finish(process).code == code


def test_the_launcher_is_killed(launch, ssh):
    process = launch.start("--host", "a:1,b:1", "--ssh", ssh, launch.script(WAITS))
    read_lines(process, 2)
    process.kill()
    launch.finish(process)  # and the fixture sees that nothing is left


def test_a_box_is_killed(launch, ssh):
    process = launch.start("--host", "a:1,b:1", "--ssh", ssh, launch.script(WAITS))
    read_lines(process, 2)
    box = next(pid for pid, command in launch.alive().items() if command.rstrip().endswith("-m spcomm box"))
    os.kill(box, signal.SIGKILL)
    result = launch.finish(process)
    assert result.code == 125 and "the connection to it has ended" in result.last, result


# Between the launcher and a box: what is stopped there is a network that is cut, of which nobody is told.
WAY = """\
import os, subprocess, sys, threading
def pump(source, target):
    while data := os.read(source, 1 << 16):
        os.write(target, data)
box = subprocess.Popen([sys.executable, "-m", "spcomm", "box"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
threading.Thread(target=pump, args=(box.stdout.fileno(), 1), daemon=True).start()
pump(0, box.stdin.fileno())
"""


@pytest.mark.linux("a descriptor of a process")
@pytest.mark.slow
def test_a_host_alone_that_is_cut_off_ends_its_nodes(launch, ssh, tmp_path):
    (tmp_path / "a.box").write_text(WAY)
    process = launch.start("--host", "a:1", "--link-timeout", 5, "--ssh", ssh, launch.script(WAITS))
    [node] = map(int, read_lines(process, 1))
    way = next(pid for pid, command in launch.alive().items() if command.rstrip().endswith("a.box"))
    watched = os.pidfd_open(node)
    os.kill(way, signal.SIGSTOP)
    try:
        assert select.select([watched], [], [], WATCHDOG_S)[0]
    finally:
        os.close(watched)
        os.kill(way, signal.SIGKILL)
    assert launch.finish(process).code == 125


def test_ssh_has_no_terminal_to_ask_at(launch):
    """For a password, say: it is not in the foreground, and would be stopped."""
    ours, theirs = os.openpty()
    try:
        process = launch.start(
            "--host", "a:1", "--ssh", "sh -c 'read word </dev/tty; exit 3'", launch.script(SUMS), stdin=theirs,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        result = launch.finish(process)
    finally:
        os.close(ours)
        os.close(theirs)
    assert result.code == 125 and "before a box was started there" in result.err, result


def test_another_version_there(launch, tmp_path):
    fake = tmp_path / "other"
    hello = '["hello",{"spcomm":"0.0.1","python":"3.1","numpy":"2.0","order":"little"}]'
    lengths = f"\\{len(hello):03o}" + 7 * "\\000"
    fake.write_text(f"#!/bin/sh\nprintf '\\000spcomm-box-1\\n{lengths}{hello}'; cat >&2\n")
    fake.chmod(0o755)
    result = launch("--host", "a:1", "--ssh", str(fake), launch.script(SUMS))
    assert result.code == 125 and "host a has spcomm 0.0.1" in result.last, result
    assert len(result.err.splitlines()) == 1, result


# ---- several programs

MEETS = """
    import os, sys, spcomm
    comm = spcomm.startup()
    name, place = os.path.basename(sys.argv[0]), os.path.basename(os.getcwd())
    print(name, comm.group_id, comm.rank, comm.box, comm.allreduce(10 ** comm.rank), place, os.environ.get("GIVEN"))
"""


def test_programs_on_hosts_of_their_own(launch, ssh):
    master, worker = launch.script(MEETS, "master.py"), launch.script(MEETS, "worker.py")
    (launch.folder / "below").mkdir()
    result = launch(
        "-n", 1, "--host", "a", "--ssh", ssh, "--stats", master,
        ":", "-n", 3, "--host", "b,a", "-x", "GIVEN=1", "--wdir", "below", worker,
    )  # fmt: skip
    assert result.code == 0, result
    here, total = launch.folder.name, 1111
    assert sorted(result.lines) == [
        f"master.py 0 0 0 {total} {here} None",
        *(f"worker.py 0 {rank} {box} {total} below 1" for rank, box in ((1, 1), (2, 1), (3, 0))),
    ]
    assert re.findall(r"^  (\w+) ", result.err, re.MULTILINE)[:6] == ["node", "0", "1", "2", "3", "all"], (
        result
    )


@pytest.mark.parametrize("start", ["fork", "exec"])
def test_groups_and_programs_share_hosts(launch, ssh, start):
    """A program without --host runs here; one of group 2 alone has no other box."""
    script = launch.script(MEETS)
    result = launch(
        "-n", 1, "--group", 1, "--ssh", ssh, "--route", "direct", "--tunnel", "none", "--listen", "127.0.0.1", script,
        ":", "-n", 3, "--host", "a:1,b:2", "--group", 1, "--start", start, script,
        ":", "-n", 2, "--host", "b", "--group", 2, script,
        ":", "-n", 2, "--host", "b,a", "--group", 3, script,
    )  # fmt: skip
    assert result.code == 0, result
    boxes = {1: [0, 1, 2, 2], 2: [0, 0], 3: [1, 0]}
    assert sorted(result.lines) == [
        f"program.py {group} {rank} {box} {int('1' * len(of_group))} {launch.folder.name} None"
        for group, of_group in boxes.items()
        for rank, box in enumerate(of_group)
    ]


def test_a_map_of_hosts(launch, ssh):
    script = launch.script(SUMS)
    result = launch("--host", "localhost:3,b:2", "--map", "0,0,1,0,1", "--ssh", ssh, script)
    table_1 = [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1)]
    assert result.code == 0, result
    assert sorted(result.lines) == [f"{rank} {box} {local} 10" for rank, (box, local) in enumerate(table_1)]


TWO = ("--host", "a,b")
GOES_WRONG = """
    import os, signal, sys, spcomm
    comm = spcomm.startup()
    comm.barrier()
    if comm.group_id == 2 and comm.rank == 1:
        {}
    comm.barrier() if comm.group_id == 2 else signal.pause()
"""


@pytest.mark.parametrize(
    ("what", "code", "parts"),
    [
        (
            "raise ValueError('so')",
            1,
            ["ValueError: so", "node 1 of group 2 ended with an uncaught ValueError"],
        ),
        (
            "os.abort()",
            134,
            ["node 1 of group 2 was killed by SIGABRT (exit code 134), last at program.py:6"],
        ),
        ("sys.exit(7)", 7, ["node 1 of group 2 ended with exit code 7"]),
        ("comm.recv(0)", 99, ["DEADLOCK", "of group 2"]),
        (
            "os.kill(os.getppid(), signal.SIGKILL)",
            125,
            ["the process that starts the nodes of ", "program.py there was killed"],
        ),
    ],
)
@pytest.mark.parametrize("hosts", [TWO, pytest.param(("--host", "b"), marks=pytest.mark.slow)], ids=" ".join)
def test_what_goes_wrong_in_a_group_names_its_node(launch, ssh, what, code, parts, hosts):
    launch.script("import signal, spcomm; spcomm.startup().barrier(); signal.pause()", "other.py")
    script = launch.script(GOES_WRONG.format(what))
    if code == 99:
        script.write_text(script.read_text().replace("comm.barrier() if", "comm.recv(1) if"))
    result = launch(
        "-n", 2, "--group", 1, *TWO, "--ssh", ssh, "--grace", 1, "other.py",
        ":", "-n", 2, "--group", 2, *hosts, script,
    )  # fmt: skip
    assert result.code == code and all(part in result.err for part in parts), result


def test_what_groups_leave_on_hosts(launch, ssh):
    leaves = """
        import spcomm
        comm = spcomm.startup()
        if comm.rank == 0: comm.send("never received", 1, tag=comm.group_id)
        comm.barrier()
    """
    script = launch.script(leaves)
    result = launch(
        "-n", 2, "--group", 1, *TWO, "--ssh", ssh, "--strict", script, ":", "-n", 2, "--group", 2, *TWO, script
    )  # fmt: skip
    assert result.code == 1, result
    for group in (1, 2):
        assert re.search(rf"from node 0 +to node 1 +tag {group} +sent at program.py:4", result.err), result
    assert "of group 1, node" in result.last and "of group 2" in result.last, result


def test_a_trace_of_programs_on_hosts(launch, ssh):
    one, two = launch.script(SUMS, "one.py"), launch.script(SUMS, "two.py")
    path = launch.folder / "t.json"
    result = launch("-n", 1, "--trace", path, "--ssh", ssh, one, ":", "-n", 2, "--host", "b,a", two)
    about = json.loads(path.read_text())["otherData"]
    assert result.code == 0 and about["program"] == "one.py : two.py" and about["map"] == [0, 1, 2], result
    assert not about["missing"]


# ---- a debugger there


@pytest.mark.parametrize("start", ["fork", "exec"])
def test_pdb_on_a_host(launch, ssh, start):
    script = launch.script("import spcomm\ncomm = spcomm.startup()\ncomm.barrier()\n")
    commands = b"next\nnext\np 'rank', comm.rank\nc\n"
    result = launch(
        "-n", 1, script, ":", "-n", 2, "--host", "a,b", "--ssh", ssh, "--debug=2", "--start", start, script,
        stdin=commands,
    )  # fmt: skip
    assert result.code == 0 and "('rank', 2)" in result.out, result


def test_a_debugger_there_has_no_pane_here(launch, ssh):
    result = launch("-n", 2, "--host", "a", "--ssh", ssh, "--debug=all", "--window", "all", "-m", "this")
    assert result.code == 125 and "nodes 0-1 on a: a pane has a keyboard of this machine" in result.last, (
        result
    )


# ---- the real ssh


@pytest.fixture
def sshd(tmp_path):
    """An sshd on loopback, with keys and settings of its own; the value of --ssh."""
    daemon, keygen = shutil.which("sshd") or "/usr/sbin/sshd", shutil.which("ssh-keygen")
    if not os.path.exists(daemon) or keygen is None or shutil.which("ssh") is None:
        pytest.skip("needs ssh, ssh-keygen and sshd")
    if os.geteuid() == 0:  # as the system's own start of sshd does; it stays, since another test may use it
        os.makedirs("/run/sshd", 0o755, exist_ok=True)
    for name in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = tmp_path / "sshd_config"
    settings.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {tmp_path}/user.pub\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    process = subprocess.Popen([daemon, "-D", "-e", "-f", settings], stderr=(tmp_path / "log").open("wb"))
    command = (
        f"ssh -F none -p {port} -i {tmp_path}/user -o BatchMode=yes -o IdentitiesOnly=yes -o LogLevel=INFO "
        f"-o StrictHostKeyChecking=no -o UserKnownHostsFile={tmp_path}/known"
    )
    try:
        # ssh itself waits until somebody listens.
        first = [*command.split(), "-o", "ConnectionAttempts=20", "127.0.0.1", "true"]
        if subprocess.run(first, stderr=subprocess.PIPE).returncode:
            pytest.skip(f"this sshd lets nobody in: {(tmp_path / 'log').read_text()[-300:]}")
        yield command
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("tunnel", ["ssh", "none"])
def test_through_the_real_ssh(launch, sshd, tunnel):
    result = launch(
        "--host", "127.0.0.1:2,127.0.0.1:1", "--ssh", sshd, "--tunnel", tunnel, launch.script(SUMS)
    )
    assert result.code == 0, result
    assert sorted(result.lines) == ["0 0 0 3", "1 0 1 3", "2 1 0 3"]
    assert "Allocated" not in result.err, result


def test_the_real_ssh_is_killed(launch, sshd):
    process = launch.start("--host", "127.0.0.1:1,localhost:1", "--ssh", sshd, launch.script(WAITS))
    nodes = [int(line) for line in read_lines(process, 2)]
    found = next(
        pid
        for pid, command in launch.alive().items()
        if command.startswith("ssh ") and "spcomm box" in command
    )
    os.kill(found, signal.SIGKILL)
    result = launch.finish(process)
    assert result.code == 125 and "the connection to it has ended" in result.last, result
    assert all(wait_for_end(pid, time.monotonic() + 30) for pid in nodes)


# A command that reaches a host, and does not notice when its other end is killed; srun is like that.
DEAF = """
    import os, signal, subprocess, sys
    if sys.argv[1] == "here":
        subprocess.Popen([sys.executable, __file__, *sys.argv[2:]])
        signal.pause()
    box = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with open(f"{sys.argv[1]}.pid", "w") as file:
        file.write(str(os.getpid()))
    if os.fork() == 0:
        box.stdin.close()
        while data := os.read(box.stdout.fileno(), 65536):
            os.write(1, data)
        os._exit(0)
    while data := os.read(0, 65536):
        os.write(box.stdin.fileno(), data)
"""


@pytest.mark.parametrize("route", ["relay", "direct"])
def test_a_far_end_that_is_killed_unnoticed(launch, route):
    """The box tells the server, whose connection is another one."""
    reach = f"{sys.executable} {launch.script(DEAF, 'deaf.py')} here {{host}}"
    process = launch.start(
        "--host", "a:1,b:1", "--reach", reach, "--listen", "127.0.0.1", "--route", route, launch.script(WAITS)
    )
    nodes = [int(line) for line in read_lines(process, 2)]
    os.kill(int((launch.folder / "b.pid").read_text()), signal.SIGKILL)
    result = launch.finish(process)
    assert result.code == 125 and result.last.startswith("spcomm: host b: the connection to it has ended"), (
        result
    )
    assert all(wait_for_end(pid, time.monotonic() + WATCHDOG_S) for pid in nodes)


def test_a_box_that_is_told_to_end(launch, ssh):
    """SIGTERM, which a scheduler sends to all processes of a step, is the reason, and not that nodes were killed."""
    process = launch.start("--host", "a:1,b:1", "--ssh", ssh, launch.script(WAITS))
    read_lines(process, 2)
    found = [pid for pid, command in launch.alive().items() if command.endswith("-m spcomm box")]
    box = next(pid for pid in found if leaks.parent_of(pid) not in found)  # its gateway is a fork of it
    os.kill(box, signal.SIGTERM)
    result = launch.finish(process)
    assert result.code == 143 and "the box there was told to end by SIGTERM (exit code 143)" in result.last, (
        result
    )
