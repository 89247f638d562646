# says: the parts of a record come from the node that sent it
# SPDX-License-Identifier: MIT
"""All parts on one heap: as if they came in the order of their records."""

TEXT, ARRAY, RECORD, PART, DONE = range(1, 6)
TAGS = {"text": TEXT, "array": ARRAY, "record": RECORD, "part": PART}


def answer(comm, message):
    """The answer of node 0 to a letter."""
    if message.tag == TEXT:
        return message.data.upper()
    if message.tag == ARRAY:
        return float(message.data.sum())
    return message.data


def solve(comm, letters):
    """Send this node's letters, pairs (kind, data), to node 0; on node 0 return what it makes of all."""
    if comm.rank > 0:
        for kind, data in letters:
            comm.send(data, 0, tag=TAGS[kind])
        comm.send(None, 0, tag=DONE)
        return None

    answers = [[] for _ in range(comm.size)]
    parts, records = [], []
    still = comm.size - 1  # nodes that have not said that they are done
    while still:
        message = comm.recv_message()
        if message.tag == DONE:
            still -= 1
        elif message.tag == PART:
            parts.append(float(message.data.sum()))
        else:
            if message.tag == RECORD:
                records.append(message.data)
            answers[message.source].append(answer(comm, message))
    for record in records:
        count = record.pop("parts")
        record["sums"], parts = parts[:count], parts[count:]
    return answers
