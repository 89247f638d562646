# SPDX-License-Identifier: MIT
"""Wrong programs, run by the real command: what it says, of which nodes, at which lines."""

import pytest

from launching import Launch, leaving_nothing


@pytest.fixture
def launch(tmp_path):
    """Runs scripts by `spcomm run`."""
    yield from leaving_nothing(Launch(tmp_path))
