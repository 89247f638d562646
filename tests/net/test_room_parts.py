# SPDX-License-Identifier: MIT
"""Parts of rooms: codes, frames through TLS, folders, options."""

import contextlib
import io
import os
import socket
import ssl
import sys
import tarfile
from types import SimpleNamespace

import pytest

from rooming import Site
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.options import Part
from spcomm.launch.remote import handshake, tls, versions
from spcomm.launch.remote.framing import FrameError
from spcomm.launch.room import folder, join_code, prompt, remote_box
from spcomm.launch.room.broker import Broker
from spcomm.launch.room.client import _spread
from spcomm.launch.room.room_framing import RoomFrames
from spcomm.launch.room.room_link import proof

# ---- codes


def test_there_are_as_many_words_as_two_to_the_77_needs():
    words = {join_code.word(number) for number in range(join_code.COUNT)}
    assert len(words) == join_code.COUNT == 6**5 and {len(word) for word in words} == {5}
    assert join_code.COUNT**join_code.WORDS > 2**77


def test_codes_are_read_as_people_write_them():
    code = join_code.new()
    assert code != join_code.new() and join_code.read(code) == code
    assert join_code.read("  " + code.upper().replace(" ", " - ") + ".\n") == code


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "has 0"),
        ("balot " * 5, "has 5"),
        ("balad " * 7, "has 7"),
        ("balad " * 4 + "balax balad", "word 5"),
    ],
)
def test_what_is_no_code(text, part):
    with pytest.raises(join_code.CodeError, match=part):
        join_code.read(text)


# ---- frames through TLS


def session_pair():
    """TLS that is established: of a client and a server."""
    ends, made = socket.socketpair(), [tls.Session(False), tls.Session(True)]
    with ends[0], ends[1]:
        for end in ends:
            end.setblocking(False)
        for session, end in [*zip(made, ends, strict=True)] * 2:  # the client ends first, and then the server
            with contextlib.suppress(BlockingIOError):
                session.begin(end)
        assert made[0].fingerprint == made[1].fingerprint
    return made


@pytest.fixture
def ends():
    """Two ends of a connection, and the wire between: what client and server write comes out at the far sockets."""
    listener = socket.create_server(("127.0.0.1", 0))
    sessions, made, wires = session_pair(), [], []
    for session in sessions:
        made.append(RoomFrames(socket.create_connection(listener.getsockname()), session))
        wires.append(listener.accept()[0])
        wires[-1].settimeout(60)
    listener.close()
    yield (*made, *wires)
    for end in made + wires:
        end.close()


def wait(end):
    import select

    assert select.select([end.reading], [], [], 60)[0]


def carried(client, to_client, *message):
    """The bytes that a client writes for it."""
    client.send(list(message))
    return to_client.recv(1 << 16)


def test_sealed_frames_arrive(ends):
    client, server, to_client, to_server = ends
    sent = carried(client, to_client, "one") + carried(client, to_client, "two")
    assert b"one" not in sent
    to_server.sendall(sent)
    found = []
    while len(found) < 2:
        wait(server)
        found += [message for message, _data in server.receive()]
    assert found == [["one"], ["two"]]


@pytest.mark.parametrize("how", ["changed", "again", "left out", "reflected", "of another connection"])
def test_sealed_frames_that_are_not_as_they_were_sent(ends, how):
    client, server, to_client, to_server = ends
    one, two = carried(client, to_client, "one"), carried(client, to_client, "two")
    if how == "changed":
        bad = one[:-1] + bytes([one[-1] ^ 1])
    elif how == "again":
        bad = one + one
    elif how == "left out":
        bad = two
    elif how == "reflected":
        server.send(["one"])
        bad = to_server.recv(1 << 16)
    else:
        bad = session_pair()[0].encrypt(b"one")
    to_server.sendall(bad)
    wait(server)
    with pytest.raises(FrameError, match="changed on the way"):
        server.receive()


# ---- the gate


@pytest.mark.parametrize(
    ("guests", "leaves"),
    [
        ([("a", 0), ("a", 0)], 0),  # the oldest
        ([("a", 1), ("a", 0), ("a", 0)], 1),  # the oldest of those that have said nothing
        ([("b", 0), ("a", 1), ("a", 1)], 1),  # the oldest of those from where most come
        ([("a", 1), ("b", 0), ("b", 1), ("b", 0)], 1),
    ],
)
def test_who_gives_way_when_too_many_knock(guests, leaves):
    gate = handshake.Gate(None, None, {}, None)
    for number, (address, version) in enumerate(guests):
        talk = SimpleNamespace(peer=(version, 0, 0))
        gate._guests[number] = None, talk, address
    assert gate._least_welcome() == leaves


