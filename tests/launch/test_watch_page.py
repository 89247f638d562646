# SPDX-License-Identifier: MIT
"""`--watch=browser`: whom its server answers, that nobody can hold up the run, and what a browser shows."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import threading

import pytest

import browser
from spcomm.launch.base import wire
from spcomm.launch.supervise import watch_page, watch_server
from spcomm.launch.supervise.watch_server import Guard, Pieces, Server

TOKEN = "a" * 64
WATCHDOG_S = 60.0
# Goes on when it is told to, on node 0.
TOLD = """
import sys, spcomm
comm = spcomm.startup()
with comm.region("first"):
    comm.send([comm.rank], (comm.rank + 1) % comm.size, tag=7)
    comm.recv(tag=7)
print("begins", flush=True)
if comm.rank == 0:
    sys.stdin.readline()
comm.barrier()
"""


def answer(sock, head):
    """The answer to these bytes: status, headers, content."""
    sock.sendall(head)
    response = http.client.HTTPResponse(sock)
    response.begin()
    return response.status, response.headers, response.read()


class Served:
    """A server in a thread of its own, and the pieces it has. `connect` is called before it accepts anything."""

    def __init__(self, connect=lambda _port: None):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        sock = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port = sock.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.used = []
        guard = Guard(self.port, TOKEN)
        guard.used = lambda: self.used.append(True)
        self.server = Server(
            guard, {"/": ("text/html", b"<p>the page"), "/favicon.ico": ("image/x-icon", b"")}
        )
        connect(self.port)
        self._thread.start()
        self.call(self.server.start(sock))

    def call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WATCHDOG_S)

    def soon(self, function, *arguments):
        self._loop.call_soon_threadsafe(function, *arguments)

    def close(self):
        async def end():
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self.call(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def raw(self, head):
        """The answer to these bytes: status, headers, content."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=WATCHDOG_S) as sock:
            return answer(sock, head)

    def get(self, target, method="GET", version="HTTP/1.1", **headers):
        lines = [f"{method} {target} {version}", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
        return self.raw("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def enter(self):
        """Use the token; return the cookie."""
        status, headers, _body = self.get(f"/?token={TOKEN}", Host=self.host)
        assert status == 200
        return headers["Set-Cookie"].partition(";")[0]


@pytest.fixture
def served():
    found = Served()
    yield found
    found.close()


@pytest.fixture
def inside(served):
    """One that is let in: its function `ask` has host and cookie."""
    cookie = served.cookie = served.enter()
    served.ask = lambda target, **more: served.get(target, **{"Host": served.host, "Cookie": cookie, **more})
    return served


def test_the_token_becomes_a_cookie_once(served):
    status, headers, body = served.get(f"/?token={TOKEN}", Host=served.host)
    name, *attributes = headers["Set-Cookie"].split("; ")
    assert status == 200 and TOKEN not in headers["Set-Cookie"]
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict"]
    # It goes on by itself to an address without the token, as a page of this server, which the cookie is for.
    assert b'http-equiv="refresh" content="0; url=/"' in body and TOKEN.encode() not in body
    assert served.used == [True]
    assert served.get(f"/?token={TOKEN}", Host=served.host)[0] == 403
    assert served.get(f"/?token={TOKEN}", Host=served.host, Cookie=name)[0] == 403
    status, headers, body = served.get("/", Host=served.host, Cookie=f"other=1; {name}")
    assert (status, body) == (200, b"<p>the page") and "Set-Cookie" not in headers
    assert served.used == [True]


@pytest.mark.parametrize("token", ["", "b" * 64, "a" * 63, "a" * 65, "%ff", "ä"])
def test_another_token_is_refused(served, token):
    status, headers, _body = served.get(f"/?token={token}".encode().decode("latin-1"), Host=served.host)
    assert status == 403 and "Set-Cookie" not in headers
    served.enter()  # and the right one is not used up


@pytest.mark.parametrize(
    "path", ["/", "/live", "/trace", "/nothing", "/favicon.ico", "/?x=1", "//", f"/live?token={TOKEN}"]
)
@pytest.mark.parametrize("cookie", [None, "", "spcomm-{port}=", "spcomm-{port}={token}", "other={cookie}"])
def test_all_else_needs_the_cookie(served, path, cookie):
    value = served.enter().partition("=")[2]
    more = {} if cookie is None else {"Cookie": cookie.format(port=served.port, token=TOKEN, cookie=value)}
    status, _headers, body = served.get(path, Host=served.host, **more)
    assert status == 403 and b"the page" not in body


@pytest.mark.parametrize(
    "host",
    [
        "",
        "127.0.0.1",
        "localhost",
        "evil.example:{port}",
        "127.0.0.1:{port}.evil.example",
        "127.0.0.1:1",
        "[::1]:{port}",
        "0.0.0.0:{port}",
    ],
)
def test_other_names_are_refused(inside, host):
    """A name of somebody else's that resolves to this machine (DNS rebinding)."""
    for target in ("/", f"/?token={TOKEN}"):
        status, headers, body = inside.ask(target, Host=host.format(port=inside.port))
        assert status == 403 and b"the page" not in body and "Set-Cookie" not in headers


def test_both_names_of_this_machine_are_served(inside):
    assert inside.ask("/", Host=f"localhost:{inside.port}")[0] == 200
    assert inside.ask("/")[0] == 200


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1:1", ""]
)
def test_pages_of_others_are_refused(inside, origin):
    assert inside.ask("/", Origin=origin.format(port=inside.port))[0] == 403
    assert inside.ask("/", Origin=f"http://{inside.host}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT", "OPTIONS", "CONNECT", "get", "X"])
