# SPDX-License-Identifier: MIT
"""The most frequent words of a file: python with_ipyparallel.py 4 FILE"""

import sys
from collections import Counter
from pathlib import Path

import ipyparallel


def count(lines):
    from collections import Counter

    return Counter(word for line in lines for word in line.lower().split())


size = int(sys.argv[1])
lines = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
with ipyparallel.Cluster(n=size) as engines:
    words = sum(engines[:].map_sync(count, [lines[rank::size] for rank in range(size)]), Counter())
print(*sorted(words.items(), key=lambda item: (-item[1], item[0]))[:3])
