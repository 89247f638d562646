# SPDX-License-Identifier: MIT
"""Rooms: `spcomm serve --room`, `spcomm join`, `spcomm run --room`; and `spcomm run --server`."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

import processes
from launching import STARTS
from leaks import wait_for_end
from processes import read_lines, read_until
from python_programs import FOUND, STDIN, written
from rooming import CODE, OTHER_CODE

SUMS = """
    import os, sys, spcomm
    from pathlib import Path
    comm = spcomm.startup()
    assert "SPCOMM_CODE" not in os.environ
    print(comm.rank, comm.box, comm.allreduce(comm.rank), Path("data/x.txt").read_text(), *sys.argv[1:], flush=True)
"""
WAITS = """
    import os, signal, spcomm
    comm = spcomm.startup()
    print(os.getpid(), flush=True)
    signal.pause()
"""


@pytest.fixture
def two(room):
    """A room with two members, and a program."""
    return with_two(room)


@pytest.fixture
def two_shortly(room):
    """The same; links of those who are killed, and say nothing more, are dead after so many seconds."""
    return with_two(room, "--link-timeout", 3)


def with_two(room, *options):
    room.serve("--room", *options)
    room.join("ann")
    room.join("bob")
    (room.folder / "data").mkdir()
    (room.folder / "data" / "x.txt").write_text("datum")
    return room


def one_sentence(result, *parts, code=125):
    """It ended with one line, which says this."""
    assert result.code == code and result.err.count("\n") == 1, result
    assert all(part in result.err for part in parts), result


# ---- what a room is for


@pytest.mark.smoke
def test_a_program_and_its_folder_run_on_the_members(two):
    result = two.run("-n", 5, two.script(SUMS), "x y", "'")
    assert result.code == 0 and result.err == "", result
    expected = [f"{rank} {box} 10 datum x y '" for rank, box in enumerate([0, 0, 0, 1, 1])]
    assert sorted(result.lines) == expected, result
    server, ann, bob = two.close_room()
    assert (server.code, ann.code, bob.code) == (0, 0, 0), (server, ann, bob)
    assert "runs program.py" in server.err and "on ann, bob" in server.err and "has ended" in server.err, (
        server
    )
    assert " runs program.py here" in bob.err, bob
    assert server.last == "spcomm: the room is closed" and bob.last == "spcomm: the room is closed"


@pytest.mark.slow
def test_what_python_starts_starts_on_members(two):
    written(two)
    for case in ("link", "absolute link", "bytes", "zip", "folder", "package", "code", "standard input"):
        words, stdin = FOUND[case], STDIN.get(case, b"")
        plain = two.python(*words, stdin=stdin)
        result = two.run("-n", 4, "--no-label", *words, stdin=stdin)
        assert result.code == 0 and result.err == "", (case, result)
        expected = json.loads(plain.out)
        for line in result.lines:
            found = json.loads(line)
            for name in (
                "path0",
                "file",
            ):  # below another folder, where links are the files that they lead to
                if os.path.isabs(found[name] or ""):
                    found[name] = os.path.normpath(found[name].replace(found["cwd"], expected["cwd"]))
                    expected[name] = os.path.realpath(expected[name])
            same = ("name", "package", "doc", "names", "loader", "file", "path0")
            assert [found[name] for name in same] == [expected[name] for name in same], case
            assert found["argv"][1:] == expected["argv"][1:] and len(result.lines) == 4
    two.close_room()


def test_both_commands_say_that_members_can_run_code(room):
    shown = room.serve("--room", env={"SPCOMM_CODE": None})
    assert (
        "Members can run programs on each other's machines" in shown and f"spcomm join {room.place}" in shown
    )
    code = shown.split("\n")[2].strip()
    assert len(code.split()) == 6 and "good until" in shown
    member = room.start("join", room.place, "--name", "ann", env={"SPCOMM_CODE": code})
    assert "members can run programs here" in read_until(member.stderr, "in the room: ann")
    room.members.append(member)
    room.close_room()


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.slow
def test_tracebacks_name_files_of_the_folder_that_was_sent(two, start):
    """In a module, too, and of an error that all members have: it is the same one, and shown once."""
    helper = two.script("def fail():\n    raise ValueError(__file__)\n", "part/helper.py")
    program = two.script(
        """
        import signal, spcomm
        from part import helper
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # when the other one has failed
        spcomm.startup().barrier()
        helper.fail()
        """
    )
    result = two.run("-n", 2, "--start", start, "--grace", 60, program)
    assert result.code == 1 and result.err.count("Traceback") == 1, result
    assert f'File "{program}", line 6' in result.err and f'File "{helper}", line 2' in result.err, result
    assert f"ValueError: {helper}" in result.err and "spcomm-room-" not in result.err, result
    assert "failed in the same way" in result.last, result
    (two.folder / "wrong.py").write_text("def f(:\n")
    if start == "fork":  # otherwise the interpreter prints it
        result = two.run("-n", 2, "wrong.py")
        assert f'File "{two.folder}/wrong.py", line 1' in result.err, result
        assert "spcomm-room-" not in result.err, result
    two.close_room()


@pytest.mark.slow
def test_the_code_from_standard_input_leaves_the_rest_to_the_program(two):
    program = two.script("import sys, spcomm; spcomm.startup(); print(sys.stdin.read())")
    stdin = f"{CODE.upper()}\nand more".encode()
    result = two.run("-n", 1, program, env={"SPCOMM_CODE": None}, stdin=stdin)
    assert result.code == 0 and result.out == "and more\n", result
    two.close_room()


@pytest.mark.slow
def test_one_member_and_as_many_nodes_as_it_has_slots(room):
    room.serve("--room")
    room.join("ann", "--nodes", "3")
    result = room.run("--label", room.script("import spcomm; print(spcomm.startup().size)"))
    assert result.code == 0 and sorted(result.lines) == [f"[{rank}] 3" for rank in range(3)], result
    room.close_room()


@pytest.mark.slow
def test_a_run_waits_for_members(room):
    room.serve("--room")
    run = room.start(
        "run", "--room", room.place, "--members", 2, "-n", 2, room.script(WAITS.replace("signal.pause()", ""))
    )
    read_until(run.stderr, "waiting for members: 0 of 2")
    room.join("ann")
    read_until(run.stderr, "waiting for members: 1 of 2")
    room.join("ann")  # the same name: the second is called otherwise
    result = room.finish(run)
    assert result.code == 0 and len(result.lines) == 2, result
    server, *_members = room.close_room()
    assert "on ann, ann-2" in server.err, server


@pytest.mark.slow
def test_a_failure_and_exit_codes(two):
    program = two.script(
        """
        import spcomm
        comm = spcomm.startup()
        comm.barrier()
        if comm.rank == 1:
            raise ValueError("as it should")
        comm.barrier()
        """
    )
    result = two.run("-n", 2, program)
    assert result.code == 1 and result.err.count("ValueError: as it should") == 1, result
    result = two.run("-n", 2, "sh", "-c", "exit 7")
    assert result.code == 7, result
    result = two.run("-n", 2, "nonesuch.py")
    assert result.code == 127 and "no such file" in result.last, result
    two.close_room()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_a_run_that_is_ended_leaves_the_room_as_it_was(two, number):
    run = two.start("run", "--room", two.place, "-n", 2, two.script(WAITS))
    nodes = [int(line) for line in read_lines(run, 2)]
    run.send_signal(number)
    assert two.finish(run).code == (130 if number == signal.SIGINT else -9)
    assert all(wait_for_end(pid, time.monotonic() + 60) for pid in nodes)
    read_until(two.server.stderr, "has ended")
    result = two.run("-n", 2, two.script(SUMS))
    assert result.code == 0, result
    two.close_room()


def test_a_member_that_is_killed_ends_the_run_with_its_name(two_shortly):
    run = two_shortly.start("run", "--room", two_shortly.place, "-n", 2, two_shortly.script(WAITS))
    nodes = [int(line) for line in read_lines(run, 2)]
    two_shortly.members[1].kill()
    result = two_shortly.finish(run)
    assert result.code == 125 and "bob" in result.last, result
    assert all(wait_for_end(pid, time.monotonic() + 60) for pid in nodes)
    read_until(two_shortly.server.stderr, "bob has left (1 member)")
    two_shortly.close_room()


@pytest.mark.slow
def test_a_box_that_is_killed_ends_the_run_with_the_name_of_its_member(two):
    run = two.start("run", "--room", two.place, "-n", 2, two.script(WAITS))
    read_lines(run, 2)
    boxes = [pid for pid in two.alive() if processes.name(pid) == "spcomm box"]
    assert len(boxes) == 2
    os.kill(max(boxes), signal.SIGKILL)
    result = two.finish(run)
    assert result.code == 125 and ("member bob" in result.last or "member ann" in result.last), result
    result = two.run("-n", 2, two.script(SUMS))  # the member is still one
    assert result.code == 0, result
    two.close_room()


def test_the_end_of_the_server_ends_everything(two):
    run = two.start("run", "--room", two.place, "-n", 2, two.script(WAITS))
    nodes = [int(line) for line in read_lines(run, 2)]
    server, *members = two.close_room()
    result = two.finish(run)
    assert result.code == 125 and "server" in result.last, result
    assert [one.code for one in (server, *members)] == [0, 0, 0], (server, members)
    assert all(wait_for_end(pid, time.monotonic() + 60) for pid in nodes)


@pytest.mark.slow
def test_a_server_that_is_killed_ends_everything(two_shortly):
    run = two_shortly.start("run", "--room", two_shortly.place, "-n", 2, two_shortly.script(WAITS))
    read_lines(run, 2)
    two_shortly.server.kill()
    result = two_shortly.finish(run)
    assert result.code == 125 and "ended" in result.last, result
    for member in two_shortly.members:
        found = two_shortly.finish(member)
        assert found.code == 125 and "has ended, or the network between has" in found.last, found


@pytest.mark.slow
def test_a_member_leaves_by_ctrl_c(two):
    bob = two.members.pop()
    bob.send_signal(signal.SIGINT)
    result = two.finish(bob)
    assert result.code == 0 and result.last == "spcomm: left the room", result
    read_until(two.server.stderr, "bob has left (1 member)")
    assert two.run("-n", 2, two.script(SUMS)).code == 0
    two.close_room()


# Hears of the end as soon as it has said how it may be ended.
PROMPT_END = """
import os, signal, sys
from spcomm.launch.room import member
say = member._say
def said(text):
    say(text)
    if "until you press Ctrl-C" in text:
        os.kill(os.getpid(), signal.SIGTERM)
