# SPDX-License-Identifier: MIT
"""Handshakes: both ends against each other, in pieces of every size, and against everybody who should not get in."""

import hmac
import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pretending import CHALLENGE, HELLO, ORDER, PROOF, VERDICT
from spcomm._core import net
from spcomm.launch.remote import handshake as hs
from spcomm.launch.remote.handshake import MESSAGE_BYTES, Handshake

CLIENT, SERVER = False, True
ENDS = (CLIENT, SERVER)
NONCES = {CLIENT: b"\xc1" * 32, SERVER: b"\x5e" * 32}
JOB, BOX = 0x04030201, 0x0605
SECRET = b"\7" * 32
SERVER_PROOF = 4
KIND, VERDICT_AT, ORDER_AT, VERSION_AT, JOB_AT, BOX_AT, RANDOM = 4, 5, 6, 8, 12, 16, 32
VERSION = net.VERSION


def end(server, *, secret=SECRET, nonce=None, **options):
    identity = {} if server else {"job": JOB, "box": BOX}
    return Handshake(server, nonce or NONCES[server], lambda _box: secret, **{**identity, **options})


def change(message, at, value):
    return message[:at] + bytes([value]) + message[at + 1 :]


class Pair:
    """Two ends with a wire between them: `heard[end]` is what it has read."""

    def __init__(self, client=None, server=None):
        self.ends = {CLIENT: client or end(CLIENT), SERVER: server or end(SERVER)}
        self.said = {CLIENT: b"", SERVER: b""}
        self.heard = {CLIENT: b"", SERVER: b""}

    def move(self, who, most=MESSAGE_BYTES, on_the_way=lambda who, at, piece: piece):
        """Let one end write or read that much; return whether it could."""
        one, other = self.ends[who], not who
        if one.output:
            piece = one.output[:most]
            self.said[who] += piece
            one.sent(len(piece))
            return True
        at = len(self.heard[who])
        piece = self.said[other][at : at + min(most, one.wants)]
        if piece:
            self.heard[who] += piece
            one.feed(on_the_way(other, at, piece))
        return bool(piece)

    def run(self, *arguments):
        """Move until neither end can, then close the connection of each that is over. Return the outcomes."""
        while any([self.move(CLIENT, *arguments), self.move(SERVER, *arguments)]):
            pass
        for who in ENDS:
            if self.ends[not who].outcome != hs.OPEN:
                self.ends[who].feed(b"")
        return self.outcomes

    @property
    def outcomes(self):
        return self.ends[CLIENT].outcome, self.ends[SERVER].outcome


def said():
    """Return the two messages that each end says in an accepted handshake."""
    pair = Pair()
    assert pair.run() == (hs.ACCEPTED, hs.ACCEPTED)
    return pair.said


def hear(one, words):
    """Let an end hear this, as much as it reads, and then the end of the connection. Return the outcome."""
    while one.outcome == hs.OPEN:
        if one.output:
            one.sent(len(one.output))
        else:
            piece, words = words[: one.wants], words[one.wants :]
            one.feed(piece)
    return one.outcome


# ---- those who may


def test_the_bytes():
    head = b"spch\1\0" + bytes([ORDER, 0]) + VERSION.to_bytes(4, "little") + b"\1\2\3\4\5\6" + bytes(14)
    hello = head + NONCES[CLIENT]
    challenge = change(head, KIND, CHALLENGE) + NONCES[SERVER]
    words = said()
    assert words[CLIENT][:64] == hello and words[SERVER][:64] == challenge
    for who, kind, role in ((CLIENT, PROOF, b"spcomm client"), (SERVER, SERVER_PROOF, b"spcomm server")):
        mac = hmac.digest(SECRET, role.ljust(16, b"\0") + hello + challenge, "sha256")
        assert words[who][64:] == change(head, KIND, kind) + mac


def test_pieces_of_every_size():
    for most in range(1, MESSAGE_BYTES + 2):
        pair = Pair()
        assert pair.run(most) == (hs.ACCEPTED, hs.ACCEPTED)
        for who in ENDS:
            assert len(pair.said[who]) == len(pair.heard[who]) == 2 * MESSAGE_BYTES
            assert pair.ends[who].peer == (VERSION, JOB, BOX)
            assert pair.ends[who].transcript == pair.said[CLIENT][:64] + pair.said[SERVER][:64]


