# SPDX-License-Identifier: MIT
"""Control connections of a room that break: of members, runs, and both ends of the ways to boxes. All of them hold."""

import contextlib
import os
import re
import signal
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from netting import PATHS, stop
from pairwise import each
from processes import read_lines, read_until
from proxy import KINDS, Proxy
from rooming import HOST
from spcomm.launch.remote.control_link import ControlLink
from spcomm.launch.room import connect, room_link
from spcomm.launch.room.room_link import ClientLink

ADDS = """
    import sys, spcomm
    comm = spcomm.startup()
    print("ready", flush=True)
    while line := comm.bcast(sys.stdin.readline() if comm.rank == 0 else None, 0):
        print(comm.rank, comm.allreduce(int(line)), flush=True)
"""
PROGRAM = PATHS[0] / "net" / "all_operations.py"


def is_of_gateway(sock):
    """Whether a gateway has the other end of this connection. Nothing that goes over it tells: it is encrypted."""
    host, port = sock.getpeername()
    local = f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    sockets = {f"socket:[{line.split()[9]}]" for line in lines if line.split()[1] == local}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            is_gateway = (process / "comm").read_text().startswith("spcomm gw")
            if is_gateway and any(os.readlink(fd) in sockets for fd in (process / "fd").iterdir()):
                return True
    return False


class ControlProxy(Proxy):
    """Does its faults to control connections only, and counts bytes of these.

    `doors`: of these only.
    """

    host = HOST  # as the server's

    def __init__(self, doors=(0, 1, 2), **faults):
        self.doors = doors
        super().__init__(**faults)

    def take(self, connection, way, data):
        if not hasattr(connection, "is_control"):
            connection.is_control = connection.box in self.doors and not is_of_gateway(way.source)
        if connection.is_control:
            super().take(connection, way, data)
        elif connection.box not in self.holes:
            way.bytes += data

    def controlled(self):
        """Connections of that kind that there are now."""
        with self.lock:
            return [one for one in self.connections if getattr(one, "is_control", False)]

    def cut(self, connection, resets):
        with self.lock:
            if not connection.dead:
                self.end(connection, resets)


@pytest.fixture
def proxied(room):
    """A room whose members and runs reach the server through a proxy, each by a door of its own."""
    proxies = []

    def start(kind=ControlProxy, timeout=30, **faults):
        proxies.append(kind(**faults))
        room.serve("--room", "--link-timeout", timeout)
        room.doors = {
            name: door(proxies[0], room, number) for number, name in enumerate(("ann", "bob", "run"))
        }
        return proxies[0]

    yield room, start
    room.close()  # before the proxy, for it may hold what still lives
    for proxy in proxies:
        proxy.close()


def door(proxy, room, number):
    with socket.create_connection(proxy.address) as sock:
        sock.sendall(f"{number} {HOST} {room.port}\n".encode())
        return f"{HOST}:{int(sock.makefile().readline())}"


def join(room, name):
    member = room.start("join", room.doors[name], "--name", name)
    room.members.append(member)
    read_until(member.stderr, "in the room: ")
    return member


def start(room, *options):
    words = (
        "run",
        "--room",
        room.doors["run"],
        "--members",
        2,
        "--stall",
        0,
        *options,
        "-n",
        3,
        room.script(ADDS),
    )
    run = room.start(*words, stdin=-1)
    assert read_lines(run, 3) == ["ready"] * 3
    return run


def add(run, number):
    """All nodes say what comes of it."""
    run.stdin.write(b"%d\n" % number)
    assert sorted(read_lines(run, 3)) == [f"{rank} {3 * number}" for rank in range(3)]


def end(room, run):
    result = room.finish(run, b"")
    assert result.code == 0 and result.lines == [] and result.err == "", result
    assert all(result.code == 0 for result in room.close_room())


# ---- each connection by itself


@pytest.mark.parametrize("resets", [pytest.param(False, marks=pytest.mark.slow), True], ids=["cut", "reset"])
def test_each_connection_is_cut(proxied, resets):
    """Two members, the run, and two ends for each way to a box."""
    room, through = proxied
    proxy = through()
    for name in ("ann", "bob"):
        join(room, name)
    run = start(room)
    found = proxy.controlled()
    assert len(found) == 7
    for number, connection in enumerate(found):
        proxy.cut(connection, resets)
        add(run, number)
    for number in range(2):  # all at a time, some of which have hardly begun
        for connection in proxy.controlled():
            proxy.cut(connection, resets)
        add(run, number)
    end(room, run)


