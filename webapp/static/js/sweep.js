// A sweep that goes on is drawn anew every few seconds, but not under the hands of somebody who chooses the keys of its contour.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id === "standing" && document.activeElement?.closest("#contour-keys")) event.preventDefault();
});
