// toast("Saved"), toast("Could not stop the run", { tone: "bad", id: "…" }). Errors stay until dismissed.
// toast("Archived 3 runs", { action: { label: "Undo", run: () => … } }) has a button, and stays for ten seconds.
import { icon } from "./icons.js";

const shapes = {
  good: () => icon("circle-check"),
  warn: () => icon("triangle-alert"),
  bad: () => icon("octagon-alert"),
  info: () => icon("info"),
};
const STAY = 6000;
const STAY_TO_ACT = 10000;

/** Shows `text`. `tone`: good, warn, bad, info. `id`: the number to quote in a question for help. `action`: { label, run }. */
export function toast(text, { tone = "info", id = "", action = null } = {}) {
  const list = document.getElementById("toasts");
  if (!list) return;
  const same = [...list.children].find((item) => item.dataset.text === text);
  same?.remove(); // a repeated failure is only one toast
  const item = document.createElement("li");
  item.className = "toast";
  item.dataset.tone = tone;
  item.dataset.text = text;
  const words = Object.assign(document.createElement("div"), { textContent: text });
  if (id) words.append(document.createElement("br"), Object.assign(document.createElement("span"), { className: "toast-id mono", textContent: `id ${id}` }));
  const close = Object.assign(document.createElement("button"), { type: "button", className: "btn ghost small icon-only" });
  close.dataset.dismiss = "";
  close.setAttribute("aria-label", "Dismiss");
  close.append(icon("x"));
  item.append(shapes[tone](), words, ...(action ? [button(item, action)] : []), close);
  list.append(item);
  expire(item, action ? STAY_TO_ACT : STAY);
}

function button(item, { label, run }) {
  const made = Object.assign(document.createElement("button"), { type: "button", className: "btn small", textContent: label });
  made.addEventListener("click", () => {
    item.remove();
    run();
  });
  return made;
}

function expire(item, stay = STAY) {
  if (item.dataset.tone === "bad") return;
  let timer = setTimeout(() => item.remove(), stay);
  item.addEventListener("pointerenter", () => clearTimeout(timer));
  item.addEventListener("pointerleave", () => (timer = setTimeout(() => item.remove(), STAY / 2)));
}

document.addEventListener("click", (event) => event.target.closest("[data-dismiss]")?.closest("li, .callout")?.remove());
document.querySelectorAll("#toasts > .toast").forEach((item) => expire(item, item.querySelector("form") ? STAY_TO_ACT : STAY));
