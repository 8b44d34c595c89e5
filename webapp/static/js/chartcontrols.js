// Smoothing, axis, zoom, log scale, outliers and vertical ranges of a board. The address contains all of them, so that a link shows the
// same picture.
import { known, written } from "./chartrange.js";

export function controls(board) {
  const query = new URLSearchParams(location.search);
  const slider = document.getElementById("smoothing");
  const shown = document.querySelector('output[for="smoothing"]');
  const reset = document.getElementById("zoom-reset");
  const axes = [...document.querySelectorAll("[data-axis]")];
  const boxes = [...document.querySelectorAll("[data-draw]")]; // checkboxes: log, clip

  function remember() {
    const next = new URLSearchParams(location.search);
    const put = (key, value) => (value ? next.set(key, value) : next.delete(key));
    put("smooth", board.smoothing || "");
    put("axis", board.axis === "step" ? "" : board.axis);
    put("from", board.zoom ? String(+board.zoom.min.toFixed(2)) : "");
    put("to", board.zoom ? String(+board.zoom.max.toFixed(2)) : "");
    next.delete("y");
    for (const [id, ends] of board.limits) next.append("y", `${id}:${written(ends)}`);
    for (const box of boxes) put(box.dataset.draw, board[box.dataset.draw] ? "1" : "");
    const text = next.toString();
    history.replaceState(null, "", text ? `?${text}` : location.pathname);
    reset.hidden = !board.zoom;
    shown.textContent = board.smoothing ? board.smoothing.toFixed(2) : "off";
    slider.value = board.smoothing;
    for (const button of axes) button.setAttribute("aria-pressed", String(button.dataset.axis === board.axis));
    for (const box of boxes) box.checked = board[box.dataset.draw];
  }

  slider.addEventListener("input", () => {
    board.set({ smoothing: Number(slider.value) });
    remember();
  });
  for (const button of axes) {
    button.addEventListener("click", () => {
      board.set({ axis: button.dataset.axis, zoom: null });
      board.onaxis?.(board.axis);
      remember();
    });
  }
  for (const box of boxes) {
    box.addEventListener("change", () => {
      board.set({ [box.dataset.draw]: box.checked });
      remember();
    });
  }
  reset.addEventListener("click", () => board.set({ zoom: null }));
  board.onzoom = remember;
  const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
  for (const each of query.getAll("y")) {
    const [, id, ends] = each.match(/^(.+):([^:]*)$/) ?? [];
    if (id && known(ends)) board.limits.set(id, known(ends));
  }
  board.set({
    smoothing: Math.min(Math.max(Number(query.get("smooth")) || 0, 0), 0.95),
    axis: axes.map((button) => button.dataset.axis).find((axis) => axis === query.get("axis")) ?? "step",
    zoom: to > from ? { min: from, max: to } : null,
    ...Object.fromEntries(boxes.map(({ dataset: { draw } }) => [draw, query.get(draw) === "1"])),
  });
  board.onaxis?.(board.axis);
  remember();
}
