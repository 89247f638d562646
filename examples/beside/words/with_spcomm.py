# SPDX-License-Identifier: MIT
"""The most frequent words of a file: spcomm run -n 4 with_spcomm.py FILE"""

import operator
import sys
from collections import Counter
from pathlib import Path

import spcomm

comm = spcomm.startup()
lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
mine = Counter(word for line in lines[comm.rank :: comm.size] for word in line.lower().split())
words = comm.reduce(mine, op=spcomm.op(operator.add))
if comm.rank == 0:
    print(*sorted(words.items(), key=lambda item: (-item[1], item[0]))[:3])
