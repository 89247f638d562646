# SPDX-License-Identifier: MIT
"""Fixtures of the tests of Cluster and of Jupyter."""

import pytest

import spcomm


@pytest.fixture
def cluster():
    """Three nodes."""
    with spcomm.Cluster(3) as found:
        yield found
