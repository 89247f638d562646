// SPDX-License-Identifier: MIT
// The timeline. What is drawn for a track is one number per pixel column and state, whatever the number of events: how
// much of the column is in a call, and how much waits. Columns that are mixed are divided in that proportion.

const canvas = document.getElementById("timeline");
const pen = canvas.getContext("2d");
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const RULER = 26;
const CURVE = 62;
const HEAD = RULER + CURVE + 10;
const MOST_ARROWS = 400;
const SHORTEST = 200; // ns across the whole view
const REGIONS = ["#8264b0", "#2b8a7e", "#a8557f", "#6f7b3f"];
const view = { from: 0, to: length, top: 0, width: 0, height: 0, row: 30, marked: null };
const hovered = { track: null, call: -1 };
let color = {};
let LEFT = 80; // where names end and time begins

const nameOf = (track) =>
  data.boxes > 1 && view.row >= 26 ? `node ${track.name} · box ${track.box}` : `node ${track.name}`;

function readColors() {
  const style = getComputedStyle(document.documentElement);
  const names = ["panel", "ink", "soft", "line", "faint", "computing", "transferring", "waiting", "on-computing",
    "on-transferring", "on-waiting", "arrow", "hatch", "queued", "starting", "heat"];
  color = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

function fit() {
  const room = Math.max(340, window.innerHeight * 0.68) - HEAD;
  view.row = Math.min(46, Math.max(hasRegions ? 20 : 14, room / tracks.length));
  view.width = Math.max(320, canvas.parentElement.clientWidth - 28);
  view.height = Math.round(HEAD + Math.min(room, view.row * tracks.length) + 4);
  const dense = window.devicePixelRatio || 1;
  canvas.style.height = `${view.height}px`;
  canvas.width = Math.round(view.width * dense);
  canvas.height = Math.round(view.height * dense);
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  pen.font = `12.5px ${FONT}`;
  const widest = tracks.reduce((found, track) => Math.max(found, pen.measureText(nameOf(track)).width), 0);
  LEFT = Math.ceil(Math.min(190, Math.max(76, widest + 16)));
}

const plot = () => view.width - LEFT - 2;
const xOf = (time) => LEFT + ((time - view.from) / (view.to - view.from)) * plot();
const timeOf = (x) => view.from + ((x - LEFT) / plot()) * (view.to - view.from);
const yOf = (place) => HEAD + place * view.row - view.top;
const strip = () => (!hasRegions ? 0 : view.row >= 26 ? 12 : 4); // of regions, below the bar
const barHeight = () => view.row - strip() - (view.row > 20 ? 6 : 2);
const hidden = () => Math.max(0, tracks.length * view.row - (view.height - HEAD - 4)); // how far rows can be scrolled

// Adds a span to what columns are covered with.
function cover(cells, begin, end, weight = 1) {
  const low = Math.max(0, xOf(begin) - LEFT);
  const high = Math.min(cells.length, xOf(end) - LEFT);
  if (high <= low) return;
  const left = Math.floor(low);
  const right = Math.min(Math.floor(high), cells.length - 1);
  if (left === right) {
    cells[left] += (high - low) * weight;
    return;
  }
  cells[left] += (left + 1 - low) * weight;
  for (let at = left + 1; at < right; at++) cells[at] += weight;
  cells[right] += (high - right) * weight;
}

function draw() {
  const done = { rows: 0, spans: 0, bars: 0, labels: 0, arrows: 0 };
  pen.clearRect(0, 0, view.width, view.height);
  drawRuler();
  drawCurve();
  pen.save();
  pen.beginPath();
  pen.rect(0, HEAD, view.width, view.height - HEAD);
  pen.clip();
  const top = Math.floor(view.top / view.row);
  const bottom = Math.min(tracks.length, Math.ceil((view.top + view.height - HEAD) / view.row));
  done.top = top;
  for (let place = top; place < bottom; place++) drawTrack(tracks[place], done);
  drawArrows(top, bottom, done);
  drawScroll();
  pen.restore();
  drawMarked();
  report(done);
}

// For whoever looks from outside: what is drawn now.
function report(done) {
  const told = document.documentElement.dataset;
  told.drawn = "yes";
  for (const [name, value] of Object.entries(done)) told[name] = value;
  told.from = (view.from + data.offset) / 1e9;
  told.to = (view.to + data.offset) / 1e9;
}

function drawRuler() {
  const span = view.to - view.from;
  const rough = (span / plot()) * 110;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= rough) * power);
  pen.font = `12px ${FONT}`;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  for (let at = Math.ceil((view.from + data.offset) / step) * step - data.offset; at <= view.to; at += step) {
    const x = Math.round(xOf(at)) + 0.5;
    pen.strokeStyle = color.line;
    pen.beginPath();
    pen.moveTo(x, RULER - 4);
    pen.lineTo(x, view.height);
    pen.stroke();
    pen.fillStyle = color.soft;
    const words = moment(at, step);
    const half = pen.measureText(words).width / 2;
    if (x - half >= LEFT - 20 && x + half <= view.width) pen.fillText(words, x, 11);
  }
}

