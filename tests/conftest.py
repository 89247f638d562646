# SPDX-License-Identifier: MIT
"""For all tests: the sample of their cases (sampling.py), and the leak check (leaks.py)."""

import os
import signal
import sys

import hypothesis
import pytest

import leaks
import sampling

NUMBERS = pytest.StashKey()

# No test asserts on time, and a failing example is printed in a form that repeats it.
hypothesis.settings.register_profile("spcomm", deadline=None, print_blob=True)
hypothesis.settings.load_profile("spcomm")


def pytest_addoption(parser):
    group = parser.getgroup("spcomm")
    group.addoption(
        "--everything", action="store_true", help="run every case of every test, and the stress tests"
    )
    group.addoption(
        "--sample-seed", default=None, help="which sample of the cases to run (default: by commit)"
    )
    group.addoption(
        "--boxes", default=None, help="in how many boxes nodes run, where there are so many (api/nodepool.py)"
    )
    group.addoption("--map", default=None, help="the box of each node, as in 0,0,1,0,1; of more nodes, again")


def pytest_configure(config):
    leaks.adopt_orphans()
    # In a shell's background, and under nohup, they are ignored, and all runs would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for name, value in (("SPCOMM_TEST_BOXES", config.option.boxes), ("SPCOMM_TEST_MAP", config.option.map)):
        if value is not None:
            os.environ[name] = value  # api/nodepool.py
    if config.option.sample_seed is None:
        config.option.sample_seed = sampling.default_seed()


def pytest_report_header(config):
    if config.option.everything:
        return "spcomm: every case of every test"
    return f"spcomm: a sample of the cases, --sample-seed={config.option.sample_seed}"


def leave_out_near(config, items):
    near = [item for item in items if item.get_closest_marker("near")]
    if near and (config.option.boxes or config.option.map):
        config.hook.pytest_deselected(items=near)
        items[:] = [item for item in items if item not in set(near)]


@pytest.hookimpl(trylast=True)  # after -k and -m
def pytest_collection_modifyitems(config, items):
    leave_out_near(config, items)
    if sampling.takes_all(config):
        return
    stress = (
        [] if "stress" in config.option.markexpr else [i for i in items if i.get_closest_marker("stress")]
    )
    rest = [item for item in items if item not in set(stress)]
    kept, dropped, numbers = sampling.sample(
        rest, config.option.sample_seed, not sampling.names_files(config)
    )
    for item in stress:
        function = sampling.function_of(item)
        numbers[function] = (0, numbers.get(function, (0, 0))[1] + 1)
    config.stash[NUMBERS] = numbers
    if dropped or stress:
        config.hook.pytest_deselected(items=dropped + stress)
        items[:] = kept


def pytest_terminal_summary(terminalreporter, config):
    numbers = config.stash.get(NUMBERS, {})
    if not numbers:
        return
    out = sum(total - kept for kept, total in numbers.values())
    terminalreporter.section("sampled out")
    for file, (kept, total) in sampling.by_file(numbers).items():
        terminalreporter.write_line(f"{file}: {kept} of {total} cases run")
    seed = config.option.sample_seed
    terminalreporter.write_line(
        f"{out} cases were sampled out (--sample-seed={seed}); --everything runs them all."
    )


@pytest.fixture(autouse=True)
def nothing_is_left(request):
    """After each test: no new processes, open descriptors or shared memory."""
    if request.node.get_closest_marker("leaves") or not sys.platform.startswith("linux"):
        yield
        return
    before = leaks.snapshot()
    yield
    if complaints := leaks.leaked(before):
        pytest.fail("the test left something behind:\n  " + "\n  ".join(complaints), pytrace=False)
