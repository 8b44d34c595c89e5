// Requests in several languages: one at a time, the same one in all groups, and on the next page too.
import { make } from "./format.js";

const KEPT = "help-language";
const groups = [...document.querySelectorAll(".languages")];
const nameOf = (part) => part.querySelector(".language-name").textContent;

function remembered() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null; // a browser that keeps nothing
  }
}

function show(wanted) {
  for (const group of groups) {
    const parts = [...group.querySelectorAll(".language")];
    const shown = parts.find((part) => nameOf(part) === wanted) ?? parts[0];
    for (const part of parts) part.hidden = part !== shown;
    for (const button of group.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.textContent === nameOf(shown)));
  }
}

for (const group of groups) {
  const choice = make("div", "segments");
  choice.role = "group";
  choice.ariaLabel = "Language";
  for (const part of group.querySelectorAll(".language")) {
    const button = make("button", "", nameOf(part));
    button.type = "button";
    button.addEventListener("click", () => {
      const before = button.getBoundingClientRect().top;
      show(button.textContent);
      scrollBy({ top: button.getBoundingClientRect().top - before, behavior: "instant" }); // the groups above may be longer or shorter now
      try {
        localStorage.setItem(KEPT, button.textContent);
      } catch {
        // the choice lasts as long as the page
      }
    });
    choice.append(button);
  }
  group.prepend(choice);
  group.classList.add("is-chosen");
}
show(remembered());
