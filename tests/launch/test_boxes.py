# SPDX-License-Identifier: MIT
"""Several boxes on one machine: who is where, what they share (nothing), and how such a run ends."""

import contextlib
import hashlib
import os
import queue
import re
import select
import signal
import socket
import textwrap
import threading
from pathlib import Path

import pytest

import spcomm
from launching import planned
from processes import named, read_lines

TABLE_1 = "0,0,1,0,1"  # of the SpeedesComm paper: global id, local id, local node 0, box


def placed(*words):
    """The groups of a command line, with the boxes of their nodes."""
    return planned(words)[1]


# ---- options


@pytest.mark.parametrize(
    ("words", "size", "places"),
    [
        (["--boxes", "1"], 3, []),
        (["--map", "0,0"], 2, []),
        (["--boxes", "2"], 5, [0, 0, 0, 1, 1]),
        (["--boxes", "3", "--map", "block"], 5, [0, 0, 1, 1, 2]),
        (["--boxes", "5", "--map=block"], 5, [0, 1, 2, 3, 4]),
        (["--boxes", "2", "--map", "cyclic"], 5, [0, 1, 0, 1, 0]),
        (["--map", TABLE_1], 5, [0, 0, 1, 0, 1]),
        (["--boxes", "2", "--map", "1, 0"], 2, [1, 0]),
    ],
    ids=str,
)
def test_which_node_is_in_which_box(words, size, places):
    [found] = placed("-n", str(size), *words, "x.py")
    assert found.places == places
    assert found.boxes == max(places, default=0) + 1
    assert sorted(rank for box in range(found.boxes) for rank in found.ranks(box)) == list(range(size))


def test_what_does_not_fit_starts_nothing(launch):
    result = launch("-n", 2, "--boxes", 3, launch.script("print('x')"))
    assert (result.code, result.out) == (125, "") and len(result.err.splitlines()) == 1, result


# ---- who is where

SAYS_WHERE = """
    import spcomm
    comm = spcomm.startup()
    print(comm.rank, comm.local_rank, comm.box, *(tuple(line) for line in comm.layout), sep=";")
"""


@pytest.mark.smoke
def test_table_1_of_the_paper(launch, start):
    result = launch("-n", 5, "--map", TABLE_1, *start, launch.script(SAYS_WHERE))
    assert result.code == 0, result
    table = [
        (0, 0, 0, 0),
        (1, 0, 1, 0),
        (2, 1, 0, 2),
        (3, 0, 2, 0),
        (4, 1, 1, 2),
    ]  # rank, box, local id, local 0
    lines = [";".join(map(str, (rank, local, box, *table))) for rank, box, local, _zero in table]
    assert sorted(result.lines) == lines


def test_one_box_is_as_none(launch):
    script = launch.script(SAYS_WHERE)
    assert sorted(launch("-n", 2, "--boxes", 1, script).lines) == sorted(launch("-n", 2, script).lines)


def test_ranks_run_through_several_programs(launch):
    script = launch.script(SAYS_WHERE)
    result = launch("-n", 2, "--boxes", 2, script, ":", "-n", 1, "--start", "exec", script)
    assert result.code == 0, result
    assert [line.split(";")[:3] for line in sorted(result.lines)] == [
        ["0", "0", "0"],
        ["1", "1", "0"],
        ["2", "0", "1"],
    ]


# ---- what they share

WAITS = """
    import os, signal, spcomm
    comm = spcomm.startup()
    print(comm.rank, os.getpid(), flush=True)
    signal.pause()
"""


def segments(pid):
    """The inodes of shared memory that a process has mapped, and those it has open."""
    maps = re.findall(r" (\d+) +/(?:memfd:|dev/shm/)spcomm", Path(f"/proc/{pid}/maps").read_text())
    opened = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if "spcomm" in os.readlink(fd) and fd.is_file():
                opened.add(str(fd.stat().st_ino))
        except OSError:
            pass
    return set(maps), opened


def transports(launch, process, nodes):
    """The processes of a run that are neither launcher, fork server nor node: {name: process id}."""
    return named(set(launch.alive()) - {process.pid, *nodes}, "spcomm")


