# SPDX-License-Identifier: MIT
import numpy as np

import spcomm

comm = spcomm.startup()
same = np.random.default_rng(seed=1)  # on every node
own = comm.rng(seed=1)
print(f"node {comm.rank}: {same.integers(100, size=4)} and {own.integers(100, size=4)}")
