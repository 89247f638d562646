# SPDX-License-Identifier: MIT
"""Nodes of a cluster on the members of a room: calls, what goes wrong there, what is refused, and what is left."""

import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest

import spcomm
from owners import KEPT, Owner, have_ended, is_well
from rooming import CODE, OTHER_CODE, read_until
from spcomm.launch.base.wire import LENGTH_BYTES
from spcomm.launch.room import join_code
from spcomm.notebook import channel, pickling

NEW = "the nodes are new, and their variables are gone"


@pytest.fixture
def cluster(two):
    with spcomm.Cluster(room=two.place) as found:
        yield found


def test_functions_run_on_the_members(two, capsys):
    with spcomm.Cluster(room=two.place) as cluster:
        assert repr(cluster) == f"<Cluster: 3 nodes in the room at {two.place}>"
        assert (cluster.size, cluster.boxes, cluster.room) == (3, 2, two.place)
        before, factor = cluster.processes, 3
        assert cluster.run(lambda comm, more: comm.allreduce(comm.rank * factor) + more, 1) == [10, 10, 10]
        (array, _, _) = cluster.run(lambda comm: np.arange(6.0).reshape(2, 3).T)
        assert np.array_equal(array, np.arange(6.0).reshape(2, 3).T)
        cluster.execute("print('node', comm.rank)")
        assert sorted(capsys.readouterr().out.splitlines()) == [f"[{rank}] node {rank}" for rank in range(3)]
    assert have_ended(before)
    server, *members = two.close_room()
    assert "runs a Cluster" in server.err and all("runs a Cluster here" in one.err for one in members)
    assert two.left() == []


@pytest.mark.slow
def test_the_output_of_a_call_is_there_when_it_ends(cluster, capsys):
    """However much it is: several times what a pipe holds, and a relay keeps."""
    cluster.execute("for line in range(20_000): print(line, '.' * 100)")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 60_000
    for rank in range(3):
        mine = [int(line.split()[1]) for line in lines if line.startswith(f"[{rank}] ")]
        assert mine == list(range(20_000))


@pytest.mark.slow
def test_an_array_of_some_size_arrives_both_ways(cluster):
    array = np.random.default_rng(1).random(1_000_000)
    back = cluster.run(lambda comm, sent: sent * 2, array)
    assert all(np.array_equal(one, array * 2) for one in back)


