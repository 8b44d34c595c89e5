// toast("Saved"), toast("Could not stop the run", { tone: "bad", id: "…" }). Errors stay until dismissed.
// toast(SIGNED_OUT) stays, and has a link that signs in again in another tab, so that what was typed here is kept.
// toast("Archived 3 runs", { action: { label: "Undo", run: () => … } }) has a button, and stays for ten seconds.
import { SIGNED_OUT } from "./http.js";
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
  const signedOut = text.endsWith(SIGNED_OUT);
  const same = [...list.children].find((item) => item.dataset.text === text);
  if (same && signedOut) return; // each part of the page that loads itself again finds it out
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
  const beside = signedOut ? [signIn(item)] : action ? [button(item, action)] : [];
  item.append(shapes[tone](), words, ...beside, close);
  list.append(item);
  if (!signedOut) expire(item, action ? STAY_TO_ACT : STAY);
}

function signIn(item) {
  const href = `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;
  const made = Object.assign(document.createElement("a"), { className: "btn small", href, target: "_blank", textContent: "Sign in again" });
  made.addEventListener("click", () => item.remove());
  return made;
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
