// SPDX-License-Identifier: MIT
// The page while the run goes on: asks for news, adds them to what is drawn, and at the end becomes the page of the trace.

const WIDTHS = { calls: 6, waits: 3, regions: 3, queued: 2, handling: 2, shares: 5 }; // columns of each kind
const MOST_SPANS = 200000; // that are kept while the run goes on
const known = new Map(); // tracks by their number, with what has ended
const pageNumber = Math.floor(Math.random() * 2 ** 40);
const table = element("table");

const empty = (width) => Array.from({ length: width }, () => []);

function append(all, more) {
  more.forEach((column, at) => { for (const value of column) all[at].push(value); });
}

// By begin, outer spans before those within them.
function sorted(all) {
  const [begin, end] = all;
  const order = begin.map((_value, at) => at);
  const before = (a, b) => begin[a] - begin[b] || end[b] - end[a];
  if (order.every((at) => at === 0 || before(at - 1, at) <= 0)) return all;
  order.sort(before);
  return all.map((column) => order.map((at) => column[at]));
}

function add(piece) {
  data.length = piece.until;
  data.texts.push(...piece.texts);
  append(data.running, piece.running);
  for (const { open, ...found } of piece.tracks) {
    const spans = Object.fromEntries(Object.entries(WIDTHS).map(([kind, width]) => [kind, empty(width)]));
    const track = known.get(found.number) || { spans };
    for (const kind of Object.keys(WIDTHS)) append(track.spans[kind], found[kind] || []);
    const begin = Math.max(found.begin, track.about ? track.about.begin : 0); // what was left out stays left out
    known.set(found.number, { spans: track.spans, open, about: { ...found, begin, starting: Math.min(found.starting, begin) } });
  }
  append(data.messages, piece.messages);
}

// The data of what is known, as a trace has them.
function compose() {
  const all = [...known.values()].sort((a, b) => a.about.rank - b.about.rank || a.about.thread - b.about.thread);
  const places = new Map(all.map((track, place) => [track.about.number, place]));
  const joined = all.map(({ about, spans, open }) => {
    const whole = (kind) => spans[kind].map((column, at) => column.concat((open[kind] || [])[at] || []));
    return { ...about, ...Object.fromEntries(Object.keys(WIDTHS).map((kind) => [kind, sorted(whole(kind))])) };
  });
  const placed = data.messages.map((column, at) => (at < 7 ? column : column.map((number) => places.get(number))));
  return { ...data, tracks: joined, messages: placed };
}

function forget() {
  const count = [...known.values()].reduce((sum, { spans }) => sum + Object.values(spans).reduce((all, of) => all + of[0].length, 0), 0);
  if (count + data.messages[0].length <= MOST_SPANS) return;
  const oldest = Math.min(...[...known.values()].map((track) => track.about.begin));
  const from = (oldest + data.length) / 2;
  const later = (all, column) => all.map((values) => values.filter((_value, at) => all[column][at] >= from));
  for (const track of known.values()) {
    for (const kind of Object.keys(WIDTHS)) track.spans[kind] = later(track.spans[kind], 1);
    Object.assign(track.about, { begin: Math.max(track.about.begin, from), starting: 0 });
  }
  data.messages = later(data.messages, 0);
  data.running = later(data.running, 0);
  note("Only the latest part is kept here while the run goes on; the whole timeline comes at its end.");
}

function note(words) {
  const warning = document.getElementById("warning");
  warning.textContent = words;
  warning.hidden = false;
}

function showTimeline() {
  const [wasWhole, wasAtEnd, rows] = [isWhole(), view.to >= length, tracks.length];
  const span = view.to - view.from;
  load(compose());
  if (wasWhole) [view.from, view.to] = [0, length];
  else if (wasAtEnd) [view.from, view.to] = [Math.max(0, length - span), length];
  writeLegend();
  if (rows === tracks.length) redraw();
  else begin();
}

const rate = (number) => (number < 0.05 ? "" : number.toFixed(number < 10 ? 1 : 0));
const KINDS = { computes: "computing", polls: "computing", sleeps: "computing", waits: "waiting", "waits for a core": "queued" };

function showNodes({ rows, states, seconds }) {
  const head = element("thead");
  head.append(row(["node", "state", "for", "operation", "line", "sent/s", "received/s", "MB/s out", "MB/s in"], "th"));
  const body = element("tbody");
  for (const [name, state, time, call, place, sent, received, out, into] of rows) {
    const shown = element("td");
    shown.append(element("i", "", KINDS[state] || "other"), state);
    body.append(row([name, shown, time ? lasting(time * 1e9) : "", call, place, rate(sent), rate(received), rate(out / 1e6), rate(into / 1e6)]));
  }
  table.replaceChildren(head, body);
  const sent = rows.reduce((sum, cells) => sum + cells[5], 0);
  say(`running for ${lasting(seconds * 1e9)}: ${numbered(rows.length, "node")} (${states}), ${rate(sent) || 0} messages per second`);
}

function say(words) {
  document.getElementById("headline").textContent = words;
}

// A machine that has much to do may refuse a connection now and then.
async function asked(path) {
  for (let left = 3; ; left--) {
    try {
      return await fetch(path);
    } catch (error) {
      if (!left) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

async function follow() {
  let after = 0;
  for (;;) {
    const answer = await asked(`live?after=${after}&page=${pageNumber}`);
    if (!answer.ok) throw new Error(await answer.text());
    const news = await answer.json();
    if (news.is_new) {
      known.clear();
      Object.assign(data, { messages: empty(9), running: empty(2), texts: news.texts });
    }
    for (const piece of news.pieces) add(news.is_new ? { ...piece, texts: [] } : piece);
    after = news.number;
    if (news.pieces.length) {
      forget();
      showTimeline();
    }
    showNodes(news.state);
    document.documentElement.dataset.number = after;
    if (news.state.is_over) return news.state;
  }
}

async function finish({ code, saved }) {
  const answer = await asked(`trace?page=${pageNumber}`);
  const words = `The run has ended (exit code ${code}).`;
  if (!answer.ok) {
    say(`${words} Its trace cannot be shown; below is what was seen of it.`);
    return;
  }
  const text = await answer.text();
  const isWholeNow = isWhole();
  load(JSON.parse(text.split('id="data">', 2)[1].split("<", 1)[0])); // no letter of the data means anything to HTML
  if (isWholeNow) [view.from, view.to] = [0, length];
  document.getElementById("nodes-panel").remove();
  document.getElementById("warning").hidden = true;
  writeAll();
  choose("counts");
  begin();
  const link = element("a", "saved");
  link.id = "save";
  link.download = `${data.program || "trace"}.html`;
  link.href = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  const ended = element("p", `${words} This page no longer needs it and can be `);
  ended.id = "ended";
  ended.append(link);
  ended.append(saved ? `. The trace is in ${saved}` : ".");
  document.getElementById("headline").after(ended);
}

function live() {
  const panel = element("section", "", "panel");
  panel.id = "nodes-panel";
  const scroll = element("div", "", "scroll");
  scroll.append(table);
  panel.append(element("h2", "What the nodes do"), scroll);
  document.getElementById("stage").before(panel);
  if (data.elsewhere) note(`The timeline of ${data.elsewhere}, on another machine, comes when the run ends.`);
  say("waiting for the first data of the run");
  document.documentElement.dataset.live = "running";
  follow().then(finish).catch((error) => {
    say(`The connection to the run was lost (${error.message}); below is what was seen of it.`);
  }).finally(() => { document.documentElement.dataset.live = "over"; });
}

live();