def test_only_get_is_answered(inside, method):
    with socket.create_connection(("127.0.0.1", inside.port), timeout=WATCHDOG_S) as sock:
        sock.sendall(f"{method} / HTTP/1.1\r\nHost: {inside.host}\r\n\r\n".encode())
        assert sock.makefile("rb").read().startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 400),
        (b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nBad name: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: a\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: 1\r\n" % at for at in range(70)) + b"\r\n", 431),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n\r\n", 403),
    ],
)  # fmt: skip
def test_what_is_no_proper_request_is_refused(served, head, status):
    with contextlib.suppress(ConnectionResetError):  # the rest of a long one was not read
        assert served.raw(head)[0] == status
    served.enter()


@pytest.mark.parametrize("query", ["after=-1", "after=x", "after=1e3", "after=" + "9" * 99, "page=%C2%B2"])
def test_numbers_are_numbers(inside, query):
    assert inside.ask(f"/live?{query}")[0] == 400


def test_every_answer_is_kept_from_others(served):
    cookie = served.enter()
    for target, more in (
        ("/", {"Cookie": cookie}),
        ("/", {}),
        ("/favicon.ico", {"Cookie": cookie}),
        ("/x", {"Cookie": cookie}),
    ):
        headers = served.get(target, Host=served.host, **more)[1]
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers and "Server" not in headers


@contextlib.contextmanager
def connected(served, count, beside=0):
    """So many connections, in the order in which the server accepts them, once those that were closed are gone."""
    while len(served.server._connections) > beside:
        pass
    with contextlib.ExitStack() as stack:
        address = ("127.0.0.1", served.port)
        connect = socket.create_connection
        yield [stack.enter_context(connect(address, timeout=WATCHDOG_S)) for _ in range(count)]


def is_hung_up(sock):
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def test_strangers_make_room_for_the_browser(inside):
    """A silent connection, or one without a cookie, keeps nobody out: the oldest of them is dropped."""
    ask = f"GET / HTTP/1.1\r\nHost: {inside.host}\r\nCookie: {inside.cookie}\r\n\r\n".encode()
    with connected(inside, 1) as [known]:
        assert answer(known, ask)[0] == 200
        with connected(inside, 100, beside=1) as many:
            for _round in range(3):
                assert inside.ask("/")[0] == 200
            assert all(is_hung_up(sock) for sock in many[:69])
            assert answer(many[-1], b"x\r\n\r\n")[0] == 400, "the youngest are still heard"
        assert answer(known, ask)[0] == 200, "a connection with the cookie stays"


