# SPDX-License-Identifier: MIT
"""spcomm: one program as several cooperating processes.

    import spcomm
    comm = spcomm.startup()
    print(f"node {comm.rank} of {comm.size}")

Run it with ``spcomm run -n 4 program.py``. Names are loaded when they are first used: importing spcomm costs nothing.
"""

__version__ = "0.1.0"

_HOMES = {
    "spcomm.joining": ("startup",),
    "spcomm.notebook.cluster": ("Cluster",),
    "spcomm.notebook.errors": ("ClusterError",),
    "spcomm._core.comm": ("Comm",),
    "spcomm._core.collectives": ("FuzzyBarrier",),
    "spcomm._core.arguments": ("Destination",),
    "spcomm._core.simtime": ("SimTime",),
    "spcomm.net_types.net_types": (
        "NET_DOUBLE",
        "NET_INT",
        "NetDouble",
        "NetInt",
        "foreign_count",
        "localize",
    ),
    "spcomm._core.names": ("ALL", "ANY", "OTHERS", "PROC_NULL", "Message", "NodeLayout"),
    "spcomm._core.operators": (
        *("SUM", "PROD", "MIN", "MAX", "MINLOC", "MAXLOC"),
        *("LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR", "Op", "op"),
    ),
    "spcomm._core.errors": (
        "AuthenticationError",
        "BufferInUseError",
        "ConfigError",
        "ConnectionLostError",
        "CycleError",
        "DeadlockError",
        "MismatchError",
        "NodeLostError",
        "RankError",
        "SpcommError",
        "TagError",
        "TruncationError",
        "VersionError",
        "WaitTimeoutError",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = list(_HOME)

# Entry points of `%load_ext spcomm`.
_EXTENSION = ("load_ipython_extension", "unload_ipython_extension")
_HOME |= dict.fromkeys(_EXTENSION, "spcomm.notebook.magics")


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'spcomm' has no attribute {name!r}{_hint(name)}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    """Return the text to write instead of `spcomm.rank` or `spcomm.ANY_SOURCE`."""
    import sys

    known = sys.modules.get(
        "spcomm._core.comm"
    )  # not imported for this: `from spcomm import cli` comes here, too
    if not name.startswith("_") and known is not None and hasattr(known.Comm, name):
        return f"; write comm = spcomm.startup(), then comm.{name}"
    if not name[:1].isupper():
        return ""
    from spcomm._core import names

    return names.of_mpi(name)


def __dir__() -> "list[str]":
    return sorted({*globals(), *_HOME})
