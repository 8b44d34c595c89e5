// <button data-open="id"> opens a dialog, <button data-close> closes the one it is in. A dialog that waits for the server uses `send`.
import { toast } from "./toast.js";

const openings = new WeakMap(); // dialog: its last opening

/** Opens `dialog`. All dialogs are opened here, so that an answer of the server finds the opening that asked for it.
 *
 *  Until an answer comes, the person may have closed the dialog and opened it again, for another question. The browser reports late that a
 *  dialog was closed, so openings are told apart by themselves and not by its reports. */
export function show(dialog) {
  const opening = {
    /** Whether the person still sees this opening. */
    get lasts() {
      return dialog.open && openings.get(dialog) === opening;
    },
  };
  openings.set(dialog, opening);
  mark(dialog, false);
  dialog.showModal();
  return opening;
}

/** Shows on the main button of the dialog whether something is being sent. */
function mark(dialog, sending) {
  const button = dialog.querySelector(".dialog-foot .btn:is(.primary, .danger)");
  if (sending) button?.setAttribute("aria-busy", "true");
  else button?.removeAttribute("aria-busy");
}

/** Runs `ask()`, a request, for the opening of `dialog` that is on the screen, and closes this opening if it succeeds. If it fails,
 *  `explain(error)` writes the reason into the dialog; a toast says it if the opening has ended by then. Returns {answer, lasted}, or null if the
 *  request failed or another one of this opening was under way. `lasted`: whether this opening was still on the screen. */
export async function send(dialog, ask, explain) {
  const opening = openings.get(dialog);
  if (!opening?.lasts || opening.sending) return null;
  const title = dialog.querySelector("h2")?.textContent.trim() ?? "";
  opening.sending = true;
  mark(dialog, true);
  try {
    const answer = await ask();
    const lasted = opening.lasts;
    if (lasted) dialog.close();
    return { answer, lasted };
  } catch (error) {
    if (opening.lasts) explain(error);
    else toast([title, error.fields?.[0]?.message ?? error.message].filter(Boolean).join(": "), { tone: "bad", id: error.id });
    return null;
  } finally {
    opening.sending = false;
    if (openings.get(dialog) === opening) mark(dialog, false);
  }
}

document.addEventListener("click", (event) => {
  const opener = event.target.closest("button[data-open], a[data-open]");
  if (opener) show(document.getElementById(opener.dataset.open));
  event.target.closest("[data-close]")?.closest("dialog").close();
});
