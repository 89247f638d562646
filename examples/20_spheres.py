# SPDX-License-Identifier: MIT
"""A picture of a double helix: each node draws some spheres, and each point shows the nearest one.

    spcomm run -n 4 20_spheres.py [PICTURE.png]

A user-defined operator keeps the nearer points of two pictures (a z-buffer). Binary swap keeps all nodes busy with it:
two nodes exchange halves and each combines one, then they exchange quarters with others (docs/howto/rendering.md).
Look: the operator works on two whole pictures, on small ones, and on the pieces that `reduce` cuts them into.
Try: `algorithm="flat"`, and `spcomm run --stats`: which node does the work now? `volume.py` looks through clouds.
"""

import sys

import numpy as np
import picture

import spcomm

SIZE, RADIUS = 256, 0.09  # pixels a side; of a sphere, where the picture goes from -1 to 1
COLOURS = np.array([[90, 140, 255], [255, 150, 60]])
PIXEL = np.dtype([("depth", "f4"), ("rgb", "u1", 3)])
LAMP = np.array([-0.48, 0.60, -0.64])  # the direction that light comes from; the eye looks along z


@spcomm.op(commutative=True, elementwise=True)  # no two spheres are equally near at the same point
def closest(one, other):
    return np.where(one["depth"] <= other["depth"], one, other)


def draw(spheres):
    """Draw every even sphere on one strand, every odd one on the other, from the bottom to the top."""
    image = np.zeros((SIZE, SIZE), PIXEL)
    image["depth"] = np.inf
    grid = np.linspace(-1, 1, SIZE)
    for number in spheres:
        angle, height = number * np.pi / 40 + 2.4 * (number % 2), number / 160 - 0.75
        x, y, z = 0.4 * np.cos(angle) + 0.5 * height, 0.85 * height - 0.3 * np.cos(angle), 0.5 * np.sin(angle)
        across, down = (slice(*np.searchsorted(grid, [at - RADIUS, at + RADIUS])) for at in (x, -y))
        dx, dy = (grid[across] - x) / RADIUS, (-grid[down, None] - y) / RADIUS
        dz = -np.sqrt(np.maximum(1 - dx * dx - dy * dy, 0))  # the surface's direction, towards the eye
        light = 0.25 + 0.75 * np.maximum(dx * LAMP[0] + dy * LAMP[1] + dz * LAMP[2], 0)
        sphere = np.empty(dz.shape, PIXEL)
        sphere["depth"] = np.where(dz < 0, z + RADIUS * dz, np.inf)
        sphere["rgb"] = light[..., None] * COLOURS[number % 2]
        image[down, across] = closest(image[down, across], sphere)
    return image


comm = spcomm.startup()
whole = comm.reduce(draw(range(comm.rank, 240, comm.size)), op=closest, algorithm="binary-swap")

if comm.rank == 0:
    print(f"{comm.size} nodes see spheres at {np.isfinite(whole['depth']).sum()} of {SIZE} x {SIZE} points")
    if not np.array_equal(whole, draw(range(240))):
        raise SystemExit("wrong: one node draws another picture")
    print("checked: one node draws the same picture")
    if len(sys.argv) > 1:
        picture.save_png(sys.argv[1], whole["rgb"])