member._say = said
sys.exit(member.main(sys.argv[1:]))
"""


def test_a_member_can_be_ended_as_soon_as_it_has_said_so(room):
    room.serve("--room")
    found = room.python("-c", PROMPT_END, room.place, "--name", "bob")
    assert found.code == 0 and found.err.endswith("spcomm: left the room\n"), found
    room.close_room()


def test_ctrl_z_where_the_code_is_asked_for(room):
    """It stops, and goes on to ask."""
    ours, theirs = os.openpty()
    words = ("run", "--room", "127.0.0.1:1", room.script(SUMS))
    process = room.start(*words, stdin=theirs, env={"SPCOMM_CODE": None})
    while b"six words: " not in os.read(process.stderr.fileno(), 4096):
        pass
    process.send_signal(signal.SIGTSTP)
    assert os.waitid(os.P_PID, process.pid, os.WSTOPPED) is not None
    process.send_signal(signal.SIGCONT)
    os.write(ours, b"\x04")  # the end of what is typed
    result = room.finish(process)
    assert result.code == 125 and "there was no code" in result.last, result
    os.close(ours)
    os.close(theirs)


def test_a_folder_that_is_too_large_is_not_sent(two):
    with (two.folder / "large.bin").open("wb") as file:
        file.truncate(65 << 20)
    one_sentence(two.run("-n", 2, two.script(SUMS)), "64M", "large.bin", "a folder of its own")
    two.close_room()


@pytest.mark.slow
def test_a_folder_of_some_size_arrives(two):
    (two.folder / "noise.bin").write_bytes(os.urandom(5_000_000))
    program = two.script(
        """
        import hashlib, spcomm
        comm = spcomm.startup()
        print(hashlib.sha256(open("noise.bin", "rb").read()).hexdigest())
        """
    )
    result = two.run("-n", 2, program)
    assert result.code == 0 and len(set(result.lines)) == 1 and len(result.lines) == 2, result
    two.close_room()


@pytest.mark.slow
def test_statistics(two):
    result = two.run("-n", 2, "--stats=all", two.script(SUMS))
    assert result.code == 0 and "statistics of the nodes" in result.err, result
    assert "frames between boxes" in result.err, result
    assert [line.split()[:2] for line in result.err.splitlines()[-4:]] == [
        ["0", "out"],
        ["0", "in"],
        ["1", "out"],
        ["1", "in"],
    ], result
    two.close_room()


@pytest.mark.parametrize("waits_for", ["members", "the code"])
def test_ctrl_c_before_anything_was_started(room, waits_for):
    room.serve("--room")
    words = ["run", "--room", room.place, "--members", 2, room.script(SUMS)]
    if waits_for == "members":
        run = room.start(*words)
        read_until(run.stderr, "waiting for members")
    else:
        ours, theirs = os.openpty()
        run = room.start(*words, stdin=theirs, env={"SPCOMM_CODE": None})
        os.close(theirs)
        assert b"six words" in run.stderr.read(200)
    run.send_signal(signal.SIGINT)
    result = room.finish(run)
    if waits_for == "the code":
        os.close(ours)
    assert result.code == 130 and "interrupted by Ctrl-C; nothing was started" in result.last, result
    room.close_room()


def test_a_code_is_asked_for_again(room):
    room.serve("--room")
    ours, theirs = os.openpty()
    member = room.start("join", room.place, "--name", "ann", stdin=theirs, env={"SPCOMM_CODE": None})
    os.close(theirs)
    for line in ("one two", CODE.replace("b", "x"), OTHER_CODE, CODE):
        os.write(ours, line.encode() + b"\n")
    found = read_until(member.stderr, "in the room: ann")
    assert "has 2" in found and "word 1 of that code is mistyped" in found, found
    assert "does not know that code" in found, found
    room.members.append(member)
    room.close_room()
    os.close(ours)


# ---- several programs

MEETS = """
    import os, sys, spcomm
    comm = spcomm.startup()
    place = open("place.txt").read()
    print(sys.argv[1], comm.group_id, comm.rank, comm.box, comm.allreduce(10 ** comm.rank), place, flush=True)
