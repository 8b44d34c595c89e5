// The history of a run: when its state or attempt changes, its newest page is loaded again.
import { reloading, replace } from "./reloading.js";
import { onBack, onMessage, run } from "./run.js";

let shown = `${run.state} ${run.attempt}`;
const reload = reloading(location.href, (page) => replace("history", page));

function refresh() {
  if (!location.search) reload(); // older entries do not change
}

onMessage("run", (message) => {
  const now = `${message.state ?? run.state} ${message.attempt ?? run.attempt}`;
  if (now === shown) return;
  shown = now;
  refresh();
});
onBack(refresh);
