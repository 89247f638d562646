# SPDX-License-Identifier: MIT
"""`spcomm doctor`: which hop fails."""

import contextlib
import socket

import pytest

from pairwise import each
from pretending import CHALLENGE, ORDER, VERDICT, Pretender, message
from rooming import OTHER_CODE
from spcomm.launch.room import connect, doctor


@pytest.fixture
def pretend():
    """Makes listeners that answer in one way."""
    with contextlib.ExitStack() as stack:

        def make(answer):
            made = Pretender(answer)
            stack.callback(made.close)
            return made

        yield make


def ill(result, *parts, after):
    """It went well so far, failed there, said this, and what to try."""
    lines = result.out.splitlines()
    names = [line.split()[0] for line in lines]
    assert result.code == 1 and result.err == "" and names == [*after, "try:"], result
    assert all(" ok " in line for line in lines[:-2]) and " WRONG " in lines[-2], result
    assert all(part in result.out for part in parts), result


def test_all_is_well(room):
    room.serve("--room")
    room.join("ann")
    result = room("doctor", room.place)
    assert result.code == 0 and result.out.count(" ok ") == 4 and "1 member: ann" in result.out, result
    result = room("doctor", room.place, env={"SPCOMM_CODE": None})
    assert result.code == 0 and result.out.count(" ok ") == 3 and "--code" in result.out, result
    room.close_room()


def test_another_code(room):
    room.serve()
    result = room("doctor", room.place, env={"SPCOMM_CODE": OTHER_CODE})
    ill(result, "does not know that code", after=["name", "port", "server", "code"])
    result = room("doctor", room.place, env={"SPCOMM_CODE": "one two"})
    ill(result, "6 words", after=["name", "port", "server", "code"])
    room.close_room()


def test_an_unknown_name(room, monkeypatch, capsys):
    ill(room("doctor", "a" * 64), "is not a name that this machine knows", "its address", after=["name"])

    def unknown(*_arguments):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(doctor.socket, "getaddrinfo", unknown)
    assert doctor.main(["alpha"]) == 1
    assert (
        "alpha is not a name that this machine knows (Name or service not known)" in capsys.readouterr().out
    )


def test_a_closed_port(room):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        place = f"127.0.0.1:{probe.getsockname()[1]}"
    ill(room("doctor", place), "nothing listens", "spcomm serve runs there", after=["name", "port"])
    result = room("join", place)
    assert result.code == 125 and "nothing listens" in result.err and result.err.count("\n") == 1, result


@pytest.mark.slow
def test_a_port_that_swallows_all(room):
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        while True:  # until its queue is full
            one = stack.enter_context(socket.socket())
            one.settimeout(0.5)
            try:
                one.connect(listener.getsockname())
            except TimeoutError:
                break
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        ill(room("doctor", place), "does not answer", "firewall", "admit TCP port", after=["name", "port"])
        result = room("join", place)
        assert result.code == 125 and "firewall" in result.err and result.err.count("\n") == 1, result


WRONG = [
    ("a web server", b"HTTP/1.0 400 Bad Request\r\n\r\n" + b"x" * 64, "is not an spcomm server"),
    ("one that hangs up", b"", "closed the connection"),
    ("one that is silent", None, "does not answer"),
    ("an older one", message(VERDICT, verdict=3, version=77), "speaks version 77"),
    (
        "an older one that does not know",
        message(CHALLENGE, version=77, random=b"r" * 32),
        "speaks version 77",
    ),
    ("one of the other byte order", message(VERDICT, verdict=4, order=3 - ORDER), "a different byte order"),
    ("a full one", message(VERDICT, verdict=5), "is full"),
]


@pytest.mark.parametrize(("name", "answer", "part"), each(3, WRONG), ids=[case[0] for case in WRONG])
def test_what_listens_is_not_what_is_wanted(room, pretend, name, answer, part):
    pretender = pretend(answer)
    ill(room("doctor", pretender.place), part, after=["name", "port", "server"])
    program = room.script("")
    for words in (["join", pretender.place], ["run", "--room", pretender.place, program]):
        result = room(*words)
        assert result.code == 125 and part in result.err and result.err.count("\n") == 1, result


def test_an_impostor_learns_nothing_by_which_it_would_be_let_in(pretend):
    """A server that does not know the code can answer, and is not believed."""
    pretender = pretend(message(CHALLENGE, random=b"r" * 32) + message(4, random=b"m" * 32))
    with pytest.raises(connect.EntryError, match="does not know that code"):
        connect.enter(("127.0.0.1", pretender.port), b"k" * 32)
