# SPDX-License-Identifier: MIT
"""The catalogue of operations has a row for each method that communicates: what the tests draw from it covers all."""

import pytest

import spcomm
from operations import LOCAL, OPERATIONS


@pytest.mark.smoke
def test_every_method_is_in_the_catalogue():
    methods = {name for name in dir(spcomm.Comm) if not name.startswith("_")}
    named = {operation.method for operation in OPERATIONS.values()}
    assert methods == named | LOCAL and not named & LOCAL
