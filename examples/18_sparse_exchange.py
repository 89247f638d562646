# SPDX-License-Identifier: MIT
"""Each node has messages for a few others, and no node knows how many will come. When have all messages come?

    spcomm run -n 4 18_sparse_exchange.py [MESSAGES]

`ssend` returns when its message has been received. A node that has sent all of its messages enters a fuzzy barrier,
which does not wait, and goes on receiving. When all nodes have entered, all messages have been received, and the
barrier is done. No table of who sends how much to whom is needed (T. Hoefler, C. Siebert, A. Lumsdaine, Scalable
Communication Protocols for Dynamic Sparse Data Exchange, PPoPP 2010).
Look: the handler receives messages while its node sends. Without it two nodes that send to each other wait for ever.
Try: `coordinated_send` and `coordinated_messages()`, which do all of this in spcomm.
"""

import sys

import spcomm

comm = spcomm.startup()
messages = int(sys.argv[1]) if len(sys.argv) > 1 else 20
rng = comm.rng(2)
got = []


@comm.handler(tag=1)
def take(message):
    got.append(message.data)


sent = []
for _ in range(int(rng.integers(messages + 1))):
    number, dest = int(rng.integers(1000)), int(rng.integers(comm.size))
    sent.append(number)
    if dest == comm.rank:
        got.append(number)
    else:
        comm.ssend(number, dest, tag=1)

with comm.fuzzy_barrier() as everybody:
    while not everybody.done():
        comm.poll()  # calls the handler

table = comm.gather((sent, got))
if comm.rank == 0:
    for rank, (out, into) in enumerate(table):
        print(f"node {rank} sent {len(out)} messages and got {len(into)}")
    all_sent, all_got = (sorted(number for row in table for number in row[way]) for way in (0, 1))
    if all_sent != all_got:
        raise SystemExit(f"wrong: {len(all_sent)} were sent, {len(all_got)} were received, or others")
    print(f"checked: all {len(all_sent)} messages had come when the barrier was done")