def test_the_secret_is_that_of_job_and_box():
    for job, box in itertools.product((0, 1, 1 << 16, 2**32 - 1), (0, 1, 63, 255, 256, 65535)):
        asked = []
        server = Handshake(True, NONCES[SERVER], lambda place, asked=asked: asked.append(place) or SECRET)
        assert Pair(end(CLIENT, job=job, box=box), server).run() == (hs.ACCEPTED, hs.ACCEPTED)
        assert asked == [(job, box)]


# ---- those who may not


def test_a_wrong_secret_and_a_job_that_does_not_exist_get_the_same_bytes():
    answers = set()
    for client, server in ((b"\x08" * 32, SECRET), (SECRET, b"\x08" * 32), (SECRET, None), (bytes(32), None)):
        pair = Pair(end(CLIENT, secret=client), end(SERVER, secret=server))
        assert pair.run() == (hs.REFUSED, hs.REFUSED)
        answers.add(pair.said[SERVER])
    (words,) = answers
    assert len(words) == 128 and words[64 + KIND] == VERDICT and words[64 + RANDOM :] == bytes(32)


def test_a_server_without_the_secret_does_not_get_a_client():
    words = said()
    challenge, proof = words[SERVER][:64], words[CLIENT][64:]
    for random in (bytes(32), proof[RANDOM:]):  # anything, and what the client itself has signed
        client = end(CLIENT)
        made = change(challenge[:RANDOM], KIND, SERVER_PROOF) + random
        assert hear(client, challenge + made) == hs.REFUSED and not client.output


@pytest.mark.parametrize("by", ENDS)
def test_one_bit_on_the_way(by):
    for bit in range(2 * MESSAGE_BYTES * 8):

        def flip(who, at, piece, bit=bit):
            byte = bit // 8 - at
            if who != by or not 0 <= byte < len(piece):
                return piece
            return change(piece, byte, piece[byte] ^ 1 << bit % 8)

        client, server = Pair().run(MESSAGE_BYTES, flip)
        is_last = by == SERVER and bit >= MESSAGE_BYTES * 8  # then the server has accepted already
        assert client not in (hs.OPEN, hs.ACCEPTED), bit
        assert server != hs.OPEN and (server == hs.ACCEPTED) == is_last, bit


@pytest.mark.parametrize("who", ENDS)
def test_replay(who):
    words = said()[not who]
    assert hear(end(who), words) == hs.ACCEPTED  # to the same nonce, which is why that is never used again
    for byte in range(32):
        assert hear(end(who, nonce=change(NONCES[who], byte, 1)), words) == hs.REFUSED


@pytest.mark.parametrize("who", ENDS)
def test_reflection(who):
    first, second = said()[who][:64], said()[who][64:]
    kinds = (HELLO, PROOF) if who == SERVER else (CHALLENGE, SERVER_PROOF)
    assert hear(end(who), first + second) == hs.STRANGER
    first, second = change(first, KIND, kinds[0]), change(second, KIND, kinds[1])
    one = end(who)
    assert hear(one, first + second) == hs.REFUSED and one.transcript == b""  # not even signed
    assert hear(end(who), change(first, RANDOM, 0) + second) == hs.REFUSED


@pytest.mark.parametrize("who", ENDS)
def test_the_other_roles_proof_is_none(who):
    words = said()
    mixed = words[not who][: 64 + RANDOM] + words[who][64 + RANDOM :]
    assert hear(end(who), mixed) == hs.REFUSED


def test_a_challenge_for_another_box():
    words = said()[SERVER]
    for at in range(JOB_AT, BOX_AT + 2):
        assert hear(end(CLIENT), change(words, at, words[at] ^ 1)) == hs.STRANGER


def test_two_of_one_role():
    assert Pair(end(CLIENT), end(CLIENT)).run() == (hs.STRANGER, hs.STRANGER)
    assert Pair(end(SERVER), end(SERVER)).run() == (hs.OPEN, hs.OPEN)


# ---- versions, byte orders, a server that is full: both ends know it, and say the same


@pytest.mark.parametrize("versions", [(VERSION - 1, VERSION), (VERSION, 1), (1, 0x01000001), (2**32 - 1, 3)])
def test_versions(versions):
    client = end(CLIENT, version=versions[0])
    server = end(SERVER, version=versions[1], byte_order=3 - ORDER, secret=None)  # the version comes first
    assert Pair(client, server).run(7) == (hs.OTHER_VERSION, hs.OTHER_VERSION)
    assert (client.peer[0], server.peer[0]) == versions[::-1]