@pytest.mark.slow
@pytest.mark.parametrize("disable", ["", "memfd"])
def test_boxes_share_no_memory(launch, start, disable):
    process = launch.start(
        "-n", 5, "--map", TABLE_1, *start, launch.script(WAITS), env={"SPCOMM_DISABLE": disable}
    )
    nodes = dict(map(int, line.split()) for line in read_lines(process, 5))
    by_box = [set(), set()]
    for rank, pid in nodes.items():
        mapped, opened = segments(pid)
        assert len(mapped) == 1 and opened <= mapped, (rank, mapped, opened)
        by_box[int(TABLE_1.split(",")[rank])] |= mapped
    assert [len(one) for one in by_box] == [1, 1] and by_box[0] != by_box[1]
    others = transports(launch, process, nodes.values())
    assert sorted(others) == ["spcomm gw 0", "spcomm gw 1", "spcomm server"]
    for box, mine in enumerate(by_box):
        assert segments(others[f"spcomm gw {box}"])[0] == mine
    assert segments(others["spcomm server"]) == (set(), set())
    process.send_signal(signal.SIGTERM)
    assert launch.finish(process).code == 143


# ---- ends


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_nothing_is_left_of_a_run_whose_launcher_ends(launch, start, number):
    process = launch.start("-n", 3, "--boxes", 3, *start, launch.script(WAITS))
    read_lines(process, 3)
    process.send_signal(number)
    process.wait()
    launch.wait_until_nothing_is_left()


def test_ctrl_c_ends_all_boxes(launch):
    process = launch.start("-n", 3, "--boxes", 2, launch.script(WAITS), start_new_session=True)
    read_lines(process, 3)
    os.killpg(process.pid, signal.SIGINT)
    result = launch.finish(process)
    assert result.code == 130 and "interrupted by Ctrl-C" in result.last, result
    where = result.err.partition("where the nodes were:\n")[2].partition("spcomm:")[0]
    assert re.search(r"nodes? 0", where) and "program.py" in where, result


@pytest.mark.slow
def test_a_timeout_says_where_the_nodes_of_all_boxes_were(launch):
    for limit in (2, 10, 40):  # a busy machine may need longer to come to that line
        result = launch("-n", 3, "--boxes", 2, "--timeout", limit, launch.script(WAITS))
        assert result.code == 124, result
        if "nodes 0-2  program.py:5" in result.err:
            return
    pytest.fail(repr(result))


# ---- messages


def test_messages_reach_other_boxes(launch, start):
    """In order, of all sizes, to and from everybody."""
    result = launch.program(
        """
        import numpy as np, spcomm
        comm = spcomm.startup()
        for number in range(60):
            for other in range(comm.size):
                comm.send(np.full(number * number, comm.rank), other, tag=number % 3)
        for number in range(60):
            for other in range(comm.size):
                found = comm.recv(other, number % 3)
                assert found.shape == (number * number,) and (found == other).all()
        assert comm.global_sum(comm.rank) == sum(range(comm.size))
        comm.barrier()
        print(comm.rank)
        """,
        options=("-n", 5, "--map", TABLE_1, *start),
    )
    assert result.code == 0 and sorted(result.lines) == list("01234"), result


# ---- phases at which one box is ahead of the other

# A node of box 0 enters barriers and ends. The node of box 1 enters none before it knows of that end.
OUTLIVE = """
    import spcomm
    comm = spcomm.startup()

    def outlive(rank):
        try:
            comm.recv(rank)
        except spcomm.NodeLostError:
            pass
"""
ENDS = {
    "all of box 0 have entered, and end": (
        "0,0,1,1",
        """
        if comm.box == 0:
            comm.fuzzy_barrier()
            comm.send("entered", 2)
            comm.recv(2)
        elif comm.rank == 2:
            for node in (0, 1):
                comm.recv(node)
            for node in (0, 1):
                comm.send("end", node)
            for node in (0, 1):
                outlive(node)
            barrier = comm.fuzzy_barrier()
            assert not barrier.done()
            comm.send("enter", 3)
            barrier.wait()
        else:
            comm.recv(2)
            comm.fuzzy_barrier().wait()
        """,
    ),
    "one has entered another, and ends": (
        "0,0,1",
        """
        first = comm.fuzzy_barrier() if comm.box == 0 else None
        second = comm.fuzzy_barrier() if comm.rank == 0 else None
        if comm.box == 0:
            comm.send("entered", 2)
            comm.recv(2)
        else:
            for node in (0, 1):
                comm.recv(node)
            comm.send("end", 0)
            outlive(0)
            first = comm.fuzzy_barrier()
            comm.send("enter", 1)
        if comm.rank != 0:
            second = comm.fuzzy_barrier()
            first.wait()
            second.wait()
        """,
    ),
}


