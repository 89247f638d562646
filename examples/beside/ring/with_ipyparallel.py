# SPDX-License-Identifier: MIT
"""A list goes round, and each process signs it: python with_ipyparallel.py 4"""

import sys

import ipyparallel


def sign(signatures, rank):
    return [*signatures, rank]


size = int(sys.argv[1])
with ipyparallel.Cluster(n=size) as engines:
    signatures = []
    for rank in range(size):  # engines do not talk to each other: each message goes through this program
        signatures = engines[rank].apply_sync(sign, signatures, rank)
print("signed by", signatures)
