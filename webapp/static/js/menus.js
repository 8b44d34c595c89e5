// <details data-menu>: closes on Escape, on a click elsewhere and after a choice; arrows walk its items.

const open = () => [...document.querySelectorAll("details[data-menu][open]")];

document.addEventListener("click", (event) => {
  for (const menu of open()) {
    const inside = menu.contains(event.target);
    if (!inside || event.target.closest("a.menu-item, button.menu-item")) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  const menu = open().find((candidate) => candidate.contains(document.activeElement)) ?? open()[0];
  if (!menu) return;
  if (event.key === "Escape") {
    menu.open = false;
    menu.querySelector("summary").focus();
    event.preventDefault();
  }
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const items = [...menu.querySelectorAll(".menu-item")];
    const at = items.indexOf(document.activeElement);
    const step = event.key === "ArrowDown" ? 1 : -1;
    items[(at + step + items.length) % items.length]?.focus();
    event.preventDefault();
  }
});
