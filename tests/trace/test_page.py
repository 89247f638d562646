# SPDX-License-Identifier: MIT
"""The page of `spcomm trace --html`: what is in it, and in a browser, that it draws and obeys."""

import json
import re
import struct
import zlib

import pytest

import browser
from builder import Builder, two_nodes
from pairwise import each
from spcomm.trace.page import content, embedded, page
from spcomm.trace.reader import parse

NASTY = [
    "</script><script>document.title='bad'</script>",
    "<!--<script>",
    "a&amp;b",
    "\u2028\u2029",
    "@@data@@",
    '"\\',
]


def made(built, folder):
    path = folder / "t.html"
    path.write_text(page(parse(built.text())))
    return path


def data_of(text):
    [found] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


def nasty():
    built = Builder(2, program=NASTY[0])
    for at, name in enumerate(NASTY):
        built.call(0, 10 * at, 10 * at + 8, name, name).region(1, 10 * at, 10 * at + 5, name)
    return built.message(0, 1, 3, 4, context=NASTY[0])


@pytest.mark.smoke
def test_it_is_whole():
    text = page(parse(two_nodes().text()))
    assert "@@" not in text and "<title>heat.py on 2 nodes</title>" in text
    outside = re.findall(r"(?:src|href)\s*=|https?:|@import|url\(|fetch\(|XMLHttp|import\(", text)
    assert outside == [] and "default-src 'none'" in text


def test_names_are_data_and_never_markup():
    text = page(parse(nasty().text()))
    assert text.count("<script") == 2 and text.count("</script") == 2 and "<!--<script" not in text
    assert data_of(text)["program"] == NASTY[0]
    assert set(NASTY) - {"\u2028\u2029"} <= set(data_of(text)["texts"])


def test_embedded_json_is_the_same_value():
    value = {name: [name, 1.5, None] for name in NASTY}
    text = embedded(value)
    assert json.loads(text) == value and not set("<>&\u2028") & set(text) and text.isascii()


def test_times_count_from_the_begin_of_the_part():
    from spcomm.trace.model import cut

    found = content(cut(parse(two_nodes().text()), 20, 80))
    assert (found["offset"], found["length"]) == (20_000, 60_000)
    assert found["tracks"][0]["calls"][:2] == [[10_000, 50_000], [20_000, 60_000]]
    assert found["running"] == [[0, 10_000, 20_000, 40_000, 50_000], [1, 0, 2, 1, 0]]
    assert found["messages"][:2] == [[12_000], [16_000]]


@pytest.mark.slow
@browser.needed
def test_a_browser_draws_it(tmp_path):
    built = two_nodes().region(0, 0, 30, "interior").message(1, 0, 90, None)
    found = browser.opened(made(built, tmp_path), tmp_path)
    assert found.complaints() == []
    assert found.told["drawn"] == "yes"
    # Four calls and three waits; both messages; all calls are wide enough for their names.
    assert [found.number(name) for name in ("rows", "spans", "labels", "arrows")] == [2, 7, 4, 2]
    assert (found.number("from"), found.number("to")) == (0, 0.0001)
    for words in ("40.0 %", "node 0", "heat.py:6", "60.0 µs", "800 B"):
        assert words in found.document


@pytest.mark.slow
@browser.needed
def test_handlers_are_drawn_as_computing(tmp_path):
    """Without one there are a call's bar and that behind it."""
    for built, handling in (
        (Builder(1).call(0, 0, 100), []),
        (Builder(1).call(0, 0, 100).handler(0, 25, 75), [[25_000], [75_000]]),
    ):
        assert content(parse(built.text()))["tracks"][0]["handling"] == handling
        found = browser.opened(made(built, tmp_path), tmp_path)
        assert found.complaints() == [] and (found.number("bars") > 2) == bool(handling)


@pytest.mark.slow
@browser.needed
def test_names_do_not_break_it(tmp_path):
    found = browser.opened(made(nasty(), tmp_path), tmp_path)
    assert found.complaints() == [] and found.number("spans") == len(NASTY)
    assert "<title>script&gt; on 2 nodes</title>" in found.document, "the file's name, as of any path"


@pytest.mark.slow
@browser.needed
@pytest.mark.parametrize(
    "built", each(3, [Builder(1), Builder(3).call(1, 5, 5), Builder(2).message(0, 1, None, 7)])
)
def test_little_is_enough(tmp_path, built):
    found = browser.opened(made(built, tmp_path), tmp_path)
    assert found.complaints() == [] and found.number("rows") == built.nodes


@pytest.mark.slow
@browser.needed
def test_what_is_missing_is_said(tmp_path):
    built = two_nodes(boxes=2, map=[0, 1])
    built.other.update(overwritten=[0, 17], clock_error_us=[0.0, 2.5])
    found = browser.opened(made(built, tmp_path), tmp_path)
    assert "17 events are missing: the oldest of node 1 were overwritten" in found.document
    assert "±2.50 µs" in found.document and found.complaints() == []


