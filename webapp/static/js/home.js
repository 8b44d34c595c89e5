// The first page: runs change in place, and a new run is announced beside the heading.
import { follow, tick } from "./runrow.js";

const runs = document.getElementById("home-runs");
if (runs) {
  tick(runs);
  follow(runs);
}
