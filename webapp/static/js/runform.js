// The form of a run is drawn and checked by the server; its answers are morphed in. What a person is typing in, and
// what they have folded open, stays as it is.

const keepOpen = (name, node) => !(name === "open" && node.tagName === "DETAILS");
Idiomorph.defaults.ignoreActiveValue = true;
Idiomorph.defaults.callbacks.beforeAttributeUpdated = keepOpen;

// Enter in a field would press the first submit button, which may remove a list item: it checks the field instead.
document.getElementById("run-form").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches("input:not([type=checkbox])")) return;
  event.preventDefault();
  event.target.dispatchEvent(new Event("change", { bubbles: true }));
});

// An expression is checked while it is typed, after a short rest.
let rest;
document.getElementById("run-form").addEventListener("input", (event) => {
  if (!event.target.matches("[data-live]")) return;
  clearTimeout(rest);
  const field = event.target;
  rest = setTimeout(() => field.dispatchEvent(new Event("change", { bubbles: true })), 500);
});

// What is wrong must be seen, even in what was folded away.
document.body.addEventListener("htmx:afterSettle", () => {
  for (const fold of document.querySelectorAll("#run-form details:has(.error)")) fold.open = true;
});
