# SPDX-License-Identifier: MIT
"""C, C++ and Python nodes in one run: what crosses the border between languages, and what cannot."""

import os
import re
import sys
from pathlib import Path

import pytest

import oracle
from launching import stand_in_for_ssh
from netting import PATHS
from nodetools import tree
from rooming import read_until
from schedule import Schedule

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize("half", [1, 2])
@pytest.mark.parametrize("start", ["fork", "exec"])
def test_c_and_python(half, start, compiler, launch):
    program = compiler(PROGRAMS / "mixed.c", "-D_GNU_SOURCE")
    python = ["-n", half, "--start", start, PROGRAMS / "mixed.py"]
    result = launch("--no-label", "-n", half, program, ":", *python)
    assert (result.code, sorted(result.lines)) == (0, ["C is done"] * half + ["Python is done"] * half), (
        result
    )
    assert result.err == ""


@pytest.mark.parametrize("where", ["boxes", "hosts"])
@pytest.mark.slow
def test_c_and_python_in_groups_over_boxes(where, compiler, launch):
    """The C node of each group is in another box than the Python node."""
    program, python = compiler(PROGRAMS / "mixed.c", "-D_GNU_SOURCE"), PROGRAMS / "mixed.py"
    run, c_host, python_host = ("--boxes", 2, "--map", "cyclic"), (), ()
    if where == "hosts":
        run, c_host, python_host = (
            ("--ssh", stand_in_for_ssh(launch.folder)),
            ("--host", "a"),
            ("--host", "b"),
        )
    result = launch(
        "--no-label", "-n", 1, "--group", 1, *run, *c_host, program, ":", "-n", 1, "--group", 1, *python_host, python,
        ":", "-n", 1, *c_host, program, ":", "-n", 1, *python_host, python,
    )  # fmt: skip
    assert (result.code, sorted(result.lines)) == (0, ["C is done"] * 2 + ["Python is done"] * 2), result
    assert result.err == ""


def test_c_takes_the_count_of_its_box_and_the_number_of_its_group(compiler, launch):
    """SpComm_StartUp's arguments are checked against the box and group of the node."""
    life = compiler(PROGRAMS / "life.c", "-D_GNU_SOURCE")
    group = ("--group", 7, life, "place")
    result = launch("--no-label", "-n", 6, "--boxes", 2, *group, 3, 6, 7)
    assert sorted(result.lines) == [f"node {rank} of 6 in group 7" for rank in range(6)], result
    result = launch(
        "--no-label", "-n", 4, "--map", "0,0,1,1,0,1", *group, 2, 4, 7,
        ":", "-n", 2, "--group", 2, life, "place", 1, 2, 2,
    )  # fmt: skip
    places = [
        f"node {rank} of {size} in group {group}" for group, size in ((2, 2), (7, 4)) for rank in range(size)
    ]
    assert result.code == 0 and sorted(result.lines) == sorted(places), result


def printed(launch, *arguments):
    """The output of a run of the programs that do all collectives, without its order."""
    result = launch("--no-label", *arguments)
    assert (result.code, result.err) == (0, ""), result
    return sorted(result.lines)


@pytest.mark.parametrize(
    ("c_nodes", "python_nodes", "options"),
    [
        (1, 2, ("--arena", "64K")),  # no room for blocks of the longest arrays, which go another way
        pytest.param(4, 0, (), marks=pytest.mark.slow),
        pytest.param(1, 1, ("--boxes", 2), marks=pytest.mark.slow),
        pytest.param(3, 2, ("--boxes", 2, "--map", "cyclic"), marks=pytest.mark.slow),
        pytest.param(4, 4, (), marks=pytest.mark.slow),
    ],
)
def test_all_collectives_are_bitwise_the_same(c_nodes, python_nodes, options, compiler, launch):
    """As nodes of Python alone have them."""
    stride = 4 if "--boxes" in options else 1  # between boxes they take longer
    program = compiler(PROGRAMS / "collectives.c", "-D_GNU_SOURCE", "-O2")
    python = ["-n", python_nodes, PROGRAMS / "collectives.py", stride]
    mixed = [*options, "-n", c_nodes, program, stride, *([":", *python] if python_nodes else [])]
    alone = [*options, "-n", c_nodes + python_nodes, PROGRAMS / "collectives.py", stride]
    assert printed(launch, *mixed) == printed(launch, *alone)


