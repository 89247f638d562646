# SPDX-License-Identifier: MIT
"""The builds of the C tests are compiled while other tests run, which mostly wait for each other."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPILER = pytest.StashKey()


def make(*targets, jobs=None):
    """The command that makes these targets of csrc.mk."""
    return ["make", "-s", f"-j{jobs or os.cpu_count()}", "-f", "tests/csrc/csrc.mk", *targets]


def builds(session):
    found = [getattr(item, "callspec", None) for item in session.items]
    return list(dict.fromkeys(spec.params["variant"] for spec in found if spec and "variant" in spec.params))


def pytest_collection_finish(session):
    """Only if there is something else to do meanwhile; it takes what time that leaves."""
    wanted = builds(session)
    others = any(Path(item.path).parent != Path(__file__).parent for item in session.items)
    if (
        wanted
        and others
        and shutil.which("make")
        and shutil.which("nice")
        and not session.config.option.collectonly
    ):
        command = ["nice", "-n", "10", *make("--keep-going", *wanted, jobs=1)]
        # What it says, the one that waits for a build says again.
        session.config.stash[COMPILER] = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def stop(config):
    compiler = config.stash.get(COMPILER, None)
    if compiler is not None and compiler.poll() is None:
        compiler.terminate()
        compiler.wait()


def pytest_sessionfinish(session):
    stop(session.config)


@pytest.fixture(scope="session")
def compiled(request):
    """Nobody else compiles any more: what is missing comes now, with all cores."""
    stop(request.config)
