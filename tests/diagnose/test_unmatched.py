# SPDX-License-Identifier: MIT
"""SP106 and SP107: what a run has left behind, once for the run; and runs that leave nothing say nothing."""

import pytest

from pairwise import each

START = """\
import sys, spcomm
comm = spcomm.startup()
"""
OPEN = "spcomm: warning: the program has ended, and something is still open"


def run(launch, text, nodes, *options, env=None):
    return launch.program(START + text, options=("-n", nodes, *options), env=env)


def rows(result):
    """The lines of the table, without their blanks."""
    return [" ".join(line.split()) for line in result.err.splitlines() if line.startswith("  ")][:-1]


# Program, number of nodes, lines.
LEFT = {
    "one": ("if comm.rank == 0:\n    comm.send(1, 1)\n", 2, ["1 message from node 0 to node 1 tag 0"]),
    "some-of-many": (
        "if comm.rank == 0:\n    for i in range(100):\n        comm.send(i, 1, tag=i // 50)\n"
        "else:\n    for i in range(70):\n        comm.recv(0)\n",
        2,
        ["30 messages from node 0 to node 1 tag 1"],
    ),
    "another-tag": (
        "for tag in (1, 2):\n    comm.send(0, 0, tag)\n"
        "if comm.rank == 0:\n    for source in range(comm.size):\n        comm.recv(source, tag=2)\n",
        3,
        ["3 messages from nodes 0-2 to node 0 tag 1"],
    ),
    "to-all": (
        "if comm.rank == 2:\n    comm.send(0, spcomm.OTHERS, tag=9)\n",
        4,
        ["3 messages from node 2 to nodes 0-1, 3 tag 9"],
    ),
    "ring-and-arena": (
        "for size in (0, 41, 3000, 100_000):\n    comm.send(bytes(size), 0, tag=size)\n",
        1,
        [f"1 message from node 0 to node 0 tag {size}" for size in (0, 41, 3000, 100_000)],
    ),
    "polled-and-not-taken": (
        "if comm.rank == 0:\n    comm.send(1, 1, tag=3)\ncomm.barrier()\ncomm.poll()\ncomm.barrier()\n",
        2,
        ["1 message from node 0 to node 1 tag 3"],
    ),
    "to-a-node-that-has-finished": (
        "if comm.rank == 0:\n    try:\n        comm.recv(1)\n    except spcomm.NodeLostError:\n"
        "        comm.send(1, 1, tag=4)\n        comm.send(bytes(9000), 1, tag=5)\n",
        2,
        ["1 message from node 0 to node 1 tag 4", "1 message from node 0 to node 1 tag 5"],
    ),
    "after-its-close": (
        "if comm.rank == 1:\n    comm.close()\n    sys.stdin.read()\nelse:\n    try:\n        comm.recv(1)\n"
        "    except spcomm.NodeLostError:\n        comm.send(1, 1, tag=4)\n",
        2,
        ["1 message from node 0 to node 1 tag 4"],
    ),
    "in-a-part": (
        "part = comm.split(comm.rank % 2)\nif comm.rank == 1:\n    part.send(0, 1, tag=6)\npart.close()\n",
        4,
        ["1 message from node 1 to node 3 tag 6"],
    ),
    "many-kinds": (
        "for tag in range(40):\n    comm.send(0, 0, tag)\n",
        1,
        [*(f"1 message from node 0 to node 0 tag {tag}" for tag in range(16)), "…"],
    ),
    "for-a-handler": (
        "@comm.handler(3)\ndef take(message):\n    print('took', message.data)\n"
        "if comm.rank == 0:\n    comm.send(1, 1, tag=3)\n    comm.send(2, 1, tag=4)\n",
        2,
        [
            "1 message from node 0 to node 1 tag 3 for a handler that did not run",
            "1 message from node 0 to node 1 tag 4",
        ],
    ),
    "in-parts": (
        "comm.send(bytes(50_000), 0, tag=8)\ncomm.send(bytes(50_000), 0, tag=8)\n",
        1,
        ["2 messages from node 0 to node 0 tag 8"],
    ),
}