@pytest.mark.slow
def test_the_modules_of_the_caller_go_with_its_functions(two, tmp_path, monkeypatch):
    """No member has this folder, and a function needs another module of it."""
    (tmp_path / "inner_module.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "outer_module.py").write_text(
        "import inner_module\n\ndef quadruple(comm, x):\n    return inner_module.double(inner_module.double(x))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import outer_module

    try:
        with spcomm.Cluster(2, room=two.place) as cluster:
            assert cluster.run(outer_module.quadruple, 5) == [20, 20]
    finally:
        del sys.modules["outer_module"], sys.modules["inner_module"]


# ---- calls that go wrong


def test_a_deadlock_of_one_member_is_reported(room):
    room.serve("--room")
    room.join("ann")
    with spcomm.Cluster(3, room=room.place) as cluster:
        with pytest.raises(spcomm.DeadlockError, match="all 3 nodes wait") as error:
            cluster.execute("comm.recv(source=(comm.rank + 1) % 3)")
        assert str(error.value).endswith(KEPT) and is_well(cluster)


@pytest.mark.slow
def test_nodes_of_members_are_shown_while_they_run(cluster, tmp_path):
    pytest.importorskip("PIL", reason="pip install 'spcomm[notebook]'")
    path, seen = tmp_path / "go", []
    code = (
        f"import os, time\nif comm.rank == 0:\n    while not os.path.exists({str(path)!r}): time.sleep(0.001)\n"
        "    comm.send(1, 1); comm.send(1, 2)\nelse: comm.recv(source=0)"
    )

    def watch(html):
        seen.append(html)
        if html.count("recv(source=0") == 2:
            path.touch()

    cluster.execute(code, watch=watch)
    assert path.exists() and "(3 ended)" in seen[-1] and seen[-1].count("comes at the end") == 3
    assert is_well(cluster)


# ---- members and the server


def test_a_member_that_leaves_is_named_and_the_others_go_on(two, capsys):
    with spcomm.Cluster(2, room=two.place) as cluster:
        cluster.execute("comm.barrier()")
        bob = two.members.pop()
        bob.send_signal(signal.SIGINT)
        two.finish(bob)
        read_until(two.server.stderr, "bob has left")
        assert cluster.execute("comm.box, comm.size") == [(0, 2), (0, 2)]
        err = capsys.readouterr().err
        assert "node 1 was lost: member bob" in err and NEW in err
    two.close_room()


@pytest.mark.parametrize("two", [("--link-timeout", 3)], indirect=True)
def test_a_member_that_is_killed_ends_the_call_with_its_name(two):
    with spcomm.Cluster(2, room=two.place) as cluster:
        cluster.push(member=two.members[1].pid)
        with pytest.raises(spcomm.NodeLostError, match="node 1 was lost: member bob"):
            cluster.execute("import os\nif comm.rank == 0: os.kill(member, 9)\ncomm.recv()")
        assert is_well(cluster)


def test_a_member_that_joins_takes_part_after_a_restart(two):
    with spcomm.Cluster(2, room=two.place) as cluster:
        two.join("eve")
        assert cluster.boxes == 2
        cluster.restart(3)
        assert (cluster.size, cluster.boxes) == (3, 3) and is_well(cluster)


@pytest.mark.slow
def test_the_end_of_the_room_is_told(two):
    with spcomm.Cluster(2, room=two.place) as cluster:
        processes = cluster.processes
        two.close_room()
        with pytest.raises(spcomm.SpcommError, match=r"Cluster: .*nothing listens at its port"):
            cluster.execute("1")
        assert have_ended(processes)


@pytest.mark.parametrize("two", [("--link-timeout", 1)], indirect=True)
@pytest.mark.slow
def test_a_pause_longer_than_the_link_timeout_is_no_silence(two):
    """Between two calls the caller does nothing at all; it is stopped here to make sure."""
    owner = Owner(
        """
        import os, signal, sys, spcomm
        with spcomm.Cluster(2, room=sys.argv[1]) as cluster:
            print(cluster.execute("x = comm.rank; x"))
            os.kill(os.getpid(), signal.SIGSTOP)
            print(cluster.execute("comm.global_sum(x)"))
        """,
        two.place,
    )
    assert owner.line() == "[0, 1]"
    os.waitid(os.P_PID, owner.process.pid, os.WSTOPPED | os.WNOWAIT)
    other = two.run("-n", 2, "-m", "this")  # more of a run than a second of silence
    assert other.code == 0, other
    subprocess.run([sys.executable, "-c", "import select; select.select([], [], [], 2.0)"], check=True)
    owner.process.send_signal(signal.SIGCONT)
    assert owner.line() == "[1, 1]"
    assert owner.finish()[0] == 0


@pytest.mark.slow
def test_clusters_and_runs_share_a_room(two):
    with spcomm.Cluster(2, room=two.place) as one, spcomm.Cluster(2, room=two.place) as other:
        one.execute("x = 1")
        other.execute("x = 2")
        result = two.run("-n", 2, "-m", "this")
        assert result.code == 0 and "Beautiful" in result.out
        assert one.pull("x") == [1, 1] and other.pull("x") == [2, 2]


def test_nothing_outlives_the_caller(two, tmp_path):
    """It is killed in the middle of a call."""
    owner = Owner(
        """
        import os, sys, spcomm
        cluster = spcomm.Cluster(2, room=sys.argv[1])
        print(*cluster.processes)
        cluster.push(owner=os.getpid())
        cluster.execute("comm.barrier()\\nimport os\\nif comm.rank == 0: os.kill(owner, 9)\\ncomm.recv(source=0)")
        """,
        two.place,
    )
    processes = owner.numbers()
    assert owner.finish()[0] == -9 and len(processes) == 2 and have_ended(processes)
    read_until(two.server.stderr, "has ended")
    two.close_room()
    assert two.left() == []


@pytest.mark.slow
def test_cells_on_the_members(two):
    pytest.importorskip("IPython", reason="IPython is not installed: pip install ipykernel")
    owner = Owner(
        """
        import sys
        from IPython.terminal.embed import InteractiveShellEmbed
        shell = InteractiveShellEmbed.instance(banner1="", colors="NoColor")
        shell.run_cell("%load_ext spcomm")
        for cell in (
            f"%%spcomm --room {sys.argv[1]}\\nx = comm.box",
            "%spcomm status",
            "%%spcomm\\nx, comm.size",
            "%%spcomm --boxes 2\\nx",
            "%%spcomm -n 2\\ncomm.box",
            "%spcomm stop",
            "%%spcomm -n 1 --boxes 1\\ncomm.box",
        ):
            print(shell.run_cell(cell, store_history=True).result)
        """,
        two.place,
    )
    code, out, err = owner.finish()
    assert code == 0, err
    assert f"spcomm: 3 nodes in 2 boxes, in the room at {two.place}, since" in out
    assert "[(0, 3), (0, 3), (1, 3)]" in out and "\n[0, 1]\n" in out and out.endswith("[0]\n"), out
    assert "in a room each member is a box; leave --boxes out" in out + err
    assert "2 nodes instead of 3: they are new, and all variables are gone" in err, err
    two.close_room()


# ---- what is refused


@pytest.mark.slow
def test_the_code_is_needed_and_never_wrong_for_long(two, monkeypatch):
    monkeypatch.setenv(join_code.VARIABLE, OTHER_CODE)
    with pytest.raises(spcomm.ConfigError, match="does not know that code") as error:
        spcomm.Cluster(2, room=two.place)
    assert str(error.value).startswith("Cluster: ") and "\n" not in str(error.value)
    monkeypatch.setattr("getpass.getpass", lambda _prompt: CODE)
    with spcomm.Cluster(2, room=two.place) as cluster:
        assert is_well(cluster)
    monkeypatch.setattr("getpass.getpass", lambda _prompt: pytest.fail("it was asked for twice"))
    with spcomm.Cluster(2, room=two.place) as cluster:
        assert is_well(cluster)


def test_a_server_that_is_no_room_refuses(room):
    room.serve()
    with pytest.raises(spcomm.SpcommError, match="this server has no room: it was started without --room"):
        spcomm.Cluster(2, room=room.place)


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        ({"room": 7}, TypeError, "a room is a str"),
        ({"room": "a b"}, spcomm.ConfigError, "is neither a host nor HOST:PORT"),
        ({"room": "desk", "boxes": 2}, spcomm.ConfigError, "in a room each member is a box"),
    ],
)
def test_wrong_rooms(wrong, kind, text):
    with pytest.raises(kind, match=text):
        spcomm.Cluster(2, **wrong)


