# says: the order of that node's letters is lost
# SPDX-License-Identifier: MIT
"""All texts first, then the rest."""

TEXT, ARRAY, RECORD, PART, DONE = range(1, 6)
TAGS = {"text": TEXT, "array": ARRAY, "record": RECORD, "part": PART}


def answer(comm, message):
    """The answer of node 0 to a letter."""
    if message.tag == TEXT:
        return message.data.upper()
    if message.tag == ARRAY:
        return float(message.data.sum())
    sums = [float(comm.recv(message.source, tag=PART).sum()) for _ in range(message.data["parts"])]
    return {"name": message.data["name"], "sums": sums}


def solve(comm, letters):
    """Send this node's letters, pairs (kind, data), to node 0; on node 0 return what it makes of all."""
    if comm.rank > 0:
        for kind, data in letters:
            comm.send(data, 0, tag=TAGS[kind])
        comm.send(None, 0, tag=DONE)
        return None

    answers = [[] for _ in range(comm.size)]
    still = comm.size - 1  # nodes that have not said that they are done
    late = []
    while still:
        message = comm.recv_message()
        if message.tag == DONE:
            still -= 1
        elif message.tag == TEXT:
            answers[message.source].append(answer(comm, message))
        else:
            late.append((message.source, answer(comm, message)))
    for source, made in late:
        answers[source].append(made)
    return answers
