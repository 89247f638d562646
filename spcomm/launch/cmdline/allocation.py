# SPDX-License-Identifier: MIT
"""The machines that a cluster's scheduler assigned to this job, and its own remote shell, which reaches each of them.

`hosts` uses that shell in place of ssh; it needs no keys. Imported only in a job.
"""

import itertools
import os
import re
from typing import TYPE_CHECKING

from spcomm.launch.base.record import replace
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.machines import HERE, why
from spcomm.text import counted

if TYPE_CHECKING:
    from spcomm.launch.cmdline.options import Options

# Gives the box all of the job's machine: beside other steps, unbound, with all memory.
_SRUN = (
    "srun --quiet --overlap --unbuffered --export=ALL --mpi=none --cpu-bind=none --mem=0 --nodes=1 --ntasks=1 "
    "--nodelist={host}"
)
_MISLEADING = ("SLURM_LABELIO",)  # in the srun of a box it would put labels between frames
_MOST_NAMES = 1 << 16
_SHOWN = 8  # machines in `spcomm info`


class Allocation:
    """A scheduler's job."""

    def __init__(self, scheduler: str, job: str, hosts: "list[tuple[str, int]]", reach: "str | None") -> None:
        """`hosts` have the number of nodes that fit on each. `reach` is the remote shell, as for --reach; None: ssh."""
        self.scheduler, self.job, self.hosts, self.reach = scheduler, job, hosts, reach

    def text(self) -> str:
        """Return a description for `spcomm info`."""
        shown = [f"{host}:{slots}" for host, slots in self.hosts[:_SHOWN]] + ["…"] * (
            len(self.hosts) > _SHOWN
        )
        nodes = counted(sum(slots for _host, slots in self.hosts), "node")
        way = "ssh" if self.reach is None else self.reach.partition(" ")[0]
        place = f"{counted(len(self.hosts), 'machine')} ({', '.join(shown)}), reached by {way}"
        if not _uses(self.hosts):
            place = "this machine"
        return f"{self.scheduler} {self.job}: {nodes} on {place}"


def find() -> "Allocation | None":
    """Return the job that this process is part of. Raises `UsageError` if its variables cannot be read."""
    for scheduler, variable, places, read, reach in (
        ("Slurm", "SLURM_JOB_ID", "SLURM_JOB_NODELIST", _slurm, _SRUN),
        ("LSF", "LSB_JOBID", "LSB_DJOB_HOSTFILE", _listed, "blaunch {host}"),
        ("PBS", "PBS_JOBID", "PBS_NODEFILE", _listed, None),
    ):
        if os.environ.get(variable) and os.environ.get(places):
            return Allocation(scheduler, os.environ[variable], read(places, os.environ[places]), reach)
    return None


def described() -> "str | None":
    """Return a description of the job, or why it cannot be read; None outside of a job."""
    try:
        job = find()
    except UsageError as error:
        return str(error).removeprefix("spcomm run: ")
    return job.text() if job is not None else None


def in_job(options: "Options") -> "Options":
    """Add the hosts of the job to a run without --host, and the remote shell to any run on them."""
    if options.boxes is not None or options.room is not None or options.server is not None:
        return options
    job = find()
    if job is None:
        return options
    named = [host for part in options.parts for host, _slots in part.hosts or ()]
    has_way = options.ssh is not None or options.reach is not None
    if not named and not _uses(job.hosts):
        return options
    if named and not has_way:
        machines = [host for host, _slots in job.hosts]
        unknown = next((name for name in named if name != HERE and name not in machines), None)
        if unknown is not None:
            raise UsageError(
                f"spcomm run: --host {unknown}: is not a machine of this job ({job.text()}); to use any other, add "
                "--alone, or --ssh or --reach with the command that reaches it"
            )
    if not has_way:
        options = replace(options, reach=job.reach)
        for name in _MISLEADING:
            os.environ.pop(name, None)
    if named:
        return options
    _check_single()
    is_open = options.tunnel is None and options.listen is None
    hosts = [(HERE if _is_here(host) else host, slots) for host, slots in job.hosts]
    return replace(options, job_hosts=hosts, tunnel="none" if is_open else options.tunnel)


