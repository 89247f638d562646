# SPDX-License-Identifier: MIT
"""The guard leaves nobody behind, also when it is told to end at the worst moment."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import spcomm.learn
from spcomm.learn import limits

PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
import limits
close = os.close

def ended(fd):
    close(fd)
    raise SystemExit(143)  # as by SIGTERM, just after the fork

limits._control(limits._SUBREAPER, 1)
os.close = ended
try:
    bounds = {"seconds": 60, "memory": 2**30, "processes": 8, "output": 1000}
    limits.LimitedCommand(bounds).run([sys.executable, "-c", "input()"], {}, "/")
except SystemExit as error:
    print(error.code, limits.descendants())
"""


def test_who_was_just_started_is_ended():
    folder = Path(spcomm.learn.__file__).parent
    command = [sys.executable, "-I", "-c", PROGRAM, str(folder)]
    done = subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("143 []\n", "")


HIDES = """
import os, socket
ends = socket.socketpair()
for _ in range(16):
    file = os.memfd_create("hidden")
    os.write(file, bytes(16 << 20))
    socket.send_fds(ends[0], [b"x"], [file])
    os.close(file)
print("hidden")
"""


def test_memory_on_its_way_between_sockets_counts():
    group = limits.ControlGroup()
    group.make(1 << 30)
    made = group.folder
    group.close()
    if made is None:
        pytest.skip("no control group with a memory limit can be made here")
    about = {
        "command": [sys.executable, "-c", HIDES],
        "folder": "/",
        "environment": dict(os.environ),
        "limits": {"seconds": 60, "memory": 64 << 20, "processes": 8, "output": 1000},
    }
    command = [sys.executable, "-IS", limits.__file__, json.dumps(about)]
    done = subprocess.Popen(command, stdout=subprocess.PIPE)
    told = json.loads(done.communicate()[0])
    assert (told["status"], told["stopped"], told["out"]) == (-9, "memory", "")
    assert not list(Path(made).parent.glob(f"spcomm-check-{done.pid}-*"))
