// Every form that is sent by POST: while it is being sent, its button shows so, and a second press sends nothing. So a double click makes one thing.
// The window hears a submission last. A form that a script or htmx sends by itself has been prevented by then.
//
// Without a network, a browser would leave the page for its own error page, and what was typed could be lost. So the form stays, and a message
// says why. A browser also counts as offline if only this machine can be reached, on which the server may be: so the server is asked first.
import { csrfToken, unanswered } from "./http.js";
import { toast } from "./toast.js";

// Each sign-in gives another token. A form of before it would act as the person, and in the workspace, of the new session.
const asLoaded = csrfToken();
const OTHER_SESSION = "Somebody has signed in since this page was loaded. Copy what you typed, and load the page again.";
const sending = new Map(); // form -> the button that shows it
const reached = new WeakSet(); // forms whose server has answered just now, although the browser counts as offline

addEventListener("submit", (event) => {
  const form = event.target;
  if (form.getAttribute("method")?.toLowerCase() !== "post" || event.defaultPrevented) return;
  if (sending.has(form)) return event.preventDefault();
  const button = event.submitter ?? form.querySelector("[type=submit]");
  if (!navigator.onLine && !reached.delete(form)) {
    event.preventDefault();
    return ask(form, event.submitter);
  }
  if (csrfToken() !== asLoaded) {
    event.preventDefault();
    return toast(OTHER_SESSION, { tone: "bad" });
  }
  sending.set(form, button);
  button?.setAttribute("aria-busy", "true");
});

async function ask(form, submitter) {
  try {
    await fetch("/healthz", { cache: "no-store" });
  } catch {
    return toast(unanswered(true), { tone: "bad" });
  }
  reached.add(form);
  form.requestSubmit(submitter);
}

function unlock() {
  for (const button of sending.values()) button?.removeAttribute("aria-busy");
  sending.clear();
}

// the browser may go back to the page as it was left
addEventListener("pageshow", unlock);
// The page stays if the person presses Stop, or if the answer is a file. Browsers that lack `navigation` keep the form locked until the page is
// loaded again.
window.navigation?.addEventListener("navigateerror", unlock);
