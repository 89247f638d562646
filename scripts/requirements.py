# SPDX-License-Identifier: MIT
"""Print what pyproject.toml asks for: ``requirements.py build`` to compile spcomm, ``... test`` to test it."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
if sys.argv[1:] == ["build"]:
    wanted = project["build-system"]["requires"] + project["project"]["dependencies"]
else:
    wanted = project["project"]["optional-dependencies"][sys.argv[1]]
print(*wanted)
