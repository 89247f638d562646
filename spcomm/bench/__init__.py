# SPDX-License-Identifier: MIT
"""`spcomm bench`: measures spcomm beside its peers, on the same work in the same run.

======================  ==========================================================================================
`command`               the command line: rows, contenders, duration
`rows`, `cases/`        the declarations of benchmarks, and a table of them
`programs/`             what the nodes run: `driver` with a file for each library; plain C
`peers`                 the contenders, and how to find and start them
`measure`               the rounds: every contender in turn, A B C, B C A, …
`plain_c`, `clusters`   measured beside them: programs in plain C, and nodes for a notebook
`neighbours`            the share of the machine that other programs used meanwhile
`statistics`, `table`   numbers from measurements, and text from numbers
`report`                the table and the JSON
`figures`, `plot`       the papers' figures, declared and drawn; `papers.toml` has the papers' numbers
`figures_command`       the command line of `spcomm bench figures`
======================  ==========================================================================================

It is an ordinary user of the launcher: it starts nodes with ``python -m spcomm run``.
"""
