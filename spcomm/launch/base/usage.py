# SPDX-License-Identifier: MIT
"""The error of a run that cannot be started as requested, and lines for the user."""

import os


class UsageError(Exception):
    """A command line that cannot be carried out, at least here; the text is the whole sentence for the user."""

    def __init__(self, text: str, code: int = 125) -> None:
        from spcomm.text import printable

        super().__init__(
            printable(text, kept="")
        )  # words of the command line may have lines, and steer a terminal
        self.code = code


def from_here(path: str) -> str:
    """Return an absolute path, with its `..`. Raises `UsageError` if the current folder is gone."""
    try:
        return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    except FileNotFoundError:  # raised by getcwd
        raise UsageError(
            "spcomm run: the current folder does not exist any more; cd to another one, or give --wdir an absolute path"
        ) from None


def complain(text: str) -> None:
    """Write a line to stderr. If it takes nothing, such as on a full disk, the run goes on, and its exit code tells."""
    try:
        os.write(2, f"{text}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        pass
