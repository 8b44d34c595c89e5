// The keys and buttons of the frame, and the reactions of the page when it is left, hidden, offline or back.
import { offer } from "../palette.js";
import { isFormatted, setFormatted } from "./text.js";

const toggleFormatted = () => setFormatted(!isFormatted());

/** The entries of the keymap. Buttons with data-do="ACTION" do the same. */
export function controls({ submit, saveNow, undo, skip, flag, turn, sidebar, prompt, sheet }) {
  return [
    { action: "submit", key: "Mod+Enter", label: "Submit, and the next task", run: submit, always: true },
    { action: "save", key: "Mod+s", label: "Save the draft now", run: saveNow, always: true },
    { action: "undo", key: "Mod+z", label: "Open the last submission again", run: undo },
    { action: "skip", key: "Backspace", label: "Skip, with a reason", run: skip },
    { action: "flag", key: "f", label: "Flag for the reviewers", run: flag },
    { action: "next", key: "ArrowRight", label: "Next task in hand, without submitting", run: () => turn(1) },
    { action: "previous", key: "ArrowLeft", label: "Previous task in hand", run: () => turn(-1) },
    { action: "guidelines", key: "g", label: "Guidelines", run: () => sidebar.toggle("guidelines") },
    { action: "progress", key: "l", label: "Progress and last submissions", run: () => sidebar.toggle("progress") },
    { action: "prompt", key: "p", label: "Unfold the prompt", run: () => prompt.toggle() },
    { action: "formatted", key: "v", label: "Formatted or as written", run: toggleFormatted },
    { action: "help", key: "?", label: "Keys", run: () => sheet.open() },
  ];
}

/** Keys and clicks. While `busy()`, no key acts, because the task that it would change is being sent. */
export function listen({ keymap, sheet, focusTask, busy }) {
  const open = () => document.querySelector("dialog[open]");
  const work = document.getElementById("work");

  addEventListener("keydown", (event) => {
    if (event.defaultPrevented) return;
    if (event.key === "Escape" && !open() && work.contains(event.target)) return focusTask();
    const entry = keymap.find(event);
    if (!entry) return;
    event.preventDefault();
    event.stopPropagation(); // the keys of other pages do nothing here
    if (!busy()) entry.run(event);
  }, true);

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-keys]")) {
      event.stopImmediatePropagation();
      return sheet.open();
    }
    const button = event.target.closest("button");
    if (!button || button.closest("dialog")) return;
    if (button.dataset.do) keymap.entries().find((entry) => entry.action === button.dataset.do)?.run(event);
    // after a click the keys must continue to work; a person who came by Tab keeps the focus
    if (event.detail > 0 && document.activeElement === button && !open()) focusTask();
  }, true);

  const mark = document.querySelector('[data-do="formatted"]');
  const paint = () => mark.setAttribute("aria-pressed", String(isFormatted()));
  document.addEventListener("work:formatted", paint);
  paint();
  for (const action of ["guidelines", "progress", "help"]) {
    const entry = keymap.entries().find((each) => each.action === action);
    offer(`Workbench: ${entry.label}`, entry.run);
  }
}

/** `drafts` is a Map; `unsent()` says whether a submission is only in this page; `back()` is called when the network is back,
 *  `returned()` when the person is back, `seen()` when the page was hidden and is shown again. */
export function watch({ drafts, unsent, back, returned, seen }) {
  const each = (run) => drafts.forEach(run);
  addEventListener("pagehide", () => each((draft) => draft.leave()));
  document.addEventListener("visibilitychange", () => (document.hidden ? each((draft) => draft.flush()) : seen()));
  addEventListener("focus", () => {
    each((draft) => draft.waits && draft.retry());
    returned();
  });
  addEventListener("online", () => {
    each((draft) => draft.retry());
    back();
  });
  addEventListener("beforeunload", (event) => {
    // neither the server nor this browser has it: only in this case would leaving lose something
    if (unsent() || [...drafts.values()].some((draft) => draft.dirty && draft.unkept && !draft.closed)) event.preventDefault();
  });
}
