# SPDX-License-Identifier: MIT
"""Foundations of the other packages of `spcomm.launch`.

=========  =====================================================================================
`loop`     descriptors with callbacks, and deadlines
`wire`     messages and descriptors over a socket between processes of a run
`process`  system calls that Python lacks: death signals, orphans, interpreter options, times of a node
`record`   frozen dataclasses, without the library's long import
`report`   a node's report, before it is gone, that an exception ended it
`usage`    the error of a run that cannot be started as requested
=========  =====================================================================================
"""


def nothing(*_arguments: object) -> None:
    """Do nothing: a callback where none is needed, and a handler for a signal that only has to wake up."""
