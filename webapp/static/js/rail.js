// The navigation: narrow or wide on a wide screen (remembered), a drawer on a phone.
import { register } from "./keys.js";

const root = document.documentElement;

function setRail(narrow) {
  if (narrow) root.dataset.rail = "narrow";
  else delete root.dataset.rail;
  try {
    localStorage.setItem("rail", narrow ? "narrow" : "wide");
  } catch {
    // If storage is forbidden, this is not remembered.
  }
  mark();
}

function mark() {
  const narrow = root.dataset.rail === "narrow";
  for (const button of document.querySelectorAll("[data-rail-toggle]")) {
    button.setAttribute("aria-pressed", String(narrow));
    button.setAttribute("aria-label", narrow ? "Expand the navigation" : "Collapse the navigation");
    button.title = button.getAttribute("aria-label");
  }
}

function setDrawer(open) {
  root.dataset.drawer = open ? "open" : "closed";
  for (const button of document.querySelectorAll("[data-drawer-toggle][aria-expanded]"))
    button.setAttribute("aria-expanded", String(open));
  document.getElementById("content")?.toggleAttribute("inert", open);
  if (open) document.querySelector(".rail-nav a")?.focus();
  else document.querySelector("[data-drawer-toggle][aria-expanded]")?.focus();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-rail-toggle]")) setRail(root.dataset.rail !== "narrow");
  if (event.target.closest("[data-drawer-toggle]")) setDrawer(root.dataset.drawer !== "open");
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && root.dataset.drawer === "open") setDrawer(false);
});
mark();
register("[", "Collapse or expand the navigation", () => setRail(root.dataset.rail !== "narrow"), "Everywhere");
