# SPDX-License-Identifier: MIT
import numpy as np

import spcomm

comm = spcomm.startup()

heights = None
if comm.rank == 0:  # only node 0 has the data; it could have read them from a file
    heights = np.array_split(np.array([1.52, 1.61, 1.68, 1.70, 1.75, 1.79, 1.84, 1.93]), comm.size)
mine = comm.scatter(heights)

count, total = comm.global_sum((len(mine), float(mine.sum())))
mean = total / count
square = comm.global_sum(float(((mine - mean) ** 2).sum()))
tall = comm.gather([float(height) for height in mine if height > mean])
if comm.rank == 0:
    print(f"mean {mean:.3f} m, deviation {(square / count) ** 0.5:.3f} m")
    print(f"taller than the mean, by node: {tall}")
