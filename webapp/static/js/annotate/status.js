// The save state, which is always in the same place and in words.
import { icon } from "../icons.js";
import { ago } from "../times.js";
import { el } from "./dom.js";

const STATES = {
  idle: [() => icon("cloud-check"), "Nothing unsaved"],
  saved: [() => icon("cloud-check"), "Saved"],
  saving: [() => icon("cloud-upload"), "Saving"],
  offline: [() => icon("cloud-off"), "Offline, kept in this browser"],
  retrying: [() => icon("cloud-off"), "Not saved yet, trying again"],
  conflict: [() => icon("git-compare-arrows"), "Changed elsewhere too"],
  refused: [() => icon("circle-alert"), "The server refuses this draft"],
  signed_out: [() => icon("log-in"), "Signed out, kept in this browser"],
  gone: [() => icon("circle-alert"), "No longer yours, kept in this browser"],
};

export class SaveState {
  constructor(element) {
    this.element = element;
    this.waiting = 0;
    this.tell("idle");
    setInterval(() => this.state === "saved" && this.draw(), 10_000);
  }

  tell(state, { at = null, unkept = false } = {}) {
    Object.assign(this, { state, unkept, at: state === "saved" ? new Date(Math.min(at ?? Date.now(), Date.now())) : null });
    this.draw();
  }

  /** Shows how many submissions wait for the network, or for their author to sign in. */
  wait(count, signedOut = false) {
    Object.assign(this, { waiting: count, signedOut });
    this.draw();
  }

  draw() {
    const [shape, words] = STATES[this.state];
    let text = this.state === "saved" ? `Saved ${ago(this.at)}` : words;
    if (this.unkept) text = `${words}; this browser's storage is full`;
    if (this.waiting) text = `${this.signedOut ? "Signed out; " : ""}${this.waiting} ${this.waiting === 1 ? "submission waits" : "submissions wait"} to be sent`;
    const key = `${this.state}:${text}`;
    if (key === this.drawn) return;
    this.drawn = key;
    this.element.dataset.state = this.waiting ? "offline" : this.state;
    const mark = this.waiting ? icon("cloud-off") : shape?.();
    this.element.replaceChildren(...(mark ? [mark] : []), el("span", {}, text));
    this.element.title = text;
  }
}
