# SPDX-License-Identifier: MIT
"""A box that stays out of reach, a server or a gateway that is killed: every node hears of it, and who it was."""

import os
import re
import signal

import pytest

from netting import stop, transports
from processes import read_lines

# Each node waits in its own way for one that is elsewhere, and sends nothing until all have said so.
WAITS = """
    import os, select, sys, threading, spcomm
    comm = spcomm.startup()
    first = os.pidfd_open(comm.bcast(os.getpid()))
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # for all that is known it may send
    ways = [
        lambda: comm.recv((comm.rank + 1) % comm.size, 5),
        lambda: comm.recv(tag=5),
        comm.barrier,
        lambda: comm.coordinated_recv(),
        lambda: comm.global_sum(1),
        lambda: comm.ssend(b"x" * 100, 0),
        lambda: comm.fuzzy_barrier().wait(),
        lambda: comm.alltoall([1] * comm.size),
        lambda: select.select([first], [], []) and comm.ssend(1, 0),  # node 0 has ended because of the loss
    ]
    comm.barrier()
    print(comm.rank, os.getpid(), flush=True)
    way = ways[int(sys.argv[1 + comm.rank])]
    try:
        way()
    except spcomm.ConnectionLostError as error:
        print(comm.rank, error, flush=True)
        try:
            comm.recv(tag=6)
        except spcomm.ConnectionLostError:
            print(comm.rank, "again", flush=True)
"""


# The same without waiting: each asks again and again. A message that it has got and does not want makes no difference.
POLLS = WAITS.replace(
    "    comm = spcomm.startup()\n",
    """    comm = spcomm.startup()

    def ask(found):
        while not found():
            pass

    def ask_in_time(wait):
        while True:
            try:
                return wait(timeout=0)
            except spcomm.WaitTimeoutError:
                pass

    def poll_and_take():
        comm.send(1, comm.rank, tag=4)
        while comm.take_message(tag=5) is None:
            comm.poll()

    def enter_and_ask():
        fuzzy = comm.fuzzy_barrier()
        ask(fuzzy.done)

""",
).replace(
    WAITS[WAITS.index("    ways = [") : WAITS.index("    comm.barrier()\n")],
    """    ways = [
        lambda: ask(comm.poll),
        lambda: ask(lambda: comm.try_recv_message((comm.rank + 1) % comm.size, 5)),
        lambda: ask(comm.try_recv_message),
        poll_and_take,
        lambda: ask(lambda: comm.take_message(tag=5)),
        enter_and_ask,
        lambda: ask_in_time(lambda timeout: comm.probe(tag=5, timeout=timeout)),
        lambda: ask_in_time(lambda timeout: comm.recv(tag=5, timeout=timeout)),
    ]
""",
)


def start(net, ways, *options, program=WAITS):
    size = len(ways)
    process = net.start("-n", size, "--boxes", 2, *options, net.script(program), *ways)
    nodes = dict(map(int, line.split()) for line in read_lines(process, size))
    return process, transports(net, process, nodes.values())


def check(result, size, words, last):
    said = [line for line in result.lines if "again" not in line]
    assert sorted(line[0] for line in said) == [str(rank) for rank in range(size)], result
    assert all(words in line for line in said), result
    assert sum("again" in line for line in result.lines) == size, result
    assert result.code == 125 and re.search(last, result.last), result


@pytest.mark.spread("who", "words", "last")
@pytest.mark.parametrize(
    "ways", [(0, 1, 2, 3), (4, 5, 6, 7), (2, 2, 2, 0), (1, 1, 1, 1), (2, 8, 8, 1)], ids=str
)
@pytest.mark.parametrize(
    ("who", "words", "last"),
    [
        ("spcomm server", "the server that connects the boxes is lost", "the server was killed by SIGKILL"),
        ("spcomm gw 0", "the connection to box 0 is lost", "the gateway of box 0 was killed by SIGKILL"),
        ("spcomm gw 1", "the connection to box 1 is lost", "the gateway of box 1 was killed by SIGKILL"),
    ],
)
def test_a_killed_transport_process(net, who, words, last, ways):
    process, found = start(net, ways)
    os.kill(found[who], signal.SIGKILL)
    check(net.finish(process), len(ways), words, f"^spcomm: {last}; the nodes were stopped")