def many(nodes, calls):
    """Calls of a microsecond each, half of it waiting, and a message with each."""
    built = Builder(nodes)
    for rank in range(nodes):
        for at in range(0, 4 * calls, 4):
            built.call(rank, at, at + 2, "recv", "x.py:1", [(at, at + 1)])
            built.message((rank + 1) % nodes, rank, at, at + 1)
    return built


@pytest.mark.stress
@browser.needed
def test_many_events_become_few_bars(tmp_path):
    """140,000 spans; what is thinner than a pixel is merged, and arrows wait until there are few."""
    path = made(many(7, 10_000), tmp_path)
    whole = browser.opened(path, tmp_path)
    assert whole.complaints() == [] and whole.number("spans") == 140_000
    assert whole.number("bars") < 7 * 1400 * 3 and whole.number("labels") == whole.number("arrows") == 0
    assert "too many messages for arrows" in whole.document
    part = browser.opened(path, tmp_path, "#from=0.02&to=0.02002")
    assert part.number("spans") == 7 * 5 * 2 and part.number("labels") == 7 * 5
    assert 0 < part.number("arrows") <= 7 * 6 and '<span id="arrows-note"></span>' in part.document


def driven(path, script):
    """The page with a script at its end, which does what a user would; it is drawn between the steps.

    Frames come by a timer: the browser's virtual time waits for timers, but not for the frames of a screen.
    """
    steps = f"""<script>
    const canvas = document.getElementById("timeline");
    const told = document.documentElement.dataset;
    const seen = [];
    const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const pointer = (kind, x, y, more) =>
      canvas.dispatchEvent(new PointerEvent(kind, {{ bubbles: true, button: 0, pointerId: 1, ...at(x, y), ...more }}));
    const at = (x, y) => {{
      const box = canvas.getBoundingClientRect();
      return {{ clientX: box.left + x, clientY: box.top + y }};
    }};
    const press = (key) => window.dispatchEvent(new KeyboardEvent("keydown", {{ key, cancelable: true }}));
    const note = async () => {{
      await frame();
      seen.push([Number(told.from) * 1e6, Number(told.to) * 1e6]);
    }};
    (async () => {{
      await frame();
      const width = canvas.getBoundingClientRect().width;
      {script}
      document.body.dataset.seen = JSON.stringify(seen);
    }})();
    </script></body>"""
    timed = "<head><script>window.requestAnimationFrame = (done) => setTimeout(done, 0);</script>"
    path.write_text(path.read_text().replace("</body>", steps).replace("<head>", timed))
    return path


def seen_by(path, folder):
    found = browser.opened(path, folder)
    assert found.complaints() == []
    [seen] = re.findall(r'data-seen="([^"]*)"', found.document)
    return found, json.loads(seen.replace("&quot;", '"'))


@pytest.mark.slow
@browser.needed
def test_no_fact_is_cut(tmp_path):
    line = "a_program_with_quite_a_long_name.py:123"
    built = Builder(2).call(0, 0, 90, line=line, waits=[(1, 89)]).call(1, 0, 90)
    with browser.Driven(tmp_path) as page:
        page.open(made(built, tmp_path).as_uri())
        facts = "[...document.querySelectorAll('#facts dd.value')]"
        page.until(f"{facts}.some((fact) => fact.textContent === '{line}')")
        page.evaluate("document.getElementById('facts').style.width = '200px'")
        assert page.evaluate(f"{facts}.filter((fact) => fact.scrollWidth > fact.clientWidth).length") == 0


@pytest.mark.slow
@browser.needed
def test_keys_and_buttons(tmp_path):
    script = """
      press("+"); await note();
      press("ArrowRight"); await note();
      press("ArrowLeft"); press("ArrowLeft"); await note();
      press("-"); press("-"); await note();
      document.getElementById("in").click(); await note();
      press("0"); await note();
      for (let at = 0; at < 60; at++) press("+");
      await note();
    """
    _found, seen = seen_by(driven(made(two_nodes(), tmp_path), script), tmp_path)
    near = [
        pytest.approx(pair, abs=0.01)
        for pair in ((15, 85), (25.5, 95.5), (4.5, 74.5), (0, 100), (25, 75), (0, 100))
    ]
    assert seen[:6] == near
    assert seen[6][1] - seen[6][0] == pytest.approx(0.2, abs=0.001), "200 ns are the least"


