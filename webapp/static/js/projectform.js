// The form of a project: hides fields that do not apply to the chosen kind, adds and removes scales, and previews the guidelines. The page
// also works without this script; then everything is visible.
import { csrfToken, SIGNED_OUT, toldToSignIn } from "./http.js";
import { toast } from "./toast.js";

const PAUSE_MS = 300; // after the last key, before the server is asked

/** Calls `action` when the calls have stopped for a moment. */
function settled(action) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, PAUSE_MS);
  };
}

/** The fragment that `url` answers to the form's fields; null if there is a newer request, or if it fails. */
function asker() {
  let last = null;
  return async (url, fields) => {
    last?.abort();
    last = new AbortController();
    try {
      const options = { method: "POST", body: fields, headers: { "X-CSRFToken": csrfToken() }, signal: last.signal };
      const answer = await fetch(url, options);
      if (toldToSignIn(answer)) toast(SIGNED_OUT, { tone: "warn" });
      return answer.ok && !answer.redirected ? await answer.text() : null;
    } catch {
      return null; // aborted, or the server is away: the shown fragment stays
    }
  };
}

function kinds(form) {
  const show = () => {
    const kind = form.elements.kind?.value ?? form.dataset.kind;
    for (const part of form.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind);
  };
  form.addEventListener("change", (event) => event.target.name === "kind" && show());
  show();
}

function strategy(form) {
  const [select, help] = [form.elements.strategy, form.querySelector("[data-strategy-help]")];
  if (!select || !help) return;
  const show = () => (help.textContent = select.selectedOptions[0]?.dataset.help ?? "");
  select.addEventListener("change", show);
  show();
}

function scales(form) {
  const list = form.querySelector("[data-scales]");
  if (!list) return;
  form.addEventListener("click", (event) => {
    if (event.target.closest("[data-scale-add]")) {
      list.append(form.querySelector("#scale-row").content.cloneNode(true));
      list.lastElementChild.querySelector("input").focus();
    }
    event.target.closest("[data-scale-remove]")?.closest("[data-scale]").remove();
  });
}

function editor(part) {
  const [area, shown, ask] = [part.querySelector("textarea"), part.querySelector("[data-editor-preview]"), asker()];
  area.addEventListener(
    "input",
    settled(async () => {
      const html = await ask(part.dataset.preview, new URLSearchParams({ guidelines: area.value }));
      if (html !== null) shown.innerHTML = html; // made and cleaned by the server
    }),
  );
}

function size(form) {
  const [shown, ask] = [form.querySelector("[data-size]"), asker()];
  if (!shown?.dataset.size) return;
  const look = settled(async () => {
    const { kind, dataset, overlap } = form.elements;
    const fields = { kind: kind.value, dataset: dataset.value, overlap: overlap.value };
    const html = await ask(shown.dataset.size, new URLSearchParams(fields));
    if (html !== null) shown.innerHTML = html;
  });
  form.addEventListener("input", (event) => ["kind", "dataset", "overlap"].includes(event.target.name) && look());
}

for (const form of document.querySelectorAll("[data-project-form]")) {
  kinds(form);
  strategy(form);
  scales(form);
  size(form);
  form.querySelectorAll("[data-editor]").forEach(editor);
  form.querySelector("[aria-invalid], .error")?.scrollIntoView({ block: "center" });
}
