# SPDX-License-Identifier: MIT
"""Connections between boxes are cut, reset, silenced, delayed and corrupted while nodes do everything: nothing is lost,
doubled or reordered, which the program compares with its oracles (all_operations.py)."""

import pytest

from netting import HERE
from pairwise import each
from proxy import KINDS, Proxy
from rooming import HOST

PROGRAM = HERE / "all_operations.py"
RELAY = ("--route", "relay")  # the connections to the server are those with faults


hosts = pytest.mark.parametrize("host", ["127.0.0.1", HOST], ids=["loopback", "network"])


def run(net, faults, seed, *options, every=30_000, kinds=KINDS, least=6, host="127.0.0.1"):
    done = net.folder / "done"
    proxy = net.through(faults=faults, seed=seed, every=every, kinds=kinds, done=done.touch)
    options = ("--map", "0,0,1,0,1", "--listen", host, *RELAY, "--link-timeout", 6, *options)
    result = net("-n", 5, *options, PROGRAM, seed, done, least)
    assert result.code == 0, (seed, proxy.happened, result)
    assert len(result.lines) == 5 and len({line.split()[1] for line in result.lines}) == 1, result
    assert proxy.left == 0
    return result


@hosts
@pytest.mark.slow
def test_without_faults(net, host):
    """The proxy alone changes nothing."""
    done = net.folder / "done"
    done.touch()
    net.through()
    result = net("-n", 5, "--stall", 0, "--map", "0,0,1,0,1", "--listen", host, *RELAY, PROGRAM, 1, done, 6)
    assert result.code == 0 and result.err == "", result


@pytest.mark.slow
@pytest.mark.whole
@hosts
@pytest.mark.parametrize("kind", each(4, KINDS))
def test_each_kind_of_fault(net, kind, host):
    run(net, 3, 5, kinds=[kind], every=20_000, host=host)


@hosts
@pytest.mark.stress
def test_ten_faults(net, host):
    run(net, 10, 1, host=host)


@pytest.mark.stress
@pytest.mark.timeout(900)
@hosts
def test_two_hundred_faults(net, monkeypatch, host):
    monkeypatch.setattr("launching.WATCHDOG_S", 800)
    run(net, 200, 2, host=host)


@pytest.mark.stress
@pytest.mark.timeout(900)
def test_a_hundred_faults_with_tiny_buffers(net, monkeypatch):
    monkeypatch.setattr("launching.WATCHDOG_S", 800)
    run(net, 100, 3, "--slots", 2, "--ring", "1K", "--arena", "256K", every=10_000)


def test_the_proxy_does_what_it_says():
    """One bit is flipped, or else nothing would be tested."""
    import socket

    server = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy(faults=1, every=1, kinds=["flip"])
    try:
        with socket.create_connection(proxy.address) as control:
            control.sendall(b"0 127.0.0.1 %d\n" % server.getsockname()[1])
            port = int(control.makefile().readline())
        with socket.create_connection(("127.0.0.1", port)) as gateway, server.accept()[0] as other:
            gateway.settimeout(60)
            other.settimeout(60)
            gateway.sendall(b"\0" * 100)
            got = b""
            while len(got) < 100:
                got += other.recv(100)
            assert got == bytes(100)  # the fault comes behind the byte that was drawn
            other.sendall(b"\0" * 100)
            got = b""
            while len(got) < 100:
                got += gateway.recv(100)
            assert sum(byte.bit_count() for byte in got) == 1
    finally:
        proxy.close()
        server.close()


# ---- somebody on the way who means it

SAYS = """
    import spcomm
    comm = spcomm.startup()
    for number in range(50):
        comm.send(f"{number}: harmless", 1 - comm.rank)
        said = comm.recv(1 - comm.rank)
        if number == 40:
            print(said)
"""
HEADER, AT_LENGTH, AT_BODY_SUM, AT_HEADER_SUM = 64, 48, 56, 60  # csrc/net/wire/spc_frame.h


def crc32c(data):
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _bit in range(8):
            found = found >> 1 ^ (0x82F63B78 if found & 1 else 0)
    return (found ^ 0xFFFFFFFF).to_bytes(4, "little")


class Reader(Proxy):
    """Looks for the text of a message, and puts another one in its place, with sums that are right."""

    def take(self, connection, way, data):
        at = data.rfind(b"spcf", 0, max(0, data.find(b"40: harmless")))
        if at >= 0:
            length = int.from_bytes(data[at + AT_LENGTH :][:4], "little")
            body = data[at + HEADER :][:length].replace(b"harmless", b"changed!")
            head = data[at:][:AT_BODY_SUM] + crc32c(body)
            data = data[:at] + head + crc32c(head) + body + data[at + HEADER + length :]
            self.happened.append("changed")
        super().take(connection, way, data)


@hosts
def test_somebody_who_changes_messages(net, host):
    """It can be done where nothing is encrypted, and nobody but root can be on the way."""
    net.proxy = Reader()
    result = net("-n", 2, "--boxes", 2, "--listen", host, *RELAY, net.script(SAYS))
    can = host == "127.0.0.1"
    assert result.code == 0 and result.lines == ["40: changed!" if can else "40: harmless"] * 2, result
    assert net.proxy.happened == ["changed"] * (2 if can else 0)


class Meddler(Proxy):
    """Does something to records that have been sent, once in each direction, and then lets everything through."""

    def __init__(self, how):
        super().__init__()
        self.how, self.last = how, {}

    def take(self, connection, way, data):
        count, before = self.last.get(way.source, (0, b""))
        self.last[way.source] = count + 1, data
        if count == 20:  # long after the handshake
            self.happened.append(self.how)
            if self.how == "again":
                data = before + data
            elif self.how == "left out":
                return
            elif self.how == "reflected":
                data = self.last[way.target][1]
        super().take(connection, way, data)


@pytest.mark.parametrize("how", ["again", "left out", "reflected"])
def test_records_that_were_sent_otherwise(net, how):
    """The connection ends, and another one goes on where the last whole frame was."""
    net.proxy = Meddler(how)
    result = net("-n", 2, "--boxes", 2, "--listen", HOST, *RELAY, "--link-timeout", 6, net.script(SAYS))
    assert result.code == 0 and result.lines == ["40: harmless"] * 2, result
    assert len(net.proxy.happened) >= 2
