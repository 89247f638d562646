# SPDX-License-Identifier: MIT
"""A stranger gets the process id of a node that has ended: no signal of the run reaches it, or its process group."""

import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

NODES = """
    import os, signal, spcomm
    comm = spcomm.startup({startup})
    if comm.rank != 1:
        print(comm.recv(1), os.getpid(), flush=True)
        signal.pause()
    for rank in (0, 2):
        comm.send(os.getpid(), rank)
"""

# The kernel gives the next process of a pid namespace the number after `ns_last_pid`.
STRANGER = """
    import os, signal, subprocess, sys, time
    run = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = [[int(word) for word in run.stdout.readline().split()] for _ in range(2)]
    ended = found[0][0]
    while os.path.exists(f"/proc/{ended}"):
        time.sleep(0.001)
    stranger = 0
    while stranger != ended:
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(ended - 1))
        stranger = os.fork()
        if stranger == 0:
            os.setsid()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pause()
        if stranger != ended:
            os.kill(stranger, signal.SIGKILL)
            os.waitpid(stranger, 0)
    victim = run.pid if sys.argv[1] == "launcher" else max(process for _, process in found)
    os.kill(victim, signal.SIGINT)
    run.wait()
    os.kill(stranger, signal.SIGKILL)
    print(run.returncode, os.waitpid(stranger, 0)[1])
"""


def words(start):
    if start == "startup":
        return [sys.executable, "nodes.py"]
    return [sys.executable, "-m", "spcomm", "run", "--no-label", "--start", start, "-n", "3", "nodes.py"]


@pytest.mark.parametrize("case", ["exec launcher", "fork launcher", "fork node", "startup node"])
def test_a_stranger_is_spared(tmp_path, case):
    start, victim = case.split()
    namespace = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*namespace, "true"], capture_output=True).returncode
    ):
        pytest.skip("no process namespace can be made here")
    nodes = NODES.format(startup="local_nodes=3" if start == "startup" else "")
    (tmp_path / "nodes.py").write_text(textwrap.dedent(nodes))
    stranger = [sys.executable, "-c", textwrap.dedent(STRANGER), victim]
    found = subprocess.run(
        [*namespace, *stranger, *words(start)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert found.stdout in (f"130 {signal.SIGKILL}\n", f"-2 {signal.SIGKILL}\n"), found
