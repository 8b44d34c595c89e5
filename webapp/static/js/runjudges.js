// The card of a run's judges: a message says that they were asked, the server says what of it. Only what has changed is
// replaced, so a budget that is being typed stays. A judge that is asked first gets its row anew, with its budget.
import { reloading } from "./reloading.js";
import { onBack, onMessage } from "./run.js";

const card = document.getElementById("judges");

function show(page) {
  const rows = [...card.querySelectorAll("[data-judge]")];
  const found = [...page.querySelectorAll("[data-judge]")];
  const same = rows.length === found.length && rows.every((row, i) => row.dataset.judge === found[i].dataset.judge);
  if (!same) return rows[0].parentElement.replaceChildren(...found);
  rows.forEach((row, i) =>
    row.querySelectorAll("[data-live]").forEach((old) => {
      const fresh = found[i].querySelector(`[data-live="${old.dataset.live}"]`);
      if (fresh.innerHTML === old.innerHTML) return;
      if (old.dataset.live === "problem" && fresh.innerHTML) row.querySelector("details")?.setAttribute("open", ""); // what helps
      old.replaceWith(fresh);
    }),
  );
}

if (card) {
  const refresh = reloading(card.dataset.url, show, { "HX-Request": "true" });
  onMessage("judges", refresh);
  onBack(refresh);
}
