# SPDX-License-Identifier: MIT
"""Files that nodes wrote on the members of a room: listed at the end of a run, and brought back by `--fetch`.

========  ========  ==================================================================================
message   from      meaning
========  ========  ==================================================================================
`files`   box       its nodes have ended: [name, size] of the files that are new or changed; how many
                    there are, their bytes, and how many links and devices. The list may be shorter
`fetch`   launcher  with `--fetch`: the positions in that list of the files to send, in this order
`tar`     box       a piece of a tar of these files, in which each is named by its position
`sent`    box       the tar is over: [position, reason] of each file that cannot be read
========  ========  ==================================================================================

The box is a member's, and the relay, on the launcher's machine, takes nothing for granted: it chooses the files and
counts their bytes; any entry of the tar but the next regular file, with its listed size, ends the transfer. It makes
only folders and regular files, in a fresh folder that gets the member's name at the end.
"""

import errno
import os
import shutil
import stat
import tarfile
from collections import deque
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from spcomm.launch.base.usage import UsageError
from spcomm.launch.remote.framing import one_line
from spcomm.launch.room import folder
from spcomm.text import counted, rounded_size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from spcomm.launch.remote.hosts import RemoteForkClient

LIMIT_BYTES = 256 << 20  # --fetch-limit
MOST_FILES = 10_000  # of all members together
VERBS = ("tar", "sent")
_LISTED_CHARACTERS = 1 << 19  # of all names in a list; in JSON each takes six bytes at most
_SEEN_MOST = 100_000  # files that a box looks at
_NAME_BYTES = 1024
_NAME_PARTS = 32
_PIECE = 1 << 18
_END_BYTES = 2 * tarfile.BLOCKSIZE  # zeros that end a tar
_MALFORMED = "it sent a malformed message"
_SHORTER = "it has become shorter"
_SLOW = 4096  # bytes per second that a member sends at least
SHOWN = 5  # names in a sentence
_SHOWN_CHARACTERS = 60
_OF_THIS_FILE = frozenset(
    (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EILSEQ, errno.EINVAL)
)


# ---- in the box


class Unpacked:
    """The files of a folder that was unpacked: tells later which ones are new or changed."""

    def __init__(self, top: str) -> None:
        self._top = top
        self._id = _id(top)
        self._before = {
            inside: (_state(os.lstat(path)), _digest(path))
            for path, inside in folder.walk(top)
            if not os.path.isdir(path)
        }

    def changed(self) -> "tuple[list[tuple[str, int]], int, int, int]":
        """Return the names and sizes of such files, and the numbers of files, of their bytes and of links and devices.

        There are more files than names if the names are too many for a message.
        """
        entries: list[tuple[str, int]] = []
        count = size = others = characters = 0
        if _id(self._top) != self._id:  # what has its name now, such as a link, was not made for this run
            return entries, count, size, others
        for seen, (path, inside) in enumerate(folder.walk(self._top)):
            try:
                found = os.lstat(path)
                if stat.S_ISDIR(found.st_mode) or self._is_as_before(path, inside, found):
                    continue
            except OSError:  # it cannot be read: sending it will say so
                pass
            if seen >= _SEEN_MOST:
                break
            if not stat.S_ISREG(found.st_mode):
                others += 1
                continue
            count, size, characters = count + 1, size + found.st_size, characters + len(inside)
            if len(entries) < MOST_FILES and characters <= _LISTED_CHARACTERS:
                entries.append((inside, found.st_size))
        return entries, count, size, others

    def _is_as_before(self, path: str, inside: str, found: os.stat_result) -> bool:
        """Whether it has the content that was sent, even if it was written again."""
        state, digest = self._before.get(inside, ((), b""))
        if not state or not stat.S_ISREG(found.st_mode):
            return False
        return state == _state(found) or (state[0] == found.st_size and digest == _digest(path))


def _id(path: str) -> "tuple[int, ...]":
    """Tell a folder from what has taken its place; nothing if it is gone."""
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode)


def _state(found: os.stat_result) -> "tuple[int, ...]":
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _digest(path: str) -> bytes:
    import hashlib

    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()


