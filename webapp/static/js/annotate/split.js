// A line between two parts, which can be dragged or moved with the arrows. This browser remembers its place.
import { el, recall, remember } from "./dom.js";

const STEP = 2;

/**
 * A separator that sets the CSS variable --NAME on `container`, in percent of its length. `axis` "x": it stands between
 * left and right. Without `start`, the parts take the space that they need until somebody moves the line. A double click restores this.
 */
export function splitter(container, { name, label, axis = "x", start = null, least = 25, most = 75 }) {
  let share = start;
  const bar = el("div.work-split-bar", {
    tabIndex: 0, role: "separator", ariaLabel: label, ariaOrientation: axis === "x" ? "vertical" : "horizontal",
    ariaValueMin: String(least), ariaValueMax: String(most), data: { axis, arrows: "" },
  });

  function set(value) {
    if (value === null) {
      share = null;
      container.style.removeProperty(`--${name}`);
      bar.ariaValueNow = "50"; // until it is focused: only a drawn page knows the value
      return container.removeAttribute(`data-${name}`);
    }
    container.setAttribute(`data-${name}`, "");
    share = Math.min(most, Math.max(least, value));
    container.style.setProperty(`--${name}`, `${share}%`);
    bar.ariaValueNow = String(Math.round(share));
  }

  /** The place of the line if it was not set. */
  function here() {
    const [box, own] = [container.getBoundingClientRect(), bar.getBoundingClientRect()];
    return axis === "x" ? ((own.left - box.left) / box.width) * 100 : ((own.top - box.top) / box.height) * 100;
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
  bar.addEventListener("focus", () => (bar.ariaValueNow = String(Math.round(share ?? here()))));
  bar.addEventListener("dblclick", () => (set(start), remember(`split:${name}`, null)));
  bar.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -STEP, ArrowUp: -STEP, ArrowRight: STEP, ArrowDown: STEP }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    set((share ?? here()) + by);
    remember(`split:${name}`, share);
  });
  set(recall(`split:${name}`, start));
  return bar;
}
