# SPDX-License-Identifier: MIT
"""A list goes round, and each process signs it: python with_multiprocessing.py 4"""

import sys
from multiprocessing import Process, SimpleQueue


def sign(rank, inbox, outbox):
    outbox.put([*inbox.get(), rank])


if __name__ == "__main__":
    size = int(sys.argv[1])
    inboxes = [SimpleQueue() for _ in range(size)]  # a way to each process has to be made before they start
    others = [
        Process(target=sign, args=(rank, inboxes[rank], inboxes[(rank + 1) % size]))
        for rank in range(1, size)
    ]
    for process in others:
        process.start()
    inboxes[1 % size].put([0])
    print("signed by", inboxes[0].get())
    for process in others:
        process.join()
