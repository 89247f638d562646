# SPDX-License-Identifier: MIT
"""Machines of a scheduler's job, from its variables: what a run makes of them. No scheduler is needed."""

import os

import pytest

from spcomm.info import gather, page
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline import allocation
from spcomm.launch.cmdline.options import parse
from spcomm.launch.remote.hosts import Host

HERE = os.uname().nodename
SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "box[0-2]", "SLURM_TASKS_PER_NODE": "2(x2),1"}


@pytest.fixture
def job(monkeypatch):
    """Sets the variables of a job."""
    for name in list(os.environ):
        if name.startswith(("SLURM", "PBS_", "LSB_", "SPCOMM_ALONE")):
            monkeypatch.delenv(name)

    def put(variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))

    return put


@pytest.fixture
def listed(tmp_path):
    """A file with a line for each node."""
    path = tmp_path / "machines"
    path.write_text("alpha\nalpha\nbeta\nalpha\n")
    return path


def found(words, name="box"):
    """The hosts and the boxes of the nodes that a command line gives, in short."""
    options = parse(words.split())
    if options.hosts is None:
        return "here"
    return f"{' '.join(options.hosts)} {' '.join(''.join(map(str, part.boxes)) for part in options.parts)}"


# ---- Slurm's short forms


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", "a"),
        ("a,b", "a b"),
        ("a[01-03,7],b", "a01 a02 a03 a7 b"),
        ("a[9-11]", "a9 a10 a11"),
        ("a[001-3]", "a001 a002 a003"),
        ("rack[0-1]n[08-10]", "rack0n08 rack0n09 rack0n10 rack1n08 rack1n09 rack1n10"),
        ("n[1-2]-ib,x", "n1-ib n2-ib x"),
        ("a[1,3],a[2,4]b", "a1 a3 a2b a4b"),
    ],
)
def test_lists_of_hosts(text, names):
    assert allocation.expanded("X", text) == names.split()


@pytest.mark.parametrize("text", ["", ",", "a[", "a]", "a[1-2", "a[]", "a[x]", "a[3-1]", "a[1-2-3]", "a[1,]"])
def test_lists_of_hosts_that_are_none(text):
    with pytest.raises(
        UsageError, match=r"^spcomm run: X=.*: is not of the form a\[01-03,7\],b; give the machines"
    ):
        allocation.expanded("X", text)


def test_a_long_list_costs_little():
    assert len(allocation.expanded("X", "a[0-999999999]")) == 1 << 16


# ---- from variables to machines


@pytest.mark.parametrize(
    ("more", "words", "hosts"),
    [
        ({}, "x", "box0 box1 box2 00112"),
        ({}, "-n 3 x", "box0 box1 001"),
        ({}, "-n 2 x", "box0 00"),
        ({}, "--map cyclic x", "box0 box1 box2 01201"),
        ({}, "--map 0,2,1,0 x", "box0 box1 box2 0210"),
        ({}, "-n 1 m : -n 3 w", "box0 box1 0 011"),
        ({}, "--host box1:2 x", "box1 00"),
        ({}, "--host box1,box2 -n 2 x", "box1 box2 01"),
        ({}, "--boxes 2 -n 2 x", "here"),
        ({}, "--alone x", "here"),
        ({"SPCOMM_ALONE": 1}, "x", "here"),
        ({"SPCOMM_ALONE": 0}, "-n 2 x", "box0 00"),
        ({"SLURM_TASKS_PER_NODE": ""}, "-n 1 x", None),
        ({"SLURM_TASKS_PER_NODE": "", "SLURM_JOB_CPUS_PER_NODE": "1(x3)"}, "x", "box0 box1 box2 012"),
        # In a step with fewer machines than the job the first is about the step.
        (
            {"SLURM_TASKS_PER_NODE": 1, "SLURM_STEP_ID": 0, "SLURM_JOB_CPUS_PER_NODE": "1(x3)"},
            "x",
            "box0 box1 box2 012",
        ),
        ({"SLURMD_NODENAME": "box1"}, "x", "box0 localhost box2 00112"),
        # srun gives a step its own processors, and a box needs all.
        ({"SLURMD_NODENAME": "box1", "SLURM_STEP_NUM_TASKS": 1}, "x", "box0 box1 box2 00112"),
        ({"SLURM_JOB_NODELIST": "box1", "SLURM_TASKS_PER_NODE": 3}, "x", "box1 000"),
        ({"SLURM_JOB_NODELIST": "box1", "SLURM_TASKS_PER_NODE": 3, "SLURMD_NODENAME": "box1"}, "x", "here"),
        ({"SLURM_JOB_NODELIST": HERE, "SLURM_TASKS_PER_NODE": 3}, "x", "here"),
        ({"SLURM_JOB_NODELIST": f"{HERE},b", "SLURM_TASKS_PER_NODE": "1(x2)"}, "x", "localhost b 01"),
    ],
)
def test_machines_of_slurm(job, more, words, hosts):
    job({**SLURM, **more})
    if hosts is None:
        with pytest.raises(UsageError, match="counts tasks on 0"):
            parse(words.split())
        return
    assert found(words) == hosts


