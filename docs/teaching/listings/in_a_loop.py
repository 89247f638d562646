# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    while comm.try_recv_message(source=1) is None:
        pass  # node 1 waits, too
else:
    comm.recv(source=0)