@pytest.mark.parametrize("case", each(2, LEFT))
@pytest.mark.parametrize("start", ["fork", "exec"])
def test_messages_that_nobody_received(launch, case, start):
    text, nodes, lines = LEFT[case]
    buffers = ("--ring", "4096", "--arena", "0") if case == "in-parts" else ()
    result = run(launch, text, nodes, "--start", start, *buffers)
    assert result.code == 0 and rows(result) == lines, result
    assert result.err.count("never received") == 1 and "(spcomm explain SP106)" in result.last


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("options", [(), ("--boxes", "2")], ids=["near", "boxes"])
@pytest.mark.parametrize("ends_first", [False, True])
def test_a_message_longer_than_all_buffers_counts_once(launch, count, options, ends_first):
    """Its receiver has seen the first part, or none; its sender still has the rest."""
    text = f"if comm.rank == 0:\n    for _ in range({count}):\n        comm.send(bytes(3_000_000), 1)\n"
    waits = (
        "if comm.rank == 0:\n    try:\n        comm.recv(1)\n    except spcomm.NodeLostError:\n        pass\n"
    )
    result = run(
        launch, waits + text if ends_first else text + "comm.barrier()\n", 2, "--arena", "1M", *options
    )
    messages = "1 message" if count == 1 else "2 messages"
    assert result.code == 0 and rows(result) == [f"{messages} from node 0 to node 1 tag 0"], result


def test_messages_for_a_handler_have_their_own_advice(launch):
    text = "@comm.handler(3)\ndef take(message):\n    pass\nif comm.rank == 0:\n    comm.send(1, 1, tag=3)\n"
    result = run(launch, text, 2)
    assert rows(result) == ["1 message from node 0 to node 1 tag 3 for a handler that did not run"], result
    assert "Try: let the handler run: in comm.poll(), " in result.last, result


@pytest.mark.parametrize("case", each(3, LEFT))
def test_strict_makes_it_an_error_and_shows_lines(launch, case):
    text, nodes, lines = LEFT[case]
    result = run(launch, text, nodes, "--strict")
    assert result.code == 1, result
    assert "sent at program.py:" in result.err and len(rows(result)) == len(lines)
    assert result.last.startswith("spcomm: warnings are errors (--strict): SP106 of node"), result


def test_strict_names_the_line_of_the_last_one(launch):
    text = """
def tell(number):
    comm.send(number, 0, tag=1)
tell(1)
comm.send(2, 0, tag=2)
comm.send(3, 0, tag=2)
"""
    result = run(launch, text, 1, "--strict")
    assert "tag 1 sent at program.py:5" in rows(result)[0], result
    assert "tag 2 sent at program.py:8" in rows(result)[1], result


FUZZY = "a fuzzy barrier"
CYCLE = "a cycle of coordinated messages begun at program.py"
LEFT_OPEN = {
    "fuzzy": (
        "comm.fuzzy_barrier()\n",
        2,
        [f"nodes 0-1 {FUZZY}"],
        ["nodes 0-1 a fuzzy barrier entered at program.py:3"],
    ),
    "fuzzy-of-one": (
        "fb = comm.fuzzy_barrier()\nif comm.rank != 1:\n    fb.wait()\n",
        3,
        [f"node 1 {FUZZY}"],
        ["node 1 a fuzzy barrier entered at program.py:3"],
    ),
    "two-of-three": (
        "three = [comm.fuzzy_barrier() for _ in range(3)]\nthree[1].wait()\n",
        2,
        ["nodes 0-1 2 fuzzy barriers"],
        ["nodes 0-1 2 fuzzy barriers entered at program.py:3"],
    ),
    "cycle-sent": ("comm.coordinated_send(1, 0)\n", 2, [f"nodes 0-1 {CYCLE}:3"], [f"nodes 0-1 {CYCLE}:3"]),
    "cycle-left": (
        "comm.coordinated_send(1, comm.rank)\nfor message in comm.coordinated_messages():\n    break\n",
        2,
        [f"nodes 0-1 {CYCLE}:3"],
        [f"nodes 0-1 {CYCLE}:3"],
    ),
    "cycle-received": (
        "if comm.rank == 0:\n    comm.coordinated_send(1, 1)\n    comm.coordinated_recv()\n"
        "else:\n    assert comm.coordinated_recv().data == 1\n",
        2,
        [f"node 1 {CYCLE}:7"],
        [f"node 1 {CYCLE}:7"],
    ),
    "in-a-part": (
        "part = comm.split(0)\npart.fuzzy_barrier()\npart.close()\n",
        2,
        [f"nodes 0-1 {FUZZY}"],
        ["nodes 0-1 a fuzzy barrier entered at program.py:4"],
    ),
}