function drawCurve() {
  const cells = new Float64Array(Math.max(1, Math.floor(plot())));
  const count = running.from.length;
  const begin = Math.max(0, first(count, (at) => running.from[at] > view.from) - 1);
  for (let at = begin; at < count && running.from[at] < view.to; at++) {
    cover(cells, running.from[at], at + 1 < count ? running.from[at + 1] : data.length, running.count[at]);
  }
  const floor = RULER + CURVE;
  pen.fillStyle = color.faint;
  pen.fillRect(LEFT, RULER, plot(), CURVE);
  pen.fillStyle = color.computing;
  pen.beginPath();
  pen.moveTo(LEFT, floor);
  cells.forEach((cell, at) => {
    const y = floor - (Math.min(cell, data.nodes) / data.nodes) * CURVE;
    pen.lineTo(LEFT + at, y);
    pen.lineTo(LEFT + at + 1, y);
  });
  pen.lineTo(LEFT + cells.length, floor);
  pen.fill();
  pen.fillStyle = color.soft;
  pen.font = `12px ${FONT}`;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  pen.fillText(`${data.nodes}`, LEFT - 8, RULER + 7);
  pen.fillText("compute", LEFT - 8, RULER + CURVE / 2);
  pen.fillText("0", LEFT - 8, floor - 6);
}

function drawTrack(track, done) {
  const y = yOf(track.place);
  const height = barHeight();
  const cells = Math.max(1, Math.floor(plot()));
  const [calls, waits, life, queue] = [0, 1, 2, 3].map(() => new Float64Array(cells));
  done.rows += 1;
  cover(life, track.begin, track.end);
  const begin = first(track.outer.length, (at) => track.calls.end[track.outer[at]] > view.from);
  let end = begin;
  for (; end < track.outer.length && track.calls.begin[track.outer[end]] < view.to; end++) {
    if (track.calls.cost[track.outer[end]] >= 0) continue; // declared work is computing
    cover(calls, track.calls.begin[track.outer[end]], track.calls.end[track.outer[end]]);
  }
  const handling = track.handling; // there it computes
  for (let at = first(handling.begin.length, (at) => handling.end[at] > view.from); handling.begin[at] < view.to; at++) {
    cover(calls, handling.begin[at], handling.end[at], -1);
  }
  const queued = track.queued; // in whatever state, it had no core
  for (let at = first(queued.begin.length, (at) => queued.end[at] > view.from); queued.begin[at] < view.to; at++) {
    cover(queue, queued.begin[at], queued.end[at]);
  }
  let wait = first(track.waits.begin.length, (at) => track.waits.end[at] > view.from);
  const firstWait = wait;
  for (; wait < track.waits.begin.length && track.waits.begin[wait] < view.to; wait++) {
    cover(waits, track.waits.begin[wait], track.waits.end[wait]);
  }
  const shares = track.shares;
  for (let at = first(shares.begin.length, (at) => shares.end[at] > view.from); shares.begin[at] < view.to; at++) {
    const [from, to] = [shares.begin[at], shares.end[at]];
    const stopped = shares.waiting[at] + shares.queued[at];
    cover(calls, from, to, shares.transferring[at] + stopped);
    cover(waits, from, to, stopped);
    cover(queue, from, to, shares.queued[at]);
  }
  done.spans += end - begin + wait - firstWait;
  fillColumns(y, height, life, calls, waits, queue, done);
  drawLost(track, y, height);
  drawStarting(track, y, height);
  labelCalls(track, begin, end, y, height, done);
  drawRegions(track, y + height + 1);
  nameTrack(track, y, height);
}

// Runs of columns that look the same become one bar.
function fillColumns(y, height, life, calls, waits, queue, done) {
  const looks = (at) => {
    const alive = Math.min(1, Math.max(life[at], calls[at], waits[at]));
    const waiting = Math.min(1, waits[at]);
    return [Math.round(alive * 32), Math.round(Math.min(1, Math.max(calls[at], waiting)) * 32), Math.round(waiting * 32), Math.round(Math.min(1, queue[at]) * 32)];
  };
  let start = 0;
  let look = looks(0);
  for (let at = 1; at <= life.length; at++) {
    const next = at < life.length ? looks(at) : [-1, -1, -1, -1];
    if (next[0] === look[0] && next[1] === look[1] && next[2] === look[2] && next[3] === look[3]) continue;
    const [x, width] = [LEFT + start, at - start];
    const [alive, busy, waiting, queued] = look.map((part) => (part / 32) * height);
    const pieces = [[color.computing, alive], [color.transferring, busy], [color.waiting, waiting], [color.queued, queued]];
    for (const [fill, part] of pieces) {
      if (part > 0) {
        pen.fillStyle = fill;
        pen.fillRect(x, y + height - part, width, part);
        done.bars += 1;
      }
    }
    if (waiting >= height && queued < height && width >= 8) hatch(x, y, width, height);
    [start, look] = [at, next];
  }
}

