# SPDX-License-Identifier: MIT
"""Server of `--watch=browser`: HTTP for one browser on this machine, in a process of its own.

It listens on 127.0.0.1 only, which all users of the machine can reach: the token in the address that is printed keeps
them out. It works once; its use gives that browser a cookie, which everything else needs. `Host` must be this address,
so that no name of somebody else's resolves to it; `Origin`, if there is one, too. Requests are bounded in size, number
and time, and a browser that does not read is disconnected, so nothing that connects can hold up the run, which never
waits for this process before its end. When there are too many connections, the oldest one that has not shown the cookie
makes room: nobody else can keep the browser out.

The first use of the token is answered by a page that goes on to `/` by itself: after a redirect by status a browser
that follows a link from elsewhere does not send a cookie that is SameSite=Strict.
"""

import asyncio
import contextlib
import http
import json
import secrets
from collections import deque
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from typing import Any

_HEAD_BYTES = 8192  # of a request
_HEADERS = 64
_CONNECTIONS = 32
_ACCEPTED = 4  # at a time, so that each is read before so many others come that it makes room for them
_BACKLOG = 128  # connections that the system keeps until they are accepted
_REQUEST_S = 10.0  # for a request to come, and for an answer to be taken
_IDLE_S = 60.0  # between the requests of a connection
_POLL_S = 15.0  # a page that asks for news gets an answer after this time, if there are none
_KEPT_BYTES = 16 << 20  # of pieces, for a page that is loaded again
_PAGES = 64  # that are there at once; each has a number of its own
_END_S = 5.0  # for pages to take the end of the run
_GONE_S = 2.0  # a page that has not asked for so long was closed
_LOOK_S = 0.02
_FOR_ALL = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'",
    ),
)
_USED = "The link has been used. Open it once only; afterwards the page is at / in that browser."
_OK = http.HTTPStatus.OK
_TEXT, _HTML, _JSON = "text/plain; charset=utf-8", "text/html; charset=utf-8", "application/json"


def go_on(url: str) -> str:
    """Return a page that leads a browser to another one."""
    return f'<!doctype html><meta http-equiv="refresh" content="0; url={url}"><a href="{url}">Go on</a>\n'


