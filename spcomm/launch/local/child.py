# SPDX-License-Identifier: MIT
"""Process forked by the fork server: becomes a node, and then runs the user's program.

A forked node has to look like a Python that was started with the program's name: its streams, signal
handlers, random numbers, `sys.argv`, `sys.path[0]` and `__main__` are those of a fresh interpreter, and it
ends by leaving the top level, so that threads are joined, exit functions run, streams are flushed and the
exit status set by Python itself.
"""

import _signal
import faulthandler
import gc
import io
import os
import sys

from spcomm import config
from spcomm._core import call_site
from spcomm.launch.base import process, report, source
from spcomm.launch.local import fast_exit


class Program:
    """The program of every node, as the launcher described it; `code` is the script, compiled once."""

    def __init__(self, message: dict) -> None:
        # script; archive: a folder or a ZIP file with a __main__.py; code: of -c; stdin; module; executable
        self.kind: str = message["kind"]
        self.target: str = message["target"]  # absolute path of the program, the code, or the module's name
        self.arguments: list[str] = message["arguments"]  # sys.argv, or argv of the executable
        self.command: list[str] = message["command"]  # sys.orig_argv
        self.path_entry: str | None = message["path_entry"]  # sys.path[0], None: leave as it is
        self.where_signal: int = message["where_signal"]
        self.descriptor_limit: tuple[int, int] | None = message["descriptor_limit"]  # to be restored
        self.takes_interrupt: bool = message["takes_interrupt"]  # Ctrl-C waits until the program enables it
        self.code: object = None

    def compile(self) -> None:
        """Compile the script for all nodes; if that fails, each fails by itself, as under plain Python."""
        if self.kind == "script" and not source.is_compiled(self.target):
            self.code = source.compiled(self.target)


class Node:
    """One forked process, from the fork to the first line of the program."""

    def __init__(self, program: Program, member: config.Membership, shared: dict) -> None:
        self.program = program
        self.member = member
        self.shared = shared  # descriptors: report, where
        self.held: set[int] = set()  # signals held back for the program
        self.debug: dict = {}  # its debugger, if any: tool, command, terminal

    def settle(self, parent: int, mask: "set[int]", streams: "list[int]", close: "list[int]") -> None:
        """Set up the kernel's state of a process: group, parent-death signal, descriptors, signals."""
        process.die_with(parent, _signal.SIGKILL)
        has_terminal = self.debug.get("terminal", False)
        os.setsid() if has_terminal else os.setpgid(0, 0)
        _signal.set_wakeup_fd(-1)
        for number in (_signal.SIGCHLD, _signal.SIGCONT):
            _signal.signal(number, _signal.SIG_DFL)
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        if has_terminal:
            _take_terminal()
        close_all(close)
        if self.program.descriptor_limit is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_NOFILE, self.program.descriptor_limit)
        mask = mask - process.FORWARDED  # which only the fork server blocks
        # The signal that asks for the current line must not arrive before its handler is installed.
        asked = {self.program.where_signal} if self.program.where_signal else set()
        # Ctrl-C must not arrive before a program runs that it could interrupt.
        late = {_signal.SIGINT} if self.program.takes_interrupt else set()
        self.held = {_signal.SIGINT} - mask - late if self.program.kind != "executable" else set()
        # In an executable, Ctrl-C has the executable's own meaning: a KeyboardInterrupt here would be a riddle.
        if self.program.kind == "executable" and _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask | asked | self.held | late)

    def run(self) -> None:
        """Run the program; returns or raises as the top level of `__main__` would."""
        if self.program.kind == "executable":
            self._execute()
        if self.program.where_signal:
            faulthandler.register(self.program.where_signal, file=self.shared["where"], all_threads=False)
            if not faulthandler.is_enabled():  # PYTHONFAULTHANDLER, -X faulthandler: to stderr, all of it
                faulthandler.enable(file=self.shared["where"], all_threads=False)
            _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {self.program.where_signal})
            call_site.own_signal(self.program.where_signal)
        _reopen_streams()
        _reseed()
        report.aim(self.shared["report"], self.member.rank)
        config.join(self.member)
        fast_exit.arm()
        gc.enable()
        sys.argv[:] = self.program.arguments
        sys.orig_argv[:] = self.program.command
        if self.debug.get("tool") == "debugpy":
            from spcomm.launch.local import debugger

            debugger.listen(self.member.rank, self.debug.get("host", ""))
        _run_as_main(self.program, self.held, self.debug.get("tool") == "pdb")

    def _execute(self) -> None:
        """Execute the executable in place of this process. Does not return."""
        for ignored in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and other programs expect the default
            if hasattr(_signal, ignored):
                _signal.signal(getattr(_signal, ignored), _signal.SIG_DFL)
        inherited = self.shared["report"]
        for fd in (self.member.fd, inherited):
            os.set_inheritable(fd, True)
        target, arguments = self.program.target, self.program.arguments
        # A program that starts Python, as a script with a first line does; Python itself gets -u.
        unbuffered = {} if target == sys.executable else {"PYTHONUNBUFFERED": "1"}
        environment = {**unbuffered, **os.environ, **config.environment(self.member, inherited)}
        if self.debug:
            arguments = self.debug["command"]
            target = arguments[0]
        try:
            os.execve(target, arguments, environment)
        except OSError as error:
            reason = f"spcomm: cannot execute {target}: {error.strerror}\n"
            os.write(2, os.fsencode(reason))
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _take_terminal() -> None:
    """Make standard input the terminal of this session, so that its Ctrl-C reaches this node."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def close_all(descriptors: "list[int]") -> None:
    """Close descriptors, neighbours in one call."""
    ordered, at = sorted(descriptors), 0
    while at < len(ordered):
        end = at
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        os.closerange(ordered[at], ordered[end] + 1)
        at = end + 1


def _reopen_streams() -> None:
    """Make new `sys.stdin`, `sys.stdout` and `sys.stderr`, with the encodings Python chose when it started.

    Lines leave at once, as at a terminal: a node's output goes through a pipe, and would otherwise arrive in
    blocks.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        old = getattr(sys, name)
        if old is None:
            continue
        writes = mode == "w"
        raw = isinstance(getattr(old, "buffer", None), io.FileIO)  # PYTHONUNBUFFERED
        buffer = open(number, mode + "b", buffering=0 if raw and writes else -1, closefd=False)
        getattr(buffer, "raw", buffer).name = f"<{name}>"
        text = io.TextIOWrapper(
            buffer,
            encoding=old.encoding,
            errors=old.errors,
            newline="\n",
            line_buffering=writes,
            write_through=raw and writes,
        )
        text.mode = mode
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)


