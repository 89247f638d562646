# SPDX-License-Identifier: MIT
"""The file of a fitted model: written, read, refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spcomm.model import loggp
from spcomm.model.errors import ModelError
from spcomm.model.loggp import PARAMETERS, Estimate, Fit, LogGP

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
