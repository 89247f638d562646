# SPDX-License-Identifier: MIT
"""A node that is killed, or just ends, in each state of a cycle of coordinated messages."""

from textwrap import dedent

import pytest

import test_killed
from programs import HEAD, run, write
from test_killed import PARTS, SURVIVE

# The last cycle of node 1, and what the others are handed of it, by themselves, before they are told.
STATES = {
    "before-sending": ("", []),
    "after-sending": ("comm.coordinated_send('sent', spcomm.OTHERS)", ["sent"]),
    "after-large": ("comm.coordinated_send(np.ones(50_000), spcomm.OTHERS)", [50_000]),
}
# The others take what is there, and are told again if they ask again.
TAKE = """
import numpy as np
def take(node):
    received = []
    try:
        for message in comm.coordinated_messages():
            if message.source == node:
                received.append(message.data if isinstance(message.data, str) else len(message.data))
    except spcomm.NodeLostError as error:
        text = str(error)
        report(f"{received} lost" if f"node {node}" in text and error.rank == node else f"unnamed: {text}")
    else:
        report(f"{received} over")
"""


def survivors(tmp_path, nodes, text, *options):
    return test_killed.survivors(tmp_path, nodes, TAKE + dedent(text), *options)


@pytest.mark.parametrize("state", STATES)
def test_killed_before_it_has_entered(tmp_path, state):
    """Nodes that wait in the cycle get what was announced, then the error; so do those that come after the death."""
    action, expected = STATES[state]
    text = f"""
        if rank == 1:
            {action or "pass"}
            comm.recv(0)
            die()
        comm.coordinated_send("from another", spcomm.OTHERS)
        if rank == 0:
            comm.send("die", 1)
        else:
            needs_lost(lambda: comm.recv(1), 1)
        take(1)
        take(1)
        needs_lost(comm.coordinated_recv, 1)
    """
    lines = [f"{rank}: {text}" for rank in (0, 2) for text in (f"{expected} lost", "[] lost", "lost")]
    assert survivors(tmp_path, 3, text) == sorted([*lines, "2: lost"])


@pytest.mark.parametrize("state", STATES)
def test_killed_after_it_has_entered(tmp_path, state):
    """It has counted only what it had announced before: that cycle ends as if nothing was. The next one cannot."""
    action, expected = STATES[state]
    text = f"""
        if rank == 1:
            {action or "pass"}
            try:
                while True:
                    comm.coordinated_recv(timeout=0)
            except spcomm.WaitTimeoutError:
                die()
        needs_lost(lambda: comm.recv(1), 1)
        comm.coordinated_send("from another", spcomm.OTHERS)
        take(1)
        take(1)
    """
    lines = [f"{rank}: {text}" for rank in (0, 2) for text in ("lost", f"{expected} over", "[] lost")]
    assert survivors(tmp_path, 3, text) == sorted(lines)


def test_killed_with_messages_that_were_counted_and_not_announced(tmp_path):
    """All have entered, and the rows are known; but most of what node 1 has counted is queued, and dies with it."""
    text = """
        if rank == 1:
            comm.coordinated_send("first", spcomm.OTHERS)
            comm.coordinated_send(bytes(10_000_000), spcomm.OTHERS)  # far more than fits
            try:
                comm.coordinated_recv(timeout=0)
            except spcomm.WaitTimeoutError:
                die()
        needs_lost(lambda: comm.recv(1), 1)
        take(1)
        take(1)
        comm.send("reported", 2 - rank)  # nobody leaves before: that would be another reason to look again
        comm.recv(2 - rank)
    """
    lines = [f"{rank}: {text}" for rank in (0, 2) for text in ("lost", "['first'] lost", "[] lost")]
    assert survivors(tmp_path, 3, text, *PARTS) == sorted(lines)


@pytest.mark.parametrize("entered_first", [False, True], ids=["before-the-others", "after-the-others"])
def test_killed_while_others_wait(tmp_path, entered_first):
    """Node 0 kills it while it sleeps in the cycle; node 2 has entered before that, or enters afterwards."""
    text = f"""
        if rank == 1:
            comm.send(os.getpid(), spcomm.OTHERS)
            comm.coordinated_send("sent", spcomm.OTHERS)
            comm.coordinated_recv()
        if rank == 0:
            kill_when_asleep(comm.recv(1))
            needs_lost(lambda: comm.recv(1), 1)
        elif not {entered_first}:
            comm.recv(1)
            needs_lost(lambda: comm.recv(1), 1)
        take(1)
        take(1)
    """
    lines = [f"{rank}: {text}" for rank in (0, 2) for text in ("['sent'] over", "[] lost")]
    lines += ["0: lost"] + ["2: lost"] * (not entered_first)
    assert survivors(tmp_path, 3, text) == sorted(lines)


@pytest.mark.smoke
def test_a_node_that_ends_its_program_instead(tmp_path):
    """The message that it sent before is handed over; then the error says that it has finished."""
    text = """
        if rank == 1:
            comm.coordinated_send("last words", 0)
            sys.exit()
        if rank == 0:
            needs_lost(lambda: comm.recv(1), 1)
            take(1)
            try:
                comm.coordinated_recv()
            except spcomm.NodeLostError as error:
                assert "finished" in str(error), error
            comm.send("done", 2)
        else:
            comm.recv(0)
    """
    result = run(
        tmp_path, 3, "", "--grace", "60", program=write(tmp_path, TAKE + dedent(text), HEAD + SURVIVE)
    )
    assert result.code == 0, str(result)
    assert result.lines() == ["0: ['last words'] lost", "0: lost"]


def test_a_send_to_a_dead_node_is_dropped(tmp_path):
    """The cycle is lost, not the program: ordinary messages still go between the others."""
    text = """
        if rank == 1:
            die()
        needs_lost(lambda: comm.recv(1), 1)
        for step in range(100):
            comm.coordinated_send(bytes(step * 100), spcomm.ALL)
        take(1)
        comm.send(rank, 2 - rank)
        report(comm.recv(2 - rank))
    """
    assert survivors(tmp_path, 3, text) == sorted(
        f"{rank}: {text}" for rank in (0, 2) for text in ("lost", "[] lost", 2 - rank)
    )
