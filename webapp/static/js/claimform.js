// Enter presses the first button of a form, which starts a claim with its own task. A person who has chosen data or a model wants these.
const form = document.querySelector("#claim");
const launch = form.querySelector("#launch");
let chosen = form.hasAttribute("data-chosen");
form.addEventListener("change", (event) => {
  if (event.target.matches("select")) chosen = true;
});
form.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing || !chosen || !event.target.matches("input")) return;
  event.preventDefault();
  form.requestSubmit(launch);
});
