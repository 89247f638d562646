# SPDX-License-Identifier: MIT
"""`Comm` in a traced run: the same, and each call is recorded with its line. Nobody else imports this."""

from spcomm._core.comm import Comm
from spcomm._core.recorded import Recorded, fuzzy_barrier

# What takes no time, or only says something.
_SILENT = (
    "box",
    "group_id",
    "handler",
    "layout",
    "local_rank",
    "members",
    "rank",
    "region",
    "rng",
    "size",
    "time",
)


class TracedComm(Comm):
    """A `Comm` whose calls lie between a CALL and a RETURN in its node's trace (csrc/segment/spc_trace.h)."""


for _name in (name for name in dir(Comm) if not name.startswith("_") and name not in _SILENT):
    setattr(TracedComm, _name, Recorded(getattr(Comm, _name), _name))
TracedComm.fuzzy_barrier = Recorded(fuzzy_barrier, "fuzzy_barrier")  # type: ignore[method-assign]
