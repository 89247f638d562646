# SPDX-License-Identifier: MIT
"""k-means: the points stay where they are, and only the sums of the clusters travel, all in one reduction.

    spcomm run -n 4 15_kmeans.py [POINTS [PICTURE.png]]

Look: `global_sum` takes a tuple, so sums, counts and the number of changes are one exchange in each round.
Try: more points. The bytes that travel in a round depend on the number of clusters, not on the number of points.
"""

import sys

import numpy as np
import picture

import spcomm

CENTRES = np.array([[2.0, 2.0], [7.0, 3.0], [4.0, 7.5], [8.0, 8.0]])  # the centres to find
K = len(CENTRES)


def cloud(points):
    rng = np.random.default_rng(11)
    return CENTRES[rng.integers(K, size=points)] + 0.9 * rng.normal(size=(points, 2))


def nearest(x, centres):
    """For each point the number of the nearest centre."""
    return ((x[..., None, :] - centres) ** 2).sum(axis=-1).argmin(axis=-1)


def k_means(x, centres, add):
    """Move each centre to the middle of its points until no point changes. `add` sums over all nodes."""
    label, changes, rounds = np.full(len(x), -1), 1, 0
    while changes:
        old, label = label, nearest(x, centres)
        member = label == np.arange(K)[:, None]  # shape (K, points)
        sums, counts, changes = add((member @ x, member.sum(axis=1), int((label != old).sum())))
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        rounds += 1
    return centres, rounds


comm = spcomm.startup()
points = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
start = np.array([[4.0, 4.0], [6.0, 4.0], [4.0, 6.0], [6.0, 6.0]])
x = cloud(points)
centres, rounds = k_means(x[comm.rank :: comm.size], start, comm.global_sum)

if comm.rank == 0:
    found = ", ".join(f"({across:.2f}, {up:.2f})" for across, up in centres)
    print(f"{points} points on {comm.size} nodes, {rounds} rounds: {found}")
    alone, _ = k_means(x, start, lambda mine: mine)
    if not np.allclose(centres, alone):
        raise SystemExit(f"wrong: one node finds {alone.tolist()}")
    print("checked: one node finds the same")
    if len(sys.argv) > 2:
        grid = np.moveaxis(np.mgrid[11:-1:200j, -1:11:200j][::-1], 0, -1)
        seen = np.histogram2d(x[:, 1], x[:, 0], bins=200, range=[(-1, 11)] * 2)[0][::-1]
        picture.save_png(sys.argv[2], nearest(grid, centres) + 4 * np.minimum(seen, 2))