def _uses(hosts: "list[tuple[str, int]]") -> bool:
    """Whether a run on these hosts differs from one on this machine."""
    return len(hosts) > 1 or not _names_this(hosts[0][0])


def _names_this(host: str) -> bool:
    mine = (os.environ.get("SLURMD_NODENAME", ""), os.uname().nodename)
    return host in mine or host.partition(".")[0] in [name.partition(".")[0] for name in mine]


def _is_here(host: str) -> bool:
    """Whether that is this machine, and this process may use all that the job has there: a step of Slurm may not."""
    in_step = os.environ.get("SLURM_STEP_NUM_TASKS") is not None
    return not in_step and _names_this(host)


def _check_single() -> None:
    count = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
    if count != "1":
        raise UsageError(
            f"spcomm run: srun has started this {count} times, and each would use all machines of the job; leave srun "
            "out, or add --alone, so that each runs on its own machine"
        )


# ---- variables of schedulers


def _slurm(variable: str, text: str) -> "list[tuple[str, int]]":
    names = expanded(variable, text)
    counts: list[int] = []
    for counting in ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"):
        value = os.environ.get(counting)
        counts = _counts(counting, value) if value else []
        if len(counts) == len(names):
            return list(zip(names, counts, strict=True))
        if value and "SLURM_STEP_ID" not in os.environ:  # in a step SLURM_TASKS_PER_NODE is about the step
            break
    raise UsageError(
        f"spcomm run: Slurm's job has {counted(len(names), 'machine')} ({variable}={text}), and {counting} counts "
        f"tasks on {len(counts)} ({counting}={value}); give the machines (--host), or run here (--alone)"
    )


def _counts(variable: str, text: str) -> "list[int]":
    """Read `2(x3),1`: two on each of three machines, one on the next."""
    counts: list[int] = []
    for item in text.split(","):
        found = re.fullmatch(r"([1-9][0-9]{0,4})(?:\(x([1-9][0-9]{0,4})\))?", item)
        if found is None:
            raise _misunderstood(variable, text, "2(x3),1")
        counts += [int(found[1])] * int(found[2] or 1)
    return counts


def expanded(variable: str, text: str) -> "list[str]":
    """Return the names in Slurm's short form, such as `a[01-03,7],b`."""
    names: list[str] = []
    for item in re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", text):
        pieces = re.split(r"\[([^\]]*)\]", item)
        choices = [
            [piece] if not at % 2 else _numbers(variable, text, piece) for at, piece in enumerate(pieces)
        ]
        names += map("".join, itertools.islice(itertools.product(*choices), _MOST_NAMES))
    if not names or any("[" in name or "]" in name for name in names):
        raise _misunderstood(variable, text, "a[01-03,7],b")
    return names


def _numbers(variable: str, text: str, ranges: str) -> "list[str]":
    """Expand `01-03,7`."""
    found: list[str] = []
    for item in ranges.split(","):
        ends = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", item)
        if ends is None or int(ends[1]) > int(ends[2] or ends[1]):
            raise _misunderstood(variable, text, "a[01-03,7],b")
        numbers = range(int(ends[1]), int(ends[2] or ends[1]) + 1)[:_MOST_NAMES]
        found += [f"{number:0{len(ends[1])}}" for number in numbers]
    return found


def _listed(variable: str, path: str) -> "list[tuple[str, int]]":
    """Read a file with a line for each node."""
    try:
        with open(path, encoding="utf-8") as file:
            names = file.read().split()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"spcomm run: {variable}={path}: cannot be read ({why(error)}); give the machines (--host), or run here "
            "(--alone)"
        ) from None
    if not names:
        raise UsageError(f"spcomm run: {variable}={path}: names no machine; run here with --alone")
    return [(name, names.count(name)) for name in dict.fromkeys(names)]


def _misunderstood(variable: str, text: str, example: str) -> UsageError:
    return UsageError(
        f"spcomm run: {variable}={text}: is not of the form {example}; give the machines (--host), or run here "
        "(--alone)"
    )
