# SPDX-License-Identifier: MIT
"""Every body attracts every other: each node moves some of them, and needs to know where all of them are.

    spcomm run -n 4 11_nbody.py [BODIES [PICTURE.png]]

Look: one `allgather` in each step is all the communication. It grows with n, the computing with n².
Try: send the positions round a ring, so that no node ever has all of them. What do you gain, and what do you lose?
"""

import sys

import numpy as np
import picture

import spcomm

STEPS, DT, SOFT = 150, 0.01, 0.05  # closer than SOFT, bodies attract each other less


def beginning(bodies):
    """Positions and velocities, shape (bodies, 2): a disc that turns."""
    rng = np.random.default_rng(3)
    radius, angle = np.sqrt(rng.uniform(0.05, 1, bodies)), rng.uniform(0, 2 * np.pi, bodies)
    x = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return x, 0.8 * x[:, ::-1] * [-1, 1]


def pull(x, others):
    """The acceleration at x by the others, whose masses are 1 all together."""
    way = others - x[:, None]
    return (way / ((way**2).sum(axis=2, keepdims=True) + SOFT**2) ** 1.5).sum(axis=1) / len(others)


comm = spcomm.startup()
bodies = int(sys.argv[1]) if len(sys.argv) > 1 else 200
first, last = comm.rank * bodies // comm.size, (comm.rank + 1) * bodies // comm.size
x, v = (whole[first:last] for whole in beginning(bodies))

trail = []
for _ in range(STEPS):
    everybody = np.concatenate(comm.allgather(x))
    v = v + DT * pull(x, everybody)
    x = x + DT * v
    trail.append(everybody)
final, momentum = np.concatenate(comm.allgather(x)), comm.global_sum(v.sum(axis=0))

if comm.rank == 0:
    print(f"{bodies} bodies after {STEPS} steps: {np.hypot(*final.T).mean():.4f} from the middle on average")
    x, v = beginning(bodies)
    drift = abs(momentum - v.sum(axis=0)).max()
    for _ in range(STEPS):
        v = v + DT * pull(x, x)
        x = x + DT * v
    if not np.allclose(final, x) or drift > 1e-9:
        raise SystemExit(f"wrong by {abs(final - x).max()} from one node, by {drift} in momentum")
    print("checked: one node finds them at the same places, and their momentum has not changed")
    if len(sys.argv) > 2:
        seen = np.histogram2d(*np.concatenate(trail).T, bins=240, range=[(-1.2, 1.2)] * 2)[0]
        picture.save_png(sys.argv[2], np.log1p(seen))
