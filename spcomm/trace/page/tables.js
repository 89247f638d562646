// SPDX-License-Identifier: MIT
// All that is no timeline: head, facts, the summary, the lines, the matrix.

const MOST_LARGE = 13; // letters of a fact that fit in large type

function row(cells, name = "td") {
  const made = element("tr");
  made.append(...cells.map((cell) => (cell instanceof Node ? cell : element(name, cell))));
  return made;
}

function writeAll() {
  writeHead();
  writeLegend();
  writeTimes();
  writeLines();
}

function writeHead() {
  document.getElementById("program").textContent = data.program;
  document.getElementById("headline").textContent = data.headline;
  const facts = document.getElementById("facts");
  facts.replaceChildren();
  for (const [name, value, what] of data.facts) {
    const card = element("div");
    const shown = element("dd", "", value.length > MOST_LARGE ? "value long" : "value");
    shown.append(...value.split(/(?<=[/:_])/).flatMap((part) => [part, element("wbr")])); // lines break there
    card.append(element("dt", name), shown, element("dd", what, "what"));
    facts.append(card);
  }
  if (data.lost) {
    const nodes = tracks.filter((track) => track.lost).map((track) => track.rank);
    const warning = document.getElementById("warning");
    warning.textContent = `${data.lost === 1 ? "1 event is" : `${data.lost} events are`} missing: the oldest of ` +
      `node${nodes.length > 1 ? "s" : ""} ${nodes.join(", ")} ${data.lost === 1 ? "was" : "were"} overwritten, and what is known of such a node begins after them.`;
    warning.hidden = false;
  }
}

function writeLegend() {
  document.getElementById("legend-region").hidden = !hasRegions;
  document.getElementById("legend-core").hidden = !tracks.some((track) => track.queued.begin.length);
  document.getElementById("legend-starting").hidden = !tracks.some((track) => track.starting);
  document.getElementById("legend-lost").hidden = !data.lost;
  document.getElementById("legend-arrow").hidden = !messages.sent.length;
  document.getElementById("legend-crossing").hidden = !messages.sent.some((_moment, at) => isCrossing(at));
}

function timed(part, share) {
  const cell = element("td", lasting(part * 1000));
  cell.append(element("small", share));
  return cell;
}

function shares(parts, whole) {
  const cell = element("td", "", "shares");
  const bar = element("div");
  for (const [kind, part] of parts) {
    const piece = element("i", "", kind);
    piece.style.width = `${whole > 0 ? (100 * part) / whole : 0}%`;
    bar.append(piece);
  }
  cell.append(bar);
  return cell;
}

function writeTimes() {
  const head = element("thead");
  head.append(row(["node", "", "computing", "waiting for a core", "waiting", "transferring", "sent", "", "received", ""], "th"));
  const body = element("tbody");
  data.times.forEach(([name, life, computing, queued, waiting, transferring, parts], at) => {
    const sent = at < data.nodes ? data.traffic[at] : null;
    const bar = shares([["computing", computing], ["transferring", transferring], ["queued", queued], ["waiting", waiting]], life);
    const traffic = sent ? [`${sent[0]}`, size(sent[1]), `${sent[2]}`, size(sent[3])] : ["", "", "", ""];
    body.append(row([name, bar, ...[computing, queued, waiting, transferring].map((part, place) => timed(part, parts[place])), ...traffic]));
  });
  document.getElementById("times").replaceChildren(head, body);
  document.getElementById("times-panel").hidden = !data.times.length;
}

function writeLines() {
  const lines = document.getElementById("lines");
  lines.replaceChildren();
  document.getElementById("lines-panel").hidden = !data.lines.length;
  for (const [line, waited] of data.lines) {
    const bar = shares([["waiting", waited]], data.lines[0][1]);
    lines.append(row([line, bar, lasting(waited * 1000)]));
  }
}

const grid = { canvas: document.getElementById("matrix"), cells: data.counts, shown: (value) => `${value}`, name: "messages" };

function drawMatrix() {
  document.getElementById("matrix-panel").hidden = !data.counts.length;
  const edge = Math.max(1, Math.min(46, Math.floor(460 / data.nodes)));
  const [left, top, side] = [34, 20, edge * data.nodes];
  const dense = window.devicePixelRatio || 1;
  Object.assign(grid, { edge, left, top });
  grid.canvas.width = (left + side + 2) * dense;
  grid.canvas.height = (top + side + 2) * dense;
  grid.canvas.style.width = `${left + side + 2}px`;
  const pencil = grid.canvas.getContext("2d");
  pencil.setTransform(dense, 0, 0, dense, 0, 0);
  pencil.fillStyle = color.faint;
  pencil.fillRect(left, top, side, side);
  const most = grid.cells.reduce((found, cell) => Math.max(found, cell[2]), 1);
  pencil.textAlign = "center";
  pencil.textBaseline = "middle";
  const gap = edge > 6 ? 1 : 0;
  for (const [from, to, value] of grid.cells) {
    // Of the square root, so that few messages can be told from none.
    const strength = 0.12 + 0.88 * Math.sqrt(value / most);
    pencil.globalAlpha = strength;
    pencil.fillStyle = color.heat;
    pencil.fillRect(left + to * edge, top + from * edge, edge - gap, edge - gap);
    pencil.globalAlpha = 1;
    pencil.font = `11px ${FONT}`;
    pencil.fillStyle = strength > 0.6 ? color["on-computing"] : color.ink;
    const words = grid.shown(value).replace(" ", "");
    if (pencil.measureText(words).width < edge - 4) {
      pencil.fillText(words, left + to * edge + edge / 2, top + from * edge + edge / 2);
    }
  }
  pencil.fillStyle = color.soft;
  const every = Math.ceil(24 / edge);
  for (let rank = 0; rank < data.nodes; rank += every) {
    pencil.fillText(`${rank}`, left + rank * edge + edge / 2, 9);
    pencil.fillText(`${rank}`, 16, top + rank * edge + edge / 2);
  }
}

function choose(kind) {
  const isCounts = kind === "counts";
  Object.assign(grid, { cells: data[kind], shown: isCounts ? (value) => `${value}` : size, name: isCounts ? "messages" : "bytes" });
  document.getElementById("show-counts").setAttribute("aria-pressed", `${isCounts}`);
  document.getElementById("show-sizes").setAttribute("aria-pressed", `${!isCounts}`);
  drawMatrix();
}

function hoverMatrix(event) {
  const to = Math.floor((event.offsetX - grid.left) / grid.edge);
  const from = Math.floor((event.offsetY - grid.top) / grid.edge);
  const find = (cells) => (cells.find((cell) => cell[0] === from && cell[1] === to) || [0, 0, 0])[2];
  if (from < 0 || to < 0 || from >= data.nodes || to >= data.nodes) {
    tip.hidden = true;
    return;
  }
  const words = `${numbered(find(data.counts), "message")}, ${size(find(data.sizes))}`;
  show([["b", `node ${from} to node ${to}`], ["div", words, "strong"]], event.clientX, event.clientY);
}
