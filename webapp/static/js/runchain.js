// The chain of a run: a dialog opens for the step whose button was pressed, and the server draws the chain anew as it goes on.
import { attention } from "./attention.js";
import { onBack, onMessage } from "./run.js";

const EVERY_MS = 10_000; // other runs of the chain are not heard here
let fetching = false;

document.addEventListener("click", (event) => {
  const step = event.target.closest("[data-step]");
  if (step) document.querySelectorAll("[data-behind]").forEach((input) => (input.value = step.dataset.step));
});

async function refresh() {
  if (fetching || document.hidden || document.querySelector("dialog[open]")) return;
  if (document.getElementById("chain").contains(document.activeElement)) return; // nothing moves under a key
  fetching = true;
  try {
    const answer = await fetch(location.href, { headers: attention() });
    const found = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("chain");
    if (found) document.getElementById("chain").replaceWith(found);
  } catch {
    // the next round asks again
  } finally {
    fetching = false;
  }
}

onMessage("run", refresh);
onBack(refresh);
setInterval(refresh, EVERY_MS);