@pytest.mark.parametrize(
    ("variables", "way"),
    [
        ({"LSB_JOBID": 3, "LSB_DJOB_HOSTFILE": "FILE"}, ["blaunch", "beta"]),
        ({"PBS_JOBID": "3.head", "PBS_NODEFILE": "FILE"}, ["ssh", "-o"]),
    ],
)
def test_machines_of_lsf_and_pbs(job, listed, variables, way):
    job({name: listed if value == "FILE" else value for name, value in variables.items()})
    assert found("x") == "alpha beta 0001"
    options = parse(["x"])
    assert Host(1, "beta", options).command()[:2] == way and options.tunnel == "none"


@pytest.mark.parametrize(
    ("variables", "words", "sentence"),
    [
        (
            {"SLURM_TASKS_PER_NODE": "2(x2)"},
            "x",
            "Slurm's job has 3 machines (SLURM_JOB_NODELIST=box[0-2]), and SLURM_TASKS_PER_NODE counts tasks on 2",
        ),
        ({"SLURM_TASKS_PER_NODE": "2(y2)"}, "x", "SLURM_TASKS_PER_NODE=2(y2): is not of the form 2(x3),1"),
        ({"SLURM_JOB_NODELIST": "box[0"}, "x", "SLURM_JOB_NODELIST=box[0: is not of the form a[01-03,7],b"),
        (
            {},
            "-n 6 x",
            "-n 6: the machines of this job have room for 5; let the scheduler give it more tasks",
        ),
        ({}, "-n 2 x : -n 4 y", "-n 6: the machines of this job have room for 5"),
        (
            {},
            "--host box7 x",
            "--host box7: is not a machine of this job (Slurm 7: 5 nodes on 3 machines (box0:2, ",
        ),
        ({"SLURM_STEP_NUM_TASKS": 4}, "x", "srun has started this 4 times, and each would use all machines"),
        ({}, "--reach srun x", "--reach srun: must have {host} where the host's name belongs"),
        ({}, "--reach {host} x", "--reach {host}: must have {host} where the host's name belongs"),
        ({}, "--reach a{host}=b{host} --ssh s x", "--reach a{host}=b{host}: must"),
        ({}, "--tunnel ssh x", "--tunnel ssh: only ssh has tunnels, and srun reaches the hosts"),
        (
            {"SLURM_JOB_NODELIST": "b[0-64]", "SLURM_TASKS_PER_NODE": "1(x65)"},
            "x",
            "65 hosts: a run has at most 64",
        ),
    ],
)
def test_jobs_that_do_not_fit(job, variables, words, sentence):
    job({**SLURM, **variables})
    with pytest.raises(UsageError) as error:
        parse(words.split())
    assert str(error.value).startswith(f"spcomm run: {sentence}"), error.value


@pytest.mark.parametrize("text", [None, ""])
def test_files_that_name_no_machine(job, tmp_path, text):
    if text is not None:
        (tmp_path / "none").write_text(text)
    job({"PBS_JOBID": "3", "PBS_NODEFILE": tmp_path / "none"})
    with pytest.raises(
        UsageError, match=r"spcomm run: PBS_NODEFILE=.*none: (cannot be read|names no machine)"
    ):
        parse(["x"])


# ---- the way there


def test_the_way_to_a_machine(job):
    job({**SLURM, "SLURM_LABELIO": "1"})
    words = Host(1, "box1", parse(["x"])).command()
    assert words[0] == "srun" and words[-3:] == ["-m", "spcomm", "box"] and "--nodelist=box1" in words
    assert "SLURM_LABELIO" not in os.environ  # labels would stand between a box's frames


def test_another_way(job, tmp_path):
    job(SLURM)
    words = Host(1, "box1", parse(["--reach", "in 'the {host}' --on {host}", "x"])).command()
    assert words[:4] == ["in", "the box1", "--on", "box1"]
    options = parse(["--host", "other", "--reach", "rsh {host}", "x"])
    assert options.hosts == ["other"] and options.route is None
    options = parse(["--host", "other", "--ssh", "my-ssh", "x"])
    assert Host(0, "other", options).command()[:2] == ["my-ssh", "other"]


def test_info_names_the_job(job):
    job(SLURM)
    assert "job           Slurm 7: 5 nodes on 3 machines (box0:2, box1:2, box2:1), reached by srun\n" in page(
        gather()
    )
    job({"SLURM_TASKS_PER_NODE": "x"})
    assert "job           SLURM_TASKS_PER_NODE=x: is not of the form" in page(gather())
    job({"SPCOMM_ALONE": "1"})
    assert "job           none" in page(gather())


def test_nodes_of_a_job_have_no_job(job, launch):
    """A run that a node starts stays on its machine."""
    job({**SLURM, "SLURM_JOB_NODELIST": HERE, "SLURM_TASKS_PER_NODE": 2})
    result = launch("-n", 1, "-c", "import os; print(os.environ['SPCOMM_ALONE'])")
    assert result.code == 0 and result.lines == ["1"], result