# ---- folders


def part(program, where):
    return Part(program=program, folder=str(where))


def test_which_folder_is_sent(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.py").touch()
    here, sub = str(tmp_path), str(tmp_path / "sub")
    assert folder.choose(part("sub/x.py", here)) == (here, "sub/x.py")
    assert folder.choose(part(f"{sub}/x.py", here)) == (here, "./sub/x.py")
    (tmp_path / "other").mkdir()
    assert folder.choose(part("../sub/x.py", f"{here}/other")) == (sub, "./x.py")
    assert folder.choose(part("true", here)) == (here, "true")
    assert folder.choose(part(None, here)) == (here, None)


@pytest.mark.parametrize("where", ["/", "~"])
def test_a_home_folder_is_not_sent(where):
    with pytest.raises(UsageError, match="home folder; put the program into a folder of its own"):
        folder.choose(part("true", os.path.expanduser(where)))


def test_what_of_a_folder_is_sent(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    for name in (
        "a.py",
        "deep/b/c.txt",
        ".git/config",
        "deep/__pycache__/a.pyc",
        "env/pyvenv.cfg",
        "env/bin/python",
        "back/.spcomm-fetched",
        "back/ann/out.txt",
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "empty").mkdir()
    (source / "link").symlink_to("a.py")
    (source / "outside").symlink_to("/")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(source / "sock"))
    target.mkdir()
    with folder.pack(str(source)) as packed:
        folder.unpack(packed, str(target))
    found = sorted(str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir())
    assert found == ["a.py", "deep/b/c.txt", "link", "run.sh"]
    assert (target / "empty").is_dir() and os.access(target / "run.sh", os.X_OK)
    assert (target / "deep/b/c.txt").read_text() == "deep/b/c.txt" and not (target / "link").is_symlink()


def test_a_folder_that_is_too_large(tmp_path, monkeypatch):
    (tmp_path / "small").write_bytes(b"x" * 10)
    (tmp_path / "large.bin").write_bytes(b"x" * 1000)
    monkeypatch.setattr(folder, "MOST_BYTES", 1005)
    with pytest.raises(
        UsageError, match=r"more than 1005 bytes or 10000 files; the largest file so far is large.bin"
    ):
        folder.pack(str(tmp_path))
    monkeypatch.setattr(folder, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(folder, "MOST_FILES", 1)
    with pytest.raises(UsageError, match="or 1 files"):
        folder.pack(str(tmp_path))


def packed(*entries):
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w:gz") as archive:
        for name, kind, size in entries:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, size, "/"
            archive.addfile(info, io.BytesIO(b"x" * size))
    return found


@pytest.mark.parametrize(
    "entry",
    [
        ("../x", tarfile.REGTYPE, 1),
        ("a/../../x", tarfile.REGTYPE, 1),
        ("/tmp/x", tarfile.REGTYPE, 1),
        ("x", tarfile.SYMTYPE, 0),
        ("x", tarfile.LNKTYPE, 0),
        ("x", tarfile.FIFOTYPE, 0),
        ("x", tarfile.REGTYPE, 4097),
    ],
    ids=lambda entry: f"{entry[0]} {entry[1].decode()} {entry[2]}",
)
def test_folders_that_nobody_unpacks(tmp_path, monkeypatch, entry):
    monkeypatch.setattr(folder, "MOST_BYTES", 4096)
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(ValueError, match="the folder that came"):
        folder.unpack(packed(entry), str(target))
    assert list(tmp_path.iterdir()) == [target] and not list(target.iterdir())


def test_a_folder_that_is_damaged(tmp_path):
    whole = packed(("x", tarfile.REGTYPE, 100)).getvalue()
    for bytes_ in (b"", b"garbage", whole[:40]):
        with pytest.raises(ValueError, match="damaged"):
            folder.unpack(io.BytesIO(bytes_), str(tmp_path))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_folder_that_comes_to_a_full_disk(monkeypatch):
    box = object.__new__(remote_box.RoomBox)
    told = []
    monkeypatch.setattr(box, "_fail", told.append)
    with open("/dev/full", "wb", buffering=0) as box._packed:
        box._heard(["piece"], b"x")
    assert told == ["the program's folder cannot be stored there (No space left on device)"]


# ---- words


def test_places():
    assert prompt.place("x", "alpha") == ("alpha", prompt.PORT)
    assert prompt.place("x", "10.0.0.1:99") == ("10.0.0.1", 99)
    for text in ("", ":5", "a:b", "a:65536", "a:0", "-x", "a b", "a:" + "9" * 5000):
        with pytest.raises(UsageError, match="HOST:PORT"):
            prompt.place("x", text)


@pytest.mark.parametrize(
    ("there", "nodes", "found"),
    [
        ([["a", 4], ["b", 2]], None, [("a", 4), ("b", 2)]),
        ([["a", 4], ["b", 2]], 3, [("a", 2), ("b", 1)]),
        ([["a", 4], ["b", 2], ["c", 1]], 2, [("a", 1), ("b", 1)]),
        ([["a", 1]], 9, [("a", 9)]),
        ([["a", 1000], ["b", 1000]], None, [("a", 512), ("b", 512)]),
    ],
)
def test_how_many_nodes_a_member_gets(there, nodes, found):
    assert _spread(there, nodes) == found


# ---- the package that makes certificates


@pytest.mark.linux("a second address of this machine")
def test_who_cannot_make_certificates_listens_to_this_machine_only(monkeypatch):
    tls.server_identity.cache_clear()
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with socket.create_server(("127.0.0.1", 0)) as here:
        handshake.require("spcomm serve", here)
    with socket.create_server(("127.0.0.2", 0)) as there:
        wanted = r"^spcomm serve: .* lacks the package cryptography; pip install 'spcomm\["
        with pytest.raises(UsageError, match=wanted):
            handshake.require("spcomm serve", there)


@pytest.mark.parametrize("server", [False, True], ids=["client", "server"])
def test_who_ends_tls_and_goes_on(server):
    """OpenSSL reads nothing after that, and would be asked again and again."""
    one, other = session_pair()[:: -1 if server else 1]
    end, far = socket.socketpair()
    with end, far:
        with pytest.raises(ssl.SSLError):
            one._tls.unwrap()
        ending = one._going.read() + b"\x17\x03\x03\0\x05abcde"
        with pytest.raises(ssl.SSLError):
            other.decrypt(ending)
        with pytest.raises(ssl.SSLError):
            other.read_into(memoryview(bytearray(10)))


def test_a_run_is_told_of_the_end_before_the_members():
    told = []
    broker = Broker.__new__(Broker)
    broker._loop = SimpleNamespace(at=lambda _name, _seconds, late: late(), forget=lambda _name: None)
    broker._guests = {}
    broker.connections = {
        fd: SimpleNamespace(
            role=role,
            link=SimpleNamespace(send=told.append, say_last=lambda: None, close=lambda: None),
        )
        for fd, role in enumerate(["join", "run", "join", "reach"])
    }
    broker.part()
    assert [message[0] for message in told] == ["over", "bye", "bye"]


def hello(site, **of):
    """A member that says hello, and what it is told."""
    guest = site.guest()
    guest.send(["hello", "join", versions.mine(), {"name": "ann", "slots": 1}, of])
    site.serve()
    return guest, guest.heard()


@pytest.mark.slow
def test_a_member_that_is_back_has_its_name_even_after_the_code_has_expired():
    """It shows that by the ticket of the link that it had; nobody else gets in."""
    site, ticket = Site(), bytes(range(32))
    first, heard = hello(site, link="1" * 32, ticket=ticket.hex())
    assert heard[0][2]["name"] == "ann"
    site.broker.connections["1" * 32].link._end()  # it was silent for too long
    site.broker._about["expires"] = 0
    for was in (["1" * 32, proof(bytes(32), "client", b"")], ["2" * 32, proof(ticket, "client", b"")]):
        other, heard = hello(site, link="3" * 32, ticket="0" * 64, was=was)
        assert heard[0][0] == "refused" and "has expired" in heard[0][1]
        other.close()
    for wanted in ("ann", None):  # and it is back once
        shown = proof(ticket, "client", b"")
        again, heard = hello(site, link=os.urandom(16).hex(), ticket="0" * 64, was=["1" * 32, shown])
        assert (heard[0][2]["name"] if heard[0][0] == "welcome" else None) == wanted
        again.close()
    first.close()
    site.close()
