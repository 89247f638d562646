# SPDX-License-Identifier: MIT
"""Runs that are traced."""

import pytest

from launching import Launch, leaving_nothing


@pytest.fixture
def launch(tmp_path):
    """Runs scripts by `spcomm run`."""
    yield from leaving_nothing(Launch(tmp_path))
