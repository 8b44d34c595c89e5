// Draws formulas, whose source the server puts into span.math. KaTeX is fetched when the first one appears.
let library = null;

/** Arrows, braces and frames have their size in style attributes, which the page's policy ignores; scripts may set it. */
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

/** Loads the library before there is a formula. */
export function fetchMath() {
  return (library ??= fetched());
}

/** Draws every `.math` below `root` that is not drawn yet; a formula that cannot be read stays as its source. */
export async function renderMath(root) {
  const found = [...root.querySelectorAll(".math:not([data-drawn], :has(.math))")];
  if (!found.length) return;
  for (const element of found) element.dataset.drawn = ""; // at once, so that no other call takes them while the library is loaded
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
