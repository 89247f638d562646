# SPDX-License-Identifier: MIT
"""Fixtures of the tests of `spcomm learn`."""

import pytest

import made
from spcomm.learn import lessons
from spcomm.learn.catalogue import exercises


@pytest.fixture
def shelf(tmp_path):
    """Three exercises, as the package has them."""
    return made.make(tmp_path / "shelf")


@pytest.fixture
def own(shelf, tmp_path):
    """The folder of somebody who learns, just begun."""
    folder = tmp_path / "own"
    lessons.init(folder, exercises(shelf))
    return folder
