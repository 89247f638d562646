# SPDX-License-Identifier: MIT
"""C and C++ programs, compiled as `spcomm config` says: alone, forking by themselves, and under `spcomm run`."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
CSRC = HERE.parent / "csrc"
API_TESTS = [
    "test_api_message.c",
    "test_api_collective.c",
    "test_api_collective_gathering.c",
    "test_api_collective_array.c",
]
SIZES = [1, 2, 4]
FEATURES_OFF = {"SPCOMM_DISABLE": "memfd,futex,pidfd,epoll,wipe_on_fork"}


def api_program(compiler, name):
    return compiler(CSRC / name, "-D_GNU_SOURCE")


@pytest.mark.smoke
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", API_TESTS)
def test_c_under_the_launcher(name, n, compiler, launch):
    result = launch("-n", n, api_program(compiler, name))
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", API_TESTS)
def test_c_forks_by_itself(name, n, compiler, alone):
    assert alone(api_program(compiler, name), n) == (0, "", "")


def test_c_without_the_features_of_linux(compiler, alone):
    assert alone(api_program(compiler, "test_api_message.c"), 2, env=FEATURES_OFF) == (0, "", "")


@pytest.mark.smoke
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("name", "says"), [("paper", "all is well\n"), ("wrong", "all is refused\n")])
def test_cxx_under_the_launcher(name, says, n, compiler, launch):
    result = launch("-n", n, "--no-label", compiler(PROGRAMS / f"{name}.cpp"))
    assert (result.code, result.out, result.err) == (0, says * n, "")


def test_the_network_calls_reach_other_boxes(compiler, launch):
    result = launch("-n", 3, "--boxes", 2, "--no-label", compiler(PROGRAMS / "paper.cpp"))
    assert (result.code, result.out, result.err) == (0, "all is well\n" * 3, "")


@pytest.mark.parametrize(("name", "says"), [("paper", "all is well\n"), ("wrong", "all is refused\n")])
def test_cxx_alone(name, says, compiler, alone):
    assert alone(compiler(PROGRAMS / f"{name}.cpp")) == (0, says, "")


@pytest.mark.stress
@pytest.mark.parametrize("name", API_TESTS)
def test_memory_is_clean(name, compiler, alone):
    """The C tests run under sanitizers, too (tests/csrc); this one sees reads of what nobody has written."""
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind")
    options = ["-q", "--leak-check=full", "--errors-for-leak-kinds=definite", "--error-exitcode=9"]
    code, out, err = alone(shutil.which("valgrind"), *options, api_program(compiler, name), 1)
    assert (code, out) == (0, ""), err


# ---- how a node begins


@pytest.fixture
def life(compiler):
    return compiler(PROGRAMS / "life.c", "-D_GNU_SOURCE")


def test_alone_it_is_a_run_of_one(life, alone):
    assert alone(life, "place") == (0, "node 0 of 1 in group 0\n", "")


def test_another_launcher_tells_too_little_to_join(life, alone):
    others = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"}
    code, out, err = alone(life, "place", env=others)
    assert (code, out) == (40, "") and "the 4 processes of mpiexec cannot be one run" in err
    assert f"`spcomm run -n 4 {life}`" in err and "SPCOMM_ALONE=1" in err
    one = (0, "node 0 of 1 in group 0\n", "")
    assert alone(life, "place", 1, env=others) == one
    assert alone(life, "place", env=others | {"SPCOMM_ALONE": "1"}) == one


def test_it_learns_its_place(life, launch):
    result = launch("-n", 3, "--no-label", life, "place")
    assert sorted(result.lines) == [f"node {rank} of 3 in group 0" for rank in range(3)]


def test_a_program_that_a_node_executes_in_its_own_place(life, launch, alone):
    said = "spcomm_startup(): this process was node 0 of 1 until it executed this program in its own place"
    result = launch("-n", 1, life, "execute")
    assert (result.code, result.out) == (40, "") and said in result.err, result
    code, out, err = alone(life, "execute", 2)
    # The first one that fails stops the other one, which may not have executed the program yet.
    assert out == "" and re.search("was node [01] of 2 until it executed", err), (code, err)
    assert alone(life, "execute", 1) == (0, "node 0 of 1 in group 0\n", "")


@pytest.mark.parametrize("arguments", [(3,), (3, 3), (0, 3)])
def test_it_forks(arguments, life, alone):
    code, out, err = alone(life, "place", *arguments)
    assert (code, sorted(out.splitlines()), err) == (
        0,
        [f"node {rank} of 3 in group 0" for rank in range(3)],
        "",
    )


def test_the_infile_gives_what_is_0(life, alone, tmp_path):
    infile = tmp_path / "run.toml"
    infile.write_text("local_nodes = 2  # here\ngroup_id = 7\n")
    code, out, err = alone(life, "place", 0, 0, 0, infile)
    assert (code, sorted(out.splitlines()), err) == (
        0,
        ["node 0 of 2 in group 7", "node 1 of 2 in group 7"],
        "",
    )
    assert alone(life, "place", 1, 0, 5, infile) == (0, "node 0 of 1 in group 5\n", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nodes = 2\n", [":1: ", "nodes", "local_nodes"]),
        ("\nlocal_nodes = -2\n", [":2: "]),
        ('server = "box:5000"\n', ["total_nodes=0", "names a server", "in all"]),
        ("local_nodes = 3\ntotal_nodes = 2\n", ["total_nodes=2", "run.toml)"]),
        ("local_nodes = 3\ntotal_nodes = 4\n", ["total_nodes=4", "run.toml)"]),
        ("local_nodes = 3000\n", ["3000", "1024", "run.toml)"]),
    ],
)
def test_a_wrong_infile(text, words, life, alone, tmp_path):
    infile = tmp_path / "run.toml"
    infile.write_text(text)
    code, out, err = alone(life, "place", 0, 0, 0, infile)
    assert (code, out) == (40, "")
    assert [word for word in ["spcomm_startup(", *words] if word not in err] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-1,), ["local_nodes=-1", "0 or more"]),
        ((4, 3), ["total_nodes=3", "fewer"]),
        ((2, 4), ["total_nodes=4", "other machines", "server = "]),
        ((2000,), ["2000", "1024"]),
        ((0, 0, -1), ["group_id=-1"]),
    ],
)
def test_wrong_numbers(arguments, words, life, alone):
    code, out, err = alone(life, "place", *arguments)
    assert (code, out) == (40, "")
    assert [word for word in words if word not in err] == []


def test_numbers_that_contradict_the_launcher(life, launch):
    result = launch("-n", 2, life, "place", 3)
    assert result.code == 40
    assert "spcomm_startup(local_nodes=3): this run was started with 2 nodes; give 2 or 0" in result.err


def test_boxes_of_c_cxx_and_python_meet(compiler, life, room, tmp_path):
    """The box process is the command spcomm of PATH; without one, a sentence says what to install."""
    room.serve()
    program = compiler(PROGRAMS / "meet.cpp")
    python = room.script(
        "import sys, spcomm\nprint(spcomm.startup(1, 4, infile=sys.argv[-1]).global_sum(1))\n"
    )
    path = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    boxes = [
        room.box(program, infile="ranks = [0, 2]", env=path),
        room.box(life, "sum", 1, 4, 0, infile="ranks = [3]", name="c.toml", env=path),
        room.box(sys.executable, python, infile="ranks = [1]", name="python.toml"),
    ]
    cxx, c, py = map(room.finish, boxes)
    assert (cxx.code, sorted(cxx.lines)) == (0, ["node 0 of 4: 4", "node 2 of 4: 4"]), cxx
    assert (c.code, c.out) == (0, "node 3 of 4: 4\n"), c
    assert (py.code, py.out) == (0, "4\n"), py
    alone = room.finish(room.box(program, infile="ranks = [0, 2]", env={"PATH": str(tmp_path)}))
    assert alone.code == 1 and "no command spcomm in PATH; it comes with the Python package" in alone.err, (
        alone
    )


def test_local_nodes_are_those_of_the_box(life, launch):
    result = launch("-n", 5, "--map", "0,0,1,0,1", "--no-label", life, "place", 0, 5)
    assert sorted(result.lines) == [f"node {rank} of 5 in group 0" for rank in range(5)], result
    result = launch("-n", 4, "--boxes", 2, "--no-label", life, "place", 2, 4)
    assert sorted(result.lines) == [f"node {rank} of 4 in group 0" for rank in range(4)], result
    result = launch("-n", 4, "--boxes", 2, life, "place", 4)
    assert result.code == 40
    assert "(local_nodes=4): this run has 2 of its 4 nodes in this box; give 2 or 0" in result.err


def test_an_infile_that_contradicts_the_launcher(life, launch, tmp_path):
    infile = tmp_path / "run.toml"
    infile.write_text("local_nodes = 3\n")
    result = launch("-n", 2, life, "place", 0, 0, 0, infile)
    assert result.code == 40
    assert f"start it with spcomm run -n 3 (what was 0 in the call comes from {infile})" in result.err


@pytest.mark.parametrize(
    "place",
    ["9:0:2:1:1:1", "0:0:2:1:1:1:0", "x", "", "1:2:3", "99999999999999999999:0:1:1:1:1", "3:0:2:1:1:1:5:6"],
)
def test_a_place_that_is_none(place, life, alone):
    """Left over from a parent, say: then it is alone."""
    assert alone(life, "place", env={"SPCOMM_NODE": place}) == (0, "node 0 of 1 in group 0\n", "")


def test_six_fields_are_a_place_too(compiler, launch, life):
    """The group is the seventh, which older launchers do not give."""
    program = launch.script(f"""
        import os, sys
        place = os.environ["SPCOMM_NODE"].split(":")
        fd = int(place[0])
        os.environ["SPCOMM_NODE"] = ":".join(place[:6])
        os.execv({str(life)!r}, [{str(life)!r}, "place"])
    """)
    result = launch("-n", 2, "--no-label", "--start", "exec", program)
    assert sorted(result.lines) == ["node 0 of 2 in group 0", "node 1 of 2 in group 0"], result


# ---- how it ends


@pytest.mark.parametrize("n", [2, 4])
def test_who_forgets_to_shut_down_loses_nothing(n, life, launch):
    result = launch("-n", n, "--no-label", life, "forget")
    assert (result.code, result.lines, result.err) == (0, ["got all"] * n, "")


def test_an_exit_status_is_told(life, launch):
    """Node 1 returns 3 from main, with nothing said: the others hear of it, and it is the run's exit code."""
    result = launch("-n", 3, "--no-label", life, "exit")
    assert result.code == 3, result
    assert "node 1 ended with exit code 3" in result.last


