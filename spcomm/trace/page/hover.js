// SPDX-License-Identifier: MIT
// Which call is under the pointer, what there is to say of it, and the arrows of messages.

const tip = document.getElementById("tip");

// Whether call `outer` is call `inner`, or around it.
const covers = (track, outer, inner) =>
  inner >= outer && track.calls.begin[inner] >= track.calls.begin[outer] && track.calls.end[inner] <= track.calls.end[outer];

// How much of the time from `begin` to `end` these spans cover; `part`: the length that counts of each piece.
function within(spans, begin, end, part = (from, to) => to - from) {
  const { begin: from, end: to } = spans;
  let sum = 0;
  for (let at = first(to.length, (place) => to[place] > begin); at < from.length && from[at] < end; at++) {
    sum += part(Math.max(from[at], begin), Math.min(to[at], end));
  }
  return sum;
}

const queuedWithin = (track, begin, end) => within(track.queued, begin, end);
const waitedWithin = (track, begin, end) =>
  within(track.waits, begin, end, (from, to) => to - from - queuedWithin(track, from, to));

// A length of time, and which parts of it are known.
function divided(span, parts) {
  const shown = parts.filter(([part]) => part > 0).map(([part, words]) => `${lasting(part)} ${words}`);
  return shown.length ? `${lasting(span)}, of which ${shown.join(" and ")}` : lasting(span);
}

// The innermost call at a moment; thin ones may be missed by `slack` on both sides. -1: none.
function callAt(track, time, slack) {
  const { begin, end } = track.calls;
  const place = first(track.outer.length, (at) => end[track.outer[at]] > time - slack);
  if (place === track.outer.length || begin[track.outer[place]] > time + slack) return -1;
  let found = track.outer[place];
  const stop = place + 1 < track.outer.length ? track.outer[place + 1] : begin.length;
  for (let at = found + 1; at < stop && begin[at] <= time; at++) if (end[at] > time) found = at;
  return found;
}

// The numbers of the messages that were sent or received on a track between two moments.
function messagesWithin(track, begin, end) {
  const from = first(track.ends.length, (at) => track.ends[at][0] >= begin);
  const found = [];
  for (let at = from; at < track.ends.length && track.ends[at][0] <= end; at++) found.push(track.ends[at][1]);
  return found;
}

const ofHovered = () =>
  hovered.call < 0
    ? []
    : messagesWithin(hovered.track, hovered.track.calls.begin[hovered.call], hovered.track.calls.end[hovered.call]);

function inView(top, bottom) {
  const found = [];
  const seen = (place) => place >= top && place < bottom;
  for (let at = 0; at < messages.sent.length && found.length <= MOST_ARROWS; at++) {
    const [sent, received] = [messages.sent[at], messages.received[at]];
    const begin = sent === null ? received : sent;
    const end = received === null ? sent : received;
    const isNear = Math.max(begin, end) >= view.from && Math.min(begin, end) <= view.to;
    if (isNear && (seen(messages.sender[at]) || seen(messages.receiver[at]))) found.push(at);
  }
  return found;
}

function drawArrows(top, bottom, done) {
  const all = inView(top, bottom);
  const tooMany = all.length > MOST_ARROWS;
  const marked = new Set(ofHovered());
  const note = tooMany ? "too many messages for arrows here: zoom in, or point at a call" : "";
  document.getElementById("arrows-note").textContent = note;
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, HEAD, plot(), view.height - HEAD);
  pen.clip();
  if (!tooMany) for (const at of all) if (!marked.has(at)) done.arrows += arrow(at, marked.size ? 0.25 : 0.75, 1);
  for (const at of marked) done.arrows += arrow(at, 1, 2);
  pen.restore();
  pen.globalAlpha = 1;
}

// Between boxes: by way of their gateways.
const isCrossing = (at) => boxOf[messages.from[at]] !== boxOf[messages.to[at]];

// A message from bar to bar, dashed where it goes to another box; one that nobody received ends in a cross, one whose sending is not known begins nowhere.
function arrow(at, strength, width) {
  const middle = (place) => yOf(place) + barHeight() / 2;
  const [sent, received] = [messages.sent[at], messages.received[at]];
  pen.globalAlpha = strength;
  pen.strokeStyle = pen.fillStyle = color.arrow;
  pen.lineWidth = width;
  if (received === null) {
    cross(xOf(sent), middle(messages.sender[at]));
    return 1;
  }
  const [x, y] = [xOf(received), middle(messages.receiver[at])];
  let angle = Math.PI / 2;
  if (sent !== null) {
    const [fromX, fromY] = [xOf(sent), middle(messages.sender[at])];
    pen.setLineDash(isCrossing(at) ? [6, 4] : []);
    pen.beginPath();
    pen.moveTo(fromX, fromY);
    pen.lineTo(x, y);
    pen.stroke();
    pen.fillRect(fromX - 1.5, fromY - 1.5, 3, 3);
    angle = Math.atan2(y - fromY, x - fromX);
  }
  pen.beginPath();
  pen.moveTo(x, y);
  for (const side of [-0.38, 0.38]) pen.lineTo(x - 8 * Math.cos(angle + side), y - 8 * Math.sin(angle + side));
  pen.fill();
  return 1;
}

function cross(x, y) {
  pen.beginPath();
  for (const [a, b] of [[-4, -4], [-4, 4]]) {
    pen.moveTo(x + a, y + b);
    pen.lineTo(x - a, y - b);
  }
  pen.stroke();
}

