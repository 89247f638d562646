# SPDX-License-Identifier: MIT
"""`spcomm model fit` and `predict` against an invented machine whose parameters are known."""

import gzip
import json
import math
import statistics
from pathlib import Path

import pytest

from bench_files import CORES, KNOWN, NODES, SIZES, TERMS, cases, document, entry, time_ns, write
from spcomm.model import ModelError, loggp, measured, terms
from spcomm.model.command import main
from spcomm.model.fit import TESTS, fit, fit_loggp, start_of
from spcomm.model.loggp import PARAMETERS, Estimate
from spcomm.model.measured import Case
from spcomm.model.predict import predict, predict_cluster

MEASUREMENT = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "listings" / "11_bench.json.gz"


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """The fit of a measurement without noise, and its file."""
    folder = tmp_path_factory.mktemp("fit")
    fitted = fit(measured.read([write(folder / "bench.json")]))
    fitted.write(str(folder / "fit.json"))
    return fitted, str(folder / "fit.json")


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """The fit of a measurement with noise of a tenth."""
    path = tmp_path_factory.mktemp("noisy") / "bench.json"
    return fit(measured.read([write(path, noise=0.1, rounds=1, seed=7)]))


@pytest.mark.parametrize("transport", KNOWN)
@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_found(exact, transport, name):
    found, wanted = getattr(exact[0].transports[transport], name), getattr(KNOWN[transport], name)
    assert found.value == pytest.approx(wanted.value, rel=0.01)


def test_terms_are_found(exact):
    for transport, wanted in TERMS.items():
        found = exact[0].operations[transport]["allreduce, crowded"].terms
        assert {name: term.value for name, term in found.items()} == {
            name: pytest.approx(wanted[name], rel=0.02) for name in found
        }
        blocks = {"block", "turn_block"} if transport == "tcp" else set()  # none between boxes
        assert set(found) == set(terms.CROWDED) - blocks


def test_every_case_is_predicted_exactly(exact):
    for case in cases():
        if case.operation in terms.OPERATIONS and not (case.nodes == 2 and case.size in (0, 8)):
            assert predict(exact[0], case).time_ns.value == pytest.approx(time_ns(case), rel=0.01), case


def test_what_was_not_measured_is_extrapolated(exact):
    case = Case("allreduce", 64, 1024, "memory")
    found = predict(exact[0], case)
    assert found.is_extrapolated and found.time_ns.value == pytest.approx(time_ns(case), rel=0.02)
    assert not predict(exact[0], Case("allreduce", 5, 1024, "memory")).is_extrapolated


def test_an_interval_that_says_nothing_is_unknown(tmp_path, capsys):
    """Two numbers of nodes beyond the cores leave a barrier one degree of freedom; nobody measured beyond 32 KiB."""
    chosen = [case for case in cases() if case.nodes in (2, 4, 8) and case.size <= 4096]
    bench, out = tmp_path / "bench.json", str(tmp_path / "fit.json")
    assert main(["fit", write(bench, chosen, noise=0.15, seed=5), "--out", out]) == 0
    for words in (["barrier", "--nodes", "4"], ["pingpong", "--size", "1M"]):
        capsys.readouterr()
        assert main(["predict", out, *words]) == 0
        table, *_rest, note = capsys.readouterr().out.split("\n\n")
        assert table.splitlines()[1].split()[4:] in (["unknown"], ["unknown", "extrapolated"])
        assert "within a factor of 10. Measure more numbers of nodes and\nsizes: `spcomm bench" in note
    assert main(["predict", out, "broadcast", "--nodes", "4,8"]) == 0
    assert "nknown" not in capsys.readouterr().out