def test_a_killed_node_is_named(life, launch):
    result = launch("-n", 3, "--no-label", "--grace", 30, life, "kill")
    assert result.code == 128 + 9, result
    assert "node 1 was killed by SIGKILL" in result.last


def test_a_finished_node_is_named(life, launch):
    result = launch("-n", 3, "--no-label", life, "finish")
    words = [
        "spcomm_recv(source=1, tag=5): node 1 has finished.",
        "It will send nothing more, and no such message is left.     (spcomm explain SP104)",
    ]
    assert (result.code, result.lines, result.err) == (0, words * 2, "")


@pytest.mark.parametrize("start", ["launcher", "fork"])
def test_a_forked_child_is_no_node(start, life, launch, alone):
    if start == "launcher":
        result = launch("-n", 2, "--no-label", life, "child")
        code, out, err = result.code, result.out, result.err
    else:
        code, out, err = alone(life, "child", 2)
    assert (code, out, err) == (0, "the child ended with 0\n" * 2, "")


@pytest.mark.linux("looks into /proc")
def test_a_program_started_by_a_node_is_no_node(life, launch):
    result = launch("-n", 2, "--no-label", life, "program")
    assert (result.code, result.lines) == (0, ["clean"] * 2), result


# ---- nodes that wait for ever


@pytest.fixture
def deadlock(compiler):
    return compiler(PROGRAMS / "deadlock.c", "-D_GNU_SOURCE")


