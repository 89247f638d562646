# SPDX-License-Identifier: MIT
"""Signals on the way to other machines: what a parent keeps from server and member, and a batch system's warning."""

import signal

import pytest

from processes import read_lines, read_until

STATES = {
    "ignored": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    "blocked": lambda: signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals()),
}

WARNED = """
    import os, signal, time, spcomm
    comm = spcomm.startup()
    heard = []
    signal.signal(signal.SIGUSR1, lambda number, _frame: heard.append(number))
    os.write(1, b"ready\\n")
    while not heard:
        time.sleep(0.01)
    comm.barrier()
    print(heard == [signal.SIGUSR1], signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


@pytest.mark.parametrize("state", STATES)
@pytest.mark.slow
def test_a_room_whose_processes_started_with_signals_kept_from_them(room, state):
    more = {"preexec_fn": STATES[state]}
    room.serve("--room", **more)
    member = room.start("join", room.place, "--name", "ann", **more)
    room.members.append(member)
    read_until(member.stderr, "in the room: ")
    script = room.script("import spcomm\ncomm = spcomm.startup()\nprint(comm.global_sum(1))")
    for _turn in range(2):
        result = room.run("-n", 2, script, **more)
        assert (result.code, result.lines) == (0, ["2"] * 2), result
    room.close_room()


def test_a_warning_reaches_the_members_of_a_room(room):
    room.serve("--room")
    room.join("ann")
    process = room.start("run", "--room", room.place, "-n", 2, room.script(WARNED))
    assert read_lines(process, 2) == ["ready"] * 2
    process.send_signal(signal.SIGUSR1)
    result = room.finish(process)
    assert (result.code, result.lines) == (0, ["True True"] * 2), result
    room.close_room()


def test_a_warning_reaches_other_hosts(launch, ssh):
    process = launch.start("--ssh", ssh, "--host", "alpha:1,beta:1", "-n", 2, launch.script(WARNED))
    assert read_lines(process, 2) == ["ready"] * 2
    process.send_signal(signal.SIGUSR1)
    result = launch.finish(process)
    assert (result.code, result.lines) == (0, ["True True"] * 2), result
