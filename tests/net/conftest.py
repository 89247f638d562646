# SPDX-License-Identifier: MIT
"""Other hosts, or what stands for them."""

import pytest

from launching import leaving_nothing, stand_in_for_ssh
from netting import Net


@pytest.fixture
def ssh(tmp_path):
    """A stand-in for ssh, as the value of --ssh."""
    return stand_in_for_ssh(tmp_path)


@pytest.fixture
def net(tmp_path):
    """Runs of several boxes, through a network that may break."""
    yield from leaving_nothing(Net(tmp_path))
