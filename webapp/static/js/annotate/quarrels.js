// If the page and the server have different drafts, shows both side by side, with a choice that loses neither.
import { toast } from "../toast.js";
import { el } from "./dom.js";
import { forgetCopies } from "./drafts.js";

export class Quarrels {
  /** `bench`: parts of the frame: notes, tasks, user, current, describe, remount, reopen, show, hold, advance, forgetDraft. */
  constructor(bench) {
    this.bench = bench;
  }

  /** The save state has changed; `error` and `current` are those of the draft. */
  told(state, { error = null, current = null } = {}) {
    const { notes } = this.bench;
    if (state === "saved") notes.drop("signed_out", "refused", "conflict");
    if (state === "conflict") this.clash(current);
    if (state === "gone") this.gone(error ?? {});
    if (state === "signed_out") this.signedOut();
    if (state === "refused")
      notes.show("refused", { tone: "bad", title: "The server refuses this draft; it is kept in this browser.", body: error?.fields?.[0]?.message ?? error?.message });
  }

  sides(here, there, [hereWords, thereWords]) {
    const { describe } = this.bench;
    const line = (words, content) => el("p", { dir: "auto" }, el("strong", {}, `${words}: `), describe(content));
    return [line(hereWords, here), line(thereWords, there)];
  }

  /** Another tab has saved something else. */
  clash(theirs) {
    const { notes, current, remount } = this.bench;
    const keep = () => {
      notes.drop("conflict");
      current.draft.keepMine();
    };
    const take = () => {
      notes.drop("conflict");
      remount(current.draft.takeTheirs());
    };
    notes.show("conflict", {
      tone: "warn",
      title: "This task was changed in another tab or on another machine.",
      body: this.sides(current.widget.value(), theirs.draft, ["Here", "There"]),
      actions: [["Keep this version", keep, true], ["Use the other version", take]],
    });
  }

  /** An earlier page left a copy that never reached the server, and the server has something else now. */
  differs(copy) {
    const { notes, current, remount, user } = this.bench;
    const done = () => {
      notes.drop("leftover");
      forgetCopies(user, current.assignment.id);
    };
    const use = () => {
      done();
      current.touched = true;
      remount(copy.content);
      current.draft.change(copy.content);
    };
    notes.show("leftover", {
      tone: "warn",
      title: "This browser kept an unsaved version of this task.",
      body: this.sides(copy.content, current.assignment.draft, ["Kept here", "Saved since"]),
      actions: [["Use the kept one", use, true], ["Use the saved one", done]],
    });
  }

  /** The person has lost the seat, or the task is done already. */
  gone({ code = "", message = "" }) {
    const { notes, tasks, current, advance } = this.bench;
    const elsewhere = code === "already_submitted";
    const first = elsewhere ? ["Open it again with the answer shown here", () => this.replace(), true] : ["Ask for it again", () => this.again(), true];
    const goOn = async () => {
      this.bench.hold(true);
      tasks.drop(current.assignment.id);
      await tasks.refresh(); // the next one may be done there, too
      advance();
    };
    notes.show("gone", {
      tone: "warn",
      title: elsewhere ? "This task was submitted in another tab or on another machine." : "This task is no longer assigned to you.",
      body: `${elsewhere ? "" : message} The answer shown here is kept in this browser.`,
      actions: [first, ["Continue", goOn]],
    });
  }

  /** Opens the task again, with the answer shown here instead of the submitted one. */
  async replace() {
    const { bench } = this;
    const { assignment, draft, widget } = bench.current;
    const content = widget.value();
    bench.hold(true);
    await bench.reopen(assignment.id);
    bench.hold(false);
    if (bench.current.assignment === assignment) return; // it could not be opened; the reason is on the screen
    this.goOnWith(content, draft.guidelines);
  }

  /** The time ran out: asks whether a seat is still free. */
  async again() {
    const { bench } = this;
    const { assignment, draft, widget } = bench.current;
    const content = widget.value();
    bench.tasks.drop(assignment.id);
    try {
      await bench.tasks.claim();
    } catch (error) {
      bench.tasks.put(assignment);
      return toast(error.message, { tone: "bad", id: error.id });
    }
    const same = bench.tasks.held.find((item) => item.id === assignment.id);
    if (!same) {
      bench.tasks.put(assignment);
      return toast("Other people have all its seats now. Continue with the next task.", { tone: "warn" });
    }
    bench.forgetDraft(assignment.id);
    bench.show(same);
    this.goOnWith(content, draft.guidelines);
  }

  goOnWith(content, guidelines) {
    const { notes, remount, current } = this.bench;
    notes.drop("leftover"); // it has the same content
    current.touched = true;
    current.draft.guidelines = guidelines;
    remount(content);
    current.draft.change(content);
  }

  signedOut() {
    this.bench.notes.show("signed_out", {
      tone: "warn",
      title: "You are signed out.",
      body: "Your work is kept in this browser.",
      actions: [
        ["Sign in again", () => open(`/sign-in?next=${encodeURIComponent(location.pathname)}`), true],
        ["Continue", () => location.reload()], // with the new session's token; the kept work comes back automatically
      ],
    });
  }
}
