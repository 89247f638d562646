# SPDX-License-Identifier: MIT
"""Nodes that stay alive between calls: `spcomm.Cluster`, and `%%spcomm` in Jupyter on top of it.

In the caller's process are `cluster` (the public class), `keeper` (the nodes from one call to the next), `calls` (one
call, from its start to its results), `bell` (what reaches it from outside), `nodes` (the processes) and `screen` (their
output); `magics` is Jupyter's side. In the nodes are `worker` and `figures`. Between them go messages of `channel`.
"""
