// The time that a person spends on a task. It counts only while the page is visible and somebody has moved, typed or scrolled recently.
const IDLE_MS = 30_000;
let active = performance.now();
let running = null; // one task is on the screen, so one clock runs

for (const name of ["pointermove", "pointerdown", "keydown", "wheel", "touchstart", "scroll", "focus"])
  addEventListener(name, () => (active = performance.now()), { passive: true, capture: true });

/** Milliseconds since somebody last did something. */
export const idle = () => performance.now() - active;

setInterval(() => running?.tick(), 1000);

export class Clock {
  constructor(seconds = 0) {
    this.total = seconds * 1000;
  }

  /** Runs only for the task on the screen. */
  run(on) {
    this.tick();
    this.since = on ? performance.now() : null;
    if (on) running = this;
  }

  tick() {
    if (!this.since) return;
    const now = performance.now();
    const step = Math.min(now - this.since, 2000); // the time of a sleeping computer does not count
    this.since = now;
    if (!document.hidden && idle() < IDLE_MS) this.total += step;
  }

  get seconds() {
    this.tick();
    return Math.round(this.total / 100) / 10;
  }
}
