# SPDX-License-Identifier: MIT
"""`spcomm run` in jobs of Slurm on pretend machines: where nodes run, and what ends them."""

import os
import signal

import pytest

import leaks

pytestmark = pytest.mark.slow

PLACES = """
    import os, socket, sys, spcomm
    comm = spcomm.startup()
    total = comm.allreduce(comm.rank)
    print(comm.rank, comm.box, socket.gethostname(), total, len(os.sched_getaffinity(0)), *sys.argv[1:], flush=True)
"""
# Each node leaves a file with its number in the machine's own processes.
WAITS = """
    import os, signal, spcomm
    comm = spcomm.startup()
    comm.barrier()
    open(f"node{comm.rank}", "w").write(str(os.getpid()))
    signal.pause()
"""
FILES = [f"node{rank}" for rank in range(4)]


def places(result):
    """The machine of each node, by rank."""
    rows = sorted((line.split() for line in result.lines), key=lambda row: int(row[0]))
    assert [int(row[0]) for row in rows] == list(range(len(rows))), result
    assert {int(row[3]) for row in rows} == {sum(range(len(rows)))}, result
    assert len({row[1] for row in rows}) == len({row[2] for row in rows}), result
    return [row[2] for row in rows]


def names(machines, each):
    return [f"box{box}" for box in range(machines) for _node in range(each)]


# ---- where


@pytest.mark.parametrize("start", ["fork", "exec"])
@pytest.mark.parametrize("machines", [1, 2, 4])
def test_a_run_has_all_machines_of_its_job(cluster, machines, start):
    options = ("-n", 2) if machines == 1 else ()  # there the tasks do not count
    result = cluster("--start", start, *options, cluster.script(PLACES), machines=machines)
    assert result.code == 0 and result.err == "", result
    assert places(result) == names(machines, 2)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-n", 3], ["box0", "box0", "box1"]),
        (["-n", 2], ["box0", "box0"]),
        (["--map", "cyclic"], ["box0", "box1", "box0", "box1"]),
        (["--host", "box1:3"], ["box1"] * 3),
        (["--alone", "-n", 3], ["box0"] * 3),
        (["--route", "relay"], ["box0", "box0", "box1", "box1"]),
    ],
)
def test_options_choose_among_the_machines(cluster, options, expected):
    result = cluster(*options, cluster.script(PLACES))
    assert result.code == 0 and result.err == "", result
    assert places(result) == expected


def test_several_programs_fill_the_machines_in_turn(cluster):
    script = cluster.script(PLACES)
    result = cluster("-n", 1, script, "a", ":", "-n", 3, script, "b")
    assert result.code == 0 and places(result) == ["box0", "box0", "box1", "box1"], result
    assert sorted(line.split()[-1] for line in result.lines) == ["a", "b", "b", "b"]


@pytest.mark.parametrize(
    "given",
    [
        ["--exclusive"],
        ["--exclusive", "--mem-per-cpu=100"],
        ["--exclusive", "--mem=1000"],
        ["--cpus-per-task=4"],
        ["--exclusive", "--distribution=cyclic"],
        ["--exclusive", "--hint=nomultithread"],
        ["--exclusive", "--export=ALL,SLURM_LABELIO=1,SLURM_UNBUFFEREDIO=0,SLURM_CPU_BIND=cores"],
        ["--exclusive", "--ntasks-per-core=1"],
    ],
    ids=" ".join,
)
def test_a_box_has_all_processors_that_the_job_has(cluster, given):
    """Whatever the job says about its own steps, which srun reads, too."""
    result = cluster(cluster.script(PLACES), given=given)
    assert result.code == 0 and result.err == "", result
    assert places(result) == names(2, 2)
    assert {int(line.split()[4]) for line in result.lines} == {len(os.sched_getaffinity(0))}, result