# ---- a member cannot run code in the caller


class _Evil:
    def __reduce__(self):
        return os.environ.setdefault, ("SPCOMM_EVIL", "1")


@pytest.mark.parametrize(
    "value",
    [_Evil(), [_Evil()], print, type("Own", (), {}), ValueError(_Evil())],
    ids=["call", "inside", "function", "class", "exception"],
)
def test_what_a_member_sends_is_data(value):
    data = pickling.packed(value, "")
    with pytest.raises(pickle.UnpicklingError, match="from the members of a room come"):
        pickling.unpacked(data, is_plain=True)
    assert "SPCOMM_EVIL" not in os.environ


class _Made:
    """Pickled as a call, with a state if there is one."""

    def __init__(self, *call, state=None):
        self.reduced = (*call, state) if state else call

    def __reduce__(self):
        return self.reduced


OUTSIDE = _Made(
    np.dtype, ("V8", False, True), state=(3, "|", None, ("a",), {"a": (np.dtype("i8"), 99_999)}, 8, 1, 16)
)
EMPTY = (np._core.multiarray._reconstruct, (np.ndarray, (0,), b"b"))


@pytest.mark.parametrize(
    "value",
    [
        np.ndarray,
        OUTSIDE,
        _Made(*EMPTY, state=(1, (2,), OUTSIDE, False, b"x" * 16)),
        _Made(bytearray, (1 << 40,)),
        _Made(pickling.array_of_bytes, ("u1", (1 << 40,), "C", b"x")),
        _Made(pickling.array_of_bytes, ("u1", (-1, -1), "C", b"x")),
        _Made(pickling.array_of_bytes, ("O", (1,), "C", b"x" * 8)),
        _Made(pickling.array_of_bytes, ([("a", "O")], (1,), "C", bytearray(8))),
        _Made(pickling.array_of_bytes, ("(2,2)O", (1,), "C", b"x" * 32)),
        _Made(pickling.array_of_bytes, ("u1", (1 << 30,), "C", None)),
        _Made(pickling.array_of_bytes, ("f8", (2,), "C", "text")),
        _Made(pickling.array_of_bytes, ("V0", (1 << 62, 8), "C", b"")),
        _Made(pickling.array_of_bytes, (("i4", {"a": ("i8", 99_999)}), (1,), "C", b"x" * 4)),
        _Made(pickling.scalar_of_bytes, ("O", (), "C", b"x" * 8)),
        _Made(pickling.array_of_objects, ((1 << 40,), [])),
    ],
)
def test_arrays_that_are_forged_are_refused(value):
    """NumPy trusts the state of a dtype: fields outside of the items, and pointers from bytes, end the interpreter."""
    data = pickle.dumps(value, 4)
    with pytest.raises((pickle.UnpicklingError, TypeError, ValueError)):
        pickling.unpacked(data, is_plain=True)


