// The events of a webhook, in groups: a box that chooses all of a group, and how many of it are chosen.
for (const group of document.querySelectorAll("[data-group]")) {
  const all = group.querySelector("[data-all]");
  const boxes = [...group.querySelectorAll("input[name=events]")];
  const count = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    group.querySelector("[data-chosen]").textContent = `${chosen} of ${boxes.length}`;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && !all.checked;
  };
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    count();
  });
  group.addEventListener("change", count);
  addEventListener("pageshow", count); // a browser that goes back restores the boxes
  group.querySelector("[data-all-row]").hidden = boxes.length < 2;
  count();
}
