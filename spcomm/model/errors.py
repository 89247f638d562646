# SPDX-License-Identifier: MIT
"""The error of `spcomm model`, and imports that may be missing."""

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
