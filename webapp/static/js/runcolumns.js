// Chooses the columns of the table of runs: first facts of the runs, then config and metrics. Typing searches them.
import { show } from "./dialogs.js";
import { make } from "./format.js";
import { json } from "./http.js";

const MOST = 300; // columns that are drawn at a time
const HEADS = { fact: "Of every run", metric: "Metrics", config: "Config" };
const MEASURE = /^(max|min|best|last)\((.*?)\)?$/;

/** `button` opens `dialog`; `shown` are the names of the shown columns in their order. */
export function chooseColumns(button, dialog, shown) {
  if (!button) return;
  const list = dialog.querySelector("[data-columns-list]");
  const search = dialog.querySelector("[data-columns-search]");
  const chosen = new Set(shown.filter(Boolean));
  let known = null;

  const item = ({ name, label }) => {
    const line = make("label", "check");
    const box = Object.assign(make("input"), { type: "checkbox", checked: chosen.has(name), value: name });
    line.append(box, make("span", "", label), ...(label === name ? [] : [make("code", "muted small push", name)]));
    return line;
  };

  /** Draws the list. Chosen columns come first; after `max(` and the like, it lists the metrics inside. */
  const draw = () => {
    const typed = search.value.trim().toLowerCase();
    const measure = MEASURE.exec(typed);
    const fits = (each) => (measure ? each.kind === "metric" && each.name.toLowerCase().includes(measure[2]) : `${each.name} ${each.label}`.toLowerCase().includes(typed));
    const named = (each) => (measure ? { ...each, name: `${measure[1]}(${each.name})`, label: `${measure[1]}(${each.name})` } : each);
    const strange = [...chosen].filter((name) => !known.some((each) => each.name === name)).map((name) => ({ name, label: name, kind: "metric" }));
    const found = [...known.filter(fits).map(named), ...(typed ? [] : strange)];
    const parts = Object.entries(HEADS).flatMap(([kind, head]) => {
      const those = found.filter((each) => each.kind === kind);
      those.sort((one, other) => chosen.has(other.name) - chosen.has(one.name));
      if (!those.length) return [];
      const more = those.length > MOST ? [make("p", "help", `${those.length - MOST} more: type a part of the name`)] : [];
      return [make("h3", "label", head), ...those.slice(0, MOST).map(item), ...more];
    });
    list.replaceChildren(...(parts.length ? parts : [make("p", "muted", "No column has this name.")]));
  };

  button.addEventListener("click", async () => {
    show(dialog);
    try {
      known ??= (await json("/api/v1/runs/table/columns")).items.filter((each) => each.name !== "name");
    } catch (error) {
      list.removeAttribute("aria-busy");
      list.replaceChildren(make("p", "error", `The columns could not be loaded: ${error.message}`));
      return;
    }
    list.removeAttribute("aria-busy");
    draw();
  });
  search.addEventListener("input", () => known && draw());
  list.addEventListener("change", ({ target }) => {
    if (target.checked) chosen.add(target.value);
    else chosen.delete(target.value);
  });
  dialog.querySelector("form").addEventListener("submit", () => {
    dialog.querySelector('[name="columns"]').value = [...chosen].join(",");
  });
}
