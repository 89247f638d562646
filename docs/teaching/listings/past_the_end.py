# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
comm.send("hello", dest=comm.rank + 1)  # and the last node?
