# SPDX-License-Identifier: MIT
"""The sentences of errors: what was called, what was found, what is allowed, what to do."""

import pytest

import spcomm
from spcomm._core import error_text, errors


def failure(name, call="recv(source=1, tag=7)", culprit=1, state=3, reason=1):
    return error_text.failure(name, "a sentence of the core", call, 0, 4, culprit, state, reason)


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
        (2, 0, "node 1 has finished.\nIt will send nothing more, and no such"),
    ],
)
def test_how_a_node_ended(state, reason, words):
    error = failure("SPC_ELOST", state=state, reason=reason)
    assert words in str(error) and error.rank == 1


def test_a_handler_inside_a_collective_call_is_no_other_thread():
    assert "(another thread, or the call that runs this handler)" in str(
        failure("SPC_EBUSY", call="barrier()")
    )


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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("MPI_Recv_c", "It will send nothing more, and no such message is left."),
        ("MPI_Mprobe", "It will send nothing more, and no such message is left."),
        ("MPI_Sendrecv_c", "It will send nothing more, and no such message is left."),
        ("MPI_Ssend_c", "It has not received the message."),
        ("MPI_Waitall", "The request can't be completed any more."),
        ("MPI_Bcast_c", "It will call nothing more, but all nodes must call MPI_Bcast()."),
    ],
)
def test_who_is_missed_by_a_call_of_mpi(call, words):
    assert f"node 1 has finished.\n{words}" in str(failure("SPC_EFINISHED", call, state=2))


def test_who_is_missed():
    text = str(failure("SPC_EFINISHED", "barrier()", state=2))
    assert "It will call nothing more, but all nodes must call barrier().\n  Try: let node" in text
    assert text.endswith(".     (spcomm explain SP104)")
    assert "This call cannot complete without it" in str(failure("SPC_ELOST", "barrier()"))
    assert "all other nodes have ended" in str(failure("SPC_ELOST", "recv(source=ANY, tag=7)"))


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
