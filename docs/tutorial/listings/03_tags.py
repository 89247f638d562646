# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
NAME, COLOUR = 1, 2

if comm.rank > 0:
    comm.send(f"worker {comm.rank}", 0, tag=NAME)
    comm.send(["red", "green", "blue"][comm.rank % 3], 0, tag=COLOUR)
else:
    for _ in range(1, comm.size):
        message = comm.recv_message(tag=COLOUR)  # from anybody, whoever is first
        name = comm.recv(message.source, tag=NAME)  # from the same one; it was sent before
        print(f"{name} likes {message.data}")
