# SPDX-License-Identifier: MIT
"""`spcomm bench`: measures spcomm beside its peers, on the same work in the same run.

======================  ==========================================================================================
`command`               the command line: which rows, which contenders, how long
`rows`, `cases/`        what a benchmark declares; one file a benchmark, found by listing the folder
`programs/`             what runs in the nodes: one file for each library, with the same structure
`peers`                 how each contender is found and started
`measure`               the rounds: every contender in turn, A B C, B C A, …
`plain_c`, `clusters`   what is run beside them: programs in plain C, and nodes that a notebook would have
`neighbours`            how much of the machine others used meanwhile
`statistics`, `table`   numbers out of measurements, and text out of numbers
`report`                the table and the JSON
======================  ==========================================================================================

A user of the launcher: nodes are started with ``python -m spcomm run`` as anybody would.
"""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `spcomm bench`; returns the exit code."""
    from spcomm.bench.command import main as command

    return command(arguments)
