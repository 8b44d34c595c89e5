// Small questions: a dialog with a form, whose fields are returned as an object, or null if the person left it.
import { el } from "./dom.js";

const unfinished = new WeakMap(); // dialog: ends its last question

/** With `send(fields)`, the dialog stays open with the reason if sending fails.
 *
 *  The browser reports late that a dialog is closed: the next key may come before, also from the field in it, and the dialog may be open
 *  for another question by then. So an answer counts at once, and the report ends a question only if its dialog is not open. */
export function ask(dialog, send = null) {
  unfinished.get(dialog)?.(null);
  const form = dialog.querySelector("form");
  const problem = dialog.querySelector("[data-problem]");
  form.reset();
  if (problem) problem.textContent = "";
  return new Promise((resolve) => {
    const listening = new AbortController();
    const finish = (answer) => {
      listening.abort();
      unfinished.delete(dialog);
      resolve(answer);
    };
    let sending = false;
    const submit = async (event) => {
      event.preventDefault();
      if (sending) return; // it was pressed twice and is already being sent
      sending = true;
      const fields = Object.fromEntries(new FormData(form));
      try {
        if (send) await send(fields);
      } catch (error) {
        problem.textContent = error.message;
        return;
      } finally {
        sending = false;
      }
      finish(fields);
      dialog.close();
    };
    const hurry = (event) => {
      if (!dialog.open || event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      event.stopPropagation(); // the dialog may be closed before the page hears of this key
      form.requestSubmit();
    };
    const { signal } = listening;
    form.addEventListener("submit", submit, { signal });
    form.addEventListener("keydown", hurry, { signal });
    dialog.addEventListener("close", () => dialog.open || finish(null), { signal });
    unfinished.set(dialog, finish);
    dialog.showModal();
    (form.querySelector("textarea") ?? form.querySelector("input[type=radio]"))?.focus();
  });
}

/** Shows named lines, and waits until the person continues. */
export function choices(dialog, lines) {
  dialog.querySelector("[data-body]").replaceChildren(
    el("dl.facts", {}, ...lines.flatMap(([name, text]) => [el("dt", {}, name), el("dd", { dir: "auto" }, text)])),
  );
  return new Promise((resolve) => {
    dialog.addEventListener("close", resolve, { once: true });
    dialog.showModal();
    dialog.querySelector(".dialog-foot button").focus();
  });
}
