# SPDX-License-Identifier: MIT
"""A Slurm of pretend machines for all tests of a worker."""

import pytest

from launching import leaving_nothing
from slurming import Cluster, Slurm


@pytest.fixture(scope="session")
def slurm():
    """Four machines with 8 processors each. Skips where a Slurm cannot be had; one that does not start is a failure."""
    made = Slurm(4, "--cpus", 8)
    yield made
    made.close()


@pytest.fixture
def cluster(tmp_path, slurm):
    """Runs scripts by `spcomm run` in jobs."""
    yield from leaving_nothing(Cluster(tmp_path, slurm))