@pytest.mark.parametrize(("by_client", "by_server"), list(itertools.product((1, 2), repeat=2)))
def test_byte_orders(by_client, by_server):
    found = hs.ACCEPTED if by_client == by_server else hs.OTHER_BYTE_ORDER
    pair = Pair(end(CLIENT, byte_order=by_client), end(SERVER, byte_order=by_server))
    assert pair.run() == (found, found)


@pytest.mark.parametrize(("at", "found"), [(VERSION_AT, hs.OTHER_VERSION), (ORDER_AT, hs.OTHER_BYTE_ORDER)])
def test_a_difference_that_the_client_finds(at, found):
    pair = Pair()
    flipped = lambda who, start, piece: change(piece, at, piece[at] ^ 3) if who and not start else piece  # noqa: E731
    # The server knows itself better than the verdict says.
    assert pair.run(MESSAGE_BYTES, flipped) == (found, hs.STRANGER)
    assert pair.said[CLIENT][64 + KIND] == VERDICT and pair.said[CLIENT][64 + VERDICT_AT] == found


def test_a_full_server():
    assert Pair(server=end(SERVER, full=True)).run() == (hs.FULL, hs.FULL)


def test_verdicts_and_their_moments():
    def words(verdict, version):
        return b"spch" + bytes([VERDICT, verdict, ORDER, 0]) + version.to_bytes(4, "little") + bytes(52)

    hello = said()[CLIENT][:64]
    for verdict in range(256):

        def expected(*credible, verdict=verdict):
            return verdict if verdict in credible else hs.STRANGER

        same, other = words(verdict, VERSION), words(verdict, VERSION - 1)
        always = hs.REFUSED, hs.FULL
        assert hear(end(CLIENT), same) == expected(*always, hs.NEEDS_TLS)
        assert hear(end(CLIENT, fingerprint=PRINT), same) == expected(*always)
        assert hear(end(CLIENT), other) == expected(*always, hs.NEEDS_TLS, hs.OTHER_VERSION)
        assert hear(end(SERVER), same) == hs.STRANGER
        assert hear(end(SERVER), hello + same) == expected(hs.REFUSED)


# ---- those who do not speak the language, or stop in the middle


@pytest.mark.parametrize("who", ENDS)
@pytest.mark.parametrize(
    "words", [b"GET / HTTP/1.1\r\n", b"SSH-2.0-", b"spcf", b"\x16\x03\x01", b"s", b"spc"]
)
def test_not_ours(who, words):
    outcome = hs.CLOSED if b"spch".startswith(words) else hs.STRANGER  # known by the first wrong byte
    assert hear(end(who), words) == outcome


@pytest.mark.parametrize("who", ENDS)
def test_zeros_are_zeros(who):
    for at in (VERDICT_AT, 7, *range(BOX_AT + 2, RANDOM)):
        assert hear(end(who), change(said()[not who], at, 16)) == hs.STRANGER


# ---- inside TLS

PRINT, OTHER_PRINT = b"\x11" * 32, b"\x22" * 32
MARK = slice(18, 32)


def test_both_ends_sign_the_fingerprint():
    pair = Pair(end(CLIENT, fingerprint=PRINT), end(SERVER, fingerprint=PRINT))
    assert pair.run() == (hs.ACCEPTED, hs.ACCEPTED)
    first = pair.said[CLIENT][:64], pair.said[SERVER][:64]
    assert [message[MARK] for message in first] == [PRINT[:14]] * 2
    for who, role in ((CLIENT, b"spcomm client"), (SERVER, b"spcomm server")):
        mac = hmac.digest(SECRET, role.ljust(16, b"\0") + b"".join(first) + PRINT, "sha256")
        assert pair.said[who][64 + RANDOM :] == mac
        assert pair.ends[who].transcript == b"".join(first) + PRINT


def relay(mark=None):
    """Somebody between two ends of TLS, each of which sees another certificate."""

    def change(who, at, piece):
        if mark is None:
            return piece
        return piece[: MARK.start] + mark[who] + piece[MARK.stop :]

    pair = Pair(end(CLIENT, fingerprint=PRINT), end(SERVER, fingerprint=OTHER_PRINT))
    return pair, pair.run(MESSAGE_BYTES, change)


def test_a_man_in_the_middle_has_nothing_to_relay():
    pair, outcomes = relay()
    assert outcomes == (hs.INTERCEPTED, hs.CLOSED) and len(pair.said[CLIENT]) == MESSAGE_BYTES
    pair, outcomes = relay({CLIENT: OTHER_PRINT[:14], SERVER: PRINT[:14]})  # he lies about the mark
    assert outcomes == (hs.REFUSED, hs.REFUSED)


