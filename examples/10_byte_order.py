# SPDX-License-Identifier: MIT
"""Numbers that carry their byte order: sent as they lie in memory, they convert themselves when somebody reads them.

    spcomm run -n 2 10_byte_order.py

Node 0 sends three structures to the last node, and plays a machine of the other byte order: `byteswap()` makes of an
array what such a machine would have written. The receiver looks at the bytes, reads one number, and looks again: that
one has been converted where it lies, and is marked so. The others are when they are read, and never if nobody asks for
them (SpeedesComm, section 4).
"""

import numpy as np

import spcomm
from spcomm import NET_DOUBLE, NET_INT

ORDER = np.dtype([("number", NET_INT), ("price", NET_DOUBLE)])


def orders():
    """Three structures as the other kind of machine has them in memory."""
    made = np.zeros(3, ORDER)
    for name, numbers in (("number", [1, 258, 7]), ("price", [1.5, 2.0, 0.25])):
        written = np.array(numbers).astype(ORDER[name])
        made[name] = written.byteswap()
    return made


def picture(element):
    """The bytes of one element: its status, which names a byte order, and its value."""
    data = element.tobytes()
    half = len(data) // 2
    status = " ".join(chr(byte) if byte else "·" for byte in data[:half])
    value = " ".join(f"{byte:02x}" for byte in data[half:])
    return f"│ {status} │ {value} │"


def show(title, array):
    print(title)
    for record in range(len(array)):
        print(f"  {record}  number {picture(array['number'][record : record + 1])}", end="   ")
        print(f"price {picture(array['price'][record : record + 1])}")
    foreign = spcomm.foreign_count(array)
    print(f"  {foreign} of {2 * len(array)} elements are foreign")


comm = spcomm.startup()
if comm.rank == 0:
    comm.send(orders(), comm.size - 1, tag=1)
if comm.rank == comm.size - 1:
    arrived = comm.recv(tag=1)
    show("As it came:", arrived)
    number = arrived["number"][1]
    assert number == 258
    show(f"\nThe number of structure 1 was read, {number}:", arrived)
    total = (
        arrived["number"] * arrived["price"]
    ).sum()  # computing converts what it reads, and writes nothing
    assert total == 1.5 + 516 + 1.75
    show(f"\nAll were computed with, {total}:", arrived)
    show("\nAfter localize:", spcomm.localize(arrived))
    assert arrived.tolist() == [(1, 1.5), (258, 2.0), (7, 0.25)]