@pytest.mark.parametrize("mode", ["circle", "barrier"])
def test_a_deadlock_of_c_programs(mode, deadlock, alone, launch):
    """The supervisor that the program has forked says what the launcher says."""
    code, out, err = alone(deadlock, mode, 3)
    assert (code, out) == (99, ""), err
    assert err.startswith("spcomm: DEADLOCK — all 3 nodes wait, and no message is on its way\n")
    assert "(spcomm explain SP101)" in err
    result = launch("-n", 3, "--no-label", deadlock, mode, 0)
    assert (result.code, result.err) == (99, err)


def test_long_waits_are_no_deadlock(deadlock, alone):
    assert alone(deadlock, "long", 3) == (0, "", "")


def report_alone(program, why):
    return (
        "spcomm_recv(source=0, tag=7): DEADLOCK — the node waits, and no message is on its way\n"
        f"  node 0  recv(source=0, tag=7)\n  This program runs as one node because {why}"
        "     (spcomm explain SP101)\n"
    )


def test_alone_an_endless_wait_fails(deadlock, alone):
    why = f"it was started without spcomm run.\n  Try: spcomm run -n 4 {deadlock}"
    assert alone(deadlock, "circle", 0) == (1, "", report_alone(deadlock, why))
    why = "spcomm_startup, or its infile, asks for one; more nodes may be meant."
    assert alone(deadlock, "circle", 1) == (1, "", report_alone(deadlock, why))


def test_alone_a_timer_may_end_a_wait(deadlock, alone):
    assert alone(deadlock, "timer", 0) == (0, "", "")


@pytest.mark.parametrize(("mode", "words"), [("thread", "another thread"), ("interrupt", "a signal handler")])
def test_alone_a_warning_says_what_may_end_a_wait(mode, words, deadlock, launch):
    """That does so as soon as the warning has come."""
    command = [deadlock, mode, "0"]
    with subprocess.Popen(
        command, env=launch.environment(None), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        first = program.stderr.readline()
        if mode == "interrupt":
            program.send_signal(signal.SIGINT)
        program.stdin.close()
        rest = program.stderr.read()
        assert program.wait(60) == 0, rest
    assert re.match(rf"spcomm: warning: the node has been waiting for \d+ s, and only {words} of", first), (
        first
    )
    assert rest.endswith(f"  Try: spcomm run -n 4 {deadlock}     (spcomm explain SP101)\n")
