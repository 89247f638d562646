# SPDX-License-Identifier: MIT
"""Tests with a parameter `comm` run on the nodes of a real run: see nodepool.py."""

from nodepool import (  # noqa: F401
    comm,
    pool,
    pytest_configure,
    pytest_generate_tests,
    pytest_pyfunc_call,
    pytest_runtest_setup,
)
