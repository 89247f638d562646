# SPDX-License-Identifier: MIT
"""Nodes that stay alive between calls: `spcomm.Cluster`, and `%%spcomm` in Jupyter on top of it.

In the caller's process are `cluster` (the public class), `keeper` (the nodes from one call to the next), `calls` (one
call, from its start to its results), `mapping` (one that hands out items), `bell` (what reaches it from outside),
`verdict` (what it raises, with `errors`), `lines` (sources that only the caller has), `nodes` (the processes) and
`screen` (their output). `magics` is Jupyter's side, with `words` (what is typed) and `checking` (exercises). In the
nodes are `worker` and `figures`. Between both go messages of `channel`, with what `objects` has pickled.
"""
