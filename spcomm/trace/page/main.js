// SPDX-License-Identifier: MIT
// Zoom, pan, keys; and the first drawing.

let isAsked = false;

// However many events come before the next frame, it is drawn once.
function redraw() {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => {
    isAsked = false;
    draw();
  });
}

function look(from, to, top = view.top) {
  const span = Math.min(length, Math.max(Math.min(SHORTEST, length), to - from));
  view.from = Math.min(Math.max(0, from), length - span);
  view.to = view.from + span;
  view.top = Math.min(Math.max(0, top), hidden());
  redraw();
  remember();
}

function zoom(factor, around) {
  look(around - (around - view.from) * factor, around + (view.to - around) * factor);
}

const middle = () => (view.from + view.to) / 2;
const isWhole = () => view.from <= 0 && view.to >= length;

// The address keeps what is looked at: a link to it opens the same part, and so does a reload.
let timer = 0;
function remember() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const part = [view.from, view.to].map((time) => ((time + data.offset) / 1e9).toFixed(9));
    try {
      history.replaceState(null, "", isWhole() ? "#" : `#from=${part[0]}&to=${part[1]}`);
    } catch {
      // Some viewers do not let a page touch its address; then it is not kept.
    }
  }, 250);
}

function recall() {
  const told = new URLSearchParams(location.hash.slice(1));
  const [from, to] = ["from", "to"].map((name) => parseFloat(told.get(name)) * 1e9 - data.offset);
  if (from < to) look(from, to);
}

canvas.addEventListener("wheel", (event) => {
  if (event.deltaY > 0 && isWhole() && !event.shiftKey) return; // there is no more: the page may scroll
  event.preventDefault();
  const lines = event.deltaMode ? 16 : 1;
  const span = view.to - view.from;
  const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const by = (sideways * lines * span) / plot();
    look(view.from + by, view.to + by);
  } else {
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * lines * 0.002))), timeOf(Math.max(LEFT, event.offsetX)));
  }
}, { passive: false });

let grip = null;
canvas.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  try {
    canvas.setPointerCapture(event.pointerId);
  } catch {
    // A pointer that is gone already.
  }
  grip = { x: event.offsetX, y: event.offsetY, from: view.from, to: view.to, top: view.top };
  if (event.shiftKey) view.marked = [event.offsetX, event.offsetX];
  canvas.classList.add("dragging");
});
canvas.addEventListener("pointermove", (event) => {
  if (!grip) {
    hover(event.offsetX, event.offsetY, event.clientX, event.clientY);
    redraw();
  } else if (view.marked) {
    view.marked[1] = event.offsetX;
    redraw();
  } else {
    tip.hidden = true;
    const by = ((event.offsetX - grip.x) / plot()) * (grip.to - grip.from);
    look(grip.from - by, grip.to - by, grip.top - (event.offsetY - grip.y));
  }
});
function release() {
  const marked = view.marked;
  grip = view.marked = null;
  canvas.classList.remove("dragging");
  if (marked && Math.abs(marked[1] - marked[0]) > 3) {
    const [from, to] = marked.map((x) => timeOf(Math.max(LEFT, x))).sort((a, b) => a - b);
    look(from, to);
  }
  redraw();
}
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("pointerleave", () => {
  hovered.track = null;
  hovered.call = -1;
  tip.hidden = true;
  redraw();
});
canvas.addEventListener("dblclick", () => {
  if (hovered.call < 0) return;
  const { begin, end } = hovered.track.calls;
  const margin = Math.max((end[hovered.call] - begin[hovered.call]) * 0.2, SHORTEST / 4);
  look(begin[hovered.call] - margin, end[hovered.call] + margin);
});

const KEYS = {
  ArrowLeft: (span) => look(view.from - span * 0.15, view.to - span * 0.15),
  ArrowRight: (span) => look(view.from + span * 0.15, view.to + span * 0.15),
  "+": () => zoom(0.7, middle()),
  "=": () => zoom(0.7, middle()),
  "-": () => zoom(1 / 0.7, middle()),
  _: () => zoom(1 / 0.7, middle()),
  0: () => look(0, length),
};
const ROWS = { ArrowUp: -3, ArrowDown: 3 }; // as long as there are rows that way; then the page scrolls

window.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = ROWS[event.key];
  const top = Math.min(Math.max(0, view.top + (rows || 0) * view.row), hidden());
  if (rows && top !== view.top) look(view.from, view.to, top);
  else if (KEYS[event.key]) KEYS[event.key](view.to - view.from);
  else return;
  event.preventDefault();
});

document.getElementById("in").addEventListener("click", () => zoom(0.5, middle()));
document.getElementById("out").addEventListener("click", () => zoom(2, middle()));
document.getElementById("all").addEventListener("click", () => look(0, length));
document.getElementById("show-counts").addEventListener("click", () => choose("counts"));
document.getElementById("show-sizes").addEventListener("click", () => choose("sizes"));
grid.canvas.addEventListener("pointermove", hoverMatrix);
grid.canvas.addEventListener("pointerleave", () => { tip.hidden = true; });

function begin() {
  readColors();
  fit();
  view.top = Math.min(view.top, hidden());
  draw();
  drawMatrix();
}

window.addEventListener("resize", begin);
window.addEventListener("hashchange", recall);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", begin);
writeAll();
readColors();
fit();
recall();
begin();
