// The form that repeats a run: the time zone of the browser, and only the fields of the chosen rhythm.
const zone = document.querySelector("#repeat-zone");
if (zone && !zone.value) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

const rhythm = document.querySelector("#repeat-rhythm");
function show() {
  const hours = rhythm.value === "hours";
  for (const field of document.querySelectorAll("[data-for]")) field.hidden = (field.dataset.for === "hours") !== hours;
}
if (rhythm) {
  rhythm.addEventListener("change", show);
  addEventListener("pageshow", show); // a browser that goes back restores the choice
  show();
}
