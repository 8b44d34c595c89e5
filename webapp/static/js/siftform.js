// Whoever fills in what a filter asks for wants the filter: it is switched on with it, and off when nothing of it is left.
const asks = (field) => (field.type === "checkbox" ? field.checked : field.value.trim() !== "");

for (const row of document.querySelectorAll(".sift tbody tr")) {
  const on = row.querySelector("[name=on]");
  const fields = [...row.querySelectorAll("input, select")].filter((each) => each !== on);
  row.addEventListener("input", (event) => {
    if (on && event.target !== on) on.checked = fields.some(asks);
  });
}