def test_strangers_that_come_all_at_once_do_not_push_out_the_browser():
    """It is among those that the system has for the server, and is answered before they make it leave."""
    with contextlib.ExitStack() as stack:

        def connect(port):
            many = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(150)]
            many[75].sendall(f"GET /?token={TOKEN} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            browsers.append(many[75])

        browsers = []
        served = Served(connect)
        status = answer(browsers[0], b"")[0]
    while served.server._connections:
        pass
    served.close()
    assert status == 200


def test_a_page_may_be_loaded_again_and_again(inside, monkeypatch):
    """Each time it has another number; those that have gone make room."""
    monkeypatch.setattr("spcomm.launch.supervise.watch_server._GONE_S", 0)
    inside.soon(inside.server.pieces.add, {"rows": []}, {"until": 1})
    assert [inside.ask(f"/live?after=0&page={number}")[0] for number in range(100)] == [200] * 100
    assert len(inside.server._pages) <= 64


def test_connections_with_the_cookie_are_bounded(inside):
    """More are hung up on; when one has gone there is room again."""
    ask = f"GET / HTTP/1.1\r\nHost: {inside.host}\r\nCookie: {inside.cookie}\r\n\r\n".encode()
    with connected(inside, 32) as many:
        assert [answer(sock, ask)[0] for sock in many] == [200] * 32
        with socket.create_connection(("127.0.0.1", inside.port), timeout=WATCHDOG_S) as more:
            assert is_hung_up(more)
        assert answer(many[0], b"x\r\n\r\n")[0] == 400
        assert is_hung_up(many[0]) and inside.ask("/")[0] == 200


def test_news_come_at_once_and_only_new_ones(inside):
    inside.soon(inside.server.pieces.add, {"rows": []}, {"until": 1})
    first = json.loads(inside.ask("/live?after=0&page=1")[2])
    assert (first["number"], first["pieces"], first["is_new"]) == (1, [{"until": 1}], True)
    inside.soon(inside.server.pieces.add, {"rows": [1]}, {"until": 2})
    second = json.loads(inside.ask("/live?after=1&page=1")[2])
    assert (second["number"], second["pieces"], second["is_new"]) == (2, [{"until": 2}], False)
    assert second["state"] == {"rows": [1]}


def test_a_page_that_waits_hears_of_the_end(inside):
    """And until it has the trace, the end waits for it."""
    answers = []
    page = threading.Thread(target=lambda: answers.append(inside.ask("/live?after=0&page=1")))
    page.start()
    while not inside.server._pages:
        pass
    ending = asyncio.run_coroutine_threadsafe(
        inside.server.end({"is_over": True}, None, b"<html>"), inside._loop
    )
    page.join()
    assert json.loads(answers[0][2])["state"]["is_over"] and not ending.done()
    assert inside.ask("/trace?page=1")[2] == b"<html>"
    ending.result(WATCHDOG_S)


def test_old_pieces_make_room(monkeypatch):
    monkeypatch.setattr("spcomm.launch.supervise.watch_server._KEPT_BYTES", 100)

    async def fill():
        pieces = Pieces()
        for number in range(1, 31):
            pieces.add({}, {"until": number})
        return pieces

    pieces = asyncio.run(fill())
    for after, is_new in ((0, True), (5, True), (30, False), (29, False), (99, False)):
        found = json.loads(pieces.since(after))
        assert (found["number"], found["is_new"]) == (30, is_new)
        numbers = [piece["until"] for piece in found["pieces"]]
        assert (
            numbers == list(range(after + 1, 31))
            if not is_new
            else numbers[-1] == 30 and 1 < len(numbers) < 10
        )


# Runs


def begun(launch, *options, nodes=2, text=TOLD, name="program.py"):
    """A run that waits for a line, once all its nodes have begun; and the address and the token it has printed."""
    process = launch.start(
        "-n", nodes, "--watch=browser", *options, launch.script(text, name), stdin=subprocess.PIPE
    )
    found = re.fullmatch(
        rb"spcomm: watch this run at http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{64})\n",
        process.stderr.readline(),
    )
    for _node in range(nodes):
        process.stdout.readline()
    return process, int(found[1]), found[2].decode()


class Client:
    """A browser without a screen."""

    def __init__(self, port, token):
        self.port = port
        status, headers, _body = self._get(f"/?token={token}", {})
        assert status == 200
        self._cookie = headers["Set-Cookie"].partition(";")[0]

    def _get(self, target, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WATCHDOG_S)
        with contextlib.closing(connection):
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def get(self, target):
        status, _headers, body = self._get(target, {"Cookie": self._cookie})
        return status, body

    def until(self, condition):
        """The news that fulfil this."""
        after = 0
        while True:
            found = json.loads(self.get(f"/live?after={after}&page=5")[1])
            after = found["number"]
            if condition(found):
                return found


def test_a_run_is_shown_and_becomes_its_trace(launch):
    process, port, token = begun(launch)
    client = Client(port, token)
    assert b"page.js" in client.get("/")[1] and b"timeline" in client.get("/page.js")[1]
    found = client.until(lambda news: any(row[3] for row in news["state"]["rows"]))
    rows = found["state"]["rows"]
    assert (
        [row[0] for row in rows] == ["0", "1"] and rows[1][1] == "waits" and rows[1][3].startswith("barrier")
    )
    assert rows[1][4].startswith("program.py:")
    process.stdin.write(b"\n")
    client.until(lambda news: news["state"].get("is_over"))
    status, page = client.get("/trace?page=5")
    assert status == 200 and b"default-src 'none'" in page and b'"barrier"' in page
    result = launch.finish(process)
    assert (result.code, result.err) == (0, "")
    with pytest.raises(ConnectionRefusedError):
        client.get("/")


@pytest.mark.linux("reads /proc")
def test_only_this_address_is_bound(launch):
    process, port, _token = begun(launch)
    with open(f"/proc/{process.pid}/net/tcp") as tcp, open(f"/proc/{process.pid}/net/tcp6") as tcp6:
        listening = [line.split()[1] for line in [*tcp, *tcp6] if line.split()[3] == "0A"]
    assert [address for address in listening if address.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]
    process.stdin.write(b"\n")
    assert launch.finish(process).code == 0


@pytest.mark.linux("reads /proc")
def test_the_token_is_where_only_its_user_reads_it(launch):
    """No process of the run has it on its command line or in its environment."""
    process, _port, token = begun(launch)
    assert len(launch.alive()) >= 4
    for pid in launch.alive():
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as file:
                assert token.encode() not in file.read()
    process.stdin.write(b"\n")
    assert launch.finish(process).code == 0


def test_a_browser_gets_the_link_in_a_file(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    link = watch_page._LinkFile("http://127.0.0.1:1/?token=abc")
    link.open()
    [address] = opened
    path = address.removeprefix("file://")
    assert "abc" not in address and stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path) as file:
        assert 'content="0; url=http://127.0.0.1:1/?token=abc"' in file.read()
    link.remove()
    link.remove()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("what", ["silent", "half a request", "asks and does not read"])
@pytest.mark.slow
def test_a_browser_that_hangs_does_not_hold_up_the_run(launch, what):
    process, port, token = begun(launch)
    client = Client(port, token)
    with socket.create_connection(("127.0.0.1", port)) as sock:
        if what == "half a request":
            sock.sendall(b"GET / HT")
        elif what != "silent":
            head = f"Host: 127.0.0.1:{port}\r\nCookie: {client._cookie}"
            sock.sendall(f"GET /live?after=999999&page=3 HTTP/1.1\r\n{head}\r\n\r\n".encode())
        process.stdin.write(b"\n")
        assert launch.finish(process).code == 0


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("raise ValueError('mine')", 1),
        ("comm.recv(source=0)", 99),
        ("import os; os.kill(os.getpid(), 9)", 137),
    ],
)
def test_a_run_that_fails_ends_as_without_it(launch, end, code):
    """The page gets the trace of what there was."""
    process, port, token = begun(launch, text=f"{TOLD}\nif comm.rank == 0: {end}\n")
    client = Client(port, token)
    client.until(lambda news: news["number"] > 0)
    process.stdin.write(b"\n")
    assert client.until(lambda news: news["state"].get("is_over"))["state"]["code"] == code
    assert client.get("/trace?page=5")[0] == 200
    result = launch.finish(process)
    assert (result.code == code and f"exit code {code}" in result.last) or code == 99


