// <form data-once>: while it is being sent, its button shows so, and a second press sends nothing.

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-once]") || event.defaultPrevented) return;
  if ("sent" in form.dataset) return event.preventDefault();
  form.dataset.sent = "";
  (event.submitter ?? form.querySelector("[type=submit]"))?.setAttribute("aria-busy", "true");
});
// the browser may go back to the page as it was left
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("[data-sent]")) {
    delete form.dataset.sent;
    form.querySelector("[aria-busy]")?.removeAttribute("aria-busy");
  }
});
