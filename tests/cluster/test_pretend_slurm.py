# SPDX-License-Identifier: MIT
"""scripts/pretend-slurm: a Slurm whose machines are namespaces, of which nothing is left."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import slurming
from slurming import CANNOT, SCRIPT, Slurm, pretend, processes

pytestmark = pytest.mark.slow


def mounts():
    return Path("/proc/self/mounts").read_text()


@pytest.fixture
def folder(tmp_path):
    """The folder of a Slurm, of which nothing may be left when the test ends."""
    before = mounts()
    folder = tmp_path / "s"
    yield folder
    left = processes(folder)
    assert pretend("down", "--in", folder).returncode == 0
    assert not left and not folder.exists() and mounts() == before


def stand_in(folder, program, text):
    """An environment in which a program is this script."""
    folder = folder / "bin"
    folder.mkdir()
    (folder / program).write_text(f"#!/bin/sh\n{text}\n")
    (folder / program).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_job_runs_on_all_machines_that_it_asks_for(slurm):
    done = slurm(
        "srun",
        "-wbox[0-2]",
        "--ntasks-per-node=2",
        "sh",
        "-c",
        "echo $(hostname) $(getent hosts box2 | xargs)",
    )
    assert done.returncode == 0, done
    assert sorted(done.stdout.splitlines()) == [f"box{at // 2} 127.0.0.1 box2" for at in range(6)], done
    assert slurm("hostname").stdout.strip() not in ("box0", "box1", "box2")


def test_a_batch_job_has_the_machines_own_processes(slurm, tmp_path):
    """A machine sees no process of another, and none of this one."""
    text = "#!/bin/sh\nhostname\ncat /proc/*/cmdline | tr '\\0' ' '\nmv out end\n"
    (tmp_path / "job").write_text(text)
    done = slurm("sbatch", "-N1", "-w", "box3", "-o", "out", "job", cwd=tmp_path)
    assert done.returncode == 0, done
    while not (tmp_path / "end").exists():
        time.sleep(0.01)
    name, shown = (tmp_path / "end").read_text().splitlines()
    assert name == "box3" and "-N box3" in shown and "-N box2" not in shown, shown


def test_several_run_side_by_side(slurm):
    one = Slurm(1, "--cpus", 3)
    try:
        assert one("sinfo", "-h", "-o", "%D %c").stdout.split("\n")[0] == "1 3"
        assert slurm("sinfo", "-h", "-o", "%D %c").stdout.split("\n")[0] == "4 8"
    finally:
        one.close()
    assert slurm("srun", "-N4", "true").returncode == 0


# A job that ignores signals, and leaves its process group.
STUBBORN = """#!/bin/sh
srun sh -c 'trap "" TERM INT HUP; setsid sh -c "trap : TERM; : {0}/s; sleep 600 & wait" & touch {0}/$(hostname); wait'
"""


def test_nothing_is_left_of_it_and_its_jobs(folder, slurm):
    made = pretend("up", 2, "--in", folder)
    assert made.returncode == 0, made
    (folder.parent / "job").write_text(STUBBORN.format(folder.parent))
    words = ["sbatch", "-N2", "-o", os.devnull, folder.parent / "job"]
    subprocess.run(words, env={**os.environ, **slurming.variables(made.stdout)}, check=True)
    while not ((folder.parent / "box0").exists() and (folder.parent / "box1").exists()):
        time.sleep(0.01)
    assert len(processes(folder)) > 10
    assert pretend("down", "--in", folder).returncode == 0
    assert not processes(folder)
    assert pretend("down", "--in", folder).returncode == 0  # once more is no error


@pytest.mark.parametrize("program", ["munged", "slurmctld", "slurmd"])
def test_one_that_does_not_start_is_a_failure(folder, slurm, program):
    env = stand_in(folder.parent, program, f"echo {program} is broken; exit 3")
    made = pretend("up", 2, "--in", folder, env=env)
    assert made.returncode == 1 and "does not start" in made.stderr, made
    assert f"{program} is broken" in made.stderr and not made.stdout, made


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_when_it_is_interrupted(folder, slurm, number):
    env = stand_in(folder.parent, "slurmd", f"echo begins >{folder.parent}/begun; exec sleep 600")
    with subprocess.Popen([SCRIPT, "up", "2", "--in", folder], env=env, stderr=subprocess.PIPE) as script:
        while not (folder.parent / "begun").exists():
            time.sleep(0.01)
        script.send_signal(number)
        script.communicate()
    assert script.returncode == 1


def test_down_ends_what_a_killed_up_has_begun(folder, slurm):
    env = stand_in(folder.parent, "slurmd", f"echo begins >{folder.parent}/begun; exec sleep 600")
    words = [SCRIPT, "up", "2", "--in", folder]
    with subprocess.Popen(words, env=env, start_new_session=True) as script:
        while not (folder.parent / "begun").exists():
            time.sleep(0.01)
        os.killpg(script.pid, signal.SIGKILL)
    assert processes(folder)
    assert pretend("down", "--in", folder).returncode == 0


def test_a_number_that_belongs_to_another_process_is_left_alone(folder):
    folder.mkdir()
    with subprocess.Popen(["sleep", "600"]) as other:
        (folder / "pid").write_text(f"{other.pid}\n")
        assert pretend("down", "--in", folder).returncode == 0
        assert other.poll() is None
        other.kill()


def test_a_folder_that_is_there_is_left_alone(folder, slurm):
    folder.mkdir()
    (folder / "mine").touch()
    made = pretend("up", 2, "--in", folder)
    assert made.returncode == 1 and "is there already" in made.stderr, made
    assert (folder / "mine").exists()


def test_what_cannot_be_had_is_told_apart(tmp_path):
    """One sentence, and an exit status of its own, by which tests are skipped."""
    bash = "/bin/bash"
    made = subprocess.run(
        [bash, SCRIPT, "up", "2", "--in", tmp_path / "s"],
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path)},
    )
    assert made.returncode == CANNOT and made.stderr.count("\n") == 1, made
    assert "needs slurmctld slurmd scontrol srun sbatch munged" in made.stderr, made
    assert "apt install slurm-wlm munge" in made.stderr and not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "words", ["", "up", "up 0", "up x", "up 2 --cpus", "up 2 --cpus x", "down 3", "sideways"]
)
def test_wrong_arguments(words):
    made = pretend(*words.split())
    assert made.returncode == 2 and "usage: pretend-slurm up N" in made.stderr, made
