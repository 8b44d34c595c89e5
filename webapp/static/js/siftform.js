// A filter is switched on when a person fills in one of its fields, and off when all of them are empty.
const asks = (field) => (field.type === "checkbox" ? field.checked : field.value.trim() !== "");

for (const row of document.querySelectorAll(".sift tbody tr")) {
  const on = row.querySelector("[name=on]");
  const fields = [...row.querySelectorAll("input, select")].filter((each) => each !== on);
  row.addEventListener("input", (event) => {
    if (on && event.target !== on) on.checked = fields.some(asks);
  });
}
