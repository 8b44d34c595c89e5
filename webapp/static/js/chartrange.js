// The vertical range of a chart by hand: two fields in its card. The board keeps the ranges by the ids of charts, so the address holds them.
import { make } from "./format.js";

/** "0..1", "0.." or "..1" as [low, high], each null if it is not given; null if it is none of these. */
export function read(text) {
  const ends = text.split("..").map((end) => (end.trim() === "" ? null : Number(end)));
  const known = ends.filter((end) => end !== null);
  return ends.length === 2 && known.length && known.every(Number.isFinite) && (known.length < 2 || ends[0] < ends[1]) ? ends : null;
}

export const AUTOMATIC = [null, null];

/** The range of an address, which can also say that a chart leaves its own range. */
export const known = (text) => (text === written(AUTOMATIC) ? AUTOMATIC : read(text));

export const written = ([low, high]) => `${low ?? ""}..${high ?? ""}`;

/** The ends with those of `limits` in the place of the automatic ones; on a log scale, limits at or below 0 have no place. */
export function limited([low, high], limits, log) {
  const [first, last] = limits.map((end) => (log && end <= 0 ? null : end));
  const beyond = (end, sign) => (log ? end * 10 ** sign : end + sign * (Math.abs(end) || 1));
  return [first ?? (last === null || low < last ? low : beyond(last, -1)), last ?? (first === null || high > first ? high : beyond(first, 1))];
}

export class RangeForm {
  constructor(chart) {
    this.chart = chart;
    const field = (words) => Object.assign(make("input", "input num"), { type: "number", step: "any", ariaLabel: `${words} of ${chart.title}` });
    this.ends = [field("Lowest value"), field("Highest value")];
    const set = make("button", "btn small", "Set");
    this.clear = Object.assign(make("button", "btn small ghost", "Automatic"), { type: "button" });
    this.own = Object.assign(make("button", "btn small ghost", "As saved"), { type: "button" });
    this.keep = Object.assign(make("button", "btn small ghost", "Save for everybody"), { type: "button", hidden: !chart.keep });
    this.element = make("form", "chart-range tiny", make("span", "", "Range"), this.ends[0], make("span", "", "to"), this.ends[1], set, this.clear, this.own, this.keep);
    this.element.noValidate = true;
    this.element.hidden = true;
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      const limits = this.typed();
      if (limits) chart.board.limit(chart.id, this.isOwn(limits) ? null : limits);
    });
    const excuse = () => this.ends.forEach((end) => end.setCustomValidity(""));
    for (const end of this.ends) end.addEventListener("input", excuse);
    const close = (limits) => {
      excuse();
      this.element.hidden = true;
      chart.element.querySelector(".menu summary").focus(); // where the form was opened
      chart.board.limit(chart.id, limits);
    };
    this.clear.addEventListener("click", () => close(this.isOwn(AUTOMATIC) ? null : AUTOMATIC));
    this.own.addEventListener("click", () => close(null));
    this.keep.addEventListener("click", async () => {
      const limits = this.typed();
      if (limits && (await chart.keep(limits))) close(null);
    });
  }

  isOwn(limits) {
    return written(limits) === written(this.chart.own ?? AUTOMATIC);
  }

  open() {
    this.element.hidden = false;
    this.show();
    this.ends[0].focus();
  }

  /** The fields show the range that somebody has set; while somebody writes, they stay. */
  show() {
    const { board, id, own, set } = this.chart;
    if (board.limits.has(id)) this.element.hidden = false;
    this.own.hidden = !own || !board.limits.has(id);
    if (this.element.hidden || this.element.contains(document.activeElement)) return;
    this.ends.forEach((end, i) => {
      end.value = set?.[i] ?? "";
      end.placeholder = this.chart.range ? String(Number(this.chart.range[i].toPrecision(3))) : "";
    });
  }

  /** The ends in the fields; null: they are wrong, and the form has said so. */
  typed() {
    const typed = this.ends.map((end) => end.value);
    const wrong = this.ends.find((end) => end.validity.badInput);
    const limits = known(typed.join(".."));
    const complaint = wrong ? "Write a number." : limits ? "" : "The highest value must be above the lowest.";
    if (!complaint) return limits;
    (wrong ?? this.ends[1]).setCustomValidity(complaint);
    (wrong ?? this.ends[1]).reportValidity();
    return null;
  }
}
