# SPDX-License-Identifier: MIT
"""A trace, the file that `spcomm run --trace` writes, and its outputs: text, pictures, a page.

`writing` makes the file of what nodes have recorded, with `told` (what calls tell), `counters` (curves) and
`remote_traces` (nodes on other machines); `files` puts it in its place. For all else the file is all there is, and
nothing knows of nodes: `reader` makes the `model` of a file, whose `cut` takes a part of it; `summary`, `matrix`,
`page` and `picture` show it; `virtual` computes the virtual clock, from the `steps` of each node.
"""
