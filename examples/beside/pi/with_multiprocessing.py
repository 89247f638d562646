# SPDX-License-Identifier: MIT
"""π by adding up strips: python with_multiprocessing.py 4"""

import sys
from multiprocessing import Pool

import numpy as np

STRIPS = 4_000_000


def area(rank, size):
    x = (np.arange(rank, STRIPS, size) + 0.5) / STRIPS
    return float(np.sum(4 / (1 + x * x))) / STRIPS


if __name__ == "__main__":
    size = int(sys.argv[1])
    with Pool(size) as pool:
        pi = sum(pool.starmap(area, [(rank, size) for rank in range(size)]))
    print(f"π ≈ {pi:.10f}")