# The call in C, that in Python, and how both report the first and the second.
MISMATCHES = {
    "type": ("spcomm_allreduce(comm, ARRAY('i', 8, 5), SPCOMM_SUM, SPCOMM_FOREVER, data)",
             "comm.allreduce(np.zeros(5))",
             "allreduce(op=SUM) of an array of int64, shape (5,)", "allreduce(op=SUM) of"),
    "length": ("spcomm_allreduce(comm, ARRAY('f', 8, 5), SPCOMM_SUM, SPCOMM_FOREVER, data)",
               "comm.allreduce(np.zeros(6))",
               "allreduce(op=SUM) of an array of float64, shape (5,)", "allreduce(op=SUM) of"),
    "shape": ("spcomm_scan(comm, ARRAY('f', 8, 2, 6), SPCOMM_SUM, SPCOMM_FOREVER, data)", "comm.scan(np.zeros((3, 4)))",
              "scan(op=SUM) of an array of float64, shape (2, 6)", "scan(op=SUM) of"),
    "root": ("spcomm_reduce(comm, ARRAY('i', 4, 4), SPCOMM_SUM, 0, SPCOMM_FOREVER, data)",
             "comm.reduce(np.zeros(4, 'i4'), root=1)",
             "reduce(op=SUM, root=0) of an array of int32, shape (4,)", "reduce(op=SUM, root=1) of"),
    "operation": ("spcomm_barrier(comm, SPCOMM_FOREVER)", "comm.global_max(1.5)",
                  "barrier()", "global_max() of a float"),
}  # fmt: skip
CALL = r"""
#include <spcomm/spcomm.h>
#include <stdio.h>
#define SHAPE(...) (const int64_t[]){ __VA_ARGS__ }
#define ARRAY(kind, size, ...) \
    spcomm_array(data, kind, size, sizeof(SHAPE(__VA_ARGS__)) / sizeof(int64_t), SHAPE(__VA_ARGS__))
int main(void) {
    spcomm_t *comm;
    static double data[16];
    spcomm_startup(0, 0, 0, NULL, &comm);
    int status = CALL;
    printf("%d %s\n", status, spcomm_last_error());
    return data[0] != 0;
}
"""


@pytest.mark.parametrize("case", MISMATCHES)
def test_a_mismatch_reads_the_same_in_both(case, compiler, launch):
    in_c, in_python, first, second = MISMATCHES[case]
    source = launch.script(CALL.replace("= CALL;", f"= {in_c};"), "mismatch.c")
    node = launch.script(
        f"""
        import numpy as np, spcomm
        comm = spcomm.startup()
        try:
            {in_python}
        except spcomm.MismatchError as error:
            print("-10", error)
        """,
        "node.py",
    )
    result = launch("--label", "-n", 1, compiler(source), ":", "-n", 1, node)
    assert result.code == 0, result
    texts = [[line[4:] for line in result.lines if line.startswith(f"[{rank}] ")] for rank in range(2)]
    for called, text in zip((in_c, in_python), texts, strict=True):
        called = called.removeprefix("comm.").partition("(")[0]
        assert re.fullmatch(
            rf"-10 {called}\(.*\): the nodes (called|gave) .*\(collective call 1 of each node\):", text[0]
        ), text
    assert texts[0][1:4] == texts[1][1:4], result
    assert texts[0][1] == f"  node 0: {first}"
    assert texts[0][2].startswith(f"  node 1: {second}") and ", at node.py:" in texts[0][2]


def test_a_node_that_gives_nothing_is_heard_of_in_both(compiler, launch):
    source = launch.script(
        r"""
        #include <spcomm/spcomm.h>
        #include <stdio.h>
        int main(void) {
            spcomm_t *comm;
            spcomm_message_t found[2];
            spcomm_startup(0, 0, 0, NULL, &comm);
            for (int i = 0; i < 2; i++) {
                spcomm_data_t data = i == 0 ? spcomm_none() : spcomm_raw(NULL, 3);
                printf("%d ", spcomm_allgather(comm, data, SPCOMM_FOREVER, found));
                printf("%s\n", spcomm_last_error());
            }
            return 0;
        }
        """,
        "nothing.c",
    )
    node = launch.script(
        """
        import spcomm
        comm = spcomm.startup()
        for given in lambda: 0, 0:
            try:
                comm.allgather(given)
            except (TypeError, spcomm.SpcommError) as error:
                print("Python:", str(error))
        """,
        "node.py",
    )
    result = launch("--no-label", "-n", 1, compiler(source), ":", "-n", 1, node)
    assert result.code == 0, result
    in_c = [line for line in result.lines if line.startswith("-")]
    in_python = [line for line in result.lines if line.startswith("Python")]
    assert in_c[0].startswith(
        "-22 spcomm_allgather(): node 1 gave nothing, because it raised TypeError: allgather(obj)"
    )
    assert in_c[1].startswith("-1 spcomm_allgather(): the data are NULL")
    assert (
        "allgather(): node 0 gave nothing, because it raised SPCOMM_EINVAL: spcomm_allgather()"
        in in_python[1]
    )