def test_connections_of_boxes_without_a_launcher_are_cut(proxied):
    """While one waits for the other, and during the run."""
    room, through = proxied
    proxy = through()

    def cut():
        for connection in proxy.controlled():
            proxy.cut(connection, True)

    def box(nodes, name):
        infile = f"local_nodes={nodes}\ntotal_nodes=3"
        command = (sys.executable, "program.py")
        return room.box(*command, infile=infile, name=name, place=room.doors[name], stdin=-1)

    room.script(ADDS.replace("startup()", "startup(infile=sys.argv[1])"))
    first = box(1, "ann")
    read_until(first.stderr, "waiting for nodes: ")
    cut()
    second = box(2, "bob")
    assert read_lines(first, 1) + read_lines(second, 2) == ["ready"] * 3
    for number in range(2):
        cut()
        first.stdin.write(b"%d\n" % number)
        found = read_lines(first, 1) + read_lines(second, 2)
        assert sorted(found) == [f"{rank} {3 * number}" for rank in range(3)]
    cut()
    assert [room.finish(one, b"").code for one in (first, second)] == [0, 0]
    assert room.close_room()[0].code == 0


def test_members_come_back_between_runs(proxied):
    room, through = proxied
    proxy = through()
    for name in ("ann", "bob"):
        join(room, name)
    for _run in range(2):
        for connection in proxy.controlled():
            proxy.cut(connection, True)
        end_of = start(room)
        add(end_of, 5)
        assert room.finish(end_of, b"").code == 0
    server, ann, bob = room.close_room()
    assert server.err.count("has joined") == 2 and "has left" not in server.err, server
    assert server.err.count("on ann, bob") == 2, server
    assert ann.code == 0 and bob.code == 0


@pytest.mark.slow
@pytest.mark.parametrize("who", each(3, ["ann", "bob", "run"]))
def test_a_way_that_swallows_everything(proxied, who):
    """After a third of the timeout another connection is made."""
    room, through = proxied
    proxy = through(timeout=9)
    for name in ("ann", "bob"):
        join(room, name)
    run = start(room)
    number = ("ann", "bob", "run").index(who)
    proxy.blackhole(number)
    ends = [one for one in proxy.controlled() if one.box == number]
    for _connection in ends:
        assert proxy.ended.acquire(timeout=60)
    with proxy.lock:
        proxy.holes.clear()
    add(run, 7)
    assert room.finish(run, b"").code == 0
    run = start(room)  # on both members, which are back
    add(run, 8)
    end(room, run)


@pytest.mark.slow
def test_a_member_that_is_stopped_for_a_while(proxied):
    """Longer than a heartbeat, and shorter than the timeout: the server has closed its connection meanwhile."""
    room, through = proxied
    proxy = through(timeout=6)
    ann = join(room, "ann")
    join(room, "bob")
    stop(ann.pid)
    assert proxy.ended.acquire(timeout=60)
    os.kill(ann.pid, signal.SIGCONT)
    run = start(room)
    add(run, 1)
    end(room, run)


@pytest.mark.slow
def test_output_that_nobody_reads_while_connections_break(proxied):
    """It waits in the box, beyond what each link takes."""
    room, through = proxied
    proxy = through()
    for name in ("ann", "bob"):
        join(room, name)
    text = """
        import spcomm
        comm = spcomm.startup()
        for number in range(30_000):
            print(comm.rank, number, "x" * 100)
    """
    words = ("run", "--room", room.doors["run"], "--members", 2, "-n", 2, room.script(text))
    run = room.start(*words)
    first = read_lines(run, 1)
    for _time in range(3):
        for connection in proxy.controlled():
            proxy.cut(connection, True)
        first += read_lines(run, 1000)
    result = room.finish(run)
    assert result.code == 0, result
    lines = first + result.lines
    for rank in range(2):
        found = [line for line in lines if line.startswith(f"{rank} ")]
        assert found == [f"{rank} {number} {'x' * 100}" for number in range(30_000)]
    room.close_room()