@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_nothing_outlives_the_launcher(launch, name):
    process, port, token = begun(launch)
    client = Client(port, token)
    process.send_signal(getattr(signal, name))
    launch.finish(process)
    launch.wait_until_nothing_is_left()
    with pytest.raises(ConnectionRefusedError):
        client.get("/")


@pytest.mark.linux("reads /proc")
def test_without_its_page_the_run_goes_on(launch):
    process, _port, _token = begun(launch)
    [page] = [pid for pid in launch.alive() if open(f"/proc/{pid}/comm").read() == "spcomm-watch\n"]
    os.kill(page, 9)
    process.stdin.write(b"\n")
    result = launch.finish(process)
    assert result.code == 0 and "the page of --watch=browser has ended early, by SIGKILL" in result.err


@pytest.mark.linux("reads /proc")
@pytest.mark.slow
def test_a_page_that_is_stopped_does_not_hold_up_the_end(launch):
    process, port, token = begun(launch)
    client = Client(port, token)
    client.until(lambda news: news["number"] > 0)
    [page] = [pid for pid in launch.alive() if open(f"/proc/{pid}/comm").read() == "spcomm-watch\n"]
    os.kill(page, signal.SIGSTOP)
    process.stdin.write(b"\n")
    result = launch.finish(process)
    assert result.code == 0 and "early" not in result.err


