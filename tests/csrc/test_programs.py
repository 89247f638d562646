# SPDX-License-Identifier: MIT
"""Run every C test program in five builds; csrc.mk compiles them, check.h says what a program is.

Without --everything there is only the plain build, and programs that repeat something do so a twelfth as often.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from making import make

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(path.stem for path in Path(__file__).parent.glob("test_*.c"))
VARIANTS = ["plain", "asan", "tsan", "endless", "posix"]
WATCHDOG = int(os.environ.get("CHECK_TIMEOUT", 120)) * int(os.environ.get("CHECK_SCALE", 1))
OPTIONS = {
    "CHECK_TIMEOUT": str(WATCHDOG),
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1",
}


@pytest.fixture(scope="session")
def supported():
    """The builds that this machine's compiler can make."""
    if not shutil.which("make") or not (shutil.which("cc") or os.environ.get("CC")):
        pytest.skip("the C tests need make and a C compiler")
    return make("tests/csrc/csrc.mk", "supported").stdout.split()


def pytest_generate_tests(metafunc):
    metafunc.parametrize(
        "variant",
        VARIANTS if metafunc.config.option.everything else VARIANTS[:1],
        indirect=True,
        scope="session",
    )


def is_of(item, variant):
    return item.path == Path(__file__) and item.callspec.params["variant"] == variant


@pytest.fixture(scope="session")
def variant(request, supported):
    """Compile the programs that run of one build; each then is build/csrc/<variant>/tests/csrc/<name>."""
    if request.param not in supported:
        pytest.skip(f"this compiler cannot make the build {request.param!r}")
    wanted = {item.callspec.params["program"] for item in request.session.items if is_of(item, request.param)}
    programs = [f"build/csrc/{request.param}/tests/csrc/{name}" for name in sorted(wanted)]
    made = make("tests/csrc/csrc.mk", *programs)
    if made.returncode != 0:
        pytest.fail(
            f"the build {request.param!r} does not compile:\n{made.stdout}{made.stderr}", pytrace=False
        )
    return request.param


def run(command, part):
    environment = {**OPTIONS, "CHECK_PART": part, **os.environ, "CHECK_TIMEOUT": OPTIONS["CHECK_TIMEOUT"]}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WATCHDOG + 60
    )


@pytest.mark.timeout(0)  # the program has a watchdog of its own
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(variant, program, pytestconfig):
    part = "1" if pytestconfig.option.everything else "12"
    command = [ROOT / "build" / "csrc" / variant / "tests" / "csrc" / program]
    result = run(command, part)
    if (
        "unexpected memory mapping" in result.stderr
    ):  # an older ThreadSanitizer on a kernel that randomises more
        result = run(["setarch", os.uname().machine, "--addr-no-randomize", *command], part)
    if result.returncode == 77:
        pytest.skip(result.stdout.strip())
    if result.returncode != 0:
        pytest.fail(
            f"{program} ({variant}): status {result.returncode}\n{result.stdout}{result.stderr}",
            pytrace=False,
        )
