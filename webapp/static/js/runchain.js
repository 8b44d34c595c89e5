// The chain of a run: a dialog opens for the step whose button was pressed, and the server draws the chain again as it continues.
import { reloading, replace } from "./reloading.js";
import { onBack, onMessage } from "./run.js";

const EVERY_MS = 10_000; // messages about other runs of the chain do not come here
const reload = reloading(location.href, (page) => isFree() && replace("chain", page));

document.addEventListener("click", (event) => {
  const step = event.target.closest("[data-step]");
  if (step) document.querySelectorAll("[data-behind]").forEach((input) => (input.value = step.dataset.step));
});

/** Whether the chain may be replaced: not while a key or an open dialog is used in it. */
function isFree() {
  return !document.querySelector("dialog[open]") && !document.getElementById("chain").contains(document.activeElement);
}

function refresh() {
  if (!document.hidden && isFree()) reload();
}

onMessage("run", refresh);
onBack(refresh);
setInterval(refresh, EVERY_MS);
