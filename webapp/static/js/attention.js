// Whether somebody is at this page. What a page asks by itself (polls, reloads after a message) says so to the server, and
// does not keep a session open that nobody uses. Whoever works without asking for anything is told of once a minute.

const UNATTENDED = "unattended"; // the header X-Unattended, or this cookie where no header can be sent
const INPUTS = ["pointerdown", "keydown", "wheel", "touchmove"];
const EVERY_MS = 60_000;
let touched = false;
let counted = Date.now(); // when the last request went that counts as use: the page itself
let pointer = "";

const touch = (event) => (touched ||= event.isTrusted);
for (const name of INPUTS) addEventListener(name, touch, { capture: true, passive: true });
addEventListener(
  "pointermove",
  (event) => {
    // browsers tell of a pointer that rests as well, when the page moves under it
    const place = `${event.screenX} ${event.screenY}`;
    if (pointer && pointer !== place) touch(event);
    pointer = place;
  },
  { capture: true, passive: true },
);

/** Headers of a request: it counts as use if somebody has done something here since the last one that did. */
export function attention() {
  if (!touched) return { "X-Unattended": "1" };
  touched = false;
  counted = Date.now();
  return {};
}

/** `location.reload()` for scripts: it counts as use if somebody is at the page. */
export function reload() {
  if (!touched) document.cookie = `${UNATTENDED}=1; max-age=10; path=/; samesite=strict`;
  location.reload();
}

document.cookie = `${UNATTENDED}=; max-age=0; path=/; samesite=strict`;

if (document.querySelector('meta[name="signed-in"]'))
  setInterval(() => {
    if (touched && Date.now() - counted >= EVERY_MS) fetch("/settings/sessions/used", { headers: attention() }).catch(() => null);
  }, EVERY_MS / 4);
