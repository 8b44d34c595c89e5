// The first page: runs move in place, a new one is announced beside the heading.
import { follow, tick } from "./runrow.js";

const runs = document.getElementById("home-runs");
if (runs) {
  tick(runs);
  follow(runs);
}
