# SPDX-License-Identifier: MIT
"""Nodes that stay alive between calls: `spcomm.Cluster`, and `%%spcomm` in Jupyter on top of it.

In the caller's process are `cluster` (the public class), `node_pool` (the nodes from one call to the next), `calls`
(one call, from its start to its results), `mapping` (one that hands out items), `wakeup` (its events from outside),
`call_errors` (its exceptions, with `errors`), `source_cache` (sources that only the caller has), `nodes` (the
processes) and `screen` (their output). `magics` is Jupyter's side, with `magic_options` (the typed options) and
`checking` (exercises). `node_main` and `figures`
run in the nodes. Both sides exchange messages of `channel`, with objects that `pickling` has pickled.
"""
