# SPDX-License-Identifier: MIT
"""A network that may break: stands between the gateways of a run and its server, in a thread of the test.

Every box gets a port of its own here. `Proxy(faults=100, seed=7)` does so many faults, each after a random number of
bytes, to the connection that moves them. `blackhole`, and what else tests call, does one thing at once.
"""

import random
import selectors
import socket
import struct
import threading
import time

MOST = 1 << 18  # bytes under way in one direction
READ = 1 << 14
KINDS = ("cut", "reset", "swallow", "stall", "silence", "flip", "refuse")


class Way:
    """One direction of a connection."""

    def __init__(self, source, target):
        self.source, self.target = source, target
        self.bytes = bytearray()


class Connection:
    def __init__(self, box, gateway, server):
        self.box = box
        self.ways = {gateway: Way(gateway, server), server: Way(server, gateway)}
        self.stalled_until = self.swallows_until = 0.0
        self.flips = False
        self.dead = False


class Proxy:
    host = "127.0.0.1"  # of its ports

    def __init__(self, faults=0, seed=0, every=30_000, kinds=KINDS, done=lambda: None):
        self.chance = random.Random(seed)
        self.left, self.every, self.kinds, self.done = faults, every, kinds, done
        self.happened = []
        self.moved = 0
        self.next = self.draw()
        self.ended = threading.Semaphore(0)  # a count of connections that have
        self.holes = set()  # boxes that get nothing, and give nothing
        self.refusing_until = 0.0
        self.servers = {}  # listener -> (box, address of the server)
        self.connections = []
        self.selector = selectors.DefaultSelector()
        self.control = self.listen(self.meet)
        self.address = self.control.getsockname()
        self.lock = threading.Lock()
        self.wake, self.woken = socket.socketpair()
        self.selector.register(self.woken, selectors.EVENT_READ, lambda _sock, _mask: self.woken.recv(64))
        self.running = True
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    # ---- for tests

    def blackhole(self, *boxes):
        """From now on."""
        with self.lock:
            self.holes.update(boxes)

    def reset(self):
        """All connections that there are."""
        with self.lock:
            for connection in list(self.connections):
                self.end(connection, resets=True)

    def close(self):
        self.running = False
        self.wake.send(b".")
        self.thread.join()
        for connection in list(self.connections):
            self.end(connection, False)
        for one in (self.control, *self.servers, self.wake, self.woken, self.selector):
            one.close()

    # ---- connections

    def listen(self, call):
        listener = socket.create_server((self.host, 0))
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ, call)
        return listener

    def meet(self, listener, _mask):
        """The launcher says where the server is, for each box, and hears where its gateway is to go."""
        sock, _address = listener.accept()
        with sock:
            sock.setblocking(True)
            box, host, port = sock.makefile().readline().split()
            door = self.listen(self.accept)
            self.servers[door] = int(box), (host, int(port))
            sock.sendall(b"%d\n" % door.getsockname()[1])

    def accept(self, listener, _mask):
        box, address = self.servers[listener]
        gateway, _address = listener.accept()
        if time.monotonic() < self.refusing_until:
            gateway.close()
            return
        try:
            server = socket.create_connection(address)
        except OSError:
            gateway.close()
            return
        connection = Connection(box, gateway, server)
        self.connections.append(connection)
        for sock in (gateway, server):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.wait_for(connection, sock, selectors.EVENT_READ)

    def end(self, connection, resets):
        connection.dead = True
        self.ended.release()
        self.connections.remove(connection)
        for sock in connection.ways:
            self.wait_for(connection, sock, 0)
            if resets:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()

    # ---- bytes

    def run(self):
        while self.running:
            stalled = any(one.stalled_until for one in self.connections)
            for key, mask in self.selector.select(0.01 if stalled else None):
                with self.lock:
                    if key.fileobj.fileno() >= 0:
                        key.data(key.fileobj, mask)
            with self.lock:
                for connection in list(self.connections):
                    if connection.stalled_until:
                        self.watch(connection)

    def move(self, connection, sock, mask):
        way = connection.ways[sock]
        try:
            if mask & selectors.EVENT_READ and len(way.bytes) < MOST:
                data = sock.recv(READ)
                if not data:
                    self.end(connection, False)
                    return
                self.take(connection, way, data)
            if not connection.dead:
                self.watch(connection)
        except BlockingIOError:
            pass
        except OSError:
            self.end(connection, False)

    def take(self, connection, way, data):
        now = time.monotonic()
        if connection.swallows_until and now >= connection.swallows_until:
            self.end(connection, True)  # as TCP does: bytes behind a hole never come
            return
        if connection.box not in self.holes and not connection.swallows_until:
            if connection.flips:
                data = bytearray(data)
                data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
                connection.flips = False
            way.bytes += data
        self.moved += len(data)
        if self.left and self.moved >= self.next:
            self.left -= 1
            self.next = self.moved + self.draw()
            kind = self.chance.choice(self.kinds)
            self.happened.append(kind)
            getattr(self, f"do_{kind}")(connection)
            if not self.left:
                self.done()

    def watch(self, connection):
        """Writes what it can, and waits for what it needs."""
        if time.monotonic() < connection.stalled_until:
            for sock in connection.ways:
                self.wait_for(connection, sock, 0)
            return
        connection.stalled_until = 0.0
        try:
            for way in connection.ways.values():
                while way.bytes:
                    try:
                        del way.bytes[: way.target.send(way.bytes)]
                    except BlockingIOError:
                        break
        except OSError:
            self.end(connection, False)
            return
        for sock, way in connection.ways.items():
            back = connection.ways[way.target]
            events = selectors.EVENT_READ if len(way.bytes) < MOST else 0
            self.wait_for(connection, sock, events | (selectors.EVENT_WRITE if back.bytes else 0))

    def wait_for(self, connection, sock, events):
        is_known = sock in self.selector.get_map()
        if is_known and not events:
            self.selector.unregister(sock)
        elif events:
            change = self.selector.modify if is_known else self.selector.register
            change(sock, events, lambda sock, mask: self.move(connection, sock, mask))

    # ---- faults

    def draw(self):
        return round(self.chance.expovariate(1 / self.every)) + 1

    def a_while(self):
        return time.monotonic() + self.chance.uniform(0.05, 0.4)

    def do_cut(self, connection):
        self.end(connection, False)

    def do_reset(self, connection):
        self.end(connection, True)

    def do_refuse(self, connection):
        self.refusing_until = self.a_while()
        self.end(connection, False)

    def do_swallow(self, connection):
        connection.swallows_until = self.a_while()

    def do_silence(self, connection):
        connection.swallows_until = float("inf")

    def do_stall(self, connection):
        connection.stalled_until = self.a_while()

    def do_flip(self, connection):
        connection.flips = True
