# SPDX-License-Identifier: MIT
"""The desk at which the boxes of a step of Slurm meet. MUNGE is a stand-in: text that is read once."""

import os
import socket
import threading

import pytest

from spcomm.launch.base.loop import Loop
from spcomm.launch.room import munge, step

PORT, CODE = 4711, "six words"
USED = set()  # the credentials that munged has read


class Credentials:
    """As `Munge` of one user, on a cluster whose munged has read these."""

    def __init__(self):
        self.made = 0

    def encode(self, text):
        self.made += 1
        return b"MUNGE:%d-%d-%s:\0" % (id(self), self.made, text.hex().encode())

    def decode(self, credential):
        if not credential.startswith(b"MUNGE:") or credential in USED:
            raise munge.MungeError("forged, or replayed")
        USED.add(credential)
        return bytes.fromhex(credential.rstrip(b":").rpartition(b"-")[2].decode())


def variables(job="", box=0):
    return {
        "SLURM_JOB_ID": job or os.urandom(4).hex(),
        "SLURM_STEP_ID": "0",
        "SLURM_NODEID": str(box),
        "SLURM_STEP_NUM_NODES": "2",
        "SLURM_GTIDS": "0,2",
        "SLURM_STEP_NODELIST": "localhost,n[1-2]",
        "SLURMD_NODENAME": "localhost",
    }


@pytest.fixture
def made(monkeypatch):
    """Makes a `Step` from variables."""
    monkeypatch.setattr(step, "Munge", Credentials)
    monkeypatch.setattr(step.socket, "gethostbyname", lambda name: "127.0.0.1")

    def make(given=None, **more):
        for name, value in (given or variables(**more)).items():
            monkeypatch.setenv(name, value)
        return step.Step()

    return make


class Office:
    """The desk of a step, in a thread, until `close`."""

    def __init__(self, of_step):
        desk, server = of_step.listen()
        server.close()
        self.place = desk.getsockname()
        self._loop, self._desk = Loop(), desk
        self._wake, self._stop = socket.socketpair()
        self._ends = []
        self._loop.add(self._wake.fileno(), lambda: self._ends.append(True))
        step.Desk(self._loop, desk, of_step, PORT, CODE)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._ends:
            self._loop.turn()

    def close(self):
        self._stop.send(b".")
        self._thread.join()
        self._loop.close()
        for one in (self._desk, self._wake, self._stop):
            one.close()


@pytest.fixture
def office():
    """Opens the desk of a step."""
    opened = []

    def open_for(of_step):
        opened.append(Office(of_step))
        return opened[-1]

    yield open_for
    for one in opened:
        one.close()


def told(place, text):
    """The answer of whoever listens there to this text."""
    with socket.create_connection(place) as sock:
        sock.sendall(text)
        data = b""
        while piece := sock.recv(4096):
            data += piece
        return data


def test_a_step_has_its_ranks_and_machines(made):
    found = made(job="7", box=1)
    assert (found.job, found.box, found.ranks, found.first) == ("7.0", 1, [0, 2], "localhost")
    assert found.missing("4 on localhost, 1 on n2") == "n1"


def test_a_box_gets_the_place_and_the_code(made, office):
    first = made(job="a1")
    office(first)
    assert made(job="a1", box=1).ask(0) == (("localhost", PORT), CODE)


def test_forged_recorded_and_foreign_questions_get_nothing(made, office):
    first = made(job="a2")
    place = office(first).place
    question = made(job="a2", box=1)._sealed({"ask": "1"})
    assert told(place, question).startswith(b"MUNGE:")
    assert told(place, question) == b""
    assert told(place, made(job="a3", box=1)._sealed({"ask": "1"})) == b""
    assert told(place, b"MUNGE:forged\n") == told(place, b"x" * 5000) == b""
    assert told(place, made(job="a2")._sealed({"answer": "1"})) == b""


def listener(port):
    return socket.create_server(("127.0.0.1", port))


def test_a_port_that_is_taken_is_passed_over(made, office):
    """By a process that says nothing."""
    first = made(job="a4")
    with listener(first._ports()[0]):
        assert office(first).place[1] == first._ports()[1]
        assert made(job="a4", box=1).ask(0) == (("localhost", PORT), CODE)


@pytest.mark.parametrize("answer", ["garbage", "recorded", "foreign"])
def test_who_answers_without_being_the_desk_is_passed_over(made, office, answer):
    first = made(job=f"a5{answer}")
    texts = {
        "garbage": b"hello\n",
        "recorded": first._sealed({"answer": "another question's", "port": 1, "code": ""}),
        "foreign": made(job="b1")._sealed({"answer": "", "port": 1, "code": ""}),
    }
    with listener(first._ports()[0]) as other:

        def serve():
            with other.accept()[0] as sock:
                sock.recv(4096)
                sock.sendall(texts[answer])

        thread = threading.Thread(target=serve)
        thread.start()
        office(first)
        assert made(job=first.job.removesuffix(".0"), box=1).ask(0) == (("localhost", PORT), CODE)
        thread.join()


def test_a_first_machine_that_does_not_come_is_named(made):
    with pytest.raises(
        step.StepError, match="localhost, the first machine of the step, has not called startup"
    ):
        made(box=1).ask(0)


def test_variables_that_are_missing_are_named(made, monkeypatch):
    monkeypatch.delenv("SLURM_GTIDS", raising=False)
    given = variables()
    del given["SLURM_GTIDS"]
    with pytest.raises(
        step.StepError, match="this Slurm sets no SLURM_GTIDS; spcomm run in the job needs no srun"
    ):
        made(given)


def test_without_munge_the_sentence_says_what_works(made, monkeypatch):
    def missing(_name):
        raise OSError

    monkeypatch.setattr(step, "Munge", munge.Munge)
    monkeypatch.setattr(munge.ctypes, "CDLL", missing)
    with pytest.raises(
        step.StepError, match=r"takes MUNGE .*lacks libmunge.*; spcomm run in the job needs none"
    ):
        made()