function hatch(x, y, width, height) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.strokeStyle = color.hatch;
  pen.lineWidth = 2;
  pen.beginPath();
  const step = 9;
  for (let at = Math.floor((x - height) / step) * step; at < x + width; at += step) {
    pen.moveTo(at, y + height);
    pen.lineTo(at + height, y);
  }
  pen.stroke();
  pen.restore();
}

// Before a node's oldest event that is left, nobody knows what it did.
function drawLost(track, y, height) {
  const end = Math.min(xOf(track.begin), view.width);
  if (!track.lost || end <= LEFT) return;
  pen.save();
  pen.setLineDash([3, 3]);
  pen.strokeStyle = color.soft;
  pen.strokeRect(LEFT + 0.5, Math.round(y) + 0.5, Math.max(1, end - LEFT - 1), Math.round(height) - 1);
  pen.restore();
  if (end - LEFT > 130) write(`${track.lost} events lost`, LEFT + 8, y + height / 2, end - LEFT - 12, color.soft, 12);
}

// Before `startup` has made it a node.
function drawStarting(track, y, height) {
  const left = Math.max(LEFT, xOf(track.begin - track.starting));
  const width = Math.min(xOf(track.begin), view.width) - left;
  if (!track.starting || width <= 0) return;
  pen.fillStyle = color.starting;
  pen.fillRect(left, y, width, height);
  if (width > 60 && height >= 12) write("starting", left + 5, y + height / 2 + 0.5, width - 10, color.ink, 12);
}

// Text that ends where its room ends.
function write(words, x, y, room, fill, points) {
  pen.font = `${points}px ${FONT}`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.fillStyle = fill;
  let shown = words;
  while (shown.length > 1 && pen.measureText(shown).width > room) shown = `${shown.slice(0, -2)}…`;
  if (shown.length > 1 || words.length === 1) pen.fillText(shown, x, y);
}

function labelCalls(track, begin, end, y, height, done) {
  const wide = 42;
  for (let place = begin; place < end; place++) {
    const at = track.outer[place];
    const left = Math.max(LEFT, xOf(track.calls.begin[at]));
    const right = Math.min(view.width - 2, xOf(track.calls.end[at]));
    if (right - left < 8) continue;
    const isHovered = hovered.track === track && covers(track, at, hovered.call);
    pen.strokeStyle = isHovered ? color.ink : color.panel;
    pen.lineWidth = isHovered ? 2 : 1;
    pen.strokeRect(left + 0.5, y + 0.5, right - left - 1, height - 1);
    if (right - left < wide || height < 12) continue;
    const waited = waitedWithin(track, track.calls.begin[at], track.calls.end[at]);
    const mostly = waited * 2 > track.calls.end[at] - track.calls.begin[at];
    const name = text(track.calls.name[at]);
    const state = track.calls.cost[at] >= 0 ? "computing" : mostly ? "waiting" : "transferring";
    plate(name, left + 5, y + height / 2, right - left - 10, state);
    done.labels += 1;
  }
}

// A name on a plate in the colour below it, so that hatching does not cross the letters.
function plate(words, x, y, room, state) {
  pen.font = `12px ${FONT}`;
  const width = Math.min(room, pen.measureText(words).width);
  pen.fillStyle = color[state];
  pen.fillRect(x - 2, y - 8, width + 4, 16);
  write(words, x, y + 0.5, room, color[`on-${state}`], 12);
}

function drawRegions(track, y) {
  if (!hasRegions) return;
  const height = strip() - 1;
  const { begin, end, name } = track.regions;
  for (let at = 0; at < begin.length && begin[at] < view.to; at++) {
    if (end[at] < view.from) continue;
    const left = Math.max(LEFT, xOf(begin[at]));
    const width = Math.min(view.width - 2, xOf(end[at])) - left;
    pen.fillStyle = REGIONS[regionNames.indexOf(name[at]) % REGIONS.length];
    pen.fillRect(left, y, Math.max(0.5, width - 0.5), height);
    if (height >= 10 && width > 34) write(text(name[at]), left + 4, y + height / 2 + 0.5, width - 6, "#ffffff", 10);
  }
}

function nameTrack(track, y, height) {
  if (track.place > 0 && tracks[track.place - 1].box !== track.box) {
    pen.fillStyle = color.soft;
    pen.fillRect(0, Math.round(y) - 2, view.width, 1);
  }
  write(nameOf(track), 0, y + height / 2, LEFT - 10, hovered.track === track ? color.ink : color.soft, view.row < 16 ? 10 : 12.5);
}

function drawScroll() {
  const most = hidden();
  if (!most) return;
  const room = view.height - HEAD;
  const part = room / (room + most);
  pen.fillStyle = color.soft;
  pen.globalAlpha = 0.6;
  pen.fillRect(view.width - 5, HEAD + (view.top / most) * room * (1 - part), 4, room * part);
  pen.globalAlpha = 1;
}

function drawMarked() {
  if (!view.marked) return;
  const [left, right] = view.marked.map((x) => Math.max(LEFT, x));
  pen.fillStyle = color.ink;
  pen.globalAlpha = 0.15;
  pen.fillRect(Math.min(left, right), RULER, Math.abs(right - left), view.height - RULER);
  pen.globalAlpha = 1;
}
