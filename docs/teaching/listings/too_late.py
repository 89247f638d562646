# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
comm.coordinated_send("one", dest=spcomm.ALL)
for message in comm.coordinated_messages():
    comm.coordinated_send("and another", dest=message.source)
