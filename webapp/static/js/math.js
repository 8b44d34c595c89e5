// Formulas that the server left as their source in span.math become readable. KaTeX is fetched when the first one appears.
let library = null;

/** Draws every `.math` below `root` that is not drawn yet; a formula that cannot be read stays as its source. */
export async function renderMath(root) {
  const found = [...root.querySelectorAll(".math:not([data-drawn], :has(.math))")];
  if (!found.length) return;
  library ??= import("../vendor/katex/katex.js");
  const { default: katex } = await library;
  for (const element of found) {
    const source = element.textContent;
    element.dataset.drawn = "";
    try {
      katex.render(source, element, { displayMode: element.classList.contains("display"), throwOnError: true });
    } catch {
      element.textContent = source;
    }
  }
}