@pytest.mark.parametrize("route", ["relay", "direct"])
@pytest.mark.parametrize("case", ENDS)
def test_who_entered_a_barrier_and_ended_is_not_missed(launch, case, route):
    places, text = ENDS[case]
    program = textwrap.dedent(OUTLIVE) + textwrap.dedent(text) + "print('over')\n"
    size = places.count(",") + 1
    result = launch.program(program, options=("-n", size, "--map", places, "--route", route))
    assert result.code == 0 and result.lines == ["over"] * size, result


@pytest.mark.slow
@pytest.mark.parametrize("route", ["relay", "direct"])
def test_there_are_more_communicators_than_numbers(launch, route):
    result = launch.program(
        """
        import spcomm
        comm = spcomm.startup()
        for i in range(16_500):
            part = comm.split(i % 7 if comm.rank == i % 2 else 0)
            part.send(i, (part.rank + 1) % part.size, tag=i % 2)
            assert part.recv(tag=i % 2) == i
            part.close()
        print("over")
        """,
        options=("-n", 2, "--boxes", 2, "--route", route, "--strict"),
    )
    assert result.code == 0 and result.lines == ["over"] * 2, result


def test_what_is_left_is_told_of_all_boxes(launch):
    result = launch.program(
        """
        import spcomm
        comm = spcomm.startup()
        if comm.rank == 0: comm.send("never received", spcomm.OTHERS, tag=7)
        comm.barrier()
        """,
        options=("-n", 3, "--map", "0,1,0", "--strict"),
    )
    assert result.code == 1, result
    assert "2 messages were never received" in result.err
    assert re.search(r"2 messages +from node 0 +to nodes 1-2 +tag 7 +sent at program.py:4", result.err), (
        result
    )


def test_stats_count_each_message_once(launch):
    result = launch.program(
        """
        import spcomm
        comm = spcomm.startup()
        for number in range(10):
            comm.send(number, (comm.rank + 1) % comm.size)
            comm.recv()
        comm.barrier()
        """,
        options=("-n", 3, "--map", "0,1,0", "--stats"),
    )
    assert result.code == 0, result
    rows = [line.split() for line in result.err.splitlines() if re.match(r"  [012] ", line)]
    assert [(row[0], row[1], row[2], row[5]) for row in rows[3:6]] == [
        (str(rank), "10", "10", "1") for rank in range(3)
    ]


# ---- groups, and several programs


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("-n 4 --group 1 --boxes 2 a : -n 2 --group 2 b", {1: ([0, 0, 0, 1], [0, 1]), 2: ([], [1])}),
        (
            "-n 4 --group 1 --boxes 2 --map cyclic a : -n 2 --group 2 b",
            {1: ([0, 1, 0, 1], [0, 1]), 2: ([0, 1], [0, 1])},
        ),
        (
            "-n 1 --group 1 --map 2,0,1,2 a : -n 1 b : -n 2 --group 1 c",
            {1: ([1, 0, 1], [1, 2]), 0: ([], [0])},
        ),
        ("-n 2 --map 1,1,0 a : -n 1 b", {0: ([1, 1, 0], [0, 1])}),
    ],
)
def test_nodes_are_placed_in_the_order_of_the_command_line(words, expected):
    """A group numbers the boxes in which it has nodes from 0, in the order of the run's boxes."""
    groups = placed(*words.split())
    assert {group.number: (group.places, group.boxes_of_run) for group in groups} == expected


GROUPS = (
    "-n",
    3,
    "--group",
    1,
    "--map",
    "0,1,1,1,0",
)  # Table 1's nodes, of two groups: ranks 0 to 2, and 0 and 1
TALKS = """
    import sys, numpy as np, spcomm
    comm, name = spcomm.startup(), sys.argv[1]
    following, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for number in range(20):
        comm.send((name, comm.rank, bytes(number ** 4)), following, tag=number % 3)
        assert comm.recv(tag=number % 3) == (name, before, bytes(number ** 4))
        assert comm.allreduce(np.full(100, comm.group_id)).tolist() == [comm.size * comm.group_id] * 100
    print(comm.group_id, comm.rank, comm.size, comm.box, *(line.box for line in comm.layout))
"""