# ---- longer than the timeout


@pytest.mark.slow
def test_a_launcher_that_is_stopped_for_longer_than_the_timeout(proxied):
    """As by Ctrl-Z: the relays show that the run is still there."""
    room, through = proxied
    through(timeout=3)
    for name in ("ann", "bob"):
        join(room, name)
    zoe = room.join("zoe", "--nodes", "1")
    run = start(room, "--members", 3)
    for pid in (run.pid, zoe.pid):
        stop(pid)
    read_until(room.server.stderr, "zoe has left (2 members)")  # so it took longer
    for pid in (run.pid, zoe.pid):
        os.kill(pid, signal.SIGCONT)
    add(run, 4)
    end(room, run)


@pytest.mark.slow
def test_a_member_that_slept_for_longer_than_the_timeout_is_back(proxied):
    room, through = proxied
    through(timeout=3)
    ann = join(room, "ann")
    stop(ann.pid)
    read_until(room.server.stderr, "ann has left (0 members)")
    os.kill(ann.pid, signal.SIGCONT)
    read_until(room.server.stderr, "ann has joined")
    read_until(ann.stderr, "this machine is back in the room, as ann")
    room.close_room()


@pytest.mark.slow
def test_a_network_that_is_gone_for_longer_than_the_timeout_ends_the_run(proxied):
    room, through = proxied
    proxy = through(timeout=3)
    for name in ("ann", "bob"):
        join(room, name)
    run = start(room)
    proxy.blackhole(0)
    result = room.finish(run)
    assert result.code == 125 and ("ann" in result.last or "box 0" in result.last), result
    read_until(room.server.stderr, "ann has left (1 member)")
    with proxy.lock:
        proxy.holes.clear()
    read_until(room.server.stderr, "ann has joined")
    run = start(room)
    add(run, 3)
    end(room, run)


def test_a_server_that_was_restarted(room):
    """With the same code its members are back; with another one they say so, and end."""
    room.serve("--room", "--link-timeout", 3)
    ann = room.join("ann")
    room.server.kill()
    room.server.wait()
    again = room.start("serve", "--room", "--listen", room.place, "--link-timeout", 3)
    read_until(again.stdout, "Ctrl-C ends it.")
    read_until(ann.stderr, "this machine is back in the room, as ann")
    again.kill()
    again.wait()
    room.server = room.start("serve", "--room", "--listen", room.place, env={"SPCOMM_CODE": None})
    read_until(room.server.stdout, "Ctrl-C ends it.")
    result = room.finish(ann)
    assert result.code == 125 and "does not know that code" in result.last, result
    room.members.clear()
    room.close_room()


@pytest.mark.parametrize(
    ("was_closed", "renews", "patience_s"),
    [(True, False, 1.0), (False, False, 30.0), (True, True, 30.0)],
    ids=["closed", "silent", "a member"],
)
def test_how_long_a_link_is_refused_before_its_server_is_gone(was_closed, renews, patience_s, monkeypatch):
    """A machine that was silent before may be another one; and a member waits for a server that is restarted."""
    now = [100.0]
    monkeypatch.setattr(room_link, "time", SimpleNamespace(monotonic=lambda: now[0]))
    link = ClientLink.__new__(ClientLink)
    link._core, link._renews = ControlLink(30.0, 100.0), renews
    link._was_closed, link._nobody_since = was_closed, None
    refused = connect.NobodyError("nothing listens")

    def gone(error, after_s):
        now[0] += after_s
        return link._is_nobody_there(error)

    assert not gone(refused, 0.0) and not gone(refused, patience_s - 0.1) and gone(refused, 0.1)
    assert not gone(connect.ClosedError("while the server ended"), 0.0)
    assert not gone(refused, 0.0) and not gone(refused, patience_s - 0.1) and gone(refused, 0.1)
    assert not gone(connect.EntryError("cannot be reached"), 0.0)  # the network was another one meanwhile
    assert not gone(refused, 0.0) and not gone(refused, 29.0) and gone(refused, 1.0)


# ---- all operations


