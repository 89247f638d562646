# SPDX-License-Identifier: MIT
"""Every file of the corpus, with and without small changes; a short run of each fuzzer where there is libFuzzer."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from making import make

ROOT = Path(__file__).resolve().parents[2]
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in Path(__file__).parent.glob("fuzz_*.c"))
MADE = ROOT / "build" / "fuzz"
CHANGES = 200 * int(os.environ.get("CHECK_SCALE", 1))  # copies of each file
RUNS = 5_000 * int(os.environ.get("CHECK_SCALE", 1))  # of a fuzzer


def corpus(target):
    return ROOT / "tests" / "fuzz" / "corpus" / target


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
    files = sorted(corpus(target).iterdir())
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
    check(run(MADE / f"fuzz_{target}", *command, found, corpus(target)), f"fuzzing {target}")


def test_a_wrong_target_is_noticed(compiled, tmp_path):
    """A file that is not there ends the runner with an error: a corpus that is not read cannot pass."""
    assert run(MADE / f"corpus_{TARGETS[0]}", tmp_path / "none").returncode != 0


def test_seeds_are_as_written(tmp_path):
    """The corpus has what seeds.py writes, of this version; other files were found by fuzzing."""
    version = re.search(r"#define SPC_FRAME_VERSION (\d+)", (ROOT / "csrc/net/wire/spc_frame.h").read_text())[
        1
    ]
    assert f"VERSION = {version} " in Path(__file__).with_name("seeds.py").read_text()
    shutil.copy(Path(__file__).with_name("seeds.py"), tmp_path)
    check(run(shutil.which("python3") or "python", tmp_path / "seeds.py"), "seeds.py")
    for seed in sorted((tmp_path / "corpus").rglob("*")):
        if seed.is_file():
            stored = ROOT / "tests" / "fuzz" / "corpus" / seed.relative_to(tmp_path / "corpus")
            assert stored.read_bytes() == seed.read_bytes(), f"{stored}: run tests/fuzz/seeds.py"
