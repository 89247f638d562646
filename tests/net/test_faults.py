# SPDX-License-Identifier: MIT
"""Connections between boxes are cut, reset, silenced, delayed and corrupted while nodes do everything: nothing is lost,
doubled or reordered, which the program compares with its oracles (all_operations.py)."""

import pytest

from netting import HERE
from pairwise import each
from proxy import KINDS, Proxy

PROGRAM = HERE / "all_operations.py"


def run(net, faults, seed, *options, every=30_000, kinds=KINDS, least=6):
    done = net.folder / "done"
    proxy = net.through(faults=faults, seed=seed, every=every, kinds=kinds, done=done.touch)
    result = net("-n", 5, "--map", "0,0,1,0,1", "--link-timeout", 6, *options, PROGRAM, seed, done, least)
    assert result.code == 0, (seed, proxy.happened, result)
    assert len(result.lines) == 5 and len({line.split()[1] for line in result.lines}) == 1, result
    assert proxy.left == 0
    return result


def test_without_faults(net):
    """The proxy alone changes nothing."""
    done = net.folder / "done"
    done.touch()
    net.through()
    result = net("-n", 5, "--stall", 0, "--map", "0,0,1,0,1", PROGRAM, 1, done, 6)
    assert result.code == 0 and result.err == "", result


@pytest.mark.whole
@pytest.mark.parametrize("kind", each(4, KINDS))
def test_each_kind_of_fault(net, kind):
    run(net, 3, 5, kinds=[kind], every=20_000)


@pytest.mark.stress
def test_ten_faults(net):
    run(net, 10, 1)


@pytest.mark.stress
@pytest.mark.timeout(900)
def test_a_hundred_faults(net, monkeypatch):
    monkeypatch.setattr("launching.WATCHDOG_S", 800)
    run(net, 100, 2)


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
        with socket.create_connection(("127.0.0.1", port)) as agent, server.accept()[0] as other:
            agent.settimeout(60)
            other.settimeout(60)
            agent.sendall(b"\0" * 100)
            got = b""
            while len(got) < 100:
                got += other.recv(100)
            assert got == bytes(100)  # the fault comes behind the byte that was drawn
            other.sendall(b"\0" * 100)
            got = b""
            while len(got) < 100:
                got += agent.recv(100)
            assert sum(byte.bit_count() for byte in got) == 1
    finally:
        proxy.close()
        server.close()
