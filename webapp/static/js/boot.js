// Runs before the first paint, so that neither the theme nor the width of the rail flashes. It is not a module, because modules wait for
// the document. The server knows the theme of people who are signed in; for others, the browser remembers it.
(() => {
  const root = document.documentElement;
  try {
    if (root.dataset.theme) localStorage.setItem("theme", root.dataset.theme);
    else root.dataset.theme = localStorage.getItem("theme") || "system";
    if (localStorage.getItem("rail") === "narrow") root.dataset.rail = "narrow";
  } catch {
    // Some private windows forbid storage: the page then follows the system.
  }
})();
