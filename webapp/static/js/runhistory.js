// The history of a run: when its state or attempt changes, the server draws the newest page of it anew.
import { attention } from "./attention.js";
import { onBack, onMessage, run } from "./run.js";

let shown = `${run.state} ${run.attempt}`;
let fetching = false;
let again = false;

async function refresh() {
  again = fetching;
  if (fetching || location.search) return; // older entries do not change
  fetching = true;
  try {
    const answer = await fetch(location.href, { headers: attention() });
    const found = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("history");
    if (found) document.getElementById("history").replaceWith(found);
  } catch {
    // the connection's next message asks again
  } finally {
    fetching = false;
    if (again) refresh();
  }
}

onMessage("run", (message) => {
  const now = `${message.state ?? run.state} ${message.attempt ?? run.attempt}`;
  if (now === shown) return;
  shown = now;
  refresh();
});
onBack(refresh);