class Refused(Exception):
    """An answer other than the requested one: its status, and a sentence."""

    def __init__(self, status: http.HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Request:
    """A request that was read to its end, and is well formed."""

    def __init__(self, head: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or words[2] not in ("HTTP/1.1", "HTTP/1.0") or not words[1].startswith("/"):
            raise Refused(http.HTTPStatus.BAD_REQUEST, "This is no request of HTTP/1.1.")
        self.method, target, version = words
        self.headers: dict[str, str] = {}
        fields = lines[1:-2]
        if len(fields) > _HEADERS:
            raise Refused(http.HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "There are too many headers.")
        for line in fields:
            name, colon, value = line.partition(":")
            name = name.lower()
            if any(letter < " " and letter != "\t" for letter in line):
                raise Refused(http.HTTPStatus.BAD_REQUEST, "A header has letters that it may not have.")
            if not colon or not name.replace("-", "").replace("_", "").isalnum() or name in self.headers:
                raise Refused(http.HTTPStatus.BAD_REQUEST, "A header is malformed, or there twice.")
            self.headers[name] = value.strip(" \t")
        self.keeps_alive = version == "HTTP/1.1" and self.headers.get("connection", "").lower() != "close"
        if self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers:
            raise Refused(http.HTTPStatus.BAD_REQUEST, "A request has no content here.")
        try:
            parts = urlsplit(target)
            self.path = parts.path
            self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        except ValueError:
            raise Refused(http.HTTPStatus.BAD_REQUEST, "The address is malformed.") from None

    def cookie(self, name: str) -> str:
        for pair in self.headers.get("cookie", "").split(";"):
            found, _, value = pair.strip().partition("=")
            if found == name:
                return value
        return ""

    def number(self, name: str) -> int:
        """A whole number of the query; 0 if it is not there."""
        text = self.query.get(name, "0")
        if not (text.isascii() and text.isdecimal()) or len(text) > 15:
            raise Refused(http.HTTPStatus.BAD_REQUEST, f"{name} is not a whole number.")
        return int(text)


class Guard:
    """Decides whom to answer."""

    def __init__(self, port: int, token: str) -> None:
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._origins = tuple(f"http://{host}" for host in self._hosts)
        self._token = token
        self._cookie_name = f"spcomm-{port}"  # cookies of all ports come to each
        self._cookie = secrets.token_hex(32)
        self._is_used = False
        self.used: Callable[[], None] | None = None  # called at the first use of the token

    def check(self, request: Request) -> "str | None":
        """Return the cookie to set: the request brought the token, and is to go on to `/`. None: it has the cookie."""
        if request.headers.get("host") not in self._hosts:
            raise Refused(http.HTTPStatus.FORBIDDEN, "Nothing is served under this name.")
        if request.headers.get("origin", self._origins[0]) not in self._origins:
            raise Refused(http.HTTPStatus.FORBIDDEN, "Pages of others may not ask here.")
        if request.method != "GET":
            raise Refused(http.HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is answered.")
        token = request.query.get("token")
        if token is not None and request.path == "/":
            if self._is_used or not _equal(token, self._token):
                raise Refused(http.HTTPStatus.FORBIDDEN, _USED)
            self._is_used = True
            if self.used is not None:
                self.used()
            return f"{self._cookie_name}={self._cookie}; HttpOnly; SameSite=Strict; Path=/"
        if not _equal(request.cookie(self._cookie_name), self._cookie):
            raise Refused(http.HTTPStatus.FORBIDDEN, "Open the link that spcomm has printed.")
        return None


def _equal(found: str, expected: str) -> bool:
    return secrets.compare_digest(found.encode("utf-8", "replace"), expected.encode())


class Pieces:
    """News for pages, numbered from 1: the latest state, and as many pieces of the timeline as fit."""

    def __init__(self) -> None:
        self.count = 0
        self.state: dict[str, Any] = {}
        self.texts: list[str] = []  # of all pieces
        self._kept: deque[bytes] = deque()  # the last one has the number `count`
        self._bytes = 0
        self._changed = asyncio.Event()

    def add(self, state: "dict[str, Any]", piece: "dict[str, Any] | None") -> None:
        self.state = state
        self.count += 1
        self._kept.append(json.dumps(piece, separators=(",", ":")).encode())
        self._bytes += len(self._kept[-1])
        while self._bytes > _KEPT_BYTES and len(self._kept) > 1:
            self._bytes -= len(self._kept.popleft())
        self.notify()

    def notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, after: int) -> None:
        """Wait for something after this number, or for the end, but not for ever."""
        if self.count <= after:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _POLL_S)

    def since(self, after: int) -> bytes:
        """Return the state and all pieces after this number, as JSON. A page that has missed some starts anew."""
        missed = min(max(0, self.count - after), len(self._kept))
        is_new = after == 0 or missed < self.count - after
        if is_new:
            missed = len(self._kept)
        pieces = [piece for piece in list(self._kept)[len(self._kept) - missed :] if piece != b"null"]
        head = json.dumps(
            {
                "number": self.count,
                "state": self.state,
                "is_new": is_new,
                "texts": self.texts if is_new else [],
            }
        )
        return head[:-1].encode() + b',"pieces":[' + b",".join(pieces) + b"]}"


class _Page:
    """A page in the browser that asks for news."""

    def __init__(self) -> None:
        self.asks = 0  # requests that wait for an answer
        self.answered_s = 0.0  # when it had the last one, by the clock of the loop
        self.is_served = False  # it has all that there is

    def is_there(self, now_s: float) -> bool:
        return self.asks > 0 or now_s - self.answered_s < _GONE_S


class Server:
    """Answers requests. `files`: what it serves beside the news: path → type and content."""

    def __init__(self, guard: Guard, files: "dict[str, tuple[str, bytes]]") -> None:
        self.pieces = Pieces()
        self._guard = guard
        self._files = files
        # Oldest first, and whether each has shown the cookie.
        self._connections: dict[asyncio.StreamWriter, bool] = {}
        self._pages: dict[int, _Page] = {}

    async def start(self, sock: "socket.socket") -> None:
        """Serve on a socket that listens."""
        await asyncio.start_server(self._connected, sock=sock, limit=_HEAD_BYTES, backlog=_ACCEPTED)
        sock.listen(_BACKLOG)  # asyncio takes one number for both

    async def wait_for_page(self) -> bool:
        """Wait, not for long, for a page to ask; whether one does."""
        return await self._comes(lambda: bool(self._pages))

    @property
    def has_pages(self) -> bool:
        now_s = asyncio.get_running_loop().time()
        return any(page.is_there(now_s) for page in self._pages.values())

    async def end(
        self, state: "dict[str, Any]", piece: "dict[str, Any] | None", trace: "bytes | None"
    ) -> None:
        """Give the last state, and the page of the trace if there is one, to all pages; not for long."""
        if trace is not None:
            self._files["/trace"] = _TEXT, trace
        self.pieces.add(state, piece)
        await self._comes(self._are_served)

    def _are_served(self) -> bool:
        now_s = asyncio.get_running_loop().time()
        return not any(page.is_there(now_s) and not page.is_served for page in self._pages.values())

    async def _comes(self, condition: "Callable[[], bool]") -> bool:
        end_s = asyncio.get_running_loop().time() + _END_S
        while not condition():
            if asyncio.get_running_loop().time() > end_s:
                return False
            await asyncio.sleep(_LOOK_S)
        return True

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= _CONNECTIONS:
            strangers = (other for other, is_known in self._connections.items() if not is_known)
            left = next(strangers, writer)
            left.transport.abort()
            if left is writer:
                return
            del self._connections[left]
        self._connections[writer] = False
        try:
            patience = _REQUEST_S
            while await self._serve(reader, writer, patience):
                patience = _IDLE_S
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # it has left, or takes too long
        finally:
            self._connections.pop(writer, None)
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, patience: float
    ) -> bool:
        """Answer one request. Return whether the connection may bring another one."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), patience)
            request = Request(head)
            cookie = self._guard.check(request)
            if writer in self._connections:
                self._connections[writer] = True
            if cookie is not None:
                extra = [("Set-Cookie", cookie)]
                await _write(writer, _OK, _HTML, go_on("/").encode(), request.keeps_alive, extra)
            elif request.path == "/live":
                with self._page(request) as page:
                    await self.pieces.wait(request.number("after"))
                    if reader.at_eof():
                        return False  # the page was closed
                    news = self.pieces.since(request.number("after"))
                    await _write(writer, _OK, _JSON, news, request.keeps_alive)
                    page.is_served = bool(self.pieces.state.get("is_over")) and "/trace" not in self._files
            elif request.path == "/trace" and request.path in self._files:
                with self._page(request) as page:
                    await _write(writer, _OK, *self._files["/trace"], request.keeps_alive)
                    page.is_served = True
            else:
                kind, body = self._files.get(request.path, ("", None))
                if body is None:
                    raise Refused(http.HTTPStatus.NOT_FOUND, "There is nothing of this name.")
                status = _OK if body else http.HTTPStatus.NO_CONTENT
                await _write(writer, status, kind, body, request.keeps_alive)
            return request.keeps_alive
        except asyncio.LimitOverrunError:
            refused = Refused(http.HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The request is too long.")
        except Refused as error:
            refused = error
        extra = [("Allow", "GET")] if refused.status == http.HTTPStatus.METHOD_NOT_ALLOWED else []
        await _write(writer, refused.status, _TEXT, f"{refused}\n".encode(), False, extra)
        return False

    @contextlib.contextmanager
    def _page(self, request: Request) -> "Iterator[_Page]":
        """The page that asks, for as long as it waits for the answer."""
        number = request.number("page")
        page = self._pages.get(number)
        if page is None:
            if len(self._pages) >= _PAGES:
                now_s = asyncio.get_running_loop().time()
                self._pages = {at: other for at, other in self._pages.items() if other.is_there(now_s)}
            if len(self._pages) >= _PAGES:
                raise Refused(http.HTTPStatus.SERVICE_UNAVAILABLE, "There are too many pages.")
            page = self._pages[number] = _Page()
        page.asks += 1
        try:
            yield page
            page.answered_s = asyncio.get_running_loop().time()
        finally:
            page.asks -= 1


async def _write(
    writer: asyncio.StreamWriter,
    status: http.HTTPStatus,
    kind: str,
    body: bytes,
    keeps_alive: bool,
    extra: "list[tuple[str, str]] | tuple[()]" = (),
) -> None:
    """Write an answer, until the system has taken all of it."""
    lines = [f"HTTP/1.1 {status.value} {status.phrase}"]
    lines += [f"{name}: {value}" for name, value in (*_FOR_ALL, *extra)]
    lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"Connection: {'keep-alive' if keeps_alive else 'close'}", "", ""]
    writer.transport.set_write_buffer_limits(0)
    writer.write("\r\n".join(lines).encode("latin-1"))
    writer.write(body)
    await asyncio.wait_for(writer.drain(), _REQUEST_S)
