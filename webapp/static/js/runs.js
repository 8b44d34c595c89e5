// The list of runs: rows change in place, new runs announce themselves, nothing moves under the pointer.
import { follow, tick } from "./runrow.js";

const list = document.getElementById("run-list");

if (list) {
  const chosen = () => list.querySelectorAll('input[name="ids"]:checked');
  const button = list.querySelector("[data-compare]");
  const count = () => {
    const n = chosen().length;
    button.disabled = n < 2 || n > 8;
    button.querySelector("span").textContent = n > 1 ? `Compare ${n}` : "Compare";
    button.title = n < 2 ? "Choose two to eight runs" : "";
  };
  list.addEventListener("change", (event) => {
    if (event.target.matches("[data-autosubmit]")) event.target.form.requestSubmit();
    else count();
  });
  count();
  tick(list);
  follow(list);
}