def test_cxx_and_python(compiler, launch):
    """The paper's functions give C++ the bytes of whatever it can read; what they send is `bytes` in Python."""
    source = launch.script(
        r"""
        #include <cstdio>
        #include <spcomm/speedescomm.hpp>
        int main() {
            SpComm_StartUp(0, 0, 0, nullptr);
            int nbytes, sum = SpComm_GlobalSum(1);
            char text[] = "from C++";
            SpComm_Send(1, 5, sizeof(text) - 1, text);
            for (int type = 6; type <= 8; type++) {
                void *found;
                try {
                    while ((found = SpComm_Receive(type, nbytes)) == nullptr) {
                    }
                    std::printf("%d bytes of type %d, sum %d\n", nbytes, type, sum);
                    delete[] static_cast<char *>(found);
                } catch (const SpCommError &error) {
                    std::printf("%s\n", error.what());
                }
            }
            return 0;
        }
        """,
        "cxx.cpp",
    )
    node = launch.script(
        """
        import spcomm
        comm = spcomm.startup()
        comm.global_sum(1)
        assert comm.recv(0, 5) == b"from C++"
        comm.send(2.5, 0, 6)
        comm.send({"no": 1}, 0, 7)
        comm.send("text", 0, 8)
        """,
        "node.py",
    )
    result = launch("--no-label", "-n", 1, compiler(source), ":", "-n", 1, node)
    assert result.code == 0, result
    first, second, third = result.lines
    assert (first, third) == ("8 bytes of type 6, sum 2", "4 bytes of type 8, sum 2")
    assert second.startswith("SpComm_Receive(type, nbytes): the message from node 1 (tag 7) is a Python dict")


# ---- random schedules of boxes without a launcher

BOXES = {  # the infile of each, and whether it is in C
    "C first": (("ranks = [0, 1, 3]", True), ("ranks = [2, 4]", False)),
    "Python first": (("ranks = [2, 4]", False), ("ranks = [0, 1, 3]", True)),
    "in order": (("local_nodes = 2", False), ("local_nodes = 3", True)),
}


PLAYS = """
    import sys, spcomm
    from play import Player
    from schedule import Schedule
    comm = spcomm.startup(infile=sys.argv[-1])
    player = Player(comm, Schedule(*map(int, sys.argv[1:-1]), plain=True))
    player.run()
    player.finish()
    print(comm.rank, "has played")
"""


def write_steps(made, rank, path):
    """The part of a node in C, as play.c reads it."""
    lines = [
        f"expect {source} {sent.number} {sent.tag} {sent.size}"
        for source, waiting in enumerate(oracle.Mailbox(made, rank).waiting)
        for sent in waiting
    ]
    for kind, node, data in made.events:
        if node not in (None, rank) or kind == "be_late":  # C nodes never are
            continue
        match kind, data:
            case "send", (_dest, ranks, sent):
                data = sent.number, sent.tag, sent.size, len(ranks), *ranks
            case "receive", (_how, *match_):
                data = match_
            case "reduce_numbers", (name, shape, seed):
                given = oracle.numbers(seed, shape, made.nodes)
                data = name[-3:], given[rank], tree(given, oracle.combiner(name))
            case "reduce_arrays", (step, operation, _name, _dtype, (length,), root, _algorithm):
                data = step, operation, root, length
            case "enter" | "leave", (number, *_how):
                data = (number,)
            case _:
                data = ()
        lines.append(" ".join(map(str, (kind, *data))))
    path.with_name(f"{path.name}-{rank}").write_text("\n".join(lines) + "\n")


def play_in_two_boxes(room, compiler, boxes, seed):
    program, steps = compiler(PROGRAMS / "play.c", "-D_GNU_SOURCE"), room.folder / f"steps-{seed}"
    words = seed, 5, 150, 1 + seed % 7, 400_000
    made = Schedule(*words, plain=True)
    for rank in range(5):
        write_steps(made, rank, steps)
    found = room.environment()
    env = {
        "PYTHONPATH": os.pathsep.join([*map(str, PATHS), found["PYTHONPATH"]]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), found["PATH"]]),
    }
    started = []
    for number, (infile, is_c) in enumerate(boxes):
        command = [program, steps] if is_c else [sys.executable, room.script(PLAYS), *words]
        infile = f"total_nodes = 5\n{infile}"
        started.append(room.box(*command, infile=infile, name=f"{seed}-{number}.toml", env=env))
        if not number:
            read_until(started[0].stderr, "waiting for nodes: ")
    results = [room.finish(box) for box in started]
    lines = sorted(line for result in results for line in result.lines)
    assert [result.code for result in results] == [0, 0], (seed, results)
    assert lines == [f"{rank} has played" for rank in range(5)], (seed, results)


@pytest.mark.parametrize("boxes", BOXES)
def test_c_and_python_play_a_random_schedule(boxes, room, compiler):
    room.serve()
    play_in_two_boxes(room, compiler, BOXES[boxes], 1)


@pytest.mark.stress
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("boxes", BOXES)
def test_c_and_python_play_many_random_schedules(boxes, room, compiler):
    room.serve()
    for seed in range(60):
        play_in_two_boxes(room, compiler, BOXES[boxes], seed)
