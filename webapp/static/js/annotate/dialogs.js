// Small questions: a dialog with a form, whose fields are returned as an object, or null if the person left it.
import { el } from "./dom.js";

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close]")) event.target.closest("dialog")?.close();
});

/** With `send(fields)`, the dialog stays open with the reason if sending fails. */
export function ask(dialog, send = null) {
  const form = dialog.querySelector("form");
  const problem = dialog.querySelector("[data-problem]");
  form.reset();
  if (problem) problem.textContent = "";
  return new Promise((resolve) => {
    let answer = null;
    let sending = false;
    const submit = async (event) => {
      event.preventDefault();
      if (sending) return; // it was pressed twice and is already being sent
      sending = true;
      const fields = Object.fromEntries(new FormData(form));
      try {
        await send?.(fields);
      } catch (error) {
        problem.textContent = error.message;
        return;
      } finally {
        sending = false;
      }
      answer = fields;
      dialog.close();
    };
    const hurry = (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      form.requestSubmit();
    };
    form.addEventListener("submit", submit);
    form.addEventListener("keydown", hurry);
    dialog.addEventListener("close", () => {
      form.removeEventListener("submit", submit);
      form.removeEventListener("keydown", hurry);
      resolve(answer);
    }, { once: true });
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
