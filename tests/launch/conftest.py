# SPDX-License-Identifier: MIT
"""Fixtures of the launcher's tests."""

import sys

import pytest

from launching import STARTS, Launch


@pytest.fixture
def launch(tmp_path):
    """Runs scripts, and sees to it that nothing of any run is left when the test ends."""
    launch = Launch(tmp_path)
    yield launch
    launch.close()
    if sys.platform.startswith("linux"):
        launch.wait_until_nothing_is_left()


@pytest.fixture(params=STARTS)
def start(request):
    """Both ways to start the nodes of a Python program, as options."""
    return ("--start", request.param)
