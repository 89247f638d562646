// SPDX-License-Identifier: MIT
// What the page knows, as columns of numbers; times are nanoseconds from the begin of what is shown.

let data; // all of it: page.py, `content`
let length = 1;

const columns = (kind, names) =>
  Object.fromEntries(names.map((name, at) => [name, Float64Array.from(kind[at] || [])]));

const text = (number) => (number < 0 ? null : data.texts[number]);

// The places of the calls that are in no other call: their begins and their ends both grow, so they can be searched.
function outermost(calls) {
  const found = [];
  let end = -Infinity;
  for (let at = 0; at < calls.begin.length; at++) {
    if (calls.begin[at] >= end) {
      found.push(at);
      end = calls.end[at];
    }
  }
  return Int32Array.from(found);
}

let tracks = [];
let boxOf = {};
let messages = {};
let running = {};
let regionNames = [];
let hasRegions = false;
// All moments of the page are in one unit: that of its end.
let [FACTOR, UNIT] = [1, "ns"];

function load(found) {
  data = found;
  length = Math.max(data.length, 1);
  tracks = data.tracks.map((track, place) => {
    const calls = columns(track.calls, ["begin", "end", "name", "line", "open", "cost"]); // cost: of declared work, else -1
    return {
      ...track,
      place,
      calls,
      outer: outermost(calls),
      waits: columns(track.waits, ["begin", "end", "line"]),
      handling: columns(track.handling, ["begin", "end"]),
      queued: columns(track.queued, ["begin", "end"]),
      regions: columns(track.regions, ["begin", "end", "name"]),
      // Of a run that goes on: where there are too many spans, which part of the time it is in each state.
      shares: columns(track.shares || [], ["begin", "end", "transferring", "waiting", "queued"]),
      ends: [], // of messages: their numbers, by the time of the end on this track
    };
  });
  boxOf = Object.fromEntries(tracks.map((track) => [track.rank, track.box]));
  loadMessages();
  running = columns(data.running, ["from", "count"]);
  regionNames = [...new Set(tracks.flatMap((track) => [...track.regions.name]))].sort((a, b) => a - b);
  hasRegions = tracks.some((track) => track.regions.begin.length);
  [FACTOR, UNIT] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([factor]) => data.offset + length >= factor) || [1, "ns"];
}

function loadMessages() {
  const names = ["sent", "received", "from", "to", "tag", "bytes", "context", "sender", "receiver"];
  messages = Object.fromEntries(names.map((name, at) => [name, data.messages[at] || []]));
  messages.sent.forEach((moment, at) => {
    if (moment !== null) tracks[messages.sender[at]].ends.push([moment, at]);
    if (messages.received[at] !== null) tracks[messages.receiver[at]].ends.push([messages.received[at], at]);
  });
  for (const track of tracks) track.ends.sort((a, b) => a[0] - b[0]);
}

// The first place of 0..count-1 for which `passes` holds; places for which it does not come before all others.
function first(count, passes) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

const three = (value) => {
  const size = Math.abs(value);
  return size >= 99.95 || value === 0 ? value.toFixed(0) : size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
};

// A length of time.
function lasting(ns) {
  for (const [factor, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (Math.abs(ns) >= 0.9995 * factor) return `${three(ns / factor)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

// A moment; `step` is the least difference that matters.
function moment(ns, step) {
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(Math.max(1, step) / FACTOR) - 1e-9)));
  return `${((ns + data.offset) / FACTOR).toFixed(digits)} ${UNIT}`;
}

function size(bytes) {
  for (const [factor, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (bytes >= (factor === 1e3 ? factor : 0.9995 * factor)) return `${three(bytes / factor)} ${unit}`;
  }
  return `${bytes} B`;
}

// `1 node`, `2 nodes`.
const numbered = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// An element with text: whatever a trace calls its things, it is never taken for HTML.
function element(name, words = "", kind = "") {
  const made = document.createElement(name);
  made.textContent = words;
  if (kind) made.className = kind;
  return made;
}

load(JSON.parse(document.getElementById("data").textContent));
