# SPDX-License-Identifier: MIT
"""The sentences of errors: what was called, what was found, what is allowed, what to do."""

import pytest

import spcomm
from spcomm._core import errors


def failure(name, call="recv(source=1, tag=7)", culprit=1, state=3, reason=1):
    return errors.failure(name, "a sentence of the core", call, 0, 4, culprit, state, reason)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SPC_ELOST", spcomm.NodeLostError),
        ("SPC_EFINISHED", spcomm.NodeLostError),
        ("SPC_ETIMEDOUT", spcomm.WaitTimeoutError),
        ("SPC_EVERSION", spcomm.VersionError),
        ("SPC_EBUSY", spcomm.SpcommError),
        ("SPC_ECLOSED", spcomm.SpcommError),
        ("SPC_EFORKED", spcomm.SpcommError),
        ("SPC_ELIMIT", spcomm.SpcommError),
        ("SPC_EFORMAT", spcomm.SpcommError),
        ("SPC_EINVAL", spcomm.SpcommError),
        ("SPC_EUNHEARDOF", spcomm.SpcommError),
    ],
)
def test_each_status_has_its_exception_and_names_the_call(name, kind):
    error = failure(name)
    assert type(error) is kind and str(error).startswith("recv(source=1, tag=7): ")


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        (3, -9, "node 1 has died (killed by signal 9 (SIGKILL))"),
        (3, -150, "node 1 has died (killed by signal 150 (unknown))"),
        (3, 2, "node 1 has died (it ended with exit code 2)"),
        (2, 0, "node 1 has finished and will send nothing more"),
    ],
)
def test_how_a_node_ended(state, reason, words):
    error = failure("SPC_ELOST", state=state, reason=reason)
    assert words in str(error) and error.rank == 1


def test_who_is_missed():
    assert "takes part in nothing more" in str(failure("SPC_EFINISHED", "barrier()", state=2))
    assert "cannot complete without it" in str(failure("SPC_ELOST", "barrier()"))
    assert "all other nodes have ended" in str(failure("SPC_ELOST", "recv(source=ANY, tag=7)"))


def signature(operation=3, operator=0, number=12, fields=1, length=8, kind=2, layout=0, char=0):
    return (operation, operator, number, fields, length, kind << 56 | layout, char)


def test_a_mismatch_names_groups_of_nodes():
    called = {0: signature(1), 1: signature(), 2: signature(1), 3: signature(1), 4: signature(2)}
    text = str(errors.mismatch("barrier()", 0, called))
    for words in ("nodes 0, 2-3: barrier()", "node 1: global_sum() of a float", "node 4: fuzzy_barrier()"):
        assert words in text
    assert text.endswith("values of the same type and shape.")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (signature(operator=1, kind=1), "global_min() of an int"),
        (signature(operator=2, kind=4, length=8192), "global_max() of an array of float64, 8192 bytes"),
        (signature(4, kind=4, number=0, char=ord("e"), length=6), "an array of float16, 6 bytes"),
        (signature(kind=5, fields=3, length=24), "a tuple, 24 bytes"),
        (signature(kind=99, operator=77), "a collective operation() of a value"),
    ],
)
def test_what_was_called(found, words):
    assert words in str(errors.mismatch("barrier()", 0, {0: signature(1), 1: found}))


def test_equal_words_for_different_calls():
    called = {0: signature(kind=4, layout=1), 1: signature(kind=4, layout=2)}
    assert str(errors.mismatch("global_sum()", 0, called)).count("of another shape") == 2


def test_a_call_that_was_left():
    text = str(errors.mismatch("global_sum()", 2, {2: signature(1)}))
    assert "node 2 has left barrier() before its end" in text


def test_texts_have_bounds():
    class Mute:
        def __repr__(self):
            raise ValueError

    assert len(errors.shown("x" * 10_000)) == 60
    assert errors.shown(Mute()) == "<Mute>"
    assert len(errors.send_call("send", list(range(10_000)), 0)) < 100
