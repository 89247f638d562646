# SPDX-License-Identifier: MIT
"""`spcomm model validate`: which cases are held out, and what is said of their errors."""

import hashlib
import re
from pathlib import Path

import pytest

from bench_files import cases, write
from spcomm.bench import results_file
from spcomm.model import ModelError, measured, terms
from spcomm.model.command import main
from spcomm.model.measured import Case
from spcomm.model.validate import is_held_out, median_error, read_cases, validate

ROOT = Path(__file__).resolve().parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def whole(tmp_path):
    """A list of all cases, and two measurements of an invented machine."""
    path = tmp_path / "cases.txt"
    chosen = [case for case in cases() if case.operation in terms.OPERATIONS]
    path.write_text("# operation, nodes, bytes, transport\n" + "".join(f"{case}\n" for case in chosen))
    return str(path), write(tmp_path / "1.json", noise=0.02), write(tmp_path / "2.json", noise=0.02, seed=2)


def test_the_hash_chooses_a_third():
    chosen = [case for case in cases() if case.operation in terms.OPERATIONS]
    held = [case for case in chosen if is_held_out(case, COMMIT)]
    assert 0.25 < len(held) / len(chosen) < 0.42
    assert held != [case for case in chosen if is_held_out(case, COMMIT[::-1])]
    case = held[0]
    digest = hashlib.sha256(f"{case.operation} {case.nodes} {case.size} {case.transport} {COMMIT}".encode())
    assert int(digest.hexdigest()[:16], 16) % 3 == 0


def test_an_exact_machine_is_predicted(whole):
    path, first, second = whole
    checked = validate(read_cases(path), COMMIT, measured.read([first]), measured.read([second]))
    assert {entry.case for entry in checked} == {c for c in read_cases(path) if is_held_out(c, COMMIT)}
    assert median_error(checked) < 0.03
    assert {entry.is_crowded for entry in checked} == {True, False}
    assert all(entry.is_crowded == (entry.case.nodes > 2) for entry in checked)


def test_held_out_cases_are_not_fitted(whole, tmp_path):
    """Whatever was measured of them, the predictions are the same."""
    path, first, second = whole
    again = measured.read([first])
    other = measured.read([first])
    for case in list(other.times):
        if is_held_out(case, COMMIT) and case.operation in terms.OPERATIONS:
            times = other.times[case]
            other.times[case] = type(times)(tuple(9 * t for t in times.rounds), times.samples)
    chosen = read_cases(path)
    one, two = (validate(chosen, COMMIT, found, measured.read([second])) for found in (again, other))
    for entry, another in zip(one, two, strict=True):
        assert vars(entry.predicted) == pytest.approx(vars(another.predicted), rel=1e-3)
    assert median_error(two) > 0.8


def test_the_command_prints_tables(whole, capsys):
    path, first, second = whole
    words = ["validate", path, "--commit", COMMIT, "--first", first, "--second", second]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "memory, more than cores" in shown and "tcp, a core each" in shown
    assert main([*words, "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| operation | nodes |") and lines[1].startswith("| --- |")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no cases"),
        (
            "barrier\n",
            "'barrier' is not a case, which is an operation, a number of nodes, bytes, and a transport",
        ),
        ("barrier 2 0 udp\n", "is not a case"),
        ("barrier two 0 tcp\n", "is not a case"),
        ("barrier ٣ 0 tcp\n", "is not a case"),
        (f"barrier {'9' * 5000} 0 tcp\n", f"lacks 1 case of the list, such as barrier {10**20} 0 tcp"),
        ("\udcff", "cannot read '"),
        ("barrier 99 0 tcp\n", "the first measurement lacks 1 case of the list, such as barrier 99 0 tcp"),
    ],
)
def test_bad_lists_are_one_sentence(whole, tmp_path, capsys, text, complaint):
    _, first, second = whole
    path = tmp_path / "bad.txt"
    path.write_text(text, errors="surrogateescape")
    assert main(["validate", str(path), "--commit", COMMIT, "--first", first, "--second", second]) == 1
    shown = capsys.readouterr().err
    assert complaint in shown and shown.count("\n") == 1


def test_a_commit_is_asked_for(whole, capsys):
    path, first, second = whole
    assert main(["validate", path, "--commit", "HEAD", "--first", first, "--second", second]) == 1
    assert "'HEAD' is not the commit of the list, 40 hexadecimal digits" in capsys.readouterr().err
    with pytest.raises(ModelError, match="cannot read"):
        read_cases(path + ".none")


def test_a_list_without_an_end_is_refused_and_not_cut(whole, monkeypatch):
    path, _first, _second = whole
    monkeypatch.setattr(results_file, "_MOST_CHARACTERS", Path(path).stat().st_size - 1)
    with pytest.raises(ModelError, match="it has more than 0 MiB"):
        read_cases(path)


def test_a_case_has_one_text():
    case = Case("all_to_all", 8, 512, "tcp")
    assert Case.parse(str(case)) == case
    assert str(Case("pingpong", 2, 8, "tcp", True, True)) == "pingpong 2 8 tcp direct encrypted"


def test_the_validation_of_the_page_can_be_repeated():
    """The measurements in the repository give the numbers of docs/reference/model.md, up to rounding."""
    page = (ROOT / "docs" / "reference" / "model.md").read_text()
    (commit,) = re.findall(r"`([0-9a-f]{40})`", page)
    folder = ROOT / "tests" / "model" / "validation"
    first, second = (measured.read([str(folder / f"measurement_{k}.json")]) for k in (1, 2))
    checked = validate(read_cases(str(folder / "list.txt")), commit, first, second)
    over = sum(abs(entry.error) > entry.limit for entry in checked)
    inside = sum(entry.is_within_interval for entry in checked)
    assert f"{len(checked)} cases" in page and f"{inside} of the {len(checked)} measured times" in page
    (row,) = re.findall(r"^\| all \| all \| (.*) \|$", page, re.MULTILINE)
    count, median, _worst, _spread, printed_over, printed_inside = map(int, row.split(" | "))
    assert (count, printed_over, printed_inside) == (len(checked), over, inside)
    assert 100 * median_error(checked) == pytest.approx(median, abs=1)
