// Runs before the first paint, so that neither the theme nor the width of the rail flashes. Not a module on purpose:
// modules wait for the document. The server knows the theme of who is signed in; for others the browser remembers it.
(() => {
  const root = document.documentElement;
  try {
    if (root.dataset.theme) localStorage.setItem("theme", root.dataset.theme);
    else root.dataset.theme = localStorage.getItem("theme") || "system";
    if (localStorage.getItem("rail") === "narrow") root.dataset.rail = "narrow";
  } catch {
    // Storage is forbidden in some private windows: the page then follows the system.
  }
})();
