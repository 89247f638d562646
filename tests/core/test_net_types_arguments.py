# SPDX-License-Identifier: MIT
"""NetInt and NetDouble as arguments of NumPy's functions that want numbers of another dtype: as int and float there.

NumPy before 2.2 looks for the dtype of such a scalar by other ways than later ones.
"""

import numpy as np
import pytest

from spcomm import NetDouble, NetInt

NUMBERS = "?bBhHiIlLqQfdgFDG"
X = np.arange(5)
CALLS = {
    "repeat": lambda n: np.repeat(X, n),
    "take": lambda n: np.take(X, n),
    "searchsorted": lambda n: np.searchsorted(X, n),
    "dot": lambda n: np.dot(2, n),
    "where": lambda n: np.where(X > 1, X, n),
    "eye": lambda n: np.eye(n),
    "arange": lambda n: np.arange(n),
    "linspace": lambda n: np.linspace(0, n, 4),
    "full": lambda n: np.full(2, n, int),
    "put": lambda n: (lambda a: (np.put(a, [0], n), a)[1])(X.copy()),
    "assigned": lambda n: (lambda a: (a.__setitem__(n, n), a)[1])(X.copy()),
    "interp": lambda n: np.interp(n, X, X),
    "asarray": lambda n: np.asarray(n, object),
}


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize(
    "number", [NetInt(3), NetInt(0), NetInt(100), NetDouble(2.5), NetDouble(0)], ids=repr
)
def test_to_a_dtype(dtype, number):
    plain = int(number) if isinstance(number, int) else float(number)
    found, wanted = np.array(number, dtype), np.array(plain, dtype)
    assert found.dtype == wanted.dtype and found == wanted
    assert np.asarray(number).astype(dtype) == wanted


@pytest.mark.parametrize("number", [NetInt(-3), NetDouble(-2.5)], ids=repr)
@pytest.mark.parametrize("dtype", "bhilqfdgFDG")
def test_negative(dtype, number):
    plain = int(number) if isinstance(number, int) else float(number)
    assert np.array(number, dtype) == np.array(plain, dtype)


@pytest.mark.parametrize("number", [NetInt(3), NetDouble(2.5)], ids=repr)
def test_to_a_half(number):
    plain = int(number) if isinstance(number, int) else float(number)
    found = np.array(number, "f2")
    assert found.dtype == np.float16 and found == plain


@pytest.mark.parametrize("call", CALLS)
def test_as_an_argument(call):
    found, wanted = CALLS[call](NetInt(3)), CALLS[call](3)
    assert np.shape(found) == np.shape(wanted) and (found == wanted).all()


@pytest.mark.parametrize("call", ["searchsorted", "dot", "where", "linspace", "interp"])
def test_a_double_as_an_argument(call):
    found, wanted = CALLS[call](NetDouble(2.5)), CALLS[call](2.5)
    assert np.shape(found) == np.shape(wanted) and (found == wanted).all()
