# SPDX-License-Identifier: MIT
"""Several programs in one run: they share ranks, messages and reductions, whatever each of them is."""

import os
import signal

import pytest

from processes import parent, read_lines
from spcomm.launch.cmdline.environment import THREADS

# Each node tells its place, and adds up what all have: every program takes part in the same operations.
MEETS = """
    import os, sys, spcomm
    comm = spcomm.startup()
    total = comm.global_sum(10 ** comm.rank)
    print(os.path.basename(sys.argv[0]), *sys.argv[1:], comm.rank, comm.size, total, os.environ.get("COLOUR"))
"""
# The same, told by a program that cannot join: field 2 is the rank, 3 the size, 7 the group.
PLACE = 'IFS=:; set -- $SPCOMM_NODE; echo "sh $2 $3 $7 $COLOUR"'


def ranks(process, count):
    """The lines `rank pid` of that many nodes, by rank."""
    return dict(tuple(map(int, line.split())) for line in read_lines(process, count))


def test_programs_share_ranks_in_the_order_of_the_command_line(launch, start):
    one, two = launch.script(MEETS, "one.py"), launch.script(MEETS, "two.py")
    result = launch(
        "-n", 2, *start, one.name, "a", ":", "-n", 1, *start, two.name, ":", "-n", 2, one.name, "b"
    )
    assert result.code == 0 and result.err == "", result
    assert sorted(result.lines) == [
        *(f"one.py a {rank} 5 11111 None" for rank in (0, 1)),
        *(f"one.py b {rank} 5 11111 None" for rank in (3, 4)),
        "two.py 2 5 11111 None",
    ]


def test_a_script_and_a_module_and_both_ways_to_start(launch):
    launch.script(MEETS, "one.py")
    launch.script(MEETS, "package/tool.py")
    launch.script("", "package/__init__.py")
    result = launch(
        "-n", 1, "one.py", ":", "-n", 2, "-m", "package.tool", "x", ":", "-n", 1, "--start", "exec", "one.py"
    )
    assert result.code == 0, result
    assert sorted(result.lines) == [
        "one.py 0 4 1111 None",
        "one.py 3 4 1111 None",
        "tool.py x 1 4 1111 None",
        "tool.py x 2 4 1111 None",
    ]


@pytest.mark.slow
def test_each_program_has_its_own_environment(launch, start):
    script = launch.script(MEETS)
    result = launch(
        "-n", 1, "-x", "COLOUR=red", *start, script, ":", "-n", 1, "-x", "COLOUR", *start, script,
        ":", "-n", 1, "-x", "COLOUR=", *start, script, ":", "-n", 1, *start, script,
        env={"COLOUR": "blue"},
    )  # fmt: skip
    assert result.code == 0, result
    colours = {line.split(" ")[1]: line.split(" ")[4] for line in result.lines}
    assert colours == {"0": "red", "1": "blue", "2": "", "3": "blue"}


def test_an_environment_of_nothing_but_what_is_named(launch, start):
    script = launch.script("import os; print(sorted(os.environ))")
    result = launch(
        "-n", 1, "--env", "none", "-x", "COLOUR", "-x", "SPCOMM_TEST_TOKEN", "-x", "PYTHONPATH", *start, script,
        env={"COLOUR": "blue", "OTHER": "1"},
    )  # fmt: skip
    names = {
        "COLOUR",
        "SPCOMM_TEST_TOKEN",
        "PYTHONPATH",
        "PYTHONHASHSEED",
        *THREADS,
    }
    found = set(eval(result.lines[0])) - {
        "LC_CTYPE",
        "SPCOMM_NODE",
        "SPCOMM_REPORT",
        "SPCOMM_JOINED",
        "MPI4PY_LIBMPI",
        "PYTHONUNBUFFERED",
    }
    assert result.code == 0 and found == names, result


def test_an_executable_takes_part_as_a_node(launch):
    """It does not join, but has its place; the others exchange messages around it."""
    launch.script(
        "import spcomm\ncomm = spcomm.startup()\nprint(comm.sendrecv(comm.rank, 2 - comm.rank, 2 - comm.rank))",
        "ends.py",
    )
    result = launch(
        "-n", 1, "ends.py", ":", "-n", 1, "-x", "COLOUR=red", "sh", "-c", PLACE, ":", "-n", 1, "ends.py"
    )
    assert result.code == 0, result
    assert sorted(result.lines) == ["0", "2", "sh 1 3 0 red"]


