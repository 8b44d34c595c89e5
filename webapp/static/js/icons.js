// icon(name) -> an <svg> element of the sprite. scripts/vendor.py finds the names by the spelling of this call.
import { makeSvg } from "./format.js";

const sheet = document.querySelector('meta[name="icons"]')?.content ?? "";

export function icon(name) {
  return makeSvg("svg", { class: "icon", "aria-hidden": "true" }, makeSvg("use", { href: `${sheet}#${name}` }));
}
