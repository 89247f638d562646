# SPDX-License-Identifier: MIT
"""The file of a fitted model: written, read, refused."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spcomm.model import ModelError, loggp
from spcomm.model.loggp import PARAMETERS, Estimate, Fit, Kernel, LogGP, OperationFit
from spcomm.model.measured import Case
from spcomm.model.predict import predict

NUMBERS = st.floats(0, 1e9)
ESTIMATES = st.lists(NUMBERS, min_size=3, max_size=3).map(sorted).map(lambda v: Estimate(v[1], v[0], v[2]))


def exactly(*values):
    return LogGP(*(Estimate(value, value, value) for value in values))


@given(estimates=st.lists(ESTIMATES, min_size=5, max_size=5), noise=st.lists(NUMBERS, min_size=1))
def test_a_fit_is_read_as_it_was_written(tmp_path_factory, estimates, noise):
    path = str(tmp_path_factory.mktemp("fit") / "fit.json")
    fit = Fit({"memory": LogGP(*estimates, noise=tuple(noise))}, {}, 2, {"python": "3.11"})
    fit.write(path)
    assert loggp.read(path) == fit


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not JSON"),
        pytest.param("[" * 100_000, "is not JSON", id="deep"),
        ("[1]", "is no fitted model"),
        ('{"format": 1}', "is no fitted model; `spcomm model fit BENCH.json --out FILE` writes one"),
        (
            '{"format": "spcomm model", "version": 99}',
            "of version 99, and this spcomm reads version 2; `spcomm",
        ),
        ('{"format": "spcomm model", "version": 2}', "is damaged: KeyError: 'transports'"),
        (
            '{"format": "spcomm model", "version": 2, "transports": {"memory": {"noise": [1]}}, "machine": {}}',
            "is damaged: KeyError: 'overhead_send_ns'",
        ),
    ],
)
def test_other_files_are_refused(tmp_path, text, complaint):
    path = tmp_path / "fit.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=r".*") as caught:
        loggp.read(str(path))
    assert complaint in str(caught.value) and "\n" not in str(caught.value)


def test_a_damaged_interval_is_refused(tmp_path):
    path = tmp_path / "fit.json"
    Fit({"memory": exactly(1, 2, 3, 4, 5)}).write(str(path))
    document = json.loads(path.read_text())
    document["transports"]["memory"]["latency_ns"]["low"] = 7
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match="an estimate needs low <= value <= high"):
        loggp.read(str(path))


TERMS = OperationFit(
    {"turn": Estimate(10, 5, 20)},
    ((4.0,),),
    0.1,
    3,
    (4, 8),
    (0, 0),
    ((4, 0, 0.1),),
    Kernel(0.2, 0.5, 2.5, 0.1),
)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("cores",), math.inf),
        (("cores",), True),
        (("transports", "memory", "noise"), [10**400]),
        (("transports", "memory", "latency_ns", "value"), 1e308),
        (("transports", "memory", "gap_ns", "high"), math.nan),
        (("operations", "memory", "barrier, crowded", "covariance"), [[1.0], [2.0]]),
        (("operations", "memory", "barrier, crowded", "residuals"), [[4, 0, 1e9]]),
        (("operations", "memory", "barrier, crowded", "residuals"), [[math.inf, 0, 0.1]]),
        (("operations", "memory", "barrier, crowded", "kernel", "noise"), 0.0),
        (("operations", "memory", "barrier, crowded", "degrees"), "3"),
        (("operations", "memory", "barrier, crowded", "nodes"), [None, 8]),
    ],
)
def test_a_number_out_of_range_is_refused(tmp_path, place, value):
    path = tmp_path / "fit.json"
    Fit({"memory": exactly(1, 2, 3, 4, 5)}, {"memory": {"barrier, crowded": TERMS}}, 2).write(str(path))
    assert loggp.read(str(path)).operations["memory"]["barrier, crowded"] == TERMS
    document = json.loads(path.read_text())
    *way, last = place
    inner = document
    for name in way:
        inner = inner[name]
    assert last in inner
    inner[last] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=r"is damaged: .*; `spcomm model fit"):
        loggp.read(str(path))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"terms": {"trun": Estimate(10, 5, 20)}},
            "the fit has a term 'trun' of 'barrier, crowded', which is none",
        ),
        ({"terms": {"turn": Estimate(0, 0, 0)}}, "says nothing of barrier 8 0 memory"),
        ({"terms": {"turn": Estimate(1e-320, 0, 20)}}, ""),
    ],
)
def test_a_fit_that_predicts_nothing(change, complaint):
    fit = Fit(
        {"memory": exactly(1, 2, 3, 4, 5)},
        {"memory": {"barrier, crowded": replace(TERMS, **change)}},
        cores=2,
    )
    case = Case("barrier", 8, 0, "memory")
    if complaint:
        with pytest.raises(ModelError, match=complaint):
            predict(fit, case)
    else:
        assert not predict(fit, case).time_ns.is_known


def test_no_such_transport_or_file(tmp_path):
    with pytest.raises(ModelError, match=r"no transport 'tcp'; it has: memory"):
        Fit({"memory": exactly(1, 2, 3, 4, 5)}).of("tcp")
    with pytest.raises(ModelError, match=r"cannot read .*: No such file"):
        loggp.read(str(tmp_path / "none.json"))
    with pytest.raises(ModelError, match=r"cannot write .*: No such file"):
        Fit({}).write(str(tmp_path / "no" / "fit.json"))


def test_a_message_is_the_sum_of_its_parts():
    assert PARAMETERS[:5] == (
        "overhead_send_ns",
        "overhead_receive_ns",
        "latency_ns",
        "gap_ns",
        "gap_per_byte_ns",
    )
    assert exactly(100, 80, 60, 120, 0.5).message_ns(10) == 245
    bent = LogGP(
        *[Estimate(v, v, v) for v in (100, 80, 60, 120, 0.5)], (1.0,), *[Estimate(v, v, v) for v in (7, 0.25)]
    )
    assert bent.message_ns(40000) == 247 + 0.5 * 32768 + 0.25 * 7232
