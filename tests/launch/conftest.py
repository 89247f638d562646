# SPDX-License-Identifier: MIT
"""Fixtures of the launcher's tests."""

import pytest

from forking import Forked
from launchers import LAUNCHERS, Launched
from launching import STARTS, leaving_nothing


@pytest.fixture
def forked(tmp_path):
    """Runs scripts by Python alone."""
    yield from leaving_nothing(Forked(tmp_path))


@pytest.fixture(params=LAUNCHERS)
def launched(tmp_path, request):
    """Runs scripts as several processes of another launcher."""
    yield from leaving_nothing(Launched(tmp_path, request.param))


@pytest.fixture
def launched_by_variables(tmp_path):
    """The same, for a launcher that only sets variables."""
    yield from leaving_nothing(Launched(tmp_path, "variables"))


@pytest.fixture
def terminal():
    """A terminal, at which a run can be started."""
    from terminal import Terminal

    found = Terminal()
    yield found
    found.close()


@pytest.fixture(params=STARTS)
def start(request):
    """Both ways to start the nodes of a Python program, as options."""
    return ("--start", request.param)
