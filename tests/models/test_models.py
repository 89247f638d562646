# SPDX-License-Identifier: MIT
"""The Promela models of the protocols, checked with SPIN by the script beside this file."""

import subprocess
from pathlib import Path

import pytest


@pytest.mark.timeout(600)
def test_models(request):
    size = [] if request.config.option.everything else ["--quick"]
    result = subprocess.run([Path(__file__).parent / "run", *size], capture_output=True, text=True)
    print(result.stdout)
    if result.returncode == 77:
        pytest.skip(result.stdout.strip())
    assert result.returncode == 0, result.stdout + result.stderr