class Outgoing:
    """Listed files on their way to the launcher, as a tar that is made piece by piece."""

    def __init__(self, top: str, entries: "list[tuple[str, int]]") -> None:
        self._top = top
        self._entries = entries
        self._pieces: Iterator[tuple[list, bytes]] | None = None
        self.is_over = False

    def choose(self, positions: "list[int]") -> None:
        """Send these. Raises `ValueError` for positions that are in no list."""
        if self._pieces is not None or not all(0 <= int(one) < len(self._entries) for one in positions):
            raise ValueError(positions)
        self._pieces = self._packed(list(map(int, positions)))

    def next(self) -> "tuple[list, bytes] | None":
        """Return the next message and its data; None: there is none, or not yet."""
        return None if self._pieces is None else next(self._pieces, None)

    def _packed(self, positions: "list[int]") -> "Iterator[tuple[list, bytes]]":
        unread = []
        for position in positions:
            info = tarfile.TarInfo(str(position))
            name, info.size = self._entries[position]
            try:
                fd = _opened(os.path.join(self._top, name), info.size)
            except OSError as error:
                unread.append([position, error.strerror or str(error)])
                continue
            yield ["tar"], info.tobuf(tarfile.GNU_FORMAT)
            why = ""
            with open(fd, "rb", buffering=0):
                for at in range(0, info.size, _PIECE):
                    piece, why = _read(fd, min(_PIECE, info.size - at), why)
                    yield ["tar"], piece
            if why:
                unread.append([position, why])
            if info.size % tarfile.BLOCKSIZE:
                yield ["tar"], bytes(_padding(info.size))
        yield ["tar"], bytes(_END_BYTES)
        self.is_over = True
        yield ["sent", unread], b""


def _opened(path: str, size: int) -> int:
    """Open a regular file of at least this size. Raises `OSError`."""
    # A FIFO may have taken its place: it is not waited for.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_size >= size:
        return fd
    os.close(fd)
    raise OSError(_SHORTER if stat.S_ISREG(found.st_mode) else "it is no file any more")


def _read(fd: int, size: int, why: str) -> "tuple[bytes, str]":
    """Return so many bytes, with zeros for those that cannot be read any more, and the first reason for that."""
    try:
        piece = os.read(fd, size)
    except OSError as error:
        return bytes(size), why or error.strerror or str(error)
    return piece.ljust(size, b"\0"), why or ("" if len(piece) == size else _SHORTER)


def _padding(size: int) -> int:
    """Return the number of zeros behind a file of that size in a tar."""
    return -size % tarfile.BLOCKSIZE


# ---- in the relay


def refusal(name: str) -> str:
    """Return why no file of this name is made here; empty: one can be."""
    parts = name.split("/")
    if name.startswith("/"):
        return "its name is absolute"
    if "" in parts or os.curdir in parts or os.pardir in parts:
        return "its name leads out of the folder"
    if not name.isprintable():  # control characters, those that reverse or hide text, bytes that are no text
        return "its name has characters that cannot be printed"
    if len(os.fsencode(name)) > _NAME_BYTES or len(parts) > _NAME_PARTS:
        return "its name is too long"
    kept = next((part for part in parts if part.casefold() in folder.LEFT_OUT), "")
    return f"folders and files named {kept} are never sent" if kept else ""


class _RegularFile(tarfile.TarInfo):
    """An entry of a tar that has nothing else: no links, devices or folders, and no headers of any length."""

    @classmethod
    def frombuf(cls, buf: bytes, encoding: str, errors: str) -> "_RegularFile":
        info = super().frombuf(buf, encoding, errors)
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise ValueError(info.type)
        return info


