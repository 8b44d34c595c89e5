// Whether somebody uses this page. Requests that a page sends by itself (polls, reloads after a message) say so to the server, and do not
// keep an unused session open. If a person works without any request, the page reports this once a minute.

const UNATTENDED = "unattended"; // the header X-Unattended, or this cookie if no header can be sent
const INPUTS = ["pointerdown", "keydown", "wheel", "touchmove"];
const EVERY_MS = 60_000;
let touched = false;
let counted = Date.now(); // the time of the last request that counts as use, which is first the page itself
let pointer = "";

const touch = (event) => (touched ||= event.isTrusted);
for (const name of INPUTS) addEventListener(name, touch, { capture: true, passive: true });
addEventListener(
  "pointermove",
  (event) => {
    // browsers also report a pointer that rests if the page moves under it
    const place = `${event.screenX} ${event.screenY}`;
    if (pointer && pointer !== place) touch(event);
    pointer = place;
  },
  { capture: true, passive: true },
);

/** Headers of a request. It counts as use if somebody has done something here since the last request that did. */
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