def test_a_box_has_all_memory_that_the_job_has(cluster):
    """Its step has it, too, although the job's own steps would have a part."""
    text = """
        import os, subprocess
        step = os.environ["SLURM_JOB_ID"] + "." + os.environ["SLURM_STEP_ID"]
        print(subprocess.check_output(["scontrol", "show", "step", step], text=True))
    """
    result = cluster("--host", "box1:1", cluster.script(text), given=["--mem=777"])
    assert result.code == 0 and "mem=777M" in result.out, result


def test_a_program_that_a_node_runs_stays_on_its_machine(cluster):
    inner = cluster.script("import socket; print(socket.gethostname())", "inner.py")
    text = f"""
        import subprocess, sys, spcomm
        comm = spcomm.startup()
        if comm.rank == 3:
            subprocess.run([sys.executable, "-m", "spcomm", "run", "-n", "2", {str(inner)!r}], check=True)
    """
    result = cluster(cluster.script(text))
    assert result.code == 0 and result.lines == ["box1", "box1"], result


def test_a_shell_on_another_machine(cluster, slurm):
    """All boxes are elsewhere, as with salloc on a login node, and the names mean nothing there."""
    words = cluster.command("--listen", "127.0.0.1", cluster.script(PLACES))
    done = slurm("salloc", "-Q", "-wbox[0-1]", "--ntasks-per-node=2", *words, env=cluster.environment())
    assert done.returncode == 0, done
    assert sorted(line.split()[2] for line in done.stdout.splitlines()) == names(2, 2), done
    words = cluster.command(cluster.script(PLACES))
    done = slurm("salloc", "-Q", "-wbox0", "-n2", *words, env=cluster.environment())
    assert done.returncode == 0, done
    assert sorted(line.split()[2] for line in done.stdout.splitlines()) == names(1, 2), done
    done = slurm("salloc", "-Q", "-wbox[0-1]", "--ntasks-per-node=2", *words, env=cluster.environment())
    assert done.returncode == 125 and "give it: --listen ADDRESS" in done.stderr, done


def test_runs_that_srun_multiplies_are_refused(cluster, slurm):
    words = cluster.command(cluster.script(PLACES))
    done = slurm("srun", "-N2", "-n2", *words, env=cluster.environment())
    assert done.returncode == 125 and "srun has started this 2 times" in done.stderr, done
    done = slurm("salloc", "-Q", "-N2", "-n4", "srun", "-n1", "-N1", *words, env=cluster.environment())
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 4, done


def test_a_command_that_is_not_there(cluster):
    result = cluster("--reach", "/nix/srun {host}", cluster.script(PLACES))
    assert result.code == 125, result
    assert "host box1: /nix/srun cannot be started (No such file or directory)" in result.last, result


# ---- what ends a run: as on one machine

FAILS = """
    import os, signal, sys, spcomm
    comm = spcomm.startup()
    comm.barrier()
    if comm.rank == comm.size - 1:
        {}
    comm.barrier()
"""


@pytest.mark.parametrize("machines", [1, 2, 4])
@pytest.mark.parametrize(
    ("what", "code", "sentence"),
    [
        (
            "raise ValueError('as it should')",
            1,
            "spcomm: node {} ended with an uncaught ValueError (exit code 1)",
        ),
        ("sys.exit(7)", 7, "spcomm: node {} ended with exit code 7"),
        ("os.kill(os.getpid(), 9)", 137, "spcomm: node {} was killed by SIGKILL (exit code 137)"),
        ("comm.recv(0)", 99, "spcomm: DEADLOCK"),
    ],
)
def test_a_node_that_fails_is_named(cluster, machines, what, code, sentence):
    options = ("-n", 2) if machines == 1 else ()
    result = cluster(*options, cluster.script(FAILS.format(what)), machines=machines)
    assert result.code == code and sentence.format(2 * machines - 1) in result.err, result
    if code != 99:
        assert result.last.startswith(sentence.format(2 * machines - 1)), result


