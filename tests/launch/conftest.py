# SPDX-License-Identifier: MIT
"""Fixtures of the launcher's tests."""

import sys

import pytest

from forking import Forked
from launching import STARTS, Launch


def leaving_nothing(launch):
    """Sees to it that nothing of any run is left when the test ends."""
    yield launch
    launch.close()
    if sys.platform.startswith("linux"):
        launch.wait_until_nothing_is_left()


@pytest.fixture
def launch(tmp_path):
    """Runs scripts by `spcomm run`."""
    yield from leaving_nothing(Launch(tmp_path))


@pytest.fixture
def forked(tmp_path):
    """Runs scripts by Python alone."""
    yield from leaving_nothing(Forked(tmp_path))


@pytest.fixture(params=STARTS)
def start(request):
    """Both ways to start the nodes of a Python program, as options."""
    return ("--start", request.param)