@pytest.mark.parametrize("route", ["relay", "direct"])
def test_groups_over_boxes_never_mix(launch, start, route):
    script = launch.script(TALKS)
    result = launch(
        *GROUPS, "--route", route, "--stats=all", *start, script, "a", ":", "-n", 2, "--group", 2, *start, script, "b"
    )  # fmt: skip
    assert result.code == 0, result
    assert sorted(result.lines) == [
        "1 0 3 0 0 1 1",
        "1 1 3 1 0 1 1",
        "1 2 3 1 0 1 1",
        "2 0 2 1 1 0",
        "2 1 2 0 1 0",
    ]
    rows = [line.split() for line in result.err.splitlines() if re.match(r"  [12]:", line)]
    assert [row[0] for row in rows[:10]] == ["1:0", "1:1", "1:2", "2:0", "2:1"] * 2, result
    boxes = [f"{group}:{box}" for group in (1, 2) for box in (0, 1) for _way in ("out", "in")]
    assert [row[0] for row in rows[10:18]] == boxes, result
    assert (
        [row[0] for row in rows[18:]] == ["1:0-1"] * 2 + ["2:0-1"] * 2 if route == "direct" else not rows[18:]
    )


def test_a_group_in_one_box_beside_one_in_two(launch, start):
    script = launch.script(TALKS)
    result = launch(
        "-n", 3, "--group", 7, "--boxes", 2, *start, script, "a", ":", "-n", 1, *start, script, "b",
        ":", "-n", 1, "--group", 7, *start, script, "a",
    )  # fmt: skip
    assert result.code == 0 and result.err == "", result
    assert sorted(result.lines) == [
        "0 0 1 0 0",
        *(f"7 {rank} 4 {box} 0 0 0 1" for rank, box in enumerate([0, 0, 0, 1])),
    ]


@pytest.mark.parametrize("guilty", [1, 2])
def test_a_deadlock_of_a_group_names_it(launch, guilty):
    program = f"""
        import signal, spcomm
        comm = spcomm.startup()
        comm.barrier()
        comm.recv((comm.rank + 1) % comm.size) if comm.group_id == {guilty} else signal.pause()
    """
    script = launch.script(program)
    result = launch(*GROUPS, script, ":", "-n", 2, "--group", 2, script)
    assert result.code == 99 and result.err.count("DEADLOCK") == 1, result
    nodes = {1: "all 3 nodes", 2: "both nodes"}[guilty]
    assert f"DEADLOCK — {nodes} of group {guilty} wait" in result.err, result


def test_a_deadlock_of_a_group_in_one_box_beside_one_in_two(launch):
    program = """
        import signal, spcomm
        comm = spcomm.startup()
        comm.recv((comm.rank + 1) % comm.size) if comm.group_id == 2 else signal.pause()
    """
    script = launch.script(program)
    result = launch("-n", 2, "--group", 1, "--map", "0,1,1,1", script, ":", "-n", 2, "--group", 2, script)
    assert result.code == 99 and "DEADLOCK — both nodes of group 2 wait" in result.err, result


def test_a_crash_over_boxes_names_the_node_of_its_group(launch, start):
    script = launch.script(WAITS.replace("comm.rank", "comm.group_id, comm.rank"))
    process = launch.start(*GROUPS, *start, script, ":", "-n", 2, "--group", 2, *start, script)
    pids = {
        (group, rank): pid for group, rank, pid in (map(int, line.split()) for line in read_lines(process, 5))
    }
    os.kill(pids[2, 1], signal.SIGSEGV)
    result = launch.finish(process)
    assert result.code == 139, result
    assert result.last.startswith("spcomm: node 1 of group 2 was killed by SIGSEGV (exit code 139)"), result


def test_a_killed_gateway_names_its_group(launch):
    catches = """
        import os, spcomm
        comm = spcomm.startup()
        print(comm.group_id, os.getpid(), flush=True)
        try:
            comm.recv()
        except spcomm.ConnectionLostError as error:
            print("lost", comm.group_id, flush=True)
    """
    script = launch.script(catches)
    process = launch.start(*GROUPS, "--stall", 0, script, ":", "-n", 2, "--group", 2, "sleep", "1000")
    nodes = [int(line.split()[1]) for line in read_lines(process, 3)]
    os.kill(transports(launch, process, nodes)["spcomm gw 1:1"], signal.SIGKILL)
    result = launch.finish(process)
    assert result.code == 125 and result.lines == ["lost 1"] * 3, result
    sentence = "the gateway of box 1 of group 1 was killed by SIGKILL; the nodes were stopped (exit code 125)"
    assert result.last == f"spcomm: {sentence}"


