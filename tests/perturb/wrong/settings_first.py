# SPDX-License-Identifier: MIT
# run: -n 3 --perturb
"""Node 1 sends the settings, node 2 the data; node 0 believes that the settings come first."""

import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    settings = comm.recv()
    data = comm.recv()
    assert settings == {"scale": 2}, settings
    assert [settings["scale"] * x for x in data] == [2, 4]
elif comm.rank == 1:
    comm.send({"scale": 2}, 0)
else:
    comm.send([1, 2], 0)