def test_values_that_are_not_plain(cluster):
    class Own:
        def __repr__(self):
            return "<mine>"

    with pytest.raises(spcomm.ClusterError, match=r"node 0 cannot be read here: .* not \w+"):
        cluster.run(lambda comm: Own())
    assert (
        str(cluster.execute("class Own:\n    def __repr__(self): return '<mine>'\nOwn()"))
        == "[<mine>, <mine>, <mine>]"
    )
    with pytest.raises(spcomm.ClusterError, match="raised Wrong") as error:
        cluster.execute("class Wrong(Exception): pass\nraise Wrong(1)")
    assert error.value.error is None and is_well(cluster)


PLAIN = [None, True, -(2**70), 1.5, 2j, "ä", b"\0", [1, [2]], (1,), {1: {2}}, frozenset([3]), range(3)]
PLAIN += [slice(1, 2), bytearray(b"x"), ValueError("x", 1), spcomm.WaitTimeoutError("late"), np.float32(2)]
PLAIN += [np.datetime64("2020"), np.str_("ä"), np.bool_(True), np.zeros(1, "i4,f8")[0]]


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: type(value).__name__)
def test_plain_values_arrive(value):
    found = pickling.unpacked(pickling.packed(value, ""), is_plain=True)
    assert type(found) is type(value) and (repr(found) == repr(value))


DTYPES = ["f8", ">i4", "?", "c16", "f2", "U3", "S2", "V3", "O", "M8[s]", "m8", np.longdouble]
DTYPES += [[("a", "i4"), ("b", ">f8", (2,))], np.dtype("i1,f8", align=True)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("is_plain", [True, False])
def test_arrays_arrive(dtype, is_plain):
    whole = np.zeros((3, 4, 2), dtype)
    if not whole.dtype.hasobject:
        bits = np.random.default_rng(1).integers(0, 2, whole.nbytes, "u1")
        whole = np.frombuffer(bits, dtype).reshape(3, 4, 2)
    sealed = whole.copy()
    sealed.flags.writeable = False
    for array in (whole, whole.T, whole[::2], whole[:, 1], whole[:0], whole[1, 1, 1, ...], sealed):
        found = pickling.unpacked(pickling.packed(array, ""), is_plain)
        assert (type(found), found.dtype, found.shape) == (np.ndarray, array.dtype, array.shape)
        assert repr(found.tolist()) == repr(array.tolist()) and found.flags.writeable


GOOD = [
    ("done", b"abc"),
    ("done", None),
    ("failed", b"E", "ValueError", b"text\n", None),
    ("figure", b""),
    ("item", 7, b"x" * 5000),
]


@pytest.fixture
def ends():
    """The caller's end, and what the node writes to."""
    mine = channel.Channel(is_plain=True)
    node = channel.PlainWire.adopt(mine.theirs)
    yield mine, node
    node.detach()
    mine.close()


def test_messages_of_nodes_elsewhere_arrive(ends):
    mine, node = ends
    for message in GOOD:
        node.send(message)
    assert mine.read() == GOOD


HEADS = [
    "",
    "[]",
    "{}",
    '["over"]',
    '["done"]',
    '["done", -1]',
    '["done", "x"]',
    '["done", 1, 2]',
    '["item", "x", 1]',
]
HEADS += ['["item", -1, 1]', '["figure", 99999999999999]', '["failed", 1, 2, 3, 4]', "\xff", "[" * 100_000]


@pytest.mark.parametrize("head", HEADS)
def test_what_no_node_sends_is_refused(ends, head):
    mine, node = ends
    head = head.encode("latin-1")
    os.write(node.fileno(), len(head).to_bytes(LENGTH_BYTES, "little") + head + b"rest")
    with pytest.raises((LookupError, TypeError, ValueError)):
        while True:
            mine.read()


def test_a_head_that_is_too_long_is_refused(ends):
    mine, node = ends
    os.write(node.fileno(), b"\xff\xff\xff\x7f" + b"[")
    with pytest.raises(ValueError, match="begins with"):
        mine.read()
