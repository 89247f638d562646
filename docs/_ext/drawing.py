# SPDX-License-Identifier: MIT
"""Drawings of boxes and arrows, as SVG, from lines of text that are readable themselves.

    send -> codec -> outbox
    outbox -> ring: long ones
    ring = spc_ring.c

An arrow may have a label, after a colon behind the last box of its line; `box = note` puts a second line into a box.
Arrows lead downwards, or to the right; those that close a circle lead back. Nothing but this file is needed for it.
`svg` takes its colours from the page that it stands in; `alone` is a file of its own, light or dark.
"""

import html
from dataclasses import dataclass, field
from itertools import pairwise
from zlib import crc32

LETTER, NOTE_LETTER = 7.6, 6.4  # about the widths of letters of 13 and of 11 pixels
PAD, HEIGHT, NOTED_HEIGHT = 12, 32, 46
GAP, FLOOR = 26, 44  # between boxes of a layer, and between layers
SWEEPS = 24
SCHEMES = {  # background, boxes, their edges, arrows, letters
    "light": ("#ffffff", "#f8f9fb", "#81868d", "#5a5c63", "#16181d"),
    "dark": ("#131416", "#1a1c1e", "#81868d", "#9ca0a5", "#cfd0d0"),
}
STYLE = (
    ".box{{fill:{1};stroke:{2}}}.arrow{{fill:none;stroke:{3}}}.head{{fill:{3}}}"
    "text{{fill:{4};font:13px system-ui,sans-serif}}text.note{{fill:{3};font-size:11px}}"
    "text.label{{font-size:11px;paint-order:stroke;stroke:{0};stroke-width:4px}}"
)
HEAD = (
    '<defs><marker id="{id}" class="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>'
)


@dataclass
class Graph:
    """Read a drawing's text: boxes with their notes, arrows with their labels, both in the order of their lines."""

    notes: dict = field(default_factory=dict)
    arrows: dict = field(default_factory=dict)


def parse(text):
    graph = Graph()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if "->" in line:
            path, _, label = line.partition(": ")
            names = [name.strip() for name in path.split("->")]
            for name in names:
                graph.notes.setdefault(name, "")
            for pair in pairwise(names):
                graph.arrows[pair] = label.strip() if pair[1] == names[-1] else ""
        elif " = " in line:
            name, _, note = line.partition(" = ")
            graph.notes[name.strip()] = note.strip()
        else:
            raise ValueError(f"line {number} of a drawing has neither -> nor =: {line!r}")
    return graph


def forward(graph):
    """The arrows without those that close a circle."""
    kept, state = [], {}

    def visit(name):
        state[name] = "open"
        for pair in graph.arrows:
            if pair[0] == name and state.get(pair[1]) != "open":
                kept.append(pair)
                if pair[1] not in state:
                    visit(pair[1])
        state[name] = "done"

    for name in graph.notes:
        if name not in state:
            visit(name)
    return kept


def layers_of(graph):
    """Boxes by layer, each below all that point to it; (layer, pair) stand where an arrow passes a layer."""
    arrows = forward(graph)
    depth = dict.fromkeys(graph.notes, 0)
    for _ in graph.notes:
        for a, b in arrows:
            depth[b] = max(depth[b], depth[a] + 1)
    layers = [[] for _ in range(max(depth.values()) + 1)]
    for name, at in depth.items():
        layers[at].append(name)
    routes = {}
    for a, b in arrows:
        passed = [(at, (a, b)) for at in range(depth[a] + 1, depth[b])]
        for point in passed:
            layers[point[0]].append(point)
        routes[a, b] = [a, *passed, b]
    for a, b in graph.arrows:
        routes.setdefault((a, b), [a, b])
    return layers, routes


def neighbours_of(routes):
    near = {}
    for route in routes.values():
        for a, b in pairwise(route):
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
    return near


def arrange(layers, routes, extent):
    """A place for each box along its layer: near those it is joined to, and none upon another."""
    near = neighbours_of(routes)
    place = {}
    for layer in layers:
        spread(layer, {item: float(index) for index, item in enumerate(layer)}, place, extent)
    for _ in range(SWEEPS):
        for layer in (*layers, *reversed(layers)):
            wish = {item: mean([place[other] for other in near.get(item, [item])]) for item in layer}
            spread(sorted(layer, key=wish.get), wish, place, extent)
    least = min(place[item] - extent(item) / 2 for item in place)
    return {item: at - least for item, at in place.items()}


def mean(numbers):
    return sum(numbers) / len(numbers)


def spread(items, wish, place, extent):
    """Puts items, in this order, as near to their wishes as their sizes allow."""
    groups = []  # [items, where the first is to begin]: neighbours that touch move together
    for item in items:
        groups.append([[item], wish[item] - extent(item) / 2])
        while len(groups) > 1 and groups[-2][1] + length(groups[-2][0], extent) > groups[-1][1]:
            last, before = groups.pop(), groups[-1]
            shift = length(before[0], extent)
            weight = len(before[0]), len(last[0])
            before[1] = (before[1] * weight[0] + (last[1] - shift) * weight[1]) / sum(weight)
            before[0] += last[0]
    for group, begin in groups:
        for item in group:
            place[item] = begin + extent(item) / 2
            begin += extent(item) + GAP


