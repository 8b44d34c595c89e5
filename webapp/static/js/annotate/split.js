// A line between two parts that can be dragged, or moved with the arrows. Its place is remembered in this browser.
import { el, recall, remember } from "./dom.js";

const STEP = 2;

/**
 * A separator that sets the CSS variable --NAME on `container`, in percent of its length. `axis` "x": it stands between
 * left and right.
 */
export function splitter(container, { name, label, axis = "x", start = 50, least = 25, most = 75 }) {
  let share = Math.min(most, Math.max(least, recall(`split:${name}`, start)));
  const bar = el("div.work-split-bar", {
    tabIndex: 0, role: "separator", ariaLabel: label, ariaOrientation: axis === "x" ? "vertical" : "horizontal",
    ariaValueMin: String(least), ariaValueMax: String(most), data: { axis, arrows: "" },
  });

  function set(value) {
    share = Math.min(most, Math.max(least, value));
    container.style.setProperty(`--${name}`, `${share}%`);
    bar.ariaValueNow = String(Math.round(share));
  }

  const place = (event) => {
    const box = container.getBoundingClientRect();
    set(axis === "x" ? ((event.clientX - box.left) / box.width) * 100 : ((event.clientY - box.top) / box.height) * 100);
  };
  bar.addEventListener("pointerdown", (event) => {
    bar.setPointerCapture(event.pointerId);
    bar.addEventListener("pointermove", place);
  });
  bar.addEventListener("lostpointercapture", () => {
    bar.removeEventListener("pointermove", place);
    remember(`split:${name}`, share);
  });
  bar.addEventListener("dblclick", () => (set(start), remember(`split:${name}`, null)));
  bar.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -STEP, ArrowUp: -STEP, ArrowRight: STEP, ArrowDown: STEP }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    set(share + by);
    remember(`split:${name}`, share);
  });
  set(share);
  return bar;
}