def everything(room, through, faults, seed, kinds=KINDS, every=3_000, **more):
    done = room.folder / "done"
    proxy = through(timeout=10, seed=seed, kinds=kinds, every=every, done=done.touch, **more)
    path = ":".join([*map(str, PATHS), room.environment()["PYTHONPATH"]])
    for name in ("ann", "bob"):
        member = room.start("join", room.doors[name], "--name", name, env={"PYTHONPATH": path})
        room.members.append(member)
    words = ("--room", room.doors["run"], "--members", 2, "-n", 4, "--stall", 0)
    run = room.start("run", *words, PROGRAM, seed, done, 6)
    said = read_until(room.server.stderr, "runs all_operations.py")
    with proxy.lock:
        proxy.left = faults
    result = room.finish(run)
    assert result.code == 0, (seed, proxy.happened, result)
    assert len(result.lines) == 4 and len({line.split()[1] for line in result.lines}) == 1, result
    assert proxy.left == 0 and len(proxy.happened) == faults
    for one in room.close_room():
        assert one.code == 0 and re.search("back in the room|has left", said + one.err) is None, one


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ten_faults(proxied):
    room, through = proxied
    everything(room, through, 10, 1)


# One member, the run and its ways to both boxes, or all of these.
DOORS = {"member": (0,), "launcher": (2,), "all": (0, 1, 2)}


@pytest.mark.stress
@pytest.mark.timeout(900)
@pytest.mark.parametrize("doors", DOORS)
def test_two_hundred_faults(proxied, doors, monkeypatch):
    monkeypatch.setattr("launching.WATCHDOG_S", 800)
    room, through = proxied
    everything(room, through, 200, 2, doors=DOORS[doors], every=3_000)


HANDSHAKE = 10  # pieces of a new connection, about, until the link goes on over it; then comes a heartbeat now and then


class EachConnectionFails(ControlProxy):
    """Does a fault to each control connection, at one of its first pieces.

    Boxes without a launcher print for themselves, so once they have met, hardly anything but heartbeats comes through
    their links. After a fault in the handshake the next connection of that box is made: so no link is silent for long.
    """

    def __init__(self, **faults):
        self.failed_early = set()  # boxes
        super().__init__(**faults)

    def take(self, connection, way, data):
        if not hasattr(connection, "pieces"):
            early = 1 if connection.box not in self.failed_early else HANDSHAKE
            connection.pieces, connection.due = 0, self.chance.randint(early, HANDSHAKE + 4)
        connection.pieces += 1
        is_due = connection.pieces >= connection.due and not connection.swallows_until
        self.next = 0 if is_due else float("inf")
        left = self.left
        super().take(connection, way, data)
        if self.left != left:
            (self.failed_early.add if connection.due < HANDSHAKE else self.failed_early.discard)(
                connection.box
            )
            connection.due = connection.pieces + self.chance.randint(1, 4)  # where it goes on


def meet_through_faults(room, through, faults):
    """Boxes without a launcher. They have met: before, a box whose first attempt fails says so at once."""
    done = room.folder / "done"
    proxy = through(EachConnectionFails, timeout=10, seed=3, done=done.touch)
    path = {"PYTHONPATH": ":".join([*map(str, PATHS), room.environment()["PYTHONPATH"]])}

    def box(ranks, name):
        command = (sys.executable, PROGRAM, 3, done, 6)
        infile = f"ranks = {ranks}\ntotal_nodes = 5"
        return room.box(*command, infile=infile, name=name, place=room.doors[name], env=path)

    first = box([0, 1, 3], "ann")
    read_until(first.stderr, "waiting for nodes: ")
    boxes = first, box([2, 4], "bob")
    read_until(room.server.stderr, "group 0 runs ")
    with proxy.lock:
        proxy.left = faults
    results = [room.finish(one) for one in boxes]
    assert [result.code for result in results] == [0, 0], (len(proxy.happened), proxy.happened[-9:], results)
    assert len({line.split()[1] for result in results for line in result.lines}) == 1, results
    assert proxy.left == 0 and len(proxy.happened) == faults
    assert room.close_room()[0].code == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ten_faults_of_boxes_without_a_launcher(proxied):
    meet_through_faults(*proxied, 10)


@pytest.mark.stress
@pytest.mark.timeout(900)
def test_two_hundred_faults_of_boxes_without_a_launcher(proxied, monkeypatch):
    monkeypatch.setattr("launching.WATCHDOG_S", 800)
    meet_through_faults(*proxied, 200)
