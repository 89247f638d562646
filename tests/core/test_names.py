# SPDX-License-Identifier: MIT
"""The constants and tuples that calls take and return."""

import pickle

import pytest

import spcomm

CONSTANTS = ["ANY", "ALL", "OTHERS", "PROC_NULL"]


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_has_a_name_and_stays_itself(name):
    constant = getattr(spcomm, name)
    assert name in repr(constant)
    assert (
        pickle.loads(pickle.dumps(constant)) is constant or pickle.loads(pickle.dumps(constant)) == constant
    )
    assert constant != -1 and constant not in range(100_000)


def test_a_message_is_a_tuple():
    message = spcomm.Message("data", 2, 7)
    assert message == ("data", 2, 7) and message._fields == ("data", "source", "tag")
    assert "data" in repr(message) and "source=2" in repr(message)


def test_constants_travel(comm):
    """Sent as objects they stay what they are."""
    for name in CONSTANTS:
        constant = getattr(spcomm, name)
        comm.send([constant, (constant,)], comm.rank)
        arrived = comm.recv()
        assert repr(arrived) == repr([constant, (constant,)])
