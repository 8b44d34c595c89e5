// Filters act at once: a select marked `data-autosubmit` sends its form when it changes.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-autosubmit]")) event.target.form.requestSubmit();
});
