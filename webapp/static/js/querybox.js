// Completion for a query: a combobox with the server's suggestions. Arrows move, Enter or Tab takes one, and Escape closes it.
import { json } from "./http.js";

const WAIT = 120; // ms after the last key

/** The continuations of a query of the table of runs: [{ text, hint, start, end }]. */
async function ofRuns(text, cursor, signal) {
  return (await json(`/api/v1/runs/table/complete?${new URLSearchParams({ q: text, at: cursor })}`, { signal })).items;
}

/** `input` and its `list`, a hidden <ul role="listbox">; `suggest` as `ofRuns`. Returns what closes it. */
export function queryBox(input, list, suggest = ofRuns) {
  let shown = [];
  let at = -1;
  let timer = 0;
  let asked = null;

  const close = () => {
    clearTimeout(timer);
    asked?.abort();
    shown = [];
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };

  const mark = (place) => {
    at = place;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", i === place));
    if (place < 0) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", list.children[place].id);
      list.children[place].scrollIntoView({ block: "nearest" });
    }
  };

  const option = ({ text, hint }, i) => {
    const item = Object.assign(document.createElement("li"), { id: `${list.id}-${i}` });
    item.setAttribute("role", "option");
    item.append(Object.assign(document.createElement("code"), { textContent: text }), Object.assign(document.createElement("span"), { className: "muted small", textContent: hint }));
    item.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the input keeps the focus
      take(i);
    });
    return item;
  };

  const take = (place) => {
    const { text, start, end } = shown[place];
    input.setRangeText(text, start, end, "end");
    close();
    if (/[:=<>~]$/.test(text)) look();
  };

  const look = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT);
  };

  const ask = async () => {
    asked?.abort();
    asked = new AbortController();
    try {
      const cursor = input.selectionStart ?? input.value.length;
      const found = await suggest(input.value, cursor, asked.signal);
      if (document.activeElement !== input) return;
      shown = found.filter((each) => each.text !== input.value.slice(each.start, each.end));
      list.replaceChildren(...shown.map(option));
      list.hidden = !shown.length;
      input.setAttribute("aria-expanded", String(shown.length > 0));
      mark(-1);
    } catch (error) {
      if (error.name !== "AbortError") close(); // a query can be typed without completion
    }
  };

  input.addEventListener("input", look);
  input.addEventListener("focus", look);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) mark((at + step + shown.length) % shown.length);
    else if (event.key === "Escape") close();
    else if (event.key === "Enter" && at >= 0) take(at);
    else if (event.key === "Tab" && at >= 0) take(at);
    else return;
    event.preventDefault();
  });
  return close;
}
