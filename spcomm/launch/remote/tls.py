# SPDX-License-Identifier: MIT
"""TLS 1.3 for connections that cross a network, from Python's `ssl`.

The handshake proves the identity of both ends, and TLS protects the traffic that follows. Each listening end makes
its own certificate, which proves nothing by itself. So both ends then send, inside TLS, a MAC of the handshake's
transcript and of that certificate: an intermediary, which must use another certificate, has no MAC for it.

The server sends its MAC first, as one TLS record, so that the client, where the user is, can report the error.
"""

import functools
import hmac
import ssl
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    _Read = TypeVar("_Read", bytes, int)

_HEAD_BYTES = 5  # of a record; the last two are the length of the rest
_RECORD_BYTES = 1 << 14  # of data, at most
_DAYS = 3650  # no end checks the expiry of a certificate; this only has to be later than now


class TlsError(ConnectionError):
    """TLS with the other end is impossible; the text gives the reason."""


class InterceptedError(TlsError):
    """The other end of TLS is not the other end of the handshake."""


@functools.cache
def server_identity() -> "tuple[ssl.SSLContext, bytes]":
    """Return the identity of a listening end, made once for each process: a context, and its certificate (DER).

    Raises `ImportError`: the package cryptography is not installed; `OSError`: there is no place for a file.
    """
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "spcomm")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=_DAYS))
        .not_valid_after(now + timedelta(days=_DAYS))
        .sign(key, hashes.SHA256())
    )
    encoding, private = serialization.Encoding, serialization.PrivateFormat.PKCS8
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0  # no client resumes
    with tempfile.NamedTemporaryFile(prefix="spcomm-", suffix=".pem") as file:  # `ssl` reads files only
        file.write(key.private_bytes(encoding.PEM, private, serialization.NoEncryption()))
        file.write(certificate.public_bytes(encoding.PEM))
        file.flush()
        context.load_cert_chain(file.name)
    return context, certificate.public_bytes(encoding.DER)


@functools.cache
def _client_context() -> ssl.SSLContext:
    """Return the context of a connecting end."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the MACs verify the certificate
    return context


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


class Session:
    """TLS over one connection, without its socket: `establish`, then `encrypt` and `decrypt`, one thread at a time."""

    def __init__(self, server: bool, mac: "Callable[[str, bytes], bytes]") -> None:
        """`mac(role, certificate)` returns the MAC of the end with that role, "client" or "server"."""
        self._server = server
        self._mac = mac
        self._coming, self._going = ssl.MemoryBIO(), ssl.MemoryBIO()
        context, self._certificate = server_identity() if server else (_client_context(), b"")
        self._tls = context.wrap_bio(self._coming, self._going, server_side=server)
        self._record = b""  # as much of it as `receive` has read

    @property
    def certificate(self) -> bytes:
        """The server's certificate (DER), as this end sees it."""
        return self._certificate

    def establish(self, sock: "_socket.socket") -> "Iterator[None]":
        """Continue until the other end must send, if the socket does not wait. Raises `TlsError`, `OSError`.

        Reads nothing that comes after the other end's MAC.
        """
        try:
            while not self._shake_hands():
                self._send(sock, self._going.read())
                while not (record := self._next_record(sock)):
                    yield
                self._coming.write(record)
            self._send(sock, self._going.read())
            if self._server:
                self._send(sock, self.encrypt(self._mac("server", self._certificate)))
            else:
                self._certificate = self._tls.getpeercert(True) or b""
            while not (shown := self.receive(sock)):
                yield
            wanted = self._mac("client" if self._server else "server", self._certificate)
            if not hmac.compare_digest(shown, wanted):
                raise InterceptedError
            if not self._server:
                self._send(sock, self.encrypt(self._mac("client", self._certificate)))
        except ssl.SSLError as error:
            raise TlsError(str(error)) from None

    def _shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def _send(self, sock: "_socket.socket", data: bytes) -> None:
        """Write the first bytes, so few that a socket always has room for them."""
        if data and sock.send(data) != len(data):
            raise TlsError("the other end does not read")

    def receive(self, sock: "_socket.socket") -> bytes:
        """Return the data of the next record, and read no more; empty: it is incomplete. Raises like `establish`."""
        record = self._next_record(sock)
        try:
            return self.decrypt(record) if record else b""
        except ssl.SSLError as error:
            raise TlsError(str(error)) from None

    def _next_record(self, sock: "_socket.socket") -> bytes:
        while (missing := _missing(self._record)) > 0:
            try:
                data = sock.recv(missing)
            except BlockingIOError:
                return b""
            if not data:
                raise ConnectionResetError("the other end has closed the connection")
            self._record += data
        record, self._record = self._record, b""
        return record

    def encrypt(self, data: "bytes | memoryview") -> bytes:
        """Return the encrypted bytes for this data, which must not be empty."""
        self._tls.write(data)
        return self._going.read()

    def decrypt(self, data: bytes) -> bytes:
        """Return the complete data of all received bytes. `ssl.SSLError`: they were altered."""
        self.feed(data)
        found = []
        try:
            while self._has_unread:
                found.append(self._some(self._tls.read(_RECORD_BYTES)))
        except ssl.SSLWantReadError:  # the last record is incomplete
            pass
        return b"".join(found)

    def feed(self, data: "bytes | memoryview") -> None:
        """Store received bytes for `read_into`."""
        self._coming.write(data)

    def read_into(self, room: memoryview) -> int:
        """Return the number of decrypted bytes. `ssl.SSLError`: they were altered."""
        count = 0
        read, some = self._tls.read, self._some
        try:
            while count < len(room):
                count += some(read(_RECORD_BYTES, room[count:]))
        except ssl.SSLWantReadError:  # all records are read, or the last one is incomplete
            pass
        return count

    def _some(self, found: "_Read") -> "_Read":
        """Return the decrypted data. Empty: the other end has ended TLS, and nothing after that is read."""
        if not found:
            raise ssl.SSLZeroReturnError(ssl.SSL_ERROR_ZERO_RETURN, "the other end has ended TLS")
        return found

    @property
    def _has_unread(self) -> bool:
        """Whether received bytes are still encrypted, or decrypted and unread."""
        return self._coming.pending > 0 or self._tls.pending() > 0


def _missing(record: bytes) -> int:
    """Return the number of bytes that complete a record, or its head."""
    rest = int.from_bytes(record[3:_HEAD_BYTES], "big") if len(record) >= _HEAD_BYTES else 0
    return _HEAD_BYTES + rest - len(record)
