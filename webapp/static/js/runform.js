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

// What is wrong must be seen, even in what was folded away; who pressed "Launch run" is brought to the first of it.
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
  field.focus({ preventScroll: true });
  field.scrollIntoView({ block: "center" });
}
