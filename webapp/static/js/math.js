// Formulas that the server left as their source in span.math become readable. KaTeX is fetched when the first one appears.
let library = null;

/** Arrows, braces and frames carry their size in style attributes, which the page's policy ignores; scripts may set it. */
export function styled(formula) {
  for (const part of formula.querySelectorAll("[style]")) part.style.cssText = part.getAttribute("style");
}

function fetched() {
  if (!document.querySelector('link[href*="katex.css"]')) {
    const href = new URL("../vendor/katex/katex.css", import.meta.url).href;
    document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href }));
  }
  return import("../vendor/katex/katex.js");
}

/** Has the library ready before a formula is there. */
export function fetchMath() {
  return (library ??= fetched());
}

/** Draws every `.math` below `root` that is not drawn yet; a formula that cannot be read stays as its source. */
export async function renderMath(root) {
  const found = [...root.querySelectorAll(".math:not([data-drawn], :has(.math))")];
  if (!found.length) return;
  for (const element of found) element.dataset.drawn = ""; // at once: while the library comes, nobody else takes them
  const { default: katex } = await fetchMath();
  for (const element of found) {
    const source = element.textContent;
    try {
      katex.render(source, element, { displayMode: element.classList.contains("display"), throwOnError: true });
      styled(element);
    } catch {
      element.textContent = source;
    }
  }
}
