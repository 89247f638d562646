# SPDX-License-Identifier: MIT
"""A node dies somewhere in a random schedule: the others end with a NodeLostError or with their work, never hang."""

import os
from pathlib import Path

import pytest

from programs import run

HERE = Path(__file__).resolve().parent
COUNT = max(1, round(3 * float(os.environ.get("CHECK_SCALE", "1"))))
OPTIONS = {
    "tiny": ["--slots", "1", "--ring", "1024", "--arena", "0"],
    "small": ["--slots", "2", "--ring", "4096", "--arena", "65536", "--fanin", "2"],
    "default": [],
}
TEXT = """
    import random
    sys.path[:0] = {paths!r}
    from play import Player
    from schedule import Schedule
    # From any source, a live one could still send what the dead one did not: give up some time.
    def patient(self, source, tag):
        return comm.recv_message(source, tag, timeout=0.5 if source == spcomm.ANY else None)
    for how in ("try", "probe", "view", "timed", "recv_message"):  # some are loops, which are told nothing
        setattr(Player, "by_" + how, patient)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    schedule = Schedule({seed}, size, 400, 0, 300_000)
    chance = random.Random({seed})
    victim, step = chance.randrange(size), chance.randrange(400)
    mine = [i for i, event in enumerate(schedule.events) if event.node in (None, victim) and i >= step] or [0]
    comm.barrier()
    if rank == victim:
        del schedule.events[mine[0]:]
        try:
            Player(comm, schedule).run()
        except AssertionError:
            pass    # it has not received all that was meant for it
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        Player(comm, schedule).run()
        print("done", flush=True)
    except (spcomm.NodeLostError, spcomm.WaitTimeoutError):
        print("lost", flush=True)
"""


@pytest.mark.spread("options")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(COUNT))
def test_a_death_at_a_random_step(tmp_path, seed, options):
    nodes = [2, 3, 5][seed % 3]
    text = TEXT.format(paths=[str(HERE), str(HERE.parent / "api")], seed=seed)
    result = run(tmp_path, nodes, text, "--grace", "60", *OPTIONS[options])
    assert result.code == 137, str(result)
    lines = result.lines()
    assert len(lines) == nodes - 1 and set(lines) <= {"done", "lost"}, str(result)