def test_a_program_may_run_in_a_folder_of_its_own(launch, start):
    launch.script("import os, sys, helper; print(os.getcwd(), sys.argv[0], helper.value)", "inner/tool.py")
    launch.script("value = 'found'", "inner/helper.py")
    launch.script("import os; print(os.getcwd())", "outer.py")
    result = launch("-n", 1, "--wdir", "inner", *start, "tool.py", ":", "-n", 1, *start, "outer.py")
    assert result.code == 0, result
    here = os.path.realpath(launch.folder)
    assert sorted(result.lines) == sorted([f"{here}/inner tool.py found", here])


def test_a_module_and_an_executable_are_found_from_that_folder(launch):
    launch.script("import os; print('module', os.path.basename(os.getcwd()))", "inner/tool.py")
    launch.script("#!/bin/sh\necho script $(basename $(pwd)) $(basename $PWD)", "inner/run").chmod(0o755)
    words = ("-n", 1, "--wdir", "inner", "-m", "tool", ":", "-n", 1, "--wdir=inner", "./run")
    result = launch(*words, ":", "-n", 1, "--wdir", "inner", "--start", "exec", "-m", "tool")
    assert result.code == 0, result
    assert sorted(result.lines) == ["module inner", "module inner", "script inner inner"]


@pytest.mark.slow
def test_hashes_of_strings_are_the_same_in_all_programs(launch, start):
    script = launch.script("print(hash('spcomm'))")
    for extra in ((), ("-x", "PYTHONHASHSEED=random"), ("-x", "PYTHONHASHSEED=5")):
        result = launch("-n", 2, *start, script, ":", "-n", 2, *start, *extra, script)
        assert result.code == 0 and len(result.lines) == 4 and len(set(result.lines)) == 1, result


@pytest.mark.slow
def test_stdin_goes_to_the_first_program(launch, start):
    script = launch.script("import sys, spcomm; print(spcomm.startup().rank, sys.stdin.read())")
    result = launch("-n", 2, "--group", 5, *start, script, ":", "-n", 2, *start, script, stdin=b"words")
    assert sorted(result.lines) == ["0 ", "0 words", "1 ", "1 "], result


def test_an_escaped_colon_reaches_the_program(launch, start):
    script = launch.script("import sys; print(sys.argv[1:])")
    assert launch("-n", 1, *start, script, "a", r"\:", r"\\:", "b:").lines == [str(["a", ":", r"\:", "b:"])]


@pytest.mark.slow
def test_more_nodes_than_fit_into_one_message(launch):
    script = launch.script(
        """
        import spcomm
        comm = spcomm.startup()
        assert comm.global_sum(comm.rank) == 40 * 79 and comm.size == 80
        if comm.rank == 79: print(comm.size)
        """
    )
    result = launch("-n", 40, script, ":", "-n", 40, script)
    assert result.code == 0 and result.lines == ["80"], result


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("missing.py",), ("-m", "no_such_module_xyz"), ("--preload", "no_such_module_xyz", "b.py")]
)
@pytest.mark.parametrize("first", [True, False])
def test_nothing_starts_if_one_program_cannot(launch, words, first):
    """The other one leaves a file, if it ever runs."""
    launch.script("pass", "b.py")
    good = ("-n", 4, launch.script("open('ran', 'w')", "good.py"))
    bad = ("-n", 1, *words)
    result = launch(*bad, ":", *good) if first else launch(*good, ":", *bad)
    assert result.code == (125 if "--preload" in words else 127), result
    assert not (launch.folder / "ran").exists() and not launch.alive()


def test_a_failure_in_the_second_program_ends_the_run(launch, start):
    waits = launch.script("import signal, spcomm\nspcomm.startup().barrier()\nsignal.pause()", "waits.py")
    fails = launch.script(
        "import spcomm\nspcomm.startup().barrier()\nraise ValueError('the cause')", "fails.py"
    )
    result = launch("-n", 2, *start, waits, ":", "-n", 1, *start, fails, ":", "-n", 1, *start, waits)
    assert result.code == 1, result
    assert (
        result.last
        == "spcomm: node 2 ended with an uncaught ValueError (exit code 1); the other nodes were stopped"
    )
    assert result.err.count("Traceback") == 1 and "ValueError: the cause" in result.err


