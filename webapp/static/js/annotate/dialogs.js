// Small questions: a dialog with a form, whose fields are returned as an object, or null if the person left it.
import { send, show } from "../dialogs.js";
import { judge } from "../toolong.js";
import { el } from "./dom.js";

const unfinished = new WeakMap(); // dialog: ends its last question

/** With `request(fields)`, the dialog waits for the server, and stays open with the reason if the request fails. A person who closes the
 *  dialog in the meantime gets null, although the request continues.
 *
 *  The browser reports late that a dialog is closed: the next key may come before, also from the field in it, and the dialog may be open
 *  for another question by then. So an answer counts at once, and the report ends a question only if its dialog is not open. */
export function ask(dialog, request = null) {
  unfinished.get(dialog)?.(null);
  const form = dialog.querySelector("form");
  const problem = dialog.querySelector("[data-problem]");
  form.reset();
  form.querySelectorAll("[data-most]").forEach(judge);
  if (problem) problem.textContent = "";
  return new Promise((resolve) => {
    const listening = new AbortController();
    const finish = (answer) => {
      listening.abort();
      unfinished.delete(dialog);
      resolve(answer);
    };
    const submit = async (event) => {
      event.preventDefault();
      const fields = Object.fromEntries(new FormData(form));
      if (request) {
        const sent = await send(dialog, () => request(fields), (error) => (problem.textContent = error.message));
        if (sent?.lasted) finish(fields);
        return;
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
    show(dialog);
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
    show(dialog);
    dialog.querySelector(".dialog-foot button").focus();
  });
}