function hover(x, y, pageX, pageY) {
  const track = y > HEAD && x >= LEFT ? tracks[Math.floor((y - HEAD + view.top) / view.row)] : undefined;
  const time = timeOf(x);
  const slack = (1.5 * (view.to - view.from)) / plot();
  const call = track ? callAt(track, time, slack) : -1;
  hovered.track = track || null;
  hovered.call = call;
  document.documentElement.dataset.hovered = call < 0 ? "" : text(track.calls.name[call]);
  if (!track || time < track.begin - slack || time > track.end + slack) {
    if (y > RULER && y < RULER + CURVE && x >= LEFT) show(ofCurve(time), pageX, pageY);
    else tip.hidden = true;
    return;
  }
  show([...(call < 0 ? ofComputing(track, time) : ofCall(track, call)), ...ofRegions(track, time)], pageX, pageY);
}

function ofCurve(time) {
  const at = first(running.from.length, (place) => running.from[place] > time) - 1;
  const count = at < 0 ? 0 : running.count[at];
  return [["b", `${count} of ${numbered(data.nodes, "node")} ${count === 1 ? "computes" : "compute"}`], ["div", moment(time, (view.to - view.from) / plot())]];
}

function ofShares(track, at) {
  const { begin, end, transferring, waiting, queued } = track.shares;
  const percent = (part) => `${(100 * part).toFixed(0)} %`;
  const rest = Math.max(0, 1 - transferring[at] - waiting[at] - queued[at]);
  const words = [["computing", rest], ["waiting for a core", queued[at]], ["waiting", waiting[at]], ["transferring", transferring[at]]]
    .map(([state, part]) => ["div", `${percent(part)} ${state}`, "strong"]);
  return [["b", `node ${track.name}: too many calls to draw each while it runs`], ...words, ["div", between(begin[at], end[at])]];
}

function ofComputing(track, time) {
  const { begin, end } = track.calls;
  const share = first(track.shares.end.length, (at) => track.shares.end[at] > time);
  if (track.shares.begin[share] <= time) return ofShares(track, share);
  const next = first(track.outer.length, (at) => begin[track.outer[at]] > time);
  const from = next > 0 ? end[track.outer[next - 1]] : track.begin;
  const to = next < track.outer.length ? begin[track.outer[next]] : track.end;
  const spent = divided(to - from, [[queuedWithin(track, from, to), "waiting for a core"]]);
  const after = next > 0 ? `after ${text(track.calls.name[track.outer[next - 1]])}` : "from its beginning";
  const before = next < track.outer.length ? `before ${text(track.calls.name[track.outer[next]])}` : "to its end";
  return [["b", `node ${track.name} computes`], ["div", `for ${spent}, ${after}, ${before}`, "strong"],
    ["div", between(from, to)]];
}

const between = (from, to) => {
  const step = Math.max(1, (to - from) / 100);
  return `${moment(from, step)} to ${moment(to, step)}`;
};

function ofCall(track, at) {
  const { begin, end, name, line, open } = track.calls;
  const [from, to] = [begin[at], end[at]];
  const parts = [[waitedWithin(track, from, to), "waiting"], [queuedWithin(track, from, to), "waiting for a core"]];
  const words = [["b", `node ${track.name}: ${text(name[at])}`]];
  if (line[at] >= 0) words.push(["div", text(line[at]), "strong"]);
  words.push(["div", divided(to - from, parts), "strong"]);
  if (open[at]) words.push(["div", "it had not returned when the trace ended", "strong"]);
  const partners = messagesWithin(track, from, to);
  for (const message of partners.slice(0, 4)) words.push(["div", ofMessage(track, message), "strong"]);
  if (partners.length > 4) words.push(["div", `and ${partners.length - 4} more message${partners.length === 5 ? "" : "s"}`]);
  words.push(["div", between(from, to)]);
  return words;
}

function ofMessage(track, at) {
  const isMine = messages.sender[at] === track.place && messages.sent[at] !== null;
  const rank = isMine ? messages.to[at] : messages.from[at];
  const place = isCrossing(at) ? ` in box ${boxOf[rank]}` : "";
  const partner = `${isMine ? "to" : "from"} node ${rank}${place}`;
  const context = text(messages.context[at]);
  const what = context === "user" ? `tag ${messages.tag[at]}` : context;
  const known = messages.sent[at] !== null && messages.received[at] !== null;
  const way = known
    ? `received ${lasting(messages.received[at] - messages.sent[at])} after it was sent`
    : messages.received[at] === null ? "never received" : "its sending was overwritten";
  return `${partner}: ${size(messages.bytes[at])}, ${what}, ${way}`;
}

function ofRegions(track, time) {
  const { begin, end, name } = track.regions;
  const found = [];
  for (let at = 0; at < begin.length && begin[at] <= time; at++) {
    if (end[at] > time) found.push(["div", `in region ${text(name[at])}, ${lasting(end[at] - begin[at])}`]);
  }
  return found;
}

function show(words, x, y) {
  tip.replaceChildren(...words.map(([name, said, kind]) => element(name, said, kind)));
  tip.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = tip;
  tip.style.left = `${Math.max(4, x + 18 + width > window.innerWidth ? x - width - 14 : x + 18)}px`;
  tip.style.top = `${Math.max(4, y + 18 + height > window.innerHeight ? y - height - 14 : y + 18)}px`;
}