def _reseed() -> None:
    """Reseed the random numbers, because all nodes would otherwise draw the fork server's."""
    for name in ("random", "numpy.random"):
        module = sys.modules.get(name)
        if module is not None:
            module.seed()


def _run_as_main(program: Program, held: "set[int]", debug: bool) -> None:
    main = _fresh_main()
    try:
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, held)
        if debug:
            _debug(program, main)
        elif program.kind in ("module", "archive"):
            import runpy

            is_module = program.kind == "module"
            runpy._run_module_as_main(program.target if is_module else "__main__", is_module)
        else:
            _run_script(program, main)
        fast_exit.expect(0)
    except SystemExit as error:
        code = _exit_code(error)
        report.leaving(error, code)
        # Python exits with 255 for one that does not fit into a C int.
        if not isinstance(error.code, int) or -(2**31) <= error.code < 2**31:
            fast_exit.expect(code)
        raise
    except BaseException as error:
        with report.IgnoreInterrupts():
            error.__traceback__ = report.users_part(error.__traceback__)
            _failed(error)


def _debug(program: Program, main: dict) -> None:
    from spcomm.launch.local import debugger

    if program.kind == "module":
        debugger.run(debugger.module_code(program.target, main), main)
    elif program.kind == "archive":
        debugger.run(debugger.archive_code(main), main)
    else:
        debugger.run(_script_code(program, main) or debugger.source_code(program.target), main)


def _run_script(program: Program, main: dict) -> None:
    code = _script_code(program, main)
    if code is not None:
        exec(code, main)
    else:
        source.run(program.target, main, os.dup(0) if program.kind == "stdin" else -1)


def _script_code(program: Program, main: dict) -> object:
    """Return the code of a script or of -c, and set the names that it finds; None: Python has to read it itself."""
    from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader

    if program.kind == "code":
        main["__loader__"] = BuiltinImporter
        return compile(_undented(program.target), "<string>", "exec", dont_inherit=True)
    main.update(__file__=program.target, __cached__=None)
    if program.kind == "stdin":
        main["__loader__"] = BuiltinImporter
        return None
    if source.is_compiled(program.target):
        main["__loader__"] = SourcelessFileLoader("__main__", program.target)
        return source.code_of(program.target)
    main["__loader__"] = SourceFileLoader("__main__", program.target)
    return program.code


def _undented(code: str) -> str:
    """Return the code of -c as Python reads it: since 3.14 without the blanks that all lines begin with."""
    if sys.version_info < (3, 14):
        return code
    import textwrap

    return textwrap.dedent(code)


def _fresh_main() -> dict:
    """Make a new `__main__`, like that of a fresh interpreter, and return its dictionary.

    The fork server's own would not do: the garbage collector ignores objects that existed before the fork.
    """
    module = type(sys)("__main__")
    main = module.__dict__
    if sys.version_info < (3, 14):
        main["__annotations__"] = {}
    main["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = module
    return main


def _exit_code(error: SystemExit) -> int:
    code = error.code
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def _failed(error: BaseException) -> None:
    """Handle an uncaught exception: report it, and leave the top level with the status that Python gives."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.stdout.flush()
    except Exception:
        pass  # a broken stdout is reported when Python flushes it for the last time
    try:
        report.uncaught(error)
    except BaseException:  # a user's sys.excepthook may raise anything
        sys.__excepthook__(*sys.exc_info())
    if isinstance(error, KeyboardInterrupt):
        # Python ends by SIGINT after an uncaught KeyboardInterrupt, which has been shown already.
        sys.excepthook = _quiet
        raise error
    fast_exit.expect(1)
    raise SystemExit(1) from None


def _quiet(*_arguments: object) -> None:
    pass
