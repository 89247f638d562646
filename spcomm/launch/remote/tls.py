# SPDX-License-Identifier: MIT
"""TLS 1.3 for connections that cross a network, from Python's `ssl`.

Each listening end makes its own certificate, which proves nothing by itself. The handshake that follows inside TLS
(handshake.py) proves both ends, and signs the certificate's fingerprint: an intermediary, which must use another
certificate, has nothing to relay.
"""

import functools
import hashlib
import socket
import ssl
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeVar

    _Read = TypeVar("_Read", bytes, int)

_PROTOCOL = "spcomm"  # as ALPN has it; its version follows inside
_RECORD_BYTES = 1 << 14  # of data, at most
_MOST_BYTES = 1 << 16  # until both ends are proven, and a few more
_DAYS = 3650  # no end checks the expiry of a certificate; this only has to be later than now


class TlsError(ConnectionError):
    """TLS with the other end is impossible; the text gives the reason."""


class StrangerError(TlsError):
    """The other end does not speak TLS, or not for spcomm."""


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
    # The handshake inside verifies the certificate.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([_PROTOCOL])
    return context


class Session:
    """TLS over one connection, without its socket: `begin`, then `encrypt` and `decrypt`, one thread at a time.

    Bytes that it has read too early stay in it: its next user asks it before the socket.
    """

    def __init__(self, server: bool) -> None:
        self._coming, self._going = ssl.MemoryBIO(), ssl.MemoryBIO()
        context, self._certificate = server_identity() if server else (_client_context(), b"")
        self._tls = context.wrap_bio(self._coming, self._going, server_side=server)
        self._left_bytes = _MOST_BYTES

    @property
    def fingerprint(self) -> bytes:
        """That of the server's certificate, as this end sees it."""
        return hashlib.sha256(self._certificate or self._tls.getpeercert(True) or b"").digest()

    def begin(self, sock: "socket.socket") -> None:
        """Go on with TLS's own handshake, and return when it is over. `BlockingIOError`: the other end must send.

        Raises `TlsError` and `OSError`, too.
        """
        while not self._shake_hands(sock):
            self._pull(sock)
        if self._tls.selected_alpn_protocol() != _PROTOCOL:
            raise StrangerError("the other end does not name spcomm")

    def _shake_hands(self, sock: "socket.socket") -> bool:
        try:
            self._tls.do_handshake()
            return True
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            raise TlsError(str(error)) from None
        finally:
            self._flush(sock)

    def _flush(self, sock: "socket.socket") -> None:
        """Write the first bytes, so few that a socket always has room for them."""
        data = self._going.read()
        if data and sock.send(data, getattr(socket, "MSG_NOSIGNAL", 0)) != len(data):
            raise TlsError("the other end does not read")

    def _pull(self, sock: "socket.socket") -> None:
        data = sock.recv(_RECORD_BYTES)
        if not data:
            raise ConnectionResetError("the other end has closed the connection")
        if self._left_bytes == _MOST_BYTES and not b"\x14" <= data[:1] <= b"\x17":  # the types of records
            raise StrangerError("the other end does not speak TLS")
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            raise TlsError("the other end sends too much")
        self._coming.write(data)

    def send(self, sock: "socket.socket", data: bytes) -> None:
        """Send a few bytes. Raises like `begin`."""
        self._tls.write(data)
        self._flush(sock)

    def receive(self, sock: "socket.socket", most: int) -> bytes:
        """Return at most so many bytes. Raises like `begin`."""
        while True:
            try:
                return self._some(self._tls.read(most))
            except ssl.SSLWantReadError:
                self._pull(sock)
            except ssl.SSLError as error:
                raise TlsError(str(error)) from None

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