def length(items, extent):
    return sum(extent(item) + GAP for item in items)


def svg(graph, right=False):
    """The drawing as text of an <svg>; its colours are those of the classes in _static/spcomm.css."""
    width = {name: box_width(name, note) for name, note in graph.notes.items()}
    height = NOTED_HEIGHT if any(graph.notes.values()) else HEIGHT
    layers, routes = layers_of(graph)

    def extent(item):
        return (height if right else width[item]) if item in width else 8

    along = arrange(layers, routes, extent)
    deep = depths(graph, layers, lambda item: width[item] if right else height, right)
    centre = {item: (deep[item], along[item]) if right else (along[item], deep[item]) for item in along}
    parts = [arrow(route, centre, width, height, right) for route in routes.values()]
    parts += [box(name, note, centre[name], width[name], height) for name, note in graph.notes.items()]
    parts += [
        label(text, routes[pair], centre, width, height, right) for pair, text in graph.arrows.items() if text
    ]
    w = max([x for x, _ in centre.values()] + [centre[name][0] + width[name] / 2 for name in width]) + 8
    h = max([y for _, y in centre.values()] + [centre[name][1] + height / 2 for name in width]) + 8
    size = f'width="{w:.0f}" height="{h:.0f}" viewBox="-4 -4 {w:.0f} {h:.0f}"'
    picture = HEAD + "".join(parts)
    mark = f"head-{crc32(picture.encode()):08x}"  # several drawings on a page do not share their names
    picture = picture.replace("{id}", mark).replace("url(#head)", f"url(#{mark})")
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{picture}</svg>'


def alone(graph, scheme, right=False):
    """The drawing as a file, in the colours of a scheme."""
    colours = SCHEMES[scheme]
    start, end, rest = svg(graph, right).partition(">")
    ground = f'<rect x="-4" y="-4" width="100%" height="100%" fill="{colours[0]}"/>'
    return f"{start}{end}<style>{STYLE.format(*colours)}</style>{ground}{rest}\n"


def depths(graph, layers, extent, right):
    """The middle of each layer, for each of its items."""
    deep, at = {}, 0.0
    for number, layer in enumerate(layers):
        depth = max(extent(item) for item in layer if item in graph.notes)
        deep |= dict.fromkeys(layer, at + depth / 2)
        at += depth + FLOOR + label_room(graph, layers, number, right)
    return deep


def box_width(name, note):
    return round(max(len(name) * LETTER, len(note) * NOTE_LETTER) + 2 * PAD)


def label_room(graph, layers, number, right):
    """Arrows to the right need room for their labels between two layers."""
    texts = [text for (a, _), text in graph.arrows.items() if text and a in layers[number]]
    return max([len(text) * NOTE_LETTER for text in texts], default=0) if right else 0


def box(name, note, middle, width, height):
    x, y = middle
    lines = f'<text x="{x:.1f}" y="{y + (-4 if note else 4.5):.1f}" text-anchor="middle">{html.escape(name)}</text>'
    if note:
        lines += (
            f'<text class="note" x="{x:.1f}" y="{y + 13:.1f}" text-anchor="middle">{html.escape(note)}</text>'
        )
    return (
        f'<rect class="box" x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width}" height="{height}" '
        f'rx="5"/>{lines}'
    )


def points_of(route, centre, width, height, right):
    """From the edge of the first box to that of the last, through the places between."""
    half = [(width[route[i]] if right else height) / 2 for i in (0, -1)]
    (x0, y0), (x1, y1) = centre[route[0]], centre[route[-1]]
    sign = 1 if (x1 > x0 if right else y1 > y0) else -1
    begin = (x0 + sign * half[0], y0) if right else (x0, y0 + sign * half[0])
    end = (x1 - sign * (half[1] + 1), y1) if right else (x1, y1 - sign * (half[1] + 1))
    return [begin, *(centre[item] for item in route[1:-1]), end]


def arrow(route, centre, width, height, right):
    points = points_of(route, centre, width, height, right)
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        bend = ((x0 + x1) / 2, y0, (x0 + x1) / 2, y1) if right else (x0, (y0 + y1) / 2, x1, (y0 + y1) / 2)
        path += "C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}".format(*bend, x1, y1)
    return f'<path class="arrow" d="{path}" marker-end="url(#head)"/>'


def label(text, route, centre, width, height, right):
    points = points_of(route, centre, width, height, right)
    (x0, y0), (x1, y1) = points[-2], points[-1]
    return (
        f'<text class="label" x="{(x0 + x1) / 2:.1f}" y="{(y0 + y1) / 2 + 4:.1f}" text-anchor="middle">'
        f"{html.escape(text)}</text>"
    )