def test_what_a_group_leaves_is_told_with_its_name(launch):
    leaves = """
        import spcomm
        comm = spcomm.startup()
        if comm.rank == 0 and comm.group_id == 2: comm.send("never received", 1, tag=7)
        comm.barrier()
    """
    script = launch.script(leaves)
    result = launch(*GROUPS, "--strict", script, ":", "-n", 2, "--group", 2, script)
    assert result.code == 1 and "of group 2" in result.last and "of group 1" not in result.err, result
    assert "from node 0" in result.err and "sent at program.py:4" in result.err, result


# ---- who may in


class Door:
    """A gate in this process, and what it has let in."""

    def __init__(self, host):
        from spcomm.launch.base.loop import Loop
        from spcomm.launch.remote import handshake

        self.listener = socket.create_server((host, 0))
        self.address = self.listener.getsockname()
        self.admitted = queue.SimpleQueue()
        self.loop = Loop()
        secrets = {(5, box): bytes([box]) * 32 for box in (0, 1, 8)}
        self.gate = handshake.Gate(self.loop, self.listener, secrets, self.admit)
        self.gate.open()
        self.end, self.tell = socket.socketpair()
        self.loop.add(self.end.fileno(), self.stop)
        self.running = True
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def admit(self, job, box, fd, session):
        os.close(fd)
        if box > 1:
            raise spcomm.SpcommError("that box has ended")
        self.admitted.put((job, box, session is not None))

    def next(self):
        """A connection that was let in: job, box, whether it is encrypted."""
        return self.admitted.get(timeout=60)

    def stop(self):
        self.running = False

    def run(self):
        while self.running:
            self.loop.turn()

    def close(self):
        self.tell.send(b".")
        self.thread.join()
        for fd in list(self.gate._guests):
            self.gate._dismiss(fd)
        self.loop.close()
        for one in (self.listener, self.end, self.tell):
            one.close()


@pytest.fixture(params=["127.0.0.1", "127.0.0.2"], ids=["loopback", "network"])
def door(request):
    """Only what goes from 127.0.0.1 to 127.0.0.1 is known to stay on this machine."""
    made = Door(request.param)
    made.encrypts = request.param == "127.0.0.2"
    yield made
    made.close()


def knock(door, box):
    from spcomm.launch.remote import handshake

    sock, session = handshake.enter(door.address, bytes([box]) * 32, 5, box)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)  # HELLO waits for no acknowledgement
    sock.close()
    assert (session is not None) == door.encrypts


def test_who_knows_the_secret_gets_in(door):

    knock(door, 1)
    assert door.next() == (5, 1, door.encrypts) and door.admitted.empty()


@pytest.mark.parametrize(
    ("secret", "job", "box"),
    [(b"j" * 32, 5, 1), (b"\0" * 32, 5, 1), (b"\1" * 32, 6, 1), (b"\0" * 32, 6, 1), (b"\1" * 32, 5, 9)],
    ids=["secret", "secret of another box", "job", "zeros", "box"],
)
def test_who_does_not_is_refused(door, secret, job, box):
    from spcomm.launch.remote import handshake

    with pytest.raises(spcomm.AuthenticationError, match="do not know the same secret"):
        handshake.enter(door.address, secret, job, box)
    knock(door, 0)
    assert door.next() == (5, 0, door.encrypts) and door.admitted.empty()


def test_a_box_that_has_ended_is_closed_and_others_get_in(door):
    from spcomm.launch.remote import handshake

    sock, _session = handshake.enter(door.address, b"\x08" * 32, 5, 8)
    sock.settimeout(60)
    assert sock.recv(1) == b""
    sock.close()
    knock(door, 0)
    assert door.next() == (5, 0, door.encrypts) and door.admitted.empty()


