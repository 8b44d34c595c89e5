// Groups of the table of runs: their runs unfold below them.
import { SIGNED_OUT, toldToSignIn } from "./http.js";
import { toast } from "./toast.js";

/** Loads the runs of a group below its row, and shows or hides them. `come` is called with rows that come. */
async function unfold(button, come) {
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(open));
  if (!button.rows && open) {
    button.rows = []; // a second click while they load asks for no others
    try {
      const answer = await fetch(`/experiments/rows?${button.dataset.unfold}`);
      if (toldToSignIn(answer)) throw new Error(SIGNED_OUT);
      if (answer.redirected) throw new Error("load the page again.");
      if (!answer.ok) throw new Error(answer.statusText);
      const held = document.createElement("template");
      held.innerHTML = await answer.text();
      button.rows = [...held.content.querySelectorAll("tr")];
      for (const row of button.rows) row.classList.add("is-in-group");
      button.closest("tr").after(...button.rows);
      come(button.rows);
    } catch (error) {
      button.rows = null;
      button.setAttribute("aria-expanded", "false");
      return toast(`The runs of this group could not be loaded: ${error.message}`, { tone: "bad" });
    }
  }
  const shown = button.getAttribute("aria-expanded") === "true";
  for (const row of button.rows) row.hidden = !shown;
}

export function groups(list, come) {
  list.addEventListener("click", (event) => {
    const row = event.target.closest("tr.is-group");
    if (!row || String(getSelection())) return;
    const button = row.querySelector("[data-unfold]"); // a group that no query finds has none
    if (button && (button.contains(event.target) || !event.target.closest("a, input, button, label"))) unfold(button, come);
  });
}
