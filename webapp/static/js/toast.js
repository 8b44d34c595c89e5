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
  if (same && signedOut && !action) return; // each part of the page that loads itself again finds it out
  if (!action) same?.remove(); // a repeated failure is only one toast, unless it has something to give back
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
  const buttons = [...(signedOut ? [signIn()] : []), ...(action ? [button(item, action)] : [])];
  item.append(shapes[tone](), words, ...(buttons.length > 1 ? [] : buttons), close);
  if (buttons.length > 1) words.append(row(buttons)); // beside the words, two would leave no room for them
  list.append(item);
  if (!signedOut) return expire(item, action ? STAY_TO_ACT : STAY);
  if (!action) item.dataset.signedOut = "";
}

function row(buttons) {
  const made = Object.assign(document.createElement("div"), { className: "toast-buttons" });
  made.append(...buttons);
  return made;
}

function signIn() {
  const href = `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;
  return Object.assign(document.createElement("a"), { className: "btn small", href, target: "_blank", textContent: "Sign in again" });
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
// A person who comes back from the other tab may have signed in. If not, the next refused request says it again.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) document.querySelectorAll("#toasts > [data-signed-out]").forEach((item) => item.remove());
});
document.querySelectorAll("#toasts > .toast").forEach((item) => expire(item, item.querySelector("form") ? STAY_TO_ACT : STAY));
