// HTMX sends the CSRF header, and a failed request shows a message.
import { attention } from "./attention.js";
import { csrfToken, SIGNED_OUT, unanswered } from "./http.js";
import { toast } from "./toast.js";

document.addEventListener("htmx:configRequest", (event) => {
  Object.assign(event.detail.headers, attention());
  if (event.detail.verb !== "get") event.detail.headers["X-CSRFToken"] = csrfToken();
});

// `hx-sync` aborts a request if a newer one takes its place, and htmx would write that to the console as two errors. A request that fails
// writes the name of its failure there all the same (`htmx:sendError`, `htmx:timeout`, `htmx:responseError`).
const NO_FAILURE = new Set(["htmx:afterRequest", "htmx:sendAbort"]);
htmx.logger = (node, name, detail) => {
  if (NO_FAILURE.has(name)) delete detail.error; // htmx writes it after this call, and has made `detail` for this event alone
};

// If a fragment is loaded again, opened parts stay open and keep the focus; only what has changed is drawn.
let opened = new Set();
let focused = "";
document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
  opened = new Set([...target.querySelectorAll("details[open][id]")].map((fold) => fold.id));
  const active = document.activeElement;
  focused = active?.matches("summary") && target.contains(active) ? active.parentElement.id : "";
});
document.addEventListener("htmx:load", ({ detail: { elt } }) => {
  for (const fold of elt.querySelectorAll("details[id]")) {
    if (opened.has(fold.id)) fold.open = true;
    if (focused && fold.id === focused) fold.querySelector("summary").focus();
  }
});

// A refused form (422) comes back as a form with messages at its fields, and is swapped in like a success.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.status === 422) {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  }
});

document.addEventListener("htmx:responseError", (event) => {
  const { xhr } = event.detail;
  let told = {};
  try {
    told = JSON.parse(xhr.responseText).error ?? {};
  } catch {
    // An HTML error page has words for a whole page, so the message depends on the status.
  }
  const words = {
    401: SIGNED_OUT,
    403: "You may not do this here.",
    404: "This no longer exists. Reload the page.",
    503: "The server is busy or starting. Try again in a moment.",
  };
  const message = told.message || words[xhr.status] || `The server could not do this (${xhr.status}). Try again.`;
  toast(message, { tone: "bad", id: told.id || xhr.getResponseHeader("X-Request-ID") || "" });
});

for (const name of ["htmx:sendError", "htmx:timeout"])
  document.addEventListener(name, ({ detail }) => toast(unanswered(detail.requestConfig?.verb !== "get"), { tone: "bad" }));
