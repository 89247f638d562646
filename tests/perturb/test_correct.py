# SPDX-License-Identifier: MIT
"""Programs that rely on nothing pass with every seed: the examples, and what is promised even then."""

from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("[0-9]*.py"))


@pytest.mark.stress
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.stem)
def test_examples(launch, program):
    for seed in range(100):
        result = launch("-n", 4, "--perturb", "--seed", seed, "--timeout", 50, program)
        assert result.code == 0, f"seed {seed}: {result!r}"


@pytest.mark.stress
@pytest.mark.parametrize("limit", ["0", "1K"])
@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.stem)
def test_examples_by_rendezvous(launch, program, limit):
    result = launch("-n", 4, "--rendezvous", limit, "--timeout", 100, program)
    assert result.code == 0, repr(result)


PROMISES = """
    import numpy as np, spcomm
    comm = spcomm.startup()
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

    # Messages of one sender stay in order, whatever their length.
    for number in range(20):
        comm.send((comm.rank, number, bytes(number * 300)), others[0] if number % 2 else others)
    last = {}
    wanted = 10 * len(others) + 10 * sum(min({*range(comm.size)} - {rank}) == comm.rank for rank in others)
    for _ in range(wanted):
        source, number, _ = comm.recv()
        assert number > last.get(source, -1)
        last[source] = number
    assert comm.global_sum(1) == comm.size

    # A node that looks often enough finds the message that was sent.
    comm.send("look", right, tag=5)
    while (message := comm.try_recv_message(left, 5)) is None:
        pass
    assert message.data == "look"

    # Exchanges and sends to oneself do not wait.
    assert comm.sendrecv(np.full(30_000, comm.rank), right, left)[0] == left
    comm.send("me", comm.rank, tag=6)
    assert comm.recv(comm.rank, 6) == "me"

    # Data move as they should, short and long.
    for length in (1, 30_000):
        mine = np.full(length, comm.rank)
        assert [part[-1] for part in comm.allgather(mine)] == [*range(comm.size)]
        assert [part[-1] for part in comm.alltoall([mine] * comm.size)] == [*range(comm.size)]
        assert comm.bcast(mine, comm.size - 1)[-1] == comm.size - 1

    # Barriers, sums and cycles are what they are.
    barrier = comm.fuzzy_barrier()
    while not barrier.done():
        pass
    for cycle in range(3):
        comm.coordinated_send(cycle, right)
        assert [message.data for message in comm.coordinated_messages()] == [cycle]
    with comm.split(comm.rank % 2) as part:
        assert part.global_max(comm.rank) % 2 == comm.rank % 2
    if comm.rank % 2 == 0 and comm.rank + 1 < comm.size:
        comm.ssend("pair", comm.rank + 1, tag=7)
    elif comm.rank % 2 == 1:
        assert comm.recv(comm.rank - 1, 7) == "pair"
    comm.barrier()
"""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_what_is_promised(launch, n, request):
    for seed in range(100 if request.config.option.everything else 2):
        result = launch.program(PROMISES, options=("-n", n, "--perturb", "--seed", seed, "--timeout", 50))
        assert (result.code, result.out, result.err) == (0, "", ""), f"seed {seed}: {result!r}"
