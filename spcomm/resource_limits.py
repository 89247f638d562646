# SPDX-License-Identifier: MIT
"""Resource limits of this process (`ulimit`), in the sentences about what they prevent.

A module that needs such sentences imports this one early: without descriptors a module can no longer be found.
"""

import errno
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Errors that a limit may be the reason of, or other programs of this machine.
SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)

# The limit that an error of the system may come from: the option of ulimit, its name in `resource`, bytes of its unit.
_BEHIND: "Mapping[int, tuple[str, str, int]]" = {
    errno.EMFILE: ("-n", "RLIMIT_NOFILE", 0),
    errno.EAGAIN: ("-u", "RLIMIT_NPROC", 0),
    errno.ENOMEM: ("-v", "RLIMIT_AS", 1024),
    errno.EFBIG: ("-f", "RLIMIT_FSIZE", 1024),
}
_ANY = "the limits (ulimit -u, ulimit -n, those of the container)"


def text(number: int) -> str:
    """Return the limit behind this error number: `ulimit -v 1000000 (976.6M)`; empty if none is set."""
    option, name, unit = _BEHIND.get(number, ("", "", 0))
    if not option:
        return ""
    limit = resource.getrlimit(getattr(resource, name))[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    if not unit:
        return f"ulimit {option} {limit}"
    from spcomm.text import rounded_size

    return f"ulimit {option} {limit // unit} ({rounded_size(limit)})"


def advice(number: int) -> str:
    """Return what to raise after this error number: `the limit ulimit -n 64`, or the limits that there may be."""
    found = text(number)
    return f"raise the limit {found}" if found else f"raise {_ANY}"
