# SPDX-License-Identifier: MIT
"""Runs a command and ends it with all that it has started, when it takes too much. A process of its own.

Orphans come to it (PR_SET_CHILD_SUBREAPER), so a process that has left its session and its parent is still a
descendant. It reads the output, and writes one line of JSON when no process is left: how the command ended, the
exceeded limits, the output. Of spcomm it imports next to nothing, so that it starts quickly.

Where it may make a control group, the kernel also counts memory that no process has mapped.
"""

import base64
import contextlib
import json
import os
import select
import signal
import sys
import time

_SUBREAPER = 36  # numbers of prctl
_DEATH_SIGNAL = 1
_TICK = 0.03  # seconds between two looks
_PATIENCE = 10.0  # seconds for processes that were killed
_PAGE = os.sysconf("SC_PAGE_SIZE")
_KERNEL_BYTES = 64 << 20  # bytes that a group may have beside those of its processes: pipes, tables of pages


class LimitedCommand:
    """One command, from its start to the end of its last descendant."""

    def __init__(self, limits: "dict[str, float]") -> None:
        self._limits = limits
        self._texts: dict[int, bytearray] = {}
        self._poll = select.poll()
        self._pid = 0
        self._status: int | None = None
        self._looks = 0.0  # when to count next
        self._group = ControlGroup()

    def run(self, command: "list[str]", environment: "dict[str, str]", folder: str) -> "dict[str, object]":
        """Run it. Returns the report for the judge."""
        try:  # SIGTERM may come as soon as there is a process to end
            self._group.make(int(self._limits["memory"]) + _KERNEL_BYTES)
            self._start(command, environment, folder)
            stopped = self._watch()
        finally:
            left = self._end_all()
            ended_by_kernel = self._group.close()
        self._read_rest()
        return {
            "status": self._status,
            "stopped": stopped or ("memory" if ended_by_kernel else None),
            "left": left,
            "out": base64.b64encode(self._texts[self._out]).decode(),
            "err": base64.b64encode(self._texts[self._err]).decode(),
        }

    def _start(self, command: "list[str]", environment: "dict[str, str]", folder: str) -> None:
        outs, errs = os.pipe(), os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _become(self._group, command, environment, folder, outs[1], errs[1])
        os.close(outs[1])
        os.close(errs[1])
        self._out, self._err = outs[0], errs[0]
        self._texts = {self._out: bytearray(), self._err: bytearray()}
        self._open = set(self._texts)
        for fd in self._texts:
            os.set_blocking(fd, False)
            self._poll.register(fd, select.POLLIN)

    def _watch(self) -> "str | None":
        """Wait until the command has ended; return None, or the limit that was exceeded."""
        ends = time.monotonic() + self._limits["seconds"]
        while not self._reap():
            for fd, _events in self._poll.poll(_TICK * 1000):
                self._read(fd)
            why = self._exceeded(ends)
            if why:
                return why
        return None

    def _exceeded(self, ends: float) -> "str | None":
        if any(len(text) > self._limits["output"] for text in self._texts.values()):
            return "output"
        now = time.monotonic()
        if now > ends:
            return "seconds"
        if now < self._looks:
            return None
        self._looks = now + _TICK
        pids = descendants()
        if len(pids) > self._limits["processes"]:
            return "processes"
        if memory(pids) > self._limits["memory"]:
            return "memory"
        return None

    def _read(self, fd: int) -> bool:
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return False
        if data:
            self._texts[fd] += data
        else:
            self._poll.unregister(fd)
            self._open.discard(fd)
        return bool(data)

    def _read_rest(self) -> None:
        for fd in list(self._open):
            while len(self._texts[fd]) <= self._limits["output"] and self._read(fd):
                pass

    def _reap(self) -> bool:
        """Whether the command has ended; takes leave of orphans, too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            if pid == self._pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status is not None

    def _end_all(self) -> int:
        """Kill descendants until there are none. Returns how many cannot be killed."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it would only keep us from what it asks for
        ends = time.monotonic() + _PATIENCE
        while True:
            pids = descendants()
            for number in (signal.SIGSTOP, signal.SIGKILL):  # a stopped process starts no other meanwhile
                for pid in pids:
                    _kill(pid, number)
            self._reap()
            pids = descendants()
            if not pids or time.monotonic() > ends:
                return len(pids)
            time.sleep(0.002)


