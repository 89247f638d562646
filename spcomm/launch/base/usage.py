# SPDX-License-Identifier: MIT
"""The error of a run that cannot be started as requested."""


class UsageError(Exception):
    """A command line that cannot be carried out, at least here; the text is the whole sentence for the user."""

    def __init__(self, text: str, code: int = 125) -> None:
        super().__init__(text)
        self.code = code