def test_a_value_that_no_case_determines_stays_at_its_start(tmp_path):
    """Rounding in the solver, another on each processor, would move it by a factor of ten and more."""
    chosen = [case for case in cases() if case.size <= 4096]
    found = measured.read([write(tmp_path / "bench.json", chosen, noise=0.15, seed=5)])
    start = start_of({name: found.of(name, "memory") for name in TESTS})
    loggp, _ = fit_loggp(found, "memory")
    assert loggp.gap_per_long_byte_ns.value == pytest.approx(start[6], rel=1e-9)
    assert loggp.gap_per_byte_ns.value != pytest.approx(start[4], rel=1e-3)


@pytest.mark.parametrize(
    ("low", "high", "is_known"), [(10, 1000, True), (9, 100, False), (100, 1001, False), (0, 100, False)]
)
def test_an_interval_is_known_within_a_factor_of_ten(low, high, is_known):
    assert Estimate(100, low, high).is_known is is_known


def test_what_the_terms_miss_is_learned_from_neighbours(tmp_path):
    """On a machine whose times leave the terms by a smooth factor, the case next to measured ones has that factor."""
    path = tmp_path / "bench.json"
    held = Case("broadcast", 6, 4096, "memory")

    def missed(case):
        return 1.5 ** math.sin(math.log2(case.size) / 3) if case.operation == "broadcast" else 1.0

    write(path)
    whole = json.loads(path.read_text())
    for found in whole["measurements"]:
        case = Case(found["operation"], found["nodes"], found["bytes"], found["transport"])
        found["samples"] = [[missed(case) * value for value in batch] for batch in found["samples"]]
    path.write_text(json.dumps(whole))
    fitted = fit(measured.read([str(path)]).without([held]))
    found, truth = predict(fitted, held), time_ns(held) * missed(held)
    assert abs(math.log(found.time_ns.value / truth)) < 0.5 * abs(math.log(found.terms_ns / truth))
    assert found.time_ns.low < truth < found.time_ns.high
    near, far = (predict(fitted, Case("broadcast", n, 4096, "memory")) for n in (8, 1024))
    assert abs(math.log(far.time_ns.value / far.terms_ns)) < abs(math.log(near.time_ns.value / near.terms_ns))
    assert far.time_ns.high / far.time_ns.value > near.time_ns.high / near.time_ns.value


@pytest.mark.slow
def test_intervals_hold_the_truth(noisy):
    """Some of 95 % intervals miss; with this seed few do. All of five parameters lie within."""
    inside = [
        found.low <= getattr(KNOWN[transport], name).value <= found.high
        for transport in KNOWN
        for name in PARAMETERS[:5]
        for found in [getattr(noisy.transports[transport], name)]
    ]
    assert sum(inside) >= len(inside) - 1
    chosen = [case for case in cases() if case.operation == "broadcast"]
    predicted = [predict(noisy, case).time_ns for case in chosen]
    truth = [time_ns(case) for case in chosen]
    held = sum(p.low <= t <= p.high for p, t in zip(predicted, truth, strict=True))
    assert held >= 0.9 * len(truth)
    crowded = [p for p, c in zip(predicted, chosen, strict=True) if c.nodes > CORES]
    assert all(p.high / p.low < 2 for p in crowded), "the intervals say something"


def test_one_disturbed_case_does_not_bend_the_fit(tmp_path):
    path = tmp_path / "bench.json"
    write(path)
    whole = json.loads(path.read_text())
    disturbed = next(e for e in whole["measurements"] if e["key"] == "broadcast 8 4096 memory")
    disturbed["samples"] = [[1000 * value for value in batch] for batch in disturbed["samples"]]
    path.write_text(json.dumps(whole))
    case = Case("broadcast", 6, 4096, "memory")
    assert predict(fit(measured.read([str(path)])), case).time_ns.value == pytest.approx(
        time_ns(case), rel=0.1
    )


def test_rounds_of_several_files_are_put_together(tmp_path):
    case = Case("pingpong", 2, 8, "memory")
    for k, factor in enumerate((1, 3, 2)):
        (tmp_path / f"{k}.json").write_text(json.dumps(document([entry(case, [factor * 100.0])])))
    found = measured.read([str(tmp_path / f"{k}.json") for k in range(3)]).times[case]
    assert found.rounds == pytest.approx((100, 300, 200)) and found.time == pytest.approx(100)
    assert found.spread == pytest.approx(2)