class ControlGroup:
    """A control group with a memory limit; does nothing where none can be made."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self._events = ""

    def make(self, limit: int) -> None:
        """Make the group, with a limit in bytes."""
        for parent, memory_limit, swap_limit, events in _parents():
            folder = f"{parent}/spcomm-check-{os.getpid()}-{os.urandom(8).hex()}"
            try:
                os.mkdir(folder)
            except OSError:
                continue
            self.folder, self._events = folder, events
            try:
                _write(f"{folder}/{memory_limit}", str(limit))
            except OSError:  # groups below this parent have no memory limit
                self.close()
                continue
            with contextlib.suppress(OSError):  # a kernel without swap has no such file
                _write(f"{folder}/{swap_limit}", str(limit) if "memsw" in swap_limit else "0")
            return

    def enter(self) -> None:
        """Put this process into the group, and so all that it starts."""
        with contextlib.suppress(OSError):
            if self.folder:
                _write(f"{self.folder}/cgroup.procs", str(os.getpid()))

    def close(self) -> bool:
        """Remove the group. Return whether the kernel has ended a process of it for lack of memory."""
        if self.folder is None:
            return False
        ended = False
        with contextlib.suppress(OSError), open(f"{self.folder}/{self._events}") as file:
            ended = any(line.split()[0] == "oom_kill" and int(line.split()[1]) for line in file)
        for _ in range(100):  # threads of a process that counts as dead may still be ending
            try:
                os.rmdir(self.folder)
                break
            except OSError:
                time.sleep(0.01)
        self.folder = None
        return ended


def _parents() -> "list[tuple[str, str, str, str]]":
    """Folders in which a group may be made, with the names of its files: memory limit, swap limit, events."""
    found = []
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as file:
        for line in file:
            _number, controllers, path = line.rstrip("\n").split(":", 2)
            if "memory" in controllers.split(","):
                files = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"
                found.append((f"/sys/fs/cgroup/memory{path}", *files))
            elif not controllers:
                # A group that has processes gives its children no limits, so they are made beside it.
                parent = f"/sys/fs/cgroup{os.path.dirname(path)}"
                found.append((parent, "memory.max", "memory.swap.max", "memory.events"))
    return found


def _write(path: str, text: str) -> None:
    """Write to a file that the kernel has made: `open` would make a missing one."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def descendants() -> "list[int]":
    """All processes below this one, in any generation, but for the dead."""
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        for pid in _children(todo.pop()):
            if not _dead(pid):
                found.append(pid)
                todo.append(pid)
    return found


def memory(pids: "list[int]") -> float:
    """Return the bytes that processes use together; shared memory counts once."""
    private, shared = 0, 0
    files: dict[tuple[int, int], int] = {}
    for pid in pids:
        numbers = _rollup(pid)
        private += numbers.get("Pss_Anon", 0) + numbers.get("SwapPss", 0)
        shared += numbers.get("Pss_Shmem", 0)
        _add_memory_files(pid, files)
    return private + max(shared, sum(files.values()))


def _add_memory_files(pid: int, files: "dict[tuple[int, int], int]") -> None:
    """Files without a name, in memory, also those that are not mapped."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names[:1024]:
        try:
            if os.readlink(f"{folder}/{name}").startswith("/memfd:"):
                about = os.stat(f"{folder}/{name}")
                files[about.st_dev, about.st_ino] = about.st_blocks * 512
        except OSError:
            pass


def _rollup(pid: int) -> "dict[str, int]":
    numbers = {}
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                words = line.split()
                if len(words) == 3 and words[2] == "kB":
                    numbers[words[0][:-1]] = int(words[1]) * 1024
        return numbers
    except OSError:
        pass
    try:  # not allowed, or an old kernel: its private memory
        with open(f"/proc/{pid}/statm") as file:
            _size, resident, shared, *_rest = map(int, file.read().split())
        return {"Pss_Anon": (resident - shared) * _PAGE}
    except (OSError, ValueError):
        return {}


def _children(pid: int) -> "list[int]":
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    except OSError:
        pass
    return found


def _dead(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (OSError, IndexError):
        return True


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _control(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(option, int(value), 0, 0, 0)


def _become(
    group: ControlGroup, command: "list[str]", environment: "dict[str, str]", folder: str, out: int, err: int
) -> None:
    """Run in the child; never returns."""
    try:
        group.enter()
        os.setsid()
        _control(_DEATH_SIGNAL, signal.SIGKILL)  # in case this guard is killed
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.closerange(3, 64)
        os.chdir(folder)
        os.execve(command[0], command, environment)
    except BaseException as error:  # after any error this process must not go on as a guard
        os.write(2, f"spcomm: {command[0]} cannot be started: {error}\n".encode())
    finally:
        os._exit(127)


def main() -> None:
    """Do the task in the first argument, as JSON."""
    told = json.loads(sys.argv[1])
    # At the end: what this process imports later is Python's own.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from spcomm.launch.base import process

    process.start_clean()
    signal.signal(signal.SIGTERM, _leave)
    _control(_SUBREAPER, 1)
    _control(_DEATH_SIGNAL, signal.SIGTERM)  # when the judge is gone
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the judge gets it, too, and sends us SIGTERM
    # Likewise, and when a judge that was killed led the session of its terminal.
    signal.signal(signal.SIGHUP, lambda *_: None)  # not ignored: the program would inherit that
    try:
        answer = LimitedCommand(told["limits"]).run(told["command"], told["environment"], told["folder"])
    except SystemExit:  # the judge may have been killed, and no other process knows its folder
        import shutil

        shutil.rmtree(told["folder"], ignore_errors=True)
        raise
    sys.stdout.write(json.dumps(answer))


def _leave(_number: int, _frame: object) -> None:
    raise SystemExit(143)


if __name__ == "__main__":
    main()
