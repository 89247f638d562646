# SPDX-License-Identifier: MIT
"""A trace, the file that `spcomm run --trace` writes, and its outputs: text, pictures, a page.

`writing` makes the file from the nodes' records, with `told` (details of calls), `counters` (curves) and
`remote_traces` (nodes on other machines); `files` puts it in its place. For all else the file is all there is, and
nothing knows of nodes: `reader` makes the `model` of a file, whose `cut` takes a part of it; `summary`, `matrix`,
`page` and `picture` show it; `virtual` computes the virtual clock, from the `steps` of each node;
`what_if` replays these steps in another world.
"""
