// A sweep that is under way is loaded again every few seconds, but not while somebody chooses the keys of its contour.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id === "standing" && document.activeElement?.closest("#contour-keys")) event.preventDefault();
});
