# SPDX-License-Identifier: MIT
"""π by adding up strips: python with_ipyparallel.py 4"""

import sys

import ipyparallel

STRIPS = 4_000_000


def area(rank, size, strips):
    import numpy as np  # on the engine, which does not see what this file has imported

    x = (np.arange(rank, strips, size) + 0.5) / strips
    return float(np.sum(4 / (1 + x * x))) / strips


size = int(sys.argv[1])
with ipyparallel.Cluster(n=size) as engines:
    pi = sum(engines[:].map_sync(area, range(size), [size] * size, [STRIPS] * size))
print(f"π ≈ {pi:.10f}")
