// icon(name) -> an <svg> element of the sprite. scripts/vendor.py finds the names by the spelling of this call.
const sheet = document.querySelector('meta[name="icons"]')?.content ?? "";

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `${sheet}#${name}`);
  svg.append(use);
  return svg;
}
