# SPDX-License-Identifier: MIT
"""Every file of the corpus, with and without small changes; a short run of each fuzzer where there is libFuzzer."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from making import make

ROOT = Path(__file__).resolve().parents[2]
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in Path(__file__).parent.glob("fuzz_*.c"))
MADE = ROOT / "build" / "fuzz"
CORPUS = MADE / "corpus"
CHANGES = 200 * int(os.environ.get("CHECK_SCALE", 1))  # copies of each file
RUNS = 5_000 * int(os.environ.get("CHECK_SCALE", 1))  # of a fuzzer


def run(*command, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run(
        [str(part) for part in command], cwd=ROOT, env=environment, capture_output=True, text=True
    )


def check(result, what):
    if result.returncode != 0:
        pytest.fail(
            f"{what}: status {result.returncode}\n{result.stdout}{result.stderr[-5000:]}", pytrace=False
        )


@pytest.fixture(scope="session")
def compiled():
    if not shutil.which("make") or not (shutil.which("cc") or os.environ.get("CC")):
        pytest.skip("the fuzz targets need make and a C compiler")
    check(make("tests/fuzz/fuzz.mk", "corpus"), "compiling the targets")


@pytest.fixture(scope="session")
def fuzzers():
    if not shutil.which("make") or not shutil.which("clang"):
        pytest.skip("fuzzing needs make and clang (Debian: apt-get install clang libclang-rt-14-dev)")
    probe = "int LLVMFuzzerTestOneInput(const char *data, unsigned long size) { return !data && !size; }"
    linked = subprocess.run(
        ["clang", "-fsanitize=fuzzer,address,undefined", "-x", "c", "-", "-o", os.devnull],
        input=probe,
        capture_output=True,
        text=True,
    )
    if linked.returncode != 0:
        pytest.skip("this clang has no libFuzzer (Debian: apt-get install libclang-rt-14-dev)")
    check(make("tests/fuzz/fuzz.mk", "fuzzers"), "compiling the fuzzers")


@pytest.mark.parametrize("target", TARGETS)
def test_corpus(compiled, target):
    files = sorted((CORPUS / target).iterdir())
    assert len(files) > 10
    check(run(MADE / f"corpus_{target}", *files, FUZZ_CHANGES=str(CHANGES)), f"the corpus of {target}")


@pytest.mark.slow
@pytest.mark.timeout(0)  # a number of runs, not a time; an input that takes 10 s is an error
@pytest.mark.parametrize("target", TARGETS)
def test_fuzz(fuzzers, target, tmp_path):
    """The new inputs of each run are drawn from a new seed, which libFuzzer prints."""
    found = tmp_path / "found"
    found.mkdir()
    command = [f"-runs={RUNS}", "-max_len=2000", "-timeout=10", f"-artifact_prefix={tmp_path}/wrong-"]
    check(run(MADE / f"fuzz_{target}", *command, found, CORPUS / target), f"fuzzing {target}")


def test_a_wrong_target_is_noticed(compiled, tmp_path):
    """A file that is not there ends the runner with an error: a corpus that is not read cannot pass."""
    assert run(MADE / f"corpus_{TARGETS[0]}", tmp_path / "none").returncode != 0


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("*/*")}


def test_seeds_are_as_written(compiled, tmp_path):
    """The corpus has what seeds.py writes, of this version."""
    version = re.search(r"#define SPC_FRAME_VERSION (\d+)", (ROOT / "csrc/net/wire/spc_frame.h").read_text())[
        1
    ]
    script = Path(__file__).with_name("seeds.py")
    assert f"VERSION = {version} " in script.read_text()
    check(run(sys.executable, script, tmp_path / "corpus"), "seeds.py")
    assert contents(CORPUS) == contents(tmp_path / "corpus"), "after a merge: remove build/fuzz/corpus"