@pytest.mark.parametrize("machines", [1, 2])
def test_ctrl_c(cluster, machines):
    options = ("-n", 2) if machines == 1 else ()
    job = cluster.submit(*options, cluster.script(WAITS), machines=machines)
    job.wait_for(*FILES[: 2 * machines])
    found = [pid for pid, command in cluster.alive().items() if " spcomm run " in command]
    [launcher] = [pid for pid in found if leaks.parent_of(pid) not in found]  # the others are forks of it
    os.kill(launcher, signal.SIGINT)
    result = job.result()
    assert result.code == 130 and result.last.startswith("spcomm: interrupted by Ctrl-C (exit code 130)"), (
        result
    )
    assert "wait" not in result.last and "program.py:6" in result.err, result


# ---- what ends a job


@pytest.mark.parametrize("machines", [1, 2, 4])
def test_a_job_that_is_cancelled(cluster, slurm, machines):
    options = ("-n", 2) if machines == 1 else ()
    job = cluster.submit(*options, cluster.script(WAITS), machines=machines)
    job.wait_for(*[f"node{rank}" for rank in range(2 * machines)])
    assert slurm("scancel", job.number).returncode == 0
    result = job.result()
    assert result.code == 143 and "told to end by SIGTERM (exit code 143)" in result.last, result


@pytest.mark.stress
def test_a_job_whose_time_is_over(cluster, slurm):
    """Slurm looks for such jobs twice a minute."""
    job = cluster.submit(cluster.script(WAITS))
    job.wait_for(*FILES)
    assert slurm("scontrol", "update", f"JobId={job.number}", "EndTime=now+1").returncode == 0
    result = job.result()
    assert result.code == 143 and "told to end by SIGTERM (exit code 143)" in result.last, result


def test_a_job_that_makes_room_for_another(cluster, slurm):
    """Pre-emption with GraceTime: SIGTERM to the steps, and SIGKILL later."""
    job = cluster.submit(cluster.script(WAITS))
    job.wait_for(*FILES)
    done = slurm("srun", "--quiet", "-p", "urgent", "-N4", "-n4", "--exclusive", "hostname")
    assert sorted(done.stdout.split()) == names(4, 1), done
    result = job.result()
    assert result.code == 143 and "told to end by SIGTERM (exit code 143)" in result.last, result


def test_a_step_that_gets_a_signal(cluster, slurm):
    job = cluster.submit(cluster.script(WAITS))
    job.wait_for(*FILES)
    slurm("scancel", "--signal=TERM", f"{job.number}.0")  # it fails where the step ends before it does
    result = job.result()
    assert result.code == 143 and result.last.startswith(
        "spcomm: host box1: the box there was told to end"
    ), result


def test_a_step_that_is_cancelled(cluster, slurm):
    job = cluster.submit(cluster.script(WAITS))
    job.wait_for(*FILES)
    slurm("scancel", "--signal=KILL", f"{job.number}.0")
    result = job.result()
    assert result.code == 125 and result.last.startswith(
        "spcomm: host box1: the connection to it has ended"
    ), result
    assert "(slurmstepd" in result.last or "(srun: error" in result.last, result


def test_a_step_that_needs_too_much_memory(cluster):
    text = """
        import time, spcomm
        comm = spcomm.startup()
        comm.barrier()
        if comm.rank == 1:
            kept = b"x" * (900 << 20)
        comm.barrier()
        time.sleep(600)
    """
    result = cluster("--map", "0,1", cluster.script(text), given=["--mem=500"])
    assert result.code == 125 and result.last.startswith(
        "spcomm: host box1: the connection to it has ended"
    ), result
    assert "memory" in result.last, result


@pytest.mark.parametrize("whose", ["srun", "slurmstepd"])
def test_a_part_of_slurm_that_is_killed(cluster, whose):
    job = cluster.submit(cluster.script(WAITS))
    job.wait_for(*FILES)
    if whose == "srun":
        found = [pid for pid, command in cluster.alive().items() if command.startswith("srun ")]
    else:
        found = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_step(pid, f"{job.number}.0")]
    assert found
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    result = job.result()
    assert result.code == 125 and result.last.startswith("spcomm: host box1: the connection to it"), result


def is_step(pid, step):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().startswith(f"slurmstepd: [{step}]")
    except OSError:
        return False