def test_proofs_of_another_certificate_are_refused():
    """Also if its mark is the same."""
    twin = PRINT[:14] + bytes(18)
    pair = Pair(end(CLIENT, fingerprint=PRINT), end(SERVER, fingerprint=twin))
    assert pair.run() == (hs.REFUSED, hs.REFUSED)


def test_one_end_without_tls():
    assert Pair(end(CLIENT, fingerprint=PRINT)).run()[0] not in (hs.OPEN, hs.ACCEPTED)
    assert Pair(server=end(SERVER, fingerprint=PRINT)).run()[0] not in (hs.OPEN, hs.ACCEPTED)


def test_a_server_that_needs_tls():
    assert Pair(server=end(SERVER, needs_tls=True)).run() == (hs.NEEDS_TLS, hs.NEEDS_TLS)
    client = end(CLIENT, fingerprint=PRINT)  # which has it, and does not believe that
    assert Pair(client, end(SERVER, needs_tls=True, fingerprint=PRINT)).run()[0] == hs.STRANGER


@pytest.mark.parametrize("who", ENDS)
def test_truncated(who):
    words = said()[not who]
    for length in range(2 * MESSAGE_BYTES):
        assert hear(end(who), words[:length]) == hs.CLOSED


@pytest.mark.parametrize("who", ENDS)
def test_more_than_was_asked_for(who):
    for moves in range(16):
        pair = Pair()
        for number in range(moves):
            pair.move(bool(number % 2), 37)
        one = pair.ends[who]
        expected = hs.STRANGER if one.outcome == hs.OPEN else one.outcome
        one.feed(b"s" * (one.wants + 1))
        assert (one.outcome, one.wants, one.output) == (expected, 0, b"")


@pytest.mark.parametrize("who", ENDS)
def test_ended_from_outside(who):
    for moves in range(21):
        pair = Pair()
        for number in range(moves):
            pair.move(bool(number % 2), 37)
        one = pair.ends[who]
        before = one.outcome
        one.end(hs.LATE)
        assert one.outcome == (before or hs.LATE) and not one.wants and not one.output


@pytest.mark.parametrize("outcome", [hs.LATE, hs.CLOSED])
def test_a_verdict_that_can_no_longer_be_sent_is_the_outcome(outcome):
    pair = Pair(end(CLIENT, version=VERSION + 1))
    pair.move(CLIENT)
    pair.move(SERVER)
    pair.move(SERVER, 1)
    assert pair.ends[SERVER].outcome == hs.OPEN
    pair.ends[SERVER].end(outcome)
    assert pair.ends[SERVER].outcome == hs.OTHER_VERSION


# ---- anybody in between

MESSAGES = st.one_of(
    st.binary(max_size=200),
    st.tuples(st.sampled_from(ENDS), st.integers(0, 1)).map(lambda at: said()[at[0]][at[1] * 64 :][:64]),
)
EDITS = st.lists(
    st.one_of(
        st.just("pass"),
        st.just("drop"),
        st.tuples(st.just("change"), st.integers(0, 63), st.integers(1, 255)),
        st.tuples(st.just("say"), MESSAGES),
    ),
    max_size=10,
)


@given(EDITS, EDITS)
def test_who_accepts_was_not_lied_to(to_client, to_server):
    """With an intermediary that passes on, drops, changes, and has its own words and those of another connection."""
    pair = Pair(end(CLIENT, nonce=b"\1" * 32), end(SERVER, nonce=b"\2" * 32))
    edits = {CLIENT: iter(to_client), SERVER: iter(to_server)}
    for who in (CLIENT, SERVER) * 8:
        one, other = pair.ends[who], pair.ends[not who]
        if not one.output:
            continue
        words = one.output
        pair.said[who] += words
        one.sent(len(words))
        edit = next(edits[not who], "pass")
        if edit == "drop":
            continue
        if edit[0] == "change":
            words = change(words, edit[1], words[edit[1]] ^ edit[2])
        elif edit[0] == "say":
            words = edit[1]
        while words and other.wants:
            piece, words = words[: other.wants], words[other.wants :]
            other.feed(piece)
    for who in ENDS:
        one, other = pair.ends[who], pair.ends[not who]
        if one.outcome == hs.ACCEPTED:
            assert one.transcript == other.transcript == pair.said[CLIENT][:64] + pair.said[SERVER][:64]


def test_byte_order_of_this_machine():
    assert said()[CLIENT][ORDER_AT] == {"little": 1, "big": 2}[sys.byteorder]
