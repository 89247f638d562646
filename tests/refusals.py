# SPDX-License-Identifier: MIT
"""The catalogue of refusals: bad values of an argument, and the error that each call with that argument must give.

A row holds for every method of `Comm` and every function of spcomm.h that has an argument of one of these names:
tests/api/test_bad_input.py makes the calls in Python, tests/interfaces/test_refusals.py those in C. In expressions,
`comm` is the communicator; a row without an expression in one language is about the other one. `{argument}` in a
sentence is the argument's name.
"""

from typing import NamedTuple

EXCEPTIONS = {"ERANK": "spcomm.RankError", "ETAG": "spcomm.TagError"}  # Python's names for statuses


class Refusal(NamedTuple):
    """A bad value of some arguments."""

    arguments: str
    python: str
    c: str
    error: str  # the status without SPCOMM_, or the class in Python
    sentence: str


def _several(arguments, values, error, sentence):
    """Values that only Python can be given."""
    return [Refusal(arguments, value, "", error, sentence) for value in values.split("; ")]


RANK = "there is no node"
TAG = "tags are 0 to 2147483647"
ONE_OF = 'one of "tree", "flat", "slices", "binary-swap"'
SECONDS = "a timeout is None (wait for ever) or "

REFUSALS = [
    Refusal("dest source root", "comm.size", "spcomm_size(comm)", "ERANK", RANK),
    Refusal("dest source root", "-77", "-77", "ERANK", f"{RANK} -77"),
    Refusal("dest source root", "2**31 - 1", "INT32_MAX", "ERANK", f"{RANK} 2147483647"),
    *_several(
        "dest source root", "np.int64(comm.size); 2**31; 2**63; -(2**70); 10**400; 10**5000", "ERANK", RANK
    ),
    *_several("dest source root", "1.0; '0'; None; b'0'; 1j; True", "TypeError", "{argument} is an int"),
    *_several("source root", "[0]", "TypeError", "{argument} is an int"),
    Refusal("dest root", "spcomm.ANY", "", "ERANK", "ANY is not valid as {argument}"),
    Refusal("source root", "spcomm.ALL", "", "ERANK", "ALL is not valid as {argument}"),
    Refusal("source", "spcomm.OTHERS", "", "ERANK", "OTHERS is not valid as {argument}"),
    Refusal("root", "spcomm.PROC_NULL", "SPCOMM_PROC_NULL", "ERANK", ""),
    Refusal("tag recv_tag", "-2", "-2", "ETAG", f"there is no tag -2; {TAG}"),
    *_several("tag recv_tag", "-(2**40); 2**31; 2**32; 2**64; 2**100; 10**400; 10**5000", "ETAG", TAG),
    *_several(
        "tag recv_tag", "1.0; '0'; b'0'; [0]; True", "TypeError", "a tag must be an int from 0 to 2147483647"
    ),
    *_several("timeout", "-1; -0.5; float('nan'); -(10**400)", "ValueError", SECONDS + "seconds, 0 or more"),
    *_several("timeout", "'1'; [1]; 1j; np.zeros(2)", "TypeError", SECONDS + "a number of seconds, not a"),
    *_several("op", "None; 'SUM'; max; 3", "TypeError", "op is spcomm.SUM or its like"),
    Refusal("op", "", "99", "EINVAL", "there is no operator 99"),
    Refusal("op", "", "-1", "EINVAL", "there is no operator -1"),
    *_several("algorithm", "'ring'; ''; 'Tree'; 3; ['tree']", "ValueError", ONE_OF),
    *_several("color", "-1; -5; 2**70", "ValueError", "a color"),
    *_several("color", "1.5; 'red'; True; [1]", "TypeError", "a color is an int, 0 or more, or None"),
    *_several("key", "'a'; 1.5", "TypeError", "a key is an int"),
    *_several("shape", "-1; (2, -3)", "ValueError", "lengths are 0 or more"),
    *_several(
        "shape", "'x'; 2.0; None; (3, 1.5); [[1]]", "TypeError", "a shape is an int or a sequence of ints"
    ),
    *_several("shape", "1 << 58; 1 << 62", "MemoryError", "array"),
    *_several("dtype", "object; [('a', 'O')]", "TypeError", "Python objects"),
    Refusal("order", "'K'", "", "ValueError", "order is 'C'"),
    *_several("counts", "[1.0] * comm.size; comm.size", "TypeError", "sequence of ints"),
    Refusal("counts", "[1] * (comm.size - 1) + [-1]", "", "ValueError", "is -1"),
    *_several("counts", "[2] * comm.size; [10**30] * comm.size", "ValueError", "add up to"),
    Refusal("counts", "[1] * comm.size + [0]", "", "ValueError", "numbers for"),
    *_several("a", "None; [1.0]; 3; np.float64(2); np.ma.zeros(3)", "TypeError", "move(a)"),
    Refusal("a", "np.zeros(3).view(np.recarray)", "", "TypeError", "send"),
    Refusal("a", "np.array([None])", "", "TypeError", "Python objects"),
    Refusal("seed", "-1", "", "ValueError", "a seed is an int, 0 or more"),
    *_several("seed", "1.5; 'seed'", "TypeError", "a seed is an int, 0 or more"),
    # C alone has pointers.
    Refusal("comm", "", "NULL", "EINVAL", "comm is NULL"),
    Refusal("comm", "", "closed", "ECLOSED", "has closed this communicator"),
    Refusal("dest message messages result values fuzzy", "", "NULL", "EINVAL", "NULL"),
    Refusal("over done part handler", "", "NULL", "EINVAL", "NULL"),
]


def of(argument):
    """The rows about an argument of this name."""
    return [row for row in REFUSALS if argument in row.arguments.split()]
