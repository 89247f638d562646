# SPDX-License-Identifier: MIT
"""Groups: worlds of their own, that run at the same time and never see each other's messages."""

import os
import signal

import pytest

from processes import read_lines

# Much traffic with the same tags in both groups, of all sizes; what it carries names the group.
TALKS = """
    import sys, numpy as np, spcomm
    comm, group = spcomm.startup(), int(sys.argv[1])
    following, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for number in range(150):
        data = bytes([group]) * (number * number)
        comm.send((group, comm.rank, number, data), following, tag=number % 3)
        assert comm.recv(tag=number % 3) == (group, before, number, data), number
        assert comm.global_sum(group * 1000 ** comm.rank) == sum(group * 1000 ** rank for rank in range(comm.size))
        assert comm.global_max(np.full(100, float(group))).tolist() == [group] * 100
    comm.barrier()
    assert comm.try_recv_message() is None
    print(comm.group_id, comm.rank, comm.size)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [(), ("--slots", 1, "--ring", 4096, "--arena", 0)], ids=["default", "tiny"]
)
def test_groups_never_mix(launch, start, options):
    script = launch.script(TALKS)
    result = launch(
        "-n", 3, "--group", 1, *options, *start, script, 1, ":", "-n", 2, "--group", 2, *start, script, 2,
        ":", "-n", 1, "--group", 1, *start, script, 1,
    )  # fmt: skip
    assert result.code == 0, result
    assert sorted(result.lines) == [*(f"1 {rank} 4" for rank in range(4)), "2 0 2", "2 1 2"]


def test_groups_do_not_wait_for_each_other(launch):
    """One is over before the other has got what it waits for."""
    os.mkfifo(launch.folder / "gate")
    first = launch.script(
        "import spcomm\ncomm = spcomm.startup()\ncomm.barrier()\nprint('first')", "first.py"
    )
    second = launch.script(
        """
        import spcomm
        comm = spcomm.startup()
        if comm.rank == 0: open("gate").read()
        comm.barrier()
        print("second")
        """,
        "second.py",
    )
    process = launch.start("-n", 2, "--group", 1, first, ":", "-n", 2, "--group", 2, second)
    assert read_lines(process, 2) == ["first"] * 2
    with open(launch.folder / "gate", "w"):
        pass
    result = launch.finish(process)
    assert result.code == 0 and result.lines == ["second"] * 2, result


def test_an_executable_is_told_its_group(launch):
    words = ("sh", "-c", 'IFS=:; set -- $SPCOMM_NODE; echo "$7 $2 $3 $4:$5"')
    result = launch("-n", 2, "--group", 7, *words, r"\:", ":", "-n", 1, *words)
    assert result.code == 0, result
    places = sorted(line.rsplit(" ", 1) for line in result.lines)
    assert [place for place, _segment in places] == ["0 0 1", "7 0 2", "7 1 2"]
    assert places[1][1] == places[2][1] != places[0][1], "each group has memory of its own"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("groups", "labels"), [((1, 2), ["[1:0] x", "[1:1] x", "[2:0] x"]), ((5, 5), ["[0] x", "[1] x", "[2] x"])]
)
def test_labels_name_the_group_if_there_are_several(launch, groups, labels):
    script = launch.script("print('x')")
    result = launch("-l", "-n", 2, "--group", groups[0], script, ":", "-n", 1, "--group", groups[1], script)
    assert sorted(result.lines) == labels, result


SURVIVES = """
    import os, signal, sys, spcomm
    comm = spcomm.startup()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    print(NAME, comm.rank, os.getpid(), flush=True)
    signal.sigwait({signal.SIGTERM})
    print("told", NAME, comm.rank)
"""


def test_a_node_killed_in_one_group_ends_the_other(launch, start):
    one = launch.script(SURVIVES.replace("NAME", "'a'"), "one.py")
    two = launch.script(SURVIVES.replace("NAME", "'b'"), "two.py")
    process = launch.start("-n", 2, "--group", 1, *start, one, ":", "-n", 2, "--group", 2, *start, two)
    pids = {tuple(line.split()[:2]): int(line.split()[2]) for line in read_lines(process, 4)}
    os.kill(pids["b", "1"], signal.SIGKILL)
    result = launch.finish(process)
    assert result.code == 137, result
    assert sorted(result.lines) == ["told a 0", "told a 1", "told b 0"]
    assert result.last == "spcomm: node 1 of group 2 was killed by SIGKILL (exit code 137)"


def test_a_loss_is_felt_in_its_own_group_only(launch, start):
    """The other group goes on exchanging messages when the first has seen that it lost a node."""
    for gate in ("ready", "lost"):  # opened for reading they wait for a writer
        os.mkfifo(launch.folder / gate)
    dies = launch.script(
        """
        import os, signal, spcomm
        comm = spcomm.startup()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        comm.barrier()
        if comm.rank == 1:
            open("ready").read()
            os.kill(os.getpid(), signal.SIGKILL)
        try: comm.recv(1)
        except spcomm.NodeLostError as error: print("lost", error.rank)
        open("lost", "w").close()
        """,
        "dies.py",
    )
    lives = launch.script(
        """
        import signal, spcomm
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        comm = spcomm.startup()
        comm.barrier()
        if comm.rank == 0:
            open("ready", "w").close()
            open("lost").read()
        for number in range(100):
            assert comm.sendrecv(number, 1 - comm.rank, 1 - comm.rank) == number
            comm.barrier()
        print("went on")
        """,
        "lives.py",
    )
    first = ("-n", 2, "--group", 1, "--grace", 60, *start, dies)
    result = launch(*first, ":", "-n", 2, "--group", 2, *start, lives)
    assert result.code == 137, result
    assert sorted(result.lines) == ["lost 1", "went on", "went on"]


def test_exceptions_of_nodes_of_the_same_rank_are_told_apart(launch, start):
    """Both are node 0; the report of one must not be taken for the other's."""
    fails = launch.script("import spcomm\nspcomm.startup()\nraise ValueError('the cause')", "fails.py")
    waits = launch.script("import signal, spcomm\nspcomm.startup()\nsignal.pause()", "waits.py")
    result = launch("-l", "-n", 1, "--group", 1, *start, waits, ":", "-n", 2, "--group", 2, *start, fails)
    assert result.code == 1, result
    assert "[2:0] ValueError: the cause" in result.err or "[2:1] ValueError: the cause" in result.err
    assert "[1:0]" not in result.err and " of group 2 ended with an uncaught ValueError" in result.last


@pytest.mark.slow
def test_a_timeout_says_where_the_nodes_of_each_group_were(launch):
    script = launch.script("import signal, spcomm\ncomm = spcomm.startup()\nif comm.rank: signal.pause()")
    states = {
        ("node 0 of group 1, node 0 of group 2", "finished"),
        ("node 1 of group 1, nodes 1-2 of group 2", "program.py:3"),
    }
    for limit in ("1.5", "10", "40"):  # a busy machine may need longer to come to these lines
        result = launch("-n", 2, "--group", 1, "--timeout", limit, script, ":", "-n", 3, "--group", 2, script)
        assert result.code == 124, result
        lines = [line.split("  ") for line in result.err.splitlines() if line.startswith("  ")]
        if {(line[1], line[-1].strip()) for line in lines} == states:
            return
    pytest.fail(repr(result))
