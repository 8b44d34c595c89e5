// Moves to the next or previous example by j and k or the arrows, as in a list.
import { register } from "./keys.js";

for (const [step, label, keys] of [["after", "Next example", ["j", "ArrowRight"]], ["before", "Previous example", ["k", "ArrowLeft"]]]) {
  const link = document.querySelector(`[data-step="${step}"]`);
  for (const key of link ? keys : []) register(key, label, () => link.click());
}
