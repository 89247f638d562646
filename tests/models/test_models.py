# SPDX-License-Identifier: MIT
"""The models of the protocols, each checked with SPIN or Relacy by the script beside this file."""

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODELS = sorted(path.name for path in HERE.glob("*.*") if path.suffix in (".pml", ".cpp"))


@pytest.mark.stress
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("model", MODELS)
def test_model(model):
    result = subprocess.run([HERE / "run", HERE / model], capture_output=True, text=True)
    print(result.stdout)
    if result.returncode == 77:
        pytest.skip(result.stdout.strip())
    assert result.returncode == 0, result.stdout + result.stderr