"""


def test_several_programs_and_groups(two):
    """Five nodes on two members, in the order of the command line: three on the first."""
    two.script(MEETS, "master.py")
    two.script(MEETS, "below/worker.py")
    (two.folder / "place.txt").write_text("top")
    (two.folder / "below" / "place.txt").write_text("below")
    result = two.run(
        "-n", 1, "--group", 1, "--stats=all", "master.py", "a", ":", "-n", 3, "--wdir", "below", "worker.py", "b",
        ":", "-n", 1, "--group", 1, "master.py", "c",
    )  # fmt: skip
    assert result.code == 0, result
    assert sorted(result.lines) == [
        "a 1 0 0 11 top",
        *(f"b 0 {rank} {box} 111 below" for rank, box in ((0, 0), (1, 0), (2, 1))),
        "c 1 1 1 11 top",
    ]
    assert [line.split()[0] for line in result.err.splitlines() if re.match(r"  \d:\d +out", line)] == [
        "0:0",
        "0:1",
        "1:0",
        "1:1",
    ], result
    server, _ann, bob = two.close_room()
    assert "runs master.py : worker.py (groups 1, 0), on ann, bob" in server.err, server
    assert "runs master.py : worker.py here" in bob.err, bob


@pytest.mark.slow
def test_a_map_and_a_debugger_on_members(two):
    """Ranks 0 and 2 are on the second member, and the debugger of rank 1 on the first has the standard input."""
    two.script("import spcomm\ncomm = spcomm.startup()\nprint(comm.rank, comm.box, comm.local_rank)\n")
    result = two.run(
        "--map", "1,0,1", "--debug=1", "program.py", stdin=b"next\nnext\np 'rank', comm.rank\nc\n"
    )
    assert result.code == 0 and "('rank', 1)" in result.out, result
    assert all(line in result.out for line in ("0 1 0\n", "1 0 0\n", "2 1 1\n")), result
    result = two.run("-n", 3, "--map", "cyclic", "program.py")
    assert sorted(result.lines) == ["0 0 0", "1 1 0", "2 0 1"], result


def test_programs_in_two_folders_are_not_sent(two):
    for name in ("one", "two"):
        two.script("", f"../{name}/x.py")
    result = two.run("-n", 1, "../one/x.py", ":", "-n", 1, "../two/x.py")
    one_sentence(
        result, "--room: sends one folder", "one", "two", "start the run in a folder that holds them all"
    )


def test_each_group_of_a_run_is_taken(two):
    program = two.script(WAITS)
    process = two.start(
        "run", "--room", two.place, "-n", 1, "--group", 1, program, ":", "-n", 1, "--group", 2, program
    )
    read_lines(process, 2)
    one_sentence(two.run("-n", 1, "--group", 2, program), "group 2 has a run already", "--group 0")
    process.send_signal(signal.SIGINT)
    assert two.finish(process).code == 130


def test_a_group_that_ends_lets_the_other_go_on(two):
    """The server hears of the end of each; the run is over with the last."""
    os.mkfifo(two.folder / "gate")
    waits = "import spcomm; c = spcomm.startup(); c.barrier(); c.rank or print('ready', flush=True); c.rank or input()"
    two.script(waits + "; c.barrier()", "waits.py")
    two.script("import spcomm; spcomm.startup().barrier(); print('over', flush=True)", "ends.py")
    process = two.start(
        "run", "--server", two.place, "--map", "0,1,0,1", "-n", 2, "waits.py", ":", "-n", 2, "--group", 1, "ends.py",
        stdin=subprocess.PIPE,
    )  # fmt: skip
    assert sorted(read_lines(process, 3)) == ["over", "over", "ready"]
    process.stdin.write(b"\n")
    process.stdin.close()
    process.stdin = None
    assert two.finish(process).code == 0


@pytest.mark.parametrize("role", ["room", "server"])
def test_a_deadlock_of_a_group(two, role):
    two.script("import spcomm, signal; spcomm.startup(); signal.pause()", "waits.py")
    two.script("import spcomm; c = spcomm.startup(); c.recv(1 - c.rank)", "stuck.py")
    where = (
        ("--room", two.place) if role == "room" else ("--server", two.place, "--boxes", 2, "--map", "cyclic")
    )
    result = two("run", *where, "-n", 1, "waits.py", ":", "-n", 2, "--group", 4, "stuck.py")
    assert result.code == 99 and "DEADLOCK — both nodes of group 4 wait" in result.err, result


# ---- what goes wrong


def test_a_wrong_code(two):
    other = {"SPCOMM_CODE": OTHER_CODE}
    one_sentence(two.run("-n", 2, two.script(SUMS), env=other), "does not know that code")
    one_sentence(two("join", two.place, env=other), "spcomm join:", "does not know that code")
    one_sentence(two("join", two.place, env={"SPCOMM_CODE": "one two"}), "6 words")
    one_sentence(two("join", two.place, env={"SPCOMM_CODE": None}), "SPCOMM_CODE")
    one_sentence(two("join", two.place, "word"), "never stands on a command line")
    two.close_room()


@pytest.mark.slow
def test_an_expired_code(room):
    room.serve("--room", "--expires", "1s")
    while "has expired" not in room("doctor", room.place).out:
        pass
    one_sentence(room("join", room.place), "spcomm join:", "has expired", "good until")
    one_sentence(room.run("-n", 1, room.script(SUMS)), "spcomm run:", "has expired")
    room.close_room()


@pytest.mark.slow
def test_who_is_in_stays_when_the_code_expires(room):
    room.serve("--room", "--expires", "6s")
    room.join("ann")
    run = room.start(
        "run",
        "--room",
        room.place,
        "-n",
        2,
        room.script("import sys, spcomm\nspcomm.startup().barrier()\nprint(flush=True)\nsys.stdin.read()"),
        stdin=-1,
    )
    read_lines(run, 2)
    while "has expired" not in room("doctor", room.place).out:
        pass
    result = room.finish(run, b"")
    assert result.code == 0, result
    room.close_room()


def test_a_full_room(room):
    room.serve("--room", "--max-members", "1")
    room.join("ann")
    one_sentence(room("join", room.place), "the room is full: it has 1 member,")
    one_sentence(room.run("--members", 2, room.script(SUMS)), "--members 2", "at most 1")
    room.close_room()


@pytest.mark.slow
def test_two_runs_of_one_group(two):
    run = two.start("run", "--room", two.place, "-n", 2, two.script(WAITS, "waits.py"))
    read_lines(run, 2)
    program = two.script(SUMS)
    one_sentence(two.run("-n", 2, program), "group 0 has a run already: ", "waits.py", "--group 1")
    result = two.run("-n", 2, "--group", 1, program)
    assert result.code == 0 and len(result.lines) == 2, result
    run.send_signal(signal.SIGINT)
    two.finish(run)
    two.close_room()


def test_a_server_that_is_no_room(room):
    room.serve()
    one_sentence(room("join", room.place), "no room", "--room")
    one_sentence(room.run("-n", 1, room.script(SUMS)), "no room", "--server")
    room.close_room()


def test_a_port_that_is_taken(room):
    room.serve()
    one_sentence(room("serve", "--listen", room.place), f"port {room.port} is taken", "--listen")
    room.close_room()


def test_a_code_that_is_none(room):
    one_sentence(room("serve", env={"SPCOMM_CODE": "a b"}), "6 words", "$SPCOMM_CODE")


# ---- a server without a room


@pytest.mark.slow
@pytest.mark.smoke
def test_runs_of_several_boxes_at_one_server(room):
    room.serve()
    (room.folder / "data").mkdir()
    (room.folder / "data" / "x.txt").write_text("datum")
    program = room.script(SUMS)
    waiting = room.start("run", "--server", room.place, "--boxes", 2, "-n", 2, room.script(WAITS, "waits.py"))
    read_lines(waiting, 2)
    words = ["run", "--server", room.place, "--boxes", 3, "-n", 4]
    one_sentence(room(*words, program), "group 0 has a run already", "--group 1")
    for _time in range(2):
        result = room(*words, "--group", 1, program)
        assert result.code == 0 and sorted(line[:5] for line in result.lines) == [
            "0 0 6",
            "1 0 6",
            "2 1 6",
            "3 2 6",
        ], result
    waiting.send_signal(signal.SIGINT)
    assert room.finish(waiting).code == 130
    [server] = room.close_room()
    assert server.code == 0 and server.err.count("has ended") == 4, server


def test_the_end_of_a_server_ends_its_runs(room):
    """At once: its machine closes the connections, and refuses others."""
    room.serve("--link-timeout", 3600)
    run = room.start("run", "--server", room.place, "--boxes", 2, "-n", 2, room.script(WAITS))
    read_lines(run, 2)
    room.server.kill()
    result = room.finish(run)
    assert result.code == 125 and f"the server at {room.place} has ended" in result.last, result
    assert room.finish(room.server).code == -signal.SIGKILL


def test_a_launcher_that_is_killed_ends_its_run_at_the_server(room):
    """A gateway reports it, so its group is free at once."""
    room.serve("--link-timeout", 3600)
    run = room.start("run", "--server", room.place, "--boxes", 2, "-n", 2, room.script(WAITS))
    read_lines(run, 2)
    run.kill()
    assert room.finish(run).code == -signal.SIGKILL
    read_until(room.server.stderr, f"program.py of {os.uname().nodename} has ended")
    room.close_room()
