# SPDX-License-Identifier: MIT
"""Processes that mpiexec, or another launcher, has started on this machine are one run."""

import os
import shlex
import subprocess
import sys
import threading

import pytest

from launchers import variables
from processes import read_lines

HEAD = """
import os, sys, time
import spcomm
comm = spcomm.startup()
"""
RING = """
comm.send(comm.rank, (comm.rank + 1) % comm.size)
print(comm.rank, comm.size, comm.recv(), comm.global_sum(comm.rank), spcomm.startup() is comm, flush=True)
"""


def ring(nodes):
    total = sum(range(nodes))
    return [f"{rank} {nodes} {(rank - 1) % nodes} {total} True" for rank in range(nodes)]


@pytest.mark.parametrize("nodes", [1, 3, 4, 7])
def test_nodes_talk(launched, nodes):
    result = launched.run(nodes, HEAD + RING)
    assert (result.codes, sorted(result.lines), result.err) == ({0}, ring(nodes), ""), result


@pytest.mark.parametrize(("nodes", "who"), [(1, "node 0"), (3, "nodes 0-2")])
def test_a_deadlock_is_reported_once(launched, nodes, who):
    result = launched.run(nodes, HEAD + "comm.recv()\n")
    assert result.codes == {99} and result.said("spcomm: DEADLOCK") == 1, result
    assert f"{who}  recv(source=ANY, tag=ANY)  program.py:5" in result.err, result


def test_messages_that_nobody_received(launched):
    result = launched.run(3, HEAD + "if comm.rank == 1:\n    comm.send('hello', 0)\n")
    assert result.codes == {0} and result.said("spcomm: warning: 1 message was never received") == 1, result
    assert "  1 message  from node 1  to node 0  tag 0\n" in result.err, result


@pytest.mark.parametrize("others", ["comm.recv()", "while True: pass", "comm.barrier()"])
def test_the_first_failure_comes_last(launched, others):
    text = f"if comm.rank == 1:\n    raise ValueError('here')\n{others}\n"
    result = launched.run(3, HEAD + text)
    assert result.codes == {1} and result.err.count("Traceback") == 1, result
    assert result.said("ValueError: here") == 1, result
    sentence = "spcomm: node 1 ended with an uncaught ValueError (exit code 1)"
    assert result.said(sentence) == result.said("spcomm: ") == 1, result


def test_the_exit_code_is_the_runs(launched):
    result = launched.run(4, HEAD + "if comm.rank == 2:\n    sys.exit(7)\ncomm.recv()\n")
    assert result.codes == {7} and result.said("spcomm: node 2 ended with exit code 7") == 1, result
    assert "Traceback" not in result.err, result


def test_a_killed_node(launched):
    result = launched.run(3, HEAD + "if comm.rank == 1:\n    os.kill(os.getpid(), 9)\ncomm.recv()\n")
    assert 0 not in result.codes and result.said("spcomm: node 1 died") <= 1, result
    assert launched.contender is not None or result.said("spcomm: node 1 died") == 1, result
    assert "Traceback" not in result.err, result


@pytest.mark.linux("reads /proc")
def test_a_killed_supervisor(launched):
    text = """
    import os, spcomm
    comm = spcomm.startup()
    comm.barrier()
    if comm.rank == 0:
        own = os.getpid()
        for child in open(f"/proc/{own}/task/{own}/children").read().split():
            assert open(f"/proc/{child}/comm").read() == "spcomm superv\\n"
            os.kill(int(child), 9)
    comm.recv()
    """
    result = launched.run(3, text)
    assert result.codes == {125}, result
    assert result.said("spcomm: the process that watches over the nodes is gone") == 1, result


@pytest.mark.parametrize("others", ["comm.recv()", "while True: pass"])
def test_a_killed_launcher(launched, others):
    """Open MPI's leaves its processes; one that computes has nobody else who would end it."""
    text = (
        f"comm.barrier()\nprint(comm.rank, flush=True)\nif comm.rank == 1:\n    while True: pass\n{others}\n"
    )
    launcher = launched.start(2, HEAD + text)
    read_lines(launcher, 2)
    launcher.kill()
    launcher.wait()
    launched.wait_until_nothing_is_left()


APART = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]  # as some containers do


