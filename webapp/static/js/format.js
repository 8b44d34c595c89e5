// Formats numbers, durations and files in the same way on every page of a run.

/** A number for reading: three or four significant digits, thousands separated, tiny ones as powers. */
export function number(value, percent = false) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (percent) return `${(value * 100).toFixed(Math.abs(value) < 0.1 ? 1 : 0)}%`;
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size !== 0 && size < 0.001) return value.toExponential(1);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

/** A score or reward, always with three decimals, so that columns are aligned. */
export const score = (value) => (value === null || value === undefined ? "–" : value.toFixed(3).replace("-", "−"));

/** The change of a run's headline metric, with its sign; shares are in percentage points. */
export function gained({ first, last, share }) {
  const size = Math.abs(last - first);
  return `${last >= first ? "+" : "−"}${share ? `${(100 * size).toFixed(1)} points` : size.toFixed(3)}`;
}

/** A number of things in words: "1 step", "2,000 steps". */
export const counted = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

/** All digits that were sent, for tooltips. */
export const exact = (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(8))));

export function download(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** An element with a class and children. Text is always text, never markup. */
export function make(tag, css = "", ...children) {
  const element = document.createElement(tag);
  if (css) element.className = css;
  element.append(...children);
  return element;
}

/** An SVG element with attributes and children; an attribute without a value is left out. */
export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
