// SPDX-License-Identifier: MIT
// The browser's side of a picture that the mouse turns (viewer.py): anywidget loads it.

function render({ model, el }) {
  const canvas = document.createElement("canvas"), line = document.createElement("div");
  canvas.width = canvas.height = model.get("_size");
  canvas.tabIndex = 0;
  canvas.style.cssText = "cursor: grab; touch-action: none; background: black; max-width: 100%";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "a picture that dragging or the arrow keys turn");
  line.setAttribute("aria-live", "off");
  el.append(canvas, line);
  let right = 0, down = 0, waits = false;
  const ask = () => {
    if (waits || (!right && !down)) return;
    waits = true;
    model.send({ right, down });
    right = down = 0;
  };
  const turn = (x, y) => { right += x; down += y; ask(); };
  canvas.addEventListener("pointerdown", (event) => {
    waits = false;  // should an answer have been lost, a new drag goes on without it
    canvas.setPointerCapture(event.pointerId);
    canvas.style.cursor = "grabbing";
  });
  canvas.addEventListener("pointerup", () => { canvas.style.cursor = "grab"; });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) turn(event.movementX / canvas.clientWidth, event.movementY / canvas.clientHeight);
  });
  const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    const way = KEYS[event.key];
    if (!way) return;
    event.preventDefault();
    event.stopPropagation();
    turn(way[0] / 24, way[1] / 24);
  });
  const show = async (message, buffers) => {
    if (buffers.length) {
      const bitmap = await createImageBitmap(new Blob([buffers[0]], { type: "image/jpeg" }));
      canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      bitmap.close();
    }
    line.textContent = message.text;
    canvas.dataset.frames = message.frames;
    if (message.answer) { waits = false; ask(); }
  };
  model.on("msg:custom", show);
  waits = true;
  model.send({ right: 0, down: 0 });
  return () => model.off("msg:custom", show);
}
export default { render };
