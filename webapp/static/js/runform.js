// The server draws and checks the form of a run, and its answers are morphed in. The field in which a person types, and unfolded
// parts, stay as they are. So do the marks of the search for fields.
import { finder } from "./formfinder.js";

const keepOpen = (name, node) => !(name === "open" && node.tagName === "DETAILS") && name !== "data-out";
Idiomorph.defaults.ignoreActiveValue = true;
Idiomorph.defaults.callbacks.beforeAttributeUpdated = keepOpen;

const found = finder(document.getElementById("run-form"));
document.getElementById("run-form").addEventListener("htmx:afterSwap", found.show);

// Enter in a field would press the first submit button, which may remove an item of a list. So it checks the field instead.
document.getElementById("run-form").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches("input:not([type=checkbox])")) return;
  event.preventDefault();
  event.target.dispatchEvent(new Event("change", { bubbles: true }));
});

// htmx also sends the button that was pressed last, until it loses the focus. Some browsers do not focus a button that is clicked, so
// it would be sent for ever. A change of a field presses no button: it must not add an item, and not launch.
document.getElementById("run-form").addEventListener("htmx:configRequest", ({ detail }) => {
  if (detail.triggeringEvent?.type === "change") delete detail.parameters.action;
});

// An expression is checked while it is typed, after a short pause.
let rest;
document.getElementById("run-form").addEventListener("input", (event) => {
  if (!event.target.matches("[data-live]")) return;
  clearTimeout(rest);
  const field = event.target;
  rest = setTimeout(() => field.dispatchEvent(new Event("change", { bubbles: true })), 500);
});

// Problems must be visible, even in folded parts. After "Launch run", the page scrolls to the first one.
let launching = false;
document.body.addEventListener("htmx:beforeRequest", ({ detail }) => {
  launching = detail.requestConfig.triggeringEvent?.submitter?.matches(".launch") ?? false;
});
document.body.addEventListener("htmx:afterSettle", () => {
  for (const fold of document.querySelectorAll("#run-form details:has(.error)")) fold.open = true;
  if (launching) goTo(document.querySelector(".to-fix")?.hash);
  launching = false;
});
document.getElementById("run-form").addEventListener("click", (event) => {
  if (!event.target.matches(".to-fix")) return;
  event.preventDefault();
  goTo(event.target.hash);
});

function goTo(hash) {
  const field = hash && document.querySelector(hash);
  if (!field) return;
  if (field.closest("[data-out]")) found.clear();
  field.focus({ preventScroll: true });
  field.scrollIntoView({ block: "center" });
}