@pytest.fixture
def apart(launched):
    """Runs a script as processes each of which has process-id numbers of its own."""
    if launched.launcher == "mpich":
        pytest.skip("the job of Hydra is known by the number of its process, which is not visible there")
    if subprocess.run([*APART, "true"], capture_output=True).returncode != 0:
        pytest.skip("namespaces cannot be made here")
    return lambda nodes, text: launched.execute(nodes, [*APART, *launched.command(launched.script(text))])


def test_processes_that_do_not_see_each_other(apart):
    text = """
    import numpy as np
    comm.send(np.arange(500_000), (comm.rank + 1) % comm.size)
    assert os.getpid() == 1 and comm.recv().sum() == np.arange(500_000).sum()
    """
    result = apart(3, HEAD + "".join(line.strip() + "\n" for line in text.splitlines()) + RING)
    assert (result.codes, sorted(result.lines), result.err) == ({0}, ring(3), ""), result


def test_one_of_them_dies(apart):
    """No signal that it sends itself reaches the first process of a namespace, so it leaves without a word."""
    text = "comm.barrier()\nif comm.rank == 1:\n    os._exit(9)\ncomm.recv(1)\n"
    result = apart(3, HEAD + text)
    assert 0 not in result.codes and result.said("spcomm: node 1 ") == 1, result
    assert "Traceback" not in result.err, result


def test_numbers_and_a_wish_are_taken_at_their_word(launched):
    result = launched.run(2, "import spcomm\nprint(spcomm.startup(local_nodes=1).size)\n")
    assert (result.codes, result.lines, result.err) == ({0}, ["1"] * 2, ""), result
    result = launched.run(2, HEAD + "print(comm.size)\n", env={"SPCOMM_ALONE": "1"})
    assert (result.codes, result.lines, result.err) == ({0}, ["1"] * 2, ""), result


def test_spcomm_run_in_each_process(launched):
    path = launched.script(HEAD + "print(comm.size)\n")
    result = launched.execute(2, launched.command("-m", "spcomm", "run", "--no-label", "-n", 3, path))
    assert (result.codes, result.lines, result.err) == ({0}, ["3"] * 6, ""), result


def test_programs_that_a_node_starts_are_alone(launched):
    text = """
    import subprocess
    command = [sys.executable, "-c", "import spcomm; print(spcomm.startup().size)"]
    print(comm.size, subprocess.run(command, capture_output=True, text=True).stdout)
    """
    result = launched.run(2, HEAD + "".join(line.strip() + "\n" for line in text.splitlines()))
    assert (result.codes, result.out.split(), result.err) == ({0}, ["2", "1"] * 2, ""), result


def test_numbers_that_contradict_the_run(launched):
    result = launched.run(2, HEAD + "spcomm.startup(local_nodes=3)\n")
    assert "this run has 2 nodes, started by mpiexec; give 2 or 0" in result.err, result


PROGRAM = r"""
#include <spcomm/spcomm.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    spcomm_t *comm;
    int64_t sum;
    (void)words;
    if (spcomm_startup(0, 0, 0, NULL, &comm) != 0) {
        fprintf(stderr, "%s\n", spcomm_last_error());
        return 2;
    }
    if (spcomm_global_sum_int64(comm, spcomm_rank(comm), SPCOMM_FOREVER, &sum) != 0) {
        return 3;
    }
    printf("%d %d %lld\n", spcomm_rank(comm), spcomm_size(comm), (long long)sum);
    return count > 1 && spcomm_rank(comm) == 1 ? 5 : 0;
}
"""


def test_programs_in_c(launched):
    def told(option):
        return shlex.split(launched.spcomm("config", option).out)

    source, made = launched.folder / "program.c", launched.folder / "program"
    source.write_text(PROGRAM)
    compiler = shlex.split(os.environ.get("CC", "cc"))
    assert launched.call(*compiler, *told("--cflags"), source, "-o", made, *told("--libs")).code == 0
    result = launched.execute(3, [made])
    assert (result.codes, sorted(result.lines), result.err) == ({0}, ["0 3 3", "1 3 3", "2 3 3"], ""), result
    result = launched.execute(3, [made, "fail"])
    assert result.codes == {5} and result.said("spcomm: node 1 ended with exit code 5") == 1, result


