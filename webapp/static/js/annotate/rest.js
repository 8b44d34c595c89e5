// The texts for a workbench without a task.
import { icon } from "../icons.js";
import { el } from "./dom.js";
import { keyHint } from "./keymap.js";

const ENDS = {
  none_left: [() => icon("coffee"), "Nothing waits for you", "Every task has enough answers, or you have given yours. Thank you."],
  paused: [() => icon("circle-pause"), "This project is paused", "Nothing is lost. You can continue when its managers open it again."],
  you_are_paused: [() => icon("circle-pause"), "You are paused in this project", "Its managers asked you to stop for now. Your submitted answers stay, and an answer that you had begun is kept as a draft."],
  closed: [() => icon("circle-check"), "This project is closed", "Your submitted answers stay, and an answer that you had begun is kept as a draft. Thank you."],
};

/** Whether `reason` means that this person cannot submit any more. A paused project still takes tasks that were begun. */
export const stopped = (reason) => reason === "you_are_paused" || reason === "closed";

/** `reason` is that of a claim, `error` that of a claim that failed. */
export function rest({ reason = "", error = null }, { again, undo }) {
  const [shape, title, text] = error
    ? [() => icon("cloud-off"), "No task can be fetched now", error.message]
    : (ENDS[reason] ?? ENDS.none_left);
  const button = el("button.btn", { type: "button", onclick: again }, error ? "Try again" : "Look again");
  const last = el("button.btn.ghost", { type: "button", onclick: undo }, "Reopen last", keyHint("undo"));
  const home = el("a.btn.ghost", { href: "/" }, "Home");
  return el("div.empty", {}, shape(), el("h2", {}, title), el("p", {}, text), el("div.row", {}, button, last, home));
}
