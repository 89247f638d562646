# SPDX-License-Identifier: MIT
"""Processes that srun has started, on one machine and on several, are one run."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import spcomm
from processes import Result

pytestmark = pytest.mark.slow

ROOT = str(Path(spcomm.__path__[0]).parent)
HEAD = """
import os, sys, time
import spcomm
comm = spcomm.startup()
"""
RING = """
comm.send(comm.rank, (comm.rank + 1) % comm.size)
print(comm.rank, comm.size, comm.recv(), comm.global_sum(comm.rank), flush=True)
"""


class Steps:
    """Runs scripts by srun."""

    def __init__(self, slurm, folder):
        self.slurm, self.folder = slurm, folder

    def script(self, text, name="program.py"):
        path = self.folder / name
        path.write_text(text)
        return path

    def __call__(self, machines, nodes, text, *arguments, before=("srun",)):
        words = [*before, f"-N{machines}", f"-n{nodes}", sys.executable, self.script(text), *arguments]
        env = {key: value for key, value in os.environ.items() if not key.startswith(("SPCOMM_", "PYTHON"))}
        done = self.slurm(*words, env={**env, "PYTHONPATH": ROOT}, cwd=self.folder, timeout=100)
        own = [line for line in done.stderr.splitlines() if not line.startswith(("srun: ", "slurmstepd: "))]
        return Result(done.returncode, done.stdout.encode(), "".join(f"{line}\n" for line in own).encode())


@pytest.fixture
def srun(slurm, tmp_path):
    return Steps(slurm, tmp_path)


def ring(nodes):
    return [f"{rank} {nodes} {(rank - 1) % nodes} {sum(range(nodes))}" for rank in range(nodes)]


SHAPES = [(1, 1), (1, 3), (2, 4), (3, 7), (4, 7)]


@pytest.mark.parametrize(("machines", "nodes"), SHAPES)
def test_nodes_talk(srun, machines, nodes):
    result = srun(machines, nodes, HEAD + RING + "assert comm.layout[-1].box == " + str(machines - 1))
    assert (result.code, sorted(result.lines), result.err) == (0, ring(nodes), ""), result


@pytest.mark.parametrize(("machines", "nodes"), SHAPES[1:])
def test_a_deadlock_is_reported_once(srun, machines, nodes):
    result = srun(machines, nodes, HEAD + "comm.recv()\n")
    assert result.code == 99 and result.err.count("DEADLOCK") == 1, result
    assert f"nodes 0-{nodes - 1}  recv(source=ANY, tag=ANY)  program.py:5" in result.err, result


@pytest.mark.parametrize(("machines", "nodes"), SHAPES[1:])
@pytest.mark.parametrize("failing", ["first", "last"])
def test_the_first_failure_comes_last(srun, machines, nodes, failing):
    rank = nodes - 1 if failing == "last" else 0
    text = f"if comm.rank == {rank}:\n    raise ValueError('here')\ncomm.recv()\n"
    result = srun(machines, nodes, HEAD + text)
    assert result.code == 1 and result.err.count("Traceback") == 1, result
    assert result.last.startswith(f"spcomm: node {rank} ended with an uncaught ValueError (exit code 1)"), (
        result
    )
    assert result.err.count("spcomm: ") == 1, result


@pytest.mark.parametrize(("machines", "nodes"), SHAPES[1:])
def test_the_exit_code_is_the_runs(srun, machines, nodes):
    result = srun(machines, nodes, HEAD + "if comm.rank == comm.size - 1:\n    sys.exit(7)\ncomm.recv()\n")
    assert result.code == 7 and "Traceback" not in result.err, result
    assert result.last.startswith(f"spcomm: node {nodes - 1} ended with exit code 7"), result


@pytest.mark.parametrize("rank", [0, 3])
def test_a_killed_node(srun, rank):
    text = f"if comm.rank == {rank}:\n    os.kill(os.getpid(), 9)\ncomm.recv()\n"
    result = srun(2, 4, HEAD + text)
    assert result.code == 137 and "Traceback" not in result.err, result
    assert result.err.count("spcomm: ") == 1 and f"node {rank} died" in result.err, result


@pytest.mark.parametrize("box", [0, 1])
def test_a_killed_box_process(srun, box):
    text = f"""
comm.barrier()
if comm.box == {box} and comm.local_rank == 0:
    own = os.getpid()
    for child in open(f"/proc/{{own}}/task/{{own}}/children").read().split():
        if open(f"/proc/{{child}}/comm").read() == "spcomm box\\n":
            os.kill(int(child), 9)
