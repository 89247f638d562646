# SPDX-License-Identifier: MIT
"""Parallel algorithms: sorting, primes, grids, matrices."""

from itertools import chain

import numpy as np
from collectives import share, shares
from mpi4py import MPI

from course import number, program, say, say_all


def noise(count, seed):
    """Whole numbers below 1000 that look random, the same everywhere."""
    return np.array([(seed * 7919 + at * 104729 + at * at * 31) % 1000 for at in range(count)], "i")


@program()
def odd_even_sort(comm):
    """Neighbours exchange their numbers, and keep the lower or the upper half."""
    mine = np.sort(noise(6, comm.rank))
    theirs = np.empty_like(mine)
    for phase in range(comm.size):
        partner = comm.rank + (1 if (comm.rank + phase) % 2 == 0 else -1)
        if 0 <= partner < comm.size:
            comm.Sendrecv(mine, partner, recvbuf=theirs, source=partner)
            both = np.sort(np.concatenate([mine, theirs]))
            mine = both[:6].copy() if comm.rank < partner else both[6:].copy()
    say_all(comm, mine.tolist())


@program()
def sample_sort(comm):
    """Splitters from samples; every node sorts one bucket."""
    mine = np.sort(noise(20, comm.rank + 50))
    samples = np.sort(np.concatenate(comm.allgather(mine[:: max(20 // comm.size, 1)])))
    splitters = samples[np.arange(1, comm.size) * len(samples) // comm.size]
    counts = np.diff([0, *np.searchsorted(mine, splitters), 20])
    from_each = np.empty(comm.size, "i8")
    comm.Alltoall(counts.astype("i8"), from_each)
    bucket = np.empty(from_each.sum(), "i")
    comm.Alltoallv([mine, counts], [bucket, from_each])
    bucket.sort()
    whole = comm.gather(bucket)
    if comm.rank == 0:
        whole = np.concatenate(whole)
        print(len(whole), (np.diff(whole) >= 0).all(), int(whole.sum()), whole[::7].tolist())


@program()
def prime_sieve(comm):
    """Node 0 has the small primes, and broadcasts them one by one."""
    first, count = share(500, comm)
    is_prime = np.ones(count, bool)
    numbers = np.arange(first, first + count)
    is_prime[numbers < 2] = False
    small = [p for p in range(2, 23) if all(p % q for q in range(2, p))] if comm.rank == 0 else []
    while (prime := comm.bcast(small.pop(0) if small else 0)) > 0:
        is_prime[(numbers % prime == 0) & (numbers > prime)] = False
    say(comm, comm.reduce(int(is_prime.sum())))
    say_all(comm, numbers[is_prime][-3:].tolist())


@program()
def rod(comm):
    """Heat in a rod: one halo cell at each end."""
    left = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
    right = comm.rank + 1 if comm.rank < comm.size - 1 else MPI.PROC_NULL
    first, count = share(24, comm)
    cells = np.zeros(count + 2)
    cells[1:-1] = np.arange(first, first + count) ** 2
    for _ in range(20):
        comm.Sendrecv(cells[1:2], left, recvbuf=cells[-1:], source=right)
        comm.Sendrecv(cells[-2:-1], right, recvbuf=cells[:1], source=left)
        cells[1:-1] += 0.25 * (cells[:-2] - 2 * cells[1:-1] + cells[2:])
    say_all(comm, number(cells[1:-1].sum()))


@program()
def plate(comm):
    """Heat in a plate: a Cartesian grid of nodes, columns by a vector type."""
    grid = comm.Create_cart(MPI.Compute_dims(comm.size, 2), periods=[False, True])
    n = 4
    cells = np.zeros((n + 2, n + 2))
    cells[1:-1, 1:-1] = np.add.outer(np.arange(n) * 1.5, np.arange(n)) + 10 * np.array(grid.coords) @ [3, 1]
    column, row = MPI.DOUBLE.Create_vector(n, 1, n + 2).Commit(), MPI.DOUBLE.Create_contiguous(n).Commit()
    flat, wide = cells.reshape(-1), n + 2
    moves = [(0, 1, n, 0, row), (0, -1, 1, n + 1, row), (1, 1, n, 0, column), (1, -1, 1, n + 1, column)]
    for _ in range(6):
        for axis, distance, out, into, kind in moves:
            source, dest = grid.Shift(axis, distance)
            at = [wide * out + 1, wide * into + 1] if axis == 0 else [wide + out, wide + into]
            grid.Sendrecv([flat[at[0] :], 1, kind], dest, 0, [flat[at[1] :], 1, kind], source, 0)
        inner = cells[1:-1, 1:-1]
        around = cells[:-2, 1:-1] + cells[2:, 1:-1] + cells[1:-1, :-2] + cells[1:-1, 2:]
        cells[1:-1, 1:-1] = inner + 0.1 * (around - 4 * inner)
    total, most = (
        grid.allreduce(float(f(cells[1:-1, 1:-1])), op) for f, op in ((np.sum, MPI.SUM), (np.max, MPI.MAX))
    )
    say(grid, grid.dims, number(total), number(most))
    grid.Free()
    column.Free()
    row.Free()


@program()
def game_of_life(comm):
    """A glider crosses the borders of the nodes; rows travel with nonblocking messages."""
    rows, width = 4, 10
    world = np.zeros((rows + 2, width), "u1")
    if comm.rank == 0:
        world[1, 1] = world[2, 2] = world[3, 0] = world[3, 1] = world[3, 2] = 1
    up, down = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    for _ in range(16):
        requests = [comm.Irecv(world[0], up, 1), comm.Irecv(world[-1], down, 2)]
        requests += [comm.Isend(world[-2], down, 1), comm.Isend(world[1], up, 2)]
        MPI.Request.Waitall(requests)
        padded = np.hstack([world[:, -1:], world, world[:, :1]])
        around = sum(
            padded[1 + i : rows + 1 + i, 1 + j : width + 1 + j]
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if i or j
        )
        world[1:-1] = (around == 3) | ((around == 2) & (world[1:-1] == 1))
    say_all(comm, "\n".join("".join(".#"[cell] for cell in row) for row in world[1:-1]))


@program()
def summa(comm):
    """A matrix product: rows and columns of a grid of nodes broadcast blocks."""
    side = int(comm.size**0.5)
    grid = comm.Split(0 if comm.rank < side * side else MPI.UNDEFINED)
    total = 0
    if grid != MPI.COMM_NULL:
        i, j = divmod(grid.rank, side)
        row, column = grid.Split(i, j), grid.Split(j, i)
        a = np.add.outer(np.arange(2) + 2 * i, np.arange(2) + 2 * j) % 5.0
        b, c = a.T + 1, np.zeros((2, 2))
        for step in range(side):
            left, upper = a.copy(), b.copy()
            row.Bcast(left, root=step)
            column.Bcast(upper, root=step)
            c += left @ upper
        total = grid.reduce(float(c.sum()), root=0)
        for part in (row, column, grid):
            part.Free()
    say(comm, total)


@program()
def ring_of_bodies(comm):
    """Forces between all pairs of bodies; their positions go round."""
    mine = np.arange(3.0) * 1.7 + comm.rank * 0.9
    force, visitor = np.zeros(3), mine.copy()
    for _ in range(comm.size):
        distance = visitor[None, :] - mine[:, None]
        force += (distance / (abs(distance) ** 3 + 1)).sum(axis=1)
        comm.Sendrecv_replace(visitor, (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
    say_all(comm, " ".join(map(number, force)))


@program()
def shortest_paths(comm):
    """Floyd and Warshall: the owner of row k broadcasts it."""
    n = 10
    first, count = share(n, comm)
    counts = shares(n, comm)
    owner = [rank for rank in range(comm.size) for _ in range(counts[rank])]
    rows = np.fromfunction(
        lambda i, j: (i + first) * 7 % 9 + j * 5 % 11 + 1 + 20 * ((i + first + j) % 3), (count, n)
    )
    for k in range(n):
        row = rows[k - first].copy() if owner[k] == comm.rank else np.empty(n)
        comm.Bcast(row, root=owner[k])
        rows = np.minimum(rows, rows[:, k : k + 1] + row)
    say(comm, [float(part) for part in comm.gather(rows.sum()) or []])


@program()
def conjugate_gradients(comm):
    """A tridiagonal system; dot products are allreduced."""
    first, count = share(32, comm)
    counts = shares(32, comm)

    def times(x):
        whole = np.empty(32)
        comm.Allgatherv(x, [whole, counts])
        padded = np.concatenate([[0], whole, [0]])
        return (2.5 * padded[1:-1] - padded[:-2] - padded[2:])[first : first + count]

    def dot(x, y):
        return comm.allreduce(float(x @ y))

    x, r = np.zeros(count), np.sin(np.arange(first, first + count))
    p, old = r.copy(), dot(r, r)
    for _ in range(15):
        q = times(p)
        alpha = old / dot(p, q)
        x, r = x + alpha * p, r - alpha * q
        new = dot(r, r)
        p, old = r + new / old * p, new
    norm = dot(x, x)
    say(comm, f"{norm:.6f}", old < 1e-8)


@program()
def word_count(comm):
    """Map and reduce with dictionaries; each node owns some words."""
    text = "the ring the token the node a message a node sends the ring".split()
    counted = {}
    for word in text[comm.rank :: comm.size]:
        counted[word] = counted.get(word, 0) + 1
    parts = [{} for _ in range(comm.size)]
    for word, count in counted.items():
        parts[sum(word.encode()) % comm.size][word] = count
    mine = {}
    for part in comm.alltoall(parts):
        for word, count in part.items():
            mine[word] = mine.get(word, 0) + count
    say(comm, sorted(pair for some in comm.gather(mine) or [] for pair in some.items()))


@program()
def elimination(comm):
    """Gauss, with rows dealt out in turn."""
    n = 8
    mine = {
        i: np.array([1 / (i + j + 1) + 3 * (i == j) for j in range(n)] + [i + 1.0])
        for i in range(comm.rank, n, comm.size)
    }
    for k in range(n):
        pivot = comm.bcast(mine.get(k), root=k % comm.size)
        for i, row in mine.items():
            if i > k:
                row -= row[k] / pivot[k] * pivot
    rows = {i: row for part in comm.allgather(mine) for i, row in part.items()}
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - rows[i][i + 1 : n] @ x[i + 1 :]) / rows[i][i]
    say_all(comm, " ".join(f"{value:.6f}" for value in x[:3]))


@program()
def recursive_doubling(comm):
    """An allreduce by hand, with the next lower power of two."""
    power = 1 << (comm.size.bit_length() - 1)
    total = comm.rank + 1
    if comm.rank >= power:
        comm.send(total, dest=comm.rank - power)
        total = comm.recv(source=comm.rank - power)
    else:
        if comm.rank + power < comm.size:
            total += comm.recv(source=comm.rank + power)
        step = 1
        while step < power:
            partner = comm.rank ^ step
            total += comm.sendrecv(total, dest=partner, source=partner)
            step *= 2
        if comm.rank + power < comm.size:
            comm.send(total, dest=comm.rank + power)
    say_all(comm, total)


@program()
def mandelbrot(comm):
    """Lines of a picture, dealt out in turn and gathered in order."""
    lines = []
    for y in range(comm.rank, 9, comm.size):
        c = np.linspace(-2, 0.5, 31) + 1j * (y - 4) / 4
        z, inside = np.zeros_like(c), np.ones(31, bool)
        for _ in range(25):
            z[inside] = z[inside] ** 2 + c[inside]
            inside &= abs(z) < 2
        lines.append((y, "".join(".#"[int(x)] for x in inside)))
    say(comm, "\n".join(line for _, line in sorted(chain.from_iterable(comm.gather(lines) or []))))


@program()
def token_of_termination(comm):
    """Work moves at random; a token that has seen no sender twice ends it."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    work, done, rounds = (7 if comm.rank == 0 else 0), 0, 0
    while True:
        give = work // 2
        requests = [comm.isend(give, dest=right)]
        work = work - give + comm.recv(source=left)
        MPI.Request.waitall(requests)
        if work:
            work, done = work - 1, done + 1
        rounds += 1
        if comm.allreduce(work) == 0:
            break
    say_all(comm, (done, rounds))


@program()
def collatz(comm):
    """The longest chain below 300: work is dealt out in turn, and MAXLOC finds it."""

    def length(number):
        steps = 0
        while number > 1:
            number, steps = (number // 2 if number % 2 == 0 else 3 * number + 1), steps + 1
        return steps

    best = max((length(start), -start) for start in range(1 + comm.rank, 300, comm.size))
    say(comm, comm.allreduce((best[0], -best[1]), op=MPI.MAXLOC))
