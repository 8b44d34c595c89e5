// The theme switch, and resolved colours for drawing on a canvas.
import { csrfToken } from "./http.js";

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

/** The present colour of a custom property: color("--series-1") -> "oklch(…)". It is for canvases; CSS needs only var(). */
export function color(name) {
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  probe.style.color = `var(${name})`;
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

/** Calls `redraw` whenever the colours change: a switch by hand or by the system. Returns a function that stops it. */
export function onTheme(redraw) {
  document.addEventListener("themechange", redraw);
  return () => document.removeEventListener("themechange", redraw);
}

function announce() {
  document.dispatchEvent(new CustomEvent("themechange"));
}

function mark() {
  for (const button of document.querySelectorAll("[data-theme-switch] button"))
    button.setAttribute("aria-pressed", String(button.dataset.value === (root.dataset.theme || "system")));
}

async function choose(theme) {
  root.dataset.theme = theme;
  mark();
  announce();
  try {
    localStorage.setItem("theme", theme);
    // Stored with the account, for other browsers. A failure does not matter here, because this browser remembers the theme.
    await fetch("/settings/theme", {
      method: "POST",
      body: new URLSearchParams({ theme }),
      headers: { "X-CSRFToken": csrfToken(), "HX-Request": "true" },
    });
  } catch {
    return;
  }
}

dark.addEventListener("change", announce);
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-theme-switch] button");
  if (!button) return;
  event.preventDefault(); // on the profile page it also submits a form, for browsers without scripts
  choose(button.dataset.value);
});
mark();
