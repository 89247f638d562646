# SPDX-License-Identifier: MIT
"""config.py: which run a process belongs to, as its launcher told it."""

import os
import subprocess
import sys

import pytest

from nodepool import environment
from spcomm import config

PROGRAM = """
import os, sys
from spcomm import config
found = config.membership()
print(None if found is None else tuple(found)[:7])
print(config.VARIABLE in os.environ, sorted(name for name in ("numpy", "spcomm._core.comm") if name in sys.modules))
if found is not None:
    print(os.get_inheritable(found.fd), config.membership() == found)
    child = os.fork()
    if child == 0:
        os._exit(config.membership() is not None)
    print(os.waitpid(child, 0)[1])
"""


def told(text, **options):
    """A process's reading of this variable."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=environment(SPCOMM_NODE=text),
        **options,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.fixture
def segment(tmp_path):
    """Any file: only its identity counts here."""
    with open(tmp_path / "segment", "w+b") as file:
        status = os.fstat(file.fileno())
        yield file.fileno(), status.st_dev, status.st_ino


def test_an_executed_node(segment):
    fd, device, inode = segment
    lines = told(f"{fd}:2:5:{device}:{inode}:77:3", pass_fds=[fd])
    assert lines == [str((fd, 2, 5, device, inode, 77, 3)), "False []", "False True", "0"]


def test_another_file_means_alone(segment):
    fd, device, inode = segment
    for text in (f"{fd}:2:5:{device}:{inode + 1}:77:3", f"{fd}:2:5:{device + 1}:{inode}:77:3"):
        assert told(text, pass_fds=[fd]) == ["None", "False []"]


def test_a_closed_descriptor_means_alone(segment):
    fd, device, inode = segment
    assert told(f"{fd}:2:5:{device}:{inode}:77:3") == ["None", "False []"]


@pytest.mark.parametrize(
    "text", ["", "1", "a:b:c:d:e:f", "1:2:3:4:5:6:7:8", "-1:0:1:0:0:0:0", "0:5:5:0:0:0:0", "::::::"]
)
def test_nonsense_means_alone(text):
    assert told(text)[0] == "None"


def test_joining_by_a_call():
    """As the fork server's child does it."""
    code = (
        "from spcomm import config\n"
        "m = config.Membership(3, 1, 2, 4, 5, 6, 7)\n"
        "config.join(m)\nassert config.membership() is m\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert result.returncode == 0, result.stderr


def test_the_variables_for_an_executed_node():
    member = config.Membership(3, 1, 2, 4, 5, 6, 7)
    assert config.environment(member, 8)[config.VARIABLE] == "3:1:2:4:5:6:7"


def test_limits():
    limits = config.limits()
    assert {"slots", "ring", "arena", "queue_limit", "fanin"} <= set(limits)
    for name, (minimum, maximum, default) in limits.items():
        assert minimum < maximum, name
        assert default == 0 or minimum <= default <= maximum, name
