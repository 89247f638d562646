# SPDX-License-Identifier: MIT
"""A Slurm of pretend machines for all tests of a worker."""

import pytest

from slurming import Slurm


@pytest.fixture(scope="session")
def slurm():
    """Four machines with 8 processors each. Skips where a Slurm cannot be had; one that does not start is a failure."""
    made = Slurm(4, "--cpus", 8)
    yield made
    made.close()