def test_a_node_lost_in_another_program_is_named(launch, start):
    head = "import os, signal, spcomm\ncomm = spcomm.startup()\n"
    survives = launch.script(
        head
        + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ncomm.barrier()\n"
        + "try: comm.recv(1)\nexcept spcomm.NodeLostError as error: print(comm.rank, 'lost', error.rank)\n",
        "survives.py",
    )
    dies = launch.script(head + "comm.barrier()\nos.kill(os.getpid(), signal.SIGKILL)", "dies.py")
    # The survivors have something to say after they are told to end.
    first = ("-n", 1, "--grace", 60, *start, survives)
    result = launch(*first, ":", "-n", 1, *start, dies, ":", "-n", 1, *start, survives)
    assert result.code == 137, result
    assert sorted(result.lines) == ["0 lost 1", "2 lost 1"]
    assert result.last.startswith("spcomm: node 1 was killed by SIGKILL (exit code 137)")


def test_the_run_is_over_when_all_programs_have_ended(launch, start):
    """The first one ends at once; nothing of the second is cut off."""
    late = launch.script("import sys; sys.stdin.close(); print('late')", "late.py")
    result = launch("-n", 1, "true", ":", "-n", 1, *start, late, ":", "-n", 1, "sh", "-c", "read x; echo end")
    assert result.code == 0 and sorted(result.lines) == ["end", "late"], result


# One pause is not enough: it ends when the launcher asks where the node is.
WAITS = """
    import os, signal, sys, spcomm
    comm = spcomm.startup()
    def wait_here():
        print(comm.rank, os.getpid(), flush=True); any(iter(signal.pause, 0))
    wait_here()
"""


def test_ctrl_c_ends_all_programs_and_tells_where_they_were(launch):
    one, two = launch.script(WAITS, "one.py"), launch.script(WAITS, "two.py")
    process = launch.start(
        "-n", 2, one, ":", "-n", 1, two, ":", "-n", 1, "sh", "-c", "echo 3 $$; exec tail -f /dev/null"
    )
    assert sorted(ranks(process, 4)) == [0, 1, 2, 3]
    process.send_signal(signal.SIGINT)
    result = launch.finish(process)
    assert result.code == 130 and not launch.alive(), result
    assert result.err.splitlines() == [
        "spcomm: where the nodes were:",
        "  nodes 0-1  one.py:5 in wait_here",
        "  node 2     two.py:5 in wait_here",
        "  node 3     running",
        "spcomm: interrupted by Ctrl-C (exit code 130); the nodes were stopped",
    ]


def test_ctrl_c_while_one_of_them_still_imports(launch):
    launch.script("print('importing', flush=True)\nimport signal\nsignal.pause()", "endless.py")
    script = launch.script("open('ran', 'w')")
    process = launch.start("-n", 2, "--grace", 1000, script, ":", "-n", 2, "--preload", "endless", script)
    assert read_lines(process, 1) == ["importing"]
    process.send_signal(signal.SIGINT)
    result = launch.finish(process)
    assert result.code == 130 and not (launch.folder / "ran").exists(), result


def test_a_timeout_ends_all_programs(launch, start):
    script = launch.script(WAITS)
    result = launch(
        "-n", 1, *start, script, ":", "-n", 1, "--timeout", "1.5", *start, "--grace", "0.5", script
    )
    assert result.code == 124 and not launch.alive(), result
    assert "longer than --timeout 1.5 s" in result.last and "where the nodes were" in result.err


def test_kill_9_of_one_fork_server_ends_all_programs(launch, start):
    one, two = launch.script(WAITS, "one.py"), launch.script(WAITS, "two.py")
    process = launch.start("-n", 2, *start, one, ":", "-n", 2, *start, two)
    nodes = ranks(process, 4)
    assert parent(nodes[0]) == parent(nodes[1]) != parent(nodes[2]) == parent(nodes[3])
    os.kill(parent(nodes[3]), signal.SIGKILL)
    result = launch.finish(process)
    assert result.code == 125 and not launch.alive(), result
    whose = f"the process that starts the nodes of {two}"
    assert result.last == f"spcomm: {whose} was killed by SIGKILL while it ran the nodes"
