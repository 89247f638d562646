# SPDX-License-Identifier: MIT
"""Numbers that carry their byte order: sent as they lie in memory, they convert themselves when they are read.

    spcomm run -n 2 22_byte_order.py

Node 0 plays a machine of the other byte order: `byteswap()` turns an array into the bytes that such a machine writes.
The last node looks at the bytes that came, reads one number, and looks again (SpeedesComm, section 4).
Look: the number that was read is now converted in place, and marked so. The others are as they came.
Try: copy the array (`arrived.copy()`) before the number is read: which is converted, the copy or the original?
"""

import numpy as np

import spcomm
from spcomm import NET_DOUBLE, NET_INT

ORDER = np.dtype([("number", NET_INT), ("price", NET_DOUBLE)])


def orders():
    """Three structures as the other kind of machine has them in memory."""
    made = np.zeros(3, ORDER)
    for name, numbers in (("number", [1, 258, 7]), ("price", [1.5, 2.0, 0.25])):
        made[name] = np.array(numbers).astype(ORDER[name]).byteswap()
    return made


def drawing(element):
    """The bytes of one element: its status, which names a byte order, and its value."""
    data = element.tobytes()
    half = len(data) // 2
    status = " ".join(chr(byte) if byte else "·" for byte in data[:half])
    return f"│ {status} │ {data[half:].hex(' ')} │"


def show(title, array):
    print(title)
    for i in range(len(array)):
        number, price = (drawing(array[name][i : i + 1]) for name in ORDER.names)
        print(f"  {i}  number {number}   price {price}")
    print(f"  {spcomm.foreign_count(array)} of {2 * len(array)} elements are foreign\n")


comm = spcomm.startup()
if comm.rank == 0:
    comm.send(orders(), comm.size - 1, tag=1)
if comm.rank == comm.size - 1:
    arrived = comm.recv(tag=1)
    show("As it came:", arrived)
    number = arrived["number"][1]
    show(f"The number of structure 1 was read, {number}:", arrived)
    total = (
        arrived["number"] * arrived["price"]
    ).sum()  # computing converts what it reads, and writes nothing
    show(f"All were computed with, {total}:", arrived)
    show("After localize:", spcomm.localize(arrived))
    if (number, total, arrived.tolist()) != (258, 519.25, [(1, 1.5), (258, 2.0), (7, 0.25)]):
        raise SystemExit(f"wrong: the numbers are {arrived.tolist()}, and the sum of their products {total}")
    print("checked: the numbers are those that were sent")
