# SPDX-License-Identifier: MIT
import time

import spcomm

comm = spcomm.startup()

comm.barrier()  # all begin together
begin = comm.time()
time.sleep(0.2 * comm.rank)  # for a computation that takes some nodes longer
mine = comm.time() - begin

comm.barrier()  # all have finished
whole = comm.time() - begin
print(f"node {comm.rank} computed for {mine:.1f} s and waited for {whole - mine:.1f} s")