class Incoming:
    """Files of one member: a thread unpacks their tar into a fresh folder, which gets its name at the end."""

    def __init__(self, top: str, place: str, entries: list, count: int, files: int, size: int) -> None:
        """`top`: the folder of `--fetch`; `place`: of this member in it. `count`: of its files, of which `entries` are
        listed; so many files and bytes may come. Raises `ValueError` for entries that are none."""
        self.wanted: list[int] = []
        self.left: list[tuple[str, str]] = []  # names, and why they are not stored
        self.trouble = ""  # why no more files come
        self.is_over = False
        self.came = 0  # bytes, to see whether they still come
        self._entries = entries
        self._unlisted = count - len(entries)
        self._stored: list[int] = []
        self._most = _END_BYTES  # bytes of the tar
        for position, (name, length) in enumerate(entries):
            why = refusal(name)
            if not why and length > size:
                why = f"{rounded_size(length)}, beyond --fetch-limit"
            elif not why and files < 1:
                why = f"beyond the {MOST_FILES} files of all members"
            if why:
                self.left.append((name, why))
                continue
            self.wanted.append(position)
            self._most += tarfile.BLOCKSIZE + length + _padding(length)
            files, size = files - 1, size - length
        self._coming = deque(self.wanted)  # in the tar
        self._missing = {*self.wanted}  # neither stored nor left
        self._place = os.path.join(top, place)
        self._fresh = os.path.join(top, f".spcomm-{os.urandom(8).hex()}.part")
        self._storing = place
        reading, self._writing = os.pipe()
        self._thread = Thread(target=self._unpack, args=(reading,), daemon=True)
        self._thread.start()

    def take(self, verb: str, rest: list, data: bytes) -> None:
        """Take a message. Raises `ValueError` for one that is not due."""
        if self.is_over:
            raise ValueError(verb)
        if verb == "sent":
            unread = {position: one_line(why, 100) for position, why in rest[0]}
            if not unread.keys() <= {*self.wanted}:
                raise ValueError(rest)
            self._finish(unread)
            return
        self.came += len(data)
        if not data or self.came > self._most:
            raise ValueError(self.came)
        try:
            while data:
                data = data[os.write(self._writing, data) :]
        except BrokenPipeError:  # the thread has ended, and left the reason
            self._finish({})

    def give_up(self, why: str) -> None:
        """Take nothing more, and keep the files that are complete."""
        self.trouble = self.trouble or why
        self._finish({})

    def _finish(self, unread: "dict[int, str]") -> None:
        """Let the thread unpack what has come, and name the folder."""
        if self.is_over:
            return
        self.is_over = True
        os.close(self._writing)
        self._thread.join()
        try:
            for position, why in unread.items():
                self._leave_out(position, f"cannot be read: {why}")
            if self._stored:
                os.rename(self._fresh, self._place)
        except OSError as error:
            self.trouble = self.trouble or _not_stored(os.path.basename(self._place), error)
            self._stored.clear()
        if self._missing:
            self.trouble = self.trouble or _MALFORMED
        shutil.rmtree(self._fresh, ignore_errors=True)

    def _leave_out(self, position: int, why: str) -> None:
        """Leave a file out, and remove it if it is stored: its end could not be read."""
        name, _size = self._entries[position]
        if position in self._stored:
            self._stored.remove(position)
            os.unlink(os.path.join(self._fresh, name))
        elif position not in self._missing:  # it is left out already
            return
        self._missing.discard(position)
        self.left.append((name, why))

    # In the thread

    def _unpack(self, reading: int) -> None:
        try:
            with open(reading, "rb") as stream:
                os.mkdir(self._fresh)
                with tarfile.open(fileobj=stream, mode="r|", tarinfo=_RegularFile) as archive:
                    for info in archive:
                        self._extract(archive, info)
        except OSError as error:
            self.trouble = self.trouble or _not_stored(self._storing, error)
        except (IndexError, ValueError, tarfile.TarError):
            self.trouble = self.trouble or _MALFORMED

    def _extract(self, archive: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        """Extract the next file, or one behind it: those between cannot be read. `IndexError`: there is none."""
        position = int(info.name)
        while self._coming.popleft() != position:
            pass
        self._storing, size = self._entries[position]
        info.name = self._storing
        path = os.path.join(self._fresh, self._storing)
        if info.size != size:
            raise ValueError(info.size)
        if os.path.lexists(path):
            self._leave_out(position, "another file has that name here")
            return
        try:
            archive.extract(info, self._fresh, set_attrs=False, **folder.DATA_FILTER)
        except (OSError, tarfile.TarError) as error:
            with suppress(OSError):
                os.unlink(path)
            if getattr(error, "errno", None) not in _OF_THIS_FILE:
                raise
            self._leave_out(position, _sentence(error))
            return
        self._missing.remove(position)
        self._stored.append(position)

    def report(self) -> "tuple":
        """Return what the launcher is told: what was stored, how many, their bytes; what was left out, how many; why
        no more came."""
        stored = [self._entries[position] for position in self._stored]
        names, size = [shown(name) for name, _size in stored[:SHOWN]], sum(size for _name, size in stored)
        left = [(shown(name), why) for name, why in self.left[:SHOWN]]
        missing = len(self.left) + self._unlisted
        return names, len(stored), size, left, missing, one_line(self.trouble, 200)


def _not_stored(name: str, error: OSError) -> str:
    return f"{name} cannot be stored: {error.strerror or error}"


def _sentence(error: OSError) -> str:
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return "a file or a link here has the name of its folder"
    return error.strerror or str(error)


def is_too_slow(bytes_came: int, seconds: float) -> bool:
    """Whether a member sent less in this time than any network carries."""
    return bytes_came < _SLOW * seconds


def check_list(entries: list, count: int, size: int, others: int) -> None:
    """Raise `ValueError` for a list that no box makes."""
    numbers = [count, size, others, *(length for _name, length in entries)]
    if (
        not all(type(number) is int and 0 <= number < 1 << 63 for number in numbers)
        or not all(isinstance(name, str) and name for name, _length in entries)
        or not len(entries) <= min(count, MOST_FILES)
    ):
        raise ValueError("files")


def shown(name: str) -> str:
    """Return a name for a sentence."""
    text = one_line(name, _SHOWN_CHARACTERS + 1)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


# ---- in the launcher


def check_empty(given: str) -> None:
    """Raise `UsageError` if the folder of `--fetch` is there and not empty.

    So a file that is there after the run is of this run, and none was overwritten.
    """
    try:
        found = os.listdir(given)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unusable(given, error) from None
    if found:
        raise UsageError(
            f"spcomm run: --fetch {given}: is not empty, and what is there is never overwritten; give another folder, "
            "or remove that one"
        )


def _unusable(given: str, error: OSError) -> UsageError:
    why = "is a file" if isinstance(error, (FileExistsError, NotADirectoryError)) else error.strerror
    return UsageError(f"spcomm run: --fetch {given}: must be a new or an empty folder ({why})")


def places(names: "list[str]") -> "dict[str, str]":
    """Return a name of a folder for each member: theirs come from other machines."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
        place = first = safe.lstrip(".-")[:40] or "member"
        number = 1
        while place.casefold() in taken:
            number += 1
            place = f"{first}-{number}"
        taken.add(place.casefold())
        found[name] = place
    return found


class RoomFiles:
    """The lists of the members of a run, and what became of their files."""

    def __init__(self, given: "str | None", limit: "int | None") -> None:
        """`given`: the folder of `--fetch`, if any. Raises `UsageError` if it is not empty."""
        if given is not None:
            check_empty(given)
        self._given = given
        self._is_made = False
        self._names: list[str] = []
        self.places: dict[str, str] = {}
        self._free = [MOST_FILES, LIMIT_BYTES if limit is None else limit]
        self._granted: dict[str, tuple[int, ...]] = {}
        self._fetching: dict[str, RemoteForkClient] = {}
        self._listed: dict[str, tuple[list[str], int, int]] = {}  # names, files, others
        self._fetched: dict[str, tuple] = {}  # as of `Incoming.report`

    def expect(self, names: "list[str]") -> None:
        """Expect lists of these members, and make the folder. Raises `UsageError`."""
        self._names, self.places = names, places(names)
        if self._given is None:
            return
        self._is_made = not os.path.exists(self._given)
        try:
            os.makedirs(self._given, exist_ok=True)
            if not os.access(self._given, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise _unusable(self._given, error) from None

    @property
    def top(self) -> "str | None":
        """The folder of `--fetch`, wherever it is looked for from."""
        return None if self._given is None else os.path.abspath(self._given)

    @property
    def is_fetching(self) -> bool:
        return bool(self._fetching)

    def listed(
        self, client: "RemoteForkClient", names: "list[str]", count: int, sizes: "list[int]", others: int
    ) -> None:
        """Take a member's list, and with `--fetch` order the files from its relay, as far as the limit goes.

        A file that is too large must not keep the limit from the files of other members, so what is granted is the sum
        of those that fit, as `Incoming` chooses them.
        """
        member = client.host.name
        self._listed[member] = names, count, others
        if self._given is None or not count:
            return
        files, size = self._free
        for length in sizes:
            if files and length <= size:
                files, size = files - 1, size - length
        used = self._free[0] - files, self._free[1] - size
        granted = used if files else tuple(self._free)  # the size is not what keeps too many of them out
        self._free = [free - some for free, some in zip(self._free, used, strict=True)]
        self._granted[member] = used
        self._fetching[member] = client
        client.fetch(*granted)

    def fetched(self, client: "RemoteForkClient", *report: "Any") -> None:
        """Take the relay's report: nothing more comes from this member."""
        member = client.host.name
        del self._fetching[member]
        self._fetched[member] = report
        _names, count, size, *_more = report
        used = count, size
        self._free = [
            free + some - one for free, some, one in zip(self._free, self._granted[member], used, strict=True)
        ]

    def stop(self) -> None:
        """Fetch nothing more."""
        for client in self._fetching.values():
            client.stop_fetching()

    def progress(self) -> str:
        """Return a sentence for the terminal, in which files come."""
        count = sum(self._granted[member][0] for member in self._fetching)
        size = sum(self._granted[member][1] for member in self._fetching)
        whose = _several(list(self._fetching), len(self._fetching))
        return (
            f"fetching {counted(count, 'file')}, {rounded_size(size)}, of {whose} …; Ctrl-C does without them"
        )

    def report(self, ended_well: bool) -> "tuple[str, bool]":
        """Return sentences for the end of a run, and whether files are missing that `--fetch` was to bring."""
        if self._given is None:
            return self._report_listed(), False
        missing = "; ".join(self._missing(ended_well)[:SHOWN])
        code = " (exit code 125)" if ended_well else ""
        return self._report_stored() + (f"spcomm: {missing}{code}\n" if missing else ""), bool(missing)

    def _report_listed(self) -> str:
        names = [
            f"{name} ({one_line(member, _SHOWN_CHARACTERS)})"
            for member in self._names
            for name in self._listed.get(member, ((),))[0]
        ]
        count = sum(listed[1] for listed in self._listed.values())
        if not count:
            return ""
        them = "it" if count == 1 else "them"
        return f"{_wrote(count)} gone: {_several(names, count)}; spcomm run --fetch FOLDER brings {them}\n"

    def _report_stored(self) -> str:
        names = [
            f"{self.places[member]}/{name}"
            for member in self._names
            for name in self._fetched.get(member, ((),))[0]
        ]
        count = sum(fetched[1] for fetched in self._fetched.values())
        if not count:
            return ""
        return f"{_wrote(count)} in {self._given}: {_several(names, count)}{self._others()}\n"

    def _others(self) -> str:
        others = sum(listed[2] for listed in self._listed.values())
        return f"; without {counted(others, 'link or device', 'links and devices')}" if others else ""

    def _missing(self, ended_well: bool) -> "list[str]":
        """Return what is missing, and why."""
        left = [
            f"{name} ({one_line(member, _SHOWN_CHARACTERS)}: {why})"
            for member in self._names
            for name, why in self._fetched.get(member, ((),) * 4)[3]
        ]
        count = sum(fetched[4] for fetched in self._fetched.values())
        parts = [f"{counted(count, 'file')} not fetched: {_several(left, count)}"] if count else []
        for member in self._names:
            whose = one_line(member, _SHOWN_CHARACTERS)
            if member not in self._listed and ended_well:
                parts.append(f"files of {whose} not fetched: it listed none")
            _names, stored, _size, _left, missing, trouble = self._fetched.get(member, ((), 0, 0, (), 0, ""))
            if trouble:
                lost = counted(self._listed[member][1] - stored - missing, "file")
                parts.append(f"{lost} of {whose} not fetched: {trouble}")
        return parts

    def close(self) -> None:
        """Mark the folder of `--fetch`, so later runs do not send it; remove it if it was made for nothing."""
        if self._given is None:
            return
        try:
            if any(report[1] for report in self._fetched.values()):
                with open(os.path.join(self._given, folder.FETCHED), "x") as file:
                    file.write(
                        "spcomm run --fetch made this folder; --room does not send it while this file is here\n"
                    )
            elif self._is_made:
                os.rmdir(self._given)
        except OSError:  # the disk is full, or the folder has files of others
            pass


def _wrote(count: int) -> str:
    return f"spcomm: {'1 file that a node wrote is' if count == 1 else f'{count} files that nodes wrote are'}"


def _several(names: "list[str]", count: int) -> str:
    more = count - len(names[:SHOWN])
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more else "")