def test_the_end_does_not_wait_for_the_pause_after_a_look():
    """The last message is taken while the process is not ready for another look."""

    async def follow():
        ours, theirs = socket.socketpair()
        served = Server(Guard(1, TOKEN), {})
        about = {"here": {}, "places": [0]}
        with ours, pytest.MonkeyPatch.context() as patch:
            patch.setattr(watch_page, "_SHARE", 1e12)
            reader, writer = await asyncio.open_unix_connection(sock=theirs)
            ours.sendall(wire.encoded(("look", {}, [])) + wire.encoded(("end", {}, [], "none")))
            await asyncio.wait_for(
                watch_page._follow(reader, writer, served, about, is_opened=False), WATCHDOG_S
            )
            writer.close()
        assert served.pieces.count == 1

    asyncio.run(follow())


@pytest.mark.parametrize(
    ("has_page", "is_opened", "words"),
    [(False, False, []), (False, True, ["browser was told to open"]), (True, True, ["page that is open"])],
)
def test_a_slow_end_says_what_it_waits_for(monkeypatch, capfd, has_page, is_opened, words):
    """And nothing of a page, if there is none."""
    monkeypatch.setattr(watch_page, "_QUICK_S", -1.0)  # every end is a slow one
    monkeypatch.setattr(watch_server, "_END_S", -1.0)  # the page never takes it
    ours, theirs = socket.socketpair()

    async def follow():
        served = Server(Guard(1, TOKEN), {})
        if has_page:
            served._pages[1] = watch_server._Page()
            served._pages[1].asks = 1
        reader, writer = await asyncio.open_unix_connection(sock=theirs)
        await watch_page._follow(reader, writer, served, {"here": {}, "places": [0]}, is_opened)
        writer.close()

    process = threading.Thread(target=lambda: asyncio.run(follow()), daemon=True)
    process.start()
    page = object.__new__(watch_page.WatchPage)
    vars(page).update(_wire=ours, _pid=os.getpid(), _left=b"", last=([], 0.0))
    vars(page).update(_is_ready=False, _is_gone=False, _holds_up=b"")
    ours.setblocking(False)
    with ours:
        page.finish("none", "", 0)
    process.join(WATCHDOG_S)
    said = capfd.readouterr().err.splitlines()
    assert [word in sentence for word, sentence in zip(words, said, strict=True)] == [True] * len(words), said


def test_a_full_disk_leaves_the_link_on_the_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    assert watch_page._link_file("http://127.0.0.1:1/?token=abc") is None
    made = os.open("/dev/full", os.O_WRONLY)
    (tmp_path / "link.html").touch()
    monkeypatch.setattr("tempfile.mkstemp", lambda *_: (made, str(tmp_path / "link.html")))
    assert watch_page._link_file("http://127.0.0.1:1/?token=abc") is None
    assert os.listdir(tmp_path) == []


def test_it_goes_with_other_options(launch):
    process, port, token = begun(launch, "--boxes", 2, "--trace", "t.json", "--virtual", "--stats")
    client = Client(port, token)
    assert client.until(lambda news: any(piece["tracks"] for piece in news["pieces"]))
    process.stdin.write(b"\n")
    assert client.until(lambda news: news["state"].get("is_over"))["state"]["saved"] == "t.json"
    assert client.get("/trace?page=5")[0] == 200
    result = launch.finish(process)
    assert result.code == 0 and (launch.folder / "t.json").exists() and "virtual" in result.err


