# SPDX-License-Identifier: MIT
"""`spcomm info`: one page about this machine, as far as it matters to a run."""

import os

from spcomm.argument_parser import ArgumentParser
from spcomm.text import ranges_text, rounded_size


def parser() -> ArgumentParser:
    """Return the parser of `spcomm info`."""
    made = ArgumentParser(
        "spcomm info",
        "spcomm info [--json]",
        "Prints a page about this machine: cores, memory, features that the system allows (each was tried), versions, "
        "tools.",
    )
    made.add_argument("--json", action="store_true", help="print the same for programs")
    return made


def main(words: "list[str]") -> int:
    """Print the page and return the exit code."""
    asked = parser().parse_args(words)
    found = gather()
    if asked.json:
        import json

        print(json.dumps(found, indent=2))
    else:
        print(page(found), end="")
    return 0


def gather() -> "dict[str, dict[str, object]]":
    """Return all values, by section and name. Sizes are bytes; None: missing, or impossible to determine."""
    from spcomm._core import segments

    disabled = segments.disable_mask()
    return {
        "versions": _versions(),
        "processors": _processors(segments.cores()),
        "memory": _memory(segments.memory()),
        "allowed": segments.features(disabled),
        "job": {"job": _job()},
        "mpi": _mpi(),
        "tools": {**{name: _in_path(name) for name in ("cc", "gdb", "tmux")}, "debugpy": _version("debugpy")},
    }


def page(found: "dict[str, dict[str, object]]") -> str:
    """Return these values as text."""
    versions, processors, memory = (found[name] for name in ("versions", "processors", "memory"))
    quota = "no quota" if processors["quota"] is None else f"quota {processors['quota']:g}"
    limit = "no limit" if memory["limit"] is None else f"a limit of {_size(memory['limit'])}"
    online = f"{processors['online']} online, affinity {processors['affinity'] or 'unknown'}"
    machine = f"the machine has {_size(memory['machine'])}, {_size(memory['available'])} of it available"
    lines = [
        ("spcomm", f"{versions['spcomm']}, in {versions['folder']}"),
        ("Python", f"{versions['python']}, NumPy {versions['numpy'] or 'is missing'}"),
        ("system", f"{versions['system']}, {versions['machine']}"),
        ("cores", f"{processors['usable']:g} may be used: {online}, {quota}"),
        ("memory", f"{_size(memory['usable'])} may be used: {machine}; {limit} from the control group"),
        ("buffers", f"{_size(memory['buffers'])} at most for all messages of a run, a quarter"),
        ("/dev/shm", f"{_size(memory['shm'])}, {_size(memory['shm_free'])} free; used only where memfd is not allowed"),
        *((name, "yes" if works else "no: " + _WITHOUT[name]) for name, works in found["allowed"].items()),
        ("job", found["job"]["job"] or "none of Slurm, PBS or LSF"),
        *((name, value or "not found") for name, value in (*found["mpi"].items(), *found["tools"].items())),
    ]  # fmt: skip
    return "".join(f"{name:<13} {text}\n" for name, text in lines)


_WITHOUT = {
    "memfd": "shared memory lies in /dev/shm, and all of it is reserved at once",
    "futex": "a node that waits sleeps in short slices",
    "pidfd": "ends of processes are found by polling",
    "epoll": "the server of a run polls each of its connections",
    "wipe_on_fork": "process numbers are compared",
}


def _versions() -> "dict[str, object]":
    import platform

    return {
        "spcomm": _version("spcomm"),
        "folder": os.path.dirname(os.path.abspath(__file__)),
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "numpy": _version("numpy"),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
    }


def _version(name: str) -> "str | None":
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processors(usable: float) -> "dict[str, object]":
    affinity = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    allowed = len(affinity) if affinity is not None else os.cpu_count() or 1
    return {
        "online": os.cpu_count(),
        "affinity": ranges_text(affinity).replace(", ", ",") if affinity is not None else None,
        "quota": usable if usable < allowed else None,
        "usable": usable,
    }


def _memory(usable: int) -> "dict[str, object]":
    known = {}
    try:
        with open("/proc/meminfo") as file:
            known = {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in file}
    except (OSError, ValueError, IndexError):
        pass
    machine = known.get("MemTotal")
    try:
        mount = os.statvfs("/dev/shm")
        shm, free = mount.f_blocks * mount.f_frsize, mount.f_bavail * mount.f_frsize
    except OSError:
        shm = free = None
    return {
        "machine": machine,
        "available": known.get("MemAvailable"),
        "limit": usable if machine is None or usable < machine else None,
        "usable": usable,
        "buffers": usable // 4,
        "shm": shm,
        "shm_free": free,
    }


def _job() -> "str | None":
    """Return the machines on which spcomm run runs here, or why it does not."""
    from spcomm.config import is_in_job
    from spcomm.launch.cmdline import allocation

    return allocation.described() if is_in_job() else None


def _mpi() -> "dict[str, object]":
    found = _in_path("mpiexec") or _in_path("mpirun")
    return {"mpiexec": f"{found} ({_first_line(found)})" if found else None, "mpi4py": _version("mpi4py")}


def _first_line(program: str) -> str:
    """Return the version that a program prints."""
    import subprocess

    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"does not run: {error}"
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return lines[0] if lines else "says no version"


def _in_path(name: str) -> "str | None":
    import shutil

    return shutil.which(name)


def _size(value: object) -> str:
    return rounded_size(value) if isinstance(value, int) else "unknown"
