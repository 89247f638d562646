# SPDX-License-Identifier: MIT
"""`spcomm model`: the time that communication takes, from equations, from a fit, and predicted.

======================  ==========================================================================================
`command`               the command line: the table of sub-commands
`sci`                   the torus equations of Gonzalez (2000): latency by topology, crossovers
`loggp`                 the parameters of LogGP that a fit has found, with confidence intervals, and their file
`measured`              the times of cases, from files of `spcomm bench`
`terms`, `residuals`    what the time of an operation is made of, and the factors that this misses
`fit`, `components`     both found from measured times; latency components by difference of paths
`predict`               the time of an operation, with its interval
`simulate`              operations of many nodes, event by event; `engine` is its part in C
`settings`              ``latency=10us,compute=0.5``, of a command line
======================  ==========================================================================================

What needs SciPy or Matplotlib imports them late; ``pip install 'spcomm[model]'`` brings both.
"""

import importlib
from typing import Any


class ModelError(Exception):
    """Input that no model can be made of; the text is one whole sentence for the user."""


def optional(name: str) -> Any:
    """Import a module of the extra ``model``; raise `ModelError` where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ModelError(
            f"this needs {package}, which is not installed; python -m pip install 'spcomm[model]' brings it"
        ) from error
