// <button data-open="id"> opens a dialog, <button data-close> closes the one it is in.

document.addEventListener("click", (event) => {
  const opener = event.target.closest("button[data-open], a[data-open]");
  if (opener) document.getElementById(opener.dataset.open).showModal();
  event.target.closest("[data-close]")?.closest("dialog").close();
});
