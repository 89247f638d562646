# SPDX-License-Identifier: MIT
"""A picture of a molecule: each node draws some of the atoms, and the nearest of all nodes is seen at each point.

    spcomm run -n 8 09_spheres.py [--png FILE]

The molecule is a double helix. A picture has a depth and a colour at each point; of two pictures an operator of our own
keeps what is nearer (a z-buffer). So each node may have any of the atoms, in front or behind. The sphere renderer of
ACLMPL's authors (section 6 of their paper) does the same for molecular dynamics.
"""

import argparse
from time import perf_counter

import numpy as np
import picture

import spcomm

SIZE, PAIRS = 256, 24  # pixels a side; pairs of the helix
STRANDS = [[90, 140, 255], [255, 150, 60]]
BASES = [[120, 210, 120], [230, 90, 110], [240, 210, 90], [190, 120, 220]]
COLOURS = np.array(STRANDS + BASES)
PIXEL = np.dtype([("depth", "f4"), ("rgb", "u1", 3)])
lamp = np.array([-0.48, 0.60, -0.64])  # the direction that light comes from; the eye looks along z


def molecule():
    """All atoms: x, y, z, radius and number of the colour."""
    bases = np.random.default_rng(1953).integers(4, size=PAIRS)
    atoms = []
    for pair, base in enumerate(bases):
        height = 1.9 * (pair + 0.5) / PAIRS - 0.95
        for side in (0, 1):
            for part in range(4):  # between two pairs, the strand goes on
                angle = (pair + part / 4) * np.pi / 5 + side * 2.4
                up = height + 1.9 / PAIRS * part / 4
                atoms.append((0.5 * np.cos(angle), up, 0.5 * np.sin(angle), 0.07, side))
            start, end = (pair * np.pi / 5 + each * 2.4 for each in (side, 1 - side))
            for way in (0.15, 0.28, 0.41):  # from the strand to the middle
                x, z = (0.5 * ((1 - way) * f(start) + way * f(end)) for f in (np.cos, np.sin))
                atoms.append((x, height, z, 0.055, 2 + (base if side else base ^ 1)))
    tilt = np.array([[0.8, 0.6, 0], [-0.6, 0.8, 0], [0, 0, 1]])
    atoms = np.array(atoms)
    atoms[:, :3] = atoms[:, :3] @ tilt
    return atoms


@spcomm.op(commutative=True, elementwise=True)  # no two atoms are equally near at the same point
def closest(one, other):
    """At each point what is nearer of two pictures."""
    return np.where(one["depth"] <= other["depth"], one, other)


def draw(atoms):
    """The picture of some atoms."""
    image = np.zeros((SIZE, SIZE), PIXEL)
    image["depth"] = np.inf
    grid = np.linspace(-1, 1, SIZE)
    for x, y, z, radius, colour in atoms:
        columns = slice(*np.searchsorted(grid, [x - radius, x + radius]))
        rows = slice(*np.searchsorted(grid, [-y - radius, -y + radius]))
        dx, dy = (grid[columns] - x) / radius, (-grid[rows, None] - y) / radius
        dz = -np.sqrt(np.maximum(1 - dx * dx - dy * dy, 0))  # the surface's direction, towards the eye
        depth = np.where(dz < 0, z + radius * dz, np.inf)
        light = 0.25 + 0.75 * np.maximum(dx * lamp[0] + dy * lamp[1] + dz * lamp[2], 0)
        sphere = np.empty(depth.shape, PIXEL)
        sphere["depth"] = depth
        sphere["rgb"] = light[..., None] * COLOURS[int(colour)]
        image[rows, columns] = closest(image[rows, columns], sphere)
    return image


parser = argparse.ArgumentParser()
parser.add_argument("--png", metavar="FILE", help="write the picture")
options = parser.parse_args()
comm = spcomm.startup()
atoms = molecule()

comm.barrier()  # all start the clock together
begin = perf_counter()
drawn = draw(atoms[comm.rank :: comm.size])
comm.barrier()
middle = perf_counter()
whole = comm.reduce(drawn, op=closest, algorithm="binary-swap")
end = perf_counter()

if comm.rank == 0:
    print(f"{len(atoms)} atoms, {SIZE} x {SIZE} pixels: drawn in {middle - begin:.3f} s", end="")
    print(f" and combined in {end - middle:.3f} s by {comm.size} nodes")
    begin = perf_counter()
    alone = draw(atoms)
    print(f"the same on one node: {perf_counter() - begin:.3f} s")
    if not np.array_equal(whole, alone):
        raise SystemExit(f"wrong: one node finds something else at {np.sum(whole != alone)} points")
    print("OK: one node sees the same")
    if options.png:
        print(f"picture: {picture.save_png(options.png, whole['rgb'])}")
