# SPDX-License-Identifier: MIT
"""The sentences of errors: what was called, what was found, what is allowed, what to do."""

from types import SimpleNamespace

import pytest

import spcomm
from spcomm._core import call_site, error_text, errors


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SPC_ELOST", spcomm.NodeLostError),
        ("SPC_EFINISHED", spcomm.NodeLostError),
        ("SPC_ETIMEDOUT", spcomm.WaitTimeoutError),
        ("SPC_EDISCONNECTED", spcomm.ConnectionLostError),
        ("SPC_ECYCLE", spcomm.CycleError),
        ("SPC_EVERSION", spcomm.VersionError),
        ("SPC_EBUSY", spcomm.SpcommError),
        ("SPC_EUNHEARDOF", spcomm.SpcommError),
    ],
)
def test_each_status_has_its_exception_and_names_the_call(name, kind):
    error = error_text.failure(name, "recv(source=1, tag=7)", "the core's reason")
    assert type(error) is kind and str(error) == "recv(source=1, tag=7): the core's reason"


@pytest.mark.parametrize(
    ("value", "words"), [(1, "an int"), ([], "a list"), ((), "a tuple"), (None, "a NoneType")]
)
def test_kinds_have_their_article(value, words):
    assert errors.a_kind(value) == words
    assert words in str(error_text.no_items("scatter", "objs", value))
    assert words in str(error_text.bad_operator("reduce", value))


def test_functions_that_are_no_operators():
    for function in (max, lambda one, other: one):
        assert str(error_text.bad_operator("reduce", function)).endswith("or give op=spcomm.op(function)")


def test_what_does_not_fit_into_out_can_be_received_without():
    for error in (errors.too_long(1, 0, (5,), 5, 3), errors.wrong_shape(1, 0, (5,), (4, 3))):
        assert "It stays queued: receive it without out" in str(error)


def test_texts_have_bounds():
    class Mute:
        def __repr__(self):
            raise ValueError

    assert len(errors.shown("x" * 10_000)) == 60
    assert errors.shown(Mute()) == "<Mute>"
    assert len(errors.send_call("send", list(range(10_000)), 0)) < 100


def test_a_destination_that_may_be_the_object_is_said():
    for error in (
        errors.bad_rank_type("send", "dest", "hello"),
        errors.perhaps_swapped(errors.bad_rank("send", "dest", 10, 2), "send"),
    ):
        assert str(error).endswith(". The order is send(obj, dest): are the two swapped?")
    assert "swapped" not in str(errors.bad_rank_type("recv", "source", "hello"))


def test_an_error_at_an_instruction_without_a_line_has_line_0():
    code = compile("raise KeyboardInterrupt", "loop.py", "exec").replace(co_linetable=b"")
    with pytest.raises(KeyboardInterrupt) as caught:
        exec(code)
    assert caught.tb.tb_next.tb_lineno in (None, -1)
    assert call_site.of_error(caught.value) == ("loop.py", 0, "<module>")


def test_a_call_at_an_instruction_without_a_line_has_line_0():
    code = compile("found = of_caller()", "loop.py", "exec").replace(co_linetable=b"")
    names = {"of_caller": call_site.of_caller}
    exec(code, names)
    assert names["found"] == ("loop.py", 0, "<module>")


def test_a_line_of_minus_one_is_line_0():
    code = compile("", "loop.py", "exec")
    trace = SimpleNamespace(
        tb_frame=SimpleNamespace(f_code=code), tb_lineno=-1, tb_next=None
    )  # of Python 3.11.2
    assert call_site.of_error(SimpleNamespace(__traceback__=trace)) == ("loop.py", 0, "<module>")
