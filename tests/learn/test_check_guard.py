# SPDX-License-Identifier: MIT
"""The guard leaves nobody behind, also when it is told to end at the worst moment."""

import subprocess
import sys
from pathlib import Path

import spcomm.learn

PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
import guard
close = os.close

def ended(fd):
    close(fd)
    raise SystemExit(143)  # as by SIGTERM, just after the fork

guard._control(guard._SUBREAPER, 1)
os.close = ended
try:
    limits = {"seconds": 60, "memory": 2**30, "processes": 8, "output": 1000}
    guard.Guard(limits).run([sys.executable, "-c", "input()"], {}, "/")
except SystemExit as error:
    print(error.code, guard.descendants())
"""


def test_who_was_just_started_is_ended():
    folder = Path(spcomm.learn.__file__).parent
    command = [sys.executable, "-I", "-c", PROGRAM, str(folder)]
    done = subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("143 []\n", "")
