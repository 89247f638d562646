# SPDX-License-Identifier: MIT
"""Behind the walls, before anything of a solution runs: gives up root and some system calls, then becomes a command.

Root of this machine would own files in /proc. New user namespaces would bring file systems in memory of any size, and
segments of System V keep memory that no process has mapped: no limit sees either. Keys of the kernel outlive a run, and
a solution could read those of the grader. No node needs to look into another process.
"""

import ctypes
import os
import struct
import sys

NOBODY = 65534
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER_MODE = 38, 22, 2  # of prctl
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000  # results of a filter; with an errno
_EPERM, _ENOSYS = 1, 38
_NEW_USER = 0x10000000  # a flag of clone and unshare
# Machine: its number for filters, and those of clone, clone3, unshare, and of the refused calls: setns, shmget, msgget,
# semget, add_key, request_key, keyctl, ptrace, process_vm_readv, process_vm_writev, pidfd_getfd.
_CALLS = {
    "x86_64": (0xC000003E, 56, 435, 272, 308, 29, 68, 64, 248, 249, 250, 101, 310, 311, 438),
    "aarch64": (0xC00000B7, 220, 435, 97, 268, 194, 186, 190, 217, 218, 219, 117, 270, 271, 438),
}
_LOAD, _IS, _HAS, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06  # instructions
_CALL, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # the places of a filter's inputs
_X32 = 0x40000000  # calls of another kind on x86_64


def main() -> None:
    """Become the command in the arguments."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    _refuse_calls()
    os.execv(sys.argv[1], sys.argv[1:])


def _refuse_calls() -> None:
    calls = _CALLS.get(os.uname().machine)
    if calls is None:
        return
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in _filter(*calls))
    libc = ctypes.CDLL(None, use_errno=True)
    kept = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(kept))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER_MODE, pointer, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter for system calls can be set")


def _filter(
    machine: int, clone: int, clone3: int, unshare: int, *others: int
) -> "list[tuple[int, int, int, int]]":
    """Return instructions: the operation, how many to skip if true and if false, and a number."""
    refused = _RETURN, 0, 0, _REFUSE | _EPERM
    found = [(_LOAD, 0, 0, _MACHINE), (_IS, 1, 0, machine), refused]
    found += [(_LOAD, 0, 0, _CALL), (_AT_LEAST, 0, 1, _X32), refused]
    # The arguments of clone3 are in memory, where no filter looks. The C library then calls clone.
    found += [(_IS, 0, 1, clone3), (_RETURN, 0, 0, _REFUSE | _ENOSYS)]
    for call in others:
        found += [(_IS, 0, 1, call), refused]
    found += [(_IS, 1, 0, clone), (_IS, 0, 3, unshare)]
    found += [(_LOAD, 0, 0, _FIRST_ARGUMENT), (_HAS, 0, 1, _NEW_USER), refused]
    return [*found, (_RETURN, 0, 0, _ALLOW)]


if __name__ == "__main__":
    main()
