# SPDX-License-Identifier: MIT
"""The code of a room: six words of 7776, 77 bits, and the key that comes of it.

The words are made by a rule, as easy to say as to type: consonant, vowel, consonant, vowel, consonant, from letters
that are hardly mistaken for each other. No attacker can try 2**77 codes, not even against a recorded connection, so
the code itself is the secret.
"""

import hmac
import secrets

WORDS = 6
_LETTERS = ("bdfgklmprstv", "aio", "bdlmnrstv", "aio", "dklmnrst")
COUNT = 12 * 3 * 9 * 3 * 8  # 7776
VARIABLE = "SPCOMM_CODE"


class CodeError(Exception):
    """The typed text is no code; the message says why."""


def word(number: int) -> str:
    """One of the words."""
    letters = []
    for choice in reversed(_LETTERS):
        number, at = divmod(number, len(choice))
        letters.append(choice[at])
    return "".join(reversed(letters))


def new() -> str:
    """Return a new random code."""
    return " ".join(word(secrets.randbelow(COUNT)) for _word in range(WORDS))


def read(text: str) -> str:
    """Read a code as a user types it: capital letters, hyphens and commas do not matter. Raises `CodeError`."""
    words = "".join(letter if letter.isalpha() else " " for letter in text.lower()).split()
    if len(words) != WORDS:
        raise CodeError(f"a code has {WORDS} words, and this has {len(words)}")
    for at, found in enumerate(words, 1):
        if len(found) != len(_LETTERS) or any(
            letter not in choice for letter, choice in zip(found, _LETTERS, strict=True)
        ):
            raise CodeError(f"word {at} of that code is mistyped: codes are made of words such as {word(77)}")
    return " ".join(words)


def key(code: str) -> bytes:
    """The key that both ends of a connection know; `code` as `read` gives it."""
    return hmac.digest(b"spcomm: the code of a room", code.encode("ascii"), "sha256")
