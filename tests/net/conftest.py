# SPDX-License-Identifier: MIT
"""Other hosts, or what stands for them."""

import pytest

from launching import Launch, leaving_nothing
from netting import Net
from rooming import Room

# Takes options and a host as ssh does, and runs the command here. A forwarded port is the same at both ends.
_STAND_IN = """#!/bin/sh
while [ $# -gt 2 ]; do
  case $1 in
    -R) echo "Allocated port ${2##*:} for remote forward to 127.0.0.1:${2##*:}" >&2; shift 2;;
    -*) shift 2;;
    *) break;;
  esac
done
echo "Welcome to $1: what a login shell prints is no concern of ours"
shift
exec sh -c "$*"
"""


@pytest.fixture
def launch(tmp_path):
    """Runs scripts by `spcomm run`."""
    yield from leaving_nothing(Launch(tmp_path))


@pytest.fixture
def ssh(tmp_path):
    """A stand-in for ssh, as the value of --ssh."""
    path = tmp_path / "ssh"
    path.write_text(_STAND_IN)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def net(tmp_path):
    """Runs of several boxes, through a network that may break."""
    yield from leaving_nothing(Net(tmp_path))


@pytest.fixture
def room(tmp_path):
    """A room on this machine: server, members, runs."""
    made = Room(tmp_path)
    yield from leaving_nothing(made)
    assert not made.left()