class Interceptor(threading.Thread):
    """Somebody on the way to a door, with a certificate of his own, who hands on all messages, perhaps changed."""

    def __init__(self, door, change):
        super().__init__()
        self.listener = socket.create_server((door.address[0], 0))
        self.address = self.listener.getsockname()
        self.door, self.change = door, change

    def run(self):
        from spcomm.launch.remote import tls

        context, certificate = tls.server_identity.__wrapped__()
        client, _address = self.listener.accept()
        server = socket.create_connection(self.door.address)
        with self.listener, client, server, contextlib.suppress(OSError):
            to_server = tls._client_context().wrap_socket(server)
            to_client = context.wrap_socket(client, server_side=True)
            prints = [hashlib.sha256(one).digest() for one in (to_server.getpeercert(True), certificate)]
            for number in range(4):
                source, target = (to_server, to_client) if number % 2 else (to_client, to_server)
                source.settimeout(60)
                message = bytearray(source.recv(64))
                self.change(message, prints[:: -1 if number % 2 else 1])
                target.sendall(message)
            assert to_client.recv(64) == b""  # the client has left


@pytest.fixture
def network():
    made = Door("127.0.0.2")
    yield made
    made.close()


def marked(message, prints):
    """Have both ends see the mark of the certificate that they know."""
    message[18:32] = prints[0][:14]


@pytest.mark.parametrize(
    ("change", "why"),
    [(lambda _message, _prints: None, "is intercepted"), (marked, "do not know the same secret")],
    ids=["passed on", "marks exchanged"],
)
def test_nobody_on_the_way_can_be_the_other_end_of_tls(network, change, why):
    """He hands on all that both ends say inside TLS, and knows it."""
    from spcomm.launch.remote import handshake

    between = Interceptor(network, change)
    between.start()
    with pytest.raises(spcomm.AuthenticationError, match=why):
        handshake.enter(between.address, b"\1" * 32, 5, 1)
    between.join()
    assert network.admitted.empty()


@pytest.mark.linux("127.0.0.2")
def test_nobody_on_the_way_can_leave_tls_out(network):
    """A client that sees a network says nothing without TLS, and a server that sees one hears nothing else."""
    from spcomm.launch.remote import handshake

    with socket.create_server(("127.0.0.2", 0)) as between:
        heard = []

        def answer():
            client, _address = between.accept()
            with client:
                heard.append(client.recv(4096))
                client.sendall(b"spch\5\x09".ljust(64, b"\0"))

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ConnectionError, match="has ended the handshake"):
            handshake.enter(between.getsockname(), b"\1" * 32, 5, 1)
        thread.join()
    assert heard[0][0] == 0x16 and b"spch" not in heard[0]
    with socket.create_connection(network.address) as plain:
        talk = handshake.HandshakeExchange(plain, False, lambda _box: b"\1" * 32, job=5, box=1)
        talk._has_tls = False
        while not talk.go_on():
            pass
    assert talk.outcome == handshake.NEEDS_TLS and network.admitted.empty()


def test_a_port_that_is_forwarded(network):
    """The client sees 127.0.0.1 only, and is told that it needs TLS."""
    from spcomm.launch.remote import handshake

    def forward():
        for _time in range(2):
            client, _address = listener.accept()
            with client, socket.create_connection(network.address) as server:
                ends = {client: server, server: client}
                while all(carry(one, ends[one]) for one in select.select(list(ends), [], [])[0]):
                    pass

    def carry(one, other):
        with contextlib.suppress(OSError):
            data = one.recv(4096)
            other.sendall(data)
            return bool(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=forward)
        thread.start()
        sock, session = handshake.enter(listener.getsockname(), b"\1" * 32, 5, 1)
        sock.close()
        thread.join()
    assert session is not None and network.next() == (5, 1, True)


def test_strangers_harm_nobody(door):
    """Some are silent, some talk nonsense, some leave, and all at once."""

    strangers = []
    for number in range(200):
        stranger = socket.create_connection(door.address)
        if number % 3 == 0:
            stranger.send(os.urandom(number + 1))
        if number % 5:
            strangers.append(stranger)
        else:
            stranger.close()
    knock(door, 1)
    for stranger in strangers:
        stranger.close()
    assert door.next() == (5, 1, door.encrypts) and door.admitted.empty()


@pytest.mark.slow
def test_who_says_nothing_is_sent_away(door):
    with socket.create_connection(door.address) as stranger:
        stranger.settimeout(60)
        while stranger.recv(64):  # a verdict may come before the end
            pass
    assert door.admitted.empty()
