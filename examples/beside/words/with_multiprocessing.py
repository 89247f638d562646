# SPDX-License-Identifier: MIT
"""The most frequent words of a file: python with_multiprocessing.py 4 FILE"""

import sys
from collections import Counter
from multiprocessing import Pool
from pathlib import Path


def count(lines):
    return Counter(word for line in lines for word in line.lower().split())


if __name__ == "__main__":
    size = int(sys.argv[1])
    lines = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    with Pool(size) as pool:
        words = sum(pool.map(count, [lines[rank::size] for rank in range(size)]), Counter())
    print(*sorted(words.items(), key=lambda item: (-item[1], item[0]))[:3])