comm.recv()
"""
    result = srun(2, 4, HEAD + text)
    assert result.code == 125 and "Traceback" not in result.err, result
    assert "spcomm: the process that connects this box was killed; the nodes were stopped" in result.err, (
        result
    )


def test_machines_that_do_not_come_are_named(srun):
    text = "import os, sys, time\nif os.environ['SLURM_NODEID'] in sys.argv[1:]:\n    time.sleep(40)\n    sys.exit(0)\n"
    result = srun(3, 4, text + HEAD, 2)
    assert result.code == 1, result
    assert "box2 of the step's machines have not come: 3 of 4 nodes are there" in result.err, result
    result = srun(2, 2, text + HEAD, 0)
    assert "box0, the first machine of the step, has not called startup() within 30 s" in result.err, result


TAKEN = """
import os, subprocess, sys
from spcomm.launch.room.step import Step

step = Step.__new__(Step)
step.job = os.environ["SLURM_JOB_ID"] + ".0"
port = step._ports()[0]
listen = f"import socket; s = socket.create_server(('127.0.0.1', {port})); print(1, flush=True); input()"
user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
other = subprocess.Popen([*user, sys.executable, "-c", listen], stdin=-1, stdout=-1, cwd="/")
other.stdout.readline()
done = subprocess.run(["srun", *sys.argv[1:]])
other.communicate(b"\\n")
sys.exit(done.returncode)
"""


def test_another_users_process_at_the_port_is_passed_over(srun):
    taken = srun.script(TAKEN, "taken.py")
    result = srun(2, 4, HEAD + RING, before=("salloc", "-N2", "-n4", "-Q", sys.executable, taken))
    assert (result.code, sorted(result.lines), result.err) == (0, ring(4), ""), result


LANGUAGES = {
    "c": (
        "cc",
        """
#include <spcomm/spcomm.h>
#include <stdio.h>

int main(void) {
    spcomm_t *comm;
    int64_t sum;
    if (spcomm_startup(0, 0, 0, NULL, &comm) != 0) {
        fprintf(stderr, "%s\\n", spcomm_last_error());
        return 2;
    }
    if (spcomm_global_sum_int64(comm, spcomm_rank(comm), SPCOMM_FOREVER, &sum) != 0) {
        return 3;
    }
    printf("%d %d %d\\n", spcomm_rank(comm), spcomm_size(comm), (int)sum);
    return 0;
}
""",
    ),
    "cpp": (
        "c++",
        """
#include <cstdio>
#include <spcomm/speedescomm.hpp>

int main() {
    SpComm_StartUp(0, 0, 0, NULL);
    const int sum = SpComm_GlobalSum(SpComm_GetNodeId());
    std::printf("%d %d %d\\n", SpComm_GetNodeId(), SpComm_GetNumNodes(), sum);
}
""",
    ),
}


def compiled(folder, language):
    def told(option):
        command = [sys.executable, "-m", "spcomm", "config", option]
        return shlex.split(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    compiler, text = LANGUAGES[language]
    source, made = folder / f"program.{language}", folder / "program"
    source.write_text(text)
    subprocess.run([compiler, *told("--cflags"), source, "-o", made, *told("--libs")], check=True)
    return made


def path_of(has_command):
    """This PATH, with or without the command `spcomm`."""
    own = os.path.dirname(sys.executable)
    kept = [
        part for part in os.environ["PATH"].split(os.pathsep) if part and not os.path.exists(f"{part}/spcomm")
    ]
    return os.pathsep.join([own, *kept] if has_command else kept)


@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_in_c(slurm, tmp_path, language):
    made = compiled(tmp_path, language)
    env = {key: value for key, value in os.environ.items() if not key.startswith("SPCOMM_")}
    done = slurm("srun", "-N3", "-n7", made, env={**env, "PATH": path_of(True)}, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "", done
    assert sorted(done.stdout.splitlines()) == [f"{rank} 7 21" for rank in range(7)], done


def test_a_first_process_that_fails_tells_the_others(slurm, tmp_path):
    made = compiled(tmp_path, "c")
    env = {key: value for key, value in os.environ.items() if not key.startswith("SPCOMM_")}
    done = slurm("srun", "-N2", "-n6", made, env={**env, "PATH": path_of(False)}, cwd=tmp_path)
    why = "the box process cannot be started: there is no command spcomm in PATH"
    own = [line for line in done.stderr.splitlines() if line.startswith("spcomm")]
    assert done.returncode == 2 and len(own) == 6 and all(why in line for line in own), done
    others = f"the first process of srun on this machine cannot begin the run: {why}"
    assert sum(others in line for line in own) == 4, done


def test_a_run_within_a_step(srun):
    """A process of srun that is `spcomm run` has nodes of its own."""
    path = srun.script(HEAD + "print(comm.size)\n", "inner.py")
    text = (
        "import subprocess, sys\nsys.exit(subprocess.run([sys.executable, '-m', 'spcomm', 'run', '--alone', "
    )
    text += f"'--no-label', '-n', '2', {str(path)!r}]).returncode)\n"
    result = srun(1, 1, text)
    assert (result.code, result.lines, result.err) == (0, ["2", "2"], ""), result