def test_other_measurements_do_not_count(tmp_path):
    case = Case("pingpong", 2, 8, "memory")
    others = [
        {"contender": "mpich"},
        {"unit": "B"},
        {"buffers": "cold"},
        {"computing": 2},
        {"transport": "mixed"},
    ]
    path = tmp_path / "bench.json"
    path.write_text(
        json.dumps(document([entry(case, [1.0], **change) for change in [*others, {"bytes": None}]]))
    )
    with pytest.raises(ModelError, match="no times of spcomm to fit; `spcomm bench sweep paths"):
        measured.read([str(path)])


@pytest.mark.leaves("matplotlib keeps the files of its fonts open")
def test_the_command_writes_what_predict_reads(tmp_path, capsys):
    bench, out = write(tmp_path / "bench.json"), tmp_path / "fit.json"
    assert main(["fit", bench, "--out", str(out), "--figures", str(tmp_path / "figures")]) == 0
    shown = capsys.readouterr().out
    assert "overhead send" in shown and "barrier, crowded" in shown
    pictures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert pictures == ["fit-memory.png", "fit-tcp.png"]
    assert all((tmp_path / "figures" / name).stat().st_size > 10_000 for name in pictures)
    assert main(["predict", str(out), "barrier", "--nodes", "8,64"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:4] == ["8", "0", "6.00", "µs"] and "extrapolated" not in lines[1]
    assert lines[2].split()[0] == "64" and lines[2].endswith("extrapolated")
    assert "no measurement has checked them there" in lines[-1]


@pytest.mark.parametrize(("operation", "messages"), [("barrier", 3), ("broadcast", 3), ("pingpong", 1)])
def test_clusters_take_whole_messages(operation, messages):
    n = 2 if operation == "pingpong" else 8
    found = predict_cluster(KNOWN["tcp"], Case(operation, n, 8, "tcp"), "tree")
    assert found.value == pytest.approx(messages * KNOWN["tcp"].message_ns(8))


def test_a_server_is_overtaken_by_a_tree():
    """One server handles n messages, a tree takes log n steps: the ratio grows with n."""
    ratios = []
    for n in (4, 64, 1024):
        case = Case("allreduce", n, 8, "tcp")
        server, tree = (
            predict_cluster(KNOWN["tcp"], case, algorithm).value for algorithm in ("server", "tree")
        )
        ratios.append(server / tree)
    assert ratios == sorted(ratios) and ratios[-1] > 10


def test_a_prediction_for_a_cluster_says_so(exact, capsys):
    assert (
        main(["predict", exact[1], "allreduce", "--nodes", "64", "--transport", "tcp", "--cluster", "tree"])
        == 0
    )
    assert "a cluster that nobody has measured" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["barier"], "no model of an operation 'barier'; there are: pingpong, one_way"),
        (["pingpong", "--nodes", "4"], "pingpong needs 2 nodes; got 4"),
        (["barrier", "--nodes", "1"], "barrier needs 2 nodes or more; got 1"),
    ],
)
def test_predictions_that_cannot_be(exact, capsys, words, complaint):
    assert main(["predict", exact[1], *words]) == 1
    shown = capsys.readouterr().err
    assert complaint in shown and shown.count("\n") == 1


@pytest.mark.parametrize("text", ["x", "-1", "8,", "1.5", "9999999999999"])
def test_numbers_of_the_command_line(exact, capsys, text):
    with pytest.raises(SystemExit):
        main(["predict", exact[1], "barrier", f"--nodes={text}"])
    assert "is not a list of numbers such as" in capsys.readouterr().err


