# SPDX-License-Identifier: MIT
"""Runs test functions on the nodes of a real run.

A test with a parameter ``comm`` is not called in pytest's process: its body runs at the same time on every node of a
run that `spcomm run` started, with that node's communicator. Starting a run costs far more than most tests, so
one run (a pool) serves all tests of the same number of nodes and the same options. Each node of it
(node_program.py) holds a connection to pytest, is told file and name of the function, and answers how it went.

After each test the nodes meet and check that no message was left behind. A test that fails, or does not end before
the watchdog bites, costs the pool its life; the next test gets a new one.

The conftest.py of a folder that wants this imports the fixture and the hooks from here.
"""

import contextlib
import functools
import os
import pickle
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spcomm.bench import peers

SIZES = (1, 2, 3, 4, 8)
WATCHDOG_S = float(os.environ.get("SPCOMM_TEST_WATCHDOG", "60"))
GRACE_S = 3.0  # for the other nodes, once one has failed: they may wait for it for ever
TESTS = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Options:
    """The way in which a run is started: options of `spcomm run` and features that are switched off."""

    name: str
    arguments: tuple[str, ...] = ()
    disable: str = ""
    warm: bool = True
    part: bool = False  # `comm` is a part of the run: all nodes but the first, the last of them as its node 0

    @property
    def line(self):
        return [*self.arguments, *(["--preload", "numpy,pytest"] if self.warm else [])]


TINY = ("--slots", "1", "--ring", "4096", "--arena", "0")
OPTIONS = {
    options.name: options
    for options in [
        Options("default"),
        Options("tiny", TINY),  # everything is queued or goes in parts
        Options("least", ("--slots", "1", "--ring", "1024", "--arena", "0", "--fanin", "2")),
        Options("small", ("--slots", "2", "--ring", "4096", "--arena", "65536", "--fanin", "2")),
        Options(
            "narrow", (*TINY, "--queue-limit", "16384")
        ),  # and send has to wait; for tests written for it
        Options("bounded", ("--slots", "4", "--ring", "64K", "--arena", "0", "--queue-limit", "1M")),
        Options("bounded-arena", ("--slots", "4", "--ring", "64K", "--arena", "1M", "--queue-limit", "1M")),
        Options("exec", ("--start", "exec"), warm=False),
        Options("tree", ("--fanin", "2")),
        Options("part", part=True),
        Options("perturb", ("--perturb", "--seed", "5", "--rendezvous", "10000")),
        Options("no-memfd", ("--arena", "4194304"), "memfd"),
        Options("no-futex", (), "futex"),
        Options("no-pidfd", (), "pidfd"),
        Options("no-epoll", ("--boxes", "2"), "epoll"),
        Options("no-wipe_on_fork", (), "wipe_on_fork"),
        Options("nothing", ("--arena", "4194304"), "memfd,futex,pidfd,epoll,wipe_on_fork"),
        *(
            Options(
                f"{boxes}-boxes-{place}{suffix}",
                (*buffers, "--boxes", str(boxes), "--map", place, "--route", route),
            )
            for boxes, route in ((2, "direct"), (3, "relay"))
            for place in ("block", "cyclic")
            for suffix, buffers in (("", ()), ("-tiny", (*TINY[:-1], "1M")))  # room for the parts of a split
        ),
        Options("3-boxes-direct", ("--boxes", "3", "--map", "cyclic", "--route", "direct")),
    ]
}
# Options beside the default ones with which a test runs, and at which sizes.
VARIED = [
    ("tiny", 3),
    ("tiny", 8),
    ("small", 4),
    ("tree", 8),
    ("part", 3),
    ("part", 8),
    ("exec", 2),
    ("no-futex", 3),
    ("nothing", 2),
]


@dataclass(frozen=True)
class Config:
    """The identity of a pool: tests with equal ones share it."""

    options: str
    nodes: int

    @property
    def is_rare(self):
        sizes = [nodes for options, nodes in VARIED if options == self.options]
        return self.options != "default" and self.nodes not in (sizes or [3])

    def __str__(self):
        return f"{self.options}-{self.nodes}"


def command(*arguments):
    """The launcher, run by this interpreter, and in several boxes if the tests are to run so."""
    words = list(map(str, arguments))
    if words[:2] == ["run", "-n"] and not {"--map", "--boxes"} & {*words}:
        nodes = sum(
            int(words[at + 1])
            for at, word in enumerate(words[:-1])
            if (at == 1 or words[at - 1 : at + 1] == [":", "-n"]) and words[at + 1].isdecimal()
        )
        words[1:1] = box_options(nodes)
    return [sys.executable, "-m", "spcomm", *words]