@pytest.mark.spread("who", "words", "last")
@pytest.mark.parametrize("ways", [(0, 1, 2, 3), (4, 5, 6, 7)], ids=str)
@pytest.mark.parametrize(
    ("who", "words", "last"),
    [
        ("spcomm server", "the server that connects the boxes is lost", "the server was killed by SIGKILL"),
        ("spcomm gw 1", "the connection to box 1 is lost", "the gateway of box 1 was killed by SIGKILL"),
    ],
)
def test_who_asks_without_waiting_hears_of_it_too(net, who, words, last, ways):
    process, found = start(net, ways, program=POLLS)
    os.kill(found[who], signal.SIGKILL)
    check(net.finish(process), len(ways), words, f"^spcomm: {last}; the nodes were stopped")


def test_a_box_that_is_out_of_reach_for_good(net):
    proxy = net.through()
    # By the server alone: links between boxes reach the same limit, and whichever is first is named.
    process, _found = start(net, (0, 1, 2, 4), "--link-timeout", 2, "--route", "relay")
    proxy.blackhole(1)
    check(net.finish(process), 4, "the connection to box 1 is lost", "^spcomm: box 1 is lost: .* 2 s")


@pytest.mark.slow
def test_a_gateway_that_is_stopped_for_too_long(net):
    process, found = start(net, (0, 1, 2, 4), "--link-timeout", 2, "--route", "relay")  # as above
    stop(found["spcomm gw 1"])
    check(
        net.finish(process), 4, "the connection to box 1 is lost",
        "^spcomm: box 1 is lost: nothing was heard of it for 2 seconds",
    )  # fmt: skip


@pytest.mark.slow
def test_a_server_that_is_stopped_for_too_long(net):
    process, found = start(net, (0, 1, 2, 4), "--link-timeout", 2)
    stop(found["spcomm server"])
    check(
        net.finish(process),
        4,
        "the connection to box",
        "^spcomm: box . is lost: its connection to the server",
    )


@pytest.mark.slow
def test_a_box_that_never_reaches_the_server(net):
    proxy = net.through()
    proxy.blackhole(1)
    process = net.start(
        "-n", 2, "--boxes", 2, "--link-timeout", 1, net.script("import spcomm; spcomm.startup().barrier()")
    )
    result = net.finish(process)
    assert result.code == 125 and "box 1 cannot reach the server at 127.0.0.1:" in result.last, result


def test_an_uncaught_one_is_shown_once_and_the_cause_comes_last(net):
    process = net.start(
        "-n", 3, "--boxes", 2,
        net.script("""
            import os, spcomm
            comm = spcomm.startup()
            comm.barrier()
            print(comm.rank, os.getpid(), flush=True)
            comm.recv(tag=1)
        """),
    )  # fmt: skip
    nodes = dict(map(int, line.split()) for line in read_lines(process, 3))
    os.kill(transports(net, process, nodes.values())["spcomm server"], signal.SIGKILL)
    result = net.finish(process)
    assert result.code == 125 and result.err.count("Traceback") == 1, result
    assert "spcomm.ConnectionLostError: recv(source=ANY, tag=1): the server that connects" in result.err
    assert result.last == "spcomm: the server was killed by SIGKILL; the nodes were stopped (exit code 125)"


def test_nodes_that_compute_are_told_to_end(net):
    process = net.start(
        "-n", 2, "--boxes", 2,
        net.script("""
            import os, spcomm
            comm = spcomm.startup()
            print(comm.rank, os.getpid(), flush=True)
            while True: pass
        """),
    )  # fmt: skip
    nodes = dict(map(int, line.split()) for line in read_lines(process, 2))
    os.kill(transports(net, process, nodes.values())["spcomm gw 0"], signal.SIGKILL)
    result = net.finish(process)
    assert result.code == 125 and "the gateway of box 0 was killed by SIGKILL" in result.last, result
