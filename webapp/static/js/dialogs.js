// <button data-open="id"> opens a dialog, <button data-close> closes the one it is in.
// <button data-ask="Remove Anna?" data-ask-about="What goes with it."> is a question before its form is sent: for what cannot
// be undone. The words of the button are the answer; `data-ask-yes` names another one.

document.addEventListener("click", (event) => {
  const opener = event.target.closest("button[data-open], a[data-open]");
  if (opener) document.getElementById(opener.dataset.open).showModal();
  event.target.closest("[data-close]")?.closest("dialog").close();
});

const answered = new WeakSet(); // buttons whose question was answered with yes

document.addEventListener(
  "submit",
  (event) => {
    const button = event.submitter;
    if (!button?.dataset.ask || answered.delete(button)) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // what else listens would take it for sent
    question(button);
  },
  true,
);

function question(button) {
  const dialog = document.getElementById("ask");
  const part = (name) => dialog.querySelector(`[data-${name}]`);
  part("question").textContent = button.dataset.ask;
  part("about").textContent = button.dataset.askAbout ?? "This cannot be undone.";
  part("yes").textContent = button.dataset.askYes ?? button.textContent.trim();
  dialog.returnValue = "";
  dialog.addEventListener("close", () => dialog.returnValue === "yes" && send(button), { once: true });
  dialog.showModal();
}

function send(button) {
  if (!button.isConnected) return; // the page has drawn that part anew, without it
  answered.add(button);
  button.form.requestSubmit(button);
}
