# SPDX-License-Identifier: MIT
"""Fixtures of the perturber's tests: runs by the command, as the launcher's tests make them."""

import sys

import pytest

from launching import Launch


@pytest.fixture
def launch(tmp_path):
    """Runs scripts by `spcomm run`; nothing of a run may be left."""
    launch = Launch(tmp_path)
    yield launch
    launch.close()
    if sys.platform.startswith("linux"):
        launch.wait_until_nothing_is_left()