@pytest.mark.slow
def test_a_node_in_pdb_is_shown(launch):
    """The prompt has the terminal, the page has the others, and both come to the same end."""
    process = launch.start(
        "-n", 3, "--watch=browser", "--debug=1", launch.script(TOLD.replace("sys.stdin.readline()", "pass")),
        stdin=subprocess.PIPE,
    )  # fmt: skip
    link = re.search(rb":(\d+)/\?token=(\w+)\n", process.stderr.readline())
    client = Client(int(link[1]), link[2].decode())
    client.until(lambda news: [row[1] for row in news["state"]["rows"]] == ["waits", "sleeps", "waits"])
    process.stdin.write(b"continue\n")
    assert client.until(lambda news: news["state"].get("is_over"))["state"]["code"] == 0
    assert client.get("/trace?page=5")[0] == 200
    result = launch.finish(process)
    assert result.code == 0 and "watch" not in result.out + result.err, result


BAD = "<img src=x onerror=\"document.title='bad'\">"
NASTY = f"""
import sys, spcomm
comm = spcomm.startup()
print("begins", flush=True)
if comm.rank == 0:
    for _line in sys.stdin:
        with comm.region({BAD!r} + "</script><script>document.title='bad'</script>"):
            comm.send({BAD!r}, 1, tag=7)
    comm.send(None, 1, tag=7)
else:
    while comm.recv(source=0, tag=7): pass
"""


@pytest.mark.slow
@browser.needed
def test_a_browser_shows_the_run_and_keeps_its_trace(launch, tmp_path):
    """It comes from another page, to which a cookie that is SameSite=Strict would not be sent."""
    process, port, token = begun(launch, text=NASTY, name=f"{BAD}.py")
    link = tmp_path / "link.html"
    link.write_text(f'<meta http-equiv="refresh" content="0; url=http://127.0.0.1:{port}/?token={token}">')
    with browser.Driven(tmp_path) as page:
        page.open(link.as_uri())
        page.until(
            f"location.href === 'http://127.0.0.1:{port}/' && document.documentElement.dataset.number > 1"
        )
        assert page.evaluate("document.cookie") == ""
        assert page.until(f"document.querySelector('#nodes-panel').textContent.includes({f'{BAD}.py:11'!r})")
        assert not page.evaluate("/\\b0 ns/.test(document.querySelector('#nodes-panel').textContent)")
        # It grows, and whoever has zoomed in stays where they are.
        arrows = float(page.told("arrows"))
        process.stdin.write(b"\n")
        page.until(f"document.documentElement.dataset.arrows > {arrows}")
        to = page.told("to")
        page.until(f"document.documentElement.dataset.to > {to}")
        page.evaluate("document.getElementById('in').click()")
        page.until("document.documentElement.dataset.from > 0")
        begin, number = page.told("from"), page.told("number")
        process.stdin.write(b"\n")
        page.until(f"document.documentElement.dataset.number > {number} + 1")
        assert page.told("from") == begin
        process.stdin.close()
        page.until("document.documentElement.dataset.live === 'over'")
        assert process.wait(WATCHDOG_S) == 0
        assert page.until("document.getElementById('ended').textContent.includes('exit code 0')")
        assert page.evaluate("document.getElementById('nodes-panel')") is None
        assert page.evaluate("document.querySelectorAll('#times tbody tr').length") == 2
        assert (
            page.evaluate("document.querySelectorAll('img, body script:not([src]):not([type])').length") == 0
        )
        assert page.evaluate("document.title") == f"{BAD}.py on 2 nodes"
        folder = tmp_path / "saved"
        page.tell("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        page.evaluate("document.getElementById('save').click()")
        while not (saved := list(folder.glob("*.html"))):
            page.until("true")  # a frame later
        assert page.complaints == []
    found = browser.opened(saved[0], tmp_path)
    assert found.complaints() == [] and found.told["drawn"] == "yes" and found.number("arrows") == 3


@pytest.mark.slow
@browser.needed
def test_a_browser_that_is_late_or_left_alone_says_so(launch, tmp_path):
    process, port, token = begun(launch)
    with browser.Driven(tmp_path) as page:
        page.open(f"http://127.0.0.1:{port}/")
        page.until("document.body.textContent.includes('Open the link that spcomm has printed')")
        page.open(f"http://127.0.0.1:{port}/?token={token}")
        page.until("document.documentElement.dataset.number > 1")
        process.kill()
        page.until("document.documentElement.dataset.live === 'over'")
        assert "The connection to the run was lost" in page.evaluate(
            "document.getElementById('headline').textContent"
        )
    launch.finish(process)
