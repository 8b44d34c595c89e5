// HTMX speaks with the CSRF header, and a failed request says so instead of doing nothing.
import { attention } from "./attention.js";
import { csrfToken } from "./http.js";
import { toast } from "./toast.js";

document.addEventListener("htmx:configRequest", (event) => {
  Object.assign(event.detail.headers, attention());
  if (event.detail.verb !== "get") event.detail.headers["X-CSRFToken"] = csrfToken();
});

// A refused form (422) comes back as the form with messages at its fields: it is swapped in like a success.
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
    // An HTML error page: its words are for a whole page, so the status speaks.
  }
  const words = {
    403: "You may not do this here.",
    404: "This is not there any more. Reload the page.",
    503: "The server is busy or starting. Try again in a moment.",
  };
  const message = told.message || words[xhr.status] || `The server could not do this (${xhr.status}). Try again.`;
  toast(message, { tone: "bad", id: told.id || xhr.getResponseHeader("X-Request-ID") || "" });
});

for (const name of ["htmx:sendError", "htmx:timeout"])
  document.addEventListener(name, () =>
    toast("The server cannot be reached. Nothing was changed; try again when it is back.", { tone: "bad" }),
  );
