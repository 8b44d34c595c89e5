// Every form that is sent by POST: while it is being sent, its button shows so, and a second press sends nothing. So a double click makes one thing.
// The window hears a submission last. A form that a script or htmx sends by itself has been prevented by then.

const sending = new Map(); // form -> the button that shows it

addEventListener("submit", (event) => {
  const form = event.target;
  if (form.getAttribute("method")?.toLowerCase() !== "post" || event.defaultPrevented) return;
  if (sending.has(form)) return event.preventDefault();
  const button = event.submitter ?? form.querySelector("[type=submit]");
  sending.set(form, button);
  button?.setAttribute("aria-busy", "true");
});
// the browser may go back to the page as it was left
addEventListener("pageshow", () => {
  for (const button of sending.values()) button?.removeAttribute("aria-busy");
  sending.clear();
});