@pytest.mark.parametrize("case", each(2, LEFT_OPEN))
@pytest.mark.parametrize("strict", [False, True])
def test_barriers_and_cycles_left_open(launch, case, strict):
    text, nodes, plain, with_lines = LEFT_OPEN[case]
    result = run(launch, text, nodes, *(["--strict"] if strict else []))
    assert OPEN in result.err and "(spcomm explain SP107)" in result.err, result
    assert rows(result) == (with_lines if strict else plain), result
    assert result.code == (1 if strict else 0)


SILENT = {
    "all-received": (
        "right = (comm.rank + 1) % comm.size\nfor i in range(200):\n    comm.send(bytes(i * 50), right, tag=i % 3)\n"
        "for i in range(200):\n    comm.recv(tag=i % 3)\n"
    ),
    "fuzzy": (
        "for i in range(20):\n    with comm.fuzzy_barrier():\n        comm.global_sum(i)\n"
        "fb = comm.fuzzy_barrier()\nwhile not fb.done():\n    pass\n"
    ),
    "cycles": (
        "for i in range(20):\n    comm.coordinated_send(i, spcomm.ALL)\n"
        "    assert len(list(comm.coordinated_messages())) == comm.size\n"
    ),
    "parts": (
        "with comm.split(comm.rank % 2) as part:\n    part.send(1, spcomm.ALL)\n"
        "    assert [part.recv(s) for s in range(part.size)] == [1] * part.size\n"
    ),
    "to-nobody": "comm.send(1, spcomm.PROC_NULL)\ncomm.recv(spcomm.PROC_NULL)\n",
    "finished-early": "if comm.rank == 0:\n    sys.exit()\nprint(1)\n",
    "no-startup-in-one": "",
    "threads": (
        "import threading\ndef take():\n    comm.recv(comm.rank, tag=1)\n"
        "threads = [threading.Thread(target=take) for _ in range(4)]\n[t.start() for t in threads]\n"
        "for _ in range(4):\n    comm.send(0, comm.rank, tag=1)\n[t.join() for t in threads]\n"
    ),
}


@pytest.mark.parametrize("case", each(2, SILENT))
@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_programs_that_leave_nothing_say_nothing(launch, case, nodes):
    result = run(launch, SILENT[case], nodes, "--strict")
    assert result.code == 0 and result.err == "", result


@pytest.mark.parametrize("last", ["raise ValueError", "sys.exit(3)", "import os; os.kill(os.getpid(), 9)"])
def test_a_run_that_fails_has_other_worries(launch, last):
    text = f"comm.send(1, comm.rank)\nif comm.rank == 0:\n    comm.fuzzy_barrier()\n    {last}\n"
    result = run(launch, text, 2, "--strict")
    assert "SP10" not in result.err and "never received" not in result.err, result


def test_a_process_that_leaves_without_closing(launch):
    """The number of messages that it has read is not known, so nothing is said of it."""
    text = "for _ in range(5):\n    comm.send(1, 0)\n    comm.recv()\nsys.stdout.flush()\nimport os\nos._exit(0)\n"
    result = run(launch, text, 1)
    assert result.code == 0 and result.err == "", result
