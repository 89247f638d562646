# SPDX-License-Identifier: MIT
"""`--debug` in a node: runs the program in pdb, or waits for a client of debugpy.

Python nodes that are executed run this module with `-m`, before the arguments that Python itself would get.
"""

import bdb
import contextlib
import os
import pdb
import socket
import sys
import tempfile
from typing import TYPE_CHECKING

from spcomm.launch.base import source

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Debugger(pdb.Pdb):
    left = False

    def set_quit(self) -> None:
        self.left = True
        super().set_quit()

    def get_stack(self, frame: object, trace: object) -> "tuple[list, int]":
        """Begin after an exception at the program's own line; `down` leads to those of the library that it called."""
        stack, index = super().get_stack(frame, trace)
        while frame is None and index > 0 and _is_library(stack[index][0].f_globals):
            index -= 1
        return stack, index


def _is_library(names: dict) -> bool:
    return str(names.get("__name__")).partition(".")[0] in ("spcomm", "mpi4py")


def run(code: object, main: dict) -> None:
    """Execute the program with a prompt at its first line. After an uncaught exception there is another prompt."""
    debugger = _Debugger()
    failure = None
    try:
        debugger.run(code, main, main)
    except SystemExit:
        raise
    except pdb.Restart:
        print("spcomm: one node alone cannot be restarted; start the run again", file=sys.stderr)
        raise SystemExit(1) from None
    except BaseException as error:
        failure = error
    if failure is not None:
        failure.__traceback__ = _of_program(failure.__traceback__, code)
        _look_back(failure)
        raise failure
    if debugger.left:
        print("spcomm: the debugger was left, so the run ends", file=sys.stderr)
        raise SystemExit(1)


def _look_back(error: BaseException) -> None:
    """Prompt at the line that raised it."""
    sys.settrace(None)
    print(f"uncaught {type(error).__name__}: {error}", "(q goes on to the end)", sep="\n", flush=True)
    debugger = _Debugger()
    debugger.reset()
    try:
        debugger.interaction(None, error.__traceback__)
    except bdb.BdbQuit:
        pass


def module_code(name: str, main: dict) -> object:
    """Return the code that `python -m name` runs; `main` gets the names that the code finds there."""
    import importlib.util

    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    code = spec.loader.get_code(spec.name) if spec is not None and spec.loader is not None else None
    if code is None:
        print(f"{sys.executable}: No code object available for {name}", file=sys.stderr)
        raise SystemExit(1)
    main.update(
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=spec.loader,
        __package__=spec.parent,
        __spec__=spec,
    )
    sys.argv[0] = spec.origin or name
    return code


def archive_code(main: dict) -> object:
    """Return the code that Python runs of the folder or ZIP file that `sys.path[0]` names."""
    import runpy

    _name, spec, code = runpy._get_main_module_details()
    main.update(
        __file__=spec.origin, __cached__=None, __loader__=spec.loader, __package__=spec.parent, __spec__=spec
    )
    return code


def source_code(path: str) -> object:
    """Return the code of a source, or raise the error in it."""
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def listen(rank: int, name: str = "") -> None:
    """Wait until a debugpy client connects to a port of this machine only, `name` to the launcher's.

    debugpy has no client passwords and no Unix sockets, so the first client at the port controls the node: only
    processes of this user may connect, where the system reports the owner of a connection.
    """
    # Otherwise it warns of Python's own modules, in three lines for each node, before the warning that matters.
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    import debugpy

    is_guarded = os.path.exists(_CONNECTIONS[0])
    with _guarded() if is_guarded else contextlib.nullcontext():
        host, port = debugpy.listen(("127.0.0.1", 0))
    who = "no other user of this machine can" if is_guarded else _ANYBODY
    where = f" on {name}; from here: ssh -L {port}:{host}:{port} {name}" if name else ""
    text = f"spcomm: node {rank} waits for a debugger: attach to {host}:{port}{where} (debugpy; {who})\n"
    os.write(2, text.encode())
    debugpy.wait_for_client()


_ANYBODY = "until you have, any user of this machine can, and run code as you"
_CONNECTIONS = "/proc/net/tcp", "/proc/net/tcp6"


@contextlib.contextmanager
def _guarded() -> "Iterator[None]":
    """Guard this process, which listens until its adapter has answered, and the adapter, which it starts meanwhile."""
    methods, path = (socket.socket.accept, socket.socket.connect), os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory(prefix="spcomm-") as folder:
        with open(os.path.join(folder, "sitecustomize.py"), "w") as file:
            file.write(f"from {__name__} import refuse_other_users\nrefuse_other_users()\n")
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *([path] if path else [])])
        refuse_other_users()
        try:
            yield
        finally:
            socket.socket.accept, socket.socket.connect = methods
            os.environ.pop("PYTHONPATH")
            if path is not None:
                os.environ["PYTHONPATH"] = path


def refuse_other_users() -> None:
    """Close connections of other users from now on, when this process accepts them."""
    accept, connect = socket.socket.accept, socket.socket.connect

    def accept_own(listener: socket.socket) -> "tuple[socket.socket, tuple]":
        while True:
            sock, address = accept(listener)
            if _owners(address[1], sock.getsockname()[1]) <= {os.getuid(), 0}:
                return sock, address
            sock.close()

    def connect_kept(sock: socket.socket, address: tuple) -> None:
        connect(sock, address)
        os.dup(sock.fileno())  # keeps the owner known: the adapter is done before its answer is accepted

    socket.socket.accept, socket.socket.connect = accept_own, connect_kept  # type: ignore[method-assign]


def _owners(there: int, here: int) -> "set[int]":
    """Return the users whose sockets are connected from one port of this machine to another; -1 if there are none."""
    found = set()
    ports = [f":{there:04X}", f":{here:04X}"]
    for path in _CONNECTIONS:
        with contextlib.suppress(OSError), open(path) as file:
            for words in map(str.split, file):
                if [word[-5:] for word in words[1:3]] == ports:
                    found.add(int(words[7]) if words[9] != "0" else -1)  # 0: closed, whoever owned it
    return found or {-1}


def _of_program(trace: object, code: object) -> object:
    """Return the traceback from the program's first frame on; all of it, if there is none (a syntax error)."""
    found = trace
    while found is not None and found.tb_frame.f_code is not code:
        found = found.tb_next
    return found or trace


def _main(words: "list[str]") -> None:
    """Run `python -m spcomm.launch.local.debugger` with the words for `python` itself: a script, -m module, -c code."""
    module = type(sys)("__main__")
    main = module.__dict__
    main["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = module
    if words[0] == "-m":
        sys.argv[:] = words[1:]
        run(module_code(words[1], main), main)
        return
    is_safe = getattr(sys.flags, "safe_path", False)
    if words[0] == "-c":
        sys.argv[:] = ["-c", *words[2:]]
        sys.path[:1] = sys.path[:1] if is_safe else [""]
        run(compile(words[1], "<string>", "exec", dont_inherit=True), main)
        return
    sys.argv[:] = words[1:] if words[0] == "--" else words
    path = os.path.abspath(sys.argv[0])
    if os.path.isdir(path) or source.is_archive(path):
        sys.path[: 0 if is_safe else 1] = [path]
        run(archive_code(main), main)
        return
    if not is_safe:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    main["__file__"] = path
    run(source_code(path), main)


if __name__ == "__main__":
    _main(sys.argv[1:])
