# SPDX-License-Identifier: MIT
"""A node that finishes early: who still waits for it gets an exception at once, after all that it had sent."""

import textwrap

import pytest

from operations import waiting
from pairwise import each
from programs import ok, run

NEEDS = """
def needs_finished(call, node):
    try:
        result = call()
    except spcomm.WaitTimeoutError as error:
        print(f"{rank}: timeout {error}")
    except spcomm.SpcommError as error:
        text = str(error)
        print(f"{rank}: told" if f"node {node}" in text and "finish" in text else f"{rank}: unclear: {text}")
    else:
        print(f"{rank}: returned {result!r}")
"""


def program(text):
    return NEEDS + textwrap.dedent(text)


CALLS = waiting("peer", "others", "all")


@pytest.mark.parametrize("call", each(4, CALLS))
def test_waiters_are_told(tmp_path, call):
    call = CALLS[call].by(own=0, peer=1)
    text = program(f"""
        import numpy as np, psutil
        if rank == 1:
            process = comm.recv(0, 7)
            while psutil.Process(process).status() != "sleeping":
                os.sched_yield()
        elif rank == 0:
            comm.send(os.getpid(), 1, 7)
            needs_finished(lambda: {call}, 1)
    """)
    result = run(tmp_path, 2, text)
    assert ok(result).lines() == ["0: told"], str(result)


@pytest.mark.smoke
def test_first_everything_that_it_had_sent(tmp_path):
    for options in ([], ["--slots", "2", "--ring", "4096", "--arena", "0"]):
        text = program("""
            if rank == 1:
                for number in range(50):
                    comm.send((number, bytes(number * 300)), 0, tag=number % 3)
            else:
                needs_finished(lambda: comm.recv(1, tag=8), 1)
                for number in range(50):
                    assert comm.recv(1) == (number, bytes(number * 300))
                needs_finished(lambda: comm.recv(1), 1)
        """)
        assert ok(run(tmp_path, 2, text, *options)).lines() == ["0: told", "0: told"]


def test_any_waits_as_long_as_somebody_could_send(tmp_path):
    """Nodes 1 and 2 finish; node 3 sends later: a receive from ANY waits for it. Then nobody is left."""
    text = program("""
        if rank == 0:
            needs_finished(lambda: comm.recv(1), 1)
            needs_finished(lambda: comm.recv(2), 2)
            comm.send("go", 3)
            print("0: got", comm.recv())
            needs_finished(lambda: comm.recv(3), 3)
            try:
                comm.recv()
            except spcomm.SpcommError as error:
                print("0: nobody is left" if not isinstance(error, TimeoutError) else error)
        elif rank == 3:
            comm.recv(0)
            comm.send("late", 0)
    """)
    lines = ok(run(tmp_path, 4, text)).lines()
    assert lines == ["0: got late", "0: nobody is left", "0: told", "0: told", "0: told"]


def test_sends_to_it_do_not_hang(tmp_path):
    text = program("""
        if rank == 0:
            needs_finished(lambda: comm.recv(1), 1)
            for number in range(3000):
                try:
                    comm.send(bytes(3000), 1)
                except spcomm.SpcommError:
                    pass
            print("0: done")
    """)
    for options in ([], ["--slots", "1", "--ring", "1024", "--arena", "0", "--queue-limit", "65536"]):
        assert ok(run(tmp_path, 2, text, *options)).lines() == ["0: done", "0: told"]


def test_messages_that_nobody_received_do_not_keep_a_run(tmp_path):
    """Both nodes end with messages unreceived, and more queued than fits: the run ends all the same."""
    text = """
        for number in range(300):
            comm.send((number, bytes(5000)), spcomm.ALL)
    """
    for options in ([], ["--slots", "1", "--ring", "1024", "--arena", "0"]):
        result = run(tmp_path, 3, text, *options)
        assert result.code == 0, str(result)


def test_an_uncaught_error_about_a_finished_node(tmp_path):
    """It is a failure like any other: the run ends with its traceback."""
    result = run(tmp_path, 2, "if rank == 0: comm.recv(1)")
    assert result.code == 1 and "Error" in result.err and "finish" in result.err, str(result)


@pytest.mark.parametrize("early", [True, False], ids=["before", "while-waiting"])
def test_a_waiting_sender_is_told(tmp_path, early):
    """It has finished without receiving: the other messages were taken, this one was not."""
    text = program(f"""
        if rank == 1:
            if {not early}:
                comm.probe(0, 8)
            comm.recv(0, 7)
        else:
            comm.send(1, 1, 7)
            needs_finished(lambda: comm.ssend(1, 1, 8), 1)
    """)
    result = run(tmp_path, 2, text)
    assert ok(result).lines() == ["0: told"], str(result)