def box_options(nodes):
    """The options of a run of so many nodes, by pytest's --boxes and --map (tests/conftest.py)."""
    pattern = given_map()
    if pattern:
        places = [pattern[rank % len(pattern)] for rank in range(nodes)]
        numbers = {box: number for number, box in enumerate(dict.fromkeys(places))}
        words = ["--map", ",".join(str(numbers[box]) for box in places)] if len(numbers) > 1 else []
    else:
        boxes = min(nodes, int(os.environ.get("SPCOMM_TEST_BOXES", "1")))
        words = ["--boxes", str(boxes)] if boxes > 1 else []
    mpi = os.environ.get("SPCOMM_TEST_MPI")
    return [*words, *mpi_options(mpi)] if words and mpi else words


def mpi_options(name):
    """The options of a run whose gateways are a program of `mpich` or `openmpi`."""
    found = peers.MPIS[name]()
    return ["--link", "mpi", "--mpi", shlex.join([*found.command, *found.crowded, "-n", "{n}"])]


@functools.cache
def missing_mpi(name):
    """Why there is no such MPI here, or ""."""
    return peers.checked(peers.MPIS[name]()).missing


def given_map():
    return [int(box) for box in os.environ.get("SPCOMM_TEST_MAP", "").split(",") if box]


def environment(**changes):
    """Where the spcomm under test can be imported from any working directory."""
    import spcomm

    root = str(Path(spcomm.__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    mpi = os.environ.get("SPCOMM_TEST_MPI")
    of_mpi = peers.MPIS[mpi]().environment if mpi else {}
    return {**os.environ, **of_mpi, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1", **changes}


@dataclass(eq=False)
class Node:
    """One node's connection, and what it told about itself."""

    link: socket.socket
    rank: int = -1
    process: int = 0
    buffer: bytearray = field(default_factory=bytearray)

    def tell(self, message):
        data = pickle.dumps(message)
        self.link.sendall(len(data).to_bytes(8, "little") + data)

    def hear(self):
        """The answer, or None if it is not complete yet; EOFError if the node is gone."""
        try:
            data = self.link.recv(1 << 16)
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError(f"node {self.rank} is gone")
        self.buffer += data
        if len(self.buffer) < 8 or len(self.buffer) - 8 < int.from_bytes(self.buffer[:8], "little"):
            return None
        message = pickle.loads(self.buffer[8:])
        self.buffer.clear()
        return message


class PoolBroken(Exception):
    """The run ended, or did not answer; the text says what is known."""


class Pool:
    """A run of `config.nodes` nodes that executes test functions until it is closed."""

    def __init__(self, config):
        self.config = config
        self.process = None
        self.nodes = []

    # ---- life

    def ensure(self):
        if self.process is None or self.process.poll() is not None:
            self.close()
            self.start()

    def start(self):
        options = OPTIONS[self.config.options]
        self.folder = tempfile.TemporaryDirectory(prefix="spcomm-pool-")
        self.output = open(Path(self.folder.name, "output"), "w+b")
        address = str(Path(self.folder.name, "socket"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(address)
            listener.listen(self.config.nodes)
            self.process = subprocess.Popen(
                command("run", "-n", self.config.nodes + options.part, *options.line,
                        TESTS / "api" / "node_program.py", address, *(["part"] if options.part else [])),
                stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT, cwd=self.folder.name,
                env=environment(**({"SPCOMM_DISABLE": options.disable} if options.disable else {})),
            )  # fmt: skip
            self.greet(listener)

    def greet(self, listener):
        """Waits until every node has connected and introduced itself."""
        deadline = time.monotonic() + WATCHDOG_S
        nodes = []
        while len(nodes) < self.config.nodes:
            ready, _, _ = select.select([listener], [], [], 0.2)
            if ready:
                nodes.append(Node(listener.accept()[0]))
            elif self.process.poll() is not None or time.monotonic() > deadline:
                self.nodes = nodes
                raise self.broken("the run did not start")
        self.nodes = nodes
        for node, (rank, process) in self.answers(deadline, {}).items():
            node.rank, node.process = rank, process
        self.nodes.sort(key=lambda node: node.rank)
        if [node.rank for node in nodes] != list(range(self.config.nodes)):
            raise self.broken(f"the nodes say that their ranks are {[node.rank for node in nodes]}")

    def close(self):
        """Ends the run; its nodes leave when their connection closes."""
        for node in self.nodes:
            node.link.close()
        self.nodes = []
        if self.process is not None:
            try:
                self.process.wait(WATCHDOG_S)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None
            self.output.close()
            self.folder.cleanup()

    def kill(self):
        """Ends a run that does not end by itself: as a user would first, then for good."""
        for number, patience in [(signal.SIGTERM, 10), (signal.SIGKILL, 60)]:
            self.process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
                return

    # ---- work

    def run(self, path, name, arguments):
        """Runs a function on all nodes. Returns what each answered: (status, text)."""
        for node in self.nodes:
            with contextlib.suppress(OSError):  # answers() will find out
                node.tell((str(path), name, arguments))
        answers = {}
        try:
            self.answers(time.monotonic() + WATCHDOG_S, answers)
        except PoolBroken as broken:
            return {**{node.rank: answer for node, answer in answers.items()}, "run": ("failed", str(broken))}
        return {node.rank: answer for node, answer in answers.items()}

    def answers(self, deadline, answers):
        """One answer of each node, filled in as they come. After a failure only a moment is left."""
        missing = {node.link: node for node in self.nodes}
        while missing:
            patience = deadline - time.monotonic()
            ready, _, _ = select.select(list(missing), [], [], max(0.0, patience))
            if not ready:
                ranks = sorted(node.rank for node in missing.values())
                raise self.broken(f"no answer from nodes {ranks}")
            for link in ready:
                try:
                    answer = missing[link].hear()
                except EOFError as error:
                    raise self.broken(str(error)) from None
                if answer is not None:
                    answers[missing.pop(link)] = answer
                    if answer[0] == "failed":
                        deadline = min(deadline, time.monotonic() + GRACE_S)
        return answers

    def broken(self, what):
        """Asks every node for the stacks of its threads, ends the run, and collects what it printed."""
        if self.process.poll() is None:
            for node in self.nodes:
                if node.process:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(node.process, signal.SIGUSR1)
            self.wait_for_stacks()
            self.kill()
        self.output.seek(0)
        text = self.output.read().decode(errors="replace")
        return PoolBroken(
            f"{what}; exit code {self.process.returncode}\n---- printed by the run\n{text[-20000:]}"
        )

    def wait_for_stacks(self):
        """Until every node has written its stack: node_program.py lets faulthandler write to a file of its own."""
        deadline = time.monotonic() + 5
        files = [Path(self.folder.name, f"stacks-{node.rank}") for node in self.nodes if node.rank >= 0]
        while time.monotonic() < deadline and not all(
            file.exists() and file.stat().st_size for file in files
        ):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.05)
        for file in files:
            if file.exists():
                self.output.write(f"---- {file.name}\n".encode() + file.read_bytes())
        self.output.flush()


POOLS: dict[Config, Pool] = {}


def verdict(answers):
    """Raises what pytest should see of the nodes' answers."""
    failed = {rank: text for rank, (status, text) in answers.items() if status == "failed"}
    if failed:
        pytest.fail("\n".join(f"==== {rank}\n{text}" for rank, text in failed.items()), pytrace=False)
    skipped = [text for status, text in answers.values() if status == "skipped"]
    if skipped:
        pytest.skip(skipped[0])


# ---- what conftest.py takes over


@pytest.fixture(scope="session")
def comm(request):
    """In pytest: the pool. In the test's body, on a node: its communicator."""
    pool = POOLS.setdefault(request.param, Pool(request.param))
    pool.ensure()
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def pool(request):
    """The pool itself, for tests that run in pytest and send functions to the nodes as they like."""
    pool = POOLS.setdefault(request.param, Pool(request.param))
    pool.ensure()
    yield pool
    pool.close()


def configurations(definition):
    """The configurations of a test: its markers `sizes(*n)` and `options(*names)` replace the usual ones."""
    usual = tuple(sorted({*SIZES, len(given_map()) or 1}))
    sizes = next((mark.args for mark in definition.iter_markers("sizes")), usual)
    options = next((mark.args for mark in definition.iter_markers("options")), None)
    if options is not None:
        return [Config(name, nodes) for name in options for nodes in sizes]
    varied = [Config(name, nodes) for name, nodes in VARIED if nodes in sizes]
    return [Config("default", nodes) for nodes in sizes] + varied


def pytest_generate_tests(metafunc):
    if "comm" in metafunc.fixturenames:
        metafunc.parametrize(
            "comm", configurations(metafunc.definition), indirect=True, ids=str, scope="session"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """A new pool in place of a broken one, before fixtures look at what is open."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    for config in parameters:
        if isinstance(config, Config) and config in POOLS and POOLS[config].process is not None:
            POOLS[config].ensure()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    pool = pyfuncitem.funcargs.get("comm")
    if not isinstance(pool, Pool):
        return None
    names = [name for name in pyfuncitem._fixtureinfo.argnames if name != "comm"]
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    answers = pool.run(pyfuncitem.path, pyfuncitem.function.__name__, arguments)
    if any(status == "failed" for status, _ in answers.values()) and pool.process.poll() is None:
        pool.kill()  # some nodes may still be inside the test
    verdict(answers)
    return True


def pytest_configure(config):
    config.addinivalue_line("markers", "sizes(*n): the numbers of nodes that a test with `comm` runs at")
    config.addinivalue_line(
        "markers", "options(*names): the sets of options that a test with `comm` runs with"
    )