def test_mpi_in_the_same_program(launched):
    if launched.contender is None:
        pytest.skip("the variables alone are no MPI")
    pytest.importorskip("mpi4py")
    text = """
    world = MPI.COMM_WORLD
    print(world.rank == comm.rank, world.size == comm.size, world.allreduce(1), comm.global_sum(1))
    """
    text = HEAD + "from mpi4py import MPI\n" + "".join(line.strip() + "\n" for line in text.splitlines())
    result = launched.run(3, text)
    assert (result.codes, result.lines) == ({0}, ["True True 3 3"] * 3), result
    result = launched.run(
        3, "from mpi4py import MPI\nprint(MPI.COMM_WORLD.size, MPI.Get_library_version())\n"
    )
    assert result.codes == {0} and "spcomm" not in result.out, result
    assert sum(line.startswith("3 ") for line in result.lines) == 3, result


@pytest.mark.slow
def test_processes_that_do_not_come_are_named(launched_by_variables):
    launched = launched_by_variables
    text = "import os, sys\nif os.environ['OMPI_COMM_WORLD_RANK'] in sys.argv[1:]:\n    sys.exit(0)\n" + HEAD
    result = launched.run(4, text + "comm.recv()\n", 1, 3)
    assert result.codes == {0, 125} and "Traceback" not in result.err, result
    assert result.err == (
        "spcomm: nodes 1, 3 have not called startup() within 30 s; "
        "every process that mpiexec starts has to (exit code 125)\n"
    ), result
    result = launched.run(2, text, 0)
    assert result.codes == {0, 1} and "forking.py" not in result.err, result
    assert result.last == (
        "spcomm.WaitTimeoutError: startup(): node 1 of 2 waits in vain: the first process of mpiexec on this machine "
        "has not called startup() within 30 s; every process that mpiexec starts has to call it"
    ), result


def nobody(script):
    """A process of another user that runs this, and prints a line when it is ready."""
    if os.getuid() != 0:
        pytest.skip("needs root, to be another user")
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", script]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
    assert process.stdout.readline() == b"ready\n"
    return process


def test_another_users_process_at_the_socket_is_passed_over(launched_by_variables, monkeypatch):
    launched, job = launched_by_variables, f"taken-{os.getpid()}"
    name = f"\\0spcomm-0-{os.uname().nodename[:16]}-{job}.0"
    script = f"import socket; s = socket.socket(socket.AF_UNIX); s.bind('{name}'); s.listen()"
    other = nobody(script + "; print('ready', flush=True); input()")
    monkeypatch.setattr("launchers.variables", lambda rank, nodes, _job: variables(rank, nodes, job))
    result = launched.run(3, HEAD + RING)
    other.communicate(b"\n")
    assert (result.codes, sorted(result.lines), result.err) == ({0}, ring(3), ""), result


@pytest.mark.linux("reads /proc")
def test_another_users_process_gets_nothing(launched_by_variables, monkeypatch):
    """It connects while the last node is missing."""
    launched, job = launched_by_variables, f"visited-{os.getpid()}"
    name = f"\\0spcomm-0-{os.uname().nodename[:16]}-{job}.0"
    script = f"""
import os, socket, struct, sys
print("ready", flush=True)
input()
with socket.socket(socket.AF_UNIX) as s:
    s.connect("{name}")
    try:
        s.sendall(struct.pack("<IIQii", 1, 2, 0, 0, 0))
        print(s.recv(4), flush=True)
    except ConnectionError:
        print(b"", flush=True)
"""
    other = nobody(script)
    monkeypatch.setattr("launchers.variables", lambda rank, nodes, _job: variables(rank, nodes, job))
    text = """
    import os, sys, time
    if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
        while not os.path.exists("go"):
            time.sleep(0.01)
    """
    text = "".join(line[4:] + "\n" for line in text.splitlines())
    visit = "if comm.rank == 0:\n    print('listening', flush=True)\n"
    results = []
    thread = threading.Thread(target=lambda: results.append(launched.run(2, text + HEAD + visit + RING)))
    thread.start()
    while f"spcomm-0-{os.uname().nodename[:16]}-{job}" not in open("/proc/net/unix").read():
        pass
    said, _ = other.communicate(b"\n")
    (launched.folder / "go").touch()
    thread.join()
    assert said == b"b''\n", said
    assert results[0].codes == {0} and sorted(results[0].lines) == [*ring(2), "listening"], results