@pytest.mark.stress
@browser.needed
def test_more_nodes_than_fit(tmp_path):
    script = """
      const rows = [];
      for (const key of ["ArrowDown", "ArrowUp", "ArrowUp", ...Array(200).fill("ArrowDown")]) {
        press(key);
        await frame();
        rows.push(Number(told.top));
      }
      const isOurs = !window.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", cancelable: true }));
      seen.push(rows.slice(0, 3), rows.at(-1) + Number(told.rows), isOurs);
    """
    built = Builder(300)
    for rank in range(300):
        built.call(rank, 0, 1000 - rank)
    _found, seen = seen_by(driven(made(built, tmp_path), script), tmp_path)
    assert seen == [[3, 0, 0], 300, False], "at the end the page may scroll"


@pytest.mark.slow
@browser.needed
def test_wheel_and_drag(tmp_path):
    script = """
      const turn = (deltaY, more) => canvas.dispatchEvent(
        new WheelEvent("wheel", { deltaY, cancelable: true, ...at(width / 2, 150), ...more }));
      const isScrolling = turn(100); // at its widest: the page may scroll
      turn(-300); await note();
      turn(50, { shiftKey: true }); await note();
      pointer("pointerdown", 400, 150); pointer("pointermove", 500, 150); pointer("pointerup", 500, 150); await note();
      press("0");
      pointer("pointerdown", 400, 150, { shiftKey: true }); pointer("pointermove", 600, 150);
      pointer("pointerup", 600, 150); await note();
      seen.push(isScrolling);
    """
    _found, seen = seen_by(driven(made(two_nodes(), tmp_path), script), tmp_path)
    zoomed, turned, dragged, marked, is_scrolling = seen
    assert is_scrolling is True
    assert zoomed[1] - zoomed[0] == pytest.approx(100 * 2.718281828**-0.6, rel=0.01)
    assert turned[0] > zoomed[0] and dragged[0] < turned[0]
    assert 10 < marked[1] - marked[0] < 25


HOVER = """
      // Each node has half of what is below 98 pixels.
      const rows = (canvas.getBoundingClientRect().height - 98) / 2;
      for (const [name, time, node] of [["tip", 0.3, 1], ["compute", COMPUTE]]) {
        pointer("pointermove", width * time, 98 + rows * (node + 0.4)); await note();
        document.body.dataset[name] = document.getElementById("tip").innerText;
        document.body.dataset[name + "Arrows"] = told.arrows;
      }
      document.body.dataset.legend = document.getElementById("legend-crossing").hidden;
"""
# Node 1 receives from 0 to 40 µs and waits from 5 to 35; without a core it is from 20 to 50.
HOVERED = {  # the trace, where nobody calls, and what is said
    "call": (two_nodes(), "0.55, 0", (
        "node 1: recv", "heat.py:6", "40.0 µs, of which 30.0 µs waiting", "from node 0: 800 B, tag 7",
        "received 4.00 µs after it was sent", 'data-tip-arrows="1"', "node 0 computes", "after send, before barrier",
        'data-legend="true"')),
    "core": (two_nodes().core(1, 20, 50), "0.5, 1", (
        "40.0 µs, of which 15.0 µs waiting and 20.0 µs waiting for a core",
        "for 20.0 µs, of which 10.0 µs waiting for a core, after recv, before barrier")),
    "boxes": (two_nodes(boxes=2, map=[0, 1]), "0.55, 0", ("from node 0 in box 0: 800 B", 'data-legend="false"')),
}  # fmt: skip


@pytest.mark.slow
@browser.needed
@pytest.mark.parametrize("case", HOVERED)
def test_hover_names_the_call_its_line_and_its_partner(tmp_path, case):
    built, compute, texts = HOVERED[case]
    found, _seen = seen_by(driven(made(built, tmp_path), HOVER.replace("COMPUTE", compute)), tmp_path)
    [body] = re.findall(r"<body[^>]*>", found.document)
    assert [words for words in texts if words not in body] == [], body


def pixels(path):
    """(width, height, set of its colours) of a PNG with 8 bits a channel."""
    raw = path.read_bytes()
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, _depth, kind = struct.unpack(">IIBB", raw[16:26])
    size = {2: 3, 6: 4}[kind]
    at, packed = 8, b""
    while at < len(raw):
        length, name = struct.unpack(">I4s", raw[at : at + 8])
        if name == b"IDAT":
            packed += raw[at + 8 : at + 8 + length]
        at += 12 + length
    return width, height, len(set(zlib.decompress(packed))), size


@pytest.mark.slow
@browser.needed
@pytest.mark.parametrize("scheme", each(2, [0, 1]), ids=["dark", "light"])
def test_it_can_be_seen(tmp_path, scheme):
    more = f"--blink-settings=preferredColorScheme={scheme}"
    picture = browser.pictured(made(two_nodes(), tmp_path), tmp_path, "", more)
    width, height, values, _size = pixels(picture)
    assert (width, height) == (1400, 1000) and values > 60, "an empty page has few different bytes"