def few(name):
    return [case for case in cases() if case.operation != name or case.size == 8]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (
            lambda path: write(path, few("pingpong")),
            "too few points to fit memory: pingpong was measured at 1 size,",
        ),
        (
            lambda path: write(path, few("send_overhead")),
            "too few points to fit memory: send_overhead was measured at 1 size, and LogGP needs at least 2; "
            "`spcomm bench sweep paths --json FILE` measures what is needed",
        ),
        (
            lambda path: write(path, [case for case in cases() if case.size in (8, 64)]),
            "too few points to fit memory: pingpong, one_way, send_overhead, receive_overhead were measured at 8 sizes"
            " together, and LogGP needs at least 12; `spcomm bench sweep",
        ),
        (lambda path: path.write_text("{"), "is not JSON"),
        (lambda path: path.write_text("{}"), "was not written by spcomm bench --json"),
        (
            lambda path: path.write_text(json.dumps(document([], format=1))),
            "has format 1, and this spcomm reads format",
        ),
        (lambda path: path.write_text(json.dumps(document([]))), "no times of spcomm to fit"),
        (lambda path: None, "cannot read"),
    ],
)
def test_bad_measurements_are_one_sentence(tmp_path, capsys, make, complaint):
    path = tmp_path / "bench.json"
    make(path)
    assert main(["fit", str(path)]) == 1
    shown = capsys.readouterr().err
    assert complaint in shown and shown.count("\n") == 1 and shown.startswith("spcomm model fit: ")


def test_two_machines_are_not_one(tmp_path, capsys):
    case = Case("pingpong", 2, 8, "memory")
    for cores in (2, 8):
        whole = document([entry(case, [100.0])], machine={"cores": cores, "system": "Linux", "python": "3"})
        (tmp_path / f"{cores}.json").write_text(json.dumps(whole))
    assert main(["fit", str(tmp_path / "2.json"), str(tmp_path / "8.json")]) == 1
    assert "are of machines with 2 and 8 cores; fit one machine at a time" in capsys.readouterr().err


def test_too_few_points_of_one_operation(tmp_path, capsys):
    bench = write(tmp_path / "bench.json", [c for c in cases() if c.operation != "reduce" or c.nodes < 4])
    assert main(["fit", bench, "--out", str(tmp_path / "fit.json")]) == 0
    few_nodes = [c for c in cases() if c.operation != "reduce" or (c.nodes == 4 and c.size < 64)]
    bench = write(tmp_path / "few.json", few_nodes)
    assert main(["fit", bench, "--out", str(tmp_path / "few-fit.json")]) == 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "few-fit.json"), "reduce", "--nodes", "8"]) == 1
    assert "the fit has too few points of 'reduce, crowded' over memory; it has: " in capsys.readouterr().err


def test_the_sizes_and_nodes_of_the_invented_machine_are_those_of_the_bench():
    from spcomm.bench.cases import paths

    assert paths.SIZES == SIZES and CORES in NODES and tuple(KNOWN) == loggp.TRANSPORTS


def test_without_scipy_one_sentence_says_what_to_install(tmp_path, monkeypatch, capsys):
    import sys

    bench = write(tmp_path / "bench.json")
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert main(["fit", bench]) == 1
    assert (
        "needs scipy, which is not installed; python -m pip install 'spcomm[model]'"
        in capsys.readouterr().err
    )


def test_cases_of_a_real_measurement_that_the_fit_has_not_seen(tmp_path):
    path = tmp_path / "bench.json"
    path.write_bytes(gzip.decompress(MEASUREMENT.read_bytes()))
    found = measured.read([str(path)])
    held = [case for case in sorted(found.times) if case.operation in terms.OPERATIONS][::3]
    fitted = fit(found.without(held))
    predicted = [(predict(fitted, case).time_ns, found.times[case].time) for case in held]
    errors = [abs(estimate.value / time - 1) for estimate, time in predicted]
    inside = [estimate.low <= time <= estimate.high for estimate, time in predicted]
    assert len(held) > 300 and statistics.median(errors) < 0.2
    assert sum(inside) > 0.9 * len(inside)
