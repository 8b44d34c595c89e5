// A sweep that is under way is loaded again every few seconds, but not while somebody chooses the keys of its contour. Folds that somebody opened
// stay open; the order of the trials is kept by table.js.
const folds = () => [...document.querySelectorAll("#standing details.fold")];
let open = [];

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id === "standing" && document.activeElement?.closest("#contour-keys")) event.preventDefault();
});
document.addEventListener("htmx:beforeSwap", () => {
  open = folds().map((each) => each.open);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const [place, fold] of folds().entries()) fold.open = open[place] ?? fold.open;
});
