# SPDX-License-Identifier: MIT
"""`spcomm model fit --components`: differences of paths give back the components of an invented machine."""

import json

import pytest

from bench_files import document, entry
from spcomm.model import ModelError, components, measured
from spcomm.model.command import main
from spcomm.model.measured import Case

SIZES = (8, 64, 512, 4096)
KNOWN = {
    "memory overhead": (100, 0.2),
    "memory forwarding": (500, 0.4),
    "TCP overhead": (5000, 0.3),
    "TCP forwarding": (9000, 1.0),
    "switching": (7000, 0.6),
}
PATHS = [(kind, hops) for kind in components.KINDS for hops in range(1, components.FAR + 1)]


def component(name, size):
    base, per_byte = KNOWN[name]
    return base + per_byte * (size - 64)


def write(path, disturbance=(0.0, 0.0, 0.0), paths=PATHS, switching=1, sizes=SIZES):
    """A measurement of chains whose rounds are disturbed by so many nanoseconds, all paths alike."""
    entries = []
    for kind, hops in paths:
        for size in sizes:
            counts = components.stages(kind, hops)
            if "switching" in counts and hops > 1:
                counts["switching"] *= switching
            time = sum(count * component(name, size) for name, count in counts.items())
            transport, direct = components.KINDS[kind]
            case = Case("chain", hops + 1, size, transport, direct)
            entries.append(entry(case, [time + more for more in disturbance]))
    path.write_text(json.dumps(document(entries)))
    return str(path)


def test_components_are_found(tmp_path):
    found = components.find(measured.read([write(tmp_path / "paths.json")]))
    for name, values in found.values.items():
        assert {size: value.value for size, value in values.items()} == {
            size: pytest.approx(component(name, size)) for size in SIZES
        }
        assert [part.value for part in found.lines[name]] == pytest.approx(KNOWN[name])
    errors = [check.error for checks in found.checks.values() for check in checks.values()]
    assert errors == pytest.approx([0.0] * len(SIZES) * len(components.CHECKED), abs=1e-9)


def test_a_disturbance_of_a_whole_round_leaves_differences_alone(tmp_path):
    found = components.find(measured.read([write(tmp_path / "paths.json", (0, 300, 5000))]))
    assert found.values["switching"][64].value == pytest.approx(component("switching", 64))
    assert found.values["switching"][64].high - found.values["switching"][64].low < 1e-3
    assert found.values["TCP overhead"][64].high > component("TCP overhead", 64), "half a path is disturbed"
    assert found.checks["direct", 3][64].spread > 0


def test_a_path_that_is_no_sum_shows_an_error(tmp_path):
    found = components.find(measured.read([write(tmp_path / "paths.json", switching=2)]))
    assert all(check.error < -0.1 for check in found.checks["server", 3].values())
    assert all(check.error == pytest.approx(0, abs=1e-6) for check in found.checks["direct", 3].values())


@pytest.mark.parametrize("missing", [("memory", 3), ("direct", 4), ("server", 1)])
def test_without_a_path_there_is_a_sentence(tmp_path, missing):
    paths = [path for path in PATHS if path != missing]
    with pytest.raises(
        ModelError, match=r"need chains of one to 4 hops .* nothing measured over: "
    ) as caught:
        components.find(measured.read([write(tmp_path / "paths.json", paths=paths)]))
    assert f"over: {missing[0]}, {missing[1]} hops. `spcomm bench paths" in str(caught.value)


def test_three_sizes_are_too_few_for_the_interval_of_a_line(tmp_path):
    path = write(tmp_path / "paths.json", sizes=SIZES[:3])
    with pytest.raises(ModelError, match=r"at 4 sizes or more; 3 sizes in common\. `spcomm bench paths"):
        components.find(measured.read([path]))


def test_the_command_prints_the_checks(tmp_path, capsys):
    assert main(["fit", "--components", write(tmp_path / "paths.json")]) == 0
    shown = capsys.readouterr().out
    assert ["server,", "3", "hops", "64", "49.0", "µs", "49.0", "µs", "-0", "0"] in [
        line.replace("+0", "-0").split() for line in shown.splitlines()
    ]
