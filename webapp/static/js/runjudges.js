// The card of a run's judges. A message says that judges were asked, and the card is loaded. Only changed parts are replaced, so that a
// budget that somebody types stays. A judge that is asked for the first time gets a new row, with its budget. The spending limit of the run
// is outside of the card.
import { reloading } from "./reloading.js";
import { onBack, onMessage } from "./run.js";

const card = document.getElementById("judges");

function show(page) {
  for (const fresh of page.querySelectorAll("[data-spent]")) document.querySelector(`[data-spent="${fresh.dataset.spent}"]`)?.replaceWith(fresh);
  const rows = [...card.querySelectorAll("[data-judge]")];
  const found = [...page.querySelectorAll("[data-judge]")];
  const same = rows.length === found.length && rows.every((row, i) => row.dataset.judge === found[i].dataset.judge);
  if (!same) return rows[0].parentElement.replaceChildren(...found);
  rows.forEach((row, i) =>
    row.querySelectorAll("[data-live]").forEach((old) => {
      const fresh = found[i].querySelector(`[data-live="${old.dataset.live}"]`);
      if (fresh.innerHTML === old.innerHTML) return;
      if (old.dataset.live === "problem" && fresh.childElementCount) row.querySelector("details")?.setAttribute("open", ""); // the budget is what helps
      old.replaceWith(fresh);
    }),
  );
}

if (card) {
  const refresh = reloading(card.dataset.url, show, { "HX-Request": "true" });
  onMessage("judges", refresh);
  onBack(refresh);
}
