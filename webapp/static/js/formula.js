// <span data-tex>LaTeX</span> becomes a formula. Without scripts, people can read the LaTeX.
import katex from "../vendor/katex/katex.js";
import { styled } from "./math.js";

for (const node of document.querySelectorAll("[data-tex]")) {
  const tex = node.textContent;
  try {
    katex.render(tex, node, { displayMode: true, throwOnError: true, output: "htmlAndMathml", trust: false });
    styled(node);
    node.classList.add("is-drawn");
  } catch {
    node.textContent = tex;
  }
}
