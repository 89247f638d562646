# SPDX-License-Identifier: MIT
"""The most frequent words of a file: mpiexec -n 4 python with_mpi4py.py FILE"""

import sys
from collections import Counter
from pathlib import Path

from mpi4py import MPI

comm = MPI.COMM_WORLD
lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
mine = Counter(word for line in lines[comm.rank :: comm.size] for word in line.lower().split())
words = comm.reduce(mine)  # MPI.SUM adds Python objects by their +
if comm.rank == 0:
    print(*sorted(words.items(), key=lambda item: (-item[1], item[0]))[:3])
