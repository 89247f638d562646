# SPDX-License-Identifier: MIT
"""MUNGE: messages that only processes of the same user on the same cluster can make and read.

A credential is text. The machine's munged encrypts it with the cluster's key, and tells who has made it; each can be
read once. Every cluster of Slurm has MUNGE, since Slurm itself needs it.
"""

import ctypes
import os
import subprocess

_LIBRARY = "libmunge.so.2"
_SOCKET, _UID_RESTRICTION = 8, 9  # options of a context, enum munge_opt
_NO_SOCKET = 6  # EMUNGE_SOCKET


class MungeError(Exception):
    """A credential cannot be made, or is none that this process may read; the text says why."""


class Munge:
    """The library, with a way to the machine's munged."""

    def __init__(self) -> None:
        try:
            self._lib = ctypes.CDLL(_LIBRARY)
        except OSError:
            raise MungeError(f"this machine lacks {_LIBRARY}, the library of MUNGE") from None
        self._lib.munge_ctx_create.restype = ctypes.c_void_p
        self._lib.munge_strerror.restype = ctypes.c_char_p
        self._context = ctypes.c_void_p(self._lib.munge_ctx_create())
        self._lib.munge_ctx_set(self._context, _UID_RESTRICTION, ctypes.c_uint(os.getuid()))

    def encode(self, text: bytes) -> bytes:
        """Return a credential with this text, which processes of this user can read."""
        found = ctypes.c_char_p()
        status = self._encode(found, text)
        if status == _NO_SOCKET and (place := _configured()):
            self._lib.munge_ctx_set(self._context, _SOCKET, ctypes.c_char_p(place))
            status = self._encode(found, text)
        self._check(status)
        return found.value or b""

    def _encode(self, found: ctypes.c_char_p, text: bytes) -> int:
        return int(self._lib.munge_encode(ctypes.byref(found), self._context, text, len(text)))

    def decode(self, credential: bytes) -> bytes:
        """Return the text of a credential that a process of this user has made, the first time."""
        data, length = ctypes.c_void_p(), ctypes.c_int()
        uid, gid = ctypes.c_uint(), ctypes.c_uint()
        outputs = [ctypes.byref(one) for one in (data, length, uid, gid)]
        self._check(self._lib.munge_decode(credential, self._context, *outputs))
        if uid.value != os.getuid():
            raise MungeError("it is another user's")
        return ctypes.string_at(data, length.value) if data.value else b""

    def _check(self, status: int) -> None:
        if status:
            raise MungeError(self._lib.munge_strerror(status).decode("utf-8", "replace"))


def _configured() -> bytes:
    """Return the socket of munged, as Slurm is configured; empty: it is the usual one."""
    try:
        shown = subprocess.run(["scontrol", "show", "config"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return b""
    for line in shown.stdout.splitlines():
        name, _equals, value = line.partition(b"=")
        if name.strip() == b"AuthInfo":
            for item in value.strip().split(b","):
                if item.startswith(b"socket="):
                    return item.removeprefix(b"socket=")
    return b""
