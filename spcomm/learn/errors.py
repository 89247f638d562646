# SPDX-License-Identifier: MIT
"""An error in an exercise, or in a request, in one sentence."""

import os

from spcomm.text import printable

_LONGEST = 200  # letters of a path, in a complaint


class LearnError(Exception):
    """An exercise cannot be found, read or judged: not the fault of the solution that is graded."""


def of_system(error: OSError) -> LearnError:
    """A refusal of the system about a file that a user has named: too long a name, no permission."""
    name = shown(os.fsdecode(error.filename))
    return LearnError(f"cannot use {name}: {error.strerror}; name another place")


def shown(text: str) -> str:
    """The text on a line that cannot steer a terminal, and never a page of it."""
    line = printable(text, "")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
