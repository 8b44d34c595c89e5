// On a phone a row of tabs may be longer than the screen: the tab of this page is in view.
for (const tab of document.querySelectorAll(".tabs > [aria-current]")) {
  const row = tab.parentElement;
  const [inside, around] = [tab.getBoundingClientRect(), row.getBoundingClientRect()];
  if (inside.right > around.right) row.scrollLeft += inside.right - around.right + (around.width - inside.width) / 2;
}
