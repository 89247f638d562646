# SPDX-License-Identifier: MIT
"""A picture of a cloud: each node looks through its part of it, and binary swap puts the parts together.

    spcomm run -n 8 volume.py [PICTURE.png]

The cloud is the electron of a hydrogen atom in a 4d state, blue and orange where the wave function has different signs.
Node 0 has the slices nearest to the eye, the last node those farthest off. Each makes a picture of its own, and these
are laid over each other. That is associative, not commutative: what is near must stay in front.

Binary swap keeps all nodes busy with it: in each round two nodes exchange halves of what they have, and each combines
one half (K. Ma, J. Painter, C. Hansen, M. Krogh, Parallel Volume Rendering Using Binary-Swap Compositing, IEEE Computer
Graphics and Applications 14 (4), 1994). `reduce` does so if it is told what an element of the pictures is.
"""

import sys
from time import perf_counter

import numpy as np
import picture

import spcomm

SIZE, SLICES = 240, 120  # pixels a side; slices of the cloud, parallel to z = 0
REACH = 30.0  # the cloud, from its middle, in Bohr radii
BLUE, ORANGE = np.float32([0.3, 0.6, 1.0]), np.float32([1.0, 0.6, 0.2])

# The eye looks along `view`, from above: small z is near. `right` and `up` span the picture. All have length 1.
view = np.float32([0.36, -0.48, 0.80])
right = np.float32([view[2], 0, -view[0]]) / np.hypot(view[0], view[2])
up = np.cross(view, right)
lamp = np.float32([-0.5, 0.7, -0.5])  # the direction that light comes from


@spcomm.op(elementwise=True, element_axes=1)  # an element is a pixel, which is the last axis
def over(front, back):
    """One picture before another: red, green, blue, each times the opacity, and the opacity (Porter and Duff 1984)."""
    return front + (1 - front[:, 3:]) * back


def wave(x, y, z):
    """The state 4d, m = 0, about the y axis: not normalised."""
    r2 = x * x + y * y + z * z
    r = np.sqrt(r2)
    return (12 - r) * (3 * y * y - r2) * np.exp(-r / 4)


def look_through(slices):
    """The picture of some slices, front to back: shape (SIZE * SIZE, 4), float32."""
    v, u = np.mgrid[REACH : -REACH : SIZE * 1j, -REACH : REACH : SIZE * 1j].astype(np.float32)
    x0, y0, z0 = ((u * right[i] + v * up[i]).ravel() for i in range(3))  # the rays: x0 + way * view[0], ...
    clear = np.ones(SIZE * SIZE, np.float32)  # so much of the light gets through the slices so far
    blue, orange = np.zeros_like(clear), np.zeros_like(clear)
    for number in slices:
        z = np.float32(REACH * ((2 * number + 1) / SLICES - 1))
        way = (z - z0) / view[2]
        x, y = x0 + way * view[0], y0 + way * view[1]
        psi = wave(x, y, z)
        opacity = 0.2 * np.exp(-(((abs(psi) - 15) / 4) ** 2))  # a shell where |psi| is about 15
        # Bright where it gets thinner towards the lamp.
        thinner = 1 - abs(wave(x + lamp[0], y + lamp[1], z + lamp[2])) / (abs(psi) + 1e-3)
        light = clear * opacity * np.clip(0.5 + 2.5 * thinner, 0.2, 1)
        blue += np.where(psi > 0, light, 0)
        orange += np.where(psi > 0, 0, light)
        clear *= 1 - opacity
    return np.column_stack([blue[:, None] * BLUE + orange[:, None] * ORANGE, 1 - clear])


comm = spcomm.startup()
mine = range(comm.rank * SLICES // comm.size, (comm.rank + 1) * SLICES // comm.size)

comm.barrier()  # all start the clock together
begin = perf_counter()
seen = look_through(mine)
comm.barrier()
middle = perf_counter()
whole = comm.reduce(seen, op=over, algorithm="binary-swap")
end = perf_counter()

if comm.rank == 0:
    print(f"{SLICES} slices, {SIZE} x {SIZE} pixels: looked at in {middle - begin:.3f} s", end="")
    print(f" and combined in {end - middle:.3f} s by {comm.size} nodes")
    begin = perf_counter()
    alone = look_through(range(SLICES))
    print(f"the same on one node: {perf_counter() - begin:.3f} s")
    if not np.allclose(whole, alone, atol=1e-5):
        raise SystemExit(f"wrong: a colour differs by {abs(whole - alone).max()} from what one node finds")
    print("checked: one node sees the same")
    if len(sys.argv) > 1:
        before_black = (255 * np.clip(whole[:, :3], 0, 1)).astype(np.uint8).reshape(SIZE, SIZE, 3)
        print(f"picture: {picture.save_png(sys.argv[1], before_black)}")
