# SPDX-License-Identifier: MIT
"""The command line of `spcomm model`: a table of sub-commands, each imported when it is called."""

import importlib
import sys
from collections.abc import Sequence

from spcomm.argument_parser import ArgumentParser, near
from spcomm.model import ModelError
from spcomm.text import printable

# Name: the module whose `main(words)` runs it, and its line in the help.
COMMANDS = {
    "sci": ("sci_command", "latency of SCI rings and tori, by the equations of a thesis of 2000"),
    "fit": ("fit_command", "fit LogGP and the time of operations to measurements of `spcomm bench`"),
    "predict": ("predict_command", "predict an operation at any number of nodes, from a fit"),
    "simulate": ("simulate_command", "an operation of up to millions of nodes, message by message"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `spcomm model`; return the exit code: 1 for input that no model can be made of, 125 for a wrong command."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words[0] if words else "--help"
    if name in ("-h", "--help"):
        print(parser().format_help(), end="")
        return 0
    if name not in COMMANDS:
        hint = near(name, COMMANDS) or f"; there are: {', '.join(COMMANDS)}"
        print(f"spcomm model: no command {printable(repr(name))}{hint}", file=sys.stderr)
        return 125
    module = importlib.import_module(f"spcomm.model.{COMMANDS[name][0]}")
    try:
        module.main(words[1:])
    except ModelError as error:
        print(f"spcomm model {name}: {printable(str(error))}", file=sys.stderr)
        return 1
    return 0


def parser() -> ArgumentParser:
    """Return the parser of `spcomm model`."""
    rows = [(name, text) for name, (_module, text) in COMMANDS.items()]
    made = ArgumentParser(
        "spcomm model",
        "spcomm model COMMAND [options]",
        "Models of the time that communication takes.",
        "spcomm model COMMAND --help has the options.",
        completed=rows,
    )
    made.sections.append(("Commands:", rows))
    return made
