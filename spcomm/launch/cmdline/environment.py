# SPDX-License-Identifier: MIT
"""The environment of a program's nodes: the launcher's or none, the variables of `-x`, values common to all nodes."""

import os

from spcomm.config import ALONE_VARIABLE, CLOSE_VARIABLE, STRICT_VARIABLE, TRACE_VARIABLE, is_in_job
from spcomm.launch.base.usage import UsageError, from_here
from spcomm.launch.cmdline.options import Options, Part

_SEED = "PYTHONHASHSEED"

_OPENMP = "OMP_NUM_THREADS"
# Variables that limit the threads of one node, because the nodes share the cores, and the library that reads each.
THREADS = {
    _OPENMP: "OpenMP",
    "OPENBLAS_NUM_THREADS": "OpenBLAS",
    "MKL_NUM_THREADS": "MKL",
    "BLIS_NUM_THREADS": "BLIS",
    "VECLIB_MAXIMUM_THREADS": "Accelerate",
    "NUMBA_NUM_THREADS": "Numba",
    "NUMEXPR_NUM_THREADS": "NumExpr",
    "POLARS_MAX_THREADS": "Polars",
    "RAYON_NUM_THREADS": "Rayon",
}


def environments(options: Options) -> "list[dict[str, str]]":
    """Return one for each program. Raises `UsageError` for a variable that is not set."""
    found = [_environment(part) for part in options.parts]
    told = _of_the_run(options)
    for environment in found:
        environment.update(told)
    return found


def _of_the_run(options: Options) -> "dict[str, str]":
    """Return the environment of nodes in any language."""
    told = {_SEED: _hash_seed(options.parts)}
    if is_in_job():  # a run that a node starts uses its own machine only
        told[ALONE_VARIABLE] = "1"
    if options.strict:
        told[STRICT_VARIABLE] = "1"
    if options.is_traced:
        told[TRACE_VARIABLE] = "1"
    if options.close_timeout is not None:
        told[CLOSE_VARIABLE] = f"{options.close_timeout:g}"
    return told


def _environment(part: Part) -> "dict[str, str]":
    environment = dict(os.environ) if part.environment == "all" else {}
    for name, value in part.exports:
        if value is None:
            value = os.environ.get(name)
        if value is None:
            raise UsageError(f"spcomm run: -x {name}: is not set here; give it a value: -x {name}=…")
        environment[name] = value
    _limit_threads(environment)
    if part.folder is not None and "PWD" in environment:
        environment["PWD"] = os.path.abspath(from_here(part.folder))
    return environment


def _limit_threads(environment: "dict[str, str]") -> None:
    """Give every library the count that OpenMP has, by default 1. OpenMP's may be a list, one for each level."""
    count = environment.get(_OPENMP, "").partition(",")[0].strip()
    for name in THREADS:
        environment.setdefault(name, count if count.isdecimal() else "1")


def _hash_seed(parts: "list[Part]") -> str:
    """Return one value for all nodes of the run, so that `hash("x")` is the same on all."""
    asked: dict[str, str] = {}
    for part in parts:
        for name, value in part.exports:
            if name == _SEED and value not in (None, "", "random"):
                asked[value] = part.name
    if len(asked) > 1:
        (one, first), (other, second) = list(asked.items())[:2]
        raise UsageError(
            f"spcomm run: -x {_SEED}={one} for {first} and {_SEED}={other} for {second}: it is one for the whole run"
        )
    seed = next(iter(asked), os.environ.get(_SEED, "random"))
    return seed if seed not in ("", "random") else str(int.from_bytes(os.urandom(4), "little") or 1)
